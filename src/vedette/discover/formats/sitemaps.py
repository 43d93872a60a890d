"""Which pages does a site name itself? Sitemaps and sitemap indexes, as XML or as lines of text (sitemaps.org 0.9).

Everything is read from the bytes: a wrong Content-Type or namespace, a missing prefix declaration or a second packing
by gzip changes nothing. What is broken costs only itself, and limits bound the rest: bytes, entries, length of a field.
``xml_events`` says why there is a scanner of our own under this.

Locations are absolute http(s) URLs as ``normalize.resolve`` writes them; whatever is none is left out. Whether a
sitemap may speak for them is the caller's question. A feed may serve as a sitemap too: ``feeds.is_feed`` knows.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from vedette.discover.formats.xml_reader import LONGEST_TEXT, Record, Vocabulary, read_records, root_of, text_of
from vedette.discover.urls.normalize import resolve
from vedette.timeutil import parse_feed_date

__all__ = ["MOST_ENTRIES", "Entry", "Sitemap", "is_sitemap", "read_sitemap"]

MOST_ENTRIES = 50_000  # sitemaps.org, for URLs and for the sitemaps of an index
_LOOK_BYTES = 64 * 2**10
_LOOK_LINES = 10
_LINE = re.compile(r"\S[^\r\n]*+")  # lines that are not empty
_FREQUENCIES = frozenset({"always", "hourly", "daily", "weekly", "monthly", "yearly", "never"})
_ROOTS = frozenset({"urlset", "sitemapindex"})
_VOCABULARY = Vocabulary(
    records=frozenset({"url", "sitemap"}),
    fields={"url": "bare", "sitemap": "bare"} | {name: name for name in ("loc", "lastmod", "changefreq", "priority")},
    namespaces={
        "http://www.sitemaps.org/schemas/sitemap/0.9": "",
        "http://www.google.com/schemas/sitemap/0.84": "",
    },
)


@dataclass(frozen=True, slots=True)
class Entry:
    """A page that a sitemap names, and what it says of it: hints, often wrong.

    ``changefreq`` is one of the seven words of the protocol or empty, ``priority`` lies in 0 to 1.
    """

    loc: str
    lastmod_s: float | None = None
    changefreq: str = ""
    priority: float | None = None


@dataclass(frozen=True, slots=True)
class Sitemap:
    """The pages that a sitemap names, and the other sitemaps, each in the order of the file."""

    entries: tuple[Entry, ...] = ()
    children: tuple[str, ...] = ()


def is_sitemap(body: bytes, content_type: str = "") -> bool:
    """Whether the bytes look like a sitemap: its root element, or nothing but URLs on the first lines.

    >>> is_sitemap(b"<urlset></urlset>", "text/html"), is_sitemap(b"http://example.org/"), is_sitemap(b"<html>")
    (True, True, False)
    """
    text = text_of(body, content_type, _LOOK_BYTES)
    if _is_markup(text):
        return root_of(text) in _ROOTS
    lines = [line[0] for line in islice(_LINE.finditer(text), _LOOK_LINES)]
    return bool(lines) and all(map(_line_url, lines))


def read_sitemap(body: bytes, url: str, content_type: str = "") -> Sitemap:
    """What a sitemap fetched from ``url`` names; empty where the bytes are no sitemap.

    >>> read_sitemap(b"<urlset><url><loc>/a?b=1&amp;c</loc><priority>.5", "http://example.org/sitemap.xml").entries
    (Entry(loc='http://example.org/a?b=1&c', lastmod_s=None, changefreq='', priority=None),)
    """
    text = text_of(body, content_type)
    if not _is_markup(text):
        return Sitemap(tuple(_text_entries(text)))
    document = read_records(text, _VOCABULARY, MOST_ENTRIES)
    if document.root.name not in _ROOTS:
        return Sitemap()
    named = ((record, loc) for record in document.records for loc in _locs(record, url))
    located = list(islice(named, MOST_ENTRIES))
    return Sitemap(
        entries=tuple(_entry(record, loc) for record, loc in located if record.name == "url"),
        children=tuple(loc for record, loc in located if record.name == "sitemap"),
    )


def _is_markup(text: str) -> bool:
    return text.lstrip(" \t\r\n\ufeff").startswith("<")


def _locs(record: Record, url: str) -> Iterator[str]:
    """The locations of a record: one by the protocol.

    Some generators forget to close records, others write the URL straight into the record, without a ``loc``.
    """
    written = [each.text for each in record.all("loc") if 0 < len(each.text) <= LONGEST_TEXT]
    bare = [] if written else [_line_url(record.text("bare"))]
    return filter(None, [resolve(each, url) for each in written] + bare)


def _entry(record: Record, loc: str) -> Entry:
    frequency = record.text("changefreq").lower()
    return Entry(
        loc=loc,
        lastmod_s=parse_feed_date(record.text("lastmod")),
        changefreq=frequency if frequency in _FREQUENCIES else "",
        priority=_priority(record.text("priority")),
    )


def _priority(written: str) -> float | None:
    try:
        value = float(written)
    except ValueError:
        return None
    return value if 0 <= value <= 1 else None


def _text_entries(text: str) -> Iterator[Entry]:
    for line in islice(_LINE.finditer(text), MOST_ENTRIES):
        loc = _line_url(line[0])
        if loc is not None:
            yield Entry(loc)


def _line_url(line: str) -> str | None:
    """The URL that a line of text is; lines of prose are none."""
    written = line.strip()
    if len(written) > LONGEST_TEXT or not written[:8].lower().startswith(("http://", "https://")):
        return None
    return resolve(written, None) if len(written.split(maxsplit=1)) == 1 else None
