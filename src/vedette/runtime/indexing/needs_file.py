"""What changes brought to the words that are watched, kept in a generation: by the indexer, for the maker of curves."""

import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np

from vedette.engine.search.needy_terms import Needs

__all__ = ["keep_needs", "read_needs"]

FILE = "needs"
_UNREADABLE = (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile)


def keep_needs(generation: Path, needs: Needs) -> None:
    """In one step, so that whoever reads has the old or the new."""
    draft = generation / f"{FILE}.new"
    with draft.open("wb") as file:
        np.savez(file, numbers=needs.numbers, gained=needs.gained, changes=needs.changes)
    draft.replace(generation / FILE)


def read_needs(generation: Path) -> Needs:
    """What was kept; nothing where that is missing or makes no sense."""
    with suppress(*_UNREADABLE), np.load(generation / FILE) as kept:
        needs = Needs(*(kept[name] for name in Needs._fields))
        sizes = {len(column) for column in needs}
        if len(sizes) == 1 and needs.numbers.dtype == np.uint32 and all(np.isfinite(each).all() for each in needs[1:]):
            return needs
    return Needs.none()
