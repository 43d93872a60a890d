"""Ports of the console's pages on sites, URLs, rules and operator actions: their values and services."""

from typing import Any, Literal, NamedTuple, Protocol

from vedette.adapters.crawl_store.url_list import UrlFilter, UrlPage
from vedette.model import Site
from vedette.web.commands.commands import Command, CommandResult, Rule


class ActionLine(NamedTuple):
    """An operator action in the activity log. ``by`` says from where: the console, the command line, a key.

    ``can_be_undone`` is False for what cannot be undone, and for what was. ``undone_s`` is when it was undone.
    """

    id: int
    at_s: float
    what: str
    by: str
    can_be_undone: bool = False
    undone_s: float | None = None


class AdminService(Protocol):
    """Port for the operator's rights, sessions and commands, implemented over a data folder.

    ``run_command`` waits for the coordinator, for some seconds at most: call it in a thread. Nothing else does.
    """

    def get_signing_secret(self) -> bytes:
        """Return the server's signing secret for console tokens, the same in all processes and after a restart."""

    def is_operator_token(self, token: str) -> bool:
        """Check whether a token is the operator's token."""

    def session_opened_s(self, digest: str) -> float | None:
        """Return when (wall time) the console session with this digest was opened; None if there is none."""

    def open_session(self, digest: str, wall_s: float, by: str) -> None:
        """Open a console session at this wall time; only the digest of its secret is stored."""

    def close_session(self, digest: str) -> None:
        """Close a console session."""

    def run_command(self, command: Command, by: str, id_: str = "") -> CommandResult:
        """Have the coordinator execute an operator's command, once per ``id_``.

        On a ``CommandPending`` it will be executed later, on any other ``VedetteError`` nothing has changed.
        """

    def list_actions(self, most: int, before: int | None = None) -> list[ActionLine]:
        """List the latest operator actions, latest first; only those numbered below ``before`` if given."""


SiteState = Literal["crawled", "paused", "robots", "trouble", "new", "still"]
RobotsVerdict = Literal["allowed", "disallowed", "waits", "unasked"]


class StoredSite(NamedTuple):
    """A site with the operator's settings, and whether it is paused."""

    site: Site
    paused: bool


class FetchFailure(NamedTuple):
    """A site's fetch that failed permanently: its URL, the reason and the time."""

    url: str
    why: str
    at_s: float


class SiteLine(NamedTuple):
    """A row of the console's list of sites.

    ``trouble`` says why its host does not respond, ``delay_s`` is the delay between its requests.
    """

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
    """What robots.txt says about the start of a site that is previewed in the console.

    ``line`` is the deciding rule, empty if none matches. ``words`` say where that is known from, or why it is not
    available and what follows. ``asked_s`` is when it was fetched for this preview, None if it was not.
    """

    url: str
    says: RobotsVerdict
    line: str
    words: str
    crawl_delay_s: float | None = None
    sitemaps: tuple[str, ...] = ()
    asked_s: float | None = None


class SitePreview(NamedTuple):
    """Preview of a site before it is added: its host's addresses, its robots.txt, and warnings."""

    host: str
    addresses: str
    robots: RobotsPreview
    warnings: tuple[str, ...]


class RemovalImpact(NamedTuple):
    """What removing a site would delete: the number of its URLs and pages."""

    known: int
    pages: int


class UnlistedHost(NamedTuple):
    """An unlisted host: how many pages and domains link to it, since when, and an example page."""

    host: str
    pages: int
    domains: int
    first_s: float
    example: str


class StoredRule(NamedTuple):
    """An operator's rule for search results, and when it was added."""

    rule: Rule
    added_s: float


class SiteService(Protocol):
    """Port of the console's pages on sites, URLs and rules, implemented over a data folder.

    Anything here may take a moment, so call it in a thread.
    """

    def list_sites(self) -> list[SiteLine]:
        """List all sites for the console's Sites page, oldest first."""

    def find_site(self, start: str) -> StoredSite | None:
        """Find a stored site by its start URL, for the console's site forms."""

    def preview_site(self, site: Site, asked_s: float | None = None) -> SitePreview:
        """Preview a site before it is added; may fetch its robots.txt, unless that was done at ``asked_s``."""

    def list_urls(self, which: UrlFilter, after: int, most: int) -> UrlPage:
        """List the URLs behind a count for the console, from id ``after`` on, at most ``most``."""

    def preview_removal(self, start: str) -> RemovalImpact:
        """Preview what removing a site would delete, for the console's Sites page."""

    def explain_url(self, url: str) -> dict[str, Any]:
        """Explain a URL for the console's Explain page, with the names of ``vedette explain_url --json``."""

    def list_unlisted_hosts(self, most: int) -> list[UnlistedHost]:
        """List unlisted hosts for the console's Discover page, most linked first."""

    def list_rules(self) -> list[StoredRule]:
        """List the operator's rules for search results for the console's Rules page, oldest first."""
