"""Refresh statistics for the console: what the policy says of pages, and what fetches brought.

The coordinator saves what its policy remembers, so the same policy can be asked here, and the coordinator never waits.
"""

import sqlite3
from math import inf, isfinite
from pathlib import Path
from threading import Lock

import numpy as np

from vedette.adapters.crawl_store.data_folder import read_state
from vedette.adapters.crawl_store.store import CrawlStore
from vedette.adapters.index_store.gain_store import read_gains_since
from vedette.engine.coordinator.state import CrawlRules
from vedette.engine.ports import KnownPage
from vedette.engine.scheduling.policy_memory import PolicyMemory
from vedette.engine.scheduling.policy_runner import PolicyRunner
from vedette.engine.scheduling.price_controller import load_policy
from vedette.engine.scheduling.refresh import RefreshScheduler
from vedette.engine.scheduling.refresh_policies import create_policy
from vedette.engine.scheduling.schedule import Schedule
from vedette.policy import Floats
from vedette.web.console.ports.monitoring import CalibrationBin, DuePage, RefreshStatus

MAX_DUE = 20
SAMPLE_SIZE = 300
RUN_LENGTH = 20  # pages of a large folder are looked at in so many at once
BUCKET_S = 300.0
WINDOW_S = 31 * 86_400.0
BATCH_SIZE = 10_000
_DUE_SQL = "SELECT id FROM page WHERE due_s < ? AND status BETWEEN 200 AND 299 ORDER BY due_s LIMIT ?"
_LAST_ID_SQL = "SELECT coalesce(max(id), 0) FROM page"


def load_refresh_report(folder: Path, schedule: Schedule, now_s: float) -> RefreshStatus:
    """All that the console shows of it; before any page was judged, only what is due."""
    with read_state(folder) as db:
        store = CrawlStore(db)
        policy = load_policy(store)
        refreshing = RefreshScheduler(CrawlRules(refresh=policy), store) if policy is not None else None
        seen = _RefreshProbe(db, store, refreshing, schedule, now_s)
        if refreshing is None:
            return RefreshStatus(soon=seen.list_due())
        forecast, chances = refreshing.forecast, seen.estimate_changes(refreshing.policy)
        return RefreshStatus(
            policy=refreshing.policy,
            price=refreshing.price,
            refreshes=forecast.refreshes,
            wasted=forecast.wasted,
            calibration=tuple(map(CalibrationBin, forecast.count, forecast.expected, forecast.found)),
            current=1.0 - float(chances.mean()) if len(chances) else None,
            judged=len(chances),
            soon=seen.list_due(),
        )


def estimate_current_share(folder: Path, now_s: float) -> dict[str, float]:
    """How many pages are still as they were fetched, by estimate, under the name of its series; nothing before any is.

    Judged is a sample, so that it costs the same however many there are.
    """
    if not (folder / "state.db").exists():
        return {}
    with read_state(folder) as db:
        store = CrawlStore(db)
        policy = load_policy(store)
        if policy is None:
            return {}
        chances = _RefreshProbe(db, store, None, Schedule(), now_s).estimate_changes(policy)
    return {"current_share": 1.0 - float(chances.mean())} if len(chances) else {}


class _RefreshProbe:
    """One moment of a folder, and the policy that is asked about its pages."""

    def __init__(
        self,
        db: sqlite3.Connection,
        store: CrawlStore,
        policy: RefreshScheduler | None,
        schedule: Schedule,
        now_s: float,
    ) -> None:
        self._db, self._store, self._policy, self._schedule, self._now_s = db, store, policy, schedule, now_s

    def estimate_changes(self, policy: str) -> Floats:
        """How probably pages have changed since they were fetched, of those that the policy judges; all at once."""
        mind = PolicyRunner(create_policy(policy))
        memory = PolicyMemory(mind, self._store, 1, None)
        looks = [look for look in self._sample_pages() if memory.is_eligible(look)]
        if not looks:
            return np.zeros(0)
        made = memory.batch_pages(looks)
        chances = mind.chance(made.memory, made.batch, np.full(len(looks), self._now_s))
        return np.zeros(0) if chances is None else chances

    def list_due(self) -> tuple[DuePage, ...]:
        """The pages whose time comes next, the first of them first."""
        ids = [id_ for (id_,) in self._db.execute(_DUE_SQL, (inf, MAX_DUE))]
        looks = sorted(self._store.get_known_pages(ids), key=lambda look: (look.page.due_s, look.page.id))
        return tuple(self._build_due_page(look) for look in looks)

    def _sample_pages(self) -> list[KnownPage]:
        """All pages, or some from all over the folder: what stands together was found together, and is alike."""
        first = self._store.scan_known_pages(0, SAMPLE_SIZE)
        if len(first) < SAMPLE_SIZE:
            return first
        (last,) = self._db.execute(_LAST_ID_SQL).fetchone()
        starts = range(0, last, max(last * RUN_LENGTH // SAMPLE_SIZE, 1))
        return [look for start in starts for look in self._store.scan_known_pages(start, RUN_LENGTH)][:SAMPLE_SIZE]

    def _build_due_page(self, look: KnownPage) -> DuePage:
        asked = self._policy.explain_page(look, self._now_s) if self._policy is not None else None
        page = look.page
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

    def sum_since(self, since_s: float, now_s: float) -> list[tuple[float, float]]:
        """Each sum at the end of its minutes, the earliest first."""
        with self._lock:
            self._read_new(now_s)
            ends = sorted((BUCKET_S * (number + 1), gain) for number, gain in self._sums.items())
        return [(min(end_s, now_s), gain) for end_s, gain in ends if end_s > since_s]

    def _read_new(self, now_s: float) -> None:
        rows = read_gains_since(self._index, self._seq, BATCH_SIZE)
        while rows:
            counted = (row for row in rows if row.what != "first" and isfinite(row.gain) and isfinite(row.fetched_s))
            for row in counted:
                number = int(row.fetched_s // BUCKET_S)
                self._sums[number] = self._sums.get(number, 0.0) + row.gain
            self._seq = rows[-1].seq
            rows = read_gains_since(self._index, self._seq, BATCH_SIZE) if len(rows) == BATCH_SIZE else []
        oldest = (now_s - WINDOW_S) // BUCKET_S
        self._sums = {number: gain for number, gain in self._sums.items() if number >= oldest}
