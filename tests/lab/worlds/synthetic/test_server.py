"""The server of the synthetic web, over real sockets on loopback."""

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar, cast

import pycurl
import pytest
import uvloop

from vedette.adapters.clock import start_clock
from vedette.errors import UsageError
from vedette.fetch.connect_to import parse_override
from vedette.lab.judge.access_log import AccessEntry, read_log
from vedette.lab.worlds.synthetic.connection import Limits
from vedette.lab.worlds.synthetic.server import Server, connect_to_lines, open_server, open_world, serve, start_server
from vedette.lab.worlds.synthetic.validators import format_http_date
from vedette.lab.worlds.world import Delivery, Reply, WorldHost, WorldRequest

Result = TypeVar("Result")

TEXT = (("content-type", "text/plain"),)
BODY = b"0123456789" * 100
LARGE = bytes(range(256)) * 4096

DELIVERIES = {
    "/truncated": Delivery(stop_after_bytes=100),
    "/headless": Delivery(stop_after_bytes=0),
    "/reset": Delivery(stop_after_bytes=0, then="reset"),
    "/hang": Delivery(stop_after_bytes=10, then="hang"),
    "/endless": Delivery(endless=True),
    "/chunked": Delivery(chunked=True),
    "/late": Delivery(wait_s=0.05),
    "/paced": Delivery(bytes_per_s=20_000),
}


class SmallWorld:
    """Three hosts; a path selects the delivery, and everything else echoes the request."""

    name = "small world 1"
    start_s = 1_000_000_000.0

    def hosts(self) -> tuple[WorldHost, ...]:
        """Two of them share an address."""
        return (
            WorldHost("one.test", "127.0.0.2"),
            WorldHost("two.test", "127.0.0.3"),
            WorldHost("*.farm.test", "127.0.0.3"),
        )

    def reply(self, question: WorldRequest, now_s: float) -> Reply:
        """Respond as the path says."""
        if question.target == "/broken":
            raise ZeroDivisionError(now_s)
        if question.target == "/silent":
            return Reply(0, (), b"", Delivery(then="reset"))
        if question.target == "/empty":
            return Reply(200, TEXT, b"", Delivery(chunked=True))
        if question.target == "/large":
            return Reply(200, TEXT, LARGE)
        if question.if_none_match == '"v1"' or question.if_modified_since is not None:
            return Reply(304, (("etag", '"v1"'),), b"")
        if question.target in DELIVERIES:
            return Reply(200, TEXT, BODY, DELIVERIES[question.target])
        return Reply(200, TEXT, f"{question.host} {question.target}".encode("latin-1"))


def small_world(seed: int) -> SmallWorld:
    """Return the world for a child process, which opens it by name and seed."""
    assert seed >= 0
    return SmallWorld()


class Client:
    """A plain HTTP/1.1 client that sees every byte."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, target: str, host: str = "one.test", method: str = "GET", extra: str = "") -> None:
        """Write a request."""
        self.writer.write(f"{method} {target} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: probe/1\r\n{extra}\r\n".encode())

    async def head(self) -> tuple[int, dict[str, str]]:
        """Read a head."""
        lines = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        pairs = (line.split(": ", 1) for line in lines[1:] if line)
        return int(lines[0].split()[1]), {name.lower(): value for name, value in pairs}

    async def answer(self) -> tuple[int, bytes]:
        """Read a response that states its length."""
        status, headers = await self.head()
        return status, await self.reader.readexactly(int(headers["content-length"]))

    async def ask(self, target: str, host: str = "one.test", method: str = "GET", extra: str = "") -> tuple[int, bytes]:
        """Send a request and read the response."""
        self.send(target, host, method, extra)
        return await self.answer()

    async def close(self) -> None:
        """Close the connection."""
        self.writer.close()
        try:
            await self.writer.wait_closed()
        except ConnectionError:
            return


async def connect(server: Server, address: str = "127.0.0.1") -> Client:
    """Open a connection."""
    return Client(*await asyncio.open_connection(address, server.port))


def play(scene: Callable[[Server], Awaitable[Result]], log: Path | None = None, limits: Limits | None = None) -> Result:
    """Run a scene with a server in the same event loop."""

    async def run() -> Result:
        server = await open_server(SmallWorld(), clock=start_clock(1e9, 1000.0), log_path=log, limits=limits)
        try:
            return await scene(server)
        finally:
            await server.stop()

    return uvloop.run(run())


def play_client(
    scene: Callable[[Client], Awaitable[Result]], log: Path | None = None, limits: Limits | None = None
) -> Result:
    """Run a scene that needs one connection."""

    async def run(server: Server) -> Result:
        client = await connect(server)
        try:
            return await scene(client)
        finally:
            await client.close()

    return play(run, log, limits)


def logged(path: Path) -> list[AccessEntry]:
    """Return the requests in a log."""
    return read_log(path)[1]


def test_one_connection_serves_many_requests_to_many_hosts() -> None:
    """With keep-alive, each response belongs to its own request and host."""

    async def scene(client: Client) -> list[tuple[int, bytes]]:
        return [await client.ask("/a"), await client.ask("/b?c=d", host="two.test"), await client.ask("/e")]

    assert play_client(scene) == [(200, b"one.test /a"), (200, b"two.test /b?c=d"), (200, b"one.test /e")]


def test_pipelined_requests_are_answered_in_order_and_logged_as_simultaneous(tmp_path: Path) -> None:
    """For three heads in one packet, responses are in order; the log shows that the client did not wait."""

    async def scene(client: Client) -> list[bytes]:
        for target in ("/late", "/x", "/large"):
            client.send(target)
        return [(await client.answer())[1] for _ in range(3)]

    assert play_client(scene, tmp_path / "log") == [BODY, b"one.test /x", LARGE]
    late, *others = logged(tmp_path / "log")
    assert all(other.start_s < late.end_s for other in others)


def test_head_gives_the_headers_of_get_and_no_body() -> None:
    """HEAD has the length of GET, and the connection stays usable."""

    async def scene(client: Client) -> tuple[dict[str, str], tuple[int, bytes]]:
        client.send("/large", method="HEAD")
        _, headers = await client.head()
        return headers, await client.ask("/next")

    headers, following = play_client(scene)
    assert headers["content-length"] == str(len(LARGE))
    assert following == (200, b"one.test /next")


@pytest.mark.parametrize("condition", ['If-None-Match: "v1"', "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT"])
def test_validators_reach_the_world_and_304_has_no_body(condition: str) -> None:
    """304 carries neither body nor length, and the next answer follows it."""

    async def scene(client: Client) -> tuple[int, dict[str, str], tuple[int, bytes]]:
        client.send("/a", extra=condition + "\r\n")
        status, headers = await client.head()
        return status, headers, await client.ask("/b")

    status, headers, following = play_client(scene)
    assert (status, headers["etag"], "content-length" in headers) == (304, '"v1"', False)
    assert following == (200, b"one.test /b")


def test_date_is_of_world_time() -> None:
    """The world opens in 2001, and every response says so."""

    async def scene(client: Client) -> str:
        client.send("/a")
        return (await client.head())[1]["date"]

    opening = {format_http_date(int(SmallWorld.start_s) + second) for second in range(100_000)}
    assert play_client(scene) in opening


@pytest.mark.parametrize(
    ("host", "known_as"),
    [
        ("ONE.test", b"one.test"),
        ("one.test:8080", b"one.test"),
        ("one.test.", b"one.test"),
        ("a.b.farm.test", b"a.b.farm.test"),
    ],
)
def test_host_is_known_in_any_case_with_port_and_below_a_wildcard(host: str, known_as: bytes) -> None:
    """The Host header decides, in any spelling."""
    status, body = play_client(lambda client: client.ask("/", host=host))
    assert (status, body) == (200, known_as + b" /")


@pytest.mark.parametrize("host", ["three.test", "farm.test", "127.0.0.1", "", "." * 200])
def test_unknown_host_is_misdirected(host: str) -> None:
    """A name that is not in the world gets 421, and the connection stays open."""

    async def scene(client: Client) -> tuple[int, int]:
        return (await client.ask("/", host=host))[0], (await client.ask("/"))[0]

    assert play_client(scene) == (421, 200)


def test_absolute_target_names_the_host() -> None:
    """As sent to a proxy, the target's own host takes precedence over Host."""
    answer = play_client(lambda client: client.ask("http://two.test:80?q", host="one.test"))
    assert answer == (200, b"two.test /?q")


def test_a_host_is_answered_at_any_address_and_the_log_says_which(tmp_path: Path) -> None:
    """People use 127.0.0.1; the judge needs the address of the actual connection."""

    async def scene(server: Server) -> list[tuple[int, bytes]]:
        answers = []
        for address in ("127.0.0.2", "127.0.0.3", "127.0.0.1"):
            client = await connect(server, address)
            answers.append(await client.ask("/a", host="one.test:81"))
            await client.close()
        return answers

    assert play(scene, tmp_path / "log") == [(200, b"one.test /a")] * 3
    entries = logged(tmp_path / "log")
    assert [entry.address for entry in entries] == ["127.0.0.2", "127.0.0.3", "127.0.0.1"]
    assert {(entry.host, entry.port, entry.scheme, entry.agent) for entry in entries} == {
        ("one.test", 81, "http", "probe/1")
    }


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: one.test\r\nHost: two.test\r\n\r\n",
        b"GET / HTTP/2\r\nHost: one.test\r\n\r\n",
        b"GET /a b HTTP/1.1\r\nHost: one.test\r\n\r\n",
        b"GET /\x00 HTTP/1.1\r\nHost: one.test\r\n\r\n",
        b"GET a HTTP/1.1\r\nHost: one.test\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost : one.test\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: one.test\r\n folded: x\r\n\r\n",
        b"GET / HTTP/1.1\nHost: one.test\n\n",
        b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: one.test\r\nX: " + b"x" * 20_000 + b"\r\n\r\n",
        b"x" * 20_000,
    ],
)
def test_malformed_head_gets_400_and_the_end(request_bytes: bytes) -> None:
    """Ambiguous or overlong headers are refused, and the connection ends."""

    async def scene(client: Client) -> tuple[int, bytes]:
        client.writer.write(request_bytes)
        status, _ = await client.answer()
        return status, await client.reader.read()

    assert play_client(scene) == (400, b"")


def test_longest_head_that_is_allowed_is_answered() -> None:
    """Headers of exactly the limit are accepted."""
    padding = "X-Pad: " + "x" * 16_000 + "\r\n"
    assert play_client(lambda client: client.ask("/a", extra=padding))[0] == 200


def test_other_methods_are_refused_and_their_body_does_not_eat_the_answer() -> None:
    """405 with Allow arrives even while a large body is still being sent; then the connection ends."""

    async def scene(client: Client) -> tuple[int, str, bytes]:
        client.send("/a", method="POST", extra=f"Content-Length: {len(LARGE)}\r\n")
        client.writer.write(LARGE)
        status, headers = await client.head()
        return status, headers["allow"], await client.reader.read()

    status, allow, rest = play_client(scene)
    assert (status, allow) == (405, "GET, HEAD")
    assert b"HTTP/1.1" not in rest


def test_failing_world_is_a_500_and_the_next_request_is_served(caplog: pytest.LogCaptureFixture) -> None:
    """An exception of the world is reported to its author, and the server continues."""

    async def scene(client: Client) -> tuple[int, int]:
        return (await client.ask("/broken"))[0], (await client.ask("/a"))[0]

    assert play_client(scene) == (500, 200)
    assert "ZeroDivisionError" in caplog.text


@pytest.mark.parametrize("target", ["/late", "/paced"])
def test_slow_answers_are_whole(target: str, tmp_path: Path) -> None:
    """Latency and rate affect when bytes arrive, not which bytes."""
    assert play_client(lambda client: client.ask(target), tmp_path / "log") == (200, BODY)
    (entry,) = logged(tmp_path / "log")
    assert (entry.whole, entry.bytes) == (True, len(BODY))


def test_client_that_leaves_with_the_last_byte_got_a_whole_answer(tmp_path: Path) -> None:
    """A large response fills the socket; reading it completely and disconnecting does not make it incomplete."""

    async def scene(server: Server) -> None:
        for _ in range(20):
            client = await connect(server)
            await client.ask("/large", extra="Connection: close\r\n")
            client.writer.transport.abort()
        await _gone(server)

    play(scene, tmp_path / "log")
    assert [(entry.whole, entry.bytes) for entry in logged(tmp_path / "log")] == [(True, len(LARGE))] * 20


@pytest.mark.parametrize(("target", "expected"), [("/chunked", BODY), ("/empty", b"")])
def test_chunked_body_is_framed_and_the_connection_goes_on(target: str, expected: bytes) -> None:
    """Chunks add up to the body, end with an empty one, and are followed by another response."""

    async def scene(client: Client) -> tuple[dict[str, str], bytes, tuple[int, bytes]]:
        client.send(target)
        _, headers = await client.head()
        body = b""
        while size := int(await client.reader.readline(), 16):
            body += await client.reader.readexactly(size)
            await client.reader.readexactly(2)
        await client.reader.readexactly(2)
        return headers, body, await client.ask("/a")

    headers, body, following = play_client(scene)
    assert (headers["transfer-encoding"], "content-length" in headers) == ("chunked", False)
    assert body == expected
    assert following == (200, b"one.test /a")


def test_old_protocol_gets_the_body_unframed_and_the_end() -> None:
    """HTTP/1.0 has neither chunks nor, by default, keep-alive."""

    async def scene(client: Client) -> tuple[dict[str, str], bytes]:
        client.writer.write(b"GET /chunked HTTP/1.0\r\nHost: one.test\r\n\r\n")
        _, headers = await client.head()
        return headers, await client.reader.read()

    headers, body = play_client(scene)
    assert ("transfer-encoding" in headers, headers["connection"], body) == (False, "close", BODY)


@pytest.mark.parametrize(("target", "sent"), [("/truncated", 100), ("/headless", 0)])
def test_truncated_answer_ends_short_of_its_length(target: str, sent: int, tmp_path: Path) -> None:
    """The headers promise the whole body, but the connection ends before; the log says that it was incomplete."""

    async def scene(client: Client) -> tuple[str, int]:
        client.send(target)
        _, headers = await client.head()
        return headers["content-length"], len(await client.reader.read())

    assert play_client(scene, tmp_path / "log") == (str(len(BODY)), sent)
    (entry,) = logged(tmp_path / "log")
    assert (entry.status, entry.whole, entry.bytes) == (200, False, sent)


@pytest.mark.parametrize(("target", "status"), [("/reset", 200), ("/silent", 0)])
def test_reset_reaches_the_client_as_a_reset(target: str, status: int, tmp_path: Path) -> None:
    """The client's read fails; without a status, the log says that there was no response."""

    async def scene(client: Client) -> None:
        client.send(target)
        with pytest.raises(ConnectionResetError):
            await client.reader.read()

    play_client(scene, tmp_path / "log")
    (entry,) = logged(tmp_path / "log")
    assert (entry.status, entry.whole) == (status, False)


async def _gone(server: Server) -> None:
    while server.connections:  # noqa: ASYNC110 - the server offers no event for it
        await asyncio.sleep(0.01)


@pytest.mark.parametrize(("target", "least"), [("/endless", 50 * len(BODY)), ("/hang", 10)])
def test_what_never_ends_stops_when_the_client_leaves(target: str, least: int, tmp_path: Path) -> None:
    """If the client disconnects, the server notices, stops, and logs the number of bytes sent."""

    async def scene(server: Server) -> None:
        client = await connect(server)
        client.send(target)
        await client.head()
        await client.reader.readexactly(least)
        await client.close()
        await _gone(server)

    play(scene, tmp_path / "log")
    (entry,) = logged(tmp_path / "log")
    assert (entry.status, entry.whole) == (200, False)
    assert entry.bytes >= least
    assert entry.end_s >= entry.start_s


def test_endless_body_waits_for_a_client_that_does_not_read(tmp_path: Path) -> None:
    """Only what fits in the sockets is generated, far less than the server would otherwise have produced."""
    turns = 20_000
    mib = 1 << 20

    async def scene(server: Server) -> None:
        client = await connect(server)
        client.send("/endless")
        await client.head()
        cast("asyncio.Transport", client.writer.transport).pause_reading()
        for _ in range(turns):
            await asyncio.sleep(0)
        client.writer.transport.abort()
        await _gone(server)

    play(scene, tmp_path / "log")
    (entry,) = logged(tmp_path / "log")
    assert entry.bytes < 16 * mib < turns * len(BODY)


@pytest.mark.parametrize("flood", [b"\r\n\r\n" * 100_000, b"GET / HTTP/1.1\r\nHost: one.test\r\n\r\n" * 20_000])
def test_client_that_floods_a_busy_connection_is_dropped(flood: bytes) -> None:
    """Requests behind one that never ends are only kept up to a limit."""

    async def scene(client: Client) -> int:
        client.send("/hang")
        await client.head()
        client.writer.write(flood)
        try:
            return len(await client.reader.read())
        except ConnectionResetError:
            return 0

    assert play_client(scene) <= 10


@pytest.mark.parametrize("opening", [b"", b"GET /", b"GET / HTTP/1.1\r\nHost: one.test\r\nX: "])
def test_client_that_does_not_finish_its_head_is_dropped(opening: bytes) -> None:
    """Slow loris: a client that sends nothing, or never the end of a head, is dropped."""

    async def scene(client: Client) -> bytes:
        client.writer.write(opening)
        return await client.reader.read()

    assert play_client(scene, limits=Limits(head_s=0.1, idle_s=0.1)) == b""


def test_trickling_a_head_does_not_prolong_it() -> None:
    """The time limit for headers counts from their first byte, not from the last."""

    async def scene(client: Client) -> bool:
        async def trickle() -> None:
            while True:
                client.writer.write(b"x")
                await asyncio.sleep(0.02)

        task = asyncio.create_task(trickle())
        try:
            return await client.reader.read() == b""
        except ConnectionResetError:
            return True
        finally:
            task.cancel()

    assert play_client(scene, limits=Limits(head_s=0.2, idle_s=1000.0))


def test_stop_ends_connections_frees_the_port_and_completes_the_log(tmp_path: Path) -> None:
    """A server that is stopped during a response leaves nothing behind, and logs the response."""

    async def scene() -> tuple[int, bytes]:
        server = await open_server(SmallWorld(), clock=start_clock(1e9, 1.0), log_path=tmp_path / "log")
        client = await connect(server)
        client.send("/hang")
        await client.head()
        await server.stop()
        rest = await client.reader.read()
        await client.close()
        return server.port, rest

    port, rest = uvloop.run(scene())
    assert len(rest) == 10
    assert [entry.target for entry in logged(tmp_path / "log")] == ["/hang"]
    with socket.socket() as probe, pytest.raises(ConnectionRefusedError):
        probe.connect(("127.0.0.3", port))


@pytest.mark.parametrize("address", ["0.0.0.0", "192.0.2.1", "example.org", "::1", "128.0.0.1"])  # noqa: S104 - refused
def test_no_address_of_the_outside_is_listened_on(address: str) -> None:
    """A world with addresses other than IPv4 loopback is not served."""

    class Outside(SmallWorld):
        def hosts(self) -> tuple[WorldHost, ...]:
            return (WorldHost("out.test", address),)

    with pytest.raises(UsageError, match="loopback"):
        serve(Outside(), clock=start_clock(0.0, 1.0))


def test_port_in_use_is_told() -> None:
    """A port in use on one of the addresses gives a message, not a traceback."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.3", 0))
        holder.listen()
        port = holder.getsockname()[1]
        with pytest.raises(UsageError, match=f"port {port} on 127.0.0.3"):
            serve(SmallWorld(), clock=start_clock(0.0, 1.0), port=port)


def test_connect_to_lines_are_what_the_crawler_reads() -> None:
    """Every host, including wildcards, is listed in the syntax of --connect-to."""
    detours = [parse_override(line) for line in connect_to_lines(SmallWorld(), 8800)]
    assert [(detour.host, detour.port, detour.to.address, detour.to.port) for detour in detours] == [
        (host.name, 80, host.address, 8800) for host in SmallWorld().hosts()
    ]


@pytest.mark.parametrize("name", ["made:tiny:3", "made:tiny:3:calm", "constant:100"])
def test_a_world_is_opened_again_by_its_own_name(name: str) -> None:
    """The name of a world in a log or message can be typed."""
    assert open_world(name).name == name


@pytest.mark.parametrize("name", ["", "made", "made:", "made:calm:calm:calm", "constant:x", "a b:c", "made:nowhere"])
def test_a_name_that_is_no_world_is_told(name: str) -> None:
    """The message says what to write instead."""
    with pytest.raises(UsageError, match="made"):
        open_world(name)


def test_server_that_cannot_start_is_an_error_here() -> None:
    """A failed child is not waited for, and its error is shown here."""
    with pytest.raises(UsageError, match="nowhere"):
        start_server("made:nowhere")


@pytest.fixture
def _world_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a child process import this file, which has the world."""
    path = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
    monkeypatch.setenv("PYTHONPATH", path)


@pytest.mark.usefixtures("_world_on_path")
def test_child_serves_to_a_real_client_and_stop_leaves_no_process(tmp_path: Path) -> None:
    """The crawler's own HTTP library gets pages over one connection; after stop, process and port are gone."""
    with start_server("test_server:small_world", 1, speed=60.0, log_path=tmp_path / "log") as web:
        curl = pycurl.Curl()
        curl.setopt(pycurl.CONNECT_TO, [f"one.test:80:{web.hosts['one.test']}:{web.port}"])
        connects = 0
        for target in ("/a", "/b", "/chunked"):
            curl.setopt(pycurl.URL, f"http://one.test{target}")
            assert curl.perform_rb()
            connects += curl.getinfo(pycurl.NUM_CONNECTS)
        curl.close()
        assert connects == 1
        assert web.clock.speed == 60.0
    assert web.process.returncode == 0
    with socket.socket() as probe, pytest.raises(ConnectionRefusedError):
        probe.connect(("127.0.0.1", web.port))
    header, entries = read_log(tmp_path / "log")
    assert (header.world, header.port) == (SmallWorld.name, web.port)
    assert [(entry.target, entry.address) for entry in entries] == [(t, "127.0.0.2") for t in ("/a", "/b", "/chunked")]


@pytest.mark.usefixtures("_world_on_path")
def test_child_ends_with_its_parent() -> None:
    """A killed parent cannot stop its server, so the server detects this and exits."""
    script = (
        "import time; from vedette.lab.worlds.synthetic.server import start_server; "
        "print(start_server('test_server:small_world', 1).port, flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        port = int(parent.stdout.readline())
        parent.kill()
    while True:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)):
                break
