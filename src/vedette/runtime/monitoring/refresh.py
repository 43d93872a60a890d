"""Refresh statistics for the console: the refresh policy's verdict on pages, and the gains of fetches.

The coordinator saves its policy's memory, so the same policy can be queried here, and the coordinator never waits.
"""

import sqlite3
from math import inf, isfinite
from pathlib import Path
from threading import Lock

from vedette.adapters.crawl_store.data_folder import read_state
from vedette.adapters.crawl_store.store import CrawlStore
from vedette.adapters.index_store.gain_store import read_gains_since
from vedette.engine.coordinator.state import CrawlRules
from vedette.engine.ports import KnownPage
from vedette.engine.scheduling.idle_refresh import explain_idle_wait
from vedette.engine.scheduling.price_controller import load_policy
from vedette.engine.scheduling.refresh import RefreshScheduler
from vedette.engine.scheduling.schedule import Schedule
from vedette.web.console.ports.monitoring import CalibrationBin, DuePage, RefreshStatus

MAX_DUE = 20
BUCKET_S = 300.0
WINDOW_S = 31 * 86_400.0
BATCH_SIZE = 10_000
_DUE_SQL = "SELECT id FROM page WHERE due_s < ? AND status BETWEEN 200 AND 299 ORDER BY due_s LIMIT ?"


def load_refresh_report(folder: Path, schedule: Schedule, now_s: float) -> RefreshStatus:
    """Load the refresh status from a data folder for the console; without a policy, only the pages due next."""
    with read_state(folder) as db:
        store = CrawlStore(db)
        policy = load_policy(store)
        refreshing = RefreshScheduler(CrawlRules(refresh=policy), store) if policy is not None else None
        seen = _RefreshProbe(db, store, refreshing, schedule, now_s)
        if refreshing is None:
            return RefreshStatus(soon=seen.list_due())
        forecast = refreshing.forecast
        return RefreshStatus(
            policy=refreshing.policy,
            price=refreshing.price,
            refreshes=forecast.refreshes,
            wasted=forecast.wasted,
            calibration=tuple(map(CalibrationBin, forecast.count, forecast.expected, forecast.found)),
            current=refreshing.freshness.share,
            judged=refreshing.freshness.judged,
            soon=seen.list_due(),
        )


class _RefreshProbe:
    """Probe of the refresh policy for a data folder at one moment, for the console's list of due pages."""

    def __init__(
        self,
        db: sqlite3.Connection,
        store: CrawlStore,
        policy: RefreshScheduler | None,
        schedule: Schedule,
        now_s: float,
    ) -> None:
        self._db, self._store, self._policy, self._schedule, self._now_s = db, store, policy, schedule, now_s

    def list_due(self) -> tuple[DuePage, ...]:
        """List the pages that are due for a refresh next, earliest first."""
        ids = [id_ for (id_,) in self._db.execute(_DUE_SQL, (inf, MAX_DUE))]
        looks = sorted(self._store.get_known_pages(ids), key=lambda look: (look.page.due_s, look.page.id))
        return tuple(self._build_due_page(look) for look in looks)

    def _build_due_page(self, look: KnownPage) -> DuePage:
        verdict = self._policy.explain_page(look, self._now_s) if self._policy is not None else None
        page = look.page
        if verdict is None:
            return DuePage(look.url, page.due_s, self._schedule.reason(look.url, page))
        rates = (verdict.rate_d, verdict.rate_low_d, verdict.rate_high_d)
        reason = explain_idle_wait(self._store, look.url, page) or verdict.reason
        return DuePage(look.url, page.due_s, reason, *rates, verdict.chance, verdict.worth)


class GainSums:
    """Search gains of refreshes, summed over a few minutes each, read incrementally for the console.

    The gain of first fetches is not counted: a page that did not exist cannot have been out of date.
    """

    def __init__(self, folder: Path) -> None:
        self._index = folder / "index"
        self._lock = Lock()
        self._sums: dict[int, float] = {}
        self._seq = 0

    def sum_since(self, since_s: float, now_s: float) -> list[tuple[float, float]]:
        """Return the sums of refresh gains since a time, each at the end of its interval, earliest first."""
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
