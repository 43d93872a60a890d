"""What does it cost to archive a page, and how large does it get?

Three ways take turns over the same pages of about 21 kB of HTML, each with its request: our writer, warcio's writer,
and nothing but zlib at level 6 over the bare messages. The table has the medians of CPU time per page. The last line is
one JSON object.

    python bench/warc.py [--pages N] [--rounds R]
"""

import argparse
import io
import json
import tempfile
import zlib
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from statistics import median
from time import process_time

import numpy as np
from warcio.statusandheaders import StatusAndHeaders  # type: ignore[import-untyped]  # it has no types
from warcio.warcwriter import WARCWriter  # type: ignore[import-untyped]  # it has no types

from vedette.adapters.archive.warc_record import Exchange
from vedette.adapters.archive.warc_writer import WarcWriter
from vedette.policy import rng_for

WORDS = 4000
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


def by_zlib(exchanges: Sequence[Exchange], folder: Path) -> int:
    """Only the packing, at zlib's usual level; neither digests nor record heads."""
    with (folder / "zlib.gz").open("wb") as file:
        for exchange in exchanges:
            for message in (exchange.response_head + exchange.payload, exchange.request_head):
                file.write(zlib.compress(message, 6))
        return file.tell()


WAYS: dict[str, Callable[[Sequence[Exchange], Path], int]] = {"ours": by_us, "warcio": by_warcio, "zlib6": by_zlib}


def turn(way: Callable[[Sequence[Exchange], Path], int], exchanges: Sequence[Exchange]) -> tuple[float, float]:
    """CPU milliseconds and bytes, both per page."""
    with tempfile.TemporaryDirectory() as folder:
        before_s = process_time()
        size_bytes = way(exchanges, Path(folder))
        return (process_time() - before_s) * 1000 / len(exchanges), size_bytes / len(exchanges)


def main() -> None:
    """Take turns, print the table and the JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    exchanges = exchanges_of(html_pages(arguments.pages))
    turns = [{name: turn(way, exchanges) for name, way in WAYS.items()} for _ in range(arguments.rounds)]
    cost_ms = {name: median(row[name][0] for row in turns) for name in WAYS}
    page_bytes = {name: round(turns[0][name][1]) for name in WAYS}
    print(f"{'':8}{'ms CPU a page':>15}{'bytes a page':>14}{'against ours':>14}")
    for name in WAYS:
        print(f"{name:8}{cost_ms[name]:15.3f}{page_bytes[name]:14}{cost_ms[name] / cost_ms['ours']:13.1f}x")
    figures = {f"{name}_ms": round(cost, 4) for name, cost in cost_ms.items()}
    print(json.dumps({**figures, "bytes_per_page": page_bytes["ours"]}))


if __name__ == "__main__":
    main()
