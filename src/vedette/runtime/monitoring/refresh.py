"""How refreshing stands, read off a data folder beside the keeper: what the policy says of pages, what fetches brought.

The keeper writes down what its policy remembers, so anybody can ask the same policy the same things. What costs
something is done here, and the keeper never waits.
"""

import sqlite3
from math import inf, isfinite
from pathlib import Path
from threading import Lock

import numpy as np

from vedette.adapters.crawl_store.data_folder import read_state
from vedette.adapters.crawl_store.store import StateBook
from vedette.adapters.index_store.gain_store import Gain, gains_since
from vedette.engine.coordinator.state import Rules
from vedette.engine.ports import Look
from vedette.engine.scheduling.policy_memory import Asked, Recollection
from vedette.engine.scheduling.policy_runner import Mind
from vedette.engine.scheduling.price_controller import policy_kept
from vedette.engine.scheduling.refresh import Refreshing
from vedette.engine.scheduling.refresh_policies import policy_named
from vedette.engine.scheduling.schedule import Schedule
from vedette.policy import Floats
from vedette.web.console.ports.monitoring import DuePage, Refresh, Tenth

__all__ = ["GainSums", "current_share", "look_at_refresh"]

SOON = 20
SAMPLED = 300
NEIGHBOURS = 20  # pages of a large folder are looked at in so many at once
SUM_S = 300.0
KEPT_S = 31 * 86_400.0
READ_AT_ONCE = 10_000
_SOON = "SELECT id FROM page WHERE due_s < ? AND status BETWEEN 200 AND 299 ORDER BY due_s LIMIT ?"
_LAST = "SELECT coalesce(max(id), 0) FROM page"


def look_at_refresh(folder: Path, schedule: Schedule, now_s: float) -> Refresh:
    """All that the console shows of it; before any page was judged, only what is due."""
    with read_state(folder) as db:
        book = StateBook(db)
        policy = policy_kept(book)
        refreshing = Refreshing(Rules(refresh=policy), book) if policy is not None else None
        seen = _Seen(db, book, refreshing, schedule, now_s)
        if refreshing is None:
            return Refresh(soon=seen.soon())
        forecast, chances = refreshing.forecast, seen.chances(refreshing.policy)
        return Refresh(
            policy=refreshing.policy,
            price=refreshing.price,
            refreshes=forecast.refreshes,
            wasted=forecast.wasted,
            tenths=tuple(map(Tenth, forecast.count, forecast.expected, forecast.found)),
            current=1.0 - float(chances.mean()) if len(chances) else None,
            judged=len(chances),
            soon=seen.soon(),
        )


def current_share(folder: Path, now_s: float) -> dict[str, float]:
    """How many pages are still as they were fetched, by estimate, under the name of its series; nothing before any is.

    Judged is a sample, so that it costs the same however many there are.
    """
    if not (folder / "state.db").exists():
        return {}
    with read_state(folder) as db:
        book = StateBook(db)
        policy = policy_kept(book)
        chances = _Seen(db, book, None, Schedule(), now_s).chances(policy) if policy is not None else np.zeros(0)
    return {"current_share": 1.0 - float(chances.mean())} if len(chances) else {}


class _Seen:
    """One moment of a folder, and the policy that is asked about its pages."""

    def __init__(
        self, db: sqlite3.Connection, book: StateBook, policy: Refreshing | None, schedule: Schedule, now_s: float
    ) -> None:
        self._db, self._book, self._policy, self._schedule, self._now_s = db, book, policy, schedule, now_s

    def chances(self, policy: str) -> Floats:
        """How probably pages have changed since they were fetched, of those that the policy judges; all at once."""
        mind = Mind(policy_named(policy))
        memory = Recollection(mind, self._book, 1, None)
        looks = [look for look in self._sample() if memory.judges(look)]
        if not looks:
            return np.zeros(0)
        made = memory.of_looks(looks)
        chances = mind.chance(made.memory, made.batch, np.full(len(looks), self._now_s))
        return np.zeros(0) if chances is None else chances

    def soon(self) -> tuple[DuePage, ...]:
        """The pages whose time comes next, the first of them first."""
        ids = [id_ for (id_,) in self._db.execute(_SOON, (inf, SOON))]
        looks = sorted(self._book.looks(ids), key=lambda look: (look.page.due_s, look.page.id))
        return tuple(self._due_page(look) for look in looks)

    def _asked(self, look: Look) -> Asked | None:
        return self._policy.asked_of(look, self._now_s) if self._policy is not None else None

    def _sample(self) -> list[Look]:
        """All pages, or some from all over the folder: what stands together was found together, and is alike."""
        first = self._book.looks_after(0, SAMPLED)
        if len(first) < SAMPLED:
            return first
        (last,) = self._db.execute(_LAST).fetchone()
        starts = range(0, last, max(last * NEIGHBOURS // SAMPLED, 1))
        return [look for start in starts for look in self._book.looks_after(start, NEIGHBOURS)][:SAMPLED]

    def _due_page(self, look: Look) -> DuePage:
        asked, page = self._asked(look), look.page
        if asked is None:
            return DuePage(look.url, page.due_s, self._schedule.reason(look.url, page))
        rates = (asked.rate_d, asked.rate_low_d, asked.rate_high_d)
        return DuePage(look.url, page.due_s, asked.reason, *rates, asked.chance, asked.worth)


class GainSums:
    """What fetches of known pages brought to search, in sums of some minutes each; read on from where it was.

    What first fetches bring is not counted: a page that was not there cannot have been out of date.
    """

    def __init__(self, folder: Path) -> None:
        self._index = folder / "index"
        self._lock = Lock()
        self._sums: dict[int, float] = {}
        self._seq = 0

    def since(self, since_s: float, now_s: float) -> list[tuple[float, float]]:
        """Each sum at the end of its minutes, the earliest first."""
        with self._lock:
            self._read(now_s)
            ends = sorted((SUM_S * (number + 1), gain) for number, gain in self._sums.items())
        return [(min(end_s, now_s), gain) for end_s, gain in ends if end_s > since_s]

    def _read(self, now_s: float) -> None:
        rows = gains_since(self._index, self._seq, READ_AT_ONCE)
        while rows:
            for row in filter(_counts, rows):
                number = int(row.fetched_s // SUM_S)
                self._sums[number] = self._sums.get(number, 0.0) + row.gain
            self._seq = rows[-1].seq
            rows = gains_since(self._index, self._seq, READ_AT_ONCE) if len(rows) == READ_AT_ONCE else []
        oldest = (now_s - KEPT_S) // SUM_S
        self._sums = {number: gain for number, gain in self._sums.items() if number >= oldest}


def _counts(row: Gain) -> bool:
    return row.what != "first" and isfinite(row.gain) and isfinite(row.fetched_s)
