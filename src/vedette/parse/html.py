"""Title, links and robots meta of an HTML page.

Links are raw ``href`` values in the order of the page; whoever resolves them needs ``base``. A link that its author
marked ``nofollow`` is left out. The numbers of links and the lengths of strings are bounded.
"""

import re
from dataclasses import dataclass

from selectolax.lexbor import LexborHTMLParser

__all__ = ["Reading", "decode_text", "is_html", "read_html"]

MOST_LINKS = 10_000
LONGEST_HREF = 8_192
LONGEST_TITLE = 1_024

_CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset\s{0,9}=\s{0,9}["']?\s{0,9}([\w.:-]{1,40})""", re.IGNORECASE)
_HEADER_CHARSET = re.compile(r"""charset\s*=\s*["']?([\w.:-]{1,40})""", re.IGNORECASE)
_BYTE_ORDER_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xfe\xff", "utf-16-be"), (b"\xff\xfe", "utf-16-le"))
# What pages call Latin-1 or ASCII is Windows-1252 to every browser (WHATWG Encoding).
_LATIN = frozenset({"iso-8859-1", "iso8859-1", "latin-1", "latin1", "ascii", "us-ascii"})


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read off a page."""

    title: str
    links: tuple[str, ...]
    base: str | None
    robots_meta: tuple[tuple[str, str], ...]


def is_html(content_type: str, body: bytes) -> bool:
    """Whether a body is to be read as HTML, by its declared type, or by a look at it where none is declared."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind:
        return kind in {"text/html", "application/xhtml+xml"}
    return body[:512].lstrip().lower().startswith((b"<!doctype html", b"<html", b"<head", b"<body"))


def decode_text(body: bytes, content_type: str) -> str:
    """The text of a page: byte-order mark, then the header's charset, then the page's own, then UTF-8."""
    for mark, charset in _BYTE_ORDER_MARKS:
        if body.startswith(mark):
            return body[len(mark) :].decode(charset, "replace")
    named = _HEADER_CHARSET.search(content_type)
    inside = None if named else _CHARSET.search(body[:1024])
    charset = named[1] if named else inside[1].decode("ascii", "replace") if inside else "utf-8"
    charset = "windows-1252" if charset.lower() in _LATIN else charset
    try:
        return body.decode(charset, "replace")
    except (LookupError, ValueError):
        return body.decode("utf-8", "replace")


def read_html(text: str) -> Reading:
    """Title, links, base and robots meta of a page's text.

    >>> read_html("<title> A  page </title><a href='/b'>b</a><a rel='x nofollow' href='/c'>c</a>")
    Reading(title='A page', links=('/b',), base=None, robots_meta=())
    """
    tree = LexborHTMLParser(text)
    title = tree.css_first("title")
    base = tree.css_first("base[href]")
    return Reading(
        title=" ".join(title.text()[: 4 * LONGEST_TITLE].split())[:LONGEST_TITLE] if title else "",
        links=_links(tree),
        base=(base.attributes.get("href") or None) if base else None,
        robots_meta=_metas(tree),
    )


def _links(tree: LexborHTMLParser) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for node in tree.css("a[href], area[href]"):
        attributes = node.attributes
        href = attributes["href"] or ""
        if len(href) <= LONGEST_HREF and "nofollow" not in (attributes.get("rel") or "").lower().split():
            found[href] = None
        if len(found) >= MOST_LINKS:
            break
    return tuple(found)


def _metas(tree: LexborHTMLParser) -> tuple[tuple[str, str], ...]:
    pairs = ((node.attributes.get("name"), node.attributes["content"]) for node in tree.css("meta[name][content]"))
    return tuple((name, content or "") for name, content in pairs if name)[:100]
