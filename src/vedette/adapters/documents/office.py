"""Read office documents and books, which are packages of XML: DOCX, XLSX, PPTX, ODT, ODS, ODP, EPUB.

Runs in the child process for documents. Text, headings, tables and links are written as simple HTML until there is
enough; everything read before an error is kept. Invisible content is left out: hidden slides and sheets, deleted text,
comments, speaker notes.

Why not python-docx, openpyxl and python-pptx: they build trees, so a file of 84 kB takes 270 MB (20 MB here), and they
weigh 45 MB with their dependencies; docs/results/reading.md has the figures.
"""

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from urllib.parse import unquote

from vedette.adapters.documents.outcomes import Bounds, DocumentContent, Verdict, choose_title
from vedette.adapters.documents.package import (
    PACKAGE_ERRORS,
    Attributes,
    EnoughRead,
    HtmlWriter,
    Package,
    PartHandler,
    PasswordRequired,
    Relation,
    resolve_part,
)

MAX_ENTRIES = 100_000
MAX_SHARED_CHARACTERS = 16 * 2**20
MAX_CHAPTER_BYTES = 8 * 2**20
_MAX_NUMBER_LENGTH = 30
# Built-in date formats (ECMA-376 part 1, 18.8.30), and quoted text in custom ones.
_DATE_FORMATS = frozenset({*range(14, 18), 22, *range(27, 32), 36, *range(50, 59)})
_FORMAT_LITERALS = re.compile(r'"[^"]*+"|\\.|\[[^\]]*+\]')
# Day 60 of the first calendar does not exist, so later days count from one earlier.
_EPOCH_1900, _EPOCH_1904 = datetime(1899, 12, 30), datetime(1904, 1, 1)  # noqa: DTZ001 - cells have no zone
_INNER_LINK = re.compile(
    r"""\bhref\s{0,9}=\s{0,9}(?:"(?!https?:)[^"<]{0,2000}"|'(?!https?:)[^'<]{0,2000}')""", re.IGNORECASE
)
_BODY_START = re.compile(r"<body\b", re.IGNORECASE)


def read_package(data: bytes, bounds: Bounds) -> DocumentContent:
    """Read title and text of an office document or a book, or return why there are none."""
    reading = _Reading(bounds)
    verdict = Verdict.TEXT
    try:
        reading.read(Package(data, bounds))
    except EnoughRead:
        verdict = Verdict.CUT
    except PasswordRequired:
        verdict = Verdict.PASSWORD
    except PACKAGE_ERRORS:
        verdict = Verdict.BROKEN
    html = reading.writer.get_html()
    if html:
        is_whole = verdict is Verdict.TEXT and len(html) <= bounds.characters
        verdict = Verdict.TEXT if is_whole else Verdict.CUT
    elif verdict in {Verdict.TEXT, Verdict.CUT}:
        verdict = Verdict.NO_TEXT
    return DocumentContent(
        verdict, reading.pages, choose_title(reading.metadata.title), html[: bounds.characters], reading.kind
    )


class _Reading:
    """A package being read; whatever stops the reading, everything found so far is kept."""

    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds
        self.writer = HtmlWriter(bounds.characters)
        self.metadata = _Metadata()
        self.pages = 0
        self.kind = "docx"

    def read(self, package: Package) -> None:
        """Read a package of any kind."""
        if "mimetype" in package:
            self._read_open_document(package, package.read("mimetype", 100).decode("latin-1").strip())
            return
        targets = {each.kind: each.target for each in package.load_relations("").values()}
        main = targets["officeDocument"]
        package.parse(targets.get("core-properties", "docProps/core.xml"), self.metadata)
        readers = {"word": self._read_docx, "xl": self._read_xlsx, "ppt": self._read_pptx}
        readers[main.partition("/")[0]](package, main)

    def _read_docx(self, package: Package, main: str) -> None:
        styles = _Styles()
        relations = package.load_relations(main)
        by_type = {each.kind: each.target for each in relations.values()}
        package.parse(by_type.get("styles", ""), styles)
        package.parse(main, _TextHandler(self.writer, _get_links(relations), styles.tags))
        for notes in ("footnotes", "endnotes"):
            package.parse(by_type.get(notes, ""), _TextHandler(self.writer, {}, {}))

    def _read_pptx(self, package: Package, main: str) -> None:
        self.kind = "pptx"
        relations = package.load_relations(main)
        slides = _Entries("sldId")
        package.parse(main, slides)
        for entry in slides.found[: self.bounds.pages]:
            slide = relations[entry["rel:id"]].target
            self.pages += 1
            package.parse(slide, _TextHandler(self.writer, _get_links(package.load_relations(slide)), {}))

    def _read_xlsx(self, package: Package, main: str) -> None:
        self.kind = "xlsx"
        relations = package.load_relations(main)
        by_type = {each.kind: each.target for each in relations.values()}
        sheets, shared, formats = _Entries("sheet", "workbookPr"), _SharedStrings(), _CellFormats()
        package.parse(main, sheets)
        package.parse(by_type.get("sharedStrings", ""), shared)
        package.parse(by_type.get("styles", ""), formats)
        is_1904 = any(entry.get("date1904") in {"1", "true"} for entry in sheets.found)
        epoch = _EPOCH_1904 if is_1904 else _EPOCH_1900
        for entry in sheets.found[: self.bounds.pages]:
            if "rel:id" in entry and entry.get("state", "visible") == "visible":
                self.pages += 1
                self.writer.begin_block("h2")
                self.writer.write(entry.get("name", ""))
                self.writer.end_block()
                handler = _SheetHandler(self.writer, shared.strings, formats.dates, epoch)
                package.parse(relations[entry["rel:id"]].target, handler)

    def _read_open_document(self, package: Package, media_type: str) -> None:
        if media_type == "application/epub+zip":
            self._read_epub(package)
            return
        family = media_type.removeprefix("application/vnd.oasis.opendocument.").removesuffix("-template")
        self.kind = {"text": "odt", "spreadsheet": "ods", "presentation": "odp"}[family]
        encrypted = _Entries("encryption-data")
        package.parse("META-INF/manifest.xml", encrypted)
        if encrypted.found:
            raise PasswordRequired
        package.parse("meta.xml", self.metadata)
        handler = _OpenDocumentHandler(self.writer, names_tables=self.kind == "ods")
        try:
            package.parse("content.xml", handler)
        finally:
            self.pages = handler.pages

    def _read_epub(self, package: Package) -> None:
        self.kind = "epub"
        root, encrypted = _Entries("rootfile"), _Entries("CipherReference")
        package.parse("META-INF/container.xml", root)
        package.parse("META-INF/encryption.xml", encrypted)
        main = root.found[0]["full-path"] if root.found else ""
        package.parse(main, self.metadata)
        book = _Entries("item", "itemref")
        package.parse(main, book)
        folder = main.rpartition("/")[0]
        files = {entry["id"]: resolve_part(folder, unquote(entry["href"])) for entry in book.found if "href" in entry}
        chapters = [files[entry["idref"]] for entry in book.found if entry.get("idref") in files]
        locked = {unquote(entry.get("URI", "")) for entry in encrypted.found}
        readable = [chapter for chapter in chapters if chapter in package and chapter not in locked]
        if chapters and not readable and locked:
            raise PasswordRequired
        for chapter in readable[: self.bounds.pages]:
            self.pages += 1
            self.writer.write_html(_extract_chapter(package.read(chapter, MAX_CHAPTER_BYTES)))


def _get_links(relations: Mapping[str, Relation]) -> dict[str, str]:
    """Return the web addresses among the relations of a part, by id."""
    return {id_: each.target for id_, each in relations.items() if each.is_outside}


def _extract_chapter(data: bytes) -> str:
    """Return the body of a chapter of a book, without its links to other chapters, which are no URLs."""
    text = data.decode("utf-16" if data[:2] in {b"\xff\xfe", b"\xfe\xff"} else "utf-8", "replace")
    start = _BODY_START.search(text)
    return "<section>" + _INNER_LINK.sub("", text[start.start() if start else 0 :]) + "</section>\n"


class _Entries(PartHandler):
    """Collects the attributes of all elements of some names, such as the slides of a presentation."""

    def __init__(self, *names: str) -> None:
        self.found: list[Attributes] = []
        self._names = names

    def open(self, name: str, attributes: Attributes) -> None:
        if name in self._names and len(self.found) < MAX_ENTRIES:
            self.found.append(attributes)


class _Metadata(PartHandler):
    """Finds the title in the metadata of a document."""

    def __init__(self) -> None:
        self.title = ""
        self._open = False

    def open(self, name: str, attributes: Attributes) -> None:  # noqa: ARG002 - one signature for all
        self._open = name == "title" and not self.title

    def close(self, name: str) -> None:  # noqa: ARG002 - one signature for all
        self._open = False

    def add_text(self, text: str) -> None:
        if self._open:
            self.title += text


class _Styles(PartHandler):
    """Finds the paragraph styles of a DOCX that are headings; ids are in the writer's language, names in English."""

    def __init__(self) -> None:
        self.tags: dict[str, str] = {}
        self._id = ""

    def open(self, name: str, attributes: Attributes) -> None:
        if name == "style":
            self._id = attributes.get("styleId", "")
        elif name == "name":
            tag = _parse_style_name(attributes.get("val", ""))
            if tag and len(self.tags) < MAX_ENTRIES:
                self.tags[self._id] = tag


def _parse_style_name(name: str) -> str:
    """Return the HTML tag for the name of a paragraph style; empty if it is no heading.

    >>> _parse_style_name("heading 2"), _parse_style_name("Title"), _parse_style_name("Body Text")
    ('h2', 'h1', '')
    """
    words = name.lower().split()
    if words == ["title"]:
        return "h1"
    return f"h{words[1]}" if len(words) == 2 and words[0] == "heading" and words[1] in "123456" else ""


class _TextHandler(PartHandler):
    """Writes paragraphs, tables and links of a DOCX or PPTX part, which both mark text with ``t``."""

    # Text that was moved away or that a fallback repeats, and ruby annotations.
    skipped = frozenset({"Fallback", "moveFrom", "rt"})

    def __init__(self, writer: HtmlWriter, links: Mapping[str, str], styles: Mapping[str, str]) -> None:
        self._writer, self._links, self._styles = writer, links, styles
        self._in_text = self._in_title = self._is_hidden = False
        self._link = self._run_link = ""

    def open(self, name: str, attributes: Attributes) -> None:
        if name == "t":
            self._in_text = not self._is_hidden
            if self._link or self._run_link:
                self._writer.begin_link(self._link or self._run_link)
        elif name == "p":
            self._writer.begin_block("h2" if self._in_title else "p")
        elif name in {"pStyle", "outlineLvl"}:
            self._set_style(name, attributes.get("val", ""))
        elif name in {"hyperlink", "hlinkClick"}:
            self._set_link(name, self._links.get(attributes.get("rel:id", ""), ""))
        elif name == "ph":
            self._in_title = attributes.get("type") in {"title", "ctrTitle"}
        elif name == "tr":
            self._writer.begin_row()
        elif name in {"tab", "br", "cr"}:
            self._writer.write(" ")
        elif name == "sld":
            self._is_hidden = attributes.get("show") in {"0", "false"}

    def close(self, name: str) -> None:
        if name == "t":
            self._in_text = False
            if self._link or self._run_link:
                self._writer.end_link()
        elif name in {"p", "tc"}:
            self._writer.end_block()
        elif name == "tr":
            self._writer.end_row()
        elif name in {"hyperlink", "r"}:
            self._set_link(name, "")
        elif name == "sp":
            self._in_title = False

    def add_text(self, text: str) -> None:
        if self._in_text:
            self._writer.write(text)

    def _set_link(self, name: str, href: str) -> None:
        if name == "hyperlink":
            self._link = href
        else:
            self._run_link = href

    def _set_style(self, name: str, value: str) -> None:
        if name == "pStyle":
            self._writer.tag = self._styles.get(value, self._writer.tag)
        elif value in {"0", "1", "2", "3", "4", "5"}:
            self._writer.tag = f"h{int(value) + 1}"


class _SharedStrings(PartHandler):
    """Collects the strings that the cells of an XLSX refer to by number; those past the bound are empty."""

    skipped = frozenset({"rPh"})  # pronunciation of a word

    def __init__(self) -> None:
        self.strings: list[str] = []
        self._parts: list[str] = []
        self._room = MAX_SHARED_CHARACTERS
        self._in_text = False

    def open(self, name: str, attributes: Attributes) -> None:  # noqa: ARG002 - one signature for all
        self._in_text = name == "t"

    def close(self, name: str) -> None:
        self._in_text = False
        if name == "si":
            self.strings.append("".join(self._parts))
            self._parts.clear()

    def add_text(self, text: str) -> None:
        if self._in_text and self._room > 0:
            self._room -= len(text)
            self._parts.append(text)


class _CellFormats(PartHandler):
    """Finds the cell formats of an XLSX that show a number as a date; ``dates`` are their positions in the list."""

    skipped = frozenset({"cellStyleXfs", "dxfs"})

    def __init__(self) -> None:
        self.dates: set[str] = set()
        self._custom: set[int] = set()
        self._place = 0

    def open(self, name: str, attributes: Attributes) -> None:
        if name == "numFmt":
            code = _FORMAT_LITERALS.sub("", attributes.get("formatCode", "")[:200]).lower()
            if "y" in code or "d" in code:
                self._custom.add(int(attributes.get("numFmtId", "0")))
        elif name == "xf":
            number = int(attributes.get("numFmtId", "0"))
            if number in _DATE_FORMATS or number in self._custom:
                self.dates.add(str(self._place))
            self._place += 1


class _SheetHandler(PartHandler):
    """Writes the rows of a sheet of an XLSX: strings and numbers as they are, dates as ISO 8601."""

    skipped = frozenset({"f", "rPh"})

    def __init__(self, writer: HtmlWriter, strings: list[str], dates: set[str], epoch: datetime) -> None:
        self._writer, self._strings, self._dates, self._epoch = writer, strings, dates, epoch
        self._type = self._style = ""
        self._value: list[str] = []
        self._in_value = False

    def open(self, name: str, attributes: Attributes) -> None:
        if name == "row":
            self._writer.begin_row()
        elif name == "c":
            self._type, self._style = attributes.get("t", "n"), attributes.get("s", "")
            self._value.clear()
        self._in_value = name in {"v", "t"}

    def close(self, name: str) -> None:
        self._in_value = False
        if name == "c" and self._value:
            self._writer.write(self._format_value("".join(self._value).strip()))
            self._writer.end_block()
        elif name == "row":
            self._writer.end_row()

    def add_text(self, text: str) -> None:
        if self._in_value:
            self._value.append(text)

    def _format_value(self, value: str) -> str:
        if self._type == "s":
            return self._strings[int(value)] if value.isdecimal() and int(value) < len(self._strings) else ""
        if self._type in {"b", "e"}:
            return ""
        if self._type != "n":
            return value
        return _format_date(value, self._epoch) if self._style in self._dates else _format_number(value)


def _format_number(value: str) -> str:
    """Format a number of a cell as the fifteen digits that spreadsheets show.

    >>> _format_number("0.30000000000000004"), _format_number("1E3"), _format_number("x")
    ('0.3', '1000', 'x')
    """
    try:
        return f"{float(value):.15g}" if len(value) < _MAX_NUMBER_LENGTH else ""
    except ValueError:
        return value


def _format_date(value: str, epoch: datetime) -> str:
    """Format a date of a cell, which is a number of days.

    >>> _format_date("45292", _EPOCH_1900), _format_date("45292.5", _EPOCH_1900), _format_date("-1e99", _EPOCH_1900)
    ('2024-01-01', '2024-01-01 12:00', '-1e99')
    """
    try:
        at = epoch + timedelta(days=float(value))
    except (ValueError, OverflowError):
        return value
    return f"{at:%Y-%m-%d}" if (at.hour, at.minute) == (0, 0) else f"{at:%Y-%m-%d %H:%M}"


class _OpenDocumentHandler(PartHandler):
    """Writes the content of an ODT, ODS or ODP."""

    skipped = frozenset({"tracked-changes", "annotation", "notes", "note-citation", "forms", "scripts", "object"})

    def __init__(self, writer: HtmlWriter, *, names_tables: bool) -> None:
        self.pages = 0
        self._writer, self._names_tables = writer, names_tables
        self._blocks = 0

    def open(self, name: str, attributes: Attributes) -> None:
        if name in {"p", "h"}:
            level = attributes.get("outline-level", "1")
            self._writer.begin_block("p" if name == "p" else f"h{level}" if level in {*"123456"} else "h6")
            self._blocks += 1
        elif name in {"s", "tab", "line-break"}:
            self._writer.write(" ")
        elif name == "a":
            self._writer.begin_link(attributes.get("href", ""))
        elif name == "table-row":
            self._writer.begin_row()
        elif name == "page" or (name == "table" and self._names_tables):
            self.pages += 1
            if name == "table":
                self._writer.begin_block("h2")
                self._writer.write(attributes.get("name", ""))
                self._writer.end_block()

    def close(self, name: str) -> None:
        if name in {"p", "h"}:
            self._writer.end_block()
            self._blocks -= 1
        elif name == "a":
            self._writer.end_link()
        elif name == "table-row":
            self._writer.end_row()

    def add_text(self, text: str) -> None:
        if self._blocks:
            self._writer.write(text)
