"""Ports of the console's pages that monitor: the values they show, and the service that loads them."""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from vedette.adapters.event_store.reader import QueryCount, Totals
from vedette.adapters.event_store.time_series import SeriesInfo
from vedette.learn.clicks.off_policy import OrderEstimate
from vedette.learn.clicks.rollback_guard import Arm, RollbackGuard
from vedette.learn.workload import Drift, RisingQuery

# What fetches are for, by the names of ``ring.spending``.
KIND_LABELS = {
    "first": "first fetches",
    "refresh": "refreshes",
    "look": "looks for new links",
    "gone": "gone, asked again",
    "asked": "asked for by the operator",
    "robots": "robots.txt",
}


class SpendingLine(NamedTuple):
    """What one kind of fetches, or one site, took and brought; ``share`` is of all fetches.

    ``gain`` is what ``measured`` of them brought to search together; a fetch that found nothing changed brought
    nothing, and is not measured. ``part`` is the share of the budget that the operator gave to a site.
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
        """The return on these fetches; None where nothing was measured."""
        return self.gain / self.fetches if self.measured and self.fetches else None


class DeferredLine(NamedTuple):
    """An unseen URL that waits, since it is not worth the price."""

    url: str
    worth: float
    price: float


class BudgetReport(NamedTuple):
    """Where the budget went since ``since_s``. ``per_s`` is the budget in fetches a second; None where there is none.

    ``ever`` is of all time, by kind. ``held`` are some of those ``held_urls`` that were not worth the price of late.
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
        """How many there were."""
        return sum(line.fetches for line in self.kinds)


class FoundPage(NamedTuple):
    """A page that was news: when it was found, and when it was born; None where nobody states that."""

    found_s: float
    born_s: float | None = None


class SourceLine(NamedTuple):
    """A page that is looked at for what it links to.

    Rates are new links a day, with the ends of what is probable. ``looks``, what they ``found`` and those that were
    ``wasted`` count from the second fetch on. ``due_s`` is None where it waits to be fetched already.
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
    """How finding new pages goes: those of the last month, the latest first; and the sources, the richest first.

    ``looks``, what they ``found`` and those that were ``wasted`` are sums that fade: of about the last day.
    """

    pages: tuple[FoundPage, ...] = ()
    sources: tuple[SourceLine, ...] = ()
    looks: float = 0.0
    found: float = 0.0
    wasted: float = 0.0


class ExploredPage(NamedTuple):
    """A page that was tried: where it is, since when, how often it was shown for that, and what came of it.

    ``likes`` and ``looks`` are all that is known of it now, faded; ``expected`` is the quality that is believed.
    """

    url: str
    first_s: float
    shown: int
    clicks: int
    likes: float
    looks: float
    expected: float


class RankingReport(NamedTuple):
    """All of it. ``is_on`` is the operator's setting, ``is_learned`` whether there is enough to go by.

    ``tried`` of ``results`` shown stood there to be tried, in ``trying`` of ``searches``. ``taken_off`` is what the
    caps on visitors and addresses took, in looks. ``general`` is the quality that is expected of any page. ``orders``
    is what each order would have brought, had everybody got it.
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
# Numbers that are read off when somebody looks, beside those that are kept over time (``edges.series.SERIES``).
DERIVED_SERIES: Mapping[str, SeriesInfo] = {
    "gain_day": SeriesInfo("what fetches of known pages brought to the quality of search in a day", "gain"),
    "birth_to_found_s": SeriesInfo("median time from the birth of the last day's new pages to their discovery", "s"),
}


class CrawlStatus(NamedTuple):
    """How a crawl stands now. ``is_running`` is False where no coordinator answers; then numbers are the last known.

    ``is_busy`` is True where there is a coordinator that had no time to answer.
    ``waiting_why`` counts hosts by what they wait for, ``in_trouble`` says what is wrong with each host that has
    something wrong with it. ``trouble`` is what keeps the whole crawl from going on. ``unindexed`` pages were fetched
    and cannot be found yet.
    """

    is_running: bool = False
    is_busy: bool = False
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


class HostLine(NamedTuple):
    """A host with something to do: how many of its URLs wait, why, and when it may be asked (None: now)."""

    name: str
    waiting: int
    why: str
    ready_s: float | None
    out: int
    trouble: str


class HostList(NamedTuple):
    """The hosts to look at first, of so many in all."""

    rows: tuple[HostLine, ...] = ()
    total: int = 0


class CalibrationBin(NamedTuple):
    """Refreshes of which about the same chance was said before: how many, the sum of chances, how many had changed."""

    refreshes: float
    expected: float
    found: float


class DuePage(NamedTuple):
    """A page whose next fetch is near. What a refresh policy says of it is None where another rule has it.

    Rates are changes a day, with the ends of what is probable; ``chance`` is that it has changed by now.
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
    """How refreshing stands. ``calibration`` are of about the last day, by tenths of the chance.

    ``current`` is the share of pages that are still as they were fetched, estimated from ``judged`` of them; ``soon``
    are the pages that are due next.
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
    """Settings of the machine that may be changed while it runs, as they hold: policy, budget as written, learning.

    ``chosen`` has the names of those that were changed so; the others are as configured.
    """

    policy: str = ""
    budget: str = ""
    chosen: tuple[str, ...] = ()
    learn: bool = True


class SearchStats(NamedTuple):
    """What was asked since some time, and what changed in it of late."""

    totals: Totals
    top: tuple[QueryCount, ...]
    without_result: tuple[QueryCount, ...]
    rising: tuple[RisingQuery, ...]
    drift: Drift


class StoragePart(NamedTuple):
    """Something that takes room on the disk; ``words`` say what it is and whether it can be made again."""

    name: str
    words: str
    size_bytes: float


class StorageStatus(NamedTuple):
    """What takes room, how much is left, and what was set. A limit of 0 is none."""

    parts: tuple[StoragePart, ...] = ()
    free_bytes: int = 0
    min_free_bytes: int = 0
    archive_limit_bytes: int = 0
    keep_days: int = 0
    keep_slates_days: int = 0
    folder: str = ""


class Monitoring(Protocol):
    """Whoever knows. Anything here may take a moment, so it is asked in a thread."""

    def get_crawl_status(self) -> CrawlStatus:
        """How the crawl stands."""

    def list_hosts(self) -> HostList:
        """The hosts that have something to do."""

    def get_refresh_status(self) -> RefreshStatus:
        """How refreshing stands."""

    def get_discovery_report(self) -> DiscoveryReport:
        """How finding new pages goes."""

    def get_budget_report(self, days: int) -> BudgetReport:
        """Where the fetch budget went in so many days, today among them."""

    def get_runtime_settings(self) -> RuntimeSettings:
        """What is set now."""

    def list_gains(self, since_s: float) -> list[tuple[float, float]]:
        """What fetches of known pages brought, summed up over some minutes each, the earliest first."""

    def get_search_stats(self, span_s: float) -> SearchStats:
        """What was asked in so many seconds until now."""

    def count_filtered(self) -> Mapping[str, int]:
        """What was told in the last day and counts as no person's, by why."""

    def get_storage_status(self) -> StorageStatus:
        """What takes room."""

    def load_series(self, name: str, since_s: float, most: int) -> list[tuple[float, float]]:
        """A number over time (``edges.series.SERIES`` has their names), the earliest first; at most so many points."""

    def get_latest_values(self) -> Mapping[str, float]:
        """The last of each number, and those that are read off (``DERIVED_SERIES``)."""

    def is_recording(self) -> bool:
        """Whether searches are written down at all."""
