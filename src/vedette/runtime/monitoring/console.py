"""Monitoring of a data folder for the console: crawl, refresh, discovery, searches, storage, time series.

Many threads call it at once, as often as pages are loaded, so results are cached for seconds, costly ones for longer.
"""

from collections.abc import Callable, Mapping
from math import isfinite
from pathlib import Path
from typing import TypeVar

from vedette.adapters.clock import Clock
from vedette.adapters.crawl_store.data_folder import read_state
from vedette.adapters.crawl_store.reader import HeldCounts, StateReader
from vedette.adapters.crawl_store.request_budget import read_exceeded
from vedette.adapters.crawl_store.status_file import read_failing, read_live_status
from vedette.adapters.crawl_store.store import CrawlStore
from vedette.adapters.crawl_store.url_list import COUNT_NEED_SCRIPT
from vedette.adapters.event_store.reader import EventReader, Totals
from vedette.adapters.event_store.time_series import measure_sizes
from vedette.adapters.index_store.generations import Generations
from vedette.config import Config, format_rate
from vedette.engine.scheduling.schedule import Schedule
from vedette.errors import StoreError
from vedette.learn.workload import Drift, Workload, build_workload
from vedette.refresh.policies.fixed import Fixed
from vedette.runtime.commands.setting_commands import apply_overrides, load_overrides
from vedette.runtime.indexing.query_curves import read_curve_info
from vedette.runtime.monitoring.budget import load_budget_report
from vedette.runtime.monitoring.discovery import load_discovery_report, measure_discovery_delay
from vedette.runtime.monitoring.refresh import GainSums, load_refresh_report
from vedette.runtime.processes.throttle import CachedValue
from vedette.runtime.search.meaning import describe_meaning
from vedette.timeutil import DAY_S
from vedette.web.console.ports.monitoring import (
    BudgetReport,
    CrawlStatus,
    DiscoveryReport,
    HostLine,
    HostList,
    RefreshStatus,
    RuntimeSettings,
    SearchStats,
    StoragePart,
    StorageStatus,
)

FAST_TTL_S, SLOW_TTL_S = 1.0, 5.0
MAX_QUERIES = 1000
MAX_RISING = 20
WINDOW_S = 90 * DAY_S  # older searches count for almost nothing
MAX_CACHED = 64
_COUNTS_SQL = (
    "SELECT (SELECT count(*) FROM site), "  # noqa: S608 - our own words
    "(SELECT count(*) FROM (SELECT DISTINCT page FROM news LIMIT 100000)), "
    f"({COUNT_NEED_SCRIPT})"
)
_PARTS = (
    ("archive_bytes", "Archive", "pages as they were fetched; the index is built from them"),
    ("index_bytes", "Index", "used to answer searches; rebuilt from the archive if missing"),
    ("state_bytes", "State", "known URLs, sites, rules and the fetch schedule"),
    ("record_bytes", "Searches", "recorded searches and clicks, and time series"),
)


_NO_SEARCHES = SearchStats(Totals(), (), (), (), Drift(0.0, is_notable=False, is_told=False))
T = TypeVar("T")


def _or_default(load: Callable[[], T], default: T) -> T:
    """Return a monitoring value, or the default if state or event store cannot be read, as while being created."""
    try:
        return load()
    except StoreError:
        return default


class FolderMonitor:
    """The console's ``Monitoring`` port implemented over one data folder."""

    def __init__(self, folder: Path, clock: Clock, config: Config) -> None:
        self._folder, self._clock, self._config = folder, clock, config
        self._events = EventReader(folder)
        self._crawl, self._hosts = CachedValue[CrawlStatus](FAST_TTL_S), CachedValue[HostList](FAST_TTL_S)
        self._storage = CachedValue[StorageStatus](SLOW_TTL_S)
        self._held = CachedValue[tuple[HeldCounts, ...]](SLOW_TTL_S)
        self._latest = CachedValue[Mapping[str, float]](FAST_TTL_S)
        self._workload, self._left_out = CachedValue[Workload](SLOW_TTL_S), CachedValue[Mapping[str, int]](SLOW_TTL_S)
        self._refresh, self._gains = CachedValue[RefreshStatus](SLOW_TTL_S), GainSums(folder)
        self._discovery = CachedValue[DiscoveryReport](SLOW_TTL_S)
        self._searched: dict[float, CachedValue[SearchStats]] = {}
        self._budgets: dict[int, CachedValue[BudgetReport]] = {}

    def get_crawl_status(self) -> CrawlStatus:
        """Return the cached crawl status as the coordinator last wrote it; if none runs, the last recorded numbers."""
        return self._crawl.get(self._load_crawl)

    def list_hosts(self) -> HostList:
        """List the hosts with work to do for the console, as the coordinator last wrote them; none if none runs."""
        return self._hosts.get(self._load_hosts)

    def get_refresh_status(self) -> RefreshStatus:
        """Return the cached refresh status for the console, whether or not a coordinator runs."""
        return self._refresh.get(lambda: _or_default(self._load_refresh, RefreshStatus()))

    def get_discovery_report(self) -> DiscoveryReport:
        """Return the cached discovery report for the console, whether or not a coordinator runs."""
        return self._discovery.get(lambda: _or_default(self._load_discovery, DiscoveryReport()))

    def get_budget_report(self, days: int) -> BudgetReport:
        """Return the cached fetch budget report for the console, whether or not a coordinator runs."""
        if len(self._budgets) > MAX_CACHED:
            self._budgets.clear()
        cached = self._budgets.setdefault(days, CachedValue[BudgetReport](FAST_TTL_S))
        return cached.get(lambda: _or_default(lambda: self._load_budget(days), BudgetReport()))

    def get_runtime_settings(self) -> RuntimeSettings:
        """Return the current runtime settings from state and configuration for the console.

        They are never cached, since an operator who changes one must see it at once.
        """
        config, chosen = _or_default(self._load_config, (self._config, dict[str, str]()))
        crawl, serve = config.crawl, config.serve
        return RuntimeSettings(
            config.refresh.policy,
            format_rate(crawl.budget),
            tuple(chosen),
            serve.learn,
            crawl.contact,
            serve.promotion,
            crawl.discovery_policy,
            serve.sponsored_policy,
            describe_meaning(self._folder / "index", serve.embedding_model),
        )

    def list_gains(self, since_s: float) -> list[tuple[float, float]]:
        """List the search gains of refreshes for the console's monitoring, summed over a few minutes each."""
        return self._gains.sum_since(since_s, self._clock.now())

    def get_search_stats(self, span_s: float) -> SearchStats:
        """Return cached search statistics of the last ``span_s`` seconds from the event store, for the console."""
        if len(self._searched) >= MAX_CACHED:
            self._searched.clear()
        cached = self._searched.setdefault(span_s, CachedValue[SearchStats](SLOW_TTL_S))
        return cached.get(lambda: _or_default(lambda: self._load_searches(span_s), _NO_SEARCHES))

    def count_filtered(self) -> Mapping[str, int]:
        """Count the last day's searches and clicks that the bot filter dropped, by reason, for the console."""
        return self._left_out.get(lambda: _or_default(self._load_filtered, {}))

    def get_storage_status(self) -> StorageStatus:
        """Return the cached disk usage of the data folder for the console."""
        return self._storage.get(self._load_storage)

    def load_series(self, name: str, since_s: float, most: int) -> list[tuple[float, float]]:
        """Load a monitoring time series from the event store; empty if it cannot be read.

        The event store's writer reports and repairs that.
        """
        return _or_default(lambda: self._events.read_series(name, since_s, most), [])

    def get_latest_values(self) -> Mapping[str, float]:
        """Return the latest value of each monitoring series for the console, including derived ones."""
        return self._latest.get(
            lambda: _or_default(self._events.read_latest, dict[str, float]()) | self._derive_numbers()
        )

    def is_recording(self) -> bool:
        """Check whether the configuration has searches recorded, for the console's monitoring."""
        return self._config.serve.keep_slates_days > 0

    # reading

    def _load_crawl(self) -> CrawlStatus:
        sites, unindexed, need_script = _or_default(self._count_sites, (0, 0, 0))
        held = self._held.get(lambda: _or_default(self._load_held, ()))
        live = read_live_status(self._folder)
        if live is None or not live.numbers:
            latest = self.get_latest_values()
            urls, waiting = (int(latest.get(name, 0)) for name in ("known", "waiting"))
            return CrawlStatus(
                is_busy=live is not None,
                sites=sites,
                known=urls,
                waiting=waiting,
                unindexed=unindexed,
                need_script=need_script,
                held=held,
                failing=read_failing(self._folder),
                exceeded=read_exceeded(self._folder),
            )
        numbers = live.numbers
        return CrawlStatus(
            is_running=True,
            is_busy=live.is_late,
            age_s=live.age_s,
            sites=sites,
            pages_per_s=numbers["pages_per_s"],
            known=numbers["urls_known"],
            waiting=numbers["urls_waiting"],
            out=numbers["urls_out"],
            hosts=numbers["hosts"],
            waiting_why=numbers["hosts_waiting"],
            statuses=numbers["statuses"],
            failures=numbers["failures"],
            refusals=numbers["refusals"],
            in_trouble=numbers["hosts_in_trouble"],
            trouble=numbers["trouble"],
            unindexed=unindexed,
            need_script=need_script,
            held=held,
            has_budget=bool(numbers["budget"]["per_s"]),
            failing=read_failing(self._folder),
            exceeded=read_exceeded(self._folder),
        )

    def _load_held(self) -> tuple[HeldCounts, ...]:
        """Count the URLs that are held back as traps, by site, for the console's crawl status."""
        with read_state(self._folder) as db:
            view = StateReader(db)
            return tuple(view.summarize_held([row.site for row in view.store.list_sites()]))

    def _count_sites(self) -> tuple[int, int, int]:
        """Count the sites, the pages waiting to be indexed, and those that need JavaScript, for the crawl status."""
        with read_state(self._folder) as db:
            sites, unindexed, need_script = db.execute(_COUNTS_SQL).fetchone()
        return int(sites), int(unindexed), int(need_script)

    def _load_config(self) -> tuple[Config, dict[str, str]]:
        with read_state(self._folder) as db:
            store = CrawlStore(db)
            return apply_overrides(self._config, store), load_overrides(store)

    def _load_hosts(self) -> HostList:
        live = read_live_status(self._folder)
        if live is None or not live.numbers:
            return HostList()
        return HostList(tuple(HostLine(**row) for row in live.numbers["queue"]), live.numbers["queue_hosts"])

    def _load_searches(self, span_s: float) -> SearchStats:
        now_s = self._clock.now()
        since_s = now_s - span_s
        workload = self._workload.get(lambda: build_workload(self._events.iter_counts(now_s - WINDOW_S)))
        return SearchStats(
            self._events.read_totals(since_s),
            tuple(self._events.list_top_queries(since_s, MAX_QUERIES)),
            tuple(self._events.list_empty_queries(since_s, MAX_QUERIES)),
            tuple(workload.find_rising(now_s, MAX_RISING)),
            workload.measure_drift(now_s),
        )

    def _load_filtered(self) -> Mapping[str, int]:
        return self._events.read_totals(self._clock.now() - DAY_S).filtered

    def _load_refresh(self) -> RefreshStatus:
        return load_refresh_report(self._folder, self._build_schedule(), self._clock.now())

    def _load_discovery(self) -> DiscoveryReport:
        return load_discovery_report(self._folder, self._clock.now())

    def _load_budget(self, days: int) -> BudgetReport:
        rate = self._load_config()[0].crawl.budget
        per_s = rate.requests / rate.per_s
        return load_budget_report(self._folder, per_s, format_rate(rate), days, self._clock.now())

    def _build_schedule(self) -> Schedule:
        return Schedule(sources=Fixed(interval_s=self._config.crawl.source_interval_s))

    def _derive_numbers(self) -> dict[str, float]:
        """Compute the derived monitoring numbers that have a value; a missing one would wrongly read as 0."""
        now_s = self._clock.now()
        gains = self.list_gains(now_s - DAY_S)
        won = {"gain_day": sum(gain for _, gain in gains)} if gains else {}
        return won | self._read_overlap() | measure_discovery_delay(self._folder, now_s)

    def _read_overlap(self) -> dict[str, float]:
        """Read the overlap of served and measured first results; nothing if unknown."""
        generation = Generations(self._folder).current()
        about = read_curve_info(generation) if generation is not None else None
        return {"overlap_at_10": about.overlap} if about is not None and isfinite(about.overlap) else {}

    def _load_storage(self) -> StorageStatus:
        found, store = measure_sizes(self._folder), self._config.store
        return StorageStatus(
            parts=tuple(StoragePart(title, words, found.get(name, 0.0)) for name, title, words in _PARTS),
            free_bytes=int(found.get("disk_free_bytes", 0)),
            min_free_bytes=store.min_free_bytes,
            archive_limit_bytes=store.max_bytes,
            keep_days=store.keep_days,
            keep_slates_days=self._config.serve.keep_slates_days,
            folder=str(self._folder),
        )
