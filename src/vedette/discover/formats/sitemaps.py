"""Parse sitemaps and sitemap indexes, as XML or as lines of text (sitemaps.org 0.9).

Everything is read from the bytes: a wrong Content-Type or namespace, a missing prefix declaration or double gzip
compression makes no difference. A broken entry costs only itself, and limits bound the rest: bytes, entries, length of
a field. ``xml_reader`` explains why this uses its own scanner.

A page's versions in other languages (``xhtml:link``) are separate entries, and in a news sitemap without ``lastmod``
the publication date counts.

Locations are absolute http(s) URLs as returned by ``urls.normalize.resolve``; anything else is skipped. Whether a
sitemap may list them is up to the caller. A feed may serve as a sitemap too: see ``feeds.is_feed``.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from vedette.discover.formats.xml_reader import (
    MAX_TEXT_LENGTH,
    Document,
    Record,
    Vocabulary,
    decode_xml,
    find_root,
    parse_records,
)
from vedette.discover.urls.normalize import resolve
from vedette.timeutil import parse_date

MAX_ENTRIES = 50_000  # sitemaps.org, for URLs and for the sitemaps of an index
_SNIFF_BYTES = 64 * 2**10
_SNIFF_LINES = 10
_LINE = re.compile(r"\S[^\r\n]*+")  # lines that are not empty
_FREQUENCIES = frozenset({"always", "hourly", "daily", "weekly", "monthly", "yearly", "never"})
_ROOTS = frozenset({"urlset", "sitemapindex"})
_VOCABULARY = Vocabulary(
    records=frozenset({"url", "sitemap"}),
    fields={"url": "bare", "sitemap": "bare"}
    | {name: name for name in ("loc", "lastmod", "changefreq", "priority")}
    | {"news:publication_date": "published", "xhtml:link": "alternate"},
    containers=frozenset({"news:news"}),
    namespaces={
        "http://www.google.com/schemas/sitemap-news/0.9": "news",
        "http://www.w3.org/1999/xhtml": "xhtml",
        "http://www.sitemaps.org/schemas/sitemap/0.9": "",
        "http://www.google.com/schemas/sitemap/0.84": "",
    },
)


@dataclass(frozen=True, slots=True)
class SitemapEntry:
    """A page that a sitemap lists, with the sitemap's hints on its changes, which are often wrong.

    ``changefreq`` is one of the seven words of the protocol or empty, ``priority`` is between 0 and 1.
    """

    loc: str
    lastmod_s: float | None = None
    changefreq: str = ""
    priority: float | None = None


@dataclass(frozen=True, slots=True)
class Sitemap:
    """A parsed sitemap: the pages it lists and the other sitemaps, each in file order."""

    entries: tuple[SitemapEntry, ...] = ()
    children: tuple[str, ...] = ()


def is_sitemap(body: bytes, content_type: str = "") -> bool:
    """Check whether the bytes seem to be a sitemap: its root element, or only URLs on the first lines.

    >>> is_sitemap(b"<urlset></urlset>", "text/html"), is_sitemap(b"http://example.org/"), is_sitemap(b"<html>")
    (True, True, False)
    """
    text = decode_xml(body, content_type, _SNIFF_BYTES)
    if _is_markup(text):
        return find_root(text) in _ROOTS
    lines = [line[0] for line in islice(_LINE.finditer(text), _SNIFF_LINES)]
    return bool(lines) and all(map(_parse_line, lines))


def parse_sitemap(body: bytes, url: str, content_type: str = "") -> Sitemap:
    """Parse a sitemap fetched from ``url``; empty if the bytes are no sitemap.

    >>> parse_sitemap(b"<urlset><url><loc>/a?b=1&amp;c</loc><priority>.5", "http://example.org/sitemap.xml").entries
    (SitemapEntry(loc='http://example.org/a?b=1&c', lastmod_s=None, changefreq='', priority=None),)
    """
    text = decode_xml(body, content_type)
    if not _is_markup(text):
        return Sitemap(tuple(_parse_lines(text)))
    document = parse_records(text, _VOCABULARY, MAX_ENTRIES)
    if document.root.name not in _ROOTS:
        return Sitemap()
    named = ((record, loc) for record in document.records for loc in _find_locations(record, url))
    located = list(islice(named, MAX_ENTRIES))
    entries = [_parse_entry(record, loc) for record, loc in located if record.name == "url"]
    return Sitemap(
        entries=tuple(islice(_add_alternates(entries, document, url), MAX_ENTRIES)),
        children=tuple(loc for record, loc in located if record.name == "sitemap"),
    )


def _is_markup(text: str) -> bool:
    return text.lstrip(" \t\r\n\ufeff").startswith("<")


def _find_locations(record: Record, url: str) -> Iterator[str]:
    """Yield the page locations (``loc``) of a sitemap record; the protocol allows one.

    Some generators forget to close records, others write the URL directly into the record, without a ``loc``.
    """
    written = [each.text for each in record.find_all("loc") if 0 < len(each.text) <= MAX_TEXT_LENGTH]
    bare = [] if written else [_parse_line(record.find_text("bare"))]
    return filter(None, [resolve(each, url) for each in written] + bare)


def _add_alternates(entries: list[SitemapEntry], document: Document, url: str) -> Iterator[SitemapEntry]:
    """Yield sitemap entries, then those of their copies in other languages that are not entries themselves.

    The date of a copy is unknown: generators give each language an entry with its own date.
    """
    yield from entries
    named = {entry.loc for entry in entries}
    for record in document.records:
        for link in record.find_all("alternate"):
            href = link.attributes.get("href", "")
            loc = resolve(href, url) if 0 < len(href) <= MAX_TEXT_LENGTH and link.attributes.get("hreflang") else None
            if loc is not None and loc not in named:
                named.add(loc)
                yield SitemapEntry(loc)


def _parse_entry(record: Record, loc: str) -> SitemapEntry:
    frequency = record.find_text("changefreq").lower()
    return SitemapEntry(
        loc=loc,
        lastmod_s=parse_date(record.find_text("lastmod") or record.find_text("published"), partial=True),
        changefreq=frequency if frequency in _FREQUENCIES else "",
        priority=_parse_priority(record.find_text("priority")),
    )


def _parse_priority(written: str) -> float | None:
    try:
        value = float(written)
    except ValueError:
        return None
    return value if 0 <= value <= 1 else None


def _parse_lines(text: str) -> Iterator[SitemapEntry]:
    for line in islice(_LINE.finditer(text), MAX_ENTRIES):
        loc = _parse_line(line[0])
        if loc is not None:
            yield SitemapEntry(loc)


def _parse_line(line: str) -> str | None:
    """Parse one line of a plain-text sitemap as a URL; None for a line of prose."""
    written = line.strip()
    if len(written) > MAX_TEXT_LENGTH or not written[:8].lower().startswith(("http://", "https://")):
        return None
    return resolve(written, None) if len(written.split(maxsplit=1)) == 1 else None
