"""Messages between coordinator and fetchers: tasks out, results back. Plain values, sent in batches.

The coordinator decides what may be fetched; a fetcher decides when, within the host's pauses, and reads the answer.

They are named tuples, not dataclasses, because they cross a process boundary with every page, and pickle packs a tuple
several times as fast.
"""

from dataclasses import dataclass
from math import inf
from typing import Literal, NamedTuple

from vedette.discover.urls.duplicate_rules import CopyRules
from vedette.model import Failure, Headers, Origin, Purpose, RenderMode, Site
from vedette.parse.change.comparison import Change, StoredVersion

# A rendering that brings fewer words than this brought nothing to find.
MIN_WORDS_BROUGHT = 10

Kind = Literal["page", "document", "feed", "sitemap", "other"]


class ArchiveLocation(NamedTuple):
    """Message part: where an answer is archived (file, offset, length)."""

    file: str
    offset: int
    length: int


class StoredCopy(NamedTuple):
    """Message part: the stored copy of a page that is fetched again: validators, last answer, content."""

    etag: str
    last_modified: str
    digest: str
    payload_digest: str
    fetched_s: float
    baseline: StoredVersion | None = None
    modified_s: float | None = None


class PagePart(NamedTuple):
    """Message part: a request of a page that a fetcher renders: whose it is, its number there, and its page."""

    worker: int
    number: int
    page: str
    accept: str = ""
    hops: int = 0


class FetchTask(NamedTuple):
    """Message to a fetcher: fetch a page (by its id), or one hop towards an origin's robots.txt (id 0).

    ``worth`` orders the tasks of a host; ``value`` is in the unit of the price, and orders hosts (None: the worth).
    ``validators`` are the ETag and Last-Modified of the stored copy, empty where it is fetched in full.
    ``valid_until_s`` is when the robots.txt that allows it expires; it is not sent later than that. ``cookies`` were
    set by the redirects that led here. ``render`` says
    whether the page may be rendered: ``auto`` where it looks empty; ``render_why`` why it may not, where that was a
    choice. ``part_of`` says for which rendering it is fetched.
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
    """Message part: the content of a page that others need; dates are None and words empty where unknown.

    ``baseline`` is what the next version will be compared with, ``change`` what became of the last one. ``directives``
    are words of its owner about what may be done with it; ``objections`` are what speaks against indexing it, by name,
    each with what it rests on. ``anchors`` are what the page calls its links, one for each. ``stored`` is its text,
    packed for the index, where it is new. ``private`` names the site with whose secrets it was fetched, where it was.
    ``is_unmeasured`` says that a change counts only if searches notice it, which is not known yet. ``identity``
    tells it from pages of nearly the same text.
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


# Coordinator to fetcher


class WorkBatch(NamedTuple):
    """Message to a fetcher: hosts and tasks; rules for links and the User-Agent where they have changed."""

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
    """Message to a fetcher: what became of a request of a page that it renders; status 0 where it was refused."""

    number: int
    status: int = 0
    content_type: str = ""
    cache_control: str = ""
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Stop:
    """Message to a fetcher: finish what is in flight, report, and end."""


# Fetcher to coordinator


class PartRequest(NamedTuple):
    """Message from a fetcher: a page that it renders asks for a URL."""

    url: str
    part: PagePart


class Rendering(NamedTuple):
    """Message part: a rendering of a page: browser seconds, requests, words before and after, why it failed."""

    seconds: float = 0.0
    requests: int = 0
    words_before: int = 0
    words: int = 0
    trouble: str = ""

    @property
    def has_brought_text(self) -> bool:
        """Whether the rendering of a page brought text that its HTML did not have."""
        return self.words >= self.words_before + MIN_WORDS_BROUGHT


class FetchSuccess(NamedTuple):
    """Message from a fetcher: an answer, read; what the coordinator needs, and where the rest is archived.

    ``unlisted_hosts`` are hosts that no site takes and that a page which is fetched for the first time links to.
    ``dates`` are when the pages behind the links changed, as far as a sitemap or feed says so; none at all where it
    never does. ``connection_s`` is for how long a connection was held, by our clock, however fast time goes; a browser
    that rendered the page counts the same. ``part_body`` is the answer to a request of a page that is rendered.
    ``cookies`` are to be sent where a redirect leads. ``is_rebuilt`` says that its Last-Modified is not the page's own.
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

    def header(self, name: str) -> str:
        """Return the first value of a header of a fetch result, by its lower-case name; empty where missing."""
        return next((value for key, value in self.headers if key == name), "")


class FetchFailure(NamedTuple):
    """Message from a fetcher: a request that got no answer."""

    task: FetchTask
    failure: Failure
    detail: str
    started_s: float
    ended_s: float
    connection_s: float = 0.0


FetchResult = FetchSuccess | FetchFailure


class HostUpdate(NamedTuple):
    """Message from a fetcher: when a host may be asked again, its failure streak, and why it waits.

    The reason is empty where it simply rests.
    """

    name: str
    ready_s: float
    failure_streak: int
    trouble: str


class FetchReport(NamedTuple):
    """Message from a fetcher: everything since its last report.

    ``archived`` is how far its archive files may be acknowledged.
    """

    serial: int
    results: tuple[FetchResult, ...] = ()
    returned: tuple[FetchTask, ...] = ()
    host_updates: tuple[HostUpdate, ...] = ()
    archived: tuple[tuple[str, int], ...] = ()
