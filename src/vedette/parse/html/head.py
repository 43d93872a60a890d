"""What a page says of itself in its metas and links: language, dates, feeds, where it belongs, where it sends people.

The first of several sayings counts. Numbers and lengths are bounded.
"""

import re

from vedette.parse.html.attributes import folded, plain_text
from vedette.parse.html.tokenizer import Raw

__all__ = ["FEED_TYPES", "Head"]

MOST_METAS = 100
MOST_FEEDS = 20
MOST_ALTERNATES = 200
MOST_STAMPS = 24
MOST_TIMES = 6
MOST_LINKED_DATA = 4
LONGEST_HREF = 8_192
LONGEST_TITLE = 1_024
LONGEST_CONTENT = 2_048
LONGEST_STAMP = 100
LONGEST_LINKED_DATA = 65_536
FEED_TYPES = frozenset({"application/rss+xml", "application/atom+xml", "application/rdf+xml"})

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
    """What has been said so far."""

    __slots__ = (
        *("alternates", "base", "canonical", "description", "feeds", "language", "linked_data", "metas", "refresh"),
        *("shared_description", "stamps", "times", "title", "told_language"),
    )

    def __init__(self) -> None:
        self.title: str | None = None
        self.base: str | None = None
        self.canonical: str | None = None
        self.description = self.shared_description = ""
        self.language = self.told_language = ""
        self.refresh: tuple[int, str] | None = None
        self.metas: list[tuple[str, str]] = []
        self.stamps: list[tuple[str, str]] = []
        self.times = 0
        self.feeds: dict[str, None] = {}
        self.alternates: list[tuple[str, str]] = []
        self.linked_data: list[str] = []

    def title_element(self, written: str) -> None:
        """The title of the page; a later one is not it."""
        if self.title is None:
            self.title = folded(plain_text(written[: 8 * LONGEST_TITLE]))[:LONGEST_TITLE].rstrip()

    def html_element(self, found: dict[str, str]) -> None:
        """The root says which language the page is in."""
        self.language = self.language or _primary(found.get("lang") or found.get("xml:lang") or "")

    def base_element(self, found: dict[str, str]) -> None:
        """What relative addresses are relative to."""
        if self.base is None:
            self.base = _address(found)

    def meta(self, found: dict[str, str]) -> None:
        """A name, a property or a header in disguise, and its content."""
        content = found.get("content")
        if content is None:
            return
        if "http-equiv" in found:
            self._header(found["http-equiv"].strip().lower(), content)
        name = found.get("name")
        if name and len(self.metas) < MOST_METAS:
            self.metas.append((name[:LONGEST_STAMP], content[:LONGEST_CONTENT]))
        key = name or found.get("property") or found.get("itemprop") or ""
        self._named(key.strip().lower(), content)

    def _header(self, name: str, content: str) -> None:
        if name == "content-language":
            self.told_language = self.told_language or _primary(content)
        elif name == "refresh":
            self.refresh = self.refresh or _sends_to(content)

    def _named(self, key: str, content: str) -> None:
        if key == "description":
            self.description = self.description or _sentence(content)
        elif key == "og:description":
            self.shared_description = self.shared_description or _sentence(content)
        elif key in _DATED:
            self._stamp(key, content)

    def _stamp(self, key: str, content: str) -> None:
        if content and len(content) <= LONGEST_STAMP and len(self.stamps) < MOST_STAMPS:
            self.stamps.append((key, content.strip()))

    def time_element(self, found: dict[str, str]) -> None:
        """The first times of a page are often its own."""
        if "datetime" in found and self.times < MOST_TIMES:
            self.times += 1
            key = "pubdate" if "pubdate" in found else found.get("itemprop", "").strip().lower()
            self._stamp(key[:LONGEST_STAMP] or "time", found["datetime"])

    def link(self, found: dict[str, str]) -> None:
        """A relation of the whole page to another address."""
        href, relations = _address(found), found.get("rel", "").lower().split()
        if not href:
            return
        if "canonical" in relations:
            self.canonical = self.canonical or href
        if "alternate" in relations:
            self._alternate(found, href)

    def _alternate(self, found: dict[str, str], href: str) -> None:
        """The page in another language, or its feed (RSS Autodiscovery)."""
        kind = found.get("type", "").partition(";")[0].strip().lower()
        if kind in FEED_TYPES:
            if len(self.feeds) < MOST_FEEDS:
                self.feeds[href] = None
        elif found.get("hreflang") and len(self.alternates) < MOST_ALTERNATES:
            self.alternates.append((found["hreflang"].strip().lower()[:LONGEST_STAMP], href))

    def script(self, raw: Raw) -> None:
        """Linked data says in a script what the page is."""
        if (
            "ld+json" in raw.attributes.lower()
            and len(raw.body) <= LONGEST_LINKED_DATA
            and len(self.linked_data) < MOST_LINKED_DATA
        ):
            self.linked_data.append(raw.body.encode(errors="replace").decode())


def _address(found: dict[str, str]) -> str | None:
    """Where a link or base points to; a longer one is nobody's address, and would be paid for with every link."""
    href = found.get("href")
    return href if href is not None and len(href) <= LONGEST_HREF else None


def _sentence(content: str) -> str:
    return folded(content[:LONGEST_CONTENT])


def _primary(tag: str) -> str:
    found = _LANGUAGE.match(tag)
    return found[1].lower() if found else ""


def _sends_to(content: str) -> tuple[int, str] | None:
    """After how many seconds to which address; a page that only loads itself again sends nobody anywhere.

    >>> _sends_to("5; url='/new'"), _sends_to("30")
    ((5, '/new'), None)
    """
    found = _REFRESH.match(content[:LONGEST_HREF])
    if found is None:
        return None
    href = (found[2] or found[3] or found[4] or "").strip()
    return (int(found[1] or 0), href) if href else None
