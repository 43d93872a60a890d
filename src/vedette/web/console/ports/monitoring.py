"""What the console's pages on what happens need of whatever runs the crawl: values, and who tells them."""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from vedette.adapters.event_store.reader import QueryCount, Totals
from vedette.adapters.event_store.time_series import Measure
from vedette.learn.workload import Drift, Rising
from vedette.web.console.ports.budget_ports import BudgetTold
from vedette.web.console.ports.discovery_ports import Discovery

__all__ = [
    "READ_OFF",
    "Crawl",
    "DuePage",
    "HostLine",
    "Hosts",
    "Machine",
    "Part",
    "Refresh",
    "Searched",
    "Storage",
    "Tenth",
    "Watch",
]

NOTHING: Mapping[str, int] = {}
NO_WORDS: Mapping[str, str] = {}
# Numbers that are read off when somebody looks, beside those that are kept over time (``edges.series.SERIES``).
READ_OFF: Mapping[str, Measure] = {
    "gain_day": Measure("what fetches of known pages brought to the quality of search in a day", "gain"),
    "birth_to_found_s": Measure("median time from the birth of the last day's new pages to their discovery", "s"),
}


class Crawl(NamedTuple):
    """How a crawl stands now. ``is_running`` is False where no keeper answers: then the numbers are the last known.

    ``is_busy`` is True where there is a keeper that had no time to answer.
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
    waiting_why: Mapping[str, int] = NOTHING
    statuses: Mapping[str, int] = NOTHING
    failures: Mapping[str, int] = NOTHING
    refusals: Mapping[str, int] = NOTHING
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


class Hosts(NamedTuple):
    """The hosts to look at first, of so many in all."""

    rows: tuple[HostLine, ...] = ()
    total: int = 0


class Tenth(NamedTuple):
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


class Refresh(NamedTuple):
    """How refreshing stands. ``tenths`` are of about the last day, by tenths of the chance.

    ``current`` is the share of pages that are still as they were fetched, estimated from ``judged`` of them; ``soon``
    are the pages that are due next.
    """

    policy: str = ""
    price: float | None = None
    refreshes: float = 0.0
    wasted: float = 0.0
    tenths: tuple[Tenth, ...] = ()
    current: float | None = None
    judged: int = 0
    soon: tuple[DuePage, ...] = ()


class Machine(NamedTuple):
    """Settings of the machine that may be changed while it runs, as they hold: policy, budget as written, learning.

    ``chosen`` has the names of those that were changed so; the others are as configured.
    """

    policy: str = ""
    budget: str = ""
    chosen: tuple[str, ...] = ()
    learn: bool = True


class Searched(NamedTuple):
    """What was asked since some time, and what changed in it of late."""

    totals: Totals
    top: tuple[QueryCount, ...]
    without_result: tuple[QueryCount, ...]
    rising: tuple[Rising, ...]
    drift: Drift


class Part(NamedTuple):
    """Something that takes room on the disk; ``words`` say what it is and whether it can be made again."""

    name: str
    words: str
    size_bytes: float


class Storage(NamedTuple):
    """What takes room, how much is left, and what was set. A limit of 0 is none."""

    parts: tuple[Part, ...] = ()
    free_bytes: int = 0
    min_free_bytes: int = 0
    archive_limit_bytes: int = 0
    keep_days: int = 0
    keep_slates_days: int = 0
    folder: str = ""


class Watch(Protocol):
    """Whoever knows. Anything here may take a moment, so it is asked in a thread."""

    def crawl(self) -> Crawl:
        """How the crawl stands."""

    def hosts(self) -> Hosts:
        """The hosts that have something to do."""

    def refresh(self) -> Refresh:
        """How refreshing stands."""

    def discovery(self) -> Discovery:
        """How finding new pages goes."""

    def budget(self, days: int) -> BudgetTold:
        """Where the fetch budget went in so many days, today among them."""

    def machine(self) -> Machine:
        """What is set now."""

    def gains(self, since_s: float) -> list[tuple[float, float]]:
        """What fetches of known pages brought, summed up over some minutes each, the earliest first."""

    def searched(self, span_s: float) -> Searched:
        """What was asked in so many seconds until now."""

    def left_out(self) -> Mapping[str, int]:
        """What was told in the last day and counts as no person's, by why."""

    def storage(self) -> Storage:
        """What takes room."""

    def points(self, name: str, since_s: float, most: int) -> list[tuple[float, float]]:
        """A number over time (``edges.series.SERIES`` has their names), the earliest first; at most so many points."""

    def latest(self) -> Mapping[str, float]:
        """The last of each number, and those that are read off (``READ_OFF``)."""

    def keeps_searches(self) -> bool:
        """Whether searches are written down at all."""
