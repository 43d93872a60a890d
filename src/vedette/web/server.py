"""The HTTP server: uvicorn over uvloop and httptools on a socket, with limits on connections, bytes and time.

A request is short here: a head and at most a small form. So each has to arrive completely within some seconds and some
kilobytes, and a client that sends more, or sends it slowly, is cut off before it costs memory or a connection.
"""

import errno
import ipaddress
import signal
import socket
import threading
from asyncio import TimerHandle, Transport
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any, Protocol

from starlette.types import ASGIApp
from uvicorn import Config, Server
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from vedette.errors import UsageError
from vedette.web.auth.rate_limits import is_in_networks, to_network
from vedette.web.push.routes import MAX_PUSH_BYTES, is_push_path

# A connection costs little, but their number is limited, and one that sends nothing, or half of a request, holds its
# slot until the timeout. So each address has a share. An address that wants more loses its longest idle connection,
# which browsers expect and recover from; a response in progress is never cut off. A trusted proxy represents many
# clients, and limits its own visitors.
MAX_PER_ADDRESS = 100  # a tenth of all; enough for an office behind one address


class Connection(Protocol):
    """A connection of the HTTP server, as the connection limiter sees it."""

    def is_idle(self) -> bool:
        """Check whether the connection can be closed without loss: no complete request is being answered."""

    def close_now(self) -> None:
        """Close the connection at once."""


class ConnectionLimiter:
    """Limits the connections of one HTTP server process by client address."""

    def __init__(self, trusted: Sequence[str] = (), most: int = MAX_PER_ADDRESS) -> None:
        self._trusted = tuple(ipaddress.ip_network(each) for each in trusted)
        self._most = most
        self._guests: dict[str, dict[Connection, None]] = {}  # the oldest first

    def __len__(self) -> int:
        return sum(map(len, self._guests.values()))

    def admit(self, guest: Connection, address: str) -> bool:
        """Admit a connection if its address is below the limit, possibly by closing an idle one of that address."""
        if is_in_networks(address, self._trusted):
            return True
        network = to_network(address)
        beside = self._guests.get(network, {})
        if len(beside) >= self._most:
            idle = next((each for each in beside if each.is_idle()), None)
            if idle is None:
                return False
            del beside[idle]
            idle.close_now()
        self._guests.setdefault(network, beside)[guest] = None
        return True

    def remove(self, guest: Connection, address: str) -> None:
        """Remove a closed connection from the limiter; one that was never admitted is ignored."""
        network = to_network(address)
        beside = self._guests.get(network, {})
        beside.pop(guest, None)
        if not beside:
            self._guests.pop(network, None)


MAX_REQUEST_BYTES = 131_072  # a head and a body; the gate limits their length more exactly
REQUEST_TIMEOUT_S = 15.0
# Hubs and sites push up to 2 MiB, some of them over slow lines: 7 kB a second is enough.
PUSH_TIMEOUT_S = 300.0
MAX_HEAD_BYTES = 65_536
KEEP_ALIVE_S = 15
MAX_CONNECTIONS = 1000
SHUTDOWN_TIMEOUT_S = 1  # for responses in progress; with the server's own steps a shutdown takes less than two
BACKLOG = 256

_TOO_MANY = b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: 5\r\ncontent-length: 0\r\n\r\n"
_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


def bind(listen: str) -> socket.socket:
    """Bind a listening socket at ``HOST:PORT`` for the HTTP server; port 0 takes any that is free.

    >>> with bind("127.0.0.1:0") as listening:
    ...     listening.getsockname()[0]
    '127.0.0.1'
    """
    host, _, port = listen.rpartition(":")
    if not port.isdecimal() or int(port) > 65_535:
        raise UsageError(f"{listen}: set serve.listen to a host and a port up to 65535, such as 127.0.0.1:8080")
    try:
        family, kind, _, _, place = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError):
        raise UsageError(f"{host} is not an IP address: set serve.listen to one of this machine's addresses") from None
    try:
        with socket.socket(family, kind) as probe:  # checks for another listener: a shared socket would not show it
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(place)
        return _listen_shared(family, place)
    except OSError as error:
        raise UsageError(_describe_bind_error(error, host, port)) from None


def bind_shared(listening: socket.socket) -> socket.socket:
    """Bind another listening socket at the same address; the kernel spreads connections evenly over them."""
    return _listen_shared(listening.family, listening.getsockname())


def _listen_shared(family: int, place: Any) -> socket.socket:  # noqa: ANN401 - an address as its family has it
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listening.bind(place)
        listening.listen(BACKLOG)
    except OSError:
        listening.close()
        raise
    return listening


def run_server(app: ASGIApp, listening: socket.socket, trusted: Sequence[str] = ()) -> None:
    """Run the HTTP server until SIGTERM or SIGINT, then stop within two seconds and close the socket."""
    create_server(app, trusted).run([listening])


def create_server(app: ASGIApp, trusted: Sequence[str] = ()) -> Server:
    """Create an HTTP server that is not running yet; in a separate thread, stop it with ``should_exit``.

    ``trusted`` are the addresses and networks of proxies, which may hold any number of connections.
    """
    return _Server(
        _Config(
            ConnectionLimiter(trusted),
            app,
            loop="uvloop",
            http=_BoundedProtocol,
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            log_level="critical",  # hostile input is not worth logging
            access_log=False,
            proxy_headers=False,  # trust is decided in ``access``
            server_header=False,
            limit_concurrency=MAX_CONNECTIONS,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=SHUTDOWN_TIMEOUT_S,
            backlog=BACKLOG,
        )
    )


def _describe_bind_error(error: OSError, host: str, port: str) -> str:
    if error.errno == errno.EADDRINUSE:
        ways = "--port, --listen or serve.listen"
        return f"port {port} is in use: stop the program that uses it, or choose another port with {ways}"
    if error.errno in {errno.EACCES, errno.EPERM}:
        return f"port {port} needs more privileges: set serve.listen to a port of 1024 or higher"
    if error.errno == errno.EADDRNOTAVAIL:
        return f"{host} is not one of this machine's addresses: change serve.listen"
    return f"cannot listen on {host}:{port} ({error.strerror}): set serve.listen to another address"


class _Config(Config):
    """The uvicorn configuration of the HTTP server, with its connection limiter."""

    def __init__(self, crowd: ConnectionLimiter, *arguments: Any, **settings: Any) -> None:  # noqa: ANN401 - the parent's, handed on
        super().__init__(*arguments, **settings)
        self.crowd = crowd


class _Server(Server):
    """A uvicorn server that returns after a signal, while its parent would end the process by the same signal."""

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Handle SIGTERM and SIGINT while the HTTP server runs."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self._on_signal) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self.should_exit = True


class _BoundedProtocol(HttpToolsProtocol):
    """The HTTP protocol of one connection, with limits on the bytes and time of each request."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:  # noqa: ANN401 - the parent's, handed on
        super().__init__(*arguments, **settings)
        self._taken, self._most = 0, MAX_REQUEST_BYTES
        self._asked = False  # the head is complete, so a response may be in progress
        self._patience: TimerHandle | None = None
        assert isinstance(self.config, _Config)
        self._crowd = self.config.crowd

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override] # as the parent has it
        """Start the timeout of a new connection's first request, if the limiter admits it."""
        super().connection_made(transport)
        self._start_timeout()
        if not self._crowd.admit(self, self._get_client_address()):
            transport.write(_TOO_MANY)
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the timeout of a closed connection, and remove it from the limiter."""
        self._cancel_timeout()
        self._crowd.remove(self, self._get_client_address())
        super().connection_lost(exc)

    def is_idle(self) -> bool:
        """Check whether the connection is between two requests, or within an incomplete one."""
        return self._patience is not None or self.cycle is None or self.cycle.response_complete

    def close_now(self) -> None:
        """Close the connection at once."""
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Receive bytes of HTTP requests, and close the connection if a request is too large."""
        self._taken += len(data)
        super().data_received(data)
        if self._taken > self._most and not self.transport.is_closing():
            if not self._asked:
                self.transport.write(_TOO_LARGE)
            self.transport.close()

    def on_message_begin(self) -> None:
        """Start the timeout of an HTTP request at its first byte."""
        self._most = MAX_REQUEST_BYTES
        self._start_timeout()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Note that the head of an HTTP request is complete, so that a response may be in progress."""
        self._asked = True
        super().on_headers_complete()
        if is_push_path(self.scope["path"].removeprefix(self.root_path)):
            self._most = MAX_HEAD_BYTES + MAX_PUSH_BYTES
            self._start_timeout(PUSH_TIMEOUT_S)

    def on_message_complete(self) -> None:
        """Note that an HTTP request is complete, and cancel its timeout."""
        self._cancel_timeout()
        self._taken = 0
        self._asked = False
        super().on_message_complete()

    def _get_client_address(self) -> str:
        return self.client[0] if self.client else ""

    def _start_timeout(self, timeout_s: float | None = None) -> None:
        self._cancel_timeout()
        self._patience = self.loop.call_later(timeout_s or REQUEST_TIMEOUT_S, self.transport.close)

    def _cancel_timeout(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None
