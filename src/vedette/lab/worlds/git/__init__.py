"""The history of a website that is kept in git, as the past of a web: every page as it was at every commit.

``paths`` says which files are pages and where, ``walk`` what each commit did to them, ``blobs`` (``markup``) what they
say, ``lives`` when each page was born, changed, moved and died, ``links`` where they lead; ``build`` puts it together.
"""

from vedette.lab.worlds.git.build import WAVE_THRESHOLD, read_git
from vedette.lab.worlds.git.importing import ImportSummary, import_git
from vedette.lab.worlds.git.place import GitLocation, parse_location

__all__ = ["WAVE_THRESHOLD", "GitLocation", "ImportSummary", "import_git", "parse_location", "read_git"]
