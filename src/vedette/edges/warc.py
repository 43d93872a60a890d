"""The archive of what was fetched: WARC 1.1 files, one record per gzip member, each file written by one writer.

A writer begins a new file whenever it starts, and never opens an old one again. So a file has one author in one life,
its end after a crash is simply the acknowledged length, and no offset that somebody remembers can come to mean
another record. The price is a short file per restart.

What ``flush`` returns may be acknowledged: those bytes have left the process and survive kill -9 (power loss too,
when the writer was made with ``sync``). On start ``truncate_to`` cuts everything else off.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from vedette.edges.warc_record import Exchange, Revisit, answer_record, digest, request_record, warcinfo_record

__all__ = ["Exchange", "Place", "Revisit", "WarcWriter", "digest", "truncate_to"]

_OURS = re.compile(r"vedette-([A-Za-z0-9._-]+)-(\d{5,})\.warc\.gz")
_BUFFER_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Place:
    """Where a response or revisit record stands: one gzip member of this length."""

    file: str
    offset: int
    length: int


class WarcWriter:
    """Appends exchanges to ``vedette-NAME-SERIAL.warc.gz``; the name is that of the worker, which is alone to use it.

    A file is begun by the first exchange that goes into it, and ended when it has reached ``rotate_bytes``. Serials
    grow from the highest in the folder; ``serial_from`` keeps the names of files that were moved elsewhere from
    coming again. After an ``OSError`` (a full disk) the writer is of no further use; what was acknowledged stands.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        software: str,
        operator: str = "",
        rotate_bytes: int = 1_000_000_000,
        *,
        serial_from: int = 0,
        sync: bool = False,
    ) -> None:
        if not _OURS.fullmatch(_file_name(name, 0)):
            raise ValueError(f"{name!r} cannot stand in a file name: letters, digits, dot, dash and underscore can")
        self._folder = folder
        self._name = name
        self._software = software
        self._operator = operator
        self._rotate_bytes = rotate_bytes
        self._serial = max(serial_from, 1 + max(_serials(folder, name), default=-1))
        self._sync = sync
        self._file: BinaryIO | None = None
        self._file_name = ""
        self._length = 0
        self._unacknowledged: dict[str, int] = {}

    def append(self, exchange: Exchange) -> Place:
        """Write an answer and the request that brought it; where the answer will stand once flushed."""
        if self._length >= self._rotate_bytes:
            self._finish()
        if self._file is None:
            self._start(exchange.fetched_s)
        offset = self._length
        name, answer = answer_record(exchange, f"{self._file_name}#{offset}")
        request = request_record(exchange, f"{self._file_name}#{offset + len(answer)}", name)
        self._write(answer + request)
        return Place(self._file_name, offset, len(answer))

    def flush(self) -> dict[str, int]:
        """Let everything leave the process; the lengths by file that may be acknowledged since the last flush.

        There is more than one file when one was ended meanwhile.
        """
        if self._file is not None:
            self._file.flush()
            if self._sync:
                os.fsync(self._file.fileno())
        lengths, self._unacknowledged = self._unacknowledged, {}
        return lengths

    def close(self) -> dict[str, int]:
        """Flush and end the file."""
        self._finish()
        return self.flush()

    def _start(self, now_s: float) -> None:
        self._file_name = _file_name(self._name, self._serial)
        self._serial += 1
        # Exclusive: whatever has this name already is not ours to write to.
        self._file = (self._folder / self._file_name).open("xb", buffering=_BUFFER_BYTES)
        if self._sync:
            _sync_folder(self._folder)
        self._write(warcinfo_record(self._file_name, self._software, self._operator, now_s))

    def _write(self, data: bytes) -> None:
        assert self._file is not None
        self._file.write(data)
        self._length += len(data)
        self._unacknowledged[self._file_name] = self._length

    def _finish(self) -> None:
        if self._file is None:
            return
        with self._file as file:
            file.flush()
            if self._sync:
                os.fsync(file.fileno())
        self._file = None
        self._length = 0


def truncate_to(folder: Path, acknowledged: Mapping[str, int]) -> list[str]:
    """After a crash: cut every file of ours to its acknowledged length; what is damaged, in words.

    A file that was never acknowledged is removed: nothing refers to it. Files that have other names are left alone.
    """
    for path in _our_files(folder):
        length = acknowledged.get(path.name, 0)
        if length == 0:
            path.unlink()
        elif path.stat().st_size > length:
            os.truncate(path, length)
    return [words for file, length in sorted(acknowledged.items()) if (words := _shortfall(folder / file, length))]


def _shortfall(path: Path, acknowledged_bytes: int) -> str:
    size_bytes = path.stat().st_size if path.exists() else 0
    if size_bytes >= acknowledged_bytes:
        return ""
    return f"{path.name} has {size_bytes} bytes, but {acknowledged_bytes} were kept: put it back from a backup"


def _our_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if _OURS.fullmatch(path.name))


def _serials(folder: Path, name: str) -> list[int]:
    matches = (_OURS.fullmatch(path.name) for path in _our_files(folder))
    return [int(match[2]) for match in matches if match and match[1] == name]


def _file_name(name: str, serial: int) -> str:
    return f"vedette-{name}-{serial:05d}.warc.gz"


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
