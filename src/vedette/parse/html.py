"""Title, links, feeds and robots meta of an HTML page.

Links are raw ``href`` values in the order of the page; whoever resolves them needs ``base``. A link that its author
marked ``nofollow`` is left out. The numbers of links and the lengths of strings are bounded.
"""

import re
from dataclasses import dataclass

from vedette.parse.charsets import codec_of
from vedette.parse.tags import Tag, tags

__all__ = ["Reading", "decode_text", "is_html", "read_html"]

MOST_LINKS = 10_000
MOST_METAS = 100
MOST_FEEDS = 20
FEED_TYPES = frozenset({"application/rss+xml", "application/atom+xml", "application/rdf+xml"})
LONGEST_HREF = 8_192
LONGEST_TITLE = 1_024

_CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset\s{0,9}=\s{0,9}["']?\s{0,9}([\w.:-]{1,40})""", re.IGNORECASE)
_HEADER_CHARSET = re.compile(r"""charset\s*+=\s*+["']?([\w.:-]{1,40})""", re.IGNORECASE)
_BYTE_ORDER_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xfe\xff", "utf-16-be"), (b"\xff\xfe", "utf-16-le"))


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read off a page."""

    title: str
    links: tuple[str, ...]
    base: str | None
    robots_meta: tuple[tuple[str, str], ...]
    feeds: tuple[str, ...] = ()


def is_html(content_type: str, body: bytes) -> bool:
    """Whether a body is to be read as HTML, by its declared type, or by a look at it where none is declared."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind:
        return kind in {"text/html", "application/xhtml+xml"}
    return (
        body[:512]
        .removeprefix(b"\xef\xbb\xbf")
        .lstrip()
        .lower()
        .startswith((b"<!doctype html", b"<html", b"<head", b"<body"))
    )


def decode_text(body: bytes, content_type: str) -> str:
    """The text of a page: byte-order mark, then the header's charset, then the page's own, then UTF-8."""
    for mark, codec in _BYTE_ORDER_MARKS:
        if body.startswith(mark):
            return body[len(mark) :].decode(codec, "replace")
    named = _HEADER_CHARSET.search(content_type)
    codec = (codec_of(named[1]) if named else None) or _declared(body) or "utf-8"
    return body.decode(codec, "replace")


def _declared(body: bytes) -> str | None:
    """What the page says of itself; it cannot be UTF-16, or this could not have been read (WHATWG HTML 13.2.3.2)."""
    inside = _CHARSET.search(body[:1024])
    codec = codec_of(inside[1].decode("latin-1")) if inside else None
    return "utf-8" if codec in {"utf-16-le", "utf-16-be"} else codec


def read_html(text: str) -> Reading:
    """Title, links, base and robots meta of a page's text.

    >>> read_html("<title> A  page </title><a href='/b'>b</a><a rel='x nofollow' href='/c'>c</a>")
    Reading(title='A page', links=('/b',), base=None, robots_meta=(), feeds=())
    """
    title = base = None
    links: dict[str, None] = {}
    metas: list[tuple[str, str]] = []
    feeds: dict[str, None] = {}
    for tag in tags(text):
        if tag.name in {"a", "area"}:
            _add_link(tag, links)
        elif tag.name == "link":
            _add_feed(tag, feeds)
        elif tag.name == "meta":
            _add_meta(tag, metas)
        elif tag.name == "base":
            base = _href(tag) if base is None else base
        elif title is None and not tag.in_svg:
            title = _title(tag)
    return Reading(title or "", tuple(links), base or None, tuple(metas), tuple(feeds))


def _add_link(tag: Tag, links: dict[str, None]) -> None:
    href = _href(tag) if len(links) < MOST_LINKS else None
    if href is not None and "nofollow" not in (tag.get("rel") or "").lower().split():
        links[href] = None


def _add_feed(tag: Tag, feeds: dict[str, None]) -> None:
    """Feeds that the page announces (RSS Autodiscovery)."""
    kind = (tag.get("type") or "").partition(";")[0].strip().lower()
    href = _href(tag) if len(feeds) < MOST_FEEDS else None
    if href and kind in FEED_TYPES and "alternate" in (tag.get("rel") or "").lower().split():
        feeds[href] = None


def _add_meta(tag: Tag, metas: list[tuple[str, str]]) -> None:
    name, content = tag.get("name"), tag.get("content")
    if name and content is not None and len(metas) < MOST_METAS:
        metas.append((name, content))


def _href(tag: Tag) -> str | None:
    """Where a link or base points to; a longer one is nobody's address, and would be paid for with every link."""
    href = tag.get("href")
    return href if href is not None and len(href) <= LONGEST_HREF else None


def _title(tag: Tag) -> str:
    return " ".join(tag.text[: 4 * LONGEST_TITLE].split())[:LONGEST_TITLE]
