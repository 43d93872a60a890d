"""The HTML tokenizer: split a page at its tags with one regular expression, in linear time.

No tree is built, because trees can be made to explode: by the rules of HTML every paragraph reopens the formatting
elements that the previous one left open, so 40 kB of ``<font>`` and ``<p>`` mean millions of elements, and each nested
``<div>`` costs a walk over all outer ones. Here every character is scanned a bounded number of times, whatever the
input, in the regex engine's own loop.

The tokens are those of the HTML standard, section 13.2.5, without scripting: quoted values may contain ``>``, comments
and the text of scripts and styles contain no tags, and a tag cut off by the end of the page does not count. An element
of raw text is one token including its contents; so is a drawing (``<svg>``), since its titles and scripts are not the
page's. A nested drawing, or one that is never closed, is markup like any other. A link with only words is one token
too, because pages are full of them.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

# Text before a tag; and everything in the tag between its angle brackets, None for a comment and the like. For an
# element that is one token it is everything up to the name of the end tag.
Token = tuple[str, str | None]

# Half a million tags are some hundred megabytes of tokens; the rest is not read.
MAX_TAGS = 500_000
RAW_NAMES = ("iframe", "noembed", "noframes", "script", "style", "textarea", "title", "xmp")
# Elements that are not allowed in a drawing and so end one that was left open (HTML 13.2.6.5), the common ones.
_NOT_IN_SVG = ("body", "div", "h[1-6]", "head", "img", "li", "ol", "p", "svg", "table", "ul")


def _match_any_case(name: str) -> str:
    """Return a regular expression for a tag name in both cases that the engine rejects by its first letter."""
    return re.sub(r"[a-z](?![^\[]*\])", lambda letter: f"[{letter[0]}{letter[0].upper()}]", name)


_S = r"[ \t\n\r\f]"
_NAME = r"[^ \t\n\r\f/>]"
_END = r"(?=[ \t\n\r\f/>])"
_VALUE = r"""(?:"[^"]*+(?:"|\Z)|'[^']*+(?:'|\Z)|[^ \t\n\r\f>]*+)"""
_ATTRIBUTES = rf"(?:[ \t\n\r\f/]++|{_NAME}[^ \t\n\r\f/>=]*+(?:{_S}*+={_S}*+{_VALUE})?+)*+"
_RAW = "|".join(
    rf"{name}{_END}{_ATTRIBUTES}>(?:[^<]++|<(?!/{name}{_END}))*+(?:</{name})?+"
    for name in map(_match_any_case, RAW_NAMES)
)
_SVG_ENDERS = "|".join(map(_match_any_case, _NOT_IN_SVG))
_SVG = _match_any_case("svg")
_SVG_ELEMENT = rf"{_SVG}{_END}{_ATTRIBUTES}(?<!/)>(?:[^<]++|<(?!/{_SVG}{_END}|(?:{_SVG_ENDERS}){_END}))*+</{_SVG}{_END}"
_PLAIN = rf"{_match_any_case('plaintext')}{_END}{_ATTRIBUTES}>(?s:.*+)"
_TAG = rf"/?+[a-zA-Z]{_NAME}*+"
_WHOLE = rf"(?=[inpstxINPSTX])(?:{_RAW}|{_SVG_ELEMENT}|{_PLAIN})"
# Most tags are lower case with double quotes, and their names show at once that they are not raw text.
_TIDY_ATTRIBUTE = r"""\ [a-z-]++="[^"]*+\""""
_TIDY_NAME = r"(?:[abcdefghjklmoqruvwyz]|i(?!f)|n(?!o)|p(?!l)|s(?!c|ty|v)|t(?!e|i))[a-z0-9]*+"
_TIDY = rf"/[a-z][a-z0-9]*+(?=>)|{_TIDY_NAME}(?:{_TIDY_ATTRIBUTE})*+(?=>)"
_TIDY_LINK = rf"a(?:{_TIDY_ATTRIBUTE})++>[^<]*+</a(?=>)"
_COMMENT = r"!--(?:-?>|(?:[^-]++|-(?!-!?>))*+(?:--!?>)?+)|[!?/][^>]*+>?+"
_AFTER_NAME = rf"[ \t\n\r\f/]{_ATTRIBUTES}"
_SPLIT = re.compile(
    rf"<(?:({_TIDY_LINK}|{_TIDY}|{_WHOLE}|{_TAG}(?:{_AFTER_NAME})?+)(?:>|{_AFTER_NAME}>?+|)|{_COMMENT})"
)
_TAGS = re.compile(rf"<(?:({_TAG})({_ATTRIBUTES})>|{_TAG}(?s:.*+)|{_COMMENT})")
_TAG_NAME = re.compile(_TAG)
_RAW_PARTS = re.compile(rf"([a-zA-Z]++)({_ATTRIBUTES})>")


class RawElement(NamedTuple):
    """An HTML element that is one token: its lower-case name, its raw attributes, and its contents."""

    name: str
    attributes: str
    body: str


def tokenize(text: str) -> tuple[Iterator[Token], str]:
    """Tokenize an HTML page into tags, each with the text before it; and the text after the last.

    >>> found, rest = tokenize("a<B id=x>b</B>c")
    >>> list(found), rest
    ([('a', 'B id=x'), ('b', '/B')], 'c')
    """
    parts = _SPLIT.split(text, MAX_TAGS)
    rest = parts.pop() if len(parts) < 2 * MAX_TAGS else _cut_at_tag(parts.pop())
    if parts and not rest and _is_cut(text, parts[-1]):
        rest, parts[-2:] = parts[-2], []
    each = iter(parts)
    return zip(each, each, strict=True), rest


def split_tag(tag: str) -> tuple[str, str]:
    """Split an HTML tag into its lower-case name, with "/" for an end tag, and its raw attributes.

    >>> split_tag("IMG/alt=x")
    ('img', '/alt=x')
    """
    name = _TAG_NAME.match(tag)
    return (name[0].lower(), tag[name.end() :]) if name else ("", "")


def _cut_at_tag(text: str) -> str:
    return text.partition("<")[0]


def _is_cut(text: str, tag: str | None) -> bool:
    """Check whether the end of the page cut off the last tag; raw text that never ends is not cut."""
    return tag is not None and text.endswith(tag) and split_raw(tag) is None


def split_raw(tag: str) -> RawElement | None:
    """Split a token that is a whole HTML element into its parts; None for a mere tag.

    >>> split_raw("Title lang=en>A page</Title")
    RawElement(name='title', attributes=' lang=en', body='A page')
    """
    start = _RAW_PARTS.match(tag) if ">" in tag else None
    if start is None:
        return None
    body = tag[start.end() :]
    closing = len(body) - len(start[1]) - 2
    return RawElement(start[1].lower(), start[2], body[:closing] if body[closing : closing + 2] == "</" else body)


def find_tags(drawing: str) -> list[tuple[str, str]]:
    """Find names and attributes of the tags in an ``<svg>`` drawing, where nothing is raw text."""
    return _TAGS.findall(drawing)
