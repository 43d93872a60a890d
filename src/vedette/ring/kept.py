"""All that the keeper holds in memory: the operator's rules, hosts in play, running numbers."""

from collections import Counter, deque
from dataclasses import dataclass, field

from vedette.facts import Failure, Origin, Site
from vedette.fetch.connect import Detour
from vedette.fetch.guard import is_public
from vedette.ring.orders import Errand, Orders

__all__ = ["KeptHost", "Order", "Rules", "Tally"]


@dataclass(frozen=True, slots=True)
class Rules:
    """What the operator decided.

    ``lease_span_s`` is how much work (world seconds of pauses) a worker is given ahead; ``ahead_s`` how long before a
    host's time its errands are given out.
    """

    sites: tuple[Site, ...] = ()
    paused: tuple[Site, ...] = ()
    delay_s: float = 1.0
    address_delay_s: float = 0.25
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
    seed: int = 1

    def may_ask(self, address: str) -> bool:
        """Whether this address may be asked: public ones need a contact, private ones leave."""
        return self.allow_public if is_public(address) else self.allow_private


@dataclass(slots=True)
class KeptHost:
    """A host in play: where it is, who asks it, what is out, when it may be asked, and why it waits."""

    name: str
    id: int
    address: str | None = None
    address_until_s: float = 0.0
    closed: Failure | None = None
    ready_s: float = 0.0
    strain: int = 0
    trouble: str = ""
    worker: int | None = None
    out: dict[int, Errand] = field(default_factory=dict)
    errands: deque[Errand] = field(default_factory=deque)
    origins: dict[Origin, None] = field(default_factory=dict)
    robots_wait: dict[Origin, None] = field(default_factory=dict)
    lookups: int = 0
    resolving: bool = False
    queued_s: float | None = None


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
