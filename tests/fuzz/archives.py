"""Archives of other crawlers (WARC), as ``vedette import`` reads them."""

import gzip
from functools import cache
from math import isfinite
from pathlib import Path

from tests.fuzz.target import Target, make_folder

from vedette.adapters.archive.warc_reader import Damage, ImportedAnswer, scan_warc

__all__ = ["WARC"]


HTTP = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
WARC_HEAD = (
    b"WARC/1.1\r\nWARC-Type: response\r\nWARC-Target-URI: http://host.example/\r\nWARC-Date: 2024-01-01T00:00:00Z\r\n"
    b"WARC-Record-ID: <urn:uuid:1>\r\nContent-Type: application/http; msgtype=response\r\nContent-Length: %d\r\n\r\n"
)
ARCHIVE = (WARC_HEAD % len(HTTP) + HTTP + b"\r\n\r\n") * 2
WARC_TOKENS = (
    *(
        b"WARC/1.0\r\n",
        b"Content-Length: 99999999999\r\n",
        b"\r\n\r\n",
        b"WARC-Type: response\r\n",
        b"revisit",
        b"request",
    ),
    *(b"WARC-Payload-Digest: sha1:", b"WARC-Block-Digest: ", b"WARC-Concurrent-To: ", b"WARC-Truncated: ", b"chunked"),
)


@cache
def _choose_archive() -> Path:
    return make_folder() / "fuzzed.warc"


def check_warc(data: bytes) -> None:
    """Check that records and damaged parts are in file order, with valid offsets."""
    path = _choose_archive()
    path.write_bytes(data)
    found = list(scan_warc(path, limit_bytes=100_000))
    assert all(isinstance(each, ImportedAnswer | Damage) for each in found)
    assert [each.offset for each in found] == sorted(each.offset for each in found)
    records = [each for each in found if isinstance(each, ImportedAnswer)]
    assert all(isfinite(each.fetched_s) and 0 <= each.status <= 999 for each in records)


WARC = Target(check_warc, [ARCHIVE, gzip.compress(ARCHIVE, mtime=0)], WARC_TOKENS)
