"""Reputation store: page reputations learned from clicks, and the ranking status, as files of the index."""

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from vedette.adapters.files.npz import UNREADABLE
from vedette.learn.clicks.off_policy import Estimate, OrderEstimate
from vedette.learn.clicks.rollback_guard import Arm, RollbackGuard
from vedette.serve.rank.reputation import Reputation
from vedette.web.console.ports.monitoring import ExploredPage, RankingReport

# index/ranking.json outlives a generation, so an active guard continues when the index is rebuilt.


STATUS_FILE = "ranking.json"
MAX_EXPLORED = 50


def save_ranking_status(index: Path, told: RankingReport) -> None:
    """Save the ranking status beside the index, atomically."""
    draft = index / f"{STATUS_FILE}.new"
    draft.write_text(json.dumps(told._asdict(), allow_nan=True), "utf-8")
    draft.replace(index / STATUS_FILE)


def load_ranking_status(index: Path) -> RankingReport | None:
    """Load the last ranking status; None if there is none, or it cannot be read."""
    with suppress(OSError, ValueError, TypeError, KeyError):
        kept: dict[str, Any] = json.loads((index / STATUS_FILE).read_text("utf-8"))
        kept |= {"learned": Arm(*kept["learned"]), "plain": Arm(*kept["plain"]), "guard": RollbackGuard(*kept["guard"])}
        kept |= {"promoted": tuple(ExploredPage(*each) for each in kept["promoted"])}
        kept |= {"orders": tuple(map(_parse_ranking, kept.get("orders", ())))}
        kept |= {"examined": tuple(kept["examined"]), "taken_off": tuple(map(tuple, kept["taken_off"]))}
        return RankingReport(**kept)
    return None


def _parse_ranking(kept: Sequence[Any]) -> OrderEstimate:
    name, readers, of_readers, *estimates = kept
    return OrderEstimate(name, readers, of_readers, *(Estimate(*each) for each in estimates))


def describe_ranking(told: RankingReport | None, now_s: float) -> str:
    """Describe in one line how results are ordered, from the ranking status.

    >>> describe_ranking(RankingReport(clicks=12), 0.0)
    'by relevance: 12 clicks are too few to learn from'
    >>> describe_ranking(RankingReport(is_learned=True, guard=RollbackGuard(9.0, 0.0, "quality per click fell")), 5.0)
    'by relevance alone, because the guard is active: quality per click fell'
    """
    if told is None:
        return ""
    if not told.is_on:
        return "by relevance: learning from clicks is turned off"
    if told.guard.is_active(now_s):
        return f"by relevance alone, because the guard is active: {told.guard.why}"
    if not told.is_learned:
        clicks = "1 click is" if told.clicks == 1 else f"{told.clicks} clicks are"
        return f"by relevance: {clicks} too few to learn from"
    share = told.tried / max(told.results, 1)
    return f"by relevance and {told.clicks} clicks; {share:.1%} of the results shown were trials"


REPUTATION_FILE = "reputation"


def save_reputation(generation: Path, reputation: Reputation) -> None:
    """Save the page reputations of an index generation atomically, so that readers get the old or the new."""
    draft = generation / f"{REPUTATION_FILE}.new"
    with draft.open("wb") as file:
        columns: dict[str, Any] = reputation._asdict()
        np.savez(file, **columns)
    draft.replace(generation / REPUTATION_FILE)


def drop_reputation(generation: Path) -> None:
    """Delete the page reputations of an index generation, so that results are ordered by relevance."""
    (generation / REPUTATION_FILE).unlink(missing_ok=True)


class ReputationFile:
    """The page reputations of an index generation, reloaded when the file changes, dropped when it is gone."""

    def __init__(self, generation: Path) -> None:
        self._path = generation / REPUTATION_FILE
        self._written_ns = 0
        self.reputation: Reputation | None = None

    def refresh(self) -> bool:
        """Reload the page reputations if the file changed; return whether it did."""
        written_ns = 0
        with suppress(OSError):
            written_ns = self._path.stat().st_mtime_ns
        if written_ns == self._written_ns:
            return False
        self._written_ns = written_ns
        self.reputation = _load(self._path) if written_ns else None
        return True


def _load(path: Path) -> Reputation | None:
    """Load page reputations from a file; None if it cannot be read, as if nothing were learned."""
    with suppress(*UNREADABLE), np.load(path, allow_pickle=False) as kept:
        columns = {name: kept[name] for name in Reputation._fields}
        general, people = float(columns.pop("general")), float(columns.pop("people"))
        return Reputation(**columns, general=general, people=people)
    return None
