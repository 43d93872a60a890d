"""In-memory state of the coordinator: the operator's crawl rules, host states, found URLs, counters."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from vedette.discover.live_policies import DEFAULT_DISCOVERY_POLICY
from vedette.engine.messages import FetchSuccess, FetchTask, PagePart, WorkBatch
from vedette.engine.ports import HostRow, LinkOrigin
from vedette.engine.scheduling.refresh_policies import DEFAULT_POLICY
from vedette.fetch.address_guard import is_public
from vedette.fetch.connect_to import ConnectOverride
from vedette.frontier.queues import OrderName
from vedette.model import Failure, Origin, Site
from vedette.pricing import DEFAULT_WORTH, GAIN_LASTS_D

# Urgent URLs are worth more than anything else: those requested by name, then those new on the web.
REQUESTED_WORTH, NEW_WORTH = 1e9, 1e8


@dataclass(frozen=True, slots=True)
class CrawlRules:
    """Crawl rules for the coordinator: everything that the operator configured.

    ``lease_span_s`` is how much work (world seconds of delays) a fetcher gets in advance; ``ahead_s`` is how long
    before a host's time its tasks are assigned. ``only_requested`` restricts the crawl to URLs requested by name;
    ``guess_sitemaps`` tries the usual places where robots.txt names no sitemap. ``blocked`` domains are never fetched,
    whichever site they belong to. ``budget_per_s`` limits pages per world second; 0 sets no limit. ``refresh`` names
    the policy that schedules refreshes, ``discovery`` the one that selects sources to poll. ``agent`` is the User-Agent
    header; ``render`` means that fetchers have a browser. Without a budget, ``idle_share`` of the requests that a
    host's delay allows goes to pages last fetched at least ``idle_interval_s`` ago.
    """

    sites: tuple[Site, ...] = ()
    paused: tuple[Site, ...] = ()
    blocked: frozenset[str] = frozenset()
    delay_s: float = 1.0
    address_delay_s: float = 0.25
    budget_per_s: float = 0.0
    allow_public: bool = True
    allow_private: bool = False
    detours: tuple[ConnectOverride, ...] = ()
    max_pages: int | None = None
    max_redirects: int = 5
    max_attempts: int = 3
    robots_max_age_s: float = 86_400.0
    lease_span_s: float = 10.0
    max_leases: int = 64
    ahead_s: float = 2.0
    recrawl: bool = False
    render: bool = False
    only_requested: bool = False
    guess_sitemaps: bool = False
    order: OrderName = "impact"
    refresh: str = DEFAULT_POLICY
    discovery: str = DEFAULT_DISCOVERY_POLICY
    idle_share: float = 0.0
    idle_interval_s: float = 86_400.0
    seed: int = 1
    agent: str = ""

    def can_fetch_address(self, address: str, *, private: bool = False) -> bool:
        """Check whether the crawl rules allow an address: public ones need a contact, private ones permission."""
        return self.allow_public if is_public(address) else self.allow_private or private


class SortState(NamedTuple):
    """State of a host's last sort of unseen URLs by worth: time, price, measured first fetches."""

    at_s: float
    price: float
    measured: float


@dataclass(slots=True, eq=False)
class HostState:
    """State of an active host: address, fetcher, tasks in flight, next allowed time, and why it waits.

    ``ready_s`` is when politeness allows the next request; ``paused_until_s`` is when to check its waiting URLs again,
    if all of them belong to paused sites or need unavailable robots.txt files. ``in_flight`` holds pages by id,
    ``robots_in_flight`` robots.txt requests, its own or redirected here; ``robots_tasks`` are those not sent yet.
    ``parts_in_flight`` are requests of pages being rendered. ``robots_pending`` are its own origins whose file is being
    fetched from any host. ``success_streak`` counts successful pages in a row: a reliable host gets more tasks ahead,
    so hanging hosts hold few. ``requested`` are URLs requested by name, which come first until they have ended.
    ``new_urls`` are waiting URLs that are new on the web, which come next. ``held_back`` counts held-back URLs by
    pattern; ``trials`` are those tried because nothing else waits; ``is_blocked`` means that everything waiting belongs
    to ports that are unreachable now. ``impact_version`` is the impact pass that ordered its URLs, ``sort_state``
    describes the last sort by worth. ``unreachable`` says why its name did not resolve. ``detoured`` means that its
    address comes from an operator override, which applies to the ports it names. ``budget_wait`` names the part of the
    fetch budget it waits for; empty if none. ``worth`` is that of the best URL at the last selection, or of a refresh
    added since; before the first selection, that of any unseen page. ``refreshes`` maps known pages waiting here to the
    worth of their refresh. ``awaits_turn`` means that its address is another shard's for now.
    """

    name: str
    id: int
    address: str | None = None
    address_until_s: float = 0.0
    detoured: bool = False
    unreachable: Failure | None = None
    ready_s: float = 0.0
    paused_until_s: float = 0.0
    lookup_retry_s: float = 0.0
    failure_streak: int = 0
    success_streak: int = 0
    rest_trouble: str = ""
    robots_trouble: str = ""
    budget_wait: str = ""
    worker: int | None = None
    in_flight: dict[int, FetchTask] = field(default_factory=dict)
    robots_in_flight: dict[Origin, FetchTask] = field(default_factory=dict)
    robots_tasks: list[FetchTask] = field(default_factory=list)
    parts_in_flight: dict[PagePart, FetchTask] = field(default_factory=dict)
    origins: dict[Origin, None] = field(default_factory=dict)
    robots_pending: dict[Origin, None] = field(default_factory=dict)
    requested: dict[int, None] = field(default_factory=dict)
    new_urls: dict[int, None] = field(default_factory=dict)
    is_blocked: bool = False
    held_back: dict[str, int] = field(default_factory=dict)
    trials: dict[int, None] = field(default_factory=dict)
    lookup_failures: int = 0
    resolving: bool = False
    awaits_turn: bool = False
    queued_s: float | None = None
    worth: float = DEFAULT_WORTH * GAIN_LASTS_D
    refreshes: dict[int, float] = field(default_factory=dict)
    impact_version: int = 0
    sort_state: SortState | None = None

    @property
    def busy(self) -> bool:
        """Whether a fetcher holds a task for this host."""
        return bool(self.in_flight or self.robots_in_flight or self.parts_in_flight)

    @property
    def best_worth(self) -> float:
        """The worth of the best URL waiting for this host, as far as known without checking all of them."""
        if self.requested or self.new_urls:
            return REQUESTED_WORTH if self.requested else NEW_WORTH
        return self.worth

    @property
    def trouble(self) -> str:
        """Why a host is in trouble; empty if it is fetched from normally."""
        unreachable = str(self.unreachable or "") if self.address is None else ""
        return unreachable or self.robots_trouble or self.rest_trouble

    def to_row(self) -> HostRow:
        """Build the stored host row from which a later run restores the host's delays."""
        return HostRow(self.name, self.ready_s, self.failure_streak, self.rest_trouble)


class FoundUrl(NamedTuple):
    """A URL found in a link or named by the operator: depth, redirect hops, and its front queue if given.

    ``source`` is the linking page, empty if the operator named the URL; ``from_list`` is set if that page is a list.
    ``via`` says why the URL may be new on the web, ``is_refetch`` that its source was fetched before. ``cookies`` were
    set by the redirect that led to it. ``texts`` are the anchor texts of all links of the group that it came with.
    """

    url: str
    depth: int
    hops: int = 0
    front: int | None = None
    source: str | None = None
    from_list: bool = False
    via: LinkOrigin | None = None
    is_refetch: bool = False
    cookies: str = ""
    texts: Sequence[str] = ()


class Admitted(NamedTuple):
    """Result of admitting links: how many URLs were unseen, and how many of those each page named."""

    urls: int
    by_source: Counter[str]


@dataclass(slots=True)
class CrawlCounts:
    """Running counters of a crawl, for the status display."""

    pages: int = 0
    new_pages: int = 0
    unchanged: int = 0
    bytes: int = 0
    requests: int = 0
    robots: int = 0
    redirects: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)

    def add_answers(self, results: Sequence[FetchSuccess]) -> None:
        """Count fetched pages in the crawl counters."""
        for result in results:
            good = result.status < 300 or result.status == 304
            self.statuses[result.status] += 1
            self.bytes += result.body_bytes
            self.pages += good
            self.new_pages += good and result.task.copy is None
            self.unchanged += good and not result.changed


@dataclass(frozen=True, slots=True)
class Assignment:
    """A batch of work assigned to one fetcher."""

    worker: int
    batch: WorkBatch
