"""What the console's pages on sites, URLs and results need of whatever runs the crawl: values, and who tells them."""

from typing import Any, Literal, NamedTuple, Protocol

from vedette.adapters.crawl_store.url_list import UrlPage, Which
from vedette.model import Site
from vedette.web.commands.commands import Done, Order, Rule

__all__ = [
    "ActionLine",
    "KeptRule",
    "KeptSite",
    "Leaving",
    "Mishap",
    "Operator",
    "RobotsLook",
    "RobotsSays",
    "SiteDesk",
    "SiteLine",
    "SiteLook",
    "SiteState",
    "Stranger",
]


class ActionLine(NamedTuple):
    """Something that an operator did, as the log has it. ``by`` says where: the console, the command line, a key.

    ``can_be_undone`` is False for what cannot be taken back, and for what was. ``undone_s`` is when it was.
    """

    id: int
    at_s: float
    what: str
    by: str
    can_be_undone: bool = False
    undone_s: float | None = None


class Operator(Protocol):
    """The operator's rights and orders. Reading is quick; ``order`` waits for the keeper: call it in a thread."""

    def secret(self) -> bytes:
        """What tokens of this server are signed with: the same for all its processes, and after a restart."""

    def token_fits(self, token: str) -> bool:
        """Whether this is the operator's token."""

    def session_opened_s(self, digest: str) -> float | None:
        """When (wall time) the session with this digest was opened; None where there is none."""

    def order(self, order: Order, by: str) -> Done:
        """Have an order carried out. A ``VedetteError`` says in words why it cannot be; nothing has changed then."""

    def actions(self, most: int, before: int | None = None) -> list[ActionLine]:
        """The latest actions, the last one first; those with smaller numbers than ``before`` where it is given."""


SiteState = Literal["crawled", "paused", "robots", "trouble", "new", "still"]
RobotsSays = Literal["allowed", "disallowed", "waits", "unasked"]


class KeptSite(NamedTuple):
    """A site as the operator set it, and whether it is paused."""

    site: Site
    paused: bool


class Mishap(NamedTuple):
    """A fetch that failed for good."""

    url: str
    why: str
    at_s: float


class SiteLine(NamedTuple):
    """A row of the list of sites. ``trouble`` says why its host does not answer, ``delay_s`` how long it rests."""

    site: Site
    paused: bool
    state: SiteState
    trouble: str
    pages: int
    known: int
    mishap: Mishap | None
    fetched_s: float | None
    delay_s: float


class RobotsLook(NamedTuple):
    """What a robots.txt says of a site's start.

    ``line`` is the rule that decides, empty where none speaks of it. ``words`` say where that is known from, or why it
    cannot be had and what follows. ``asked_s`` is when its host was asked for this, None where it was not.
    """

    url: str
    says: RobotsSays
    line: str
    words: str
    crawl_delay_s: float | None = None
    sitemaps: tuple[str, ...] = ()
    asked_s: float | None = None


class SiteLook(NamedTuple):
    """What a site would be, before it is one: where it lies, what its robots.txt says, and what to think of first."""

    host: str
    addresses: str
    robots: RobotsLook
    warnings: tuple[str, ...]


class Leaving(NamedTuple):
    """What is kept of a site: URLs, and pages among them."""

    known: int
    pages: int


class Stranger(NamedTuple):
    """A host that no site takes, how many pages of how many domains link to it, since when, and one of them."""

    host: str
    pages: int
    domains: int
    first_s: float
    example: str


class KeptRule(NamedTuple):
    """A rule for results, and since when it holds."""

    rule: Rule
    added_s: float


class SiteDesk(Protocol):
    """Whoever knows. Anything here may take a moment, so it is asked in a thread."""

    def sites(self) -> list[SiteLine]:
        """All sites, the oldest first."""

    def site(self, start: str) -> KeptSite | None:
        """One of them, by its start."""

    def look(self, site: Site, asked_s: float | None = None) -> SiteLook:
        """A site before it is added. Its host may be asked for its robots.txt, unless it was at ``asked_s``."""

    def urls(self, which: Which, after: int, most: int) -> UrlPage:
        """The URLs behind a count, from an id on; so many at most."""

    def leaving(self, start: str) -> Leaving:
        """What would go with a site."""

    def explain(self, url: str) -> dict[str, Any]:
        """All that is known of a URL, under the names of ``vedette explain --json``."""

    def strangers(self, most: int) -> list[Stranger]:
        """Hosts that pages link to and no site takes, the most linked first."""

    def rules(self) -> list[KeptRule]:
        """The operator's rules for results, the oldest first."""
