"""Parse HTML attributes and decode character references in attributes and text.

The two follow different rules for character references (HTML 13.2.5.73): in running text ``&copy2026`` contains a sign,
in an attribute ``?a=1&copy=2`` contains a parameter. Characters that no file can store (NUL, lone surrogates) are
replaced.
"""

import re
from collections.abc import Iterator
from html import unescape
from html.entities import html5

import numpy as np

# Limit per tag; megabytes of attributes are not genuine, and would be held in pieces while they are parsed.
MAX_ATTRIBUTES_LENGTH = 65_536
MAX_PORTION_LENGTH = 262_144
# Thousands in one portion are a table of one character, or an attack: few of them differ.
MANY_REFERENCES = 2_000

_S = r"[ \t\n\r\f]"
_VALUE = r"""(?:"([^"]*+)(?:"|\Z)|'([^']*+)(?:'|\Z)|([^ \t\n\r\f>]*+))"""
_ATTRIBUTE = re.compile(rf"([^ \t\n\r\f/>][^ \t\n\r\f/>=]*+)(?:{_S}*+={_S}*+{_VALUE})?+")
_REFERENCE = re.compile(r"&(?:#(?:x[0-9a-f]++|[0-9]++);?+|[a-z][a-z0-9]*+(?:;|(?!=)))", re.ASCII | re.IGNORECASE)
_SPACE_RUN = re.compile("  ++")
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
    return _SPACE_RUN.sub(" ", text) if _has_runs(text) else text


def _has_runs(text: str) -> bool:
    """Check whether a space follows a space in HTML text; searching for the pair would stop at every space."""
    spaces = np.frombuffer(text.encode(errors="replace"), np.uint8) == ord(" ")
    return int(np.count_nonzero(spaces[1:] & spaces[:-1])) > 0


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
