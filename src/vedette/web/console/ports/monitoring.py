"""Ports of the console's monitoring pages: the values they show, and the service that loads them."""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from vedette.adapters.crawl_store.reader import HeldCounts
from vedette.adapters.crawl_store.request_budget import ExceededLimit
from vedette.adapters.crawl_store.status_file import FailingProcess
from vedette.adapters.event_store.reader import QueryCount, Totals
from vedette.adapters.event_store.time_series import SeriesInfo
from vedette.learn.clicks.off_policy import OrderEstimate
from vedette.learn.clicks.rollback_guard import Arm, RollbackGuard
from vedette.learn.workload import Drift, RisingQuery

UNTRUSTED_ADVICE = "A certificate is not trusted: if its authority is your own, set crawl.ca_file to its file."
# Purposes of fetches, by the names of ``engine.scheduling.spending``.
KIND_LABELS = {
    "first": "first fetches",
    "refresh": "refreshes",
    "look": "polls for new links",
    "gone": "rechecks of missing pages",
    "asked": "requested by the operator",
    "robots": "robots.txt",
}


class SpendingLine(NamedTuple):
    """Fetch budget spent on one kind of fetches or one site, and its results, for the Budget page.

    ``share`` is of all fetches. ``gain`` is the total search gain of ``measured`` of them; a fetch that found no change
    has no gain, and is not measured. ``part`` is the share of the budget that the operator gave to a site.
    """

    name: str
    fetches: float = 0.0
    share: float = 0.0
    failed: float = 0.0
    bytes: float = 0.0
    seconds: float = 0.0
    changed: float = 0.0
    found: float = 0.0
    measured: float = 0.0
    gain: float = 0.0
    part: float | None = None

    @property
    def gain_per_fetch(self) -> float | None:
        """Return the mean gain of these fetches; None if nothing was measured."""
        return self.gain / self.fetches if self.measured and self.fetches else None


class DeferredLine(NamedTuple):
    """A URL whose first fetch is deferred because it is not worth the price, for the Budget page."""

    url: str
    worth: float
    price: float


class BudgetReport(NamedTuple):
    """Where the fetch budget went since ``since_s``, for the console's Budget page.

    ``per_s`` is the budget in fetches per second; None without a budget. ``ever`` is of all time, by kind. ``held`` are
    some of the ``held_urls`` that were not worth the price recently.
    """

    per_s: float | None = None
    budget: str = ""
    price: float | None = None
    since_s: float = 0.0
    kinds: tuple[SpendingLine, ...] = ()
    sites: tuple[SpendingLine, ...] = ()
    ever: tuple[SpendingLine, ...] = ()
    held_urls: int = 0
    held: tuple[DeferredLine, ...] = ()

    @property
    def fetches(self) -> float:
        """Return the total number of fetches in the budget report."""
        return sum(line.fetches for line in self.kinds)


class FoundPage(NamedTuple):
    """A newly discovered page: when it was found, and when it was published; None if it states no date."""

    found_s: float
    born_s: float | None = None


class SourceLine(NamedTuple):
    """A discovery source for the console's New pages page: a page polled for the new links on it.

    Rates are new links per day, with the bounds of their interval. ``looks`` (polls), what they ``found`` and those
    that were ``wasted`` count from the second fetch on. ``due_s`` is None if it is already queued.
    """

    url: str
    rate_d: float
    low_d: float
    high_d: float
    expected: float
    looks: int
    found: int
    wasted: int
    due_s: float | None
    why: str


class DiscoveryReport(NamedTuple):
    """State of discovery, for the console: last month's new pages, latest first; sources, richest first.

    ``looks`` (polls), what they ``found`` and those that were ``wasted`` are decaying sums over about the last day.
    """

    pages: tuple[FoundPage, ...] = ()
    sources: tuple[SourceLine, ...] = ()
    looks: float = 0.0
    found: float = 0.0
    wasted: float = 0.0


class ExploredPage(NamedTuple):
    """A page that ranking explored: its URL, since when, how often it was shown for that, and its clicks.

    ``likes`` and ``looks`` are its decayed counts of likes and views; ``expected`` is the estimate of its quality.
    """

    url: str
    first_s: float
    shown: int
    clicks: int
    likes: float
    looks: float
    expected: float


class RankingReport(NamedTuple):
    """State of learning from clicks and exploration, for the console's Ranking page.

    ``is_on`` is the operator's setting, ``is_learned`` whether there is enough data. ``tried`` of the ``results`` shown
    were explored, in ``trying`` of ``searches``. ``taken_off`` is the weight removed by the caps on visitors and
    addresses, in views. ``general`` is the expected quality of any page. ``orders`` is what each order of results would
    have achieved, had everyone got it.
    """

    at_s: float = 0.0
    is_on: bool = True
    is_learned: bool = False
    searches: int = 0
    clicks: int = 0
    results: int = 0
    tried: int = 0
    trying: int = 0
    general: float = 0.0
    examined: tuple[float, ...] = ()
    taken_off: tuple[tuple[str, float], ...] = ()
    learned: Arm = Arm(0, 0, 0.0, 0.0)
    plain: Arm = Arm(0, 0, 0.0, 0.0)
    difference: float = 0.0
    difference_give_or_take: float = 0.0
    is_enough: bool = False
    guard: RollbackGuard = RollbackGuard()
    promoted: tuple[ExploredPage, ...] = ()
    orders: tuple[OrderEstimate, ...] = ()


NO_COUNTS: Mapping[str, int] = {}
NO_WORDS: Mapping[str, str] = {}
# Numbers that are computed on demand, besides the recorded ones (``adapters.event_store.time_series.SERIES``).
DERIVED_SERIES: Mapping[str, SeriesInfo] = {
    "gain_day": SeriesInfo("search quality gained by refreshes in a day", "gain"),
    "overlap_at_10": SeriesInfo("share of the ten first results served that are also used to measure gains", "share"),
    "birth_to_found_s": SeriesInfo("median time from publication to discovery of the last day's new pages", "s"),
}


class CrawlStatus(NamedTuple):
    """The current status of the crawl, for the console's Overview and Queue pages.

    ``is_running`` is False if no coordinator runs, or one has just started; then numbers are the last recorded.
    ``is_busy`` is True if one runs but has written no numbers recently: those shown are ``age_s`` old. ``waiting_why``
    counts hosts by what they wait for, ``in_trouble`` says what is wrong with each troubled host. ``trouble`` is what
    stops the whole crawl. ``unindexed`` pages were fetched and are not searchable yet; ``need_script`` pages lack
    text or links without JavaScript. ``held`` counts URLs that are held back as traps, by site, those with most real
    pages first; ``has_budget`` means that fetches are limited. ``failing`` are processes that keep
    failing, ``exceeded`` the addresses and domains that reached the daily limit of requests.
    """

    is_running: bool = False
    is_busy: bool = False
    age_s: float = 0.0
    sites: int = 0
    pages_per_s: float | None = None
    known: int = 0
    waiting: int = 0
    out: int = 0
    hosts: int = 0
    waiting_why: Mapping[str, int] = NO_COUNTS
    statuses: Mapping[str, int] = NO_COUNTS
    failures: Mapping[str, int] = NO_COUNTS
    refusals: Mapping[str, int] = NO_COUNTS
    in_trouble: Mapping[str, str] = NO_WORDS
    trouble: str = ""
    unindexed: int = 0
    need_script: int = 0
    held: tuple[HeldCounts, ...] = ()
    has_budget: bool = False
    failing: tuple[FailingProcess, ...] = ()
    exceeded: tuple[ExceededLimit, ...] = ()


class HostLine(NamedTuple):
    """A host in the crawl queue: how many of its URLs wait, why, and when it may be fetched (None: now)."""

    name: str
    waiting: int
    why: str
    ready_s: float | None
    out: int
    trouble: str


class HostList(NamedTuple):
    """The first hosts of the crawl queue for the Queue page, and the total number of hosts."""

    rows: tuple[HostLine, ...] = ()
    total: int = 0


class CalibrationBin(NamedTuple):
    """Refreshes with about the same forecast probability of a change: count, sum of probabilities, changes found."""

    refreshes: float
    expected: float
    found: float


class DuePage(NamedTuple):
    """A page that is due soon, for the Refresh page; the policy's values are None if a fixed rule decides.

    Rates are changes per day, with the bounds of their interval; ``chance`` is the probability that it has changed.
    """

    url: str
    due_s: float
    rule: str
    rate_d: float | None = None
    rate_low_d: float | None = None
    rate_high_d: float | None = None
    chance: float | None = None
    worth: float | None = None


class RefreshStatus(NamedTuple):
    """State of refreshing, for the console's Refresh page.

    ``calibration`` covers about the last day, by tenths of the probability. ``current`` is the share of pages that are
    unchanged since their fetch, estimated from ``judged`` of them; ``soon`` are the pages that are due next.
    """

    policy: str = ""
    price: float | None = None
    refreshes: float = 0.0
    wasted: float = 0.0
    calibration: tuple[CalibrationBin, ...] = ()
    current: float | None = None
    judged: int = 0
    soon: tuple[DuePage, ...] = ()


class RuntimeSettings(NamedTuple):
    """Settings that the console may change at runtime, with their current values.

    ``policy`` is that of refreshing, ``discovery`` that of discovery, ``ads`` that of ads. ``budget`` is as written.
    ``chosen`` has the names of the changed ones; the others are as configured. ``meaning`` says whether search compares
    meaning, and how.
    """

    policy: str = ""
    budget: str = ""
    chosen: tuple[str, ...] = ()
    learn: bool = True
    contact: str = ""
    promotion: str = ""
    discovery: str = ""
    ads: str = ""
    meaning: str = ""


class SearchStats(NamedTuple):
    """Statistics of recent searches for the console's Searches page: totals, top queries, and drift."""

    totals: Totals
    top: tuple[QueryCount, ...]
    without_result: tuple[QueryCount, ...]
    rising: tuple[RisingQuery, ...]
    drift: Drift


class StoragePart(NamedTuple):
    """A part of the data folder that takes disk space; ``words`` say what it is and whether it can be rebuilt."""

    name: str
    words: str
    size_bytes: float


class StorageStatus(NamedTuple):
    """Disk usage of the data folder, free space and limits, for the Storage page. A limit of 0 is none."""

    parts: tuple[StoragePart, ...] = ()
    free_bytes: int = 0
    min_free_bytes: int = 0
    archive_limit_bytes: int = 0
    keep_days: int = 0
    keep_slates_days: int = 0
    folder: str = ""


class Monitoring(Protocol):
    """Port of the console's monitoring pages, implemented by the runtime's folder monitor.

    Anything here may take a moment, so call it in a thread.
    """

    def get_crawl_status(self) -> CrawlStatus:
        """Return the status of the crawl, for the console's Overview and Queue pages."""

    def list_hosts(self) -> HostList:
        """List the hosts in the crawl queue, for the console's Queue page."""

    def get_refresh_status(self) -> RefreshStatus:
        """Return the state of refreshing, for the console's Refresh page."""

    def get_discovery_report(self) -> DiscoveryReport:
        """Return the state of discovery of new pages, for the console's New pages page."""

    def get_budget_report(self, days: int) -> BudgetReport:
        """Return where the fetch budget went in the given days, including today, for the Budget page."""

    def get_runtime_settings(self) -> RuntimeSettings:
        """Return the current runtime settings, for the console's Refresh and Ranking pages."""

    def list_gains(self, since_s: float) -> list[tuple[float, float]]:
        """List the search gains of refreshes, summed over a few minutes each, earliest first."""

    def get_search_stats(self, span_s: float) -> SearchStats:
        """Return search statistics of the last ``span_s`` seconds, for the console's Searches page."""

    def count_filtered(self) -> Mapping[str, int]:
        """Count the searches and clicks of the last day that the bot filter dropped, by filter reason."""

    def get_storage_status(self) -> StorageStatus:
        """Return the disk usage of the data folder, for the console's Storage page."""

    def load_series(self, name: str, since_s: float, most: int) -> list[tuple[float, float]]:
        """Load a monitoring time series by name, earliest first, with at most ``most`` points.

        ``adapters.event_store.time_series.SERIES`` has the names.
        """

    def get_latest_values(self) -> Mapping[str, float]:
        """Return the latest value of each monitoring series, including the derived ones (``DERIVED_SERIES``)."""

    def is_recording(self) -> bool:
        """Check whether searches are recorded at all, for the console's monitoring pages."""
