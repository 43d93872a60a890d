"""What the console shows of a data folder: the keeper's numbers, the record's, and what takes room.

It is asked by many threads at once, as often as pages are looked at. So what costs something is kept for some seconds,
and what costs much for longer.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vedette.adapters.clock import Clock
from vedette.adapters.crawl_store.data_folder import read_state
from vedette.adapters.crawl_store.store import StateBook
from vedette.adapters.event_store.reader import RecordView, Totals
from vedette.adapters.event_store.time_series import sizes
from vedette.adapters.net.ipc import Gone
from vedette.config import Config, format_rate
from vedette.engine.scheduling.schedule import Schedule
from vedette.errors import StoreError
from vedette.learn.workload import Drift, Workload, learned_from
from vedette.refresh.policies.fixed import Fixed
from vedette.runtime.commands.rpc import Call, Verb
from vedette.runtime.commands.setting_commands import chosen_settings, with_chosen
from vedette.runtime.monitoring.budget import look_at_budget
from vedette.runtime.monitoring.discovery import discovery_numbers, look_at_discovery
from vedette.runtime.monitoring.refresh import GainSums, look_at_refresh
from vedette.runtime.processes.supervisor import ask_keeper
from vedette.runtime.processes.throttle import Kept
from vedette.web.console.ports.monitoring import (
    BudgetTold,
    Crawl,
    Discovery,
    HostLine,
    Hosts,
    Machine,
    Part,
    Refresh,
    Searched,
    Storage,
)

__all__ = ["FolderWatch"]

KEEPER_PATIENCE_S = 3.0
QUICK_S, SLOW_S = 1.0, 5.0
MOST_HOSTS = 1000
MOST_QUERIES = 1000
MOST_RISING = 20
DAY_S = 86_400.0
LEARNED_S = 90 * DAY_S  # what is older counts next to nothing
MOST_KEPT = 64
_COUNTS = "SELECT (SELECT count(*) FROM site), (SELECT count(*) FROM (SELECT DISTINCT page FROM news LIMIT 100000))"
_PARTS = (
    ("archive_bytes", "Archive", "pages as they were fetched; what makes all the rest"),
    ("index_bytes", "Index", "what is searched; made anew from the archive when it is missing"),
    ("state_bytes", "State", "known URLs, sites, rules, and when to fetch what again"),
    ("record_bytes", "Searches", "what was asked and opened, and numbers over time"),
)


class FolderWatch:
    """A ``web.console.watch_ports.Watch`` over one data folder."""

    def __init__(self, folder: Path, clock: Clock, config: Config) -> None:
        self._folder, self._clock, self._config = folder, clock, config
        self._record = RecordView(folder)
        self._crawl, self._hosts = Kept[Crawl](QUICK_S), Kept[Hosts](QUICK_S)
        self._storage, self._latest = Kept[Storage](SLOW_S), Kept[Mapping[str, float]](QUICK_S)
        self._workload, self._left_out = Kept[Workload](SLOW_S), Kept[Mapping[str, int]](SLOW_S)
        self._refresh, self._gains = Kept[Refresh](SLOW_S), GainSums(folder)
        self._discovery = Kept[Discovery](SLOW_S)
        self._searched: dict[float, Kept[Searched]] = {}
        self._budgets: dict[int, Kept[BudgetTold]] = {}

    def crawl(self) -> Crawl:
        """How the crawl stands; where no keeper answers, as the record last had it."""
        return self._crawl.get(self._look_at_crawl)

    def hosts(self) -> Hosts:
        """The hosts that have something to do; none where no keeper answers."""
        return self._hosts.get(self._look_at_hosts)

    def refresh(self) -> Refresh:
        """How refreshing stands, whether or not a keeper runs."""
        return self._refresh.get(self._look_at_refresh)

    def discovery(self) -> Discovery:
        """How finding new pages goes, whether or not a keeper runs."""
        return self._discovery.get(self._look_at_discovery)

    def budget(self, days: int) -> BudgetTold:
        """Where the fetch budget went, whether or not a keeper runs."""
        if len(self._budgets) > MOST_KEPT:
            self._budgets.clear()
        kept = self._budgets.setdefault(days, Kept[BudgetTold](QUICK_S))
        return kept.get(lambda: self._look_at_budget(days))

    def machine(self) -> Machine:
        """What is set now, by state and configuration; read anew each time, since whoever changed it looks at it."""
        try:
            with read_state(self._folder) as db:
                book = StateBook(db)
                config, chosen = with_chosen(self._config, book), chosen_settings(book)
        except StoreError:
            config, chosen = self._config, {}
        return Machine(config.refresh.policy, format_rate(config.crawl.budget), tuple(chosen), config.serve.learn)

    def gains(self, since_s: float) -> list[tuple[float, float]]:
        """What fetches of known pages brought, over some minutes each."""
        return self._gains.since(since_s, self._clock.now())

    def searched(self, span_s: float) -> Searched:
        """What was asked in so many seconds until now."""
        if len(self._searched) >= MOST_KEPT:
            self._searched.clear()
        kept = self._searched.setdefault(span_s, Kept[Searched](SLOW_S))
        return kept.get(lambda: self._look_at_searches(span_s))

    def left_out(self) -> Mapping[str, int]:
        """What was told in the last day and counts as no person's, by why."""
        return self._left_out.get(self._look_at_doubts)

    def storage(self) -> Storage:
        """What takes room."""
        return self._storage.get(self._look_at_disk)

    def points(self, name: str, since_s: float, most: int) -> list[tuple[float, float]]:
        """A number over time; none where the record cannot be read, which its writer says and mends."""
        try:
            return self._record.series(name, since_s, most)
        except StoreError:
            return []

    def latest(self) -> Mapping[str, float]:
        """The last of each number, and those that are read off."""
        return self._latest.get(lambda: self._look_at_record() | self._read_off())

    def keeps_searches(self) -> bool:
        """Whether the operator wants them written down."""
        return self._config.serve.keep_slates_days > 0

    # looking

    def _ask(self, verb: Verb, **arguments: object) -> dict[str, Any] | None:
        """What the keeper answers: None where there is none, nothing where it has no time."""
        try:
            reply = ask_keeper(self._folder, Call(verb, arguments), KEEPER_PATIENCE_S)
        except OSError:
            return None
        except Gone:
            return {}
        return None if "error" in reply else reply

    def _look_at_crawl(self) -> Crawl:
        sites, unindexed = self._counts()
        told = self._ask("status")
        if not told:
            latest = self.latest()
            known, waiting = (int(latest.get(name, 0)) for name in ("known", "waiting"))
            return Crawl(is_busy=told is not None, sites=sites, known=known, waiting=waiting, unindexed=unindexed)
        return Crawl(
            is_running=True,
            sites=sites,
            pages_per_s=told["pages_per_s"],
            known=told["urls_known"],
            waiting=told["urls_waiting"],
            out=told["urls_out"],
            hosts=told["hosts"],
            waiting_why=told["hosts_waiting"],
            statuses=told["statuses"],
            failures=told["failures"],
            refusals=told["refusals"],
            in_trouble=told["hosts_in_trouble"],
            trouble=told["trouble"],
            unindexed=unindexed,
        )

    def _counts(self) -> tuple[int, int]:
        """How many sites there are, and how many pages wait for the index."""
        try:
            with read_state(self._folder) as db:
                sites, unindexed = db.execute(_COUNTS).fetchone()
        except StoreError:  # it is just being made
            return 0, 0
        return int(sites), int(unindexed)

    def _look_at_hosts(self) -> Hosts:
        told = self._ask("hosts", most=MOST_HOSTS)
        if not told:
            return Hosts()
        return Hosts(tuple(HostLine(**row) for row in told["hosts"]), told["total"])

    def _look_at_searches(self, span_s: float) -> Searched:
        try:
            return self._read_searches(span_s)
        except StoreError:
            return Searched(Totals(), (), (), (), Drift(0.0, is_notable=False, is_told=False))

    def _read_searches(self, span_s: float) -> Searched:
        now_s = self._clock.now()
        since_s = now_s - span_s
        workload = self._workload.get(lambda: learned_from(self._record.counts(now_s - LEARNED_S)))
        return Searched(
            self._record.totals(since_s),
            tuple(self._record.top(since_s, MOST_QUERIES)),
            tuple(self._record.without_result(since_s, MOST_QUERIES)),
            tuple(workload.rising(now_s, MOST_RISING)),
            workload.drift(now_s),
        )

    def _look_at_doubts(self) -> Mapping[str, int]:
        try:
            return self._record.totals(self._clock.now() - DAY_S).doubted
        except StoreError:
            return {}

    def _look_at_record(self) -> dict[str, float]:
        try:
            return dict(self._record.latest())
        except StoreError:
            return {}

    def _look_at_refresh(self) -> Refresh:
        try:
            return look_at_refresh(self._folder, self._schedule(), self._clock.now())
        except StoreError:
            return Refresh()

    def _look_at_discovery(self) -> Discovery:
        try:
            return look_at_discovery(self._folder, self._schedule(), self._clock.now())
        except StoreError:
            return Discovery()

    def _look_at_budget(self, days: int) -> BudgetTold:
        try:
            with read_state(self._folder) as db:
                rate = with_chosen(self._config, StateBook(db)).crawl.budget
            per_s, written = rate.requests / rate.per_s, format_rate(rate)
            return look_at_budget(self._folder, per_s, written, days, self._clock.now())
        except StoreError:
            return BudgetTold()

    def _schedule(self) -> Schedule:
        return Schedule(sources=Fixed(interval_s=self._config.crawl.source_interval_s))

    def _read_off(self) -> dict[str, float]:
        """Only what there is: a number without a value would say 0, which is wrong."""
        now_s = self._clock.now()
        gains = self.gains(now_s - DAY_S)
        won = {"gain_day": sum(gain for _, gain in gains)} if gains else {}
        return won | discovery_numbers(self._folder, now_s)

    def _look_at_disk(self) -> Storage:
        found, store = sizes(self._folder), self._config.store
        return Storage(
            parts=tuple(Part(title, words, found.get(name, 0.0)) for name, title, words in _PARTS),
            free_bytes=int(found.get("disk_free_bytes", 0)),
            min_free_bytes=store.min_free_bytes,
            archive_limit_bytes=store.max_bytes,
            keep_days=store.keep_days,
            keep_slates_days=self._config.serve.keep_slates_days,
            folder=str(self._folder),
        )
