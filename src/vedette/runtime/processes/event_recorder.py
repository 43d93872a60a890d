"""Event recorder process: ingest search logs into the event store, sample time series, prune old searches.

It never delays a search, and searches do not wait for it: while it is down, log files accumulate.
"""

import time
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import TYPE_CHECKING

from vedette.adapters.crawl_store.status_file import read_live_status
from vedette.adapters.event_store.schema import EVENTS_FILE
from vedette.adapters.event_store.search_log import delete_old_salts
from vedette.adapters.event_store.store import EventStore
from vedette.adapters.event_store.time_series import measure_crawl, measure_searches, measure_sizes
from vedette.errors import ClusterError, StoreError
from vedette.runtime.processes.loop import StepLoop, StoreGuard, print_error
from vedette.runtime.processes.settings import RuntimeSettings
from vedette.runtime.processes.throttle import Throttle

if TYPE_CHECKING:
    from vedette.runtime.cluster.gateway import GatewaySettings

FOLD_EVERY_S = 0.5
SAMPLE_EVERY_S = 5.0
TIDY_EVERY_S = 60.0
SHARE_EVERY_S = 1.0
RETRY_EVERY_S = 5.0
CRAWL_SERIES = {"known": "urls_known", "waiting": "urls_waiting"}
REFRESH_SERIES = {
    "price": "price",
    "refreshes": "refreshes",
    "wasted_share": "wasted_share",
    "change_expected": "expected_share",
    "change_found": "found_share",
    "current_share": "current_share",
    "quality": "quality",
    "views_current_share": "viewed_share",
    "change_loss": "change_loss",
}
POLL_SERIES = {"looks": "looks", "looks_wasted_share": "wasted_share"}


class Sampler:
    """Sample numbers for the console's time series in the event recorder, each as often as is cheap."""

    def __init__(self, settings: RuntimeSettings) -> None:
        self._folder, self._clock, self._gateway = settings.folder, settings.clock, settings.gateway
        self._full_scan = Throttle()  # measurements that scan every page
        self._requests: tuple[float, float] | None = None
        self._spent: tuple[float, float] | None = None

    def sample(self) -> dict[str, float]:
        """Sample all current numbers for the time series."""
        now_s = self._clock.now()
        found = measure_searches(self._folder, now_s)
        if self._gateway is not None:
            return found | self._sample_shards(self._gateway.dsn)
        return found | self._sample_state(now_s) | self._sample_coordinator()

    def _sample_shards(self, dsn: str) -> dict[str, float]:
        """Sample the numbers of all shards together; none while PostgreSQL is away."""
        from vedette.runtime.cluster.console import load_crawl_counts  # one machine imports nothing of a cluster

        try:
            counts = load_crawl_counts(dsn)
        except ClusterError:
            return {}
        found = {"pages": counts["pages"]} | {name: counts[key] for name, key in CRAWL_SERIES.items()}
        return found | self._sample_rate(counts["requests"])

    def _sample_state(self, now_s: float) -> dict[str, float]:
        """Sample sizes and counts of the data folder; nothing if the state cannot be read."""
        try:
            found = measure_sizes(self._folder)
            started_s = time.monotonic()
            if started_s >= self._full_scan.next_s:
                found |= measure_crawl(self._folder, now_s)
                self._full_scan.record_run(started_s, time.monotonic())
        except (StoreError, OSError):
            return {}
        return found

    def _sample_coordinator(self) -> dict[str, float]:
        """Sample the numbers that only the coordinator knows; none rather than old ones."""
        live = read_live_status(self._folder)
        if live is None or live.is_late:
            return {}
        told = live.numbers
        numbers = _select_numbers(told)
        refreshing, looking = (_select_numbers(told.get(part)) for part in ("refresh", "discovery"))
        found = {name: numbers[key] for name, key in CRAWL_SERIES.items() if key in numbers}
        found |= {name: refreshing[key] for name, key in REFRESH_SERIES.items() if key in refreshing}
        found |= {name: looking[key] for name, key in POLL_SERIES.items() if key in looking}
        return found | self._sample_rate(numbers.get("requests", 0.0)) | self._sample_budget(told)

    def _sample_budget(self, told: Mapping[str, object]) -> dict[str, float]:
        """Sample the fetch budget, and the spending per second (world time) since the last sample."""
        numbers, now_s, before = _select_numbers(told.get("budget")), _select_numbers(told).get("now_s"), self._spent
        if now_s is None or "fetches" not in numbers:
            return {}
        found = (
            {"budget_per_s": numbers["per_s"], "budget_held_back": numbers["held_back"]} if "per_s" in numbers else {}
        )
        self._spent = now_s, numbers["fetches"]
        if before is not None and before[0] < now_s and before[1] <= numbers["fetches"]:
            found["budget_spent_per_s"] = (numbers["fetches"] - before[1]) / (now_s - before[0])
        return found

    def _sample_rate(self, requests: float) -> dict[str, float]:
        """Sample requests per second since the last sample; a restarted coordinator counts from 0."""
        wall_s, before = time.monotonic(), self._requests
        self._requests = (wall_s, requests)
        if before is None or before[1] > requests or before[0] >= wall_s:
            return {}
        return {"fetches_per_s": (requests - before[1]) / (wall_s - before[0])}


def _select_numbers(told: object) -> dict[str, float]:
    """Select the numeric fields of a coordinator's status answer, by name."""
    found = told if isinstance(told, dict) else {}
    return {name: float(value) for name, value in found.items() if isinstance(value, int | float)}


class SharedSearches:
    """What a gateway does with its searches besides recording them: share them with the others, and learn from all."""

    def __init__(self, settings: RuntimeSettings, gateway: "GatewaySettings") -> None:
        from vedette.runtime.cluster.click_learning import (
            ClusterLearningJob,  # one machine imports nothing of a cluster
        )
        from vedette.runtime.cluster.search_log import SearchLogExchange

        def open_exchange() -> SearchLogExchange:
            return SearchLogExchange(settings.folder, gateway.dsn, gateway.node)

        self._open: Callable[[], SearchLogExchange] = open_exchange
        self._exchange: SearchLogExchange | None = None
        self._learning = ClusterLearningJob(settings.folder, settings.clock, gateway.dsn)
        self._next_s, self._trouble = 0.0, ""

    def step(self) -> None:
        """Share what is new, a few times per second at most; while PostgreSQL is away, try again later."""
        now_s = time.monotonic()
        self._learning.step(now_s)
        if now_s < self._next_s:
            return
        try:
            self._exchange = self._exchange or self._open()
            has_more = self._exchange.step()
            self._next_s, self._trouble = now_s + (0.0 if has_more else SHARE_EVERY_S), ""
        except (ClusterError, StoreError) as error:
            if str(error) != self._trouble:
                print_error(f"searches are not shared with other gateways for now: {error}")
            self._next_s, self._trouble = now_s + RETRY_EVERY_S, str(error)

    def close(self) -> None:
        """Stop sharing and learning."""
        self._learning.close()
        if self._exchange is not None:
            self._exchange.close()


class EventRecorder:
    """Keep the event store of a data folder up to date, step by step; the process survives its errors."""

    def __init__(self, settings: RuntimeSettings, sampler: Sampler) -> None:
        self._folder, self._clock = settings.folder, settings.clock
        self._keep_days = settings.config.serve.keep_slates_days
        self._sampler = sampler
        self._store: EventStore | None = None
        self._sample_s = self._tidy_s = 0.0
        self._guard = StoreGuard(
            settings.folder,
            EVENTS_FILE,
            trouble="searches are not being recorded",
            recovered="searches are being recorded again",
        )

    def step(self) -> bool:
        """Do what is due in the event recorder; return whether there are more logs to ingest at once."""
        return self._guard.run(self._run_step, self.close)

    def finish(self) -> None:
        """Ingest all search logs up to now, and close the event store."""
        self._guard.run(self._fold_logs, self.close)
        self.close()

    def close(self) -> None:
        """Close the event recorder's store."""
        if self._store is not None:
            self._store.close()
        self._store = None

    def _open_store(self) -> EventStore:
        if self._store is None:
            self._store = EventStore(self._folder)
        return self._store

    def _run_step(self) -> bool:
        more, book = self._fold_logs(), self._open_store()
        wall_s = time.monotonic()
        if wall_s >= self._sample_s:
            self._sample_s = wall_s + SAMPLE_EVERY_S
            book.add_points(self._clock.now(), self._sampler.sample())
        if wall_s >= self._tidy_s:
            self._tidy_s = wall_s + TIDY_EVERY_S
            self._delete_old(book)
        return more

    def _fold_logs(self) -> bool:
        book = self._open_store()
        folded = book.ingest_logs()
        if not self._keep_days and (folded.slates or folded.events):
            book.prune(self._clock.now(), 0)
        return bool(folded.left_bytes and folded.size_bytes)

    def _delete_old(self, book: EventStore) -> None:
        now_s = self._clock.now()
        book.prune(now_s, self._keep_days)
        # Visitor hashes are valid for one day of wall time.
        delete_old_salts(self._folder, time.strftime("%Y-%m-%d", time.gmtime()))


def run_event_recorder(settings: RuntimeSettings) -> int:
    """Run the event recorder process until SIGTERM; it ingests all logs before it exits."""
    loop = StepLoop(FOLD_EVERY_S)
    loop.wait_for_folder(settings.folder)
    shared = SharedSearches(settings, settings.gateway) if settings.gateway is not None else None
    with closing(EventRecorder(settings, Sampler(settings))) as recorder:

        def step() -> bool:
            if shared is not None:
                shared.step()  # first: a log may be deleted when it was ingested
            return recorder.step()

        loop.run(step)
        if shared is not None:
            shared.close()
        recorder.finish()
    return 0
