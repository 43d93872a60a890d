"""The tags of a page that a crawler acts on, found in one pass and in linear time.

No tree is built, because trees can be made to explode: by the rules of HTML every paragraph reopens the formatting
elements that the one before left open, so that 40 kB of ``<font>`` and ``<p>`` stand for millions of elements, and
each ``<div>`` inside others is paid for with a walk over all of them. Here every character is looked at a bounded
number of times, whatever it says.

The tokens are those of the HTML standard, section 13.2.5, without scripting: quoted values may hold ``>``, comments
and the text of scripts and styles hold no tags, a tag that the end of the page cuts off does not count. The contents
of ``<template>`` are inert and left out.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape
from html.entities import html5

__all__ = ["Tag", "tags"]

# Text that holds no tags, up to the element's own end tag.
_RAW = frozenset({"iframe", "noembed", "noframes", "plaintext", "script", "style", "textarea", "title", "xmp"})
# Spelt out in both cases: the engine then skips most alternatives by their first letter.
_NAMES = "|".join(
    "".join(f"[{letter}{letter.upper()}]" for letter in name)
    for name in sorted({"a", "area", "base", "link", "meta", "svg", "template", *_RAW})
)

_S = r"[ \t\n\r\f]"
_NAME = r"[^ \t\n\r\f/>]"
_VALUE = r"""(?:"[^"]*+(?:"|\Z)|'[^']*+(?:'|\Z)|[^ \t\n\r\f>]*+)"""
_ATTRIBUTES = rf"(?:[ \t\n\r\f/]++|{_NAME}[^ \t\n\r\f/>=]*+(?:{_S}*+={_S}*+{_VALUE})?+)*+"
_OURS = rf"(?:{_NAMES})(?=[ \t\n\r\f/>])"
# What is passed over inside the engine: text, tags of other names, declarations, and a "<" that is none of these.
_OTHERS = rf"(?:[^<]++|<(?!!--|/?+{_OURS})(?:/?+[a-zA-Z]{_NAME}*+{_ATTRIBUTES}>?+|[!?/][^>]*+>?+)?+)*+"
_NEXT = re.compile(rf"{_OTHERS}<(?:!--|(?P<end>/?+)(?P<name>{_OURS})(?P<attributes>{_ATTRIBUTES})(?P<closed>>?+))")
_ATTRIBUTE = re.compile(rf"({_NAME}[^ \t\n\r\f/>=]*+)(?:{_S}*+={_S}*+({_VALUE}))?+")
_RAW_ENDS = {
    name: re.compile(rf"</{name}(?=[ \t\n\r\f/>])", re.ASCII | re.IGNORECASE) for name in sorted(_RAW - {"plaintext"})
}
_COMMENT_END = re.compile(r"--!?>")
_REFERENCE = re.compile(r"&(?:#(?:x[0-9a-f]++|[0-9]++);?+|[a-z][a-z0-9]*+(?:;|(?!=)))", re.ASCII | re.IGNORECASE)
_LONGEST_NUMBER = 12
_QUOTES = frozenset("\"'")


@dataclass(frozen=True, slots=True)
class Tag:
    """A start tag; ``raw_text`` is what stands in it where it is a title, ``in_svg`` whether it is part of a drawing.

    ``raw`` has the attributes by lower-case name; references are read when somebody asks.
    """

    name: str
    raw: dict[str, str]
    raw_text: str
    in_svg: bool

    @property
    def text(self) -> str:
        """The text of a title."""
        return _plain(self.raw_text)

    def get(self, name: str) -> str | None:
        """The value of an attribute, empty where it has none."""
        value = self.raw.get(name)
        return value if value is None else _plain(value[1:-1] if value[:1] in _QUOTES else value)


def tags(text: str) -> Iterator[Tag]:
    """Every ``a``, ``area``, ``base``, ``link``, ``meta`` and ``title`` of a page, in its order.

    >>> [(tag.name, tag.get("href")) for tag in tags("<!-- <a href='/z'> --><A HREF='/x?a&amp;b'>")]
    [('a', '/x?a&b')]
    """
    position, drawings, templates = 0, 0, 0
    while found := _NEXT.match(text, position):
        position = found.end()
        name, step = (found["name"] or "").lower(), -1 if found["end"] else 1
        if not name:
            position = _after_comment(text, position)
        elif name == "svg":
            drawings = max(drawings + step * (not found["attributes"].endswith("/")), 0)
        elif name == "template":
            templates = max(templates + step, 0)
        elif step > 0 and found["closed"]:
            inside = position
            if name in _RAW and not drawings:
                position = _end_of_raw(text, name, position)
            if not templates and (name == "title" or name not in _RAW):
                yield Tag(name, _attributes(found["attributes"]), text[inside:position], drawings > 0)


def _after_comment(text: str, position: int) -> int:
    """Where a comment ends, ``<!-->`` and ``<!--->`` included; one that is never closed takes the rest of the page."""
    for short in (">", "->"):
        if text.startswith(short, position):
            return position + len(short)
    end = _COMMENT_END.search(text, position)
    return end.end() if end else len(text)


def _end_of_raw(text: str, name: str, position: int) -> int:
    end = _RAW_ENDS[name].search(text, position) if name in _RAW_ENDS else None
    return end.start() if end else len(text)


def _attributes(text: str) -> dict[str, str]:
    """Values as written, by lower-case name; of two attributes with one name the first counts."""
    found: dict[str, str] = {}
    for name, value in _ATTRIBUTE.findall(text):
        found.setdefault(name.lower(), value)
    return found


def _plain(text: str) -> str:
    """Text without character references, NUL and lone surrogates."""
    if "&" in text:
        text = _REFERENCE.sub(_character, text)
    if "\0" in text:
        text = text.replace("\0", "\N{REPLACEMENT CHARACTER}")
    return text if text.isascii() else text.encode(errors="replace").decode()


def _character(reference: re.Match[str]) -> str:
    """A name counts only as a whole, else the parameter in ``?a=1&copy=2`` would become a sign."""
    written = reference[0]
    if written[1] != "#":
        return html5.get(written[1:], written)
    return unescape(written) if len(written) <= _LONGEST_NUMBER else "\N{REPLACEMENT CHARACTER}"
