"""WARC record format: encode an HTTP exchange as WARC request, response and revisit records.

The transfer coding was removed from the payload before it gets here, so the head must no longer claim it. As in the
files of Common Crawl, a header line that is no longer true gets the prefix ``X-Crawler-`` and the true length is added;
HTTP/2 and HTTP/3 are written in the syntax of HTTP/1.1, with the protocol in ``WARC-Protocol``. The content coding is
untouched: the payload is what the server sent. All other header lines are verbatim, and end with CR LF.

A record's id follows from its content and location; it is not random.
"""

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Literal

import xxhash
from isal import igzip_lib

Fields = list[tuple[str, str]]

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
_PAIRS = [high + low for high in _LETTERS for low in _LETTERS]
_SHIFTS = range(150, -1, -10)

_PROFILES = "http://netpreserve.org/warc/1.1/revisit/"
_STANDARD = "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"

_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")
_VISIBLE = re.compile(rb"[!-~]")
_LENGTH = re.compile(rb"content-length[ \t]*:[ \t]*(.*?)\s*\Z", re.IGNORECASE | re.DOTALL)
_TRANSFER = re.compile(rb"transfer-encoding[ \t]*:", re.IGNORECASE)
_BINARY_ANSWER = re.compile(rb"HTTP/([23])(?:\.\d)? +(\d{3})[ \r]*")
_BINARY_REQUEST = re.compile(rb" HTTP/[23](?:\.\d)?(?=\r?\n)")
# By definition these have no body, whatever length their head states.
_BODILESS = re.compile(rb"HTTP/\S+ +(?:1\d\d|204|304)\b")


@dataclass(frozen=True, slots=True)
class Revisit:
    """A WARC revisit: which record already has this payload, and how that is known.

    The date must be the other exchange's ``fetched_s``, and the digest that of ``compute_digest`` for its payload.
    """

    profile: Literal["identical-payload-digest", "server-not-modified"]
    refers_to_url: str
    refers_to_date_s: float
    payload_digest: str


@dataclass(frozen=True, slots=True)
class Exchange:
    """An HTTP request and its response to be archived as WARC records.

    ``request_head`` has its secrets removed; ``payload`` is as sent, without chunks. ``truncated`` says why the payload
    is incomplete. A revisit's payload is not written. ``payload_digest`` is the result of ``compute_digest`` for the
    payload, if already computed. ``is_rendered`` means that the payload is a browser's rendering of the response; it is
    archived as a conversion, without a request of its own.
    """

    url: str
    fetched_s: float
    request_head: bytes
    response_head: bytes
    payload: bytes
    address: str
    revisit: Revisit | None = None
    truncated: Literal["length", "time", "disconnect", "unspecified"] | None = None
    payload_digest: str = ""
    is_rendered: bool = False


def compute_digest(data: bytes) -> str:
    """Compute the labelled payload digest of WARC records.

    >>> compute_digest(b"")
    'sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ'
    """
    return "sha1:" + _encode_base32(hashlib.sha1(data, usedforsecurity=False).digest())


def build_warcinfo_record(file: str, software: str, operator: str, written_s: float) -> bytes:
    """Build the ``warcinfo`` record at the start of a WARC file: who wrote it, with which software."""
    about = [
        ("software", software),
        ("operator", operator),
        ("format", "WARC File Format 1.1"),
        ("conformsTo", _STANDARD),
    ]
    block = _format_fields(pair for pair in about if pair[1])
    checksum = compute_digest(block)
    fields = [
        ("WARC-Type", "warcinfo"),
        ("WARC-Record-ID", _build_record_id(file, _format_date(written_s), checksum)),
        ("WARC-Date", _format_date(written_s)),
        ("WARC-Filename", file),
        ("WARC-Block-Digest", checksum),
        ("Content-Type", "application/warc-fields"),
    ]
    return _compress_record(fields, block)


def build_answer_record(exchange: Exchange, stands: str) -> tuple[str, bytes]:
    """Build the WARC response or revisit record and its id; ``stands`` is its future location, for the id."""
    revisit = exchange.revisit
    # The standard requires "length" if an available payload is omitted because it is archived already.
    is_left_out = revisit is not None and revisit.profile == "identical-payload-digest"
    block = _rewrite_head(exchange) + (b"" if revisit else exchange.payload)
    checksum = compute_digest(block)
    name = _build_record_id(stands, exchange.url, _format_date(exchange.fetched_s), checksum)
    fields = [
        ("WARC-Type", "revisit" if revisit else "conversion" if exchange.is_rendered else "response"),
        ("WARC-Record-ID", name),
        *_common_fields(exchange),
        (
            "WARC-Payload-Digest",
            revisit.payload_digest if revisit else exchange.payload_digest or compute_digest(exchange.payload),
        ),
        ("WARC-Block-Digest", checksum),
        ("WARC-Truncated", "length" if is_left_out else exchange.truncated or ""),
        *(_revisit_fields(revisit) if revisit else ()),
        ("Content-Type", "application/http;msgtype=response"),
    ]
    return name, _compress_record(fields, block)


def build_request_record(exchange: Exchange, stands: str, answer: str) -> bytes:
    """Build the WARC request record that belongs to a response record of this id."""
    block = _BINARY_REQUEST.sub(
        b" HTTP/1.1", b"\r\n".join(_visible_lines(exchange.request_head)) + b"\r\n\r\n", count=1
    )
    checksum = compute_digest(block)
    fields = [
        ("WARC-Type", "request"),
        ("WARC-Record-ID", _build_record_id(stands, exchange.url, _format_date(exchange.fetched_s), checksum)),
        *_common_fields(exchange),
        ("WARC-Concurrent-To", answer),
        ("WARC-Block-Digest", checksum),
        ("Content-Type", "application/http;msgtype=request"),
    ]
    return _compress_record(fields, block)


def _common_fields(exchange: Exchange) -> Fields:
    """Return the WARC fields that a request record and its response record share.

    The protocol is one of them only if the archived head (always HTTP/1.1) does not show it.
    """
    binary = _BINARY_ANSWER.match(_final_lines(exchange.response_head)[0])
    plain_text = binary and binary[1] == b"2" and exchange.url.startswith("http:")
    return [
        ("WARC-Date", _format_date(exchange.fetched_s)),
        ("WARC-Target-URI", exchange.url),
        ("WARC-IP-Address", exchange.address),
        ("WARC-Protocol", "h2c" if plain_text else f"h{binary[1].decode()}" if binary else ""),
    ]


def _revisit_fields(revisit: Revisit) -> Fields:
    return [
        ("WARC-Profile", _PROFILES + revisit.profile),
        ("WARC-Refers-To-Target-URI", revisit.refers_to_url),
        ("WARC-Refers-To-Date", _format_date(revisit.refers_to_date_s)),
    ]


def _compress_record(fields: Fields, block: bytes) -> bytes:
    """Compress one WARC record as one gzip member.

    Level 1 of ISA-L takes a tenth of zlib's time for nearly its size.
    """
    head = _format_fields([*fields, ("Content-Length", str(len(block)))])
    record = b"".join((b"WARC/1.1\r\n", head, b"\r\n", block, b"\r\n\r\n"))
    return igzip_lib.compress(record, level=1, flag=igzip_lib.COMP_GZIP)


def _format_fields(fields: Iterable[tuple[str, str]]) -> bytes:
    """Format WARC header lines; empty fields are left out, and no value can start a new line."""
    lines = [f"{name}: {value}" for name, value in fields if value]
    if not "".join(lines).isprintable():
        lines = [_CONTROL.sub(" ", line) for line in lines]
    return ("\r\n".join(lines) + "\r\n").encode("utf-8", "replace")


def _encode_base32(sha1: bytes) -> str:
    """Encode a SHA-1 digest in base 32 for WARC records, by groups of ten bits.

    The standard library takes as long for this as for the digest.
    """
    number = int.from_bytes(sha1, "big")
    return "".join([_PAIRS[number >> shift & 1023] for shift in _SHIFTS])


def _build_record_id(*parts: str) -> str:
    """Build a WARC record id: a name-based UUID (RFC 9562, version 8)."""
    hashed = xxhash.xxh3_128_hexdigest(" ".join(parts).encode("utf-8", "replace"))
    return f"<urn:uuid:{hashed[:8]}-{hashed[8:12]}-8{hashed[13:16]}-8{hashed[17:20]}-{hashed[20:]}>"


@lru_cache(maxsize=4)
def _format_date(unix_s: float) -> str:
    """Format a WARC-Date to the millisecond; a revisit must repeat the very same text.

    >>> _format_date(0.25)
    '1970-01-01T00:00:00.250Z'
    """
    return datetime.fromtimestamp(unix_s, UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def _rewrite_head(exchange: Exchange) -> bytes:
    """Rewrite the head of an HTTP response so that it matches the archived payload."""
    status, *lines = _final_lines(exchange.response_head)
    status = _BINARY_ANSWER.sub(rb"HTTP/1.1 \2 ", status, count=1)
    lengths = [match[1] for line in lines if (match := _LENGTH.match(line))]
    masked = [b"X-Crawler-" + line if _TRANSFER.match(line) else line for line in lines]
    right = b"%d" % len(exchange.payload)
    if exchange.revisit or _BODILESS.match(status) or (masked == lines and not lengths) or set(lengths) == {right}:
        return b"\r\n".join([status, *masked, b"", b""])
    masked = [b"X-Crawler-" + line if _LENGTH.match(line) else line for line in masked]
    return b"\r\n".join([status, *masked, b"Content-Length: " + right, b"", b""])


@lru_cache(maxsize=2)
def _final_lines(head: bytes) -> tuple[bytes, ...]:
    """Return the header lines of the final response; interim responses (1xx) precede its status line."""
    lines = tuple(_visible_lines(head))
    last = max((row for row, line in enumerate(lines) if line.startswith(b"HTTP/")), default=None)
    if last is None:
        raise ValueError("A response record needs an HTTP status line")
    return lines[last:]


def _visible_lines(head: bytes) -> list[bytes]:
    """Return the lines of an HTTP head that have visible characters.

    WARC readers treat an empty line as the end of the head.
    """
    return [line.removesuffix(b"\r") for line in head.split(b"\n") if _VISIBLE.search(line)]
