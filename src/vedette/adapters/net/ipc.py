"""IPC: whole messages between the processes of one data folder, over a local stream socket, without blocking.

A message is any picklable value after its length. Unpickling executes what the sender says, so a channel is opened only
to a process of the same user, which the kernel verifies.
"""

import os
import pickle
import socket
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from vedette.errors import StoreError

_LENGTH = struct.Struct("<Q")
_CREDENTIALS = struct.Struct("3i")
_READ_BYTES = 1 << 20
# One peer's flood must not make the others wait; the rest is read the next time.
_MAX_READS = 64
# No honest batch comes close; anything larger is a broken sender, and must not exhaust memory.
_MAX_MESSAGE_BYTES = 1 << 30
# Exceptions raised by unpickling bytes that are no message of ours, or of another version.
_UNREADABLE = (pickle.UnpicklingError, AttributeError, EOFError, ImportError, LookupError, TypeError, ValueError)


class ChannelClosed(Exception):
    """The process at the other end of an IPC channel has closed it."""


class NoAnswer(ChannelClosed):
    """The process at the other end of an IPC channel did not reply in time; it still has the message."""


class Channel:
    """One end of an IPC connection between local processes; ``fd`` can be watched for reading."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._sock = sock
        self._inbox = bytearray()
        self._outbox = bytearray()

    @property
    def fd(self) -> int:
        """File descriptor of the IPC channel, to watch for reading."""
        return self._sock.fileno()

    def send(self, message: object) -> None:
        """Send an IPC message as far as the socket accepts it now; ``flush`` sends the rest."""
        data = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
        self._outbox += _LENGTH.pack(len(data))
        self._outbox += data
        self.flush()

    def flush(self) -> None:
        """Send the waiting IPC messages, as far as the socket accepts them."""
        while self._outbox:
            try:
                sent = self._sock.send(memoryview(self._outbox)[:_READ_BYTES])
            except BlockingIOError:
                return
            except OSError as error:
                raise ChannelClosed(str(error)) from None
            del self._outbox[:sent]

    def receive(self) -> list[object]:
        """Return every whole IPC message; raise ``ChannelClosed`` once the other side closed and all are returned.

        An unreadable message also closes the channel.
        """
        closed = self._receive_bytes()
        messages = list(self._split_messages())
        if closed and not messages:
            raise ChannelClosed("closed")
        return messages

    def close(self) -> None:
        """Close the IPC channel."""
        self._sock.close()

    def _receive_bytes(self) -> bool:
        """Receive the available bytes of the IPC channel; return whether no more will come."""
        for _ in range(_MAX_READS):
            try:
                data = self._sock.recv(_READ_BYTES)
            except BlockingIOError:
                return False
            except OSError:
                return True
            if not data:
                return True
            self._inbox += data
        return False

    def _split_messages(self) -> Iterator[object]:
        while len(self._inbox) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._inbox)
            if length > _MAX_MESSAGE_BYTES:
                raise ChannelClosed(f"a message of {length} bytes was announced")
            end = _LENGTH.size + length
            if len(self._inbox) < end:
                return
            data = bytes(memoryview(self._inbox)[_LENGTH.size : end])
            del self._inbox[:end]
            try:
                yield pickle.loads(data)  # noqa: S301 - from a process of the same user, see above
            except _UNREADABLE as error:
                raise ChannelClosed(f"a message could not be read: {error}") from None


def listen(path: Path) -> socket.socket:
    """Create a listening local socket for IPC that only this user can access; replace one of a dead process.

    It is named only after it listens: a process that sees the name can connect.
    """
    unready = path.with_name("~" + path.name[1:])
    with suppress(FileNotFoundError):
        unready.unlink()
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        server.bind(_shortest_path(unready))
        server.listen(64)
        unready.rename(path)
    except OSError as error:
        server.close()
        raise StoreError(f"{path}: {error.strerror}; choose a data folder with a shorter path") from None
    finally:
        os.umask(before)
    server.setblocking(False)
    return server


def connect(path: Path) -> socket.socket:
    """Connect to a process that listens on a local socket for IPC; raise ``OSError`` if there is none.

    It never blocks: ``BlockingIOError`` means that the process lives, but accepts nothing for now.
    """
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.setblocking(False)
    try:
        sock.connect(_shortest_path(path))
    except OSError:
        sock.close()
        raise
    return sock


def is_listening(path: Path) -> bool:
    """Check whether a process listens on a local socket for IPC, however busy it is; this never blocks."""
    try:
        connect(path).close()
    except OSError as error:
        return isinstance(error, BlockingIOError)
    return True


def is_same_user(sock: socket.socket) -> bool:
    """Check whether the process at the other end of a local socket runs as the same user."""
    raw = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, user, _ = _CREDENTIALS.unpack(raw)
    return bool(user == os.getuid())


def _shortest_path(path: Path) -> str:
    """Return the shorter of a local socket's absolute and relative path.

    Socket paths are limited to about a hundred bytes; from the working folder they may be shorter, if it still
    exists.
    """
    spellings = [str(path)]
    with suppress(FileNotFoundError):
        spellings.append(os.path.relpath(path))
    return min(spellings, key=len)
