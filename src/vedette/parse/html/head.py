"""Collect the facts in an HTML head: language, dates, feeds, canonical URL, robots, refresh.

The first of several statements counts. Numbers and lengths are bounded.
"""

import re

from vedette.parse.html.attributes import collapse_space, decode_references
from vedette.parse.html.tokenizer import RawElement

MAX_METAS = 100
MAX_FEEDS = 20
MAX_ALTERNATES = 200
MAX_STAMPS = 24
MAX_TIMES = 6
MAX_LINKED_DATA = 4
MAX_HREF_LENGTH = 8_192
MAX_TITLE_LENGTH = 1_024
MAX_CONTENT_LENGTH = 2_048
MAX_STAMP_LENGTH = 100
MAX_LINKED_DATA_LENGTH = 65_536
FEED_TYPES = frozenset({"application/rss+xml", "application/atom+xml", "application/rdf+xml", "application/feed+json"})

_DATED_NAMES = """
    article:published_time article:modified_time article:published article:modified og:published_time og:updated_time
    og:modified_time og:article:published_time og:article:modified_time book:release_date datepublished datemodified
    datecreated uploaddate date date.created date.modified pubdate publishdate publish_date publish-date
    publication_date published_date published lastmod last-modified last_modified modified revised created
    parsely-pub-date sailthru.date cxenseparse:recs:publishtime citation_publication_date citation_date
    citation_online_date dc.date dc.date.issued dc.date.created dc.date.modified dc.date.published dcterms.date
    dcterms.issued dcterms.created dcterms.modified dcterms.available dcterms.datesubmitted
    """
_DATED = frozenset(_DATED_NAMES.split())
_LANGUAGE = re.compile(r"\s*+([a-z]{2,8})(?![a-z0-9])", re.ASCII | re.IGNORECASE)
_REFRESH = re.compile(
    r"""\s*+([0-9]{0,9})[0-9.]*+\s*+[;,\s]\s*+(?:url\s*+=\s*+)?+(?:"([^"]*+)|'([^']*+)|(.*+))""",
    re.ASCII | re.IGNORECASE | re.DOTALL,
)


class Head:
    """The facts so far from the metas, links and other head elements of an HTML page."""

    __slots__ = (
        *("alternates", "base", "canonical", "description", "feeds", "language", "linked_data", "metas", "refresh"),
        *("og_description", "stamps", "time_count", "title", "header_language"),
    )

    def __init__(self) -> None:
        self.title: str | None = None
        self.base: str | None = None
        self.canonical: str | None = None
        self.description = self.og_description = ""
        self.language = self.header_language = ""
        self.refresh: tuple[int, str] | None = None
        self.metas: list[tuple[str, str]] = []
        self.stamps: list[tuple[str, str]] = []
        self.time_count = 0
        self.feeds: dict[str, None] = {}
        self.alternates: list[tuple[str, str]] = []
        self.linked_data: list[str] = []

    def add_title(self, written: str) -> None:
        """Add the title of the HTML page; only the first counts."""
        if self.title is None:
            self.title = collapse_space(decode_references(written[: 8 * MAX_TITLE_LENGTH]))[:MAX_TITLE_LENGTH].rstrip()

    def add_html(self, found: dict[str, str]) -> None:
        """Add the language in the attributes of the ``<html>`` element."""
        self.language = self.language or _parse_language(found.get("lang") or found.get("xml:lang") or "")

    def add_base(self, found: dict[str, str]) -> None:
        """Add the ``<base>`` address that relative links of the page are resolved against."""
        if self.base is None:
            self.base = _get_href(found)

    def add_meta(self, found: dict[str, str]) -> None:
        """Add a ``<meta>`` element: its name, property or http-equiv, and its content."""
        content = found.get("content")
        if content is None:
            return
        if "http-equiv" in found:
            self._add_http_equiv(found["http-equiv"].strip().lower(), content)
        name = found.get("name")
        if name and len(self.metas) < MAX_METAS:
            self.metas.append((name[:MAX_STAMP_LENGTH], content[:MAX_CONTENT_LENGTH]))
        key = name or found.get("property") or found.get("itemprop") or ""
        self._add_named(key.strip().lower(), content)

    def _add_http_equiv(self, name: str, content: str) -> None:
        if name == "content-language":
            self.header_language = self.header_language or _parse_language(content)
        elif name == "refresh":
            self.refresh = self.refresh or _parse_refresh(content)

    def _add_named(self, key: str, content: str) -> None:
        if key == "description":
            self.description = self.description or _clean_text(content)
        elif key == "og:description":
            self.og_description = self.og_description or _clean_text(content)
        elif key in _DATED:
            self._add_stamp(key, content)

    def _add_stamp(self, key: str, content: str) -> None:
        if content and len(content) <= MAX_STAMP_LENGTH and len(self.stamps) < MAX_STAMPS:
            self.stamps.append((key, content.strip()))

    def add_time(self, found: dict[str, str]) -> None:
        """Add a ``<time>`` element: the first ones of a page are often its own date."""
        if "datetime" in found and self.time_count < MAX_TIMES:
            self.time_count += 1
            key = "pubdate" if "pubdate" in found else found.get("itemprop", "").strip().lower()
            self._add_stamp(key[:MAX_STAMP_LENGTH] or "time", found["datetime"])

    def add_link(self, found: dict[str, str]) -> None:
        """Add a ``<link>`` element: a relation of the whole page to another URL."""
        href, relations = _get_href(found), found.get("rel", "").lower().split()
        if not href:
            return
        if "canonical" in relations:
            self.canonical = self.canonical or href
        if "alternate" in relations:
            self._add_alternate(found, href)

    def _add_alternate(self, found: dict[str, str], href: str) -> None:
        """Add an alternate ``<link>``: the page in another language, or its feed (RSS Autodiscovery)."""
        kind = found.get("type", "").partition(";")[0].strip().lower()
        if kind in FEED_TYPES:
            if len(self.feeds) < MAX_FEEDS:
                self.feeds[href] = None
        elif found.get("hreflang") and len(self.alternates) < MAX_ALTERNATES:
            self.alternates.append((found["hreflang"].strip().lower()[:MAX_STAMP_LENGTH], href))

    def add_script(self, raw: RawElement) -> None:
        """Add a ``<script>`` of linked data (JSON-LD), which describes the page."""
        if (
            "ld+json" in raw.attributes.lower()
            and len(raw.body) <= MAX_LINKED_DATA_LENGTH
            and len(self.linked_data) < MAX_LINKED_DATA
        ):
            self.linked_data.append(raw.body.encode(errors="replace").decode())


def _get_href(found: dict[str, str]) -> str | None:
    """Return the URL of a ``<link>`` or ``<base>`` element; None if it is too long to be a real one."""
    href = found.get("href")
    return href if href is not None and len(href) <= MAX_HREF_LENGTH else None


def _clean_text(content: str) -> str:
    return collapse_space(content[:MAX_CONTENT_LENGTH])


def _parse_language(tag: str) -> str:
    found = _LANGUAGE.match(tag)
    return found[1].lower() if found else ""


def _parse_refresh(content: str) -> tuple[int, str] | None:
    """Parse a meta refresh into seconds and URL; None for a page that only reloads itself.

    >>> _parse_refresh("5; url='/new'"), _parse_refresh("30")
    ((5, '/new'), None)
    """
    found = _REFRESH.match(content[:MAX_HREF_LENGTH])
    if found is None:
        return None
    href = (found[2] or found[3] or found[4] or "").strip()
    return (int(found[1] or 0), href) if href else None
