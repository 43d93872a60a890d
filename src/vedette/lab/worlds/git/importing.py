"""A git history into a file, from which experiments open it in a moment."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from vedette.errors import UsageError
from vedette.lab.worlds.git.build import WAVE_THRESHOLD, read_git
from vedette.lab.worlds.git.walk import Progress
from vedette.lab.worlds.history_file import save_history


class ImportSummary(NamedTuple):
    """What was imported, in numbers.

    ``contents`` are those that differ, ``in_waves`` counts the versions that came with many others, and ``missing``
    what the repository lacked.
    """

    name: str
    pages: int
    versions: int
    contents: int
    links: int
    sites: int
    moves: int
    in_waves: int
    missing: int
    size_bytes: int


def import_git(
    repo: str, out: str | Path, progress: Progress = lambda _done, _all: None, *, many: int = WAVE_THRESHOLD
) -> ImportSummary:
    """Reads ``[git:]PATH[#branch[:folder]]`` and writes it to a file; ``read_git`` explains the rest."""
    target = Path(out)
    if not target.parent.is_dir() or target.is_dir():
        raise UsageError(f"{out}: name a file in a folder that is there")
    history = read_git(repo, many=many, progress=progress)
    return ImportSummary(
        name=history.name,
        pages=history.pages,
        versions=len(history.version_page),
        contents=len(np.unique(history.digest)),
        links=len(history.link_to),
        sites=len(history.site_names),
        moves=int(np.count_nonzero(history.moved_to >= 0)),
        in_waves=int(np.count_nonzero(history.wave)),
        missing=history.missing,
        size_bytes=save_history(history, target),
    )
