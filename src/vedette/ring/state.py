"""All that a crawl knows while it runs."""

from collections import Counter
from dataclasses import dataclass, field

from vedette.facts import Failure, Origin, Purpose, Site
from vedette.fetch.connect import Detour
from vedette.fetch.guard import is_public
from vedette.fetch.polite import FRESH, Strain
from vedette.fetch.robots_state import UNKNOWN, RobotsState
from vedette.order.frontier import Frontier

__all__ = ["Crawl", "Errand", "Host", "Rules", "Tally"]


@dataclass(frozen=True, slots=True)
class Rules:
    """What the operator decided; read once."""

    sites: tuple[Site, ...]
    agent: str
    delay_s: float = 1.0
    address_delay_s: float = 0.25
    allow_public: bool = True
    allow_private: bool = False
    detours: tuple[Detour, ...] = ()
    most_pages: int | None = None
    most_redirects: int = 5
    most_attempts: int = 3
    robots_most_s: float = 86_400.0
    seed: int = 1

    def may_ask(self, address: str) -> bool:
        """Whether the operator lets this address be asked: public ones need a contact, private ones leave."""
        return self.allow_public if is_public(address) else self.allow_private


@dataclass(frozen=True, slots=True)
class Errand:
    """A thing to ask a host for: a page, or one hop on the way to an origin's robots.txt."""

    url: str
    purpose: Purpose
    worth: float
    depth: int = 0
    hops: int = 0
    attempts: int = 0
    robots_of: Origin | None = None


@dataclass(slots=True)
class Host:
    """A host in play: where it is, what is out, how strained it is, and what waits for its address.

    ``name`` is the host's own, or ``HOST at ADDRESS`` for those of its ports that the operator sent elsewhere.
    """

    name: str
    detour: str | None = None
    address: str | None = None
    closed: Failure | None = None
    strain: Strain = FRESH
    rest_trouble: str = ""
    robots_trouble: str = ""
    out: Errand | None = None
    unnamed: list[Errand] = field(default_factory=list)
    lookups: int = 0
    robots_away: bool = False
    answered_s: float = 0.0

    @property
    def trouble(self) -> str:
        """Why it is not simply asked for one thing after another; empty where it is."""
        return self.robots_trouble or self.rest_trouble


@dataclass(slots=True)
class Tally:
    """Running numbers for people."""

    pages: int = 0
    bytes: int = 0
    requests: int = 0
    robots: int = 0
    seen: int = 0
    redirects: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class Crawl:
    """The state of the ring."""

    rules: Rules
    frontier: Frontier[Errand] = field(default_factory=Frontier)
    hosts: dict[str, Host] = field(default_factory=dict)
    host_of: dict[Origin, Host] = field(default_factory=dict)
    robots: dict[Origin, RobotsState] = field(default_factory=dict)
    known: set[int] = field(default_factory=set)
    retries: list[tuple[float, str]] = field(default_factory=list)
    tally: Tally = field(default_factory=Tally)
    pages_out: int = 0
    resumed_s: float | None = None

    def robots_of(self, origin: Origin) -> RobotsState:
        """What is known of an origin's robots.txt; nothing, at first."""
        return self.robots.get(origin, UNKNOWN)

    def full(self) -> bool:
        """Whether the pages that were asked for are here or on their way."""
        most = self.rules.most_pages
        return most is not None and self.tally.pages + self.pages_out >= most
