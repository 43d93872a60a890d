"""Document reader: extract title and text of documents in a child process that may crash, hang or use much memory.

Nothing here blocks. Submit documents, watch ``fd``, and ``collect`` the outcomes; ``collect`` also enforces deadlines,
so call it a few times a second while anything is ``pending``. The child is started when it is first needed and serves
one document at a time. It is killed at the deadline, after a number of documents (libraries leak) and after being idle
for long. Its replies are trusted only within limits: the author of a document may control the child.
"""

import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from vedette.adapters.documents.outcomes import KINDS, MAX_TITLE_LENGTH, REPLY, REQUEST, Verdict

Key = TypeVar("Key")

# The caller's folders are not searched for modules, least of all the working folder.
_COMMAND = (sys.executable, "-P", "-m", "vedette.adapters.documents.process")
# What Python needs to find its modules. Everything else may be a secret, such as a site's credentials.
_VARIABLES = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PYTHONHOME", "PYTHONPATH")
_PIECE_BYTES = 1 << 18
_MAX_BYTES_PER_CHARACTER = 4


class DocumentFailureReason(StrEnum):
    """Why no text could be read from a document."""

    PASSWORD = "the document is encrypted and needs a password"  # noqa: S105 - a reason, not a password
    BROKEN = "the document cannot be read"
    EMPTY = "the document has no pages"
    NO_TEXT = "the document has no text"
    MEMORY = "the document takes too much memory"
    TIMEOUT = "the document takes too long"
    CRASH = "the document parser crashed on it"
    BUSY = "too many documents are waiting to be parsed"
    UNAVAILABLE = "the document parser cannot be started"


_REASONS = {
    Verdict.PASSWORD: DocumentFailureReason.PASSWORD,
    Verdict.BROKEN: DocumentFailureReason.BROKEN,
    Verdict.EMPTY: DocumentFailureReason.EMPTY,
    Verdict.NO_TEXT: DocumentFailureReason.NO_TEXT,
    Verdict.MEMORY: DocumentFailureReason.MEMORY,
}


@dataclass(frozen=True, slots=True)
class DocumentText:
    """Title and text read from a document; the text is HTML, except that of a PDF, which is plain."""

    title: str
    text: str
    pages: int
    kind: str = "pdf"


@dataclass(frozen=True, slots=True)
class DocumentFailure:
    """Why a document has no text; it may still have a title."""

    reason: DocumentFailureReason
    title: str = ""
    kind: str = "pdf"


@dataclass(frozen=True, slots=True)
class DocumentLimits:
    """Limits on one document, on the number of waiting ones, and on the life of a child process.

    After ``soft_cpu_s`` no further page or part is started and everything read so far counts; at ``hard_cpu_s`` or
    ``wall_s`` the document is given up.
    """

    wall_s: float = 30.0
    soft_cpu_s: int = 5
    hard_cpu_s: int = 10
    memory_bytes: int = 512 * 2**20
    pages: int = 1_000
    characters: int = 2 * 2**20
    waiting: int = 64
    waiting_bytes: int = 64 * 2**20
    idle_s: float = 60.0
    documents: int = 500


class _Child:
    """A child process, and its reply so far about its current document."""

    def __init__(self, command: Sequence[str]) -> None:
        self.line, theirs = socket.socketpair()
        self.line.setblocking(False)
        self.served = 0
        self._received = bytearray()
        try:
            with theirs:
                self.process = _start_process(command, theirs)
        except OSError:
            self.line.close()
            raise

    def send(self, data: bytes, limits: DocumentLimits) -> None:
        """Send a document to the child process, as a file in memory; the previous reply has been received."""
        self.served += 1
        self._received.clear()
        bounds = (limits.pages, limits.characters, limits.soft_cpu_s, limits.hard_cpu_s, limits.memory_bytes)
        with os.fdopen(os.memfd_create("vedette-document"), "wb") as file:
            file.write(data)
            file.flush()
            socket.send_fds(self.line, [REQUEST.pack(len(data), *bounds)], [file.fileno()])

    def receive(self, limits: DocumentLimits) -> DocumentText | DocumentFailure | None:
        """Receive the child process's reply about a document; None if it is not complete yet."""
        try:
            while piece := self.line.recv(_PIECE_BYTES):
                self._received += piece
                if (found := _parse_reply(self._received, limits)) is not None:
                    return found
        except BlockingIOError:
            return None
        except OSError:
            pass  # it died before reading our request
        return DocumentFailure(self._find_cause_of_death())

    def is_idle(self) -> bool:
        """Check whether the child process is alive and silent, as it must be between documents."""
        try:
            self.line.recv(1)
        except BlockingIOError:
            return True
        except OSError:
            pass
        return False

    def _find_cause_of_death(self) -> DocumentFailureReason:
        """Return why the child process died, known as soon as the kernel has closed its end."""
        try:
            code = self.process.wait(0.05)
        except subprocess.TimeoutExpired:
            return DocumentFailureReason.CRASH
        return DocumentFailureReason.TIMEOUT if code == -signal.SIGXCPU else DocumentFailureReason.CRASH

    def kill(self) -> None:
        """Kill the child process, which holds no state; the caller must wait for ``process``."""
        self.line.close()
        self.process.kill()


def _start_process(command: Sequence[str], line: socket.socket) -> subprocess.Popen[bytes]:
    nowhere = subprocess.DEVNULL
    environment = {name: os.environ[name] for name in _VARIABLES if name in os.environ}
    return subprocess.Popen(  # noqa: S603 - our own file
        command, stdin=line.fileno(), stdout=nowhere, stderr=nowhere, env=environment
    )


def _parse_reply(reply: bytearray, limits: DocumentLimits) -> DocumentText | DocumentFailure | None:
    """Parse a child process's reply as far as it is there; one that exceeds the limits is a failure."""
    if len(reply) < REPLY.size:
        return None
    verdict, kind, pages, title_bytes, text_bytes = REPLY.unpack_from(reply)
    most_bytes = _MAX_BYTES_PER_CHARACTER * limits.characters
    if kind >= len(KINDS) or title_bytes > _MAX_BYTES_PER_CHARACTER * MAX_TITLE_LENGTH or text_bytes > most_bytes:
        return DocumentFailure(DocumentFailureReason.CRASH)
    text_from = REPLY.size + title_bytes
    text_to = text_from + text_bytes
    if len(reply) != text_to:
        return None if len(reply) < text_to else DocumentFailure(DocumentFailureReason.CRASH)
    title = reply[REPLY.size : text_from].decode("utf-8", "replace")
    if verdict in {Verdict.TEXT, Verdict.CUT}:
        text = reply[text_from:text_to].decode("utf-8", "replace")
        return DocumentText(title, text, pages, KINDS[kind])
    return DocumentFailure(_REASONS.get(verdict, DocumentFailureReason.CRASH), title, KINDS[kind])


class DocumentReader(Generic[Key]):
    """Submit documents under keys, and collect the results; every document has exactly one outcome."""

    def __init__(
        self,
        limits: DocumentLimits = DocumentLimits(),  # noqa: B008 - it is frozen
        command: Sequence[str] = _COMMAND,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limits = limits
        self._command = command
        self._clock = clock
        self._poll = select.epoll()
        self._waiting: deque[tuple[Key, bytes]] = deque()
        self._waiting_bytes = 0
        self._done: list[tuple[Key, DocumentText | DocumentFailure]] = []
        self._child: _Child | None = None
        self._reading: tuple[Key] | None = None
        self._since_s = 0.0
        self._dying: list[subprocess.Popen[bytes]] = []

    @property
    def fd(self) -> int:
        """File descriptor that is readable when ``collect`` may have document outcomes; it stays the same."""
        return self._poll.fileno()

    @property
    def pending(self) -> int:
        """Number of submitted documents without an outcome."""
        return len(self._waiting) + len(self._done) + (self._reading is not None)

    @property
    def has_room(self) -> bool:
        """Check whether another document would be accepted."""
        return len(self._waiting) < self._limits.waiting and self._waiting_bytes < self._limits.waiting_bytes

    def submit(self, key: Key, data: bytes) -> None:
        """Submit a document to be read; if too many wait, its outcome is a failure that says so."""
        if not self.has_room:
            self._done.append((key, DocumentFailure(DocumentFailureReason.BUSY)))
            return
        self._waiting.append((key, data))
        self._waiting_bytes += len(data)
        self._start_next()

    def collect(self) -> list[tuple[Key, DocumentText | DocumentFailure]]:
        """Return the outcomes of documents since the last call, in order of arrival."""
        self._dying = [process for process in self._dying if process.poll() is None]
        self._check_child()
        self._start_next()
        done, self._done = self._done, []
        return done

    def close(self) -> None:
        """Drop the waiting documents and end the child process, leaving no zombie."""
        self._drop_child()
        self._waiting.clear()
        for process in self._dying:
            process.wait()
        self._dying.clear()
        self._poll.close()

    def _check_child(self) -> None:
        if self._child is None:
            return
        late_s = self._clock() - self._since_s
        if self._reading is None:
            if late_s > self._limits.idle_s or not self._child.is_idle():
                self._drop_child()
        elif (found := self._child.receive(self._limits)) is not None:
            self._finish(found)
        elif late_s > self._limits.wall_s:
            self._finish(DocumentFailure(DocumentFailureReason.TIMEOUT))

    def _start_next(self) -> None:
        """Send the next waiting document to the child process, if it is free."""
        while self._waiting and self._reading is None:
            key, data = self._waiting.popleft()
            self._waiting_bytes -= len(data)
            self._reading, self._since_s = (key,), self._clock()
            try:
                self._child = self._child or self._start_child()
                self._child.send(data, self._limits)
            except OSError:
                self._finish(DocumentFailure(DocumentFailureReason.UNAVAILABLE))

    def _start_child(self) -> _Child:
        child = _Child(self._command)
        self._poll.register(child.line.fileno(), select.EPOLLIN)
        return child

    def _finish(self, found: DocumentText | DocumentFailure) -> None:
        """Record the outcome of the current document; kill a child process that did not reply properly."""
        assert self._reading is not None, "nothing is being read"
        self._done.append((self._reading[0], found))
        self._reading, self._since_s = None, self._clock()
        broke_down = isinstance(found, DocumentFailure) and found.reason not in _REASONS.values()
        if broke_down or (self._child is not None and self._child.served >= self._limits.documents):
            self._drop_child()

    def _drop_child(self) -> None:
        if self._child is not None:
            self._poll.unregister(self._child.line.fileno())
            self._child.kill()
            self._dying.append(self._child.process)
            self._child = None


def read_and_wait(reader: DocumentReader[int], data: bytes) -> DocumentText | DocumentFailure:
    """Read one document and wait for it; nothing else is pending."""
    reader.submit(0, data)
    while not (done := reader.collect()):
        select.select([reader.fd], [], [], 1.0)
    return done[0][1]
