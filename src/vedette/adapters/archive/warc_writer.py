"""WARC writer: WARC 1.1 files, one record per gzip member, each file written by one writer.

A writer starts a new file whenever it starts, and never opens an old one again. So a file has one author in one process
life, its end after a crash is simply the acknowledged length, and no stored offset can ever refer to another record.
The price is a short file per restart.

What ``flush`` returns may be acknowledged: those bytes have left the process and survive kill -9 (power loss too, if
the writer was created with ``sync``). On start ``quarantine_unacknowledged`` moves everything else aside. It deletes
nothing: usually the rest is the leftover of a crash, but if the state was restored from an older copy, or lost, it is
the only copy of pages that were once acknowledged, and the two cannot be distinguished with certainty.

Why not a library: a page of 21 kB with its request takes 0.17 ms CPU and 6.0 kB here. At that size fastwarc 1.1 takes
1.8 times as long (at its fastest level 1.2 times, and 31% more bytes), warcio 1.8 takes 5.8 times as long. Measure
with ``python bench/warc.py``.
"""

import os
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import BinaryIO

from vedette.adapters.archive.warc_record import (
    Exchange,
    build_answer_record,
    build_request_record,
    build_warcinfo_record,
)
from vedette.adapters.files.atomic import sync_folder
from vedette.engine.messages import ArchiveLocation
from vedette.errors import StoreCorrupt

UNACKNOWLEDGED_DIR = "unacknowledged"

_FILE_NAME = re.compile(r"vedette-([A-Za-z0-9._-]+)-(\d{5,})\.warc\.gz")
_BUFFER_BYTES = 1 << 20


class WarcWriter:
    """Append exchanges to WARC files ``vedette-NAME-SERIAL.warc.gz``; NAME is the only worker that uses it.

    A file is created by the first exchange that goes into it, and ended when it has reached ``rotate_bytes``. Serials
    grow from the highest in the folder. After an ``OSError`` (a full disk) the writer is unusable; what was
    acknowledged stays valid.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        software: str,
        operator: str = "",
        rotate_bytes: int = 1_000_000_000,
        *,
        sync: bool = False,
    ) -> None:
        if not _FILE_NAME.fullmatch(_format_file_name(name, 0)):
            raise ValueError(
                f"{name!r} cannot be used in a file name: use letters, digits, dots, dashes and underscores"
            )
        self._folder = folder
        self._name = name
        self._software = software
        self._operator = operator
        self._rotate_bytes = rotate_bytes
        self._serial = 1 + max(_list_serials(folder, name), default=-1)
        self._sync = sync
        self._file: BinaryIO | None = None
        self._file_name = ""
        self._length = 0
        self._unacknowledged: dict[str, int] = {}

    def append(self, exchange: Exchange) -> ArchiveLocation:
        """Append a response and its request to the WARC file; return the response's location once flushed."""
        self._ensure_file(exchange.fetched_s)
        offset = self._length
        name, answer = build_answer_record(exchange, f"{self._file_name}#{offset}")
        self._write(answer)
        if not exchange.is_rendered:
            self._write(build_request_record(exchange, f"{self._file_name}#{offset + len(answer)}", name))
        return ArchiveLocation(self._file_name, offset, len(answer))

    def append_packed(self, records: Sequence[bytes], now_s: float) -> ArchiveLocation:
        """Append WARC records that are already gzip members, the response first; return its location once flushed."""
        self._ensure_file(now_s)
        place = ArchiveLocation(self._file_name, self._length, len(records[0]))
        self._write(b"".join(records))
        return place

    def flush(self) -> dict[str, int]:
        """Flush the WARC files and return the length of each that may now be acknowledged.

        There is more than one if a file was ended meanwhile.
        """
        if self._file is not None:
            self._file.flush()
            if self._sync:
                os.fsync(self._file.fileno())
        lengths, self._unacknowledged = self._unacknowledged, {}
        return lengths

    def close(self) -> dict[str, int]:
        """Flush and close the WARC file."""
        self._close_file()
        return self.flush()

    def _ensure_file(self, now_s: float) -> None:
        if self._length >= self._rotate_bytes:
            self._close_file()
        if self._file is None:
            self._create_file(now_s)

    def _create_file(self, now_s: float) -> None:
        self._file_name = _format_file_name(self._name, self._serial)
        self._serial += 1
        # Exclusive: an existing file of this name is not ours to write to.
        self._file = (self._folder / self._file_name).open("xb", buffering=_BUFFER_BYTES)
        if self._sync:
            sync_folder(self._folder)
        self._write(build_warcinfo_record(self._file_name, self._software, self._operator, now_s))

    def _write(self, data: bytes) -> None:
        assert self._file is not None
        self._file.write(data)
        self._length += len(data)
        self._unacknowledged[self._file_name] = self._length

    def _close_file(self) -> None:
        if self._file is None:
            return
        with self._file as file:
            file.flush()
            if self._sync:
                os.fsync(file.fileno())
        self._file = None
        self._length = 0


def quarantine_unacknowledged(folder: Path, acknowledged: Mapping[str, int]) -> list[str]:
    """Truncate every WARC file of ours to its acknowledged length at a start; return anything unusual.

    The rest, and files that were never acknowledged, go to the folder ``unacknowledged``, where retention deletes them
    by age. Files with other names are ignored.
    """
    places = {locate_archive(folder, file): length for file, length in sorted(acknowledged.items())}
    unknown = [path for path in _list_files(folder) if not acknowledged.get(path.name)]
    for path in unknown:
        os.utime(path)  # its age counts from here, however long ago it was written
        path.rename(_find_free_name(path, ""))
    for path in _list_files(folder):
        if path.stat().st_size > acknowledged[path.name]:
            _move_tail(path, acknowledged[path.name])
    short = [words for path, length in places.items() if (words := _describe_shortfall(path, length))]
    return [f"{path.name} is unknown to the state; moved to {folder / UNACKNOWLEDGED_DIR}" for path in unknown] + short


def truncate_tail(folder: Path, acknowledged: Mapping[str, int], name: str) -> None:
    """Cut off what a dead WARC writer left unacknowledged, while the coordinator runs: nothing refers to it."""
    for path in _list_files(folder, name):
        length = acknowledged.get(path.name, 0)
        if not length:
            path.unlink()
        elif path.stat().st_size > length:
            os.truncate(path, length)


def parse_file_name(file: str) -> tuple[str, int] | None:
    """Parse a WARC file name into the writer's name and the serial; None if it is no file of ours.

    >>> parse_file_name("vedette-w0-00012.warc.gz")
    ('w0', 12)
    """
    match = _FILE_NAME.fullmatch(file)
    return (match[1], int(match[2])) if match else None


def locate_archive(folder: Path, file: str) -> Path:
    """Return the path of an archive file in a ``warc`` folder; a state that names a file elsewhere is not ours.

    Archive files are read, cut off, copied and deleted by these names, and a state may come from someone else.
    """
    if parse_file_name(file) is None:
        raise StoreCorrupt(f"{folder.parent}/state.db refers to an archive file {file[:80]!a}: restore a backup")
    return folder / file


def find_growing(files: Iterable[str]) -> frozenset[str]:
    """Find the WARC files that a writer may still append to: the latest of each series; others never change.

    >>> sorted(find_growing(["vedette-w0-00002.warc.gz", "vedette-w0-00003.warc.gz", "vedette-w1-00000.warc.gz"]))
    ['vedette-w0-00003.warc.gz', 'vedette-w1-00000.warc.gz']
    """
    latest: dict[str, tuple[int, str]] = {}
    for file in files:
        if series := parse_file_name(file):
            name, serial = series
            latest[name] = max(latest.get(name, (serial, file)), (serial, file))
    return frozenset(file for _, file in latest.values())


def _move_tail(path: Path, length: int) -> None:
    """Move the unacknowledged tail of a WARC file to quarantine.

    It is copied before it is cut off; a backup that shares the file's bytes keeps them.
    """
    tail = _find_free_name(path, f"-from-{length}")
    try:
        with path.open("rb") as whole, tail.open("xb") as rest:
            whole.seek(length)
            shutil.copyfileobj(whole, rest)
    except OSError:
        tail.unlink(missing_ok=True)
        raise
    if path.stat().st_nlink > 1:
        own = path.with_name(f"{path.name}.new")
        shutil.copyfile(path, own)
        os.truncate(own, length)
        own.replace(path)
    else:
        os.truncate(path, length)


def _find_free_name(path: Path, mark: str) -> Path:
    """Find a free file name in the folder of unacknowledged WARC data."""
    folder = path.parent / UNACKNOWLEDGED_DIR
    folder.mkdir(exist_ok=True)
    stem = path.name.removesuffix(".warc.gz") + mark
    names = (f"{stem}{f'-{number}' if number else ''}.warc.gz" for number in count())
    return next(folder / name for name in names if not (folder / name).exists())


def _describe_shortfall(path: Path, acknowledged_bytes: int) -> str:
    size_bytes = path.stat().st_size if path.exists() else 0
    if size_bytes >= acknowledged_bytes:
        return ""
    return f"{path.name} has {size_bytes} bytes, but {acknowledged_bytes} were acknowledged: restore it from a backup"


def _list_files(folder: Path, name: str | None = None) -> list[Path]:
    series = ((path, parse_file_name(path.name)) for path in folder.iterdir())
    return sorted(path for path, each in series if each and name in {None, each[0]})


def _list_serials(folder: Path, name: str) -> list[int]:
    series = (parse_file_name(path.name) for path in _list_files(folder))
    return [each[1] for each in series if each and each[0] == name]


def _format_file_name(name: str, serial: int) -> str:
    return f"vedette-{name}-{serial:05d}.warc.gz"
