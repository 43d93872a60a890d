"""Packages: untrusted ZIP archives of XML parts, read as a stream, and the HTML that is written from them.

No tree is built, so a sheet of a million rows takes as much memory as one of a hundred. Nothing in an archive is
trusted: unpacking is bounded in total bytes and CPU time, only the compression methods that document writers use are
supported, and a part that declares entities is refused.
"""

import posixpath
import time
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from functools import lru_cache
from html import escape
from io import BytesIO
from typing import NamedTuple
from xml.parsers import expat

from vedette.adapters.documents.outcomes import Bounds

MAX_UNPACKED_BYTES = 256 * 2**20
MAX_DEPTH = 1_000
MAX_LINK_LENGTH = 2_000
MAX_RELATIONS = 100_000
MAX_CACHED_NAMES = 1_000
_PIECE_BYTES = 2**20
_ENCRYPTED_FLAG = 1
_SEPARATOR = " "
# Attributes by their local names; relations by "rel:id", since a slide also has its own id.
Attributes = Mapping[str, str]
# Exceptions raised by a damaged package: besides the errors of ZIP, deflate and XML, zipfile raises built-in ones for a
# truncated file, a missing member, an unknown compression, a bad offset, a huge size and a bad date.
PACKAGE_ERRORS = (
    *(zipfile.BadZipFile, zlib.error, expat.ExpatError),
    *(EOFError, KeyError, NotImplementedError, OSError, OverflowError, ValueError),
)


class EnoughRead(Exception):
    """A limit was reached; everything read so far counts."""


class PasswordRequired(Exception):
    """A part of the document is encrypted."""


class HtmlWriter:
    """Writes the text of a document as simple HTML: blocks, rows of tables, links."""

    def __init__(self, characters: int) -> None:
        self.tag = "p"
        self._room = characters
        self._parts: list[str] = []
        self._block: list[str] = []
        self._cells: list[str] = []
        self._rows_open = 0

    def begin_block(self, tag: str = "p") -> None:
        """Begin a block of text; ``tag`` may still be changed until it ends."""
        self.end_block()
        self.tag = tag

    def write(self, text: str) -> None:
        """Write text into the current block."""
        self._add(escape(text, quote=False))

    def begin_link(self, href: str) -> None:
        """Begin a link in the current block."""
        self._add(f'<a href="{escape(href[:MAX_LINK_LENGTH])}">')

    def end_link(self) -> None:
        """End a link."""
        self._add("</a>")

    def end_block(self) -> None:
        """End the current block, if there is one; inside a table it becomes part of a cell."""
        text = "".join(self._block).strip()
        self._block.clear()
        if text and self._rows_open:
            self._cells.append(text)
        elif text:
            self._parts.append(f"<{self.tag}>{text}</{self.tag}>\n")

    def begin_row(self) -> None:
        """Begin a row of a table; one inside a cell is part of the outer row."""
        self.end_block()
        self._rows_open += 1

    def end_row(self) -> None:
        """End a row of a table; an empty one leaves no trace."""
        self.end_block()
        self._rows_open = max(self._rows_open - 1, 0)
        if self._cells and not self._rows_open:
            self._parts.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in self._cells) + "</tr>\n")
            self._cells.clear()

    def write_html(self, html: str) -> None:
        """Write HTML as it is."""
        self._parts.append(html[: max(self._room, 0)])
        self._spend(len(html))

    def get_html(self) -> str:
        """Return all that was written, with what is still open."""
        self._rows_open = min(self._rows_open, 1)
        if self._rows_open:
            self.end_row()
        self.end_block()
        return "".join(self._parts)

    def _add(self, html: str) -> None:
        self._block.append(html)
        self._spend(len(html))

    def _spend(self, characters: int) -> None:
        self._room -= characters
        if self._room < 0:
            raise EnoughRead


class PartHandler:
    """Handles the elements of one XML part by their local names; elements in ``skipped`` are ignored."""

    skipped: frozenset[str] = frozenset()

    def open(self, name: str, attributes: Attributes) -> None:
        """Handle the start of an element."""

    def close(self, name: str) -> None:
        """Handle the end of an element."""

    def add_text(self, text: str) -> None:
        """Handle text."""


class Relation(NamedTuple):
    """What a part of a package refers to: another part, or an external address."""

    kind: str
    target: str
    is_outside: bool


class Package:
    """An untrusted ZIP archive of XML parts, unpacked within limits of total bytes and CPU time."""

    def __init__(self, data: bytes, bounds: Bounds) -> None:
        self._zip = zipfile.ZipFile(BytesIO(data))
        self._parts = {info.filename: info for info in self._zip.infolist()}
        self._left_bytes = MAX_UNPACKED_BYTES
        self._end_s = time.process_time() + bounds.cpu_s

    def __contains__(self, name: str) -> bool:
        return name in self._parts

    def iter_pieces(self, name: str) -> Iterator[bytes]:
        """Yield the bytes of a part in pieces; raise ``EnoughRead`` at a bound."""
        info = self._parts[name]
        if info.flag_bits & _ENCRYPTED_FLAG:
            raise PasswordRequired
        if info.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
            raise zipfile.BadZipFile("a method that no writer of documents uses")
        with self._zip.open(info) as stream:
            while piece := stream.read(_PIECE_BYTES):
                self._left_bytes -= len(piece)
                if self._left_bytes < 0 or time.process_time() > self._end_s:
                    raise EnoughRead
                yield piece

    def read(self, name: str, most_bytes: int) -> bytes:
        """Read the beginning of a part."""
        found = bytearray()
        for piece in self.iter_pieces(name):
            found += piece
            if len(found) >= most_bytes:
                break
        return bytes(found[:most_bytes])

    def parse(self, name: str, handler: PartHandler) -> None:
        """Parse an XML part, if there is one, and pass its elements to a handler."""
        if name in self._parts:
            parser = _build_parser(handler)
            for piece in self.iter_pieces(name):
                parser.Parse(piece, False)
            parser.Parse(b"", True)

    def load_relations(self, part: str) -> dict[str, Relation]:
        """Load the relations of a part by id; those of the whole package if it is empty."""
        folder, _, name = part.rpartition("/")
        relations = _Relations(folder)
        self.parse(posixpath.join(folder, "_rels", f"{name}.rels"), relations)
        return relations.found


def _build_parser(handler: PartHandler) -> expat.XMLParserType:
    """Build an expat parser for a handler. Entity declarations are refused, so that none can expand."""
    parser = expat.ParserCreate(namespace_separator=_SEPARATOR)
    parser.buffer_text = True
    depth = skipped = 0

    def open_element(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth, skipped
        depth += 1
        if depth > MAX_DEPTH:
            raise ValueError("elements are nested too deeply")
        local = _get_local_name(name)
        if skipped or local in handler.skipped:
            skipped += 1
        else:
            named = {_get_attribute_name(key): value for key, value in attributes.items()} if attributes else attributes
            handler.open(local, named)

    def close_element(name: str) -> None:
        nonlocal depth, skipped
        depth -= 1
        if skipped:
            skipped -= 1
        else:
            handler.close(_get_local_name(name))

    def add_text(text: str) -> None:
        if not skipped:
            handler.add_text(text)

    def refuse_entity(*_: object) -> None:
        raise ValueError("the part declares entities")

    parser.StartElementHandler, parser.EndElementHandler = open_element, close_element
    parser.CharacterDataHandler = add_text
    parser.EntityDeclHandler = refuse_entity
    return parser


@lru_cache(MAX_CACHED_NAMES)
def _get_local_name(written: str) -> str:
    return written.rpartition(_SEPARATOR)[2]


@lru_cache(MAX_CACHED_NAMES)
def _get_attribute_name(written: str) -> str:
    space, _, local = written.rpartition(_SEPARATOR)
    return "rel:id" if local == "id" and space.endswith("/relationships") else local


def resolve_part(folder: str, target: str) -> str:
    """Return the name of the part that another one in a folder refers to.

    >>> resolve_part("word", "../media/a.png"), resolve_part("word", "/xl/b.xml")
    ('media/a.png', 'xl/b.xml')
    """
    return posixpath.normpath(posixpath.join("/", folder, target)).lstrip("/")


class _Relations(PartHandler):
    """Collects the relations of a part."""

    def __init__(self, folder: str) -> None:
        self.found: dict[str, Relation] = {}
        self._folder = folder

    def open(self, name: str, attributes: Attributes) -> None:
        if name == "Relationship" and len(self.found) < MAX_RELATIONS:
            is_outside = attributes.get("TargetMode") == "External"
            written = attributes.get("Target", "")
            target = written if is_outside else resolve_part(self._folder, written)
            kind = attributes.get("Type", "").rpartition("/")[2]
            self.found[attributes.get("Id", "")] = Relation(kind, target, is_outside)
