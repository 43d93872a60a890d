"""What was learned of pages, as a file of the index generation: written aside, read by whoever searches."""

import json
import zipfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from vedette.learn.clicks.off_policy import Estimate, OtherOrder
from vedette.learn.clicks.rollback_guard import Arm, Guarded
from vedette.serve.rank.reputation import Reputation
from vedette.web.console.ports.monitoring import Promoted, RankingTold

__all__ = [
    "MOST_PROMOTED",
    "REPUTATION_FILE",
    "STATUS_FILE",
    "ReputationFile",
    "drop_reputation",
    "keep_reputation",
    "keep_told",
    "read_told",
    "status_words",
]

# index/ranking.json outlives a generation, so a guard that holds goes on when the index is built anew.


STATUS_FILE = "ranking.json"
MOST_PROMOTED = 50


def keep_told(index: Path, told: RankingTold) -> None:
    """In one step."""
    draft = index / f"{STATUS_FILE}.new"
    draft.write_text(json.dumps(told._asdict(), allow_nan=True), "utf-8")
    draft.replace(index / STATUS_FILE)


def read_told(index: Path) -> RankingTold | None:
    """What was last told; None where nothing was, or it cannot be read."""
    with suppress(OSError, ValueError, TypeError, KeyError):
        kept: dict[str, Any] = json.loads((index / STATUS_FILE).read_text("utf-8"))
        kept |= {"learned": Arm(*kept["learned"]), "plain": Arm(*kept["plain"]), "guard": Guarded(*kept["guard"])}
        kept |= {"promoted": tuple(Promoted(*each) for each in kept["promoted"])}
        kept |= {"orders": tuple(map(_order, kept.get("orders", ())))}
        kept |= {"examined": tuple(kept["examined"]), "taken_off": tuple(map(tuple, kept["taken_off"]))}
        return RankingTold(**kept)
    return None


def _order(kept: Sequence[Any]) -> OtherOrder:
    name, readers, of_readers, *estimates = kept
    return OtherOrder(name, readers, of_readers, *(Estimate(*each) for each in estimates))


def status_words(told: RankingTold | None, now_s: float) -> str:
    """One line on how results are ordered.

    >>> status_words(RankingTold(clicks=12), 0.0)
    'by relevance: 12 clicks are too few to learn from'
    >>> status_words(RankingTold(is_learned=True, guard=Guarded(9.0, 0.0, "quality per click fell")), 5.0)
    'by relevance alone, as a guard holds: quality per click fell'
    """
    if told is None:
        return ""
    if not told.is_on:
        return "by relevance: learning from clicks is switched off"
    if told.guard.holds(now_s):
        return f"by relevance alone, as a guard holds: {told.guard.why}"
    if not told.is_learned:
        clicks = "1 click is" if told.clicks == 1 else f"{told.clicks} clicks are"
        return f"by relevance: {clicks} too few to learn from"
    share = told.tried / max(told.results, 1)
    return f"by relevance and {told.clicks} clicks; {share:.1%} of what was shown was there to be tried"


REPUTATION_FILE = "reputation"
_UNREADABLE = (OSError, ValueError, KeyError, EOFError, TypeError, zipfile.BadZipFile)


def keep_reputation(generation: Path, reputation: Reputation) -> None:
    """In one step, so that whoever reads has the old or the new."""
    draft = generation / f"{REPUTATION_FILE}.new"
    with draft.open("wb") as file:
        columns: dict[str, Any] = reputation._asdict()
        np.savez(file, **columns)
    draft.replace(generation / REPUTATION_FILE)


def drop_reputation(generation: Path) -> None:
    """Nothing is learned, or it is not to be used: results stand by relevance."""
    (generation / REPUTATION_FILE).unlink(missing_ok=True)


class ReputationFile:
    """The file of a generation, read again when there is another, and forgotten when it is gone."""

    def __init__(self, generation: Path) -> None:
        self._path = generation / REPUTATION_FILE
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
