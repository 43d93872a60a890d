r"""A forgiving reader of XML: tags and texts in the order of the document.

Sitemaps and feeds are XML by name, and written by template engines: bare ampersands in URLs, HTML's entity names, tags
that nobody closes, prefixes that nobody declares, blank lines before the declaration. A conforming parser has to stop
at the first of these and loses every page behind it. An HTML parser takes ``<link>`` for an element without content.
So this is a scanner of our own: a pattern cuts the text into tokens, each character is looked at a bounded number of
times, and nothing is an error.

There is no document type: declarations are skipped, so no entity is ever declared, expanded or loaded. The entities of
XML and HTML are replaced once, and only when they end in a semicolon: ``?a=1&copy=2`` is a query, not a copyright.
"""

import re
from collections.abc import Iterator
from html import unescape
from html.entities import html5
from itertools import islice
from typing import Literal

__all__ = ["Event", "attributes_of", "expanded", "scan"]

Kind = Literal["open", "close", "text"]
Event = tuple[Kind, str, str]

# Possessive throughout. What may run past the next "<" (comment, CDATA, document type) takes all that it has looked at
# even where its end is missing, so no character is ever scanned again and again.
_TOKEN = re.compile(
    r"""(?P<text> [^<]++ )
      | <(?P<slash>/?) (?P<name> [^\s<>/="'?!] [^\s<>/="']*+ )
        (?P<attributes> (?: [^<>"']++ | "[^"<]*+" | '[^'<]*+' )*+ (?=>) | [^<>]*+ ) >
      | <!\[CDATA\[ (?P<verbatim> [^\]]*+ (?: \](?!\]>) [^\]]*+ )*+ ) (?:\]\]>)?
      | <!-- [^-]*+ (?: -(?!->) [^-]*+ )*+ (?:-->)?
      | <\? [^<>]*+ >?
      | <! [^\[<>]*+ (?: \[ [^\]]*+ \]? [^<>]*+ )?+ >?
      | (?P<stray> < )
    """,
    re.VERBOSE,
)
_MOST_TOKENS = 2_000_000  # some 50 000 records with 40 tags and texts each; small packed bodies can hide many more
_MOST_ATTRIBUTES = 64
_ATTRIBUTE = re.compile(r"""([^\s=<>"'/]++)(?:\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s"'<>]++)))?+""")
_ENTITY = re.compile(r"&(?:\#[0-9]{1,7}|\#[xX][0-9a-fA-F]{1,6}|([A-Za-z][A-Za-z0-9]{1,31}));")


def scan(text: str) -> Iterator[Event]:
    """Tags as ``("open", name, attributes)`` and ``("close", name, "")``, and texts with their entities replaced.

    Names are in lower case, since feeds disagree on theirs. Attributes are raw text: few tags need them.

    >>> list(scan('<Loc a="1">b &amp; c</Loc><br/>'))
    [('open', 'loc', ' a="1"'), ('text', 'b & c', ''), ('close', 'loc', ''), ('open', 'br', ''), ('close', 'br', '')]
    """
    for token in islice(_TOKEN.finditer(text), _MOST_TOKENS):
        kind = token.lastgroup
        if kind == "text":
            yield "text", expanded(token[0]), ""
        elif kind == "attributes":
            slash, name, attributes = token.group("slash", "name", "attributes")
            name = name.lower()
            empty = attributes.endswith("/")
            if not slash:
                yield "open", name, attributes[:-1] if empty else attributes
            if slash or empty:
                yield "close", name, ""
        elif kind is not None:
            yield "text", token[kind], ""


def attributes_of(raw: str) -> dict[str, str]:
    """Attributes by their names in lower case; the first of equal names counts.

    >>> attributes_of(' rel="self" HREF=/feed?a=1&amp;b=2')
    {'rel': 'self', 'href': '/feed?a=1&b=2'}
    """
    found: dict[str, str] = {}
    if "=" not in raw:  # most tags of a sitemap; an attribute without value says nothing that is asked for
        return found
    for each in islice(_ATTRIBUTE.finditer(raw), _MOST_ATTRIBUTES):
        name, double, single, bare = each.groups("")
        found.setdefault(name.lower(), expanded(double or single or bare).strip())
    return found


def expanded(text: str) -> str:
    """The text with each entity replaced, once; an unknown one stays as it is.

    >>> expanded("&eacute; &#8364; &amp;amp; &secret; ?a&copy=1")
    'é € &amp; &secret; ?a&copy=1'
    """
    return _ENTITY.sub(_character, text) if "&" in text else text


def _character(entity: re.Match[str]) -> str:
    name = entity[1]
    return unescape(entity[0]) if name is None else html5.get(name + ";", entity[0])
