"""A real server on loopback with every byte under a test's control, to show a client what servers do wrong.

One thread accepts connections; one thread per connection reads requests and sends what the test's script says. Requests
are stored for the test.
"""

import socket
import ssl
import struct
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from threading import Event, Lock, Thread
from types import TracebackType
from typing import Literal, Self

__all__ = ["Question", "Said", "WireServer", "whole"]

_RESET = struct.pack("ii", 1, 0)


@dataclass(frozen=True, slots=True)
class Question:
    """A request: its connection, address, target and headers."""

    connection: int
    address: str
    target: str
    headers: tuple[tuple[str, str], ...]

    def header(self, name: str) -> str | None:
        """The first value of a header, by its lower-case name."""
        return next((value for key, value in self.headers if key == name), None)


@dataclass(frozen=True, slots=True)
class Said:
    """Bytes to send, and what follows: the next request, an end, a reset, silence, or the same forever."""

    data: bytes
    then: Literal["next", "close", "reset", "hang", "repeat"] = "next"


def whole(body: bytes, *lines: str, status: str = "200 OK") -> Said:
    """Return a complete response that keeps the connection open."""
    head = "\r\n".join((f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *lines, "", ""))
    return Said(head.encode("latin-1") + body)


class WireServer:
    """Listens from construction until the end of its ``with`` block."""

    def __init__(self, script: Callable[[Question], Said], address: str = "127.0.0.1", port: int = 0) -> None:
        self._script = script
        self._lock = Lock()
        self._ending = Event()
        self._connections: list[socket.socket] = []
        self.tls: ssl.SSLContext | None = None
        self.questions: list[Question] = []
        self.peer_left = Event()
        self.address = address
        self._listener = socket.create_server((address, port), backlog=512)
        self.port: int = self._listener.getsockname()[1]
        self._threads = [Thread(target=self._accept, daemon=True)]

    @property
    def connections(self) -> int:
        """Return the number of connections made so far."""
        return len(self._connections)

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ending.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._threads[0].join()
        for connection in self._connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads[1:]:
            thread.join()
        for each in (self._listener, *self._connections):
            each.close()

    def _accept(self) -> None:
        while not self._ending.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._connections.append(connection)
            thread = Thread(target=self._serve, args=(len(self._connections), connection), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, number: int, connection: socket.socket) -> None:
        with suppress(OSError):
            if self.tls is not None:
                # The socket stays open below, for the end of the block to close.
                connection = self.tls.wrap_socket(connection.dup(), server_side=True)
                self._connections.append(connection)
            waiting = b""
            while question := self._read(number, connection, waiting):
                asked, waiting = question
                if not self._say(connection, self._script(asked)):
                    return
            self.peer_left.set()

    def _read(self, number: int, connection: socket.socket, waiting: bytes) -> tuple[Question, bytes] | None:
        while b"\r\n\r\n" not in waiting:
            piece = connection.recv(65_536)
            if not piece:
                return None
            waiting += piece
        head, _, rest = waiting.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        pairs = (line.partition(":") for line in lines)
        headers = tuple((name.lower(), value.strip()) for name, _, value in pairs)
        question = Question(number, self.address, first.split(" ")[1], headers)
        with self._lock:
            self.questions.append(question)
        return question, rest

    def _say(self, connection: socket.socket, text: Said) -> bool:
        """Send bytes; return whether another request should be read."""
        connection.sendall(text.data)
        while text.then == "repeat" and not self._ending.is_set():
            connection.sendall(text.data)
        if text.then == "hang":
            while connection.recv(65_536):
                pass
            self.peer_left.set()
        if text.then == "reset":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            connection.close()
        if text.then == "close":
            connection.shutdown(socket.SHUT_RDWR)
        return text.then == "next"
