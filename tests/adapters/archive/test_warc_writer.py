"""WARC files that we write: valid by independent checkers, readable by other libraries, intact after crashes."""

import gzip
import io
import subprocess
import sys
import tempfile
import warnings
import zlib
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from vedette.adapters.archive.warc_reader import read_answer
from vedette.adapters.archive.warc_record import Exchange, Revisit, compute_digest
from vedette.adapters.archive.warc_writer import (
    UNACKNOWLEDGED_DIR,
    WarcWriter,
    quarantine_unacknowledged,
    truncate_tail,
)
from vedette.engine.messages import ArchiveLocation

with warnings.catch_warnings():
    # On import the library warns of the old names that it keeps itself.
    warnings.simplefilter("ignore", DeprecationWarning)
    from fastwarc.warc import ArchiveIterator, WarcRecord, revisit

REQUEST = b"GET /a HTTP/1.1\r\nHost: example.org\r\nUser-Agent: test\r\n\r\n"
HTML = b"<!doctype html><title>A</title>" + b"<p>Some words of a page.</p>" * 50


def answered(
    head: bytes = b"HTTP/1.1 200 OK\r\n\r\n", payload: bytes = HTML, url: str = "https://example.org/a"
) -> Exchange:
    """Return an exchange with this response."""
    return Exchange(url, 1_700_000_000.5, REQUEST, head, payload, "192.0.2.1")


def again(exchange: Exchange, head: bytes = b"HTTP/1.1 304 Not Modified\r\nETag: x\r\n\r\n") -> Exchange:
    """Return another request for the same page, which is not modified."""
    what = Revisit("server-not-modified", exchange.url, exchange.fetched_s, compute_digest(exchange.payload))
    return replace(exchange, response_head=head, payload=b"", fetched_s=exchange.fetched_s + 9.0, revisit=what)


KINDS = {
    "plain": answered(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(HTML)),
    "chunked": answered(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
    "chunked with a length": answered(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 7\r\n\r\n"),
    "gzip": answered(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n", gzip.compress(HTML)),
    "chunked gzip": answered(
        b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ntransfer-encoding: gzip, chunked\r\n\r\n", gzip.compress(HTML)
    ),
    "empty": answered(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", b""),
    "not modified": answered(b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5000\r\n\r\n", b""),
    "huge": answered(payload=bytes(range(256)) * 50_000),
    "names beyond ASCII": answered("HTTP/1.1 200 Gewiß\r\nX-Stadt: Köln\r\nX-Ort: 東京\r\n\r\n".encode()),
    "bytes of no encoding": answered(b"HTTP/1.1 200 OK\r\nX-Odd: \xff\xfe\x80\r\nSet-Cookie: a=\xe9\r\n\r\n"),
    "binary": answered(
        b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n\r\n", bytes(range(256)) + b"\r\n\r\nWARC/1.1\r\n"
    ),
    "chunks in the payload": answered(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"5\r\nhello\r\n0\r\n\r\n"
    ),
    "bare line feeds": answered(b"HTTP/1.0 200 OK\nServer: old\nTransfer-Encoding: chunked\n\n"),
    "interim answer": answered(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nServer: s\r\n\r\n"),
    "folded line": answered(b"HTTP/1.1 200 OK\r\nX-Long: one\r\n two\r\n   \r\nServer: s\r\n\r\n"),
    "no blank line": answered(b"HTTP/1.1 200 OK\r\nServer: s"),
    "HTTP/2": answered(b"HTTP/2 200 \r\nserver: s\r\ncontent-length: %d\r\n\r\n" % len(HTML)),
    "cut": replace(answered(b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n"), truncated="length"),
    "no address": replace(answered(), address=""),
    "IPv6": replace(answered(), address="2001:db8::1"),
}


def passes(command: Sequence[str | Path]) -> None:
    """Run an external checker, which must pass."""
    program = Path(sys.executable).with_name(str(command[0]))
    result = subprocess.run([program, *command[1:]], capture_output=True, text=True, check=False)
    assert result.returncode == 0, f"{command}: {result.stdout}{result.stderr}"


def check(*files: Path) -> None:
    """Run both checkers; one does not know that a revisit's payload digest refers to a payload elsewhere."""
    passes(["warcio", "check", *files])
    for file in files:
        of_payloads = [] if list(ArchiveIterator(str(file), record_types=revisit)) else ["-p"]
        passes(["fastwarc", "check", "-q", *of_payloads, file])


def written(folder: Path, *exchanges: Exchange, rotate_bytes: int = 10**9, name: str = "w0") -> list[ArchiveLocation]:
    """Write exchanges and return their locations."""
    with closing(WarcWriter(folder, name, "Vedette/test", "op@example.org", rotate_bytes)) as writer:
        return [writer.append(exchange) for exchange in exchanges]


def heads(file: Path) -> list[dict[str, str]]:
    """Return the headers of all records, in order."""
    return [dict(record.headers.items()) for record in ArchiveIterator(str(file))]


def as_others_read(folder: Path, place: ArchiveLocation) -> tuple[WarcRecord, bytes]:
    """Return the record and its payload, as another library reads them from these bytes alone."""
    data = (folder / place.file).read_bytes()[place.offset : place.offset + place.length]
    found = [(record, record.reader.read()) for record in ArchiveIterator(io.BytesIO(data), auto_decode="transfer")]
    assert len(found) == 1
    return found[0]


def test_checkers_of_the_field_accept_every_kind_of_answer(tmp_path: Path) -> None:
    """Block and payload digests agree with those that other programs compute."""
    places = written(tmp_path, *KINDS.values())
    check(tmp_path / places[0].file)


@pytest.mark.parametrize("kind", KINDS)
def test_another_reader_sees_the_payload_that_was_sent(tmp_path: Path, kind: str) -> None:
    """No remaining header makes a reader remove chunks from a payload that has none."""
    (place,) = written(tmp_path, KINDS[kind])
    record, payload = as_others_read(tmp_path, place)
    assert payload == KINDS[kind].payload
    assert record.http_headers.status_code == (304 if kind == "not modified" else 200)
    assert read_answer(tmp_path, place).payload == payload


def test_header_lines_are_kept_verbatim_except_those_that_no_longer_hold(tmp_path: Path) -> None:
    """Transfer coding and a wrong length are kept under another name."""
    head = (
        b"HTTP/1.1 200 OK\r\nX-a:  b \r\nTRANSFER-Encoding: chunked\r\nContent-length: 7\r\nSET-cookie: a=\xff\r\n\r\n"
    )
    (place,) = written(tmp_path, answered(head, b"12345"))
    kept = read_answer(tmp_path, place).response_head.split(b"\r\n")
    assert kept == [
        b"HTTP/1.1 200 OK",
        b"X-a:  b ",
        b"X-Crawler-TRANSFER-Encoding: chunked",
        b"X-Crawler-Content-length: 7",
        b"SET-cookie: a=\xff",
        b"Content-Length: 5",
        b"",
        b"",
    ]


def test_a_head_that_holds_is_not_touched(tmp_path: Path) -> None:
    """With the right length and no transfer coding, it is byte for byte what the server sent."""
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\n"
    (place,) = written(tmp_path, answered(head, b"abc"))
    assert read_answer(tmp_path, place).response_head == head


def test_a_length_of_what_was_not_sent_stays(tmp_path: Path) -> None:
    """For a revisit, the length is that of the payload elsewhere."""
    head = b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5000\r\n\r\n"
    first, second = written(tmp_path, answered(head, b""), again(answered(), head))
    assert read_answer(tmp_path, first).response_head == head
    assert read_answer(tmp_path, second).response_head == head


def test_each_file_begins_by_saying_who_wrote_it(tmp_path: Path) -> None:
    """The first record is a warcinfo with file, software and operator."""
    (place,) = written(tmp_path, answered())
    info = next(iter(ArchiveIterator(str(tmp_path / place.file))))
    assert info.headers["WARC-Type"] == "warcinfo"
    assert info.headers["WARC-Filename"] == place.file
    assert b"software: Vedette/test\r\noperator: op@example.org\r\n" in info.reader.read()


def test_request_and_answer_know_each_other(tmp_path: Path) -> None:
    """The request refers to its response, and both have the address and the time."""
    (place,) = written(tmp_path, answered())
    _, answer, request = heads(tmp_path / place.file)
    assert (answer["WARC-Type"], request["WARC-Type"]) == ("response", "request")
    assert request["WARC-Concurrent-To"] == answer["WARC-Record-ID"]
    assert answer["WARC-IP-Address"] == request["WARC-IP-Address"] == "192.0.2.1"
    assert answer["WARC-Date"] == request["WARC-Date"] == "2023-11-14T22:13:20.500Z"


def test_no_two_records_have_one_name(tmp_path: Path) -> None:
    """This is true even if the same response is written twice at the same moment."""
    (place, *_) = written(tmp_path, answered(), answered(), answered())
    names = [head["WARC-Record-ID"] for head in heads(tmp_path / place.file)]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("profile", ["identical-payload-digest", "server-not-modified"])
def test_a_revisit_leads_to_the_record_that_has_the_payload(tmp_path: Path, profile: str) -> None:
    """URL, date and payload digest are exactly those of the earlier record."""
    first = answered(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    second = again(first)
    assert second.revisit is not None
    if profile == "identical-payload-digest":
        revisit_ = replace(second.revisit, profile="identical-payload-digest")
        second = replace(second, response_head=first.response_head, payload=first.payload, revisit=revisit_)
    place, _ = written(tmp_path, first, second)
    earlier, later = (head for head in heads(tmp_path / place.file) if head["WARC-Type"] in {"response", "revisit"})
    assert later["WARC-Profile"] == f"http://netpreserve.org/warc/1.1/revisit/{profile}"
    assert later["WARC-Refers-To-Target-URI"] == earlier["WARC-Target-URI"]
    assert later["WARC-Refers-To-Date"] == earlier["WARC-Date"]
    assert later["WARC-Payload-Digest"] == earlier["WARC-Payload-Digest"]
    assert later.get("WARC-Truncated") == ("length" if profile == "identical-payload-digest" else None)
    check(tmp_path / place.file)


def test_what_was_cut_says_so(tmp_path: Path) -> None:
    """The record's header contains the reason."""
    (place,) = written(tmp_path, KINDS["cut"])
    record, _ = as_others_read(tmp_path, place)
    assert record.headers["WARC-Truncated"] == "length"


@pytest.mark.parametrize(
    ("url", "status", "protocol"),
    [
        ("https://example.org/", b"HTTP/2 200 ", "h2"),
        ("http://example.org/", b"HTTP/2 200", "h2c"),
        ("https://example.org/", b"HTTP/3 200 ", "h3"),
    ],
)
def test_newer_protocols_are_written_as_http_1(tmp_path: Path, url: str, status: bytes, protocol: str) -> None:
    """An HTTP/2 status line is not valid here; the protocol has its own field."""
    exchange = replace(answered(status + b"\r\nserver: s\r\n\r\n", b"", url), request_head=b"GET / HTTP/2\r\n\r\n")
    (place,) = written(tmp_path, exchange)
    _, answer, request = ArchiveIterator(str(tmp_path / place.file))
    assert read_answer(tmp_path, place).response_head == b"HTTP/1.1 200 \r\nserver: s\r\n\r\n"
    assert answer.headers["WARC-Protocol"] == request.headers["WARC-Protocol"] == protocol
    assert b"GET / HTTP/1.1\r\n\r\n" in gzip.decompress((tmp_path / place.file).read_bytes())


def test_a_value_cannot_begin_a_line_of_its_own(tmp_path: Path) -> None:
    """A line break in a URL does not create a second header."""
    (place,) = written(tmp_path, answered(url="https://example.org/\r\nWARC-Type: warcinfo\n\x00"))
    record, _ = as_others_read(tmp_path, place)
    assert record.headers["WARC-Type"] == "response"
    assert record.headers["WARC-Target-URI"].startswith("https://example.org/ WARC-Type")


def test_an_answer_that_is_not_http_is_refused(tmp_path: Path) -> None:
    """This is the caller's mistake: the HTTP adapter never returns such bytes."""
    with pytest.raises(ValueError, match="status line"):
        written(tmp_path, answered(b"hello\r\n\r\n"))


LINES = st.one_of(
    st.binary(max_size=40).map(lambda line: line.replace(b"\n", b"")),
    st.sampled_from(
        [
            b"Transfer-Encoding: chunked\r",
            b"transfer-encoding : gzip, chunked\r",
            b"Content-Length: 5\r",
            b"content-length: 18446744073709551616\r",
            b"Content-Length: -1\r",
            b"Content-Encoding: gzip\r",
            b" folded\r",
            b"\tTransfer-Encoding: chunked\r",
            b"   \r",
            b"\x85\r",
            b"\r",
            b"X-Two: \xe2\x80\xa8a\r",
            b"HTTP/1.1 200 OK\r",
            b": no name\r",
            b"\x00\r",
        ]
    ),
)
STATUS = st.sampled_from(
    [b"HTTP/1.1 200 OK\r", b"HTTP/1.0 404 \r", b"HTTP/2 200 \r", b"HTTP/1.1 204 None\r", b"HTTP/1.1 500"]
)
EXCHANGES = st.builds(
    Exchange,
    url=st.text(max_size=20).map("https://example.org/".__add__),
    fetched_s=st.floats(min_value=0.0, max_value=4e9),
    request_head=st.binary(max_size=60).map(b"GET / HTTP/1.1\r\n".__add__),
    response_head=st.tuples(STATUS, st.lists(LINES, max_size=8)).map(
        lambda parts: b"\n".join([parts[0], *parts[1], b"\r\n"])
    ),
    payload=st.one_of(
        st.binary(max_size=200), st.sampled_from([b"5\r\nhello\r\n0\r\n\r\n", b"\r\n\r\nWARC/1.1\r\n", HTML])
    ),
    address=st.sampled_from(["192.0.2.1", "2001:db8::1", ""]),
    truncated=st.sampled_from([None, "length", "time", "disconnect", "unspecified"]),
)


@given(EXCHANGES)
@example(answered(b"HTTP/1.1 200 OK\r\n\xc2\xa0\r\nServer: s\r\n\r\n"))
def test_whatever_a_server_sends_comes_back(exchange: Exchange) -> None:
    """Our reader and another one get the payload, whatever the headers claim."""
    with tempfile.TemporaryDirectory() as name:
        (place,) = written(Path(name), exchange)
        assert read_answer(Path(name), place).payload == exchange.payload
        assert as_others_read(Path(name), place)[1] == exchange.payload


# Without shrinking, which would start the programs hundreds of times.
@settings(max_examples=settings().max_examples // 10, phases=(Phase.generate,))
@given(st.lists(EXCHANGES, min_size=10, max_size=40))
def test_whatever_a_server_sends_passes_the_checkers(exchanges: list[Exchange]) -> None:
    """With many odd responses in one file, all digests agree."""
    with tempfile.TemporaryDirectory() as name:
        places = written(Path(name), *exchanges)
        check(Path(name) / places[0].file)


def test_files_end_near_the_wanted_size_and_at_a_record(tmp_path: Path) -> None:
    """Every file but the last exceeds the size by at most one exchange, and is complete."""
    rotate_bytes = 3000
    places = written(
        tmp_path, *[answered(url=f"https://example.org/{n}") for n in range(12)], rotate_bytes=rotate_bytes
    )
    files = sorted(tmp_path.iterdir())
    assert [file.name for file in files] == sorted({place.file for place in places})
    assert len(files) > 2
    for file in files[:-1]:
        last = max(place.offset for place in places if place.file == file.name)
        assert last < rotate_bytes <= file.stat().st_size
    check(*files)


def test_flush_names_every_file_that_grew(tmp_path: Path) -> None:
    """It returns the length of each file that was written to."""
    writer = WarcWriter(tmp_path, "w0", "Vedette/test", rotate_bytes=3000)
    places = [writer.append(answered()) for _ in range(12)]
    lengths = writer.flush()
    assert list(lengths) == list(dict.fromkeys(place.file for place in places))
    assert lengths == {file: (tmp_path / file).stat().st_size for file in lengths}
    assert writer.flush() == {}
    place = writer.append(answered())
    assert list(writer.close()) == [place.file]


def test_a_synced_writer_writes_the_same(tmp_path: Path) -> None:
    """Syncing does not change any byte."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    for folder, sync in (("a", False), ("b", True)):
        writer = WarcWriter(tmp_path / folder, "w0", "Vedette/test", rotate_bytes=2000, sync=sync)
        for exchange in KINDS.values():
            writer.append(exchange)
            writer.flush()
        writer.close()
    first, second = ({file.name: file.read_bytes() for file in (tmp_path / folder).iterdir()} for folder in "ab")
    assert first == second


def test_a_new_writer_begins_a_new_file(tmp_path: Path) -> None:
    """Serial numbers grow over restarts, by name; a finished file is not touched."""
    (first,) = written(tmp_path, answered())
    before = (tmp_path / first.file).read_bytes()
    (second,) = written(tmp_path, answered())
    other = WarcWriter(tmp_path, "w1", "Vedette/test")
    third = other.append(answered())
    other.close()
    assert [first.file, second.file, third.file] == [
        "vedette-w0-00000.warc.gz",
        "vedette-w0-00001.warc.gz",
        "vedette-w1-00000.warc.gz",
    ]
    assert (tmp_path / first.file).read_bytes() == before


def test_a_writer_without_exchanges_leaves_no_file(tmp_path: Path) -> None:
    """A worker that fetched nothing writes nothing."""
    assert WarcWriter(tmp_path, "w0", "Vedette/test").close() == {}
    assert list(tmp_path.iterdir()) == []


def test_two_writers_of_one_name_do_not_mix(tmp_path: Path) -> None:
    """The second one to start a file is refused; the first one's file is complete."""
    first, second = (WarcWriter(tmp_path, "w0", "Vedette/test") for _ in range(2))
    place = first.append(answered())
    with pytest.raises(FileExistsError):
        second.append(answered())
    first.close()
    check(tmp_path / place.file)


@pytest.mark.parametrize("name", ["", "a/b", "..\x00", "a b"])
def test_a_name_that_cannot_be_a_file_name_is_refused(tmp_path: Path, name: str) -> None:
    """It is refused immediately, not with the first page."""
    with pytest.raises(ValueError, match="file name"):
        WarcWriter(tmp_path, name, "Vedette/test")


def test_a_file_cut_at_any_acknowledged_length_is_whole(tmp_path: Path) -> None:
    """After a crash between any two flushes, the checkers pass and every acknowledged response is there."""
    writer = WarcWriter(tmp_path, "w0", "Vedette/test")
    moments = []
    for exchange in [*KINDS.values(), again(KINDS["plain"])]:
        place = writer.append(exchange)
        moments.append((writer.flush(), place, exchange))
    writer.close()
    (file,) = {place.file for _, place, _ in moments}
    whole = (tmp_path / file).read_bytes()
    cut = []
    for number, (acknowledged, _, _) in enumerate(moments):
        folder = tmp_path / str(number)
        folder.mkdir()
        # A crash leaves a part of what came after the flush.
        (folder / file).write_bytes(whole[: acknowledged[file] + number * 7])
        assert quarantine_unacknowledged(folder, acknowledged) == []
        cut.append(folder / file)
        for _, place, exchange in moments[: number + 1]:
            assert read_answer(folder, place).payload == exchange.payload
    passes(["warcio", "check", *cut])
    for path in cut:
        assert all(record.verify_block_digest() for record in ArchiveIterator(str(path), parse_http=False))
    passes(["fastwarc", "check", "-q", cut[-1]])


def test_what_was_never_acknowledged_is_moved_aside(tmp_path: Path) -> None:
    """It is reported; only our own files are moved, others in the folder stay."""
    places = written(tmp_path, *[answered()] * 12, rotate_bytes=3000)
    (tmp_path / "theirs.warc.gz").write_bytes(b"x")
    (tmp_path / "vedette-notes.txt").write_bytes(b"x")
    files = {place.file: (tmp_path / place.file).read_bytes() for place in places}
    first, *others = files
    report = quarantine_unacknowledged(tmp_path, {first: len(files[first])})
    assert [words.split()[0] for words in report] == others
    left = sorted(path.name for path in tmp_path.iterdir() if path.is_file())
    assert left == ["theirs.warc.gz", "vedette-notes.txt", first]
    assert {path.name: path.read_bytes() for path in (tmp_path / UNACKNOWLEDGED_DIR).iterdir()} == {
        name: files[name] for name in others
    }


def test_a_tail_is_cut_off_and_kept_however_often(tmp_path: Path) -> None:
    """Data beyond the acknowledged length is moved aside, even a second tail at the same offset."""
    (place,) = written(tmp_path, answered())
    path = tmp_path / place.file
    whole = path.read_bytes()
    for tail in (b"first", b"second"):
        path.write_bytes(whole + tail)
        assert quarantine_unacknowledged(tmp_path, {place.file: len(whole)}) == []
        assert path.read_bytes() == whole
    assert sorted(each.read_bytes() for each in (tmp_path / UNACKNOWLEDGED_DIR).iterdir()) == [b"first", b"second"]


def test_what_a_dead_writer_left_is_dropped(tmp_path: Path) -> None:
    """If the coordinator is running, no one else needs it; files of other writers are not changed."""
    (mine, _) = written(tmp_path, answered(), answered())
    (other,) = written(tmp_path, answered(), name="w1")
    path = tmp_path / mine.file
    acknowledged = {mine.file: path.stat().st_size}
    with path.open("ab") as file:
        file.write(b"half a record")
    later = path.with_name(mine.file.replace("00000", "00001"))
    later.write_bytes(b"never acknowledged")
    truncate_tail(tmp_path, acknowledged, "w0")
    assert sorted(each.name for each in tmp_path.iterdir()) == [mine.file, other.file]
    assert path.stat().st_size == acknowledged[mine.file]


def test_a_tail_that_is_shared_with_a_backup_stays_there(tmp_path: Path) -> None:
    """Truncating a file that has a second hard link does not change the other one."""
    (place,) = written(tmp_path, answered())
    path, other = tmp_path / place.file, tmp_path / "backup"
    whole = path.read_bytes()
    other.hardlink_to(path)
    assert quarantine_unacknowledged(tmp_path, {place.file: place.offset}) == []
    assert (other.read_bytes(), path.read_bytes()) == (whole, whole[: place.offset])


def test_lost_bytes_are_told_in_words(tmp_path: Path) -> None:
    """A file that is missing or shorter than acknowledged is reported with both sizes, and not changed."""
    (place,) = written(tmp_path, answered())
    path = tmp_path / place.file
    path.write_bytes(path.read_bytes()[:100])
    short, gone = quarantine_unacknowledged(tmp_path, {place.file: 700, "vedette-w9-00000.warc.gz": 50})
    assert place.file in short
    assert "100 bytes" in short
    assert "700" in short
    assert "vedette-w9-00000.warc.gz has 0 bytes" in gone
    assert path.stat().st_size == 100


def test_every_record_is_a_gzip_member_of_its_own(tmp_path: Path) -> None:
    """So any record can be read or cut off without the others."""
    (place,) = written(tmp_path, answered())
    rest, members = (tmp_path / place.file).read_bytes(), 0
    while rest:
        member = zlib.decompressobj(16 + zlib.MAX_WBITS)
        assert member.decompress(rest).startswith(b"WARC/1.1\r\n")
        rest, members = member.unused_data, members + 1
    assert members == len(heads(tmp_path / place.file))
