"""The HTML tokenizer: split a page at its tags with one regular expression, in linear time; attributes and text.

No tree is built, because trees can be made to explode: by the rules of HTML every paragraph reopens the formatting
elements that the previous one left open, so 40 kB of ``<font>`` and ``<p>`` mean millions of elements, and each nested
``<div>`` costs a walk over all outer ones. Here every character is scanned a bounded number of times, whatever the
input, in the regex engine's own loop.

The tokens are those of the HTML standard, section 13.2.5, without scripting: quoted values may contain ``>``, comments
and the text of scripts and styles contain no tags, and a tag cut off by the end of the page does not count. An element
of raw text is one token including its contents; so is a drawing (``<svg>``), since its titles and scripts are not the
page's. A nested drawing, or one that is never closed, is markup like any other. A link with only words is one token
too, because pages are full of them.

Attributes and text follow different rules for character references (HTML 13.2.5.73): in running text ``&copy2026``
contains a sign, in an attribute ``?a=1&copy=2`` contains a parameter. Characters that no file can store (NUL, lone
surrogates) are replaced.
"""

import re
from collections.abc import Iterator
from html import unescape
from html.entities import html5
from typing import NamedTuple

import numpy as np

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
    tag = parts[-1] if parts and not rest else None
    if tag is not None and text.endswith(tag) and split_raw(tag) is None:
        rest, parts[-2:] = parts[-2], []  # the end of the page cut off the last tag; raw text that never ends is whole
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


# Limit per tag; megabytes of attributes are not genuine, and would be held in pieces while they are parsed.
MAX_ATTRIBUTES_LENGTH = 65_536
MAX_PORTION_LENGTH = 262_144
# Thousands in one portion are a table of one character, or an attack: few of them differ.
MANY_REFERENCES = 2_000

_VALUE_PARTS = r"""(?:"([^"]*+)(?:"|\Z)|'([^']*+)(?:'|\Z)|([^ \t\n\r\f>]*+))"""
_ATTRIBUTE = re.compile(rf"([^ \t\n\r\f/>][^ \t\n\r\f/>=]*+)(?:{_S}*+={_S}*+{_VALUE_PARTS})?+")
_REFERENCE = re.compile(r"&(?:#(?:x[0-9a-f]++|[0-9]++);?+|[a-z][a-z0-9]*+(?:;|(?!=)))", re.ASCII | re.IGNORECASE)
_SPACE_RUN = re.compile("  ++")
_TEMPLATE_TYPE = re.compile(
    r"text/(?:html|[\w.-]{0,40}?(?:template|tmpl|handlebars|mustache|jsrender|underscore|ejs)[\w.-]{0,40}+)"
)
_MAX_NUMBER_LENGTH = 12
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
# References that end in ";", as nearly all do: names, and the numbers of common characters.
_KNOWN_REFERENCES = {
    **{name[:-1]: sign for name, sign in html5.items() if name.endswith(";")},
    **{f"#{number}": unescape(f"&#{number};") for number in (*range(256), *range(0x2000, 0x2070))},
    "nbsp": " ",  # a no-break space is a space
}
# They occur inside words and would hide them from a search.
_INVISIBLE = ("\N{SOFT HYPHEN}", "\N{ZERO WIDTH SPACE}", "\N{ZERO WIDTH NO-BREAK SPACE}")


def parse_attributes(written: str) -> dict[str, str]:
    """Parse the attributes of an HTML tag, values by lower-case name; the first of equal names counts.

    >>> parse_attributes(" HREF='/x?a&amp;b' hidden href=no")
    {'href': '/x?a&b', 'hidden': ''}
    """
    found = _ATTRIBUTE.findall(written[:MAX_ATTRIBUTES_LENGTH])
    if len(written) > MAX_ATTRIBUTES_LENGTH:
        del found[-1:]  # truncated, it may mean something else
    found.reverse()
    values = {name.lower(): double or single or bare for name, double, single, bare in found}
    if "&" in written or "\0" in written or not written.isascii():
        return {name: _decode_value(value) for name, value in values.items()}
    return values


def _decode_value(text: str) -> str:
    """Decode the character references in the value of an HTML attribute."""
    return _replace_unstorable(_REFERENCE.sub(_decode_match, text) if "&" in text else text)


def decode_references(text: str) -> str:
    """Decode the character references in running HTML text.

    >>> decode_references("Q&ampA &lt;b&gt; &#9731; &amp;lt;")
    'Q&A <b> ☃ &lt;'
    """
    if "&" in text:
        text = "".join([_decode_portion(part) for part in _split_portions(text)])
    return _replace_unstorable(text)


def collapse_space(text: str) -> str:
    """Collapse each run of white space in HTML text to one space, and drop invisible characters in words."""
    return " ".join(_drop_invisible(text).split())


def collapse_lines(text: str) -> str:
    """Collapse white space in long HTML text without building a list of words; ends are not stripped."""
    text = (
        _drop_invisible(text)
        .replace("\r", "\n")
        .replace("\t", " ")
        .replace("\f", " ")
        .replace("\N{NO-BREAK SPACE}", " ")
    )
    if "\n" in text:
        text = " ".join(filter(None, map(str.strip, text.split("\n"))))
    # Most texts have no two spaces in a row, and searching for the pair would stop at every space.
    spaces = np.frombuffer(text.encode(errors="replace"), np.uint8) == ord(" ")
    return _SPACE_RUN.sub(" ", text) if np.any(spaces[1:] & spaces[:-1]) else text


def _drop_invisible(text: str) -> str:
    if not text.isascii():
        for sign in _INVISIBLE:
            if sign in text:  # five times as fast as replacing by nothing
                text = text.replace(sign, "")
    return text


def _split_portions(text: str) -> Iterator[str]:
    """Split HTML text into portions, cut before character references, to bound the memory of decoding."""
    start = 0
    while start < len(text):
        end = text.find("&", start + MAX_PORTION_LENGTH)
        yield text[start:end] if end > 0 else text[start:]
        start = end if end > 0 else len(text)


def _decode_portion(text: str) -> str:
    before, *parts = text.split("&")
    if len(parts) < MANY_REFERENCES:
        return before + "".join(map(_decode_reference, parts))
    known = {part: _decode_reference(part) for part in dict.fromkeys(parts)}
    return before + "".join(map(known.__getitem__, parts))


def _decode_reference(part: str) -> str:
    """Decode the text after an ampersand, character reference included."""
    name, semicolon, after = part.partition(";")
    if semicolon:
        sign = _KNOWN_REFERENCES.get(name)
        if sign is not None:
            return sign + after
    # Python refuses to parse numbers of thousands of digits.
    return _decode_number(part) if part[:1] == "#" else unescape(f"&{part}")


def _decode_number(part: str) -> str:
    found = _REFERENCE.match(f"&{part}")
    return _decode_match(found) + part[found.end() - 1 :] if found else f"&{part}"


def _replace_unstorable(text: str) -> str:
    if "\0" in text:
        text = text.replace("\0", _REPLACEMENT)
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            return text.encode(errors="replace").decode()
    return text


def _decode_match(reference: re.Match[str]) -> str:
    """Decode a character reference in an attribute; only a complete name counts, so ``?a=1&copy=2`` stays."""
    written = reference[0]
    if written[1] != "#":
        return html5.get(written[1:], written)
    return unescape(written) if len(written) <= _MAX_NUMBER_LENGTH else _REPLACEMENT


def is_template(script: RawElement) -> bool:
    """Check whether a ``<script>`` is a template: HTML that another script would show.

    >>> is_template(RawElement("script", ' type="text/x-handlebars-template"', "<p>Text"))
    True
    """
    if "text/" not in script.attributes:
        return False
    return bool(_TEMPLATE_TYPE.fullmatch(parse_attributes(script.attributes).get("type", "").strip().lower()))
