"""What is new on a site? RSS 0.9 to 2.0, RSS 1.0 (RDF) and Atom (RFC 4287 and 0.3), read alike.

An entry's link is, in this order: a ``link`` for readers (``rel`` alternate or absent; HTML before other types), a
``guid`` that is a permanent link, the ``rdf:about`` of an RSS 1.0 item. An entry without any leads nowhere and is left
out. ``xml:base`` is honoured on the root, the entry and the link. Links are absolute http(s) URLs as
``normalize.resolve`` writes them. Titles become plain text: those of RSS, and of Atom where it says so, are HTML.

``hub`` and ``self_link`` are the feed's own, for WebSub. Broken feeds keep what can be read; nothing raises.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from vedette.discover.formats.xml_reader import (
    LONGEST_TEXT,
    Document,
    Field,
    Record,
    Vocabulary,
    expanded,
    read_records,
    root_of,
    scan,
    text_of,
)
from vedette.discover.urls.normalize import resolve
from vedette.timeutil import parse_feed_date

__all__ = ["MOST_ENTRIES", "Feed", "FeedEntry", "is_feed", "read_feed"]

MOST_ENTRIES = 10_000
MOST_BYTES = 10 * 2**20
LONGEST_TITLE = 1_024
_LOOK_BYTES = 64 * 2**10
_ROOTS = frozenset({"rss", "feed", "rdf"})
_HTML_TYPES = frozenset({"html", "text/html"})
_READER_TYPES = frozenset({"", "text/html", "application/xhtml+xml"})
_TAG = re.compile(r"</?[a-zA-Z][^<>]*+>")
_MEANINGS = {
    "title": "title",
    "link": "link",
    "guid": "guid",
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
_PLAIN = {name: meaning for meaning, names in _MEANINGS.items() for name in names.split()}
_VOCABULARY = Vocabulary(
    records=frozenset({"item", "entry"}),
    fields=_PLAIN | _DUBLIN_CORE | {"atom:link": "link"},  # hubs are often named so without a declaration
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


@dataclass(frozen=True, slots=True)
class Feed:
    """What a feed announces, in its order, and where it says that it lives and is pushed from."""

    title: str = ""
    entries: tuple[FeedEntry, ...] = ()
    hub: str | None = None
    self_link: str | None = None


def is_feed(body: bytes, content_type: str = "") -> bool:
    """Whether the bytes look like a feed: by the root element, and for RDF, which serves many ends, by a channel too.

    >>> is_feed(b"<rss version='2.0'>", "text/html"), is_feed(b"<html>", "application/rss+xml")
    (True, False)
    """
    text = text_of(body, content_type, _LOOK_BYTES)
    root = root_of(text)
    return root in _ROOTS and (root != "rdf" or _has_channel(text))


def read_feed(body: bytes, url: str, content_type: str = "") -> Feed:
    """What a feed fetched from ``url`` announces; empty where the bytes are no feed.

    >>> read_feed(b"<rss><channel><item><title>AT&amp;amp;T</title><link>/a</link>", "http://example.org/feed").entries
    (FeedEntry(link='http://example.org/a', title='AT&T', published_s=None, updated_s=None),)
    """
    document = read_records(text_of(body, content_type, MOST_BYTES), _VOCABULARY, MOST_ENTRIES)
    if document.root.name not in _ROOTS:
        return Feed()
    base = _rebased(document.root.attributes.get("xml:base", ""), url)
    return Feed(
        title=_title(document.root, document),
        entries=tuple(_entries(document, base)),
        hub=_related(document.root, "hub", base),
        self_link=_related(document.root, "self", base),
    )


def _has_channel(text: str) -> bool:
    return any(kind == "open" and name.rpartition(":")[2] == "channel" for kind, name, _ in scan(text))


def _entries(document: Document, base: str) -> Iterator[FeedEntry]:
    for record in document.records:
        link = _link(record, base)
        if link is not None:
            yield FeedEntry(link, _title(record, document), _moment(record, "published"), _moment(record, "updated"))


def _link(record: Record, base: str) -> str | None:
    """The page that an entry is about."""
    base = _rebased(record.attributes.get("xml:base", ""), base)
    offered = sorted(_offered(record), key=lambda offer: offer[0])
    links = [_absolute(written, _rebased(each.attributes.get("xml:base", ""), base)) for _, each, written in offered]
    links += [_absolute(each.text, None) for each in record.all("guid") if _is_permanent(each)]
    links.append(_absolute(record.attributes.get("rdf:about", ""), None))
    return next(filter(None, links), None)


def _offered(record: Record) -> Iterator[tuple[int, Field, str]]:
    """Links for readers, with a rank: 0 for HTML and plain RSS links, 1 for other types."""
    for each in record.all("link"):
        href = each.attributes.get("href", "")
        if not href:
            yield 0, each, each.text
        elif _relations(each) & {"alternate"}:
            yield int(each.attributes.get("type", "").lower() not in _READER_TYPES), each, href


def _relations(link: Field) -> frozenset[str]:
    """The ``rel`` words of a link; the registry's full addresses mean the same as their last part."""
    return frozenset(
        word.rpartition("/")[2] for word in (link.attributes.get("rel", "").lower() or "alternate").split()
    )


def _related(head: Record, relation: str, base: str) -> str | None:
    found = (each for each in head.all("link") if relation in _relations(each))
    links = (
        _absolute(each.attributes.get("href", ""), _rebased(each.attributes.get("xml:base", ""), base))
        for each in found
    )
    return next(filter(None, links), None)


def _is_permanent(guid: Field) -> bool:
    return guid.attributes.get("ispermalink", "").lower() != "false"


def _absolute(written: str, base: str | None) -> str | None:
    return resolve(written, base) if 0 < len(written) <= LONGEST_TEXT else None


def _rebased(written: str, base: str) -> str:
    return _absolute(written, base) or base


def _title(record: Record, document: Document) -> str:
    field = next((each for each in record.all("title") if each.text), None)
    if field is None:
        return ""
    is_html = document.root.name != "feed" or field.attributes.get("type", "").lower() in _HTML_TYPES
    text = expanded(_TAG.sub("", field.text)) if is_html else field.text
    return " ".join(text.split())[:LONGEST_TITLE]


def _moment(record: Record, meaning: str) -> float | None:
    read = (parse_feed_date(each.text) for each in record.all(meaning))
    return next((moment_s for moment_s in read if moment_s is not None), None)
