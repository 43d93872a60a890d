"""Web histories from git: every page of a website that is stored in a repository, as of every commit.

``repository`` opens it, ``paths`` decides which files are pages and where, ``walk`` lists the changes of each commit,
``blobs`` parses contents, ``links`` resolves links. ``build`` combines when pages were born, changed and died.
"""

from vedette.lab.worlds.git.build import WAVE_THRESHOLD, ImportSummary, import_git, read_git
from vedette.lab.worlds.git.repository import GitLocation, parse_location

__all__ = ["WAVE_THRESHOLD", "GitLocation", "ImportSummary", "import_git", "parse_location", "read_git"]
