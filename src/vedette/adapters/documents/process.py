"""Document child process, run as a module by ``vedette.adapters.documents.reader``; it reads one document at a time.

A document is untrusted and may contain programs in several languages; the only safe way to read it is a process that
may crash. It holds no state, is limited in memory and CPU time by the kernel, has neither network nor files nor other
programs (``vedette.adapters.sandbox``), and exits when its parent does. The type of a document is detected from its
first bytes: its declared name and type may be wrong.
"""

import codecs
import os
import re
import resource
import socket
import time

from vedette.adapters.documents.outcomes import (
    KINDS,
    REPLY,
    REQUEST,
    Bounds,
    DocumentContent,
    Verdict,
    choose_title,
)
from vedette.adapters.sandbox import enter_sandbox
from vedette.adapters.subprocesses import die_with_parent

_MAX_FILES = 64
_PDF_WITHIN = _TEXT_WITHIN = 1_024
_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
# The lines between two rulers at the top (front matter), as in static site generators.
_FRONT_MATTER = re.compile(r"---[ \t]*\n(.{0,20000}?\n)---[ \t]*(?:\n|\Z)", re.DOTALL)
_FRONT_TITLE = re.compile(r"""^title:[ \t]*(["']?)([^\n]{1,1000}?)\1[ \t]*$""", re.MULTILINE)


def read_document(data: bytes, bounds: Bounds) -> DocumentContent:
    """Read title and text of a document, or return why there are none."""
    if b"%PDF-" in data[:_PDF_WITHIN]:
        from vedette.adapters.documents.pdf import read_pdf

        return read_pdf(data, bounds)
    if data.startswith(b"PK"):
        from vedette.adapters.documents.office import read_package

        return read_package(data, bounds)
    return _read_markdown(data, bounds)


def _read_markdown(data: bytes, bounds: Bounds) -> DocumentContent:
    """Render Markdown (CommonMark with tables) as HTML; the title may be in the front matter."""
    from markdown_it import MarkdownIt

    if b"\0" in data[:_TEXT_WITHIN] and not data.startswith(_UTF16_MARKS):
        return DocumentContent(Verdict.BROKEN, kind="md")
    text = _decode(data[: 4 * bounds.characters])[: bounds.characters].replace("\r\n", "\n")
    front = _FRONT_MATTER.match(text)
    named = _FRONT_TITLE.search(front[1]) if front else None
    html = MarkdownIt("commonmark").enable("table").render(text[front.end() :] if front else text)
    verdict = Verdict.TEXT if html.strip() else Verdict.NO_TEXT
    return DocumentContent(verdict, 0, choose_title(named[2] if named else ""), html[: bounds.characters], "md")


def _decode(data: bytes) -> str:
    """Decode text of unknown charset: by its byte-order mark, as UTF-8, else as the usual non-UTF-8 encoding."""
    if data.startswith(_UTF16_MARKS):
        return data.decode("utf-16", "replace")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        cut = error.end >= len(data) or error.reason == "unexpected end of data"
        return data.decode("utf-8-sig" if cut else "cp1252", "replace")


def _confine() -> None:
    """Drop the privileges that reading documents does not need, before the first untrusted byte is read."""
    die_with_parent()
    for what, most in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_NOFILE, _MAX_FILES)):
        resource.setrlimit(what, (most, most))
    enter_sandbox()


def _set_limits(cpu_s: int, memory_bytes: int) -> None:
    """Set the limits of CPU time and memory for one document; CPU time counts from the start of the process."""
    used_s = int(time.process_time()) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (used_s + cpu_s, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, resource.RLIM_INFINITY))


def _answer(head: bytes, descriptor: int) -> bytes:
    size_bytes, pages, characters, enough_cpu_s, most_cpu_s, memory_bytes = REQUEST.unpack(head)
    _set_limits(most_cpu_s, memory_bytes)
    try:
        found = read_document(os.pread(descriptor, size_bytes, 0), Bounds(pages, characters, enough_cpu_s))
    except MemoryError:
        found = DocumentContent(Verdict.MEMORY)
    except RecursionError:
        found = DocumentContent(Verdict.BROKEN)
    title, text = found.title.encode("utf-8", "replace"), found.text.encode("utf-8", "replace")
    return REPLY.pack(found.verdict, KINDS.index(found.kind), found.pages, len(title), len(text)) + title + text


def main() -> None:
    """Serve requests to read a document from standard input until the other end closes it."""
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
