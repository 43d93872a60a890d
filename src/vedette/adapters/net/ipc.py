"""IPC: whole messages between the processes of one data folder, over a local stream socket, without blocking.

A message is its length, the number of its type, and its fields as MessagePack. Bytes of a peer become values of these
types or an error, never code. Each side also has the kernel say who the other is, and talks only to its own user.
"""

import os
import socket
import struct
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from vedette.engine.messages import (
    Ack,
    FetchFailure,
    FetchReport,
    FetchSuccess,
    FetchTask,
    HostUpdate,
    PartReply,
    PartRequest,
    Recall,
    Stop,
    WorkBatch,
)
from vedette.errors import StoreError

Response = dict[str, Any]

_LENGTH = struct.Struct("<Q")
_CREDENTIALS = struct.Struct("3i")
_READ_BYTES = 1 << 20
# One peer's flood must not make the others wait; the rest is read the next time.
_MAX_READS = 64
# No honest batch comes close; anything larger is a broken sender, and must not exhaust memory.
_MAX_MESSAGE_BYTES = 1 << 30


class ChannelClosed(Exception):
    """The process at the other end of an IPC channel has closed it."""


class NoAnswer(ChannelClosed):
    """The process at the other end of an IPC channel did not reply in time; it still has the message."""


@dataclass(frozen=True, slots=True)
class Hello:
    """First IPC message of a fetcher to the coordinator: its number and process id."""

    worker: int
    pid: int = 0


@dataclass(frozen=True, slots=True)
class Request:
    """An IPC request to the running coordinator: a verb with its arguments, which are plain values.

    A command with an ``id`` is executed once, however often it is sent.
    """

    verb: str
    arguments: dict[str, Any] = field(default_factory=dict)
    id: str = ""


class _WireReport(NamedTuple):
    """An IPC report of a fetcher as it is sent: each result is a success or a failure, the other being None."""

    serial: int
    results: tuple[tuple[FetchSuccess | None, FetchFailure | None], ...]
    returned: tuple[FetchTask, ...]
    host_updates: tuple[HostUpdate, ...]
    archived: tuple[tuple[str, int], ...]


# The number of each type of message on the wire. Both ends run the same version, so it may change with any release.
_WIRE_TYPES: Final = (
    _WireReport,
    WorkBatch,
    Ack,
    Recall,
    PartRequest,
    PartReply,
    Hello,
    Stop,
    Request,
    Response,
)
_NUMBERS: Final[Mapping[type, int]] = {
    **{kind: number for number, kind in enumerate(_WIRE_TYPES[:-1])},
    dict: len(_WIRE_TYPES) - 1,
}
_DECODERS: Final[tuple[msgspec.msgpack.Decoder[Any], ...]] = tuple(map(msgspec.msgpack.Decoder, _WIRE_TYPES))
_encode: Final = msgspec.msgpack.Encoder(enc_hook=lambda value: value.item()).encode  # numbers of numpy


def encode_message(message: object) -> bytes:
    """Encode an IPC message: a byte with the number of its type, and its fields.

    Half a surrogate pair, as a hostile page may have in its title, is no Unicode text: it becomes a question mark.
    """
    wire = _split_report(message) if isinstance(message, FetchReport) else message
    number = _NUMBERS[type(wire)].to_bytes()
    try:
        return number + _encode(wire)
    except UnicodeEncodeError:
        return number + _encode(_drop_surrogates(wire))


def decode_message(data: bytes) -> object:
    """Decode an IPC message; raise ``ValueError`` for bytes that are none."""
    if not data or data[0] >= len(_DECODERS):
        raise ValueError("unknown type of message")
    message: object = _DECODERS[data[0]].decode(memoryview(data)[1:])
    return _join_report(message) if isinstance(message, _WireReport) else message


def _split_report(report: FetchReport) -> _WireReport:
    results = ((one, None) if isinstance(one, FetchSuccess) else (None, one) for one in report.results)
    return _WireReport(report.serial, tuple(results), report.returned, report.host_updates, report.archived)


def _join_report(wire: _WireReport) -> FetchReport:
    results = tuple(one or other for one, other in wire.results)
    if None in results:
        raise ValueError("the result is neither a success nor a failure")
    return FetchReport(wire.serial, results, wire.returned, wire.host_updates, wire.archived)  # type: ignore[arg-type]  # checked above


def _drop_surrogates(value: Any) -> Any:  # noqa: ANN401 - any message
    """Return an IPC message in plain values that are encoded as it would be, its text being Unicode."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, list | tuple):
        return [_drop_surrogates(each) for each in value]
    if is_dataclass(value):
        return {each.name: _drop_surrogates(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, dict):
        return {_drop_surrogates(name): _drop_surrogates(each) for name, each in value.items()}
    return value


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
        """Send an IPC message as far as the socket takes it now; ``flush`` sends the rest."""
        data = encode_message(message)
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
                yield decode_message(data)
            except ValueError as error:  # bytes that are no message of ours, or of another version of ours
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

    It never waits: ``BlockingIOError`` says that the process lives, but accepts nothing for now. A process of another
    user may have put its own socket there, and is not talked to: ``StoreError``.
    """
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.setblocking(False)
    try:
        sock.connect(_shortest_path(path))
    except OSError:
        sock.close()
        raise
    if not is_same_user(sock):
        sock.close()
        raise StoreError(f"{path} belongs to another user: run this command as the user who runs vedette there")
    return sock


def is_listening(path: Path) -> bool:
    """Check whether a process listens on a local socket for IPC, however busy it is; this never blocks."""
    try:
        connect(path).close()
    except StoreError:
        return False
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
