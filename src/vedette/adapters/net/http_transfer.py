"""One HTTP request on its way: what libcurl hands over while it runs, and what it came to.

All that a server can make us keep is counted here or in the handle: the lines and bytes of its head, the bytes of its
body, on the wire and unpacked. What is refused here looks to libcurl like a broken connection or a closed port, so
the reason is noted where it arises.
"""

import re
import socket
from dataclasses import dataclass, field
from ipaddress import ip_address
from itertools import takewhile
from urllib.parse import urlsplit

import pycurl

from vedette.adapters.net.http_handles import Limits
from vedette.fetch.body import decode
from vedette.fetch.connect_to import Route
from vedette.fetch.credentials import hide
from vedette.fetch.robots.rules import LIMIT_BYTES
from vedette.model import Answer, Ask, Failure, Headers, NoAnswer, Outcome

__all__ = ["Transfer"]

_FAILURES = {
    pycurl.E_COULDNT_RESOLVE_HOST: Failure.NAME,
    pycurl.E_COULDNT_RESOLVE_PROXY: Failure.CONNECT,
    pycurl.E_COULDNT_CONNECT: Failure.CONNECT,
    pycurl.E_OPERATION_TIMEDOUT: Failure.TIMEOUT,
    pycurl.E_FILESIZE_EXCEEDED: Failure.TOO_LARGE,
    pycurl.E_SSL_CONNECT_ERROR: Failure.TLS,
    pycurl.E_PEER_FAILED_VERIFICATION: Failure.TLS,
    pycurl.E_SSL_CACERT_BADFILE: Failure.TLS,
    pycurl.E_PARTIAL_FILE: Failure.RESET,
    pycurl.E_GOT_NOTHING: Failure.RESET,
    pycurl.E_SEND_ERROR: Failure.RESET,
    pycurl.E_RECV_ERROR: Failure.RESET,
}
# One more than is read, so that a reader can tell that there was more.
ROBOTS_BYTES = LIMIT_BYTES + 1
_FINAL_STATUS = re.compile(rb"HTTP/[\d.]+ (?!1\d\d)")


class _Opened:
    """A socket of which libcurl takes a copy; ours is closed as soon as it has."""

    def __init__(self, family: int, kind: int, protocol: int) -> None:
        self._socket = socket.socket(family, kind, protocol)

    def fileno(self) -> int:
        return self._socket.fileno()

    def __del__(self) -> None:
        self._socket.close()


@dataclass(slots=True)
class Transfer:
    """An ask, where it goes, and what has come so far."""

    ask: Ask
    route: Route
    limits: Limits
    started_s: float
    head: list[bytes] = field(default_factory=list)
    body: bytearray = field(default_factory=bytearray)  # not a list: a body may come byte by byte
    head_bytes: int = 0
    cut: bool = False
    stopped: tuple[Failure, str] | None = None

    def open_socket(self, _purpose: int, where: tuple[int, int, int, tuple[str, int]]) -> _Opened | int:
        """A socket to the pinned address; libcurl gets none to any other."""
        family, kind, protocol, (address, port, *_) = where
        if port != self.route.port or not _is_same(address, self.route.address):
            self.stopped = (Failure.ADDRESS, f"{address} port {port} is not the address that was checked")
            return pycurl.SOCKET_BAD
        return _Opened(family, kind, protocol)

    def take_head(self, line: bytes) -> int:
        """Interim answers and trailers come this way too, and count alike."""
        self.head_bytes += len(line)
        if self.head_bytes > self.limits.head_bytes or len(self.head) >= self.limits.head_lines:
            self.stopped = (Failure.TOO_LARGE, "the head of the answer is too long")
            return -1
        self.head.append(line)
        return len(line)

    def take_beginning(self, data: bytes) -> int:
        """Of a robots.txt only the beginning counts (RFC 9309, 2.5); the rest is not waited for."""
        room = ROBOTS_BYTES - len(self.body)
        self.body.extend(data[:room])
        self.cut = len(data) > room
        return 0 if self.cut else len(data)

    def outcome(self, curl: pycurl.Curl, code: int | None, text: str, ended_s: float) -> Outcome:
        """What the request came to; ``code`` and ``text`` are libcurl's, where it gave up."""
        if self.stopped is not None:
            return self.failed(*self.stopped, ended_s)
        if code is not None and not self.cut:
            return self.failed(_FAILURES.get(code, Failure.PROTOCOL), text, ended_s)
        headers = _read_head(self.head)
        coding = ", ".join(value for name, value in headers if name == "content-encoding")
        payload = bytes(self.body)
        body = decode(payload, coding, self._limit_bytes())
        if isinstance(body, Failure):
            return self.failed(body, f"Content-Encoding {coding[:100]}", ended_s)
        status, address = curl.getinfo(pycurl.RESPONSE_CODE), curl.getinfo(pycurl.PRIMARY_IP)
        return Answer(
            *(self.ask.url, self.ask.purpose, status, headers, body, self.started_s, ended_s, address),
            request_head=_request_head(self.ask),
            head=b"".join(self.head),
            payload=payload,
        )

    def failed(self, failure: Failure, detail: str, ended_s: float) -> NoAnswer:
        """No answer; the detail may hold words of the server's, but no secret that it was sent."""
        ask = self.ask
        return NoAnswer(ask.url, ask.purpose, failure, hide(detail, ask.secret_headers), self.started_s, ended_s)

    def _limit_bytes(self) -> int:
        return ROBOTS_BYTES if self.ask.purpose == "robots" else self.limits.body_bytes


def _is_same(opened: str, pinned: str) -> bool:
    """Whether two spellings are one address; what is no address is the same as nothing."""
    try:
        return opened == pinned or ip_address(opened) == ip_address(pinned)
    except ValueError:
        return False


def _request_head(ask: Ask) -> bytes:
    """The request as it was sent, but for what libcurl adds on its own and for what is secret."""
    parts = urlsplit(ask.url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    lines = [f"GET {target} HTTP/1.1", f"Host: {parts.netloc}", *(f"{name}: {value}" for name, value in ask.headers)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")


def _read_head(lines: list[bytes]) -> Headers:
    """The headers of the final answer: neither those of 1xx answers before it nor the trailers after its body."""
    final = next((row for row, line in enumerate(lines) if _FINAL_STATUS.match(line)), len(lines))
    pairs = (line.decode("latin-1").partition(":") for line in takewhile(bytes.strip, lines[final + 1 :]))
    return tuple((name.strip().lower(), value.strip()) for name, colon, value in pairs if colon)
