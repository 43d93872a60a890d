"""Web histories from git: every page of a website that is kept in a repository, as it was at every commit.

``repository`` opens it, ``paths`` says which files are pages and where, ``walk`` what each commit did to them,
``blobs`` what they say, ``links`` where they lead. ``build`` puts together when pages were born, changed and died.
"""

from vedette.lab.worlds.git.build import WAVE_THRESHOLD, ImportSummary, import_git, read_git
from vedette.lab.worlds.git.repository import GitLocation, parse_location

__all__ = ["WAVE_THRESHOLD", "GitLocation", "ImportSummary", "import_git", "parse_location", "read_git"]
