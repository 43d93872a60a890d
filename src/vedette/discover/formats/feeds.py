"""Parse feeds: RSS 0.9 to 2.0, RSS 1.0 (RDF), Atom (RFC 4287 and 0.3) and JSON Feed (1 and 1.1).

An entry's link is, in this order: a ``link`` for readers (``rel`` alternate or absent; HTML before other types), a
``guid`` that is a permanent link or an ``id`` that is a URL, the ``rdf:about`` of an RSS 1.0 item. An entry without any
is skipped. ``xml:base`` is honored on the root, the entry and the link. Links are absolute http(s) URLs as returned by
``urls.normalize.resolve``. Titles become plain text: those of RSS, and of Atom if it says so, are HTML.

``hub`` and ``self_link`` are the feed's own, for WebSub. Broken feeds are read as far as possible; nothing raises.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from vedette.discover.formats.xml_reader import (
    MAX_TEXT_LENGTH,
    Document,
    Field,
    Record,
    Vocabulary,
    decode_xml,
    expand_entities,
    find_root,
    parse_records,
    scan,
)
from vedette.discover.urls.normalize import resolve
from vedette.timeutil import parse_date

MAX_ENTRIES = 10_000
MAX_BYTES = 10 * 2**20
MAX_JSON_LENGTH = 4 * 2**20  # its values take many times as much memory
MAX_TITLE_LENGTH = 1_024
_SNIFF_BYTES = 64 * 2**10
_ROOTS = frozenset({"rss", "feed", "rdf"})
_HTML_TYPES = frozenset({"html", "text/html"})
_PAGE_TYPES = frozenset({"", "text/html", "application/xhtml+xml"})
_JSON_FEED = re.compile(r'\s*\{.*?"version"\s*:\s*"https?:\\?/\\?/(?:www\.)?jsonfeed\.org\\?/version\\?/', re.DOTALL)
_TAG = re.compile(r"</?[a-zA-Z][^<>]*+>")
_FIELD_NAMES = {
    "title": "title",
    "link": "link",
    "guid": "guid id",
    "published": "published pubdate issued created",
    "updated": "updated modified",
}
_DUBLIN_CORE = {
    "dc:title": "title",
    "dc:date": "published",
    "dcterms:issued": "published",
    "dcterms:created": "published",
    "dcterms:modified": "updated",
}
_PLAIN_FIELDS = {name: meaning for meaning, names in _FIELD_NAMES.items() for name in names.split()}
_VOCABULARY = Vocabulary(
    records=frozenset({"item", "entry"}),
    fields=_PLAIN_FIELDS | _DUBLIN_CORE | {"atom:link": "link"},  # hubs often use this prefix without a declaration
    containers=frozenset({"channel"}),
    namespaces={
        "http://www.w3.org/2005/Atom": "",
        "http://purl.org/atom/ns#": "",
        "http://purl.org/rss/1.0/": "",
        "http://purl.org/dc/elements/1.1/": "dc",
        "http://purl.org/dc/terms/": "dcterms",
    },
)


@dataclass(frozen=True, slots=True)
class FeedEntry:
    """A page that a feed announces."""

    link: str
    title: str = ""
    published_s: float | None = None
    updated_s: float | None = None

    @property
    def date_s(self) -> float | None:
        """When the page last changed, if the feed says so."""
        return self.published_s if self.updated_s is None else self.updated_s


@dataclass(frozen=True, slots=True)
class Feed:
    """A parsed feed: its entries in order, its own URL, and the WebSub hub that pushes it."""

    title: str = ""
    entries: tuple[FeedEntry, ...] = ()
    hub: str | None = None
    self_link: str | None = None


def is_feed(body: bytes, content_type: str = "") -> bool:
    """Check whether the bytes seem to be a feed.

    The root element decides; RDF, which has many uses, also needs a channel, and JSON its ``version``.

    >>> is_feed(b"<rss version='2.0'>", "text/html"), is_feed(b"<html>", "application/rss+xml")
    (True, False)
    """
    text = decode_xml(body, content_type, _SNIFF_BYTES)
    if _is_json(text):
        return _JSON_FEED.match(text) is not None
    root = find_root(text)
    return root in _ROOTS and (root != "rdf" or _has_channel(text))


def parse_feed(body: bytes, url: str, content_type: str = "") -> Feed:
    """Parse a feed fetched from ``url``; empty if the bytes are no feed.

    >>> parse_feed(b"<rss><channel><item><title>AT&amp;amp;T</title><link>/a</link>", "http://example.org/feed").entries
    (FeedEntry(link='http://example.org/a', title='AT&T', published_s=None, updated_s=None),)
    """
    text = decode_xml(body, content_type, MAX_BYTES)
    if _is_json(text):
        return _parse_json_feed(text, url)
    document = parse_records(text, _VOCABULARY, MAX_ENTRIES)
    if document.root.name not in _ROOTS:
        return Feed()
    base = _apply_base(document.root.attributes.get("xml:base", ""), url)
    return Feed(
        title=_parse_title(document.root, document),
        entries=tuple(_parse_entries(document, base)),
        hub=_find_related(document.root, "hub", base),
        self_link=_find_related(document.root, "self", base),
    )


def _is_json(text: str) -> bool:
    return text.lstrip(" \t\r\n\ufeff").startswith("{")


def _parse_json_feed(text: str, url: str) -> Feed:
    """Parse a JSON Feed (jsonfeed.org); values that do not conform are ignored."""
    try:
        found = json.loads(text.lstrip("\ufeff"), strict=False) if len(text) <= MAX_JSON_LENGTH else None
    except (ValueError, RecursionError):
        return Feed()
    if not isinstance(found, dict):
        return Feed()
    hubs = (hub.get("url") for hub in _list_objects(found, "hubs"))
    return Feed(
        title=_get_line(found, "title"),
        entries=tuple(_parse_json_items(found, url)),
        hub=next(filter(None, (_resolve_url(hub, url) for hub in hubs if isinstance(hub, str))), None),
        self_link=_resolve_url(_get_line(found, "feed_url"), url),
    )


def _parse_json_items(found: Mapping[str, object], url: str) -> Iterator[FeedEntry]:
    for item in _list_objects(found, "items")[:MAX_ENTRIES]:
        link = _resolve_url(_get_line(item, "url"), url) or _resolve_url(_get_line(item, "id"), None)
        if link is not None:
            dates = (parse_date(_get_line(item, key), partial=True) for key in ("date_published", "date_modified"))
            yield FeedEntry(link, _get_line(item, "title")[:MAX_TITLE_LENGTH], *dates)


def _list_objects(found: Mapping[str, object], key: str) -> list[Mapping[str, object]]:
    several = found.get(key)
    return [each for each in several if isinstance(each, dict)] if isinstance(several, list) else []


def _get_line(found: Mapping[str, object], key: str) -> str:
    value = found.get(key)
    return " ".join(value[: MAX_TEXT_LENGTH + 1].split()) if isinstance(value, str) else ""


def _has_channel(text: str) -> bool:
    return any(kind == "open" and name.rpartition(":")[2] == "channel" for kind, name, _ in scan(text))


def _parse_entries(document: Document, base: str) -> Iterator[FeedEntry]:
    for record in document.records:
        link = _find_link(record, base)
        if link is not None:
            yield FeedEntry(
                link, _parse_title(record, document), _parse_date(record, "published"), _parse_date(record, "updated")
            )


def _find_link(record: Record, base: str) -> str | None:
    """Return the URL of the page that an RSS or Atom feed entry is about."""
    base = _apply_base(record.attributes.get("xml:base", ""), base)
    offered = sorted(_rank_links(record), key=lambda offer: offer[0])
    links = [
        _resolve_url(written, _apply_base(each.attributes.get("xml:base", ""), base)) for _, each, written in offered
    ]
    links += [_resolve_url(each.text, None) for each in record.find_all("guid") if _is_permanent(each)]
    links.append(_resolve_url(record.attributes.get("rdf:about", ""), None))
    return next(filter(None, links), None)


def _rank_links(record: Record) -> Iterator[tuple[int, Field, str]]:
    """Yield a feed entry's links for people, ranked: 0 for HTML and plain RSS links, 1 for other types."""
    for each in record.find_all("link"):
        href = each.attributes.get("href", "")
        if not href:
            yield 0, each, each.text
        elif _parse_relations(each) & {"alternate"}:
            yield int(each.attributes.get("type", "").lower() not in _PAGE_TYPES), each, href


def _parse_relations(link: Field) -> frozenset[str]:
    """Parse the ``rel`` words of an Atom feed link.

    The registry's full URLs mean the same as their last part.
    """
    return frozenset(
        word.rpartition("/")[2] for word in (link.attributes.get("rel", "").lower() or "alternate").split()
    )


def _find_related(head: Record, relation: str, base: str) -> str | None:
    found = (each for each in head.find_all("link") if relation in _parse_relations(each))
    links = (
        _resolve_url(each.attributes.get("href", ""), _apply_base(each.attributes.get("xml:base", ""), base))
        for each in found
    )
    return next(filter(None, links), None)


def _is_permanent(guid: Field) -> bool:
    return guid.attributes.get("ispermalink", "").lower() != "false"


def _resolve_url(written: str, base: str | None) -> str | None:
    return resolve(written, base) if 0 < len(written) <= MAX_TEXT_LENGTH else None


def _apply_base(written: str, base: str) -> str:
    return _resolve_url(written, base) or base


def _parse_title(record: Record, document: Document) -> str:
    field = next((each for each in record.find_all("title") if each.text), None)
    if field is None:
        return ""
    is_html = document.root.name != "feed" or field.attributes.get("type", "").lower() in _HTML_TYPES
    text = expand_entities(_TAG.sub("", field.text)) if is_html else field.text
    return " ".join(text.split())[:MAX_TITLE_LENGTH]


def _parse_date(record: Record, meaning: str) -> float | None:
    read = (parse_date(each.text, partial=True) for each in record.find_all(meaning))
    return next((moment_s for moment_s in read if moment_s is not None), None)
