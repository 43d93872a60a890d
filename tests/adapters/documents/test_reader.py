"""Documents are read in a child process: their text is extracted, and no document can harm the caller."""

import os
import select
import subprocess
import sys
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tree_runs import PATIENCE_S

from vedette.adapters.documents.reader import (
    DocumentFailure,
    DocumentFailureReason,
    DocumentLimits,
    DocumentReader,
    DocumentText,
)

MIB = 2**20
PATIENT = DocumentLimits(wall_s=60.0)
SLEEPER = (sys.executable, "-c", "import time; time.sleep(600)")
ENDS_AT_ONCE = (sys.executable, "-c", "raise SystemExit(1)")
FEW = settings(max_examples=settings().max_examples // 2)
XMP = "<x:xmpmeta><dc:title>\n <rdf:Alt><rdf:li xml:lang='x-default'>{}</rdf:li></rdf:Alt></dc:title></x:xmpmeta>"

Read = DocumentText | DocumentFailure


def stream(data: bytes, *entries: str) -> bytes:
    """Return a stream object."""
    return f"<< /Length {len(data)} {' '.join(entries)} >>\nstream\n".encode() + data + b"\nendstream"


def draw_lines(text: str, size: float = 12) -> bytes:
    """Return the operators that show lines of text."""
    lines = "".join(f"({line}) Tj 0 -{size + 6} Td " for line in text.split("\n"))
    return f"BT /F1 {size} Tf 72 720 Td {lines} ET\n".encode("latin-1")


def pdf(*pages: bytes, trailer: str = "", more: tuple[bytes, ...] = (), entries: str = "") -> bytes:
    """Return a document whose pages have these operators; objects in ``more`` are numbered from 3 on."""
    first = 4 + len(more)
    kids = " ".join(f"{first + 2 * number} 0 R" for number in range(len(pages)))
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>"]
    objects += [f"<< /Type /Pages /Count {len(pages)} /Kids [{kids}] >>".encode(), *more]
    objects += [b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
    for number, operators in enumerate(pages):
        box = f"/MediaBox [0 0 612 792] /Resources << /Font << /F1 {first - 1} 0 R >> >>"
        head = f"<< /Type /Page /Parent 2 0 R {box} /Contents {first + 2 * number + 1} 0 R >>"
        objects += [head.encode(), stream(operators, entries)]
    return written(objects, trailer)


def written(objects: list[bytes], trailer: str = "") -> bytes:
    """Return a file of objects; the first is the catalog."""
    out, places = bytearray(b"%PDF-1.7\n"), []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%b\nendobj\n" % (number, body)
    start = len(out)
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    out += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}".encode()
    out += f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R {trailer} >>\nstartxref\n{start}\n%%EOF\n".encode()
    return bytes(out)


def titled(title: str, *pages: bytes) -> bytes:
    """A document with a title in its metadata."""
    return pdf(*pages, trailer="/Info 3 0 R", more=(f"<< /Title ({title}) >>".encode("latin-1"),))


def await_all(reader: DocumentReader[str], count: int) -> list[tuple[str, Read]]:
    """Wait on the descriptor, as an event loop does, until this many documents are done."""
    found: list[tuple[str, Read]] = []
    while len(found) < count:
        select.select([reader.fd], [], [], 0.1)
        found += reader.collect()
    return found


def outcome(reader: DocumentReader[str], data: bytes) -> Read:
    """Return the outcome of one document."""
    reader.submit("it", data)
    ((key, found),) = await_all(reader, 1)
    assert key == "it"
    return found


def failure(reader: DocumentReader[str], data: bytes) -> DocumentFailureReason:
    """Return why a document has no text."""
    found = outcome(reader, data)
    assert isinstance(found, DocumentFailure), found
    return found.reason


def children() -> set[int]:
    """Return the child processes, including zombies."""
    return set(map(int, Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()))


@pytest.fixture(scope="module")
def reader() -> Iterator[DocumentReader[str]]:
    """A reader whose child serves many tests."""
    with closing(DocumentReader[str](PATIENT)) as reader:
        yield reader


def test_text_of_all_pages_in_their_order(reader: DocumentReader[str]) -> None:
    """Each line of each page occurs once, in page order."""
    found = outcome(reader, pdf(draw_lines("One fish\nTwo fish"), draw_lines("Red fish")))
    assert found == DocumentText("One fish", "One fish\nTwo fish\nRed fish", 2)


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("A short history of almonds", "A short history of almonds"),
        ("Microsoft Word - almonds", "almonds"),
        ("  Almonds \\n and  figs ", "Almonds and figs"),
        ("untitled", "Chapter 1"),
        ("", "Chapter 1"),
        ("2024-11-03", "Chapter 1"),
    ],
)
def test_a_title_that_says_something(reader: DocumentReader[str], title: str, expected: str) -> None:
    """The title is the one that the file states, unless it is empty or a program's placeholder."""
    assert outcome(reader, titled(title, draw_lines("Chapter 1\nText."))).title == expected


def test_a_title_in_the_metadata_packet(reader: DocumentReader[str]) -> None:
    """If only the XMP packet has a title, it is used, including entities and non-ASCII letters."""
    packet = stream(XMP.format("Caf\u00e9 &amp; bar").encode(), "/Type /Metadata /Subtype /XML")
    assert outcome(reader, pdf(draw_lines("Menu of today"), more=(packet,))).title == "Caf\u00e9 & bar"


def test_a_heading_is_a_title(reader: DocumentReader[str]) -> None:
    """Without a stated title, the first words in the largest type on the first page are the title."""
    page = (
        draw_lines("Journal of Nuts, volume 3", 8)
        + b"BT 0 -90 Td ET "
        + draw_lines("On the almond", 24)
        + draw_lines("We ask.", 11)
    )
    assert outcome(reader, pdf(page, draw_lines("Appendix", 48))).title == "On the almond"


def test_letters_of_other_scripts(reader: DocumentReader[str]) -> None:
    """Text is Unicode, according to the encoding that the font declares."""
    assert "Zürich" in getattr(outcome(reader, pdf(draw_lines("Z\xfcrich"))), "text", "")


def test_an_encrypted_file(reader: DocumentReader[str]) -> None:
    """A file that can't be opened without its password says so."""
    lock = f"<< /Filter /Standard /V 1 /R 2 /P -4 /O <{'ab' * 32}> /U <{'cd' * 32}> >>"
    data = pdf(draw_lines("secret"), trailer=f"/Encrypt 3 0 R /ID [<{'01' * 16}> <{'01' * 16}>]", more=(lock.encode(),))
    assert failure(reader, data) is DocumentFailureReason.PASSWORD


def test_pictures_only(reader: DocumentReader[str]) -> None:
    """A scan has no text, which is reported; its title is kept."""
    found = outcome(reader, titled("Minutes of 1931", b"q 600 0 0 700 0 0 cm BI /W 1 /H 1 /BPC 8 /CS /G ID \x7f EI Q"))
    assert found == DocumentFailure(DocumentFailureReason.NO_TEXT, "Minutes of 1931")


@pytest.mark.parametrize(
    "data",
    [b"\0", b"%PDF-1.7\n", bytes(MIB), b"%PDF-1.4\n" + b"1 0 obj\n" * 50_000, b"PK\x03\x04", b"PK\x05\x06" + bytes(18)],
    ids=["a NUL", "a head", "a megabyte of NUL", "objects without end", "a part of an archive", "an empty archive"],
)
def test_what_is_no_document(reader: DocumentReader[str], data: bytes) -> None:
    """Such bytes give a reason, and the child continues."""
    assert failure(reader, data) is DocumentFailureReason.BROKEN


def test_no_pages(reader: DocumentReader[str]) -> None:
    """A valid empty document says so or counts as broken; it has no text in either case."""
    assert failure(reader, pdf()) in {DocumentFailureReason.EMPTY, DocumentFailureReason.BROKEN}


def test_pages_that_contain_each_other(reader: DocumentReader[str]) -> None:
    """A page tree that leads back to its root has an outcome."""
    loop = [b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Count 1000000 /Kids [2 0 R 2 0 R] >>"]
    assert failure(reader, written(loop)) in {
        DocumentFailureReason.EMPTY,
        DocumentFailureReason.BROKEN,
        DocumentFailureReason.NO_TEXT,
    }


def test_text_is_bounded() -> None:
    """Characters and pages are limited, and truncation is reported."""
    pages = [draw_lines(f"Page {number} " + "word " * 50) for number in range(30)]
    with closing(DocumentReader[str](DocumentLimits(wall_s=60.0, characters=1_000))) as reader:
        found = outcome(reader, pdf(*pages))
    assert isinstance(found, DocumentText)
    assert (len(found.text), found.pages) == (1_000, 30)
    with closing(DocumentReader[str](DocumentLimits(wall_s=60.0, pages=2))) as reader:
        found = outcome(reader, pdf(*pages))
    assert isinstance(found, DocumentText)
    assert ("Page 1" in found.text, "Page 2" in found.text) == (True, False)


def test_a_bomb_breaks_only_the_child() -> None:
    """Half a megabyte that expands beyond the memory limit is rejected, and the next document is read."""
    bomb = zlib.compress(draw_lines("boom ") * (8 * MIB), 1)
    tight = DocumentLimits(wall_s=60.0, hard_cpu_s=20, memory_bytes=256 * MIB)
    with closing(DocumentReader[str](tight)) as reader:
        found = outcome(reader, pdf(bomb, entries="/Filter /FlateDecode"))
        assert isinstance(found, DocumentFailure), found
        assert found.reason in {
            DocumentFailureReason.MEMORY,
            DocumentFailureReason.CRASH,
            DocumentFailureReason.TIMEOUT,
            DocumentFailureReason.NO_TEXT,
        }
        assert isinstance(outcome(reader, pdf(draw_lines("still here"))), DocumentText)


def test_cpu_time_is_bounded() -> None:
    """A document that takes too long is given up by CPU time, whatever the wall clock."""
    spin = zlib.compress(draw_lines("a") * (2 * MIB), 1)
    with closing(DocumentReader[str](DocumentLimits(wall_s=600.0, hard_cpu_s=0, memory_bytes=4096 * MIB))) as reader:
        assert failure(reader, pdf(spin, entries="/Filter /FlateDecode")) is DocumentFailureReason.TIMEOUT


def test_who_hangs_is_killed_and_replaced() -> None:
    """At the deadline, a document is given up, its process is killed, and the next one gets its full time."""
    now_s = [0.0]
    with closing(DocumentReader[str](DocumentLimits(wall_s=9.0), SLEEPER, lambda: now_s[0])) as reader:
        before = children()
        reader.submit("first", b"")
        reader.submit("second", b"")
        (hung,) = children() - before
        assert reader.collect() == []
        now_s[0] += 10.0
        assert reader.collect() == [("first", DocumentFailure(DocumentFailureReason.TIMEOUT))]
        assert reader.collect() == []
        assert reader.pending == 1
        now_s[0] += 10.0
        assert reader.collect() == [("second", DocumentFailure(DocumentFailureReason.TIMEOUT))]
    assert hung not in children()


def test_handing_over_waits_for_nobody() -> None:
    """A child that reads nothing does not block a caller that submits a document larger than any pipe."""
    with closing(DocumentReader[str](PATIENT, SLEEPER)) as reader:
        reader.submit("large", bytes(20 * MIB))
        assert reader.collect() == []
        assert reader.pending == 1


@pytest.mark.parametrize("command", [ENDS_AT_ONCE, ("/nonexistent/program",)])
def test_a_child_that_cannot_live(command: tuple[str, ...]) -> None:
    """If no process can be started, or each exits immediately, every document still has one outcome."""
    with closing(DocumentReader[str](PATIENT, command)) as reader:
        for number in range(3):
            reader.submit(str(number), b"%PDF")
        found = await_all(reader, 3)
    assert [key for key, _ in found] == ["0", "1", "2"]
    assert {type(each) for _, each in found} == {DocumentFailure}


@pytest.mark.parametrize("reply", ["b'\\xff' * 4096", "b'\\0' * 15", "bytes(17)", "b'\\0\\0\\0\\x63' + bytes(12)"])
def test_a_child_that_lies(reply: str) -> None:
    """A reply of impossible size, without meaning, or incomplete is a failure, and uses no memory."""
    talker = f"import socket; line = socket.socket(fileno=0); line.recv(9999); line.sendall({reply})"
    with closing(DocumentReader[str](PATIENT, (sys.executable, "-c", talker))) as reader:
        assert failure(reader, b"%PDF") is DocumentFailureReason.CRASH


def test_words_without_a_question_are_not_believed() -> None:
    """A child that sends more after its reply is killed before it can answer for the next document."""
    talker = (
        "import socket, time\n"
        "line = socket.socket(fileno=0)\n"
        "line.recv(99)\n"
        "line.sendall(bytes(16))\n"
        "while True: line.sendall(bytes(1)); time.sleep(0.01)\n"
    )
    before = children()
    with closing(DocumentReader[str](PATIENT, (sys.executable, "-c", talker))) as reader:
        assert outcome(reader, b"%PDF") in (DocumentText("", "", 0), DocumentFailure(DocumentFailureReason.CRASH))
        while children() - before:
            assert reader.collect() == []


def test_a_queue_has_an_end() -> None:
    """Beyond the limit, a document is rejected immediately, by number and size; the capacity is known in advance."""
    few = DocumentLimits(wall_s=60.0, waiting=2)
    with closing(DocumentReader[str](few, SLEEPER)) as reader:
        for number in range(3):
            assert reader.has_room
            reader.submit(str(number), b"%PDF")
        assert not reader.has_room
        reader.submit("one more", b"%PDF")
        assert reader.collect() == [("one more", DocumentFailure(DocumentFailureReason.BUSY))]
    with closing(DocumentReader[str](DocumentLimits(wall_s=60.0, waiting_bytes=MIB), SLEEPER)) as reader:
        for number in range(2):
            reader.submit(str(number), bytes(MIB))
        assert not reader.has_room


def test_an_idle_child_is_let_go() -> None:
    """After a while without documents there is no process, and the next document starts one."""
    now_s = [0.0]
    with closing(DocumentReader[str](DocumentLimits(wall_s=60.0, idle_s=30.0), clock=lambda: now_s[0])) as reader:
        before = children()
        assert isinstance(outcome(reader, pdf(draw_lines("once"))), DocumentText)
        (child,) = children() - before
        now_s[0] += 31.0
        while child in children():
            assert reader.collect() == []
        assert isinstance(outcome(reader, pdf(draw_lines("again"))), DocumentText)


def test_a_child_serves_so_many_documents() -> None:
    """A process is replaced after a number of documents, because libraries leak memory; nothing is lost."""
    with closing(DocumentReader[str](DocumentLimits(wall_s=60.0, documents=2))) as reader:
        for number in range(5):
            reader.submit(str(number), pdf(draw_lines(f"number {number}")))
        found = await_all(reader, 5)
    assert [(key, getattr(each, "text", "")) for key, each in found] == [(str(n), f"number {n}") for n in range(5)]


def test_closing_leaves_nothing_behind() -> None:
    """No process, zombie or descriptor remains, even in the middle of a document."""
    before, files = children(), len(list(Path("/proc/self/fd").iterdir()))
    reader = DocumentReader[str](PATIENT, SLEEPER)
    reader.submit("it", b"%PDF")
    assert len(children()) > len(before)
    reader.close()
    assert (children(), len(list(Path("/proc/self/fd").iterdir()))) == (before, files)


def test_no_reader_outlives_its_parent() -> None:
    """If the caller is killed, its child exits."""
    program = (
        "import os, select, signal\n"
        "from vedette.adapters.documents.reader import DocumentReader\n"
        "reader = DocumentReader()\n"
        "reader.submit('it', b'%PDF')\n"
        "while not reader.collect(): select.select([reader.fd], [], [], 0.1)\n"
        "print(open(f'/proc/{os.getpid()}/task/{os.getpid()}/children').read(), flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    place = Path(f"/proc/{int(done.stdout)}/cmdline")
    while place.exists() and "pdf_process" in place.read_text():
        select.select([], [], [], 0.02)


SEEDS = [
    titled("A title", draw_lines("Some words", 20) + draw_lines("more words\nand more")),
    pdf(draw_lines("One"), draw_lines("Two"), more=(stream(XMP.format("Three").encode()),)),
    pdf(zlib.compress(draw_lines("packed words\n" * 20)), entries="/Filter /FlateDecode"),
]
TOKENS = [b"/Kids", b"/Count", b"/Length", b"endobj", b"1 0 R", b"2 0 R", b"-1", b"99999999999", b"<<", b">>", b"xref"]
edits = st.lists(
    st.tuples(st.floats(0, 1), st.integers(0, 40), st.sampled_from(TOKENS) | st.binary(max_size=8)),
    min_size=1,
    max_size=12,
)


@FEW
@given(st.sampled_from(SEEDS), edits)
def test_a_damaged_document_has_one_outcome(
    reader: DocumentReader[str], seed: bytes, cuts: list[tuple[float, int, bytes]]
) -> None:
    """Cut and mixed bytes give a bounded text or a reason, and nothing is left over."""
    data = seed
    for place, length, put_in in cuts:
        at = int(place * len(data))
        data = data[:at] + put_in + data[at + length :]
    found = outcome(reader, data)
    assert isinstance(found, DocumentText | DocumentFailure)
    assert len(found.title) <= 1_024
    assert reader.pending == 0


@FEW
@given(st.sampled_from(SEEDS), st.floats(0, 1))
def test_a_document_that_breaks_off(reader: DocumentReader[str], seed: bytes, share: float) -> None:
    """A truncated document is read as far as possible, or rejected."""
    found = outcome(reader, seed[: int(share * len(seed))])
    assert isinstance(found, DocumentText | DocumentFailure)
    assert reader.pending == 0
