"""What was learned of pages, as a file of the index generation: written aside, read by whoever searches."""

import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from vedette.serve.rank.reputation import Reputation

__all__ = ["FILE", "ReputationFile", "drop_reputation", "keep_reputation"]

FILE = "reputation"
_UNREADABLE = (OSError, ValueError, KeyError, EOFError, TypeError, zipfile.BadZipFile)


def keep_reputation(generation: Path, reputation: Reputation) -> None:
    """In one step, so that whoever reads has the old or the new."""
    draft = generation / f"{FILE}.new"
    with draft.open("wb") as file:
        columns: dict[str, Any] = reputation._asdict()
        np.savez(file, **columns)
    draft.replace(generation / FILE)


def drop_reputation(generation: Path) -> None:
    """Nothing is learned, or it is not to be used: results stand by relevance."""
    (generation / FILE).unlink(missing_ok=True)


class ReputationFile:
    """The file of a generation, read again when there is another, and forgotten when it is gone."""

    def __init__(self, generation: Path) -> None:
        self._path = generation / FILE
        self._written_ns = 0
        self.reputation: Reputation | None = None

    def look(self) -> bool:
        """See what is there now; whether that is something else."""
        written_ns = 0
        with suppress(OSError):
            written_ns = self._path.stat().st_mtime_ns
        if written_ns == self._written_ns:
            return False
        self._written_ns = written_ns
        self.reputation = _read(self._path) if written_ns else None
        return True


def _read(path: Path) -> Reputation | None:
    """What it holds; None where it cannot be read, which is as if nothing were learned."""
    with suppress(*_UNREADABLE), np.load(path) as kept:
        columns = {name: kept[name] for name in Reputation._fields}
        general, people = float(columns.pop("general")), float(columns.pop("people"))
        return Reputation(**columns, general=general, people=people)
    return None
