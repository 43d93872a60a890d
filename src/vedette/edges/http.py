"""HTTP, by libcurl's multi interface over epoll: one thread, hundreds of hosts, no waiting for any of them.

Redirects are not followed, cookies not kept, proxies of the environment not used: what a request does was decided
before it came here. Each request is pinned to an address that was resolved, checked and scheduled beforehand.
"""

import os
import re
import select
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import takewhile
from math import ceil
from urllib.parse import urlsplit

import pycurl

from vedette.edges.clock import Clock
from vedette.facts import Answer, Ask, Failure, Headers, NoAnswer, Outcome
from vedette.fetch.body import decode
from vedette.fetch.connect import Route
from vedette.fetch.robots import LIMIT_BYTES

__all__ = ["Client", "Limits"]

_FAILURES = {
    pycurl.E_COULDNT_RESOLVE_HOST: Failure.NAME,
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


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on one request; times are wall time, sizes count both the bytes sent and the bytes unpacked."""

    connect_timeout_s: float = 10.0
    timeout_s: float = 30.0
    body_bytes: int = 10 * 2**20


@dataclass(slots=True)
class _Transfer:
    """One request on its way."""

    ask: Ask
    started_s: float
    head: list[bytes] = field(default_factory=list)
    body: bytearray = field(default_factory=bytearray)  # not a list: a body may come byte by byte
    cut: bool = False

    def take_beginning(self, data: bytes) -> int:
        """Of a robots.txt only the beginning counts (RFC 9309, 2.5); the rest is not waited for."""
        room = ROBOTS_BYTES - len(self.body)
        self.body.extend(data[:room])
        self.cut = len(data) > room
        return 0 if self.cut else len(data)


class Client:
    """Submit asks, wait, and collect outcomes. Every ask has exactly one outcome."""

    def __init__(self, clock: Clock, limits: Limits) -> None:
        self._clock = clock
        self._limits = limits
        self._multi = pycurl.CurlMulti()
        self._poll = select.epoll()
        self._timer_s: float | None = None
        self._idle: list[pycurl.Curl] = []
        self._transfers: dict[pycurl.Curl, _Transfer] = {}
        self._watched: dict[int, Callable[[], object]] = {}
        self._roots = _system_roots()
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._on_socket)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._on_timer)

    @property
    def in_flight(self) -> int:
        """How many asks have no outcome yet."""
        return len(self._transfers)

    def watch(self, fd: int, on_ready: Callable[[], object]) -> None:
        """Wake up when this descriptor can be read, too."""
        self._watched[fd] = on_ready
        self._poll.register(fd, select.EPOLLIN)

    def submit(self, ask: Ask, route: Route) -> None:
        """Send a request to a pinned address."""
        curl = self._idle.pop() if self._idle else self._fresh()
        transfer = _Transfer(ask, self._clock.now())
        curl.setopt(pycurl.URL, ask.url)
        curl.setopt(pycurl.HTTPHEADER, [f"{name}: {value}" for name, value in ask.headers])
        literal = f"[{route.address}]" if ":" in route.address else route.address
        curl.setopt(pycurl.CONNECT_TO, [f"::{literal}:{route.port}"])
        curl.setopt(pycurl.HEADERFUNCTION, transfer.head.append)
        robots = ask.purpose == "robots"
        curl.setopt(pycurl.WRITEFUNCTION, transfer.take_beginning if robots else transfer.body.extend)
        curl.setopt(pycurl.MAXFILESIZE_LARGE, 0 if robots else self._limits.body_bytes)
        self._transfers[curl] = transfer
        self._multi.add_handle(curl)

    def wait(self, timeout_s: float) -> list[Outcome]:
        """Let things happen for at most this long (wall time); whatever came to an end meanwhile."""
        until_timer_s = timeout_s if self._timer_s is None else max(self._timer_s - time.monotonic(), 0.0)
        for fd, events in self._poll.poll(min(timeout_s, until_timer_s)):
            if fd in self._watched:
                self._watched[fd]()
            else:
                self._multi.socket_action(fd, _to_curl(events))
        if self._timer_s is not None and self._timer_s <= time.monotonic():
            self._timer_s = None
            self._multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)
        return self._collect()

    def close(self) -> None:
        """Abandon what is on its way; the sockets are closed."""
        for curl in [*self._transfers, *self._idle]:
            if curl in self._transfers:
                self._multi.remove_handle(curl)
            curl.close()
        self._transfers.clear()
        self._idle.clear()
        self._multi.close()
        self._poll.close()

    def _fresh(self) -> pycurl.Curl:
        curl = pycurl.Curl()
        curl.setopt(pycurl.NOSIGNAL, 1)
        curl.setopt(pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS)
        curl.setopt(pycurl.PATH_AS_IS, 1)
        curl.setopt(pycurl.PROXY, "")
        curl.setopt(pycurl.FOLLOWLOCATION, 0)
        curl.setopt(pycurl.CONNECTTIMEOUT_MS, ceil(self._limits.connect_timeout_s * 1000))
        curl.setopt(pycurl.TIMEOUT_MS, ceil(self._limits.timeout_s * 1000))
        if self._roots:
            curl.setopt(pycurl.CAINFO, self._roots)
        return curl

    def _on_socket(self, what: int, fd: int, *_: object) -> None:
        if what == pycurl.POLL_REMOVE:
            # The descriptor may be closed already; epoll forgets it by itself then.
            _quietly(self._poll.unregister, fd)
            return
        events = _to_epoll(what)
        if not _quietly(self._poll.modify, fd, events):
            self._poll.register(fd, events)

    def _on_timer(self, timeout_ms: int) -> None:
        self._timer_s = None if timeout_ms < 0 else time.monotonic() + timeout_ms / 1000

    def _collect(self) -> list[Outcome]:
        outcomes: list[Outcome] = []
        more = 1
        while more:
            more, good, bad = self._multi.info_read(256)
            outcomes += [self._finish(curl, None, "") for curl in good]
            outcomes += [self._finish(curl, code, text) for curl, code, text in bad]
        return outcomes

    def _finish(self, curl: pycurl.Curl, code: int | None, text: str) -> Outcome:
        self._multi.remove_handle(curl)
        transfer = self._transfers.pop(curl)
        outcome = self._outcome(transfer, curl, code, text)
        # The idle handle still refers to both, until its next request.
        transfer.head.clear()
        transfer.body.clear()
        self._idle.append(curl)
        return outcome

    def _outcome(self, transfer: _Transfer, curl: pycurl.Curl, code: int | None, text: str) -> Outcome:
        ask, ended_s = transfer.ask, self._clock.now()
        if code is not None and not transfer.cut:
            failure = _FAILURES.get(code, Failure.PROTOCOL)
            return NoAnswer(ask.url, ask.purpose, failure, text, transfer.started_s, ended_s)
        headers = _read_head(transfer.head)
        coding = ", ".join(value for name, value in headers if name == "content-encoding")
        limit_bytes = ROBOTS_BYTES if ask.purpose == "robots" else self._limits.body_bytes
        payload = bytes(transfer.body)
        body = decode(payload, coding, limit_bytes)
        if isinstance(body, Failure):
            return NoAnswer(ask.url, ask.purpose, body, f"Content-Encoding {coding}", transfer.started_s, ended_s)
        status, address = curl.getinfo(pycurl.RESPONSE_CODE), curl.getinfo(pycurl.PRIMARY_IP)
        return Answer(
            *(ask.url, ask.purpose, status, headers, body, transfer.started_s, ended_s, address),
            request_head=_request_head(ask),
            head=b"".join(transfer.head),
            payload=payload,
        )


def _request_head(ask: Ask) -> bytes:
    """The request as it was sent, but for what libcurl adds on its own."""
    parts = urlsplit(ask.url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    lines = [f"GET {target} HTTP/1.1", f"Host: {parts.netloc}", *(f"{name}: {value}" for name, value in ask.headers)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")


def _read_head(lines: list[bytes]) -> Headers:
    """The headers of the final answer: neither those of 1xx answers before it nor the trailers after its body."""
    final = next((row for row, line in enumerate(lines) if _FINAL_STATUS.match(line)), len(lines))
    pairs = (line.decode("latin-1").partition(":") for line in takewhile(bytes.strip, lines[final + 1 :]))
    return tuple((name.strip().lower(), value.strip()) for name, colon, value in pairs if colon)


def _to_curl(events: int) -> int:
    return (
        (pycurl.CSELECT_IN if events & (select.EPOLLIN | select.EPOLLHUP) else 0)
        | (pycurl.CSELECT_OUT if events & select.EPOLLOUT else 0)
        | (pycurl.CSELECT_ERR if events & select.EPOLLERR else 0)
    )


def _to_epoll(what: int) -> int:
    return (select.EPOLLIN if what & pycurl.POLL_IN else 0) | (select.EPOLLOUT if what & pycurl.POLL_OUT else 0)


def _quietly(call: Callable[..., object], *arguments: int) -> bool:
    try:
        call(*arguments)
    except OSError:
        return False
    return True


def _system_roots() -> str | None:
    """The system's trusted roots; the wheel of the client was built for another system's path."""
    paths = ssl.get_default_verify_paths()
    candidates = (os.environ.get("SSL_CERT_FILE"), paths.cafile, "/etc/ssl/certs/ca-certificates.crt")
    return next((path for path in candidates if path and os.path.exists(path)), None)  # noqa: PTH110 - plain path
