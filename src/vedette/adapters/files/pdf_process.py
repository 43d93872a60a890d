"""PDF child process, run as a script by ``vedette.adapters.files.pdf``; it reads one document at a time.

A PDF is a program in several languages, read by a large library in C++; the one safe way to read an untrusted one is a
process that may fall. It holds nothing, is bounded in memory and CPU time by the kernel, cannot write a file, and ends
when its parent does. It is run as a file of its own and imports nothing of ours, which also makes it quick to start.

A request is a fixed head and the descriptor of a file in memory; a reply is a fixed head, a title and a text.
"""

import ctypes
import os
import re
import resource
import signal
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from html import unescape
from itertools import groupby
from struct import Struct
from typing import Protocol, cast

# Size of the document, most pages, most characters, CPU seconds after which no further page is begun, CPU seconds
# after which the kernel ends it, bytes of address space.
REQUEST = Struct("!QIIIIQ")
# Verdict, number of pages, bytes of the title, bytes of the text.
REPLY = Struct("!4I")
MAX_TITLE_LENGTH = 1_024

_PR_SET_PDEATHSIG = 1
_PASSWORD_REQUIRED = 4
_SECURITY_UNKNOWN = 5
# The library's sign for a word that was divided at the end of a line.
_CONTROL_CHARACTERS = str.maketrans({"\x02": None, "\0": None, "\ufffe": None, "\r": "\n"})
_XMP_TITLE = re.compile(rb"<dc:title[^>]{0,200}>.{0,400}?<rdf:li[^>]{0,200}>([^<]{1,4096})</rdf:li>", re.DOTALL)
_XMP_TITLE_BYTES = 8_192
_NO_TITLE = re.compile(r"(?:untitled|no title|title|document|microsoft word|unknown)?[\W\d]*", re.IGNORECASE)
_APP_PREFIX = re.compile(r"Microsoft (?:Word|PowerPoint|Excel) - ")
_HEADING_WITHIN_CHARACTERS = 3_000
_MIN_HEADING_LENGTH = 4
_MAX_HEADING_LENGTH = 300


class Verdict(IntEnum):
    """Outcome of reading a PDF in the child process."""

    TEXT = 0
    CUT = 1
    PASSWORD = 2
    BROKEN = 3
    EMPTY = 4
    NO_TEXT = 5
    MEMORY = 6


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


@dataclass(frozen=True, slots=True)
class _Bounds:
    """How much of a PDF the child process reads."""

    pages: int
    characters: int
    cpu_s: int


@dataclass(frozen=True, slots=True)
class _PdfContent:
    """What the child process read from a PDF."""

    verdict: Verdict
    pages: int = 0
    title: str = ""
    text: str = ""


def _load_library() -> _Library:
    import pypdfium2  # type: ignore[import-untyped]  # it ships no types; the protocols above say what is used

    return cast("_Library", pypdfium2)


def _read_pdf(data: bytes, bounds: _Bounds) -> _PdfContent:
    """Read title and text of a PDF, or why there are none."""
    library = _load_library()
    try:
        document = library.PdfDocument(data)
    except library.PdfiumError as error:
        locked = getattr(error, "err_code", None) in {_PASSWORD_REQUIRED, _SECURITY_UNKNOWN}
        return _PdfContent(Verdict.PASSWORD if locked else Verdict.BROKEN)
    try:
        return _read_document(library, document, data, bounds)
    finally:
        document.close()


def _read_document(library: _Library, document: _Document, data: bytes, bounds: _Bounds) -> _PdfContent:
    pages = len(document)
    if pages <= 0:
        return _PdfContent(Verdict.EMPTY)
    texts = list(_iter_texts(library, document, bounds))
    if not texts:
        return _PdfContent(Verdict.BROKEN, pages)
    text = "\n".join(texts)
    title = _find_metadata_title(document, data) or _find_heading(library, document) or _find_first_line(text)
    if not text.strip():
        return _PdfContent(Verdict.NO_TEXT, pages, title)
    cut = len(texts) < pages or len(text) > bounds.characters
    return _PdfContent(Verdict.CUT if cut else Verdict.TEXT, pages, title, text[: bounds.characters])


def _iter_texts(library: _Library, document: _Document, bounds: _Bounds) -> Iterator[str]:
    """Yield the text of each page of a PDF until there is enough; a broken page has none."""
    started_s, room = time.process_time(), bounds.characters
    for number in range(min(len(document), bounds.pages)):
        if room < 0 or time.process_time() - started_s > bounds.cpu_s:
            return
        text = _read_page_text(library, document, number)
        if text is not None:
            plain = text.replace("\r\n", "\n").translate(_CONTROL_CHARACTERS)
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
    """Return the title in a PDF's metadata, if it says anything."""
    titles = (document.get_metadata_value("Title"), _find_xmp_title(data))
    tidied = (_normalize_space(_APP_PREFIX.sub("", title)) for title in titles)
    return next((title for title in tidied if not _NO_TITLE.fullmatch(title)), "")


def _find_xmp_title(data: bytes) -> str:
    """Return the title in a PDF's last XMP packet; packets are stored plain, so that they can be found."""
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
        (size, _normalize_space("".join(chr(code) for _, code in run)))
        for size, run in groupby(inked, key=lambda x: x[0])
    ]
    likely = [(size, words) for size, words in runs if _MIN_HEADING_LENGTH <= len(words) <= _MAX_HEADING_LENGTH]
    if len({size for size, _ in runs}) < 2 or not likely:
        return ""
    return max(likely, key=lambda run: run[0])[1]


def _find_first_line(text: str) -> str:
    lines = map(_normalize_space, text[: 4 * MAX_TITLE_LENGTH].split("\n"))
    return next((line for line in lines if len(line) >= _MIN_HEADING_LENGTH), "")[:_MAX_HEADING_LENGTH]


def _normalize_space(text: str) -> str:
    return " ".join(text.translate(_CONTROL_CHARACTERS).split())[:MAX_TITLE_LENGTH]


def _confine() -> None:
    """Give up the privileges that reading PDFs does not need, before the first untrusted byte is read."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    for what in (resource.RLIMIT_CORE, resource.RLIMIT_FSIZE):
        resource.setrlimit(what, (0, 0))


def _set_limits(cpu_s: int, memory_bytes: int) -> None:
    """Set the limits of CPU time and memory for one PDF; CPU time counts from the start of the process."""
    used_s = int(time.process_time()) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (used_s + cpu_s, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, resource.RLIM_INFINITY))


def _answer(head: bytes, descriptor: int) -> bytes:
    size_bytes, pages, characters, enough_cpu_s, most_cpu_s, memory_bytes = REQUEST.unpack(head)
    _set_limits(most_cpu_s, memory_bytes)
    try:
        found = _read_pdf(os.pread(descriptor, size_bytes, 0), _Bounds(pages, characters, enough_cpu_s))
    except MemoryError:
        found = _PdfContent(Verdict.MEMORY)
    title, text = found.title.encode("utf-8", "replace"), found.text.encode("utf-8", "replace")
    return REPLY.pack(found.verdict, found.pages, len(title), len(text)) + title + text


def main() -> None:
    """Serve PDF requests from standard input until the other end closes it."""
    _confine()
    with socket.socket(fileno=0) as line:
        while True:
            head, descriptors, _, _ = socket.recv_fds(line, REQUEST.size, 1)
            if len(head) < REQUEST.size or not descriptors:
                return
            reply = _answer(head, descriptors[0])
            os.close(descriptors[0])
            line.sendall(reply)


if __name__ == "__main__":
    main()
