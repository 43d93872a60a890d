"""Records with fields, out of XML that may be broken: what sitemaps and feeds have in common.

A record (``url``, ``item``, ``entry``) holds fields (``loc``, ``link``); fields outside every record belong to the
head. Whatever else stands in a record is passed over with all that it holds, so the ``title`` of a channel's image is
not the channel's. A record or a field also ends where the next one begins, or its parent closes. A field that the end
of the document cuts off is dropped, since half a URL leads elsewhere; the record around it stays.

Names are matched without namespaces first: a prefix equal to the root's counts as none. Other prefixes stand for what
the document declares them to be, or for themselves where it does not say.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from vedette.discover.formats.xml_reader import attributes_of, scan

__all__ = ["LONGEST_TEXT", "Document", "Field", "Record", "Vocabulary", "read_records", "root_of"]

LONGEST_TEXT = 8_192  # a longer field is cut one character later, so that its reader can tell
_MOST_FIELDS = 100  # of one record


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What to look for: names of records, names of fields and what they mean, and which namespaces have short names.

    ``containers`` hold records and fields without being one, as a channel does; the root always does. A record whose
    name is a field's too begins with that field: text before anything else in it.
    """

    records: frozenset[str]
    fields: Mapping[str, str]
    containers: frozenset[str] = frozenset()
    namespaces: Mapping[str, str] = field(default_factory=dict)


class Field(NamedTuple):
    """One field: its meaning, its text without the white space around it, its attributes by lower-case name."""

    meaning: str
    text: str
    attributes: Mapping[str, str]


class Record(NamedTuple):
    """One record: its name, its attributes by lower-case name, its fields in order."""

    name: str
    attributes: Mapping[str, str]
    fields: tuple[Field, ...]

    def all(self, meaning: str) -> Iterator[Field]:
        """The fields of this meaning."""
        return (each for each in self.fields if each.meaning == meaning)

    def text(self, meaning: str) -> str:
        """The first text of this meaning that is not empty."""
        for each in self.fields:
            if each.meaning == meaning and each.text:
                return each.text
        return ""


@dataclass(frozen=True, slots=True)
class Document:
    """The root as a record whose fields are the head, and the records."""

    root: Record
    records: tuple[Record, ...]


def root_of(text: str) -> str:
    """The name of the first element, in lower case and without its prefix; empty where there is none.

    >>> root_of("<?xml version='1.0'?><!-- made by hand --><rdf:RDF>")
    'rdf'
    """
    opened = (name for kind, name, _ in scan(text) if kind == "open")
    return next(opened, "").rpartition(":")[2]


def read_records(text: str, vocabulary: Vocabulary, most: int) -> Document:
    """The head and at most so many records of a document."""
    reader = _Reader(vocabulary)
    for kind, name, attributes in scan(text):
        if kind == "text":
            if reader.listens:
                reader.write(name)
        elif kind == "open":
            reader.open(name, attributes)
        else:
            reader.close(name)
        if len(reader.records) >= most:
            break
    return reader.document()


class _Reader:
    """Where in the document we are, and what was read so far."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.records: list[Record] = []
        self.listens = False  # texts outside of fields are most of a document, and not worth a call
        self._vocabulary = vocabulary
        self._prefixes: dict[str, str] = {}
        self._root: tuple[str, str] | None = None
        self._head: list[Field] = []
        self._record: tuple[str, str] | None = None
        self._fields: list[Field] = []
        self._field: tuple[str, str] | None = None
        self._texts: list[str] = []
        self._room = 0
        self._passed_over = ""
        self._depth = 0

    def open(self, written: str, attributes: str) -> None:
        if "xmlns:" in attributes:
            self._learn_prefixes(attributes)
        name = self._plain(written)
        if self._field is not None and self._field[0] in self._vocabulary.records:
            self._end_field()
        if self._root is None:
            self._begin(written, attributes)
        elif name in self._vocabulary.records:
            self._end_record()
            self._record = (name, attributes)
            if name in self._vocabulary.fields:
                self._begin_field(name, "")
        elif self._passed_over:
            self._depth += name == self._passed_over
        elif name in self._vocabulary.fields:
            self._end_field()
            self._begin_field(name, attributes)
        elif self._field is None and name not in self._vocabulary.containers:
            self._passed_over, self._depth = name, 1

    def close(self, written: str) -> None:
        name = self._plain(written)
        if name in self._vocabulary.records or self._root is None or name == self._root[0]:
            self._end_record()
        elif self._passed_over:
            self._depth -= name == self._passed_over
            self._passed_over = self._passed_over if self._depth else ""
        elif self._field is not None and name == self._field[0]:
            self._end_field()

    def write(self, text: str) -> None:
        self._texts.append(text[: self._room])
        self._room -= len(self._texts[-1])
        self.listens = self._room > 0

    def document(self) -> Document:
        self._drop_field()
        self._end_record()
        name, attributes = self._root or ("", "")
        return Document(Record(name, attributes_of(attributes), tuple(self._head)), tuple(self.records))

    def _begin(self, written: str, attributes: str) -> None:
        prefix, _, local = written.rpartition(":")
        self._prefixes[prefix] = ""
        self._root = (local, attributes)

    def _learn_prefixes(self, attributes: str) -> None:
        for name, address in attributes_of(attributes).items():
            meaning = self._vocabulary.namespaces.get(address)
            if name.startswith("xmlns:") and meaning is not None:
                self._prefixes.setdefault(name.removeprefix("xmlns:"), meaning)

    def _plain(self, written: str) -> str:
        if ":" not in written:
            return written
        prefix, _, local = written.rpartition(":")
        meaning = self._prefixes.get(prefix, prefix)
        return f"{meaning}:{local}" if meaning else local

    def _begin_field(self, name: str, attributes: str) -> None:
        self._field, self._room, self.listens = (name, attributes), LONGEST_TEXT + 1, True

    def _end_field(self) -> None:
        if self._field is None:
            return
        name, attributes = self._field
        fields = self._head if self._record is None else self._fields
        text = "".join(self._texts).strip()
        if (text or attributes) and len(fields) < _MOST_FIELDS:
            fields.append(Field(self._vocabulary.fields[name], text, attributes_of(attributes)))
        self._drop_field()

    def _drop_field(self) -> None:
        self._field, self.listens = None, False
        self._texts.clear()

    def _end_record(self) -> None:
        self._end_field()
        self._passed_over = ""
        if self._record is not None:
            name, attributes = self._record
            self.records.append(Record(name, attributes_of(attributes), tuple(self._fields)))
        self._record = None
        self._fields.clear()
