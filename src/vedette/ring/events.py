"""What the ring is told, and what it asks for in return. Whoever drives it carries the commands out, in their order."""

from collections.abc import Mapping
from dataclasses import dataclass

from vedette.facts import Ask, Failure, Origin, Outcome, Page, Refusal
from vedette.fetch.connect import Route
from vedette.fetch.robots_state import RobotsState

__all__ = [
    "Begin",
    "Came",
    "Command",
    "Event",
    "GiveUp",
    "Keep",
    "KeepRobots",
    "Known",
    "Named",
    "Refuse",
    "Remember",
    "Resolve",
    "Seen",
    "Send",
    "Tick",
]


@dataclass(frozen=True, slots=True)
class Seen:
    """A URL and how many links lie between it and a start URL."""

    url: str
    depth: int


@dataclass(frozen=True, slots=True)
class Known:
    """What an earlier run left behind: fingerprints of all known URLs, those not fetched yet, and robots.txt copies."""

    fingerprints: frozenset[int]
    waiting: tuple[Seen, ...]
    robots: Mapping[Origin, RobotsState]


# Events


@dataclass(frozen=True, slots=True)
class Begin:
    """The crawl starts, or goes on where an earlier one ended."""

    known: Known | None


@dataclass(frozen=True, slots=True)
class Named:
    """A resolver spoke: the addresses of a host, or why there are none."""

    host: str
    addresses: tuple[str, ...]
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class Came:
    """A request came to its end."""

    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Tick:
    """Time passed; ``room`` more requests may be on their way."""

    room: int


Event = Begin | Named | Came | Tick

# Commands


@dataclass(frozen=True, slots=True)
class Resolve:
    """Look up a host's addresses and tell them with ``Named``."""

    host: str


@dataclass(frozen=True, slots=True)
class Send:
    """Send a request and tell its end with ``Came``."""

    ask: Ask
    route: Route


@dataclass(frozen=True, slots=True)
class Remember:
    """URLs that nobody had seen."""

    urls: tuple[Seen, ...]


@dataclass(frozen=True, slots=True)
class Keep:
    """A page was fetched."""

    page: Page


@dataclass(frozen=True, slots=True)
class Refuse:
    """A known URL will not be fetched, by a rule."""

    url: str
    refusal: Refusal
    detail: str


@dataclass(frozen=True, slots=True)
class GiveUp:
    """A known URL could not be fetched."""

    url: str
    failure: str
    at_s: float


@dataclass(frozen=True, slots=True)
class KeepRobots:
    """What is now known of an origin's robots.txt."""

    origin: Origin
    state: RobotsState


Command = Resolve | Send | Remember | Keep | Refuse | GiveUp | KeepRobots
