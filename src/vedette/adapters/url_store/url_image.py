"""The file ``urls``: what the keeper's memory had at a clean end, so that the next start need not scan the state.

It is never needed: a file that is missing, cut short, altered or of another state reads as nothing. It is numpy's
archive of arrays with a check sum behind it; the turn says of which moment of the state it is.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
import xxhash

from vedette.adapters.url_store.hash_table import UrlTable
from vedette.adapters.url_store.queues import HostQueues

__all__ = ["Image", "read_image", "write_image"]

_LAYOUT = 1
_SUM_BYTES = 8
_PIECE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Image:
    """What a file held, and the number of writes that the state had seen by then."""

    turn: int
    table: UrlTable
    queues: HostQueues


def write_image(path: Path, secret: int, turn: int, table: UrlTable, queues: HostQueues) -> None:
    """Replace the file whole: a reader finds the old one or the new one."""
    draft = path.with_name(f"{path.name}.new")
    head = np.array([_LAYOUT, turn, secret], np.uint64)
    with draft.open("w+b") as file:
        np.savez(file, allow_pickle=False, head=head, **table.arrays(), **queues.arrays())
        file.write(_check_sum(file, file.tell()))
    draft.replace(path)


def read_image(path: Path, secret: int) -> Image | None:
    """What the file holds, if it is whole and of the state with this secret."""
    try:
        with path.open("rb") as file:
            return _read(file, secret)
    except OSError:
        return None


def _read(file: IO[bytes], secret: int) -> Image | None:
    size_bytes = file.seek(0, 2)
    if size_bytes < _SUM_BYTES or _check_sum(file, size_bytes - _SUM_BYTES) != file.read():
        return None
    file.seek(0)
    with np.load(file, allow_pickle=False) as archive:
        layout, turn, of = archive["head"].tolist()
        if (layout, of) != (_LAYOUT, secret):
            return None
        arrays = {name: archive[name] for name in archive.files}
    return Image(turn, UrlTable.from_arrays(secret, arrays), HostQueues.from_arrays(arrays))


def _check_sum(file: IO[bytes], size_bytes: int) -> bytes:
    """Of the first so many bytes, behind which the file then stands."""
    digest = xxhash.xxh3_64()
    file.seek(0)
    while size_bytes and (piece := file.read(min(size_bytes, _PIECE_BYTES))):
        digest.update(piece)
        size_bytes -= len(piece)
    return digest.digest()
