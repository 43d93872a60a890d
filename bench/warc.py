"""What does it cost to archive a page and to read it again, and how much of a damaged archive can be read?

Writing: several ways take turns over the same pages of about 21 kB of HTML, each with its request: our writer, those of
fastwarc (at two levels of zlib) and warcio, and nothing but zlib at level 6 over the bare messages. Reading: our
reader, fastwarc and warcio take turns over a file that our writer wrote; all of them check the block digest of each
answer. The tables have the medians of CPU time per page.

Damage: files of 30 answers, each with one fault (a changed byte, a hole, a run of zeros, or junk), are given to the
three readers. *Recovered* is the share of answers that come out as they were written, *wrong* is how many come out
otherwise. A fault costs one answer, seldom none, so 29 of 30 is about the best that a reader can do.

The last line is one JSON object.

    python bench/warc.py [--pages N] [--rounds R]
"""

import argparse
import io
import json
import random
import tempfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from statistics import median
from time import process_time
from typing import Literal

import numpy as np
from fastwarc.stream_io import GzipWriter
from fastwarc.warc import ArchiveIterator, WarcRecord, WarcRecordType
from warcio.archiveiterator import ArchiveIterator as WarcioIterator  # type: ignore[import-untyped]  # it has no types
from warcio.exceptions import ArchiveLoadFailed  # type: ignore[import-untyped]  # it has no types
from warcio.statusandheaders import StatusAndHeaders  # type: ignore[import-untyped]  # it has no types
from warcio.warcwriter import WARCWriter  # type: ignore[import-untyped]  # it has no types

from vedette.adapters.archive.warc_reader import ImportedAnswer, scan_warc
from vedette.adapters.archive.warc_record import Exchange
from vedette.adapters.archive.warc_writer import WarcWriter
from vedette.policy import rng_for

WORDS = 4000
DAMAGED_ANSWERS = 30
PAGE_BYTES = 21_000
HEADERS = [("Content-Type", "text/html; charset=utf-8"), ("Server", "bench"), ("Cache-Control", "max-age=60")]
ASKED = [("Host", "example.org"), ("User-Agent", "bench/1"), ("Accept", "text/html")]


def html_pages(count: int) -> list[bytes]:
    """Pages of markup around words that are as unevenly common as in a language; no two alike."""
    rng = rng_for(1, "bench/warc")
    letters = rng.choice(np.frombuffer(b"eeeetttaaaooinnshrdlucmfwygpbvk", "uint8"), (WORDS, 9))
    sizes = rng.integers(2, 10, WORDS)
    words = [letters[row, : sizes[row]].tobytes() for row in range(WORDS)]
    pages = []
    for number in range(count):
        text = [words[rank] for rank in (WORDS ** rng.random(PAGE_BYTES // 8)).astype(int) - 1]
        parts = [_paragraph(text[at : at + 12]) for at in range(0, len(text), 12)]
        pages.append((b"<!doctype html><title>%d</title>" % number + b"".join(parts))[:PAGE_BYTES])
    return pages


def _paragraph(words: Sequence[bytes]) -> bytes:
    link = b'<li class="item"><a class="link" href="/section/%b/%b.html">%b</a></li>' % (words[0], words[-1], words[0])
    return b'<div class="body"><p>' + b" ".join(words) + b".</p></div>\n" + link


def exchanges_of(pages: Sequence[bytes]) -> list[Exchange]:
    """Each page as the answer to a request."""
    lines = "".join(f"{name}: {value}\r\n" for name, value in HEADERS)
    request = "GET / HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in ASKED) + "\r\n"
    head = f"HTTP/1.1 200 OK\r\n{lines}\r\n".encode()
    urls = (f"https://example.org/{number}" for number in range(len(pages)))
    return [
        Exchange(url, 1.7e9, request.encode(), head, page, "192.0.2.1") for url, page in zip(urls, pages, strict=True)
    ]


def by_us(exchanges: Sequence[Exchange], folder: Path) -> int:
    """Our writer; how many bytes it wrote."""
    with closing(WarcWriter(folder, "bench", "bench")) as writer:
        for exchange in exchanges:
            writer.append(exchange)
        return sum(writer.flush().values())


def by_warcio(exchanges: Sequence[Exchange], folder: Path) -> int:
    """The writer of the field's usual library, as its documentation uses it."""
    with (folder / "warcio.warc.gz").open("wb") as file:
        writer = WARCWriter(file, gzip=True, warc_version="1.1")
        for exchange in exchanges:
            answer = StatusAndHeaders("200 OK", HEADERS, protocol="HTTP/1.1")
            request = StatusAndHeaders("GET / HTTP/1.1", ASKED, is_http_request=True)
            response = writer.create_warc_record(
                exchange.url, "response", payload=io.BytesIO(exchange.payload), http_headers=answer
            )
            writer.write_request_response_pair(
                writer.create_warc_record(exchange.url, "request", http_headers=request), response
            )
        return file.tell()


def by_fastwarc(exchanges: Sequence[Exchange], folder: Path, level: int) -> int:
    """The writer of the field's fastest library, at a level of zlib."""
    path = folder / "fastwarc.warc.gz"
    with path.open("wb") as file:
        stream = GzipWriter(file, level)
        for exchange in exchanges:
            answer = exchange.response_head + exchange.payload
            response = _fastwarc_record(exchange, "response", answer)
            request = _fastwarc_record(exchange, "request", exchange.request_head)
            request.headers["WARC-Concurrent-To"] = response.record_id or ""
            for record in (response, request):
                record.write(stream, checksum_data=True)
                stream.finish()  # each record is a separate gzip member
        stream.close()
    return path.stat().st_size


def _fastwarc_record(exchange: Exchange, kind: Literal["request", "response"], content: bytes) -> WarcRecord:
    record = WarcRecord()
    record.init_headers(getattr(WarcRecordType, kind))
    record.headers["WARC-Target-URI"] = exchange.url
    record.headers["WARC-IP-Address"] = exchange.address
    record.headers["Content-Type"] = f"application/http;msgtype={kind}"
    record.set_bytes_content(content)
    return record


def by_zlib(exchanges: Sequence[Exchange], folder: Path) -> int:
    """Only the packing, at zlib's usual level; neither digests nor record heads."""
    with (folder / "zlib.gz").open("wb") as file:
        for exchange in exchanges:
            for message in (exchange.response_head + exchange.payload, exchange.request_head):
                file.write(zlib.compress(message, 6))
        return file.tell()


Answers = list[tuple[str, bytes]]


def read_by_us(path: Path) -> Answers:
    """Our reader."""
    return [(found.url, found.payload) for found in scan_warc(path) if isinstance(found, ImportedAnswer)]


def read_by_fastwarc(path: Path) -> Answers:
    """The fastest reader of the field; what it has read before it gives up."""
    answers: Answers = []
    with suppress(OSError), path.open("rb") as file:
        for record in ArchiveIterator(file, record_types=WarcRecordType.response, parse_http=False):
            if record.verify_block_digest():
                record.parse_http()
                answers.append((record.headers["WARC-Target-URI"], record.reader.read()))
    return answers


def read_by_warcio(path: Path) -> Answers:
    """The usual reader of the field; what it has read before it gives up."""
    answers: Answers = []
    with suppress(ArchiveLoadFailed, OSError, ValueError, AttributeError), path.open("rb") as file:
        for record in WarcioIterator(file, check_digests="raise"):
            if record.rec_type == "response":
                answers.append((record.rec_headers.get_header("WARC-Target-URI"), record.content_stream().read()))
    return answers


READERS: dict[str, Callable[[Path], Answers]] = {
    "ours": read_by_us,
    "fastwarc": read_by_fastwarc,
    "warcio": read_by_warcio,
}


def damage(data: bytes, rounds: int) -> Iterator[bytes]:
    """The same file with one fault each: four kinds of them in every round."""
    lots = random.Random(1)  # noqa: S311 - no secret
    for _ in range(rounds):
        at, size = lots.randrange(len(data)), lots.randrange(1, 3000)
        yield data[:at] + bytes([data[at] ^ lots.randrange(1, 256)]) + data[at + 1 :]
        yield data[:at] + data[at + size :]
        yield data[:at] + bytes(len(data[at : at + size])) + data[at + size :]
        yield data[:at] + lots.randbytes(size) + data[at:]


def measure_recovery(exchanges: Sequence[Exchange], rounds: int) -> dict[str, tuple[float, int]]:
    """Of damaged files, the share of answers that each reader gets right, and how many it gets wrong."""
    written = {exchange.url: exchange.payload for exchange in exchanges}
    right, wrong, files = dict.fromkeys(READERS, 0), dict.fromkeys(READERS, 0), 0
    with tempfile.TemporaryDirectory() as folder:
        by_us(exchanges, Path(folder))
        (path,) = Path(folder).iterdir()
        for content in damage(path.read_bytes(), rounds):
            files += 1
            path.write_bytes(content)
            for name, read in READERS.items():
                found = [written.get(url) == payload for url, payload in read(path)]
                right[name] += sum(found)
                wrong[name] += len(found) - sum(found)
    return {name: (right[name] / files / len(exchanges), wrong[name]) for name in READERS}


def measure_reading(exchanges: Sequence[Exchange], rounds: int) -> dict[str, float]:
    """CPU milliseconds for each answer of a sound file."""
    taken_ms: dict[str, list[float]] = {name: [] for name in READERS}
    with tempfile.TemporaryDirectory() as folder:
        by_us(exchanges, Path(folder))
        (path,) = Path(folder).iterdir()
        for _ in range(rounds):
            for name, read in READERS.items():
                before_s = process_time()
                assert len(read(path)) == len(exchanges), f"{name} reads every answer of a sound file"
                taken_ms[name].append((process_time() - before_s) * 1000 / len(exchanges))
    return {name: median(each) for name, each in taken_ms.items()}


WAYS: dict[str, Callable[[Sequence[Exchange], Path], int]] = {
    "ours": by_us,
    "fastwarc1": partial(by_fastwarc, level=1),
    "fastwarc2": partial(by_fastwarc, level=2),
    "warcio": by_warcio,
    "zlib6": by_zlib,
}


def turn(way: Callable[[Sequence[Exchange], Path], int], exchanges: Sequence[Exchange]) -> tuple[float, float]:
    """CPU milliseconds and bytes, both per page."""
    with tempfile.TemporaryDirectory() as folder:
        before_s = process_time()
        size_bytes = way(exchanges, Path(folder))
        return (process_time() - before_s) * 1000 / len(exchanges), size_bytes / len(exchanges)


def main() -> None:
    """Take turns, print the tables and the JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    exchanges = exchanges_of(html_pages(arguments.pages))
    turns = [{name: turn(way, exchanges) for name, way in WAYS.items()} for _ in range(arguments.rounds)]
    cost_ms = {name: median(row[name][0] for row in turns) for name in WAYS}
    page_bytes = {name: round(turns[0][name][1]) for name in WAYS}
    print(f"{'':10}{'ms CPU a page':>15}{'bytes a page':>14}{'against ours':>14}")
    for name in WAYS:
        print(f"{name:10}{cost_ms[name]:15.3f}{page_bytes[name]:14}{cost_ms[name] / cost_ms['ours']:13.1f}x")
    read_ms, recovered = (
        measure_reading(exchanges, arguments.rounds),
        measure_recovery(exchanges[:DAMAGED_ANSWERS], 10 * arguments.rounds),
    )
    print(f"\n{'':10}{'ms CPU a page':>15}{'recovered':>14}{'wrong':>14}")
    for name in READERS:
        share, wrong = recovered[name]
        print(f"{name:10}{read_ms[name]:15.3f}{share:14.1%}{wrong:14}")
    figures = {f"{name}_ms": round(cost, 4) for name, cost in cost_ms.items()}
    figures |= {f"read_{name}_ms": round(cost, 4) for name, cost in read_ms.items()}
    figures |= {f"recovered_by_{name}": round(share, 4) for name, (share, _) in recovered.items()}
    print(json.dumps({**figures, "bytes_per_page": page_bytes["ours"]}))


if __name__ == "__main__":
    main()
