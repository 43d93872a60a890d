"""One address can't use up all connections, and no one loses a response because of that."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send
from tests.tree_runs import PATIENCE_S

from vedette.web import server
from vedette.web.server import MAX_CONNECTIONS, MAX_PER_ADDRESS, ConnectionLimiter, bind, create_server

MANY = MAX_CONNECTIONS + 50
WHOLE = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
HALF = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nab"


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """An application that reads the whole body and then responds."""
    while (await receive()).get("more_body"):
        pass
    await PlainTextResponse("here")(scope, receive, send)


@contextmanager
def running(*trusted: str) -> Iterator[int]:
    """Run the real server with it on a free port."""
    listening = bind("127.0.0.1:0")
    port: int = listening.getsockname()[1]
    serving = create_server(echo, trusted)
    thread = threading.Thread(target=serving.run, args=([listening],))
    thread.start()
    try:
        yield port
    finally:
        serving.should_exit = True
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


def opened(stack: ExitStack, port: int, source: str, text: bytes = b"") -> socket.socket:
    """Open a connection from a local address and send something."""
    made = stack.enter_context(socket.create_connection(("127.0.0.1", port), PATIENCE_S, (source, 0)))
    made.sendall(text)
    return made


def read_bytes(connection: socket.socket) -> bytes:
    """Return what arrives first; nothing if the other side closed the connection."""
    try:
        return connection.recv(4096)
    except ConnectionResetError:
        return b""


@pytest.mark.parametrize(
    ("text", "many"), [(b"", 2 * MAX_PER_ADDRESS), (b"GET / HT", MANY), (HALF, 2 * MAX_PER_ADDRESS)]
)
def test_half_open_connections_of_one_address_leave_room_for_others(text: bytes, many: int) -> None:
    """Even with more than the total limit, its oldest are closed, and everyone else gets a response."""
    with running() as port, ExitStack() as stack:
        crowd = [opened(stack, port, "127.0.0.2", text) for _ in range(many)]
        assert read_bytes(crowd[0]) == b""
        assert b"200 OK" in read_bytes(opened(stack, port, "127.0.0.3", WHOLE))
        assert b"200 OK" in read_bytes(opened(stack, port, "127.0.0.2", WHOLE))


def test_connections_of_a_trusted_proxy_are_unlimited() -> None:
    """Its connections are not limited."""
    with running("127.0.0.2", "10.0.0.0/8") as port, ExitStack() as stack:
        crowd = [opened(stack, port, "127.0.0.2", WHOLE) for _ in range(2 * MAX_PER_ADDRESS)]
        assert all(b"200 OK" in read_bytes(each) for each in crowd)
        crowd[0].sendall(WHOLE)
        assert b"200 OK" in read_bytes(crowd[0])


class Guest:
    """A connection with only this data."""

    def __init__(self, *, idle: bool) -> None:
        self.idle, self.left = idle, False

    def is_idle(self) -> bool:
        """Return the configured value."""
        return self.idle

    def close_now(self) -> None:
        """Record it."""
        self.left = True


def test_active_connections_are_never_closed() -> None:
    """The oldest idle connection is closed; if none is idle, the new one is rejected."""
    crowd = ConnectionLimiter(most=3)
    busy, idle, other = Guest(idle=False), Guest(idle=True), Guest(idle=False)
    assert all(crowd.admit(each, "192.0.2.1") for each in (busy, idle, other))
    assert crowd.admit(Guest(idle=False), "192.0.2.1")
    assert (busy.left, idle.left) == (False, True)
    assert not crowd.admit(Guest(idle=False), "192.0.2.1")
    crowd.remove(busy, "192.0.2.1")
    assert crowd.admit(Guest(idle=False), "192.0.2.1")


def test_a_network_counts_as_one_address_and_is_forgotten_with_its_last() -> None:
    """An IPv6 visitor has countless addresses; nothing is stored about closed connections."""
    crowd = ConnectionLimiter(most=1)
    first, second = Guest(idle=True), Guest(idle=True)
    assert crowd.admit(first, "2001:db8::1")
    assert crowd.admit(second, "2001:db8::2")
    assert first.left
    crowd.remove(first, "2001:db8::1")
    assert len(crowd) == 1
    crowd.remove(second, "2001:db8::2")
    assert len(crowd) == 0


# Push


def send_slowly(port: int, path: str, size: int) -> bytes:
    """Send a body slowly in pieces; return the response, even if the connection broke."""
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {size}\r\nConnection: close\r\n\r\n".encode()
    with ExitStack() as stack:
        connection = opened(stack, port, "127.0.0.1", head)
        try:
            for sent in range(0, size, 1 << 18):
                connection.sendall(bytes(min(1 << 18, size - sent)))
                time.sleep(0.06)  # the sender's line is slow; all pieces take longer than an ordinary request may
            return read_bytes(connection)
        except OSError:
            return b""


@pytest.mark.parametrize("path", ["/indexnow", "/push/token"])
def test_a_slow_sender_may_push_two_mebibytes(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    """As the documentation promises, and longer than any other request may take."""
    monkeypatch.setattr(server, "REQUEST_TIMEOUT_S", 0.2)
    with running() as port:
        assert b"here" in send_slowly(port, path, 2 << 20)
        assert b"here" not in send_slowly(port, path, 3 << 20)
        assert b"here" not in send_slowly(port, "/search", 2 << 20)


def test_a_push_does_not_take_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sender that is too slow even for that is cut off."""
    monkeypatch.setattr(server, "PUSH_TIMEOUT_S", 0.2)
    with running() as port:
        assert b"here" not in send_slowly(port, "/indexnow", 2 << 20)
