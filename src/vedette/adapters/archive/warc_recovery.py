"""WARC recovery: split a WARC file that may be damaged into runs, at faults and at certain record starts.

A run ends where a gzip member begins with the word ``WARC/`` (a record certainly begins there), where the compressed
bytes are broken, and at the end of the file. No record extends past the end of a run, so a wrong length or a torn
member costs one record and not the rest of the file. A gzip file of one member, or of members that cut through records,
is one run.

After broken bytes the next member is recognized by its form: the magic number, and ``WARC/`` once unpacked. The search
begins inside the broken member, since a torn one may contain the next; the amount read twice is bounded by how far the
file was read, so no file can be crafted that takes more than linear time. Memory is bounded by what the caller
requests.
"""

import re
import zlib
from collections import deque
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import BinaryIO

MAGIC = b"\x1f\x8b"

_WORD = b"WARC/"
_READ_BYTES = 1 << 13
_PIECE_BYTES = 1 << 18
_PROBE_BYTES = 1 << 10
_MAX_MARKS = 1 << 12
_REREAD_FACTOR = 16
_REREAD_BYTES = 1 << 20
# Method deflate; three flag bits are reserved and must be zero.
_MEMBER = re.compile(rb"\x1f\x8b\x08[\x00-\x1f]", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Chunk:
    """Decompressed bytes of a WARC file; ``offset`` is the start of them, or of their gzip member, in it."""

    offset: int
    data: bytes
    begins_member: bool = False


@dataclass(frozen=True, slots=True)
class StreamBreak:
    """A break in a WARC file: from this offset on its bytes cannot be decompressed."""

    offset: int
    why: str


@dataclass(frozen=True, slots=True)
class _Mark:
    """Map a position in the decompressed bytes to an offset in the WARC file."""

    position: int
    offset: int
    is_member: bool


@dataclass(slots=True)
class RereadBudget:
    """Budget for reading damaged WARC bytes twice: a multiple of what was read once, and a little to begin with."""

    spent_bytes: int = 0

    def try_spend(self, size_bytes: int, read_bytes: int) -> bool:
        """Spend from the budget for rereading WARC bytes if possible; return whether it was."""
        allowed = self.spent_bytes + size_bytes <= _REREAD_FACTOR * read_bytes + _REREAD_BYTES
        self.spent_bytes += size_bytes if allowed else 0
        return allowed


def read_plain(file: BinaryIO) -> Iterator[Chunk | StreamBreak]:
    """Yield the chunks of an uncompressed WARC file."""
    offset = 0
    while data := file.read(_PIECE_BYTES):
        yield Chunk(offset, data)
        offset += len(data)


def read_gzip(file: BinaryIO) -> Iterator[Chunk | StreamBreak]:
    """Yield the chunks of a gzip WARC file, member by member, and a break wherever it cannot be decompressed."""
    look_back = RereadBudget()
    offset: int | None = 0
    while offset is not None:
        file.seek(offset)
        magic = file.read(len(MAGIC))
        if not magic:
            return
        if magic != MAGIC:
            yield StreamBreak(offset, "bytes that are not a gzip member")
            offset = _find_member(file, offset)
            continue
        end = yield from _inflate_member(file, offset)
        if isinstance(end, StreamBreak):
            yield StreamBreak(offset, end.why)
            again = look_back.try_spend(end.offset - offset, end.offset)
            offset = _find_member(file, offset + 1 if again else end.offset)
        else:
            offset = end


def _inflate_member(file: BinaryIO, offset: int) -> Generator[Chunk, None, int | StreamBreak]:
    """Decompress the gzip member at an offset; return its end, or the break with how far it was read and why."""
    inflate = zlib.decompressobj(16 + zlib.MAX_WBITS)
    file.seek(offset)
    first: bytes | None = b""
    while not inflate.eof:
        packed = inflate.unconsumed_tail or file.read(_READ_BYTES)
        if not packed:
            yield from _emit(offset, first or b"", begins=True)
            return StreamBreak(file.tell(), "the file ends inside a gzip member")
        try:
            data = inflate.decompress(packed, _PIECE_BYTES)
        except zlib.error as error:
            return StreamBreak(file.tell(), f"broken gzip member ({error})")
        if first is None:
            yield from _emit(offset, data)
        elif len(first := first + data) >= len(_WORD) or inflate.eof:
            # A member's first piece is long enough to be identified by its first word.
            yield from _emit(offset, first, begins=True)
            first = None
    return file.tell() - len(inflate.unused_data)


def _emit(offset: int, data: bytes, *, begins: bool = False) -> Iterator[Chunk]:
    if data:
        yield Chunk(offset, data, begins)


def _find_member(file: BinaryIO, start: int) -> int | None:
    """Find the next offset at which a gzip member begins that decompresses to a WARC record."""
    file.seek(start)
    kept = b""
    while data := file.read(_READ_BYTES):
        window, base = kept + data, start - len(kept)
        for match in _MEMBER.finditer(window):
            if _is_record_start(file, base + match.start()):
                return base + match.start()
        start += len(data)
        kept = window[-3:]
        file.seek(start)
    return None


def _is_record_start(file: BinaryIO, offset: int) -> bool:
    file.seek(offset)
    try:
        return zlib.decompressobj(16 + zlib.MAX_WBITS).decompress(file.read(_PROBE_BYTES), len(_WORD)) == _WORD
    except zlib.error:
        return False


class Window:
    """A window on the runs of a WARC file: bytes can be peeked at before they are consumed, and searched."""

    def __init__(self, pieces: Iterator[Chunk | StreamBreak]) -> None:
        self._pieces = pieces
        self._next: Chunk | StreamBreak | None = next(pieces, None)
        self._data = b""
        self._at = 0
        self._marks: deque[_Mark] = deque()
        self.taken_bytes = 0

    @property
    def offset(self) -> int:
        """Offset of the next byte in the WARC file: its own, or that of its gzip member."""
        mark = self._marks[0]
        return mark.offset if mark.is_member else mark.offset + self.taken_bytes - mark.position

    @property
    def broken(self) -> StreamBreak | None:
        """The break in the WARC file after the bytes in the window, once they reach up to it."""
        return self._next if isinstance(self._next, StreamBreak) else None

    def enter_next_run(self) -> bool:
        """Move the window to the next run of the WARC file, which may be empty; return False at the end."""
        self.skip(len(self._data) - self._at)
        if isinstance(self._next, StreamBreak):
            self._next = next(self._pieces, None)
        if isinstance(self._next, Chunk):
            self._marks.clear()
            self._data, self._at = self._take_chunk(self._next, 0), 0
            return True
        return self._next is not None

    def peek(self, size_bytes: int) -> bytes:
        """Return the next bytes of the run without consuming them; fewer if the run ends."""
        if len(self._data) - self._at < size_bytes and self._peek_chunk():
            view = bytearray(memoryview(self._data)[self._at :])
            while len(view) < size_bytes and (piece := self._peek_chunk()):
                view += self._take_chunk(piece, len(view))
            self._data, self._at = bytes(view), 0
        return self._data[self._at : self._at + size_bytes]

    def skip(self, size_bytes: int) -> None:
        """Skip bytes of the run, keeping no more than one chunk in memory."""
        while size_bytes > 0 and self.peek(1):
            step = min(size_bytes, len(self._data) - self._at)
            self._at += step
            self.taken_bytes += step
            size_bytes -= step
        while len(self._marks) > 1 and self._marks[1].position <= self.taken_bytes:
            self._marks.popleft()

    def skip_to(self, pattern: re.Pattern[bytes], longest_bytes: int) -> bool:
        """Consume the run up to the next match of a pattern, or all of it if there is none."""
        while data := self.peek(_PIECE_BYTES):
            if match := pattern.search(data):
                self.skip(match.start())
                return True
            # A match may extend past the end of the searched part.
            self.skip(len(data) - longest_bytes if len(data) == _PIECE_BYTES else len(data))
        return False

    def is_torn_after(self, size_bytes: int) -> bool:
        """Check whether the run ends after this many bytes, inside a gzip member that is cut or corrupt."""
        last = self._marks[-1].offset
        return len(self.peek(size_bytes + 1)) <= size_bytes and self.broken is not None and self.broken.offset == last

    def _peek_chunk(self) -> Chunk | None:
        piece = self._next
        if not isinstance(piece, Chunk) or (piece.begins_member and piece.data.startswith(_WORD)):
            return None
        return piece

    def _take_chunk(self, piece: Chunk, ahead_bytes: int) -> bytes:
        position = self.taken_bytes + ahead_bytes
        # Tiny members must not fill memory with marks; one without gets the offset of the last mark.
        if not self._marks or (piece.begins_member and len(self._marks) < _MAX_MARKS):
            self._marks.append(_Mark(position, piece.offset, piece.begins_member))
        self._next = next(self._pieces, None)
        return piece.data
