"""Checksums of files that only grow, one for each chunk: adding data costs little, and any part can be verified.

A file that changes in place has checksums only while no one writes to it.

sums    of each file its size and the checksums of its chunks, the last of them not full, as JSON
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec
import xxhash

from vedette.adapters.files.atomic import replace_file, sync_folder

CHUNK_BYTES = 1 << 20
_SUMS_FILE = "sums"


class ChunkSums(NamedTuple):
    """The size of a file and the checksums of its chunks."""

    size: int = 0
    chunks: tuple[int, ...] = ()


_decode = msgspec.json.Decoder(dict[str, ChunkSums]).decode


def read_sums(folder: Path) -> dict[str, ChunkSums]:
    """Read the checksums of files in a folder; none if they are missing or cannot be read."""
    with suppress(OSError, msgspec.DecodeError, UnicodeDecodeError):
        return _decode((folder / _SUMS_FILE).read_bytes())
    return {}


def update_sums(folder: Path, names: Sequence[str], before: dict[str, ChunkSums]) -> dict[str, ChunkSums]:
    """Compute and save the checksums of what was added to files; return them all."""
    sums = {name: _extend(folder / name, before.get(name, ChunkSums())) for name in names}
    if sums != before:
        with replace_file(folder / _SUMS_FILE) as file:
            file.write(msgspec.json.encode(sums))
    return sums


def drop_sums(folder: Path, names: Sequence[str], before: dict[str, ChunkSums]) -> dict[str, ChunkSums]:
    """Drop the checksums of files that will be changed in place, also for a power cut; return the others."""
    remaining = {name: sums for name, sums in before.items() if name not in names}
    if remaining != before:
        with replace_file(folder / _SUMS_FILE) as file:
            file.write(msgspec.json.encode(remaining))
            file.flush()
            os.fsync(file.fileno())
        sync_folder(folder)
    return remaining


def has_changed(path: Path, sums: ChunkSums, most_chunks: int) -> bool:
    """Check whether any of ``most_chunks`` chunks of a file, evenly spread and with the last one, has changed.

    A file that is gone has.
    """
    last = len(sums.chunks) - 1
    if not path.exists():
        return True
    with path.open("rb") as file:
        for number in (*range(0, last, max(last // max(most_chunks, 1), 1)), last)[: last + 1]:
            file.seek(number * CHUNK_BYTES)
            data = file.read(min(CHUNK_BYTES, sums.size - number * CHUNK_BYTES))
            if xxhash.xxh3_64_intdigest(data) != sums.chunks[number]:
                return True
    return False


def _extend(path: Path, sums: ChunkSums) -> ChunkSums:
    size = path.stat().st_size
    if size == sums.size:
        return sums
    chunks = list(sums.chunks[: min(sums.size, size) // CHUNK_BYTES])
    with path.open("rb") as file:
        file.seek(len(chunks) * CHUNK_BYTES)
        while data := file.read(CHUNK_BYTES):
            chunks.append(xxhash.xxh3_64_intdigest(data))
    return ChunkSums(size, tuple(chunks))
