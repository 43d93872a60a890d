"""Core model: the records that all stages share: sites, origins, requests, responses; units are in the names.

Times named ``_s`` are seconds of world time (the synthetic web's own time if one is served, else Unix time). A header
list is a tuple of ``(lower-case name, value)`` pairs in order of arrival.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache, lru_cache
from typing import Literal, NamedTuple, Protocol, cast
from urllib.parse import urlsplit

import xxhash
from publicsuffixlist import PublicSuffixList

PARTITIONS = 1024
# A folder in a folder is still about one topic; deeper ones contain too few pages to learn from.
SECTION_DEPTH = 2

Headers = tuple[tuple[str, str], ...]
ScopeKind = Literal["prefix", "host", "domain"]
ChangeRule = Literal["bytes", "text", "main", "links", "queries"]
Overrule = Literal["trap", "copy", "missing", "script", "empty", "thin", "spam"]
Purpose = Literal["page", "robots", "part"]
RenderMode = Literal["auto", "always", "never"]

TRACKING_PARAMETERS = (
    "utm_*",
    "fbclid",
    "gclid",
    "dclid",
    "msclkid",
    "yclid",
    "twclid",
    "igshid",
    "mc_cid",
    "mc_eid",
    "_ga",
    "_gl",
    "_hsenc",
    "_hsmi",
)
SESSION_PARAMETERS = ("sid", "sessionid", "session_id", "jsessionid", "phpsessid", "aspsessionid*", "cfid", "cftoken")


@dataclass(frozen=True, slots=True)
class Site:
    """A site that the operator configured: its start URL, its scope, and how its URLs are normalized.

    ``include`` and ``exclude`` are patterns over path and query, with ``*`` for anything and a final ``$`` for the end,
    as in robots.txt; an exclude wins over an include. Parameters are named by patterns with ``*``. ``secrets`` says
    where the site's credentials are (``env:NAME`` or ``file:PATH``), never what they are. ``hours`` is when it may be
    crawled, such as ``22:00-06:00`` (UTC), always if empty; ``busy_hours`` is when a fetch costs more and by what
    factor, such as ``08:00-18:00 x3`` (UTC); ``bytes_per_s`` limits the average bandwidth. ``ignore_robots`` is only
    for a site whose operator confirmed owning it; ``allow_private`` permits private addresses for its hosts. ``change``
    is what counts as a change of its pages, and ``overrule`` names the judgments about its pages that its operator
    rejects. ``readers`` are the names of those who may see its pages if they were fetched with credentials; ``*`` means
    any signed-in reader. ``share`` is the maximum part of the fetch budget it may use, such as 0.2; None means all of
    it. ``promise`` lists sources with a guaranteed fetch interval, each as seconds and URL: ``900
    https://example.org/news``. ``sitemap`` lists sitemaps missing from robots.txt, as URL or path; they may be outside
    the site's scope. ``render`` says which pages to render if there is a browser: those that seem empty without
    JavaScript and are worth it, all, or none; ``render_from`` names other hosts that their scripts may load from.
    """

    start: str
    scope: ScopeKind = "host"
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    sort_parameters: bool = True
    drop_parameters: tuple[str, ...] = TRACKING_PARAMETERS + SESSION_PARAMETERS
    delay_s: float | None = None
    hours: str = ""
    busy_hours: str = ""
    bytes_per_s: float | None = None
    ignore_robots: bool = False
    allow_private: bool = False
    secrets: str = ""
    change: ChangeRule = "queries"
    overrule: tuple[Overrule, ...] = ()
    readers: tuple[str, ...] = ()
    share: float | None = None
    promise: tuple[str, ...] = ()
    sitemap: tuple[str, ...] = ()
    render: RenderMode = "auto"
    render_from: tuple[str, ...] = ()


class Origin(NamedTuple):
    """Origin of a URL: scheme, host and port, which one robots.txt covers."""

    scheme: str
    host: str
    port: int

    @property
    def robots_url(self) -> str:
        """The robots.txt URL of this origin, without the port if it is the scheme's default."""
        return f"{self}/robots.txt"

    def __str__(self) -> str:
        default = 443 if self.scheme == "https" else 80
        return f"{self.scheme}://{self.host}" + ("" if self.port == default else f":{self.port}")


class Failure(StrEnum):
    """Why a fetch got no response, by how a crawler should react."""

    NAME = "name does not exist"
    RESOLVER = "resolver did not answer"
    ADDRESS = "address refused"
    CONNECT = "no connection"
    TLS = "no trusted connection"
    TIMEOUT = "too slow"
    RESET = "connection broke"
    TOO_LARGE = "answer too large"
    PROTOCOL = "answer is not HTTP"
    HEADER = "broken header line"
    CODING = "answer cannot be unpacked"


class Refusal(StrEnum):
    """Why a known URL will not be fetched."""

    NOT_HTTP = "not an http(s) URL"
    OUT_OF_SCOPE = "outside the scope of every site"
    EXCLUDED = "excluded by the site's settings"
    ROBOTS = "disallowed by robots.txt"
    TOO_LONG = "URL too long"
    TRAP = "held back as a trap"
    COPY = "another spelling of a known page"
    BLOCKED = "on a domain that the operator blocked"
    NO_SITEMAP = "no sitemap in this usual place"


@dataclass(frozen=True, slots=True)
class FetchRequest:
    """An HTTP request that may be sent now: all decisions are made, politeness included.

    ``secret_headers`` are sent with the others but never shown.
    """

    url: str
    purpose: Purpose
    headers: Headers = ()
    secret_headers: Headers = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class FetchResponse:
    """An HTTP response: status, headers and decoded body; and for the archive, the bytes on the wire.

    ``request_head`` contains no secret; ``payload`` is the body as sent, without chunks but still encoded.
    """

    url: str
    purpose: Purpose
    status: int
    headers: Headers
    body: bytes
    started_s: float
    ended_s: float
    address: str
    request_head: bytes = b""
    head: bytes = b""
    payload: bytes = b""

    def header(self, name: str) -> str | None:
        """Return the first value of a response header, by its lower-case name."""
        return next((value for key, value in self.headers if key == name), None)


@dataclass(frozen=True, slots=True)
class NoResponse:
    """A request that got no complete response, and why."""

    url: str
    purpose: Purpose
    failure: Failure
    detail: str
    started_s: float
    ended_s: float


FetchOutcome = FetchResponse | NoResponse


class _SuffixList(Protocol):
    def privatesuffix(self, domain: str) -> str | None: ...


@cache
def _load_suffixes() -> _SuffixList:
    return cast("_SuffixList", PublicSuffixList())


def origin_of(url: str) -> Origin:
    """Return the origin of an absolute http(s) URL as ``resolve`` writes it.

    >>> origin_of("https://example.org/a?b")
    Origin(scheme='https', host='example.org', port=443)
    >>> str(origin_of("http://[::1]:8080/"))
    'http://[::1]:8080'
    """
    # Parsed by hand: this runs for every link, and such a URL always has a path.
    scheme, _, rest = url.partition("://")
    authority = rest.partition("/")[0].rpartition("@")[2]
    host, colon, port = authority.rpartition(":")
    if not colon or authority.endswith("]"):
        return Origin(scheme, authority, 443 if scheme == "https" else 80)
    return Origin(scheme, host, int(port))


def site_of(url: str) -> str:
    """Return the site group of a page: the root URL of its host.

    >>> site_of("https://example.org/docs/api/sets.html?v=3")
    'https://example.org/'
    """
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}/"


def section_of(url: str) -> str:
    """Return the section group of a page: the folder of its URL, up to a maximum depth.

    >>> section_of("https://example.org/docs/api/v3/sets.html?v=3"), section_of("https://example.org/about")
    ('https://example.org/docs/api/', 'https://example.org/')
    """
    folders = urlsplit(url).path.split("/")[1:-1][:SECTION_DEPTH]
    return site_of(url) + "".join(f"{folder}/" for folder in folders)


def is_robots_url(url: str) -> bool:
    """Check whether a URL is that of a robots.txt file."""
    return url == origin_of(url).robots_url


def registrable_domain(host: str) -> str:
    """Return the registrable domain of a host name; an address or bare suffix is returned as is.

    >>> registrable_domain("www.bbc.co.uk"), registrable_domain("127.0.0.1"), registrable_domain("[::1]")
    ('bbc.co.uk', '127.0.0.1', '[::1]')
    """
    if host.startswith("[") or host.replace(".", "").isdigit():
        return host
    return _load_suffixes().privatesuffix(host) or host


@lru_cache(maxsize=1 << 17)  # pages can name any number of hosts
def partition_of(host: str) -> int:
    """Return which of the 1 024 partitions owns a host; all hosts of a registrable domain share one."""
    return xxhash.xxh64_intdigest(registrable_domain(host).encode()) % PARTITIONS


def fingerprint(url: str) -> int:
    """Compute the 64-bit fingerprint of a URL, as a signed number for SQLite."""
    unsigned = xxhash.xxh64_intdigest(url.encode())
    return unsigned - (1 << 64) if unsigned >> 63 else unsigned
