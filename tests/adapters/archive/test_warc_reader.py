"""WARC files by any writer: good records are read whatever is around them, and every loss is reported."""

import gzip
import hashlib
import io
import json
import subprocess
import sys
import tracemalloc
from base64 import b32encode
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from vedette.adapters.archive.warc_reader import ArchivedAnswer, Damage, ImportedAnswer, read_answer, scan_warc
from vedette.adapters.archive.warc_record import Exchange
from vedette.adapters.archive.warc_recovery import StreamBreak, read_gzip
from vedette.adapters.archive.warc_writer import WarcWriter
from vedette.engine.messages import ArchiveLocation
from vedette.errors import StoreCorrupt

GOLDEN = Path(__file__).parents[2] / "golden" / "warc"
DATE = "2020-09-13T12:26:40Z"
DATE_S = 1_600_000_000.0


def raw(
    number: int, body: bytes = b"", head: str = "", *, digest: bool = True, http: bytes = b"", **fields: str
) -> bytes:
    """Return a response record as plain bytes; given fields replace the defaults, an empty one is left out."""
    block = (http or b"HTTP/1.1 200 OK\r\nServer: s\r\n\r\n") + (body or b"page %d" % number * 20)
    checksum = "sha1:" + b32encode(hashlib.sha1(block, usedforsecurity=False).digest()).decode()
    usual = {
        "WARC_Type": "response",
        "WARC_Target_URI": f"http://example.org/{number}",
        "WARC_Date": DATE,
        "Content_Type": "application/http; msgtype=response",
        "WARC_Block_Digest": checksum if digest else "",
        "Content_Length": str(len(block)),
    }
    lines = [f"{name.replace('_', '-')}: {value}\r\n" for name, value in {**usual, **fields}.items() if value]
    return b"".join([(head or "WARC/1.0\r\n").encode(), "".join(lines).encode(), b"\r\n", block, b"\r\n\r\n"])


def scan_records(folder: Path, data: bytes, name: str = "x.warc", **limits: int) -> list[ImportedAnswer | Damage]:
    """Return the records that a scan of these bytes yields."""
    path = folder / name
    path.write_bytes(data)
    return list(scan_warc(path, **limits))


def urls(results: list[ImportedAnswer | Damage]) -> list[int]:
    """Return the numbers of the records."""
    return [int(result.url.rpartition("/")[2]) for result in results if isinstance(result, ImportedAnswer)]


def damages(results: list[ImportedAnswer | Damage]) -> list[Damage]:
    """Return the reported damage."""
    return [result for result in results if isinstance(result, Damage)]


def packed(*records: bytes) -> bytes:
    """Return records, each in its own gzip member."""
    return b"".join(gzip.compress(record, mtime=0) for record in records)


def plain(*records: bytes) -> bytes:
    """Return records, one after another."""
    return b"".join(records)


FORMS = pytest.mark.parametrize("form", [plain, packed])
Form = Callable[..., bytes]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all examples of a property."""
    return tmp_path_factory.mktemp("warc")


def test_an_answer_comes_out_as_it_was_written(tmp_path: Path) -> None:
    """URL, time, status, headers in order with lower-case names, payload and offset are the same."""
    http = b"HTTP/1.1 404 Not Found\r\nX-B: 1\r\nx-a: zwei\r\n drei\r\nX-B: 2\r\n\r\n"
    (record,) = scan_records(tmp_path, raw(7, b"gone", http=http))
    headers = (("x-b", "1"), ("x-a", "zwei drei"), ("x-b", "2"))
    assert record == ImportedAnswer("x.warc", 0, "http://example.org/7", DATE_S, 404, headers, b"gone")


def test_our_own_files_are_read(tmp_path: Path) -> None:
    """Every response is found, at the offset that another program's index gives."""
    with closing(WarcWriter(tmp_path, "w0", "test")) as writer:
        asked = Exchange("", DATE_S, b"GET / HTTP/1.1\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n", b"", "192.0.2.1")
        exchanges = [replace(asked, url=f"http://example.org/{n}", payload=b"%d" % n * n) for n in range(30)]
        places = [writer.append(exchange) for exchange in exchanges]
    path = tmp_path / places[0].file
    records = list(scan_warc(path))
    assert [(r.url, r.payload) for r in records if isinstance(r, ImportedAnswer)] == [
        (e.url, e.payload) for e in exchanges
    ]
    program = Path(sys.executable).with_name("warcio")
    lines = subprocess.run(
        [program, "index", "-f", "offset,warc-type", path], capture_output=True, check=True
    ).stdout.splitlines()
    offsets = [int(line["offset"]) for line in map(json.loads, lines) if line["warc-type"] == "response"]
    assert [record.offset for record in records] == offsets == [place.offset for place in places]


def test_a_file_of_the_first_format_is_read_for_ever() -> None:
    """The stored sample: chunked, compressed, not modified (without a payload to import), gone."""
    results = list(scan_warc(GOLDEN / "vedette-sample-00000.warc.gz"))
    answers = [(r.url, r.fetched_s, r.status, r.payload) for r in results if isinstance(r, ImportedAnswer)]
    assert answers == [
        ("https://example.org/", 1_700_000_000.0, 200, b"<title>First</title>"),
        ("https://example.org/zip", 1_700_000_001.5, 200, gzip.compress(b"packed", mtime=0)),
        ("https://example.org/gone", 1_700_000_003.0, 404, b"gone"),
    ]
    assert damages(results) == []


def test_requests_notes_and_other_kinds_are_passed_over(tmp_path: Path) -> None:
    """They are not responses of a web server, but they are not errors."""
    others = [
        raw(1, WARC_Type="request"),
        raw(2, WARC_Type="metadata"),
        raw(3, WARC_Type="revisit"),
        raw(4, WARC_Type="invented"),
        raw(5, WARC_Type=""),
        raw(6, http=b"20200101\nexample.org. 60 IN A 192.0.2.1", Content_Type="text/dns"),
    ]
    assert urls(results := scan_records(tmp_path, plain(*others, raw(9)))) == [9]
    assert damages(results) == []


def test_an_answer_has_the_method_of_its_request(tmp_path: Path) -> None:
    """Whether the request comes before or after it, with a reference or just the same URL."""

    def request(number: int, method: bytes, name: str = "", answer: str = "") -> bytes:
        http = method + b" / HTTP/1.1\r\n\r\n"
        return raw(number, http=http, WARC_Type="request", WARC_Record_ID=name, WARC_Concurrent_To=answer)

    records = [
        raw(1, WARC_Record_ID="<urn:a>"),
        request(1, b"POST", "<urn:b>", "<urn:a>"),
        request(1, b"GET", "<urn:c>"),
        raw(1, WARC_Record_ID="<urn:d>", WARC_Concurrent_To="<urn:c>"),
        request(3, b"POST"),
        raw(3),
        raw(4),
        request(4, b"HEAD"),
        raw(4),
    ]
    answers = [one for one in scan_records(tmp_path, plain(*records)) if isinstance(one, ImportedAnswer)]
    assert [answer.method for answer in answers] == ["POST", "GET", "POST", "HEAD", ""]


@given(st.lists(st.integers(0, 2**16), max_size=12), st.integers(1, 9))
def test_where_gzip_members_begin_does_not_matter(folder: Path, cuts: list[int], level: int) -> None:
    """One member for all, members that cut through records, or one each: the same responses, no damage."""
    text = plain(*[raw(n) for n in range(6)])
    edges = sorted({0, len(text), *(cut % len(text) for cut in cuts)})
    data = b"".join(gzip.compress(text[a:b], level) for a, b in pairwise(edges))
    results = scan_records(folder, data, "x.warc.gz")
    assert urls(results) == list(range(6))
    assert damages(results) == []


@FORMS
@pytest.mark.parametrize("digest", [True, False])
def test_a_file_cut_anywhere_loses_only_the_cut_record(tmp_path: Path, form: Form, digest: bool) -> None:  # noqa: FBT001 - a case of the table
    """All earlier responses are read, and the truncated one is reported with its offset."""
    members = [form(raw(n, digest=digest)) for n in range(4)]
    starts = [sum(map(len, members[:n])) for n in range(5)]
    data = b"".join(members)
    for length in range(0, len(data), 3):
        results = scan_records(tmp_path, data[:length], "x.warc.gz" if form is packed else "x.warc")
        whole = sum(start <= length for start in starts[1:])
        assert urls(results)[:whole] == list(range(whole))
        # Of the last one only blank lines may be missing, or the checksum of a member whose record has a digest.
        assert len(urls(results)) <= whole + 1
        torn = length - starts[whole]
        if len(urls(results)) == whole and torn > 4:
            assert [damage.offset for damage in damages(results)] == [starts[whole]]


@given(st.integers(0, 10**6), st.integers(1, 255), st.booleans())
def test_a_broken_byte_costs_one_record(folder: Path, where: int, change: int, digest: bool) -> None:  # noqa: FBT001 - drawn
    """In a file with one member per record, all other responses are read."""
    members = [packed(raw(n, digest=digest)) for n in range(5)]
    data = bytearray(b"".join(members))
    where %= len(data)
    data[where] ^= change
    hit = next(n for n in range(5) if where < sum(map(len, members[: n + 1])))
    results = scan_records(folder, bytes(data), "x.warc.gz")
    assert [n for n in urls(results) if n != hit] == [n for n in range(5) if n != hit]
    assert all(damage.why for damage in damages(results))


@given(st.integers(0, 10**6), st.integers(1, 255))
def test_a_broken_byte_in_plain_text_costs_one_record(folder: Path, where: int, change: int) -> None:
    """Even if it changes a length so that a record seems to run into the next: digests reveal it."""
    records = [raw(n) for n in range(5)]
    data = bytearray(b"".join(records))
    where %= len(data)
    data[where] ^= change
    hit = next(n for n in range(5) if where < sum(map(len, records[: n + 1])))
    pages = [b"page %d" % n * 20 for n in range(5)]
    kept = [result.payload for result in scan_records(folder, bytes(data)) if isinstance(result, ImportedAnswer)]
    assert [page for page in kept if page != pages[hit]] == [page for page in pages if page != pages[hit]]


@FORMS
@given(junk=st.binary(min_size=1, max_size=200))
def test_junk_between_records_is_named_and_passed_over(folder: Path, form: Form, junk: bytes) -> None:
    """All responses are read, and the offset of the junk is reported."""
    assume(junk.strip(b"\r\n"))
    first, second = form(raw(1)), form(raw(2))
    results = scan_records(folder, first + junk + second, "x.warc.gz" if form is packed else "x.warc")
    assert urls(results) == [1, 2]
    blank = len(junk) - len(junk.lstrip(b"\r\n")) if form is plain else 0
    assert [damage.offset for damage in damages(results)] == [len(first) + blank]


@FORMS
@pytest.mark.parametrize("power", range(10, 20))
def test_junk_of_any_length_hides_no_record(tmp_path: Path, form: Form, power: int) -> None:
    """The next record is found even if it begins across a chunk boundary."""
    for length in range(2**power - 20, 2**power + 2):
        results = scan_records(
            tmp_path, form(raw(1)) + b"j" * length + form(raw(2)), "x.warc.gz" if form is packed else "x.warc"
        )
        assert urls(results) == [1, 2]


def test_a_length_that_is_too_long_ends_at_the_next_member(tmp_path: Path) -> None:
    """This is true even if it would end at the end of a record, and there is no digest."""
    block_bytes = len(raw(1).partition(b"\r\n\r\n")[2]) - 4
    wrong = raw(1, digest=False, Content_Length=str(block_bytes + 4 + len(raw(2))))
    results = scan_records(tmp_path, packed(wrong, raw(2), raw(3)), "x.warc.gz")
    assert urls(results) == [2, 3]
    assert [damage.offset for damage in damages(results)] == [0]


@pytest.mark.parametrize("beyond_bytes", range(10))
def test_a_member_that_fails_its_checksum_is_lost(tmp_path: Path, beyond_bytes: int) -> None:
    """This is true even if all bytes are read before the checksum, and there is no digest."""
    stored = gzip.compress(raw(1, bytes(2**17), digest=False), 0, mtime=0)
    body = bytes(2**17 - (len(stored) - 2**17) + beyond_bytes)
    wrong = bytearray(gzip.compress(raw(1, body, digest=False), 0, mtime=0))
    wrong[len(wrong) // 2] ^= 1
    results = scan_records(tmp_path, packed(raw(0)) + wrong + packed(raw(2)), "x.warc.gz")
    assert urls(results) == [0, 2]
    assert [damage.offset for damage in damages(results)] == [len(packed(raw(0)))]


@FORMS
def test_a_torn_record_does_not_swallow_the_next(tmp_path: Path, form: Form) -> None:
    """This happens if a writer is killed and another one continues the file."""
    torn = form(raw(1, bytes(range(256)) * 8, digest=False))
    following = form(raw(2, b"long enough " * 500)) + form(raw(3))
    for kept_bytes in range(5, len(torn) - 5, 7):
        data = form(raw(0)) + torn[:kept_bytes] + following
        results = scan_records(tmp_path, data, "x.warc.gz" if form is packed else "x.warc")
        assert urls(results) == [0, 2, 3]
        assert [damage.offset for damage in damages(results)] == [len(form(raw(0)))]


@given(
    st.one_of(st.binary(max_size=300), st.binary(max_size=300).map(raw(1).__add__)),
    st.sampled_from(["x.warc", "x.warc.gz"]),
)
def test_any_bytes_are_read_without_an_exception(folder: Path, data: bytes, name: str) -> None:
    """Garbage yields damage within the file, or nothing."""
    for form in (bytes, gzip.compress):
        results = scan_records(folder, form(data), name)
        assert all(0 <= damage.offset <= len(form(data)) for damage in damages(results))


@given(
    st.lists(
        st.sampled_from(
            [b"WARC/1.0\r\n", b"Content-Length: 9\r\n", b"WARC-Type: response\r\n", b"\r\n", b"HTTP/1.1 200\r\n", b"x"]
        )
    )
)
def test_scraps_of_records_are_read_without_an_exception(folder: Path, scraps: list[bytes]) -> None:
    """Headers without ends, lengths without blocks and responses without headers are all accepted."""
    results = scan_records(folder, b"".join(scraps) + b"\r\n\r\n" + raw(1))
    assert urls(results)[-1:] in ([1], [])
    assert all(isinstance(result, ImportedAnswer | Damage) for result in results)


@FORMS
def test_a_record_above_the_limit_is_passed_over_with_a_word(tmp_path: Path, form: Form) -> None:
    """It is reported, and the next one is read."""
    data = form(raw(1)) + form(raw(2, b"x" * 5000)) + form(raw(3))
    results = scan_records(tmp_path, data, limit_bytes=1000)
    assert urls(results) == [1, 3]
    (damage,) = damages(results)
    assert damage.offset == len(form(raw(1)))
    assert "limit of 1000" in damage.why


def test_memory_does_not_follow_the_size_of_a_record(tmp_path: Path) -> None:
    """A compressed record a hundred times larger than the limit needs no more memory than the limit."""
    limit = 2**19
    data = packed(raw(1), raw(2, bytes(100 * limit)), raw(3))
    tracemalloc.start()
    results = scan_records(tmp_path, data, "x.warc.gz", limit_bytes=limit)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert urls(results) == [1, 3]
    assert peak < 10 * limit


class Counting(io.BytesIO):
    """A file that counts how many bytes were read."""

    read_bytes = 0

    def read(self, size: int | None = -1) -> bytes:
        """Read and count."""
        data = super().read(size)
        self.read_bytes += len(data)
        return data


def test_no_file_makes_the_search_for_members_read_without_end() -> None:
    """With thousands of members that look valid and break at the same far place, reading stays linear."""
    baits, bait_bytes = 2000, 25
    tail = (b"\x00\xff\xff\x00\x00" + bytes(65535)) * 20 + b"broken"
    data = b""
    for number in reversed(range(baits)):
        # A member whose first stored block holds all the baits that follow, and leads to the same long tail.
        length = (baits - number) * bait_bytes - 15
        stored = b"\x00" + length.to_bytes(2, "little") + (length ^ 0xFFFF).to_bytes(2, "little")
        data = b"\x1f\x8b\x08\x00" + bytes(6) + stored + b"WARC/1.0\r\n" + data
    file = Counting(data + tail)
    breaks = [piece for piece in read_gzip(file) if isinstance(piece, StreamBreak)]
    assert len(breaks) > 1
    assert file.read_bytes < 50 * len(file.getvalue())


def test_no_file_makes_blocks_be_searched_without_end(tmp_path: Path) -> None:
    """If each header claims half of the file, wasted reads stay within a multiple of the file's size."""
    claimed_bytes = 500_000
    head = f"WARC/1.0\r\nContent-Length: {claimed_bytes}\r\nWARC-Block-Digest: sha1:A\r\n\r\n".encode()
    data = head * (2 * claimed_bytes // len(head))
    lost = damages(scan_records(tmp_path, data))
    assert 1 < len(lost) < 40 * len(data) / claimed_bytes


@pytest.mark.parametrize(
    ("label", "agrees"),
    [
        ("sha1:" + "A" * 32, False),
        ("sha1:" + "0" * 40, False),
        ("sha1:what is this", False),
        ("blake9:" + "A" * 32, True),
        ("A" * 32, True),
    ],
)
def test_a_block_that_does_not_fit_its_digest_is_lost(tmp_path: Path, label: str, agrees: bool) -> None:  # noqa: FBT001 - a case of the table
    """It is reported; a digest that can't be computed does not count against the record."""
    results = scan_records(tmp_path, plain(raw(1, WARC_Block_Digest=label), raw(2)))
    assert urls(results) == ([1, 2] if agrees else [2])
    assert len(damages(results)) == (not agrees)


@pytest.mark.parametrize("algorithm", ["md5", "sha1", "sha256", "sha512"])
def test_digests_are_known_in_base_16_and_32(tmp_path: Path, algorithm: str) -> None:
    """Both occur in practice, in either case."""
    block = b"HTTP/1.1 200 OK\r\n\r\npage"
    value = hashlib.new(algorithm, block, usedforsecurity=False).digest()
    texts = [value.hex(), value.hex().upper(), b32encode(value).decode(), b32encode(value).decode().lower()]
    records = [
        raw(1, b"page", http=b"HTTP/1.1 200 OK\r\n\r\n", WARC_Block_Digest=f"{algorithm}:{text}") for text in texts
    ]
    assert urls(scan_records(tmp_path, plain(*records))) == [1] * len(texts)


@pytest.mark.parametrize(
    ("flaw", "why"),
    [
        (raw(1, WARC_Target_URI=""), "URL"),
        (raw(1, WARC_Date=""), "WARC-Date"),
        (raw(1, WARC_Date="2020-13-45T99:00:00Z"), "WARC-Date"),
        (raw(1, Content_Length=""), "Content-Length"),
        (raw(1, Content_Length="-5"), "Content-Length"),
        (raw(1, Content_Length="9" * 5000), "Content-Length"),
        (raw(1, Content_Length="٣"), "Content-Length"),
        (raw(1, http=b"hello\r\n\r\n"), "status line"),
        (raw(1, http=b"HTTP/1.1 200 OK\r\n" + b"a:\r\n" * 100_000 + b"\r\n"), "header does not end"),
        (b"WARC/1.0\r\n" + b"X: y\r\n" * 20_000, "does not end"),
        (b"ARC/1.0 is something else\r\n", "not a WARC record"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, flaw: bytes, why: str) -> None:
    """The damage is reported, and the record after it is read."""
    results = scan_records(tmp_path, plain(flaw, raw(2)))
    assert urls(results) == [2]
    assert why in damages(results)[0].why


def test_after_a_whole_record_that_is_of_no_use_nothing_is_searched(tmp_path: Path) -> None:
    """The next one is read, whatever field its header starts with."""
    results = scan_records(tmp_path, plain(raw(1, WARC_Date="never"), raw(2, head="WARC/1.0\r\nX-Other: x\r\n")))
    assert urls(results) == [2]


@pytest.mark.parametrize(
    "record",
    [
        raw(1, head="WARC/0.18\r\n"),
        raw(1, head="WARC/1.1\r\n"),
        raw(1, WARC_Target_URI="<http://example.org/1>"),
        raw(1, digest=False, http=b"HTTP/1.1 200 OK\nServer: s\n\n").replace(b"\r\n", b"\n"),
        raw(1).rstrip(b"\r\n"),
        raw(1) + b"\r\n\r\n",
        raw(1, WARC_Type="Response"),
        raw(1, Content_Type=""),
        raw(1, WARC_Payload_Digest="sha1:" + "A" * 32),
        raw(1, X_Folded="one\r\n two"),
        raw(1).replace(b"WARC-Target-URI", b"warc-target-uri"),
        raw(1, head="WARC/1.0\r\nX-Unknown: before all others\r\n"),
    ],
)
def test_habits_of_other_writers_are_understood(tmp_path: Path, record: bytes) -> None:
    """Old versions, bracketed URLs, bare line feeds, missing or extra blank lines and unusual cases are not damage."""
    results = scan_records(tmp_path, plain(record, raw(2)))
    assert urls(results) == [1, 2]
    assert damages(results) == []


@pytest.mark.parametrize(
    ("text", "unix_s"),
    [
        ("2020-09-13T12:26:40Z", DATE_S),
        ("2020-09-13T12:26:40.250Z", DATE_S + 0.25),
        ("2020-09-13T12:26:40.000000001Z", DATE_S),
        ("20200913122640", DATE_S),
        ("2020-09-13", 1_599_955_200.0),
        ("2020", 1_577_836_800.0),
    ],
)
def test_dates_of_every_precision_are_read(tmp_path: Path, text: str, unix_s: float) -> None:
    """From a year to the billionth of a second."""
    (record,) = scan_records(tmp_path, raw(1, WARC_Date=text))
    assert isinstance(record, ImportedAnswer)
    assert record.fetched_s == pytest.approx(unix_s, abs=1e-6)


WIKI = b"4\r\nWiki\r\n6;note=x\r\npedia \r\nE\r\nin \r\n\r\nchunks.\r\n0\r\nTrailer: t\r\n\r\n"


@pytest.mark.parametrize(
    ("body", "truncated", "payload"),
    [
        (WIKI, "", b"Wikipedia in \r\n\r\nchunks."),
        (WIKI[:25], "length", b"Wikipedia "),
        (WIKI[:17], "length", b"Wiki"),
        (b"already without chunks", "", b"already without chunks"),
        (b"abc\r\nof a text that begins like a chunk", "", b"abc\r\nof a text that begins like a chunk"),
        (b"ffffffffffffffffffff\r\nx", "", b"ffffffffffffffffffff\r\nx"),
        (b"0\r\n\r\n", "", b""),
    ],
)
def test_chunks_are_taken_off_where_there_are_any(tmp_path: Path, body: bytes, truncated: str, payload: bytes) -> None:
    """Many writers remove them but keep the header; then the body is left as it is."""
    http = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    (record,) = scan_records(tmp_path, raw(1, body, http=http, WARC_Truncated=truncated))
    assert isinstance(record, ImportedAnswer)
    assert record.payload == payload
    assert record.truncated == truncated


@given(st.lists(st.binary(min_size=1, max_size=40), max_size=8))
def test_any_chunks_join_to_the_body(folder: Path, chunks: list[bytes]) -> None:
    """This is true even if they contain line breaks or look like chunks themselves."""
    body = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n"
    (record,) = scan_records(folder, raw(1, body, http=b"HTTP/1.1 200 OK\r\ntransfer-encoding: CHUNKED\r\n\r\n"))
    assert isinstance(record, ImportedAnswer)
    assert record.payload == b"".join(chunks)


def test_an_empty_file_has_nothing_in_it(tmp_path: Path) -> None:
    """It is not damaged."""
    assert scan_records(tmp_path, b"", "x.warc.gz") == scan_records(tmp_path, b"") == []


def test_a_plain_file_with_the_wrong_name_is_read(tmp_path: Path) -> None:
    """The content of a file counts, not its name."""
    assert urls(scan_records(tmp_path, plain(raw(1), raw(2)), "x.warc.gz")) == [1, 2]
    assert urls(scan_records(tmp_path, packed(raw(1), raw(2)), "x.warc")) == [1, 2]


def test_a_place_that_holds_no_answer_is_a_damaged_store(tmp_path: Path) -> None:
    """A missing or truncated file, a wrong offset, and a request are reported with the file."""
    with closing(WarcWriter(tmp_path, "w0", "test")) as writer:
        place = writer.append(Exchange("http://e/", DATE_S, b"GET / HTTP/1.1", b"HTTP/1.1 200 OK", b"x", "192.0.2.1"))
    assert read_answer(tmp_path, place) == ArchivedAnswer(b"HTTP/1.1 200 OK\r\n\r\n", b"x")
    size_bytes = (tmp_path / place.file).stat().st_size
    request = place.offset + place.length
    for wrong in (
        place._replace(file="vedette-w0-00009.warc.gz"),
        place._replace(length=place.length - 1),
        place._replace(offset=place.offset + 1),
        place._replace(offset=10**9),
        ArchiveLocation(place.file, request, size_bytes - request),
    ):
        with pytest.raises(StoreCorrupt, match=wrong.file):
            read_answer(tmp_path, wrong)
