"""HTTP client: libcurl's multi interface over epoll; one thread, hundreds of hosts, no blocking.

Redirects are not followed, cookies not stored, environment proxies not used: everything about a request was decided
before it gets here. Each request is pinned to an address that was resolved, checked and scheduled beforehand; a
connection to any other address is not opened.
"""

import os
import re
import select
import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from ipaddress import ip_address
from itertools import takewhile
from math import ceil
from pathlib import Path
from urllib.parse import urlsplit

import pycurl

from vedette.adapters.clock import Clock
from vedette.adapters.net.header_filter import open_filtered
from vedette.errors import ConfigError
from vedette.fetch.body import decode
from vedette.fetch.connect_to import Endpoint
from vedette.fetch.credentials import redact
from vedette.fetch.robots.rules import MAX_ROBOTS_BYTES
from vedette.model import Failure, FetchOutcome, FetchRequest, FetchResponse, Headers, NoResponse, Origin, origin_of

# The environment has no effect: neither its proxies nor its exceptions from them are used. None of libcurl's
# conveniences is on either (redirects, cookies, passwords of a ``.netrc``): everything about a request was decided
# before.


# CURLOPT_SUPPRESS_CONNECT_HEADERS, for which pycurl has no name: a proxy's own head is no part of the response.
_SUPPRESS_CONNECT_HEADERS = 265
# Characters that could end a line, or change the meaning of the part before the path, are never sent.
_URL = re.compile(r"https?://(?![^/?#]*[@\\])[!-~]{1,65536}")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9a-z-]{1,256}")
_HEADER_VALUE = re.compile(r"[\t -~\x80-\xff]{0,65536}")


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on one HTTP request; times are wall time, sizes apply to bytes both before and after decompression.

    A response that arrives at less than ``slow_bytes_per_s`` for ``slow_s`` in a row is given up; bytes before the body
    do not count, so a head must arrive within about ``slow_s``.
    """

    connect_timeout_s: float = 10.0
    timeout_s: float = 30.0
    body_bytes: int = 10 * 2**20
    head_bytes: int = 64 * 2**10
    head_lines: int = 256
    slow_bytes_per_s: int = 100
    slow_s: int = 20


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """How HTTP servers are reached: a proxy (``http://`` or ``socks5h://``), and additional CA roots (PEM).

    Without a proxy each connection goes to the pinned address, which is compared again when the socket opens. With one,
    connections go to the proxy, which gets the name and resolves it itself: names that resolve to a private address
    here are refused beforehand, as usual, but if the proxy finds another address, only its own rules apply. The address
    of a response is then the proxy's.
    """

    proxy: str = ""
    ca_file: str = ""


class CaBundle:
    """The CA certificates for HTTPS, as one file: the system's, and those that the operator adds.

    Together they are stored in memory, under a name that libcurl can open: it reads a file once a day and caches it,
    whereas a bundle passed as bytes would be parsed again for every connection.
    """

    def __init__(self, ca_file: str) -> None:
        self._descriptor: int | None = None
        self.path = _find_system_ca_file()
        if ca_file:
            system = Path(self.path).read_bytes() if self.path else b""
            self._descriptor = os.memfd_create("vedette-roots")
            with open(self._descriptor, "wb", closefd=False) as file:
                file.write(system + b"\n" + _read_ca_file(ca_file))
            self.path = f"/proc/self/fd/{self._descriptor}"

    def close(self) -> None:
        """Close the CA bundle's file in memory."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def create_handle(limits: Limits, way: ConnectionSettings, roots: CaBundle) -> pycurl.Curl:
    """Create a libcurl handle with the settings that all requests of an HTTP client share."""
    curl = pycurl.Curl()
    curl.setopt(pycurl.NOSIGNAL, 1)
    curl.setopt(pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS)
    curl.setopt(pycurl.PATH_AS_IS, 1)
    curl.setopt(pycurl.FOLLOWLOCATION, 0)
    curl.setopt(pycurl.PROXY, way.proxy)
    curl.setopt(pycurl.NOPROXY, "")
    curl.setopt(_SUPPRESS_CONNECT_HEADERS, 1)
    curl.setopt(pycurl.CONNECTTIMEOUT_MS, ceil(limits.connect_timeout_s * 1000))
    curl.setopt(pycurl.TIMEOUT_MS, ceil(limits.timeout_s * 1000))
    curl.setopt(pycurl.LOW_SPEED_LIMIT, limits.slow_bytes_per_s)
    curl.setopt(pycurl.LOW_SPEED_TIME, limits.slow_s)
    if roots.path:
        curl.setopt(pycurl.CAINFO, roots.path)
    return curl


def set_request(curl: pycurl.Curl, ask: FetchRequest) -> None:
    """Set a libcurl handle's request, which ``find_request_error`` has accepted."""
    curl.setopt(pycurl.URL, ask.url)
    # Setting an empty list would keep the headers of the previous request, secrets included, for this one.
    curl.unsetopt(pycurl.HTTPHEADER)
    curl.setopt(pycurl.HTTPHEADER, [_format_header(name, value) for name, value in ask.headers + ask.secret_headers])


def pin_address(curl: pycurl.Curl, route: Endpoint, open_socket: Callable[..., object]) -> None:
    """Pin a libcurl connection to one address, checked again when the socket opens."""
    literal = f"[{route.address}]" if ":" in route.address else route.address
    curl.setopt(pycurl.CONNECT_TO, [f"::{literal}:{route.port}"])
    curl.setopt(pycurl.OPENSOCKETFUNCTION, open_socket)


def find_request_error(ask: FetchRequest) -> str:
    """Return why a fetch request cannot be written as one HTTP request; empty if it can.

    >>> find_request_error(FetchRequest("http://example.org/a b", "page"))
    'the URL contains characters that a request line cannot have'
    """
    if not _URL.fullmatch(ask.url):
        return "the URL contains characters that a request line cannot have"
    for name, value in ask.headers + ask.secret_headers:
        if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
            return "a request header contains characters that are not allowed in headers"
    return ""


def _format_header(name: str, value: str) -> bytes:
    # For libcurl a name with a colon and nothing else means that the header is not sent.
    return (f"{name}: {value}" if value.strip() else f"{name};").encode("latin-1")


def _find_system_ca_file() -> str | None:
    """Find the system's CA file; the libcurl wheel was built for another system's path."""
    paths = ssl.get_default_verify_paths()
    candidates = (os.environ.get("SSL_CERT_FILE"), paths.cafile, "/etc/ssl/certs/ca-certificates.crt")
    return next((path for path in candidates if path and Path(path).exists()), None)


def _read_ca_file(ca_file: str) -> bytes:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(ca_file)
        return Path(ca_file).read_bytes()
    except ssl.SSLError:
        raise ConfigError(
            f"crawl.ca_file = {ca_file}: contains no certificate; choose a PEM file with root certificates"
        ) from None
    except OSError as error:
        raise ConfigError(
            f"crawl.ca_file: cannot read {ca_file} ({error.strerror}); choose a readable PEM file"
        ) from None


# Everything that a server can make us store is counted here or in the handle: the lines and bytes of its head, the
# bytes of its body, on the wire and unpacked. A refusal here appears to libcurl as a broken connection or a closed
# port, so the reason is recorded where it arises.


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
# One more than is read, so that a reader can detect that there was more.
ROBOTS_BYTES = MAX_ROBOTS_BYTES + 1
# libcurl's message for a header line without a colon, and for how many servers that is remembered.
_NO_COLON = "without colon"
_MAX_FILTERED = 1000
_FINAL_STATUS = re.compile(rb"HTTP/[\d.]+ (?!1\d\d)")


class _Socket:
    """A socket that libcurl duplicates; ours is closed as soon as it has."""

    def __init__(self, own: socket.socket) -> None:
        self._socket = own

    def fileno(self) -> int:
        return self._socket.fileno()

    def __del__(self) -> None:
        self._socket.close()


@dataclass(slots=True)
class Transfer:
    """An HTTP request in flight: its route, and what has been received so far."""

    ask: FetchRequest
    route: Endpoint
    limits: Limits
    started_s: float
    head: list[bytes] = field(default_factory=list)
    body: bytearray = field(default_factory=bytearray)  # not a list: a body may arrive byte by byte
    head_bytes: int = 0
    cut: bool = False
    stopped: tuple[Failure, str] | None = None
    filtered: socket.socket | None = None

    def open_socket(self, _purpose: int, where: tuple[int, int, int, tuple[str, int]]) -> _Socket | int:
        """Open a socket to the pinned address for libcurl; refuse any other address."""
        family, kind, protocol, (address, port, *_) = where
        if port != self.route.port or not _is_same_address(address, self.route.address):
            self.stopped = (Failure.ADDRESS, f"{address} port {port} is not the address that was checked")
            return pycurl.SOCKET_BAD
        if self.filtered is not None:
            return _Socket(self.filtered)
        return _Socket(socket.socket(family, kind, protocol))

    def on_header_line(self, line: bytes) -> int:
        """Collect a response header line from libcurl, including those of interim responses and trailers."""
        self.head_bytes += len(line)
        if self.head_bytes > self.limits.head_bytes or len(self.head) >= self.limits.head_lines:
            self.stopped = (Failure.TOO_LARGE, "the response header is too long")
            return -1
        self.head.append(line)
        return len(line)

    def on_robots_body(self, data: bytes) -> int:
        """Collect the body of a robots.txt up to the size that counts (RFC 9309, 2.5), then stop the transfer."""
        room = ROBOTS_BYTES - len(self.body)
        self.body.extend(data[:room])
        self.cut = len(data) > room
        return 0 if self.cut else len(data)

    def build_outcome(self, curl: pycurl.Curl, code: int | None, text: str, ended_s: float) -> FetchOutcome:
        """Build the outcome of an HTTP request; ``code`` and ``text`` are libcurl's, if it gave up."""
        if self.stopped is not None:
            return self.build_failure(*self.stopped, ended_s)
        if code is not None and not self.cut:
            return self.build_failure(_FAILURES.get(code, Failure.PROTOCOL), text, ended_s)
        headers = _parse_head(self.head)
        coding = ", ".join(value for name, value in headers if name == "content-encoding")
        payload = bytes(self.body)
        body = decode(payload, coding, self._body_limit())
        if isinstance(body, Failure):
            failure = Failure.CODING if body is Failure.PROTOCOL else body
            return self.build_failure(failure, f"Content-Encoding {coding[:100]}", ended_s)
        status = curl.getinfo(pycurl.RESPONSE_CODE)
        address = curl.getinfo(pycurl.PRIMARY_IP) if self.filtered is None else self.route.address
        return FetchResponse(
            *(self.ask.url, self.ask.purpose, status, headers, body, self.started_s, ended_s, address),
            request_head=_format_request_head(self.ask),
            head=b"".join(self.head),
            payload=payload,
        )

    def build_failure(self, failure: Failure, detail: str, ended_s: float) -> NoResponse:
        """Build the outcome of an HTTP request without a response; the detail contains no secrets that were sent."""
        ask = self.ask
        return NoResponse(ask.url, ask.purpose, failure, redact(detail, ask.secret_headers), self.started_s, ended_s)

    def _body_limit(self) -> int:
        return ROBOTS_BYTES if self.ask.purpose == "robots" else self.limits.body_bytes


def _is_same_address(opened: str, pinned: str) -> bool:
    """Check whether two spellings are the same IP address; an invalid one equals nothing."""
    try:
        return opened == pinned or ip_address(opened) == ip_address(pinned)
    except ValueError:
        return False


def _format_request_head(ask: FetchRequest) -> bytes:
    """Format the HTTP request head as it was sent, except for what libcurl adds and for secrets."""
    parts = urlsplit(ask.url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    lines = [f"GET {target} HTTP/1.1", f"Host: {parts.netloc}", *(f"{name}: {value}" for name, value in ask.headers)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")


def _parse_head(lines: list[bytes]) -> Headers:
    """Parse the headers of the final HTTP response, without those of 1xx responses and trailers."""
    final = next((row for row, line in enumerate(lines) if _FINAL_STATUS.match(line)), len(lines))
    pairs = (line.decode("latin-1").partition(":") for line in takewhile(bytes.strip, lines[final + 1 :]))
    return tuple((name.strip().lower(), value.strip()) for name, colon, value in pairs if colon)


DIRECT = ConnectionSettings()


class HttpClient:
    """HTTP client: submit requests, wait, and collect outcomes; every request has exactly one outcome."""

    def __init__(self, clock: Clock, limits: Limits, way: ConnectionSettings = DIRECT) -> None:
        self._clock = clock
        self._limits = limits
        self._way = way
        self._roots = CaBundle(way.ca_file)
        self._multi = pycurl.CurlMulti()
        self._poll = select.epoll()
        self._timer_s: float | None = None
        self._idle: list[pycurl.Curl] = []
        self._transfers: dict[pycurl.Curl, Transfer] = {}
        self._refused: list[FetchOutcome] = []
        self._watched: dict[int, Callable[[], object]] = {}
        self._filtered: dict[Origin, None] = {}
        self._tls: ssl.SSLContext | None = None
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._on_socket)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._on_timer)

    @property
    def in_flight(self) -> int:
        """Number of HTTP requests without an outcome."""
        return len(self._transfers) + len(self._refused)

    def watch_fd(self, fd: int, on_ready: Callable[[], object]) -> None:
        """Wake up the HTTP client's ``wait`` also when this descriptor is readable."""
        self._watched[fd] = on_ready
        self._poll.register(fd, select.EPOLLIN)

    def unwatch_fd(self, fd: int) -> None:
        """Stop waking up for a descriptor, before it is closed."""
        del self._watched[fd]
        self._poll.unregister(fd)

    def submit(self, ask: FetchRequest, route: Endpoint) -> None:
        """Send an HTTP request to a pinned address; the next ``wait`` returns one that cannot be written."""
        transfer = Transfer(ask, route, self._limits, self._clock.now())
        if why := find_request_error(ask):
            self._refused.append(transfer.build_failure(Failure.PROTOCOL, why, transfer.started_s))
            return
        curl = self._idle.pop() if self._idle else create_handle(self._limits, self._way, self._roots)
        set_request(curl, ask)
        if not self._way.proxy:
            pin_address(curl, route, transfer.open_socket)
        if self._filtered and origin_of(ask.url) in self._filtered:
            self._filter_headers(curl, transfer)
        is_robots = ask.purpose == "robots"
        curl.setopt(pycurl.HEADERFUNCTION, transfer.on_header_line)
        curl.setopt(pycurl.WRITEFUNCTION, transfer.on_robots_body if is_robots else transfer.body.extend)
        curl.setopt(pycurl.MAXFILESIZE_LARGE, 0 if is_robots else self._limits.body_bytes)
        self._transfers[curl] = transfer
        self._multi.add_handle(curl)

    def wait(self, timeout_s: float) -> list[FetchOutcome]:
        """Run HTTP transfers for at most this long (wall time) and return the outcomes of those that ended."""
        if self._refused:
            timeout_s = 0.0
        until_timer_s = timeout_s if self._timer_s is None else max(self._timer_s - time.monotonic(), 0.0)
        for fd, events in self._poll.poll(min(timeout_s, until_timer_s)):
            if fd in self._watched:
                self._watched[fd]()
            else:
                self._multi.socket_action(fd, _to_curl_events(events))
        if self._timer_s is not None and self._timer_s <= time.monotonic():
            self._timer_s = None
            self._multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)
        return self._collect()

    def close(self) -> None:
        """Abandon the HTTP requests in flight and close the sockets."""
        for curl in [*self._transfers, *self._idle]:
            if curl in self._transfers:
                self._multi.remove_handle(curl)
            curl.close()
        self._transfers.clear()
        self._refused.clear()
        self._idle.clear()
        self._multi.close()
        self._poll.close()
        self._roots.close()

    def _filter_headers(self, curl: pycurl.Curl, transfer: Transfer) -> None:
        """Route a request through the header filter, which handles TLS for it."""
        origin, limits = origin_of(transfer.ask.url), self._limits
        if origin.scheme == "https" and self._tls is None:
            self._tls = ssl.create_default_context(cafile=self._roots.path)
        tls = self._tls if origin.scheme == "https" else None
        transfer.filtered = open_filtered(transfer.route, origin.host, tls, limits.timeout_s, limits.head_bytes)
        curl.setopt(pycurl.URL, f"http{transfer.ask.url.removeprefix(origin.scheme)}")
        curl.setopt(pycurl.SOCKOPTFUNCTION, lambda _fd, _purpose: pycurl.SOCKOPT_ALREADY_CONNECTED)
        curl.setopt(pycurl.FRESH_CONNECT, 1)
        curl.setopt(pycurl.FORBID_REUSE, 1)

    def _on_socket(self, what: int, fd: int, *_: object) -> None:
        if what == pycurl.POLL_REMOVE:
            # The descriptor may already be closed; epoll then drops it by itself.
            _call_quietly(self._poll.unregister, fd)
            return
        events = _to_epoll_events(what)
        if not _call_quietly(self._poll.modify, fd, events):
            self._poll.register(fd, events)

    def _on_timer(self, timeout_ms: int) -> None:
        self._timer_s = None if timeout_ms < 0 else time.monotonic() + timeout_ms / 1000

    def _collect(self) -> list[FetchOutcome]:
        outcomes, self._refused = self._refused, []
        more = 1
        while more:
            more, good, bad = self._multi.info_read(256)
            outcomes += [self._finish(curl, None, "") for curl in good]
            outcomes += [self._finish(curl, code, text) for curl, code, text in bad]
        return outcomes

    def _finish(self, curl: pycurl.Curl, code: int | None, text: str) -> FetchOutcome:
        self._multi.remove_handle(curl)
        transfer = self._transfers.pop(curl)
        if code is not None and _NO_COLON in text and not self._way.proxy:
            self._note_broken_head(transfer)
        outcome = transfer.build_outcome(curl, code, text, self._clock.now())
        # The idle handle still refers to both, until its next request.
        transfer.head.clear()
        transfer.body.clear()
        if transfer.filtered is None:
            self._idle.append(curl)
        else:
            curl.close()
        return outcome

    def _note_broken_head(self, transfer: Transfer) -> None:
        """Remember that a server sends header lines without a colon; the next attempt removes them."""
        if len(self._filtered) >= _MAX_FILTERED:
            del self._filtered[next(iter(self._filtered))]
        self._filtered[origin_of(transfer.ask.url)] = None
        transfer.stopped = (Failure.HEADER, "a header line has no colon; it is left out at the next attempt")


def _to_curl_events(events: int) -> int:
    return (
        (pycurl.CSELECT_IN if events & (select.EPOLLIN | select.EPOLLHUP) else 0)
        | (pycurl.CSELECT_OUT if events & select.EPOLLOUT else 0)
        | (pycurl.CSELECT_ERR if events & select.EPOLLERR else 0)
    )


def _to_epoll_events(what: int) -> int:
    return (select.EPOLLIN if what & pycurl.POLL_IN else 0) | (select.EPOLLOUT if what & pycurl.POLL_OUT else 0)


def _call_quietly(call: Callable[..., object], *arguments: int) -> bool:
    try:
        call(*arguments)
    except OSError:
        return False
    return True
