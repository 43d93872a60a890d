"""All that the keeper holds in memory: the operator's rules, hosts in play, running numbers."""

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from vedette.engine.messages import Errand, Orders
from vedette.engine.ports import Way
from vedette.engine.scheduling.refresh_policies import PREFERRED
from vedette.fetch.address_guard import is_public
from vedette.fetch.connect_to import Detour
from vedette.frontier.queues import OrderName
from vedette.model import Failure, Origin, Site

__all__ = ["KeptHost", "Named", "Order", "Rules", "Sifted", "Tally"]


@dataclass(frozen=True, slots=True)
class Rules:
    """What the operator decided.

    ``lease_span_s`` is how much work (world seconds of pauses) a worker is given ahead; ``ahead_s`` how long before a
    host's time its errands are given out. ``only_wished`` fetches nothing but what somebody wishes for. Of ``blocked``
    domains nothing is fetched, whatever site they belong to. ``budget_per_s`` is how many pages leave at most in a
    world second; 0 sets no limit. ``refresh`` names the policy that says when pages are fetched again.
    """

    sites: tuple[Site, ...] = ()
    paused: tuple[Site, ...] = ()
    blocked: frozenset[str] = frozenset()
    delay_s: float = 1.0
    address_delay_s: float = 0.25
    budget_per_s: float = 0.0
    allow_public: bool = True
    allow_private: bool = False
    detours: tuple[Detour, ...] = ()
    most_pages: int | None = None
    most_redirects: int = 5
    most_attempts: int = 3
    robots_most_s: float = 86_400.0
    lease_span_s: float = 10.0
    lease_most: int = 64
    ahead_s: float = 2.0
    recrawl: bool = False
    only_wished: bool = False
    order: OrderName = "impact"
    refresh: str = PREFERRED
    seed: int = 1

    def may_ask(self, address: str, *, private: bool = False) -> bool:
        """Whether this address may be asked: public ones need a contact, private ones leave (or their site's)."""
        return self.allow_public if is_public(address) else self.allow_private or private


class Sifted(NamedTuple):
    """When unseen URLs were put in line by worth, at which price, and how many first fetches had been measured."""

    at_s: float
    price: float
    measured: float


@dataclass(slots=True, eq=False)
class KeptHost:
    """A host in play: where it is, who asks it, what is out, when it may be asked, and why it waits.

    ``ready_s`` is politeness; ``paused_s`` is when it is worth while to look at what waits for it again, since all of
    that belongs to paused sites or to files that cannot be had. ``out`` are pages by id, ``asked`` robots.txt files on
    their way, of its own or of hosts that redirect here; ``errands`` are those that have not left. ``robots_wait`` are
    its own origins whose file is being asked for, wherever. ``streak`` counts pages answered in a row: a host gets more
    errands ahead as it proves good, so that hosts which hang hold few. ``wishes`` are URLs that somebody waits for:
    they come first, until they have ended. ``news`` are URLs that are new on the web and wait to be fetched: they come
    next. ``held`` counts URLs that are held back, by what they wait for.
    ``lined_up`` is the making of ``foresight`` by which its URLs stand in line, ``sifted`` says what was known when
    they last were put in line by worth.
    ``detoured`` says that its address is the operator's word. ``short_of`` says for which part of the fetch budget it
    stands in line; empty where it does not.
    """

    name: str
    id: int
    address: str | None = None
    address_until_s: float = 0.0
    detoured: bool = False
    closed: Failure | None = None
    ready_s: float = 0.0
    paused_s: float = 0.0
    paused_lookup_s: float = 0.0
    strain: int = 0
    streak: int = 0
    rest_trouble: str = ""
    robots_trouble: str = ""
    lookup_trouble: str = ""
    short_of: str = ""
    worker: int | None = None
    out: dict[int, Errand] = field(default_factory=dict)
    asked: dict[Origin, Errand] = field(default_factory=dict)
    errands: list[Errand] = field(default_factory=list)
    origins: dict[Origin, None] = field(default_factory=dict)
    robots_wait: dict[Origin, None] = field(default_factory=dict)
    wishes: dict[int, None] = field(default_factory=dict)
    news: dict[int, None] = field(default_factory=dict)
    held: dict[str, int] = field(default_factory=dict)
    lookups: int = 0
    resolving: bool = False
    queued_s: float | None = None
    lined_up: int = 0
    sifted: Sifted | None = None

    @property
    def busy(self) -> bool:
        """Whether a worker has an errand to it."""
        return bool(self.out or self.asked)

    @property
    def trouble(self) -> str:
        """Why it is not simply asked for one thing after another; empty where it is."""
        return str(self.closed or "") or self.lookup_trouble or self.robots_trouble or self.rest_trouble


class Named(NamedTuple):
    """A URL that somebody named: links from a start, redirects on the way, and its front queue where that is told.

    ``source`` is the page on which it stood, none where the operator named it; ``vouched`` where that is a list.
    ``found`` says what may make it news, ``again`` that its source was fetched before.
    """

    url: str
    depth: int
    hops: int = 0
    front: int | None = None
    source: str | None = None
    vouched: bool = False
    found: Way | None = None
    again: bool = False


@dataclass(slots=True)
class Tally:
    """Running numbers for people."""

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


@dataclass(frozen=True, slots=True)
class Order:
    """Orders for one worker."""

    worker: int
    orders: Orders
