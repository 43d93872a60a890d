"""Messages between coordinator and fetchers: tasks out, results back. Plain values, sent in batches.

The coordinator decides what may be fetched. A fetcher decides when, within the host's delays, and parses the response.

They are named tuples, not dataclasses, because they cross a process boundary with every page, and as arrays they are
packed and read several times as fast (``adapters.net.ipc``, which reads each field by its annotation).
"""

from dataclasses import dataclass
from math import inf
from typing import Literal, NamedTuple

from vedette.discover.urls.duplicate_rules import CopyRules
from vedette.model import Failure, Headers, Origin, Purpose, RenderMode, Site
from vedette.parse.change.comparison import Change, StoredVersion

# A rendering that adds fewer words than this added nothing worth finding.
MIN_WORDS_BROUGHT = 10

Kind = Literal["page", "document", "feed", "sitemap", "other"]


class ArchiveLocation(NamedTuple):
    """Message part: where a response is archived (file, offset, length)."""

    file: str
    offset: int
    length: int


class StoredCopy(NamedTuple):
    """Message part: the stored copy of a page that is fetched again: validators, last response, content."""

    etag: str
    last_modified: str
    digest: str
    payload_digest: str
    fetched_s: float
    baseline: StoredVersion | None = None
    modified_s: float | None = None


class PagePart(NamedTuple):
    """Message part: a request made by a page during rendering: which fetcher, its number there, and the page."""

    worker: int
    number: int
    page: str
    accept: str = ""
    hops: int = 0


class FetchTask(NamedTuple):
    """Message to a fetcher: fetch a page (by its id), or one hop towards an origin's robots.txt (id 0).

    ``worth`` orders the tasks of a host; ``value`` uses the unit of the price and orders hosts (None: use the worth).
    ``validators`` are the ETag and Last-Modified of the stored copy, empty for an unconditional fetch.
    ``valid_until_s`` is when the robots.txt that allows the fetch expires; the request is not sent later. ``cookies``
    were set by the redirects that led here. ``render`` says whether the page may be rendered (``auto``: if it seems
    empty); ``render_why`` says why not, where that was a choice. ``part_of`` names the rendering that needs this fetch.
    """

    id: int
    host: str
    url: str
    purpose: Purpose
    worth: float = 0.0
    depth: int = 0
    hops: int = 0
    validators: tuple[str, str] = ("", "")
    copy: StoredCopy | None = None
    robots_of: Origin | None = None
    valid_until_s: float = inf
    cookies: str = ""
    render: RenderMode = "never"
    render_why: str = ""
    part_of: PagePart | None = None
    value: float | None = None


class HostSettings(NamedTuple):
    """Message to a fetcher: settings of a host: address, delays, first allowed time, failure streak."""

    name: str
    address: str
    delay_s: float
    crawl_delay_s: float | None
    ready_s: float
    failure_streak: int
    bytes_per_s: float | None = None


class Content(NamedTuple):
    """Message part: the content of a page that other parts need; dates are None and words empty if unknown.

    ``baseline`` is what the next version is compared with, ``change`` the result of the last comparison. ``directives``
    are the owner's robots directives; ``objections`` are the reasons against indexing, by name, each with its evidence.
    ``anchors`` holds the anchor text of each link. ``stored`` is the text packed for the index, if it is new.
    ``private`` names the site whose credentials were used for the fetch, if any. ``is_unmeasured`` means that a change
    counts only if searches notice it, which is not known yet. ``identity`` distinguishes the page from others with
    nearly the same text.
    """

    baseline: StoredVersion
    charset: str = ""
    language: str = ""
    description: str = ""
    canonical: str = ""
    directives: str = ""
    words: int = 0
    published_s: float | None = None
    modified_s: float | None = None
    spam: float = 0.0
    objections: tuple[tuple[str, str], ...] = ()
    change: Change | None = None
    anchors: tuple[str, ...] = ()
    stored: bytes = b""
    private: str = ""
    is_unmeasured: bool = False
    identity: bytes = b""

    @property
    def is_missing(self) -> bool:
        """Whether the content of a fetched page says that the page does not exist (soft 404)."""
        return any(name == "missing" for name, _ in self.objections)

    @property
    def needs_script(self) -> bool:
        """Whether a fetched page has almost no text without JavaScript."""
        return any(name == "script" for name, _ in self.objections)


# Coordinator to fetcher


class WorkBatch(NamedTuple):
    """Message to a fetcher: hosts and tasks, plus link rules and User-Agent if they have changed."""

    hosts: tuple[HostSettings, ...] = ()
    tasks: tuple[FetchTask, ...] = ()
    sites: tuple[Site, ...] | None = None
    copy_rules: CopyRules | None = None
    agent: str = ""


class Recall(NamedTuple):
    """Message to a fetcher: give back every unsent task of these hosts."""

    hosts: tuple[str, ...]


class Ack(NamedTuple):
    """Message to a fetcher: reports up to this number are durable."""

    serial: int


class PartReply(NamedTuple):
    """Message to a fetcher: the outcome of a request made by a page during rendering; status 0 if it was refused."""

    number: int
    status: int = 0
    content_type: str = ""
    cache_control: str = ""
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Stop:
    """Message to a fetcher: finish the requests in flight, report, and exit."""


# Fetcher to coordinator


class PartRequest(NamedTuple):
    """Message from a fetcher: a page being rendered requests a URL."""

    url: str
    part: PagePart


class Rendering(NamedTuple):
    """Message part: a rendering of a page: browser seconds, requests, words and links it added, why it failed."""

    seconds: float = 0.0
    requests: int = 0
    new_words: int = 0
    new_links: int = 0
    trouble: str = ""

    @property
    def has_helped(self) -> bool:
        """Whether rendering a page produced text or links that its HTML did not have."""
        return self.new_words >= MIN_WORDS_BROUGHT or self.new_links > 0


class FetchSuccess(NamedTuple):
    """Message from a fetcher: a parsed response: what the coordinator needs, and where the rest is archived.

    ``unlisted_hosts`` are hosts outside all sites that the page links to, collected at its first fetch. ``dates`` are
    the modification dates that a sitemap or feed gives for its links; empty if it gives none. ``connection_s`` is how
    long a connection was held, in wall time even where world time runs faster; browser time for rendering counts the
    same way. ``part_body`` is the response to a request of a page being rendered. ``cookies`` must be sent to the
    redirect target. ``is_rebuilt`` means that the Last-Modified date is not the page's own. ``sent_bytes`` is how much
    a remote observer sent home for it, None if home fetched it itself.
    """

    task: FetchTask
    status: int
    started_s: float
    ended_s: float
    headers: Headers
    kind: Kind = "other"
    title: str = ""
    links: tuple[str, ...] = ()
    dates: tuple[float | None, ...] = ()
    sources: tuple[str, ...] = ()
    location: str | None = None
    body_bytes: int = 0
    digest: str = ""
    payload_digest: str = ""
    changed: bool = True
    place: ArchiveLocation | None = None
    robots_body: bytes = b""
    content: Content | None = None
    unlisted_hosts: tuple[str, ...] = ()
    connection_s: float = 0.0
    cookies: str = ""
    is_rebuilt: bool = False
    rendering: Rendering | None = None
    part_body: bytes = b""
    sent_bytes: int | None = None

    @property
    def should_render(self) -> bool:
        """Whether a parsed page should be rendered: if it needs JavaScript, or always."""
        if self.task.render == "never" or self.kind != "page" or self.content is None:
            return False
        return self.task.render == "always" or self.content.needs_script

    def header(self, name: str) -> str:
        """Return the first value of a header of a fetch result, by its lower-case name; empty if missing."""
        return next((value for key, value in self.headers if key == name), "")


class FetchFailure(NamedTuple):
    """Message from a fetcher: a request that got no response."""

    task: FetchTask
    failure: Failure
    detail: str
    started_s: float
    ended_s: float
    connection_s: float = 0.0


FetchResult = FetchSuccess | FetchFailure


class HostUpdate(NamedTuple):
    """Message from a fetcher: when the next request to a host may be sent, its failure streak, and why it waits.

    The reason is empty for an ordinary crawl delay.
    """

    name: str
    ready_s: float
    failure_streak: int
    trouble: str


class FetchReport(NamedTuple):
    """Message from a fetcher: everything since its last report.

    ``archived`` is the position up to which its archive files may be acknowledged.
    """

    serial: int
    results: tuple[FetchResult, ...] = ()
    returned: tuple[FetchTask, ...] = ()
    host_updates: tuple[HostUpdate, ...] = ()
    archived: tuple[tuple[str, int], ...] = ()
