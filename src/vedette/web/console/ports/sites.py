"""Ports of the console's pages on sites, URLs, rules and actions: the values they show, and the services behind."""

from typing import Any, Literal, NamedTuple, Protocol

from vedette.adapters.crawl_store.url_list import UrlFilter, UrlPage
from vedette.model import Site
from vedette.web.commands.commands import Command, CommandResult, Rule


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


class AdminService(Protocol):
    """The operator's rights and commands. ``run_command`` waits for the coordinator: call it in a thread."""

    def get_signing_secret(self) -> bytes:
        """What tokens of this server are signed with: the same for all its processes, and after a restart."""

    def is_operator_token(self, token: str) -> bool:
        """Whether this is the operator's token."""

    def session_opened_s(self, digest: str) -> float | None:
        """When (wall time) the session with this digest was opened; None where there is none."""

    def run_command(self, command: Command, by: str) -> CommandResult:
        """Have an order carried out. A ``VedetteError`` says in words why it cannot be; nothing has changed then."""

    def list_actions(self, most: int, before: int | None = None) -> list[ActionLine]:
        """The latest actions, the last one first; those with smaller numbers than ``before`` where it is given."""


SiteState = Literal["crawled", "paused", "robots", "trouble", "new", "still"]
RobotsVerdict = Literal["allowed", "disallowed", "waits", "unasked"]


class StoredSite(NamedTuple):
    """A site as the operator set it, and whether it is paused."""

    site: Site
    paused: bool


class FetchFailure(NamedTuple):
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
    mishap: FetchFailure | None
    fetched_s: float | None
    delay_s: float


class RobotsPreview(NamedTuple):
    """What a robots.txt says of a site's start.

    ``line`` is the rule that decides, empty where none speaks of it. ``words`` say where that is known from, or why it
    cannot be had and what follows. ``asked_s`` is when its host was asked for this, None where it was not.
    """

    url: str
    says: RobotsVerdict
    line: str
    words: str
    crawl_delay_s: float | None = None
    sitemaps: tuple[str, ...] = ()
    asked_s: float | None = None


class SitePreview(NamedTuple):
    """What a site would be, before it is one: where it lies, what its robots.txt says, and what to think of first."""

    host: str
    addresses: str
    robots: RobotsPreview
    warnings: tuple[str, ...]


class RemovalImpact(NamedTuple):
    """What is kept of a site: URLs, and pages among them."""

    known: int
    pages: int


class UnlistedHost(NamedTuple):
    """A host that no site takes, how many pages of how many domains link to it, since when, and one of them."""

    host: str
    pages: int
    domains: int
    first_s: float
    example: str


class StoredRule(NamedTuple):
    """A rule for results, and since when it holds."""

    rule: Rule
    added_s: float


class SiteService(Protocol):
    """Whoever knows. Anything here may take a moment, so it is asked in a thread."""

    def list_sites(self) -> list[SiteLine]:
        """All sites, the oldest first."""

    def find_site(self, start: str) -> StoredSite | None:
        """One of them, by its start."""

    def preview_site(self, site: Site, asked_s: float | None = None) -> SitePreview:
        """A site before it is added. Its host may be asked for its robots.txt, unless it was at ``asked_s``."""

    def list_urls(self, which: UrlFilter, after: int, most: int) -> UrlPage:
        """The URLs behind a count, from an id on; so many at most."""

    def preview_removal(self, start: str) -> RemovalImpact:
        """What would go with a site."""

    def explain_url(self, url: str) -> dict[str, Any]:
        """All that is known of a URL, under the names of ``vedette explain_url --json``."""

    def list_unlisted_hosts(self, most: int) -> list[UnlistedHost]:
        """Hosts that pages link to and no site takes, the most linked first."""

    def list_rules(self) -> list[StoredRule]:
        """The operator's rules for results, the oldest first."""
