"""The HTML walker: the state of one pass over a page's tags: text in blocks, links, headings, and head.

Text goes into one list of pieces. A tag that ends a block appends ``BREAK``, any other tag appends nothing, so
``<b>V</b>edette`` stays one word. Each block has one number: the marks of its containers (``Zone``), its kind, and how
many of its characters are links. The effect of a tag is looked up by its name (``tag_handlers``), and most tags have
none.

A page repeats the same tags, attributes included, so the table of a page caches whole tags that do nothing, or only end
a line. The effect of ``<p>`` and ``<span>`` depends on whether one with a mark is open, which is rare: a page is calm
until it opens the first, and while it is calm they are cached too.

``Head`` collects the facts in the head: language, dates, feeds, canonical URL, robots, refresh. The first of several
statements counts. Numbers and lengths are bounded.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from vedette.parse.html.tokenizer import RawElement, Token, collapse_space, decode_references

# A control character that the HTML standard forbids, both literally and as a reference.
BREAK = "\x01"
# Kinds of block, above the marks of ``zones``; the number of linked characters is in the highest bits.
HEADING, PREFORMATTED, ROW, FLOW, ILLUSTRATED = 16, 32, 64, 128, 256
LINKED_SHIFT = 9
ALL_LINKED = 1 << 40
MAX_LINK_PIECES = 40
MAX_CACHED_TAGS = 2_000


class Link(NamedTuple):
    """A link of an HTML page: its address as written, its text, and whether it is nofollow."""

    href: str
    text: str
    nofollow: bool


class Heading(NamedTuple):
    """A heading of an HTML page: its level and text, the id that leads to it, and the number of its text block."""

    level: int
    text: str
    anchor: str
    block: int


class Zone:
    """An open HTML container with marks: how many of its name are open inside it, and the marks outside."""

    __slots__ = ("depth", "first_block", "marks", "name", "outer_marks", "start_piece")

    def __init__(self, name: str, marks: int, scan: "Scan") -> None:
        self.name, self.marks, self.outer_marks, self.depth = name, marks, scan.zone, 1
        self.first_block, self.start_piece = len(scan.blocks), len(scan.pieces)


class Span(NamedTuple):
    """The blocks of a container with marks: from ``start`` up to ``end``."""

    name: str
    marks: int
    start: int
    end: int


class Scan:
    """The state of a walk over the tags of an HTML page."""

    __slots__ = (
        *(
            "alt",
            "block",
            "blocks",
            "calm",
            "actions",
            "head",
            "anchor",
            "heading_at",
            "headings",
            "id_at",
            "id_source",
            "cached_actions",
            "link_at",
            "links",
        ),
        *("current_link", "pieces", "script_characters", "scripts", "spans", "template_characters"),
        *("tokens", "wants_script", "zone", "zones"),
    )

    def __init__(self) -> None:
        self.actions: Actions = {}
        self.cached_actions: dict[str | None, Action | None] = {}
        self.calm = True
        self.pieces = [BREAK]
        self.blocks: list[int] = []
        self.block = 0
        self.zone = 0
        self.zones: list[Zone] = []
        self.spans: list[Span] = []
        self.links: dict[str, Link] = {}
        self.current_link: tuple[str, bool] | None = None
        self.link_at = 0
        self.alt = ""
        self.headings: list[Heading] = []
        self.heading_at = 0
        self.anchor = ""
        self.id_source = ""
        self.id_at = 0
        self.head = Head()
        self.scripts = 0
        self.script_characters = 0
        self.template_characters = 0
        self.wants_script = False
        self.tokens: Iterable[Token] = ()

    def walk(self, does: "Actions", unlearnt: "Action", tokens: Iterable[Token]) -> None:
        """Walk over the tags of a page; ``unlearnt`` handles those not seen in this form before."""
        self.actions, self.tokens = does, tokens
        self.cached_actions = {**does, **_CALM_ACTIONS}
        pieces, append, learnt_of = self.pieces, self.pieces.append, self.cached_actions.get
        for text, tag in tokens:
            if text and (pieces[-1] is not BREAK or not text.isspace()):
                append(text)
            action = learnt_of(tag, unlearnt)
            if action is None:
                continue
            if action is not end_line:
                action(self, tag or "", "")
            elif pieces[-1] is not BREAK:
                self.end_block()

    def cache_action(self, tag: str, action: "Action | None") -> None:
        """Cache the effect of a tag, as written: from now on it does only this."""
        if len(self.cached_actions) < MAX_CACHED_TAGS:
            self.cached_actions[tag] = action

    def end_calm(self) -> None:
        """End the calm part of a page: a paragraph or span with a mark began, so cached effects are invalid."""
        if self.calm:
            self.calm = False
            self.cached_actions.clear()
            self.cached_actions.update(self.actions)

    def leave_zone(self) -> None:
        """Leave the innermost container with marks: its text ends, and the marks outside of it count again."""
        end_line(self)
        zone = self.zones.pop()
        self.zone = zone.outer_marks
        self.spans.append(Span(zone.name, zone.marks, zone.first_block, len(self.blocks)))

    def end_block(self) -> None:
        """End a text block of the page: everything since the last break is one block."""
        if self.current_link and len(self.pieces) - self.link_at < MAX_LINK_PIECES:
            self.block |= ALL_LINKED
        self.pieces.append(BREAK)
        self.blocks.append(self.block | self.zone)
        self.block = 0

    def get_text_since(self, position: int, longest: int) -> str:
        """Return the page's text since some piece, breaks as spaces, collapsed and cut."""
        text = "".join(self.pieces[position:]).replace(BREAK, " ")
        if len(text) < longest and text.isascii() and "&" not in text and "\0" not in text:
            return " ".join(text.split())
        # References are at most about ten characters for one; folding must not process megabytes.
        return collapse_space(decode_references(text[: 16 * longest]))[:longest].rstrip()


Action = Callable[[Scan, str, str], None]
Actions = Mapping[str | None, Action | None]


def end_line(scan: Scan, _name: str = "", _attributes: str = "") -> None:
    """Handle an HTML tag that ends a text block and does nothing else."""
    if scan.pieces[-1] is not BREAK:
        scan.end_block()


def begin_flow(scan: Scan, _name: str = "", _attributes: str = "") -> None:
    """Handle an HTML tag that begins running text, such as a paragraph or an item of a list."""
    if scan.pieces[-1] is not BREAK:
        scan.end_block()
    scan.block |= FLOW


_CALM_ACTIONS: Actions = {"p": begin_flow, "/p": end_line, "span": None, "/span": None}


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
