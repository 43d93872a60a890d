"""Read the text of a PDF, in the child process for documents.

A PDF is parsed by a large C++ library, which may crash; the process that runs this may crash with it.
"""

import re
import time
from collections.abc import Callable, Iterator
from html import unescape
from itertools import groupby
from typing import Protocol, cast

from vedette.adapters.documents.outcomes import (
    CONTROL_CHARACTERS,
    MAX_TITLE_LENGTH,
    Bounds,
    DocumentContent,
    Verdict,
    choose_title,
    normalize_space,
)

_PASSWORD_REQUIRED = 4
_SECURITY_UNKNOWN = 5
_XMP_TITLE = re.compile(rb"<dc:title[^>]{0,200}>.{0,400}?<rdf:li[^>]{0,200}>([^<]{1,4096})</rdf:li>", re.DOTALL)
_XMP_TITLE_BYTES = 8_192
_HEADING_WITHIN_CHARACTERS = 3_000
_MIN_HEADING_LENGTH = 4
_MAX_HEADING_LENGTH = 300


class _TextPage(Protocol):
    def get_text_bounded(self) -> str: ...
    def count_chars(self) -> int: ...
    def close(self) -> None: ...


class _Page(Protocol):
    def get_textpage(self) -> _TextPage: ...
    def close(self) -> None: ...


class _Document(Protocol):
    def __len__(self) -> int: ...
    def __getitem__(self, number: int) -> _Page: ...
    def get_metadata_value(self, key: str) -> str: ...
    def close(self) -> None: ...


class _Library(Protocol):
    """The part of the PDF library that is used."""

    PdfDocument: Callable[[bytes], _Document]
    PdfiumError: type[RuntimeError]

    class raw(Protocol):  # noqa: N801 - the library's name
        FPDFText_GetUnicode: Callable[[_TextPage, int], int]
        FPDFText_GetFontSize: Callable[[_TextPage, int], float]


def _load_library() -> _Library:
    import pypdfium2  # type: ignore[import-untyped]  # it ships no types; the protocols above declare what is used

    return cast("_Library", pypdfium2)


def read_pdf(data: bytes, bounds: Bounds) -> DocumentContent:
    """Read title and text of a PDF, or return why there are none."""
    library = _load_library()
    try:
        document = library.PdfDocument(data)
    except library.PdfiumError as error:
        locked = getattr(error, "err_code", None) in {_PASSWORD_REQUIRED, _SECURITY_UNKNOWN}
        return DocumentContent(Verdict.PASSWORD if locked else Verdict.BROKEN)
    try:
        return _read_document(library, document, data, bounds)
    finally:
        document.close()


def _read_document(library: _Library, document: _Document, data: bytes, bounds: Bounds) -> DocumentContent:
    pages = len(document)
    if pages <= 0:
        return DocumentContent(Verdict.EMPTY)
    texts = list(_iter_texts(library, document, bounds))
    if not texts:
        return DocumentContent(Verdict.BROKEN, pages)
    text = "\n".join(texts)
    title = _find_metadata_title(document, data) or _find_heading(library, document) or _find_first_line(text)
    if not text.strip():
        return DocumentContent(Verdict.NO_TEXT, pages, title)
    cut = len(texts) < pages or len(text) > bounds.characters
    return DocumentContent(Verdict.CUT if cut else Verdict.TEXT, pages, title, text[: bounds.characters])


def _iter_texts(library: _Library, document: _Document, bounds: Bounds) -> Iterator[str]:
    """Yield the text of each page of a PDF until there is enough; a broken page has none."""
    started_s, room = time.process_time(), bounds.characters
    for number in range(min(len(document), bounds.pages)):
        if room < 0 or time.process_time() - started_s > bounds.cpu_s:
            return
        text = _read_page_text(library, document, number)
        if text is not None:
            plain = text.replace("\r\n", "\n").translate(CONTROL_CHARACTERS)
            room -= len(plain) + 1
            yield plain


def _read_page_text(library: _Library, document: _Document, number: int) -> str | None:
    try:
        page = document[number]
        try:
            return page.get_textpage().get_text_bounded()
        finally:
            page.close()  # its text page with it
    except library.PdfiumError:
        return None


def _find_metadata_title(document: _Document, data: bytes) -> str:
    """Return the title in a PDF's metadata, if it is meaningful."""
    return choose_title(document.get_metadata_value("Title"), _find_xmp_title(data))


def _find_xmp_title(data: bytes) -> str:
    """Return the title in a PDF's last XMP packet; packets are stored uncompressed, so they can be found."""
    start = data.rfind(b"<dc:title")
    found = _XMP_TITLE.match(data, start, start + _XMP_TITLE_BYTES) if start >= 0 else None
    return unescape(found[1].decode("utf-8", "replace")) if found else ""


def _find_heading(library: _Library, document: _Document) -> str:
    """Return the first words of the largest font size on a PDF's first page, if sizes differ."""
    try:
        text_page = document[0].get_textpage()
    except library.PdfiumError:
        return ""
    get_character, get_size = library.raw.FPDFText_GetUnicode, library.raw.FPDFText_GetFontSize
    places = range(min(text_page.count_chars(), _HEADING_WITHIN_CHARACTERS))
    marked = [(round(get_size(text_page, place), 1), get_character(text_page, place)) for place in places]
    inked = [(size, code) for size, code in marked if chr(code).isprintable()]
    runs = [
        (size, normalize_space("".join(chr(code) for _, code in run)))
        for size, run in groupby(inked, key=lambda x: x[0])
    ]
    likely = [(size, words) for size, words in runs if _MIN_HEADING_LENGTH <= len(words) <= _MAX_HEADING_LENGTH]
    if len({size for size, _ in runs}) < 2 or not likely:
        return ""
    return max(likely, key=lambda run: run[0])[1]


def _find_first_line(text: str) -> str:
    lines = map(normalize_space, text[: 4 * MAX_TITLE_LENGTH].split("\n"))
    return next((line for line in lines if len(line) >= _MIN_HEADING_LENGTH), "")[:_MAX_HEADING_LENGTH]
