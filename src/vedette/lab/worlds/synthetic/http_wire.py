"""HTTP/1.1 on the wire: parse the head of a request, format the head and the pieces of a response.

Pure, and strict where a request would be ambiguous: a head that is not exactly what RFC 9112 allows is refused rather
than repaired. Targets and header values are read as Latin-1, which maps every byte to one character.
"""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from http import HTTPStatus
from itertools import repeat

from vedette.lab.worlds.synthetic.validators import format_http_date
from vedette.lab.worlds.world import Delivery, Reply

PIECE_BYTES = 1 << 16
LAST_CHUNK = b"0\r\n\r\n"

_REQUEST_LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+) ([^\x00-\x20\x7f]+) HTTP/1\.([01])")
_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_ABSOLUTE = re.compile(r"(https?)://([^/?#]*)(.*)", re.IGNORECASE | re.DOTALL)
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:/?#@\[\]]*)(?::([0-9]{0,5}))?")
_USED_HEADERS = frozenset(
    b"host connection user-agent if-none-match if-modified-since content-length transfer-encoding".split()
)
_BODYLESS = frozenset({204, 304})


class MalformedRequest(Exception):
    """Error: an HTTP request head that is malformed or ambiguous."""


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """Parsed head of an HTTP request; ``host`` is in lower case, without port and final dot."""

    method: str
    scheme: str
    host: str
    port: int
    target: str
    agent: str
    if_none_match: str | None
    if_modified_since: str | None
    keep_alive: bool
    minor: int
    carries_body: bool


def parse_request_head(head: bytes) -> HttpRequest:
    r"""Parse the head of an HTTP request, given without its final empty line.

    >>> request = parse_request_head(b"GET http://A.test:8080/x?y HTTP/1.1\r\nHost: other.test")
    >>> request.host, request.port, request.target, request.keep_alive
    ('a.test', 8080, '/x?y', True)
    """
    first, _, rest = head.partition(b"\r\n")
    match = _REQUEST_LINE.fullmatch(first)
    if match is None:
        raise MalformedRequest("request line")
    seen = _parse_headers(rest)
    minor = int(match[3])
    if minor and "host" not in seen:
        raise MalformedRequest("no Host")
    method, target = match[1].decode("ascii"), match[2].decode("latin-1")
    scheme, authority, target = _split_target(target, seen.get("host", ""), method)
    host, port = _split_authority(authority, scheme)
    connection = seen.get("connection", "").lower()
    return HttpRequest(
        method=method,
        scheme=scheme,
        host=host,
        port=port,
        target=target,
        agent=seen.get("user-agent", ""),
        if_none_match=seen.get("if-none-match"),
        if_modified_since=seen.get("if-modified-since"),
        keep_alive="close" not in connection if minor else "keep-alive" in connection,
        minor=minor,
        carries_body="transfer-encoding" in seen or seen.get("content-length", "0").strip("0") != "",
    )


def format_response_head(reply: Reply, *, minor: int, keep_alive: bool, world_s: float) -> bytes:
    """Format an HTTP response head: status line, the reply's headers, and Content-Length, Date and Connection."""
    parts = [_status_line(reply.status)]
    parts += [f"{name}: {value}\r\n" for name, value in reply.headers]
    parts.append(f"date: {format_http_date(int(world_s))}\r\n")
    if is_chunked(reply.delivery, minor):
        parts.append("transfer-encoding: chunked\r\n")
    elif has_length(reply):
        parts.append(f"content-length: {len(reply.body)}\r\n")
    parts.append("connection: keep-alive\r\n\r\n" if keep_alive else "connection: close\r\n\r\n")
    return "".join(parts).encode("latin-1", "replace")


def is_chunked(delivery: Delivery, minor: int) -> bool:
    """Check whether an HTTP response body is sent in chunks; HTTP/1.0 has none."""
    return delivery.chunked and minor == 1


def has_body(reply: Reply, method: str) -> bool:
    """Check whether a body follows the HTTP response head."""
    return method != "HEAD" and reply.status not in _BODYLESS


def has_length(reply: Reply) -> bool:
    """Check whether an HTTP response states its Content-Length."""
    return reply.status not in _BODYLESS and not (reply.delivery.endless or reply.delivery.chunked)


def is_self_delimiting(reply: Reply, request: HttpRequest) -> bool:
    """Check whether the client can find the end of an HTTP response without the connection's end."""
    if not has_body(reply, request.method):
        return True
    return not reply.delivery.endless and (has_length(reply) or is_chunked(reply.delivery, request.minor))


def body_pieces(body: bytes, delivery: Delivery) -> Iterator[bytes]:
    """Yield an HTTP body in the pieces that are sent: small enough to pace, repeated if endless, cut if truncated."""
    left = sys.maxsize if delivery.stop_after_bytes is None else delivery.stop_after_bytes
    for piece in _iter_slices(body, delivery):
        if left <= 0:
            return
        yield piece[:left]
        left -= len(piece)


def _iter_slices(body: bytes, delivery: Delivery) -> Iterator[bytes]:
    """Slice an HTTP body into pieces; an empty body is one empty piece."""
    step = _slice_size(delivery)
    for _ in repeat(None) if delivery.endless and body else (None,):
        yield from (body[start : start + step] for start in range(0, max(1, len(body)), step))


def encode_chunk(piece: bytes, *, last: bool) -> bytes:
    """Encode a piece of an HTTP body as one chunk, with the empty chunk after the last."""
    chunk = b"%x\r\n%b\r\n" % (len(piece), piece) if piece else b""
    return chunk + LAST_CHUNK if last else chunk


def _slice_size(delivery: Delivery) -> int:
    """Return the piece size of an HTTP body: a twentieth of a second of a slow one, so that the rate shows."""
    return PIECE_BYTES if delivery.bytes_per_s is None else max(1, min(PIECE_BYTES, int(delivery.bytes_per_s / 20)))


@lru_cache(maxsize=1024)
def _status_line(status: int) -> str:
    try:
        return f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n"
    except ValueError:
        return f"HTTP/1.1 {status} \r\n"


def _parse_headers(block: bytes) -> dict[str, str]:
    seen: dict[str, str] = {}
    for line in block.split(b"\r\n") if block else ():
        name, colon, value = line.partition(b":")
        if not colon or _NAME.fullmatch(name) is None:
            raise MalformedRequest("header line")
        key = name.lower()
        if key in _USED_HEADERS:
            _add_header(seen, key.decode("ascii"), value.strip(b" \t").decode("latin-1"))
    return seen


def _add_header(seen: dict[str, str], key: str, value: str) -> None:
    if key == "host" and key in seen:
        raise MalformedRequest("two Hosts")
    seen[key] = f"{seen[key]}, {value}" if key in seen else value


def _split_target(target: str, host: str, method: str) -> tuple[str, str, str]:
    if target.startswith("/"):
        return "http", host, target
    match = _ABSOLUTE.fullmatch(target)
    if match is not None:
        rest = match[3] if match[3].startswith("/") else "/" + match[3]
        return match[1].lower(), match[2], rest
    if method in {"OPTIONS", "CONNECT"}:
        return "http", host, target
    raise MalformedRequest("target")


def _split_authority(authority: str, scheme: str) -> tuple[str, int]:
    match = _HOST.fullmatch(authority)
    if match is None:
        raise MalformedRequest("Host")
    default = 443 if scheme == "https" else 80
    return match[1].lower().removesuffix("."), int(match[2] or default)
