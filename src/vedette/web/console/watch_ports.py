"""What the console's pages on what happens need of whatever runs the crawl: values, and who tells them."""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from vedette.edges.record_view import QueryCount, Totals
from vedette.learn.workload import Drift, Rising

__all__ = ["Crawl", "HostLine", "Hosts", "Part", "Searched", "Storage", "Watch"]

NOTHING: Mapping[str, int] = {}
NO_WORDS: Mapping[str, str] = {}


class Crawl(NamedTuple):
    """How a crawl stands now. ``is_running`` is False where no keeper answers: then the numbers are the last known.

    ``waiting_why`` counts hosts by what they wait for, ``in_trouble`` says what is wrong with each host that has
    something wrong with it. ``trouble`` is what keeps the whole crawl from going on. ``unindexed`` pages were fetched
    and cannot be found yet.
    """

    is_running: bool = False
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

    def searched(self, span_s: float) -> Searched:
        """What was asked in so many seconds until now."""

    def storage(self) -> Storage:
        """What takes room."""

    def points(self, name: str, since_s: float, most: int) -> list[tuple[float, float]]:
        """A number over time (``edges.series.SERIES`` has their names), the earliest first; at most so many points."""

    def latest(self) -> Mapping[str, float]:
        """The last of each number."""

    def keeps_searches(self) -> bool:
        """Whether searches are written down at all."""
