"""File format of histories: one file, small and quick to open again.

    8 bytes    the mark
    4 bytes    the format's number          (numbers are little-endian)
    8 bytes    the size of the head
    head       JSON: what the history is called, and where each column and block of texts lies
    8 bytes    a checksum (XXH3) of the head
    columns    zstd, whole numbers in as few bytes as hold the largest
    blocks     zstd, texts; see ``pack_texts``

The file is memory-mapped: columns are checked and unpacked when it is opened, texts when they are read. It is written
under another name first, so that there is never half a file.
"""

import json
import mmap
import os
import struct
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import xxhash
import zstandard

from vedette.errors import StoreCorrupt, StoreNewer, UsageError
from vedette.lab.worlds.history import History, Texts
from vedette.policy import Ints

BLOCK_BYTES = 1 << 20
# A page's versions are adjacent, and one differs from the next in a few words: a longer search finds no more.
ZSTD_LEVEL = 3
CACHED_BLOCKS = 16


class Block(NamedTuple):
    """A compressed block of history texts, one after the other in UTF-8, and its uncompressed size."""

    packed: bytes | memoryview
    size_bytes: int


class PackedTexts(Texts):
    """Packed texts of a history file: text ``n`` is bytes ``span[n]`` to ``span[n + 1]``, never in two blocks."""

    def __init__(self, version_text: Ints, span: Ints, blocks: Sequence[Block]) -> None:
        self.version_text, self.span, self.blocks = version_text, span, blocks
        self._ends = np.cumsum([block.size_bytes for block in blocks], dtype=np.int64)
        self._cached_unpack = lru_cache(CACHED_BLOCKS)(self._unpack)

    def text(self, version: int) -> str:
        """Return the text of a version, unpacked from the history file's blocks: words without markup."""
        number = int(self.version_text[version])
        begin, end = int(self.span[number]), int(self.span[number + 1])
        if begin == end:
            return ""
        block = int(np.searchsorted(self._ends, begin, side="right"))
        start = int(self._ends[block]) - self.blocks[block].size_bytes
        return self._cached_unpack(block)[begin - start : end - start].decode(errors="replace")

    def _unpack(self, block: int) -> bytes:
        packed, size_bytes = self.blocks[block]
        try:
            return zstandard.ZstdDecompressor().decompress(packed, max_output_size=size_bytes)
        except zstandard.ZstdError:
            raise StoreCorrupt("a block of texts cannot be unpacked; import the history again") from None


class TextPacker:
    """Packer of texts for a history file, one by one in the order of their numbers."""

    def __init__(self) -> None:
        self._compressor = zstandard.ZstdCompressor(level=ZSTD_LEVEL, write_checksum=True)
        self._pending: list[bytes] = []
        self._pending_bytes = 0
        self._span = [0]
        self._blocks: list[Block] = []

    def add(self, text: str) -> None:
        """Add one more text to the blocks of a history file."""
        raw = text.encode(errors="replace")
        self._pending.append(raw)
        self._pending_bytes += len(raw)
        self._span.append(self._span[-1] + len(raw))
        if self._pending_bytes >= BLOCK_BYTES:
            self._close_block()

    def finish(self, version_text: Ints) -> PackedTexts:
        """Finish packing the texts of a history file; ``version_text`` says which of them each version has."""
        if self._pending_bytes:
            self._close_block()
        return PackedTexts(version_text, np.array(self._span, np.int64), tuple(self._blocks))

    def _close_block(self) -> None:
        self._blocks.append(Block(self._compressor.compress(b"".join(self._pending)), self._pending_bytes))
        self._pending, self._pending_bytes = [], 0


def pack_texts(history: History) -> PackedTexts:
    """Pack the texts of any history for its file; versions of equal content share one."""
    if isinstance(history.texts, PackedTexts):
        return history.texts
    _, firsts, numbers = np.unique(history.digest, return_index=True, return_inverse=True)
    packer = TextPacker()
    for version in firsts.tolist():
        packer.add(history.texts.text(version))
    return packer.finish(numbers.astype(np.int64))


MAGIC = b"VEDHIST\n"
FORMAT = 1
_PREAMBLE = struct.Struct("<8sIQ")
_ZSTD_LEVEL = 9
MAX_HEAD_BYTES = 1 << 28
NUMBER_COLUMNS = {  # the columns, with the type that they have in memory
    **dict.fromkeys(("site", "moved_to", "version_page", "words", "link_start", "link_to"), "<i8"),
    **dict.fromkeys(("version_text", "text_span"), "<i8"),
    **dict.fromkeys(("born_s", "died_s", "version_at_s"), "<f8"),
    "kind": "|u1",
    "digest": "<u8",
    "wave": "|b1",
}
NAME_COLUMNS = ("urls", "site_names")
HEAD_FIELDS = ("name", "begin_s", "end_s", "missing")
NumberArray = npt.NDArray[Any]


class _ColumnEntry(NamedTuple):
    """Entry of a column in the history file's head: type (empty for names), length, offset, size and checksum."""

    kind: str
    length: int
    at: int
    size: int
    checksum: int


def save_history(history: History, path: str | os.PathLike[str]) -> int:
    """Save a history to a file; return its size in bytes. An existing file is replaced only when all is written."""
    texts = pack_texts(history)
    compressor = zstandard.ZstdCompressor(level=_ZSTD_LEVEL)
    columns = {name: _pack_column(values, compressor) for name, values in _list_columns(history, texts).items()}
    payload = [packed for _, _, packed in columns.values()]
    pieces: dict[str, _ColumnEntry] = {}
    at = 0
    for name, (kind, count, packed) in columns.items():
        pieces[name] = _ColumnEntry(kind, count, at, len(packed), xxhash.xxh3_64_intdigest(packed))
        at += len(packed)
    head = {
        **{name: getattr(history, name) for name in HEAD_FIELDS},
        "columns": pieces,
        "blocks": [(len(block.packed), block.size_bytes) for block in texts.blocks],
    }
    return _write(Path(path), json.dumps(head).encode(), [*payload, *(block.packed for block in texts.blocks)])


def load_history(path: str | os.PathLike[str]) -> History:
    """Load the history of a file; texts are unpacked from it on demand."""
    where = Path(path)
    try:
        with where.open("rb") as file:
            whole = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except (OSError, ValueError):
        raise UsageError(
            f"{where.name}: contains no history; create one with vedette lab import-git REPO OUT"
        ) from None
    head, body = _read_head(whole, where.name)
    try:
        return _build_history(head, body)
    except (KeyError, TypeError, ValueError, IndexError, zstandard.ZstdError, MemoryError):
        raise _damaged_error(where.name) from None


def _list_columns(history: History, texts: PackedTexts) -> Mapping[str, NumberArray | Sequence[str]]:
    """List all columns of a history file by name, numbers in the types of the format."""
    own = {"version_text": texts.version_text, "text_span": texts.span}
    numbers = {name: own[name] if name in own else getattr(history, name) for name in NUMBER_COLUMNS}
    columns: dict[str, NumberArray | Sequence[str]] = {
        name: np.asarray(numbers[name], NUMBER_COLUMNS[name]) for name in NUMBER_COLUMNS
    }
    return columns | {name: getattr(history, name) for name in NAME_COLUMNS}


def _pack_column(values: NumberArray | Sequence[str], compressor: zstandard.ZstdCompressor) -> tuple[str, int, bytes]:
    """Pack a column for the history file: its type, its length, and its compressed bytes."""
    if not isinstance(values, np.ndarray):
        # No file name contains a zero byte.
        return "", len(values), compressor.compress("\0".join(values).encode(errors="surrogateescape"))
    small = _shrink(values)
    return small.dtype.str, len(small), compressor.compress(np.ascontiguousarray(small).tobytes())


def _shrink(values: NumberArray) -> NumberArray:
    if values.dtype != np.int64 or not len(values):
        return values
    ends = np.promote_types(np.min_scalar_type(values.min()), np.min_scalar_type(values.max()))
    return values.astype(ends.newbyteorder("<"))


def _write(path: Path, head: bytes, pieces: Sequence[bytes | memoryview]) -> int:
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with beside.open("wb") as file:
            file.write(_PREAMBLE.pack(MAGIC, FORMAT, len(head)) + head)
            file.write(xxhash.xxh3_64_intdigest(head).to_bytes(8, "little"))
            file.writelines(pieces)
            size = file.tell()
        beside.replace(path)
    except OSError as error:
        raise UsageError(f"cannot write {path} ({error.strerror})") from None
    finally:
        beside.unlink(missing_ok=True)
    return size


def _read_head(whole: memoryview, name: str) -> tuple[dict[str, Any], memoryview]:
    """Read the JSON head of a history file and check it; return it with the bytes after it."""
    if len(whole) < _PREAMBLE.size or bytes(whole[:8]) != MAGIC:
        raise UsageError(f"{name}: not a Vedette history file; create one with vedette lab import-git REPO OUT")
    _, number, size = _PREAMBLE.unpack_from(whole)
    if number != FORMAT:
        raise StoreNewer(f"{name}: format {number}, but this Vedette reads {FORMAT}; import the history again")
    end = _PREAMBLE.size + min(size, MAX_HEAD_BYTES)
    raw = bytes(whole[_PREAMBLE.size : end])
    if bytes(whole[end : end + 8]) != xxhash.xxh3_64_intdigest(raw).to_bytes(8, "little"):
        raise _damaged_error(name)
    found: dict[str, Any] = json.loads(raw)
    return found, whole[end + 8 :]


def _build_history(head: dict[str, Any], body: memoryview) -> History:
    pieces = {name: _ColumnEntry(*piece) for name, piece in head["columns"].items()}
    numbers = {name: _read_numbers(pieces[name], body).astype(kind) for name, kind in NUMBER_COLUMNS.items()}
    names = {name: _read_names(pieces[name], body) for name in NAME_COLUMNS}
    at = sum(piece.size for piece in pieces.values())
    blocks = []
    for size, size_bytes in head["blocks"]:
        blocks.append(Block(body[at : at + size], size_bytes))
        at += size
    if at != len(body):
        raise ValueError(at)
    texts = PackedTexts(numbers.pop("version_text"), numbers.pop("text_span"), blocks)
    columns: dict[str, Any] = {**numbers, **names}
    return History(**{name: head[name] for name in HEAD_FIELDS}, **columns, texts=texts)


def _read_numbers(piece: _ColumnEntry, body: memoryview) -> NumberArray:
    return np.frombuffer(_unpack(piece, body), np.dtype(piece.kind), piece.length)


def _read_names(piece: _ColumnEntry, body: memoryview) -> list[str]:
    raw = _unpack(piece, body)
    return raw.decode(errors="surrogateescape").split("\0") if piece.length else []


def _unpack(piece: _ColumnEntry, body: memoryview) -> bytes:
    packed = body[piece.at : piece.at + piece.size]
    if xxhash.xxh3_64_intdigest(packed) != piece.checksum:
        raise ValueError(piece.at)
    return zstandard.ZstdDecompressor().decompress(packed)


def _damaged_error(name: str) -> StoreCorrupt:
    return StoreCorrupt(f"{name}: damaged; import the history again: vedette lab import-git REPO OUT")
