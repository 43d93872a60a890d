"""HTTP server for a world: one port on the loopback addresses of its hosts, with an access log."""

import argparse
import asyncio
import errno
import gc
import json
import logging
import os
import re
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from ipaddress import AddressValueError, IPv4Address
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

import uvloop

from vedette.adapters.clock import Clock, parse_clock, start_clock
from vedette.errors import UsageError, VedetteError
from vedette.lab.judge.access_log import MAX_ROBOTS_BYTES, AccessEntry, AccessLog, LogHeader, open_log, resolve_redirect
from vedette.lab.worlds.synthetic.connection import Connection, ConnectionContext, Exchange, Limits, text_reply
from vedette.lab.worlds.synthetic.http_wire import HttpRequest
from vedette.lab.worlds.world import ConstantWorld, Reply, World, WorldHost, WorldRequest

MAX_ROBOTS_URLS = 10_000
MAX_NAME_LENGTH = 253

_logger = logging.getLogger(__name__)


class HostNames:
    """Host names that a world's server answers for; ``*.x.test`` covers every name below ``x.test``."""

    def __init__(self, hosts: Iterable[WorldHost]) -> None:
        self._names = frozenset(host.name.lower() for host in hosts)

    def contains(self, name: str) -> bool:
        """Check whether the server's world has a host of this lower-case name."""
        return name in self._names or (len(name) <= MAX_NAME_LENGTH and self._matches_wildcard(name))

    def _matches_wildcard(self, name: str) -> bool:
        _, dot, parent = name.partition(".")
        while dot:
            if f"*.{parent}" in self._names:
                return True
            _, dot, parent = parent.partition(".")
        return False


class RequestHandler:
    """Request handler of a world's HTTP server, which also writes its access log."""

    def __init__(self, world: World, clock: Clock, log: AccessLog | None) -> None:
        self._world = world
        self._clock = clock
        self._log = log
        self._names = HostNames(world.hosts())
        # The redirect target of a robots.txt is as much a robots.txt as the file itself, so its text is logged as well.
        self._robots_urls: set[str] = set()

    def answer(self, request: HttpRequest, now_s: float) -> Reply:
        """Answer an HTTP request from the served world; an exception of the world becomes an error reply.

        So the other clients are still served.
        """
        if request.method not in {"GET", "HEAD"}:
            return text_reply(405, "Only GET and HEAD are answered here.", (("allow", "GET, HEAD"),))
        if not self._names.contains(request.host):
            return text_reply(421, f"There is no host {request.host!a} in {self._world.name}.")
        question = WorldRequest(request.host, request.target, request.if_none_match, request.if_modified_since)
        try:
            return self._world.reply(question, now_s)
        except Exception:
            _logger.exception("%s failed at http://%s%s", self._world.name, request.host, request.target)
            return text_reply(500, "The world failed at this request; see the server's messages.")

    def log_exchange(self, exchange: Exchange, ended_s: float, whole: bool) -> None:  # noqa: FBT001 - a callback of one shape
        """Write a finished exchange of the server to its access log."""
        if self._log is not None:
            self._log.add(self._log_entry(exchange, ended_s, whole=whole))

    def _log_entry(self, exchange: Exchange, ended_s: float, *, whole: bool) -> AccessEntry:
        request = exchange.request
        is_common = exchange.status == 200
        location = None if is_common else _header(exchange.reply, "location")
        return AccessEntry(
            wall_start_s=exchange.started_s,
            wall_end_s=ended_s,
            start_s=self._clock.to_world_s(exchange.started_s),
            end_s=self._clock.to_world_s(ended_s),
            host=request.host,
            scheme=request.scheme,
            port=request.port,
            address=exchange.address,
            method=request.method,
            target=request.target,
            status=exchange.status,
            bytes=exchange.sent_bytes,
            whole=whole,
            agent=request.agent,
            retry_after=None if is_common else _header(exchange.reply, "retry-after"),
            location=location,
            robots=self._robots_text(exchange, location),
        )

    def _robots_text(self, exchange: Exchange, location: str | None) -> str | None:
        request = exchange.request
        if request.method != "GET" or not self._is_robots(request):
            return None
        place = resolve_redirect(_url(request), location) if location is not None else None
        if place is not None and len(self._robots_urls) < MAX_ROBOTS_URLS:
            self._robots_urls.add(place)
        sent = exchange.reply.body[: min(exchange.sent_bytes, MAX_ROBOTS_BYTES)]
        return sent.decode("utf-8", "surrogateescape")

    def _is_robots(self, request: HttpRequest) -> bool:
        if request.target == "/robots.txt":
            return True
        return bool(self._robots_urls) and resolve_redirect(_url(request), "") in self._robots_urls


def _url(request: HttpRequest) -> str:
    return f"{request.scheme}://{request.host}:{request.port}{request.target}"


def _header(reply: Reply, name: str) -> str | None:
    return next((value for key, value in reply.headers if key.lower() == name), None)


# The Host header identifies the host, whatever address the request came to, so a person can view any host through
# 127.0.0.1; the access log says which address it was. Only loopback addresses are listened on. open_server    inside a
# running event loop serve          this process, until a signal or the end of its parent start_server   a child
# process, which exits with its parent


LOOPBACK = "127.0.0.1"
TICK_S = 0.05
TICKS_PER_FLUSH = 8
BACKLOG = 1024
PORT_TRIES = 50
STOP_TIMEOUT_S = 5.0

_SYNTHETIC_NAME = re.compile(r"made:([^:]+)(?::([0-9]{1,18}))?(:calm)?")
_CONSTANT_NAME = re.compile(r"constant:([0-9]{1,9})")
_FUNCTION_NAME = re.compile(r"([A-Za-z_][\w.]*):([A-Za-z_]\w*)")


class Server:
    """HTTP server of a world; ``stop`` ends every connection and closes the log."""

    def __init__(
        self, listeners: Sequence[asyncio.Server], service: ConnectionContext, log: AccessLog | None, port: int
    ) -> None:
        self.port = port
        self.clock = service.clock
        self._listeners = listeners
        self._service = service
        self._log = log
        self._ticker = asyncio.get_running_loop().create_task(self._tick())

    @property
    def connections(self) -> int:
        """Return the number of clients connected to the world's server."""
        return len(self._service.connections)

    async def stop(self) -> None:
        """Stop the world's server: drop every client and close the port."""
        self._ticker.cancel()
        for listener in self._listeners:
            listener.close()
        connections = tuple(self._service.connections)
        for connection in connections:
            connection.drop()
        await asyncio.gather(*(connection.closed for connection in connections))
        if self._log is not None:
            self._log.close()

    async def _tick(self) -> None:
        loop = asyncio.get_running_loop()
        beats = 0
        while True:
            await asyncio.sleep(TICK_S)
            beats += 1
            for connection in tuple(self._service.connections):
                connection.on_tick(self.clock.wall_now(), loop.time())
            if self._log is not None and beats % TICKS_PER_FLUSH == 0:
                self._log.flush()


async def open_server(
    world: World, *, clock: Clock, port: int = 0, log_path: Path | None = None, limits: Limits | None = None
) -> Server:
    """Open an HTTP server for a world in the running event loop; port 0 picks one free on every address."""
    sockets = _bind_all(list_addresses(world.hosts()), port)
    port = int(sockets[0].getsockname()[1])
    log = _open_access_log(world, clock, port, log_path)
    front = RequestHandler(world, clock, log)
    service = ConnectionContext(clock, limits or Limits(), front.answer, front.log_exchange)
    loop = asyncio.get_running_loop()
    listeners = [await loop.create_server(lambda: Connection(service), sock=sock, backlog=BACKLOG) for sock in sockets]
    return Server(listeners, service, log, port)


def serve(
    world: World,
    *,
    clock: Clock,
    port: int = 0,
    log_path: Path | None = None,
    ready: Callable[[Server], None] | None = None,
    parent: int | None = None,
) -> None:
    """Serve a world over HTTP in this process until SIGTERM, SIGINT, or the end of the process ``parent``."""
    uvloop.run(_serve(world, clock, port, log_path, ready, parent))


def connect_to_lines(world: World, port: int) -> list[str]:
    """Return the ``--connect-to`` values, one per host, that point a crawler to a world's server."""
    return [f"{host.name}:80={host.address}:{port}" for host in world.hosts()]


def list_addresses(hosts: Iterable[WorldHost]) -> list[str]:
    """List the loopback addresses to serve these hosts on, each once, the default first; refuse any other address."""
    addresses = list(dict.fromkeys([LOOPBACK, *(host.address for host in hosts)]))
    for address in addresses:
        if not _is_loopback(address):
            raise UsageError(f"a synthetic web can only be served on IPv4 loopback, not on {address}; use 127.x.y.z")
    return addresses


def _is_loopback(address: str) -> bool:
    try:
        return IPv4Address(address).is_loopback
    except AddressValueError:
        return False


async def _serve(
    world: World,
    clock: Clock,
    port: int,
    log_path: Path | None,
    ready: Callable[[Server], None] | None,
    parent: int | None,
) -> None:
    server = await open_server(world, clock=clock, port=port, log_path=log_path)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    # Ctrl-C reaches a whole process group; a child keeps serving until its parent has finished with it.
    loop.add_signal_handler(signal.SIGINT, stop.set if parent is None else _ignore_signal)
    if ready is not None:
        ready(server)
    while not stop.is_set() and (parent is None or os.getppid() == parent):
        try:
            await asyncio.wait_for(stop.wait(), TICK_S * TICKS_PER_FLUSH)
        except TimeoutError:
            continue
    await server.stop()


def _ignore_signal() -> None:
    """Ignore a signal that is not for the server process."""


def _open_access_log(world: World, clock: Clock, port: int, path: Path | None) -> AccessLog | None:
    if path is None:
        return None
    header = LogHeader(world.name, clock.speed, clock.world_start_s, clock.wall_start_s, port)
    return open_log(path, header, clock.now())


def _bind_all(addresses: Sequence[str], port: int) -> list[socket.socket]:
    """Bind one server socket per loopback address, all on one port."""
    _raise_file_limit()
    for _ in range(PORT_TRIES):
        sockets: list[socket.socket] = []
        try:
            for address in addresses:
                sockets.append(_bind(address, port or (sockets[0].getsockname()[1] if sockets else 0)))
        except OSError as fault:
            for sock in sockets:
                sock.close()
            if port or fault.errno != errno.EADDRINUSE:
                raise UsageError(
                    f"port {port} on {address}: {fault.strerror}; choose another port, or 0 for any free port"
                ) from None
        else:
            return sockets
    raise VedetteError(f"no port is free on all {len(addresses)} loopback addresses; stop other servers and try again")


def _bind(address: str, port: int) -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((address, port))
    except OSError:
        sock.close()
        raise
    return sock


def _raise_file_limit() -> None:
    """Raise the server's limit of open files: sockets per address and client soon exceed the usual 1,024."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


@dataclass(frozen=True, slots=True)
class ServerHandle:
    """Handle of a world's server in a child process; usable in a ``with`` block, which stops it."""

    port: int
    hosts: dict[str, str]
    clock: Clock
    process: subprocess.Popen[bytes]

    def connect_to_lines(self) -> list[str]:
        """Return the ``--connect-to`` values for the hosts of this server process."""
        return [f"{name}:80={address}:{self.port}" for name, address in self.hosts.items()]

    def stop(self) -> None:
        """Stop the server's child process and wait for it; its access log is complete afterwards."""
        self.process.terminate()
        try:
            self.process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def start_server(
    world: str,
    seed: int = 1,
    *,
    speed: float = 1.0,
    clock: Clock | None = None,
    port: int = 0,
    log_path: Path | None = None,
) -> ServerHandle:
    """Start a world's server in a child process; without ``clock`` the world opens now and runs at ``speed``.

    ``world`` is an argument of ``open_world``.
    """
    command = [sys.executable, "-m", __name__, world, f"--seed={seed}", f"--speed={speed}", f"--port={port}"]
    command += [f"--parent={os.getpid()}"]
    command += [] if clock is None else [f"--clock={clock}"]
    command += [] if log_path is None else [f"--log={log_path}"]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)  # noqa: S603 - ourselves
    return _read_handle(process, world)


def _read_handle(process: subprocess.Popen[bytes], world: str) -> ServerHandle:
    line = process.stdout.readline() if process.stdout is not None else b""
    message: dict[str, Any] = (
        json.loads(line) if line else {"fault": f"the server of {world} ended before it had started"}
    )
    if "fault" in message:
        process.communicate()
        raise (
            UsageError(message["fault"])
            if process.returncode == UsageError.exit_code
            else VedetteError(message["fault"])
        )
    return ServerHandle(message["port"], message["hosts"], parse_clock(message["clock"]), process)


def open_world(name: str, seed: int = 1) -> World:
    """Open the world to serve by its command-line name: synthetic, constant, or built by a function named there.

    A seed within the name wins, so that every world's own name opens it again.

    >>> open_world("made:tiny:7:calm").name
    'made:tiny:7:calm'
    """
    if match := _SYNTHETIC_NAME.fullmatch(name):
        from vedette.lab.worlds.synthetic import open_synthetic_world

        return open_synthetic_world(match[1], int(match[2] or seed), calm=match[3] is not None)
    if constant := _CONSTANT_NAME.fullmatch(name):
        return ConstantWorld(int(constant[1]))
    if (other := _FUNCTION_NAME.fullmatch(name)) and (opener := _import_opener(other[1], other[2])):
        return opener(seed)
    raise UsageError(f'unknown world "{name}": use made:NAME[:SEED][:calm], constant:BYTES or package.module:function')


def _import_opener(module: str, function: str) -> Callable[[int], World] | None:
    with suppress(ImportError, AttributeError):
        return cast("Callable[[int], World]", getattr(import_module(module), function))
    return None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the server's child process: open the world, print the port, serve."""
    options = _parse_options(arguments)
    try:
        world = open_world(options.world, options.seed)
        # A world is a large heap that never becomes garbage: scanning it repeatedly would slow down requests.
        gc.collect()
        gc.freeze()
        gc.set_threshold(20_000)
        clock = parse_clock(options.clock) if options.clock else start_clock(world.start_s, options.speed)
        serve(
            world,
            clock=clock,
            port=options.port,
            log_path=options.log,
            ready=lambda server: _announce(world, server),
            parent=options.parent,
        )
    except VedetteError as fault:
        sys.stdout.write(json.dumps({"fault": str(fault)}) + "\n")
        return fault.exit_code
    return 0


def _parse_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m vedette.lab.worlds.synthetic.server", description=__doc__)
    parser.add_argument("world", help="made:NAME[:SEED][:calm], constant:BYTES or package.module:function")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--speed", type=float, default=1.0, help="world seconds per second")
    parser.add_argument("--clock", help="the clock of another process, as it prints it; instead of --speed")
    parser.add_argument("--port", type=int, default=0, help="0 = any that is free")
    parser.add_argument("--log", type=Path, help="where to write the access log")
    parser.add_argument("--parent", type=int, help="stop when this process is no longer the parent")
    return parser.parse_args(arguments)


def _announce(world: World, server: Server) -> None:
    hosts = {host.name: host.address for host in world.hosts()}
    sys.stdout.write(json.dumps({"port": server.port, "clock": str(server.clock), "hosts": hosts}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
