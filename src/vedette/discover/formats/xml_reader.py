r"""Parse XML leniently, for sitemaps and feeds: tags and texts in document order.

Sitemaps and feeds are nominally XML, but written by template engines: bare ampersands in URLs, HTML's entity names,
unclosed tags, undeclared prefixes, blank lines before the declaration. A conforming parser has to stop at the first of
these and loses every page after it. An HTML parser treats ``<link>`` as an element without content. So this is our own
scanner: a pattern splits the text into tokens, each character is scanned a bounded number of times, and nothing is an
error.

There is no document type: declarations are skipped, so no entity is ever declared, expanded or loaded. The entities of
XML and HTML are replaced once, and only if they end in a semicolon: ``?a=1&copy=2`` is a query, not a copyright.

Expat was tried instead (``pytest tests/discover/formats tests/properties -k "sitemap or feed"``). It fails 18 of 152
tests, and one bare ampersand in a sitemap of 50 000 URLs loses all of them. It is three times as fast on feeds, and as
fast on sitemaps. The expat 2.5 of Python 3.11 takes 17 s for an unclosed comment of 32 MiB fed in chunks.
"""

import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html import unescape
from html.entities import html5
from itertools import islice
from typing import Literal, NamedTuple

Kind = Literal["open", "close", "text"]
Event = tuple[Kind, str, str]

# Possessive throughout. Constructs that may run past the next "<" (comment, CDATA, document type) consume everything
# scanned even if their end is missing, so no character is scanned repeatedly.
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
_MAX_TOKENS = 2_000_000  # about 50 000 records with 40 tags and texts each; small compressed bodies can hold more
_MAX_ATTRIBUTES = 64
_ATTRIBUTE = re.compile(r"""([^\s=<>"'/]++)(?:\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s"'<>]++)))?+""")
_ENTITY = re.compile(r"&(?:\#[0-9]{1,7}|\#[xX][0-9a-fA-F]{1,6}|([A-Za-z][A-Za-z0-9]{1,31}));")


def scan(text: str) -> Iterator[Event]:
    """Scan XML into events: ``("open", name, attributes)``, ``("close", name, "")``, and texts without entities.

    Names are in lower case, since feeds disagree on theirs. Attributes are raw text: few tags need them.

    >>> list(scan('<Loc a="1">b &amp; c</Loc><br/>'))
    [('open', 'loc', ' a="1"'), ('text', 'b & c', ''), ('close', 'loc', ''), ('open', 'br', ''), ('close', 'br', '')]
    """
    for token in islice(_TOKEN.finditer(text), _MAX_TOKENS):
        kind = token.lastgroup
        if kind == "text":
            yield "text", expand_entities(token[0]), ""
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


def parse_attributes(raw: str) -> dict[str, str]:
    """Parse the attributes of an XML tag, by their names in lower case; the first of equal names counts.

    >>> parse_attributes(' rel="self" HREF=/feed?a=1&amp;b=2')
    {'rel': 'self', 'href': '/feed?a=1&b=2'}
    """
    found: dict[str, str] = {}
    if "=" not in raw:  # most tags of a sitemap; an attribute without value is never needed
        return found
    for each in islice(_ATTRIBUTE.finditer(raw), _MAX_ATTRIBUTES):
        name, double, single, bare = each.groups("")
        found.setdefault(name.lower(), expand_entities(double or single or bare).strip())
    return found


def expand_entities(text: str) -> str:
    """Expand each XML or HTML entity in a text, once; an unknown one stays as it is.

    >>> expand_entities("&eacute; &#8364; &amp;amp; &secret; ?a&copy=1")
    'é € &amp; &secret; ?a&copy=1'
    """
    return _ENTITY.sub(_decode_entity, text) if "&" in text else text


def _decode_entity(entity: re.Match[str]) -> str:
    name = entity[1]
    return unescape(entity[0]) if name is None else html5.get(name + ";", entity[0])


# A record (``url``, ``item``, ``entry``) contains fields (``loc``, ``link``); fields outside every record belong to the
# head. Any other element in a record is skipped with its content, so the ``title`` of a channel's image is not the
# channel's. A record or a field also ends where the next one begins, or its parent closes. A field cut off by the end
# of the document is dropped, since half a URL leads elsewhere; the record around it stays. Names are matched without
# namespaces first: a prefix equal to the root's counts as none. Other prefixes mean what the document declares, or
# themselves if it declares nothing.


MAX_TEXT_LENGTH = 8_192  # a longer field is cut one character later, so that its reader can detect it
_MAX_FIELDS = 100  # of one record


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The XML element names to read: records, fields with their meanings, and namespaces with short names.

    ``containers`` hold records and fields without being one, as a channel does; the root always does. A record with the
    same name as a field begins with that field: text before anything else in it.
    """

    records: frozenset[str]
    fields: Mapping[str, str]
    containers: frozenset[str] = frozenset()
    namespaces: Mapping[str, str] = field(default_factory=dict)


class Field(NamedTuple):
    """One field of an XML record: its meaning, its stripped text, its attributes by lower-case name."""

    meaning: str
    text: str
    attributes: Mapping[str, str]


class Record(NamedTuple):
    """One XML record, such as a feed item or a sitemap URL: its name, its attributes, its fields in order."""

    name: str
    attributes: Mapping[str, str]
    fields: tuple[Field, ...]

    def find_all(self, meaning: str) -> Iterator[Field]:
        """Yield the fields of this XML record that have this meaning."""
        return (each for each in self.fields if each.meaning == meaning)

    def find_text(self, meaning: str) -> str:
        """Return the first text of this XML record that has this meaning and is not empty."""
        for each in self.fields:
            if each.meaning == meaning and each.text:
                return each.text
        return ""


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed XML document: the root as a record whose fields are the head, and the records."""

    root: Record
    records: tuple[Record, ...]


def find_root(text: str) -> str:
    """Return the name of an XML document's root element, in lower case and without its prefix; empty for none.

    >>> find_root("<?xml version='1.0'?><!-- made by hand --><rdf:RDF>")
    'rdf'
    """
    opened = (name for kind, name, _ in scan(text) if kind == "open")
    return next(opened, "").rpartition(":")[2]


def parse_records(text: str, vocabulary: Vocabulary, most: int) -> Document:
    """Parse the head and at most ``most`` records of an XML document."""
    reader = _RecordBuilder(vocabulary)
    for kind, name, attributes in scan(text):
        if kind == "text":
            if reader.is_capturing:
                reader.write(name)
        elif kind == "open":
            reader.open(name, attributes)
        else:
            reader.close(name)
        if len(reader.records) >= most:
            break
    return reader.build_document()


class _RecordBuilder:
    """The state of parsing records from an XML document: the open elements, and the results so far."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.records: list[Record] = []
        self.is_capturing = False  # texts outside of fields are most of a document, and not worth a call
        self._vocabulary = vocabulary
        self._prefixes: dict[str, str] = {}
        self._root: tuple[str, str] | None = None
        self._head: list[Field] = []
        self._record: tuple[str, str] | None = None
        self._fields: list[Field] = []
        self._field: tuple[str, str] | None = None
        self._texts: list[str] = []
        self._room = 0
        self._skipped = ""
        self._depth = 0

    def open(self, written: str, attributes: str) -> None:
        if "xmlns:" in attributes:
            self._learn_prefixes(attributes)
        name = self._resolve_name(written)
        if self._field is not None and self._field[0] in self._vocabulary.records:
            self._end_field()
        if self._root is None:
            self._begin_root(written, attributes)
        elif name in self._vocabulary.records:
            self._end_record()
            self._record = (name, attributes)
            if name in self._vocabulary.fields:
                self._begin_field(name, "")
        elif self._skipped:
            self._depth += name == self._skipped
        elif name in self._vocabulary.fields:
            self._end_field()
            self._begin_field(name, attributes)
        elif self._field is None and name not in self._vocabulary.containers:
            self._skipped, self._depth = name, 1

    def close(self, written: str) -> None:
        name = self._resolve_name(written)
        if name in self._vocabulary.records or self._root is None or name == self._root[0]:
            self._end_record()
        elif self._skipped:
            self._depth -= name == self._skipped
            self._skipped = self._skipped if self._depth else ""
        elif self._field is not None and name == self._field[0]:
            self._end_field()

    def write(self, text: str) -> None:
        self._texts.append(text[: self._room])
        self._room -= len(self._texts[-1])
        self.is_capturing = self._room > 0

    def build_document(self) -> Document:
        self._drop_field()
        self._end_record()
        name, attributes = self._root or ("", "")
        return Document(Record(name, parse_attributes(attributes), tuple(self._head)), tuple(self.records))

    def _begin_root(self, written: str, attributes: str) -> None:
        prefix, _, local = written.rpartition(":")
        self._prefixes[prefix] = ""
        self._root = (local, attributes)

    def _learn_prefixes(self, attributes: str) -> None:
        for name, address in parse_attributes(attributes).items():
            meaning = self._vocabulary.namespaces.get(address)
            if name.startswith("xmlns:") and meaning is not None:
                self._prefixes.setdefault(name.removeprefix("xmlns:"), meaning)

    def _resolve_name(self, written: str) -> str:
        if ":" not in written:
            return written
        prefix, _, local = written.rpartition(":")
        meaning = self._prefixes.get(prefix, prefix)
        return f"{meaning}:{local}" if meaning else local

    def _begin_field(self, name: str, attributes: str) -> None:
        self._field, self._room, self.is_capturing = (name, attributes), MAX_TEXT_LENGTH + 1, True

    def _end_field(self) -> None:
        if self._field is None:
            return
        name, attributes = self._field
        fields = self._head if self._record is None else self._fields
        text = "".join(self._texts).strip()
        if (text or attributes) and len(fields) < _MAX_FIELDS:
            fields.append(Field(self._vocabulary.fields[name], text, parse_attributes(attributes)))
        self._drop_field()

    def _drop_field(self) -> None:
        self._field, self.is_capturing = None, False
        self._texts.clear()

    def _end_record(self) -> None:
        self._end_field()
        self._skipped = ""
        if self._record is not None:
            name, attributes = self._record
            self.records.append(Record(name, parse_attributes(attributes), tuple(self._fields)))
        self._record = None
        self._fields.clear()


# A ``.gz`` file is the content itself here, not a transfer coding, so it is unpacked whatever the headers say.
# Everything unpacked before an error or the limit is kept: half a sitemap still lists pages. The encoding is taken from
# the first available source: byte-order mark, XML declaration, Content-Type, UTF-8. The declaration comes before the
# header because an author writes the former and a server's default is the latter. Nothing here raises.


MAX_BYTES = 50 * 2**20  # what sitemaps.org allows for an unpacked sitemap
_MAX_MEMBERS = 1_000  # gzip files may be chained; a hostile chain has millions of links
_CHUNK_BYTES = 16 * 2**10
_GZIP_MAGIC = b"\x1f\x8b"
_GZIP = 16 + zlib.MAX_WBITS

# Longer marks first: that of UTF-32 begins with that of UTF-16. The last four are a "<" without a mark.
_BYTE_SIGNATURES = (
    (b"\xff\xfe\x00\x00", "utf-32-le"),
    (b"\x00\x00\xfe\xff", "utf-32-be"),
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
    (b"<\x00\x00\x00", "utf-32-le"),
    (b"\x00\x00\x00<", "utf-32-be"),
    (b"<\x00", "utf-16-le"),
    (b"\x00<", "utf-16-be"),
)
_DECLARED = re.compile(rb"""\s{0,99}<\?xml\s[^<>]{0,200}?encoding\s{0,9}=\s{0,9}["']([\w.:-]{1,40})["']""")
_CHARSET = re.compile(r"""charset\s{0,9}=\s{0,9}["']?([\w.:-]{1,40})""", re.IGNORECASE)

# Only names that XML files use. Python would accept more: some of its codecs take quadratic time on hostile bytes, and
# it caches every name it was ever given. As in browsers, Latin-1 and ASCII are read as Windows-1252.
_CODEC_FAMILY = re.compile(r"(?:iso[-_]?8859-(?:[2-8]|1[03-6])|(?:windows|cp)-?125[0-8]|koi8-[ru])")
_CODECS = {
    "iso-8859-1": "cp1252",
    "latin1": "cp1252",
    "us-ascii": "cp1252",
    "ascii": "cp1252",
    "iso-8859-9": "cp1254",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "gb18030": "gb18030",
    "big5": "big5",
    "shift_jis": "cp932",
    "windows-31j": "cp932",
    "euc-jp": "euc-jp",
    "iso-2022-jp": "iso2022-jp",
    "euc-kr": "cp949",
}


def decode_xml(body: bytes, content_type: str = "", limit_bytes: int = MAX_BYTES) -> str:
    r"""Decode the body of an XML file, gzipped or not, into text of at most ``limit_bytes`` bytes.

    >>> decode_xml(b'<?xml version="1.0" encoding="iso-8859-1"?><t>caf\xe9</t>').partition("<t>")[2]
    'café</t>'
    """
    plain = _gunzip(_gunzip(body, limit_bytes), limit_bytes)[:limit_bytes]  # some servers compress twice
    for opening, codec in _BYTE_SIGNATURES:
        if plain.startswith(opening):
            return plain.decode(codec, "replace").removeprefix("\ufeff")
    return plain.decode(_find_declared_codec(plain) or _find_header_codec(content_type) or "utf-8", "replace")


def _find_declared_codec(plain: bytes) -> str | None:
    found = _DECLARED.match(plain)
    return _lookup_codec(found[1].decode("latin-1")) if found else None


def _find_header_codec(content_type: str) -> str | None:
    found = _CHARSET.search(content_type)
    return _lookup_codec(found[1]) if found else None


def _lookup_codec(label: str) -> str | None:
    lowered = label.lower()
    return _CODECS.get(lowered) or (lowered if _CODEC_FAMILY.fullmatch(lowered) else None)


def _gunzip(body: bytes, limit_bytes: int) -> bytes:
    if not body.startswith(_GZIP_MAGIC):
        return body
    parts: list[bytes] = []
    at, room = 0, limit_bytes
    for _ in range(_MAX_MEMBERS):
        member_end = _gunzip_member(body, at, room, parts)
        room = limit_bytes - sum(map(len, parts))
        if member_end is None or room <= 0:
            break
        at = member_end
    return b"".join(parts)


def _gunzip_member(body: bytes, at: int, room: int, parts: list[bytes]) -> int | None:
    """Unpack one gzip member of an XML file into ``parts``; return where the next begins, or None at the end.

    Fed in small pieces, so that an error loses little and the bytes after a member's end are not copied as a whole.
    """
    member = zlib.decompressobj(_GZIP)
    while at < len(body) and room > 0:
        try:
            part = member.decompress(body[at : at + _CHUNK_BYTES], room)
        except zlib.error:
            return None
        parts.append(part)
        room -= len(part)
        at = min(at + _CHUNK_BYTES, len(body)) - len(member.unused_data)
        if member.eof:
            return at
    return None
