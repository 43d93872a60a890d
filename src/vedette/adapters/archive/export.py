"""Export of a data folder: known URLs as text or JSON lines, the archive as one WARC file.

One snapshot of the state is read, and a running crawl is not disturbed. Archive files may be deleted while they are
read (see ``retention``); records that still count are then found at their new location.
"""

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from math import isfinite
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from vedette.adapters.archive.warc_reader import read_member
from vedette.adapters.archive.warc_record import build_warcinfo_record
from vedette.adapters.archive.warc_writer import locate_archive
from vedette.adapters.crawl_store.data_folder import read_state
from vedette.engine.ports import UrlState

_STATES = {0: "waiting", **{int(fate): fate.name.lower() for fate in UrlState}}
_URLS = (
    "SELECT url.id, url.url, url.depth, url.found_s, page.status, page.fetched_s, page.changed_s, page.due_s, "
    "page.title, note.why FROM url LEFT JOIN page ON page.id = url.id LEFT JOIN note ON note.url_id = url.id "
    "ORDER BY url.id"
)
_FIELDS = ("depth", "found_s", "status", "fetched_s", "changed_s", "due_s", "title", "note")
_PLACES = (
    "SELECT page.id, url.url, file, offset, length FROM page JOIN url ON url.id = page.id "
    "WHERE file IS NOT NULL ORDER BY file, offset"
)
_PIECE_BYTES = 1 << 20

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class ExportResult:
    """Result of an export: how much was written, and what was missing, in words."""

    records: int
    size_bytes: int
    missing: tuple[str, ...] = ()


def export_urls_text(folder: Path) -> Iterator[str]:
    """Export every known URL as a line of text, in the order in which they were first seen."""
    with read_state(folder) as db:
        for (url,) in db.execute("SELECT url FROM url ORDER BY id"):
            yield f"{url}\n"


def export_urls_json(folder: Path) -> Iterator[str]:
    """Export every known URL as a JSON line with its depth, state and latest fetch; unknown fields are left out."""
    with read_state(folder) as db:
        fates = _load_fates(db)
        for id_, url, *values in db.execute(_URLS):
            known = {name: value for name, value in zip(_FIELDS, values, strict=True) if _has_value(value)}
            yield json.dumps({"url": url, "state": _STATES[int(fates[id_])], **known}) + "\n"


def _has_value(value: object) -> bool:
    return value is not None and value != "" and not (isinstance(value, float) and not isfinite(value))


def _load_fates(db: sqlite3.Connection) -> npt.NDArray[np.uint8]:
    """Load the final state of each URL by id for the export, 0 while it is queued; the last log entry counts."""
    (most,) = db.execute("SELECT coalesce(max(id), 0) FROM url").fetchone()
    fates = np.zeros(most + 1, np.uint8)
    rows = db.execute("SELECT url_id, fate FROM fate ORDER BY id")
    while batch := rows.fetchmany(20_000):
        for id_, fate in batch:
            fates[id_] = fate
    return fates


def export_warc(folder: Path, out: BinaryIO, progress: Progress) -> ExportResult:
    """Export all archive files, concatenated up to their acknowledged lengths, as one valid WARC file."""
    shortfalls: dict[str, int] = {}
    size = 0
    while left := [(file, length) for file, length in _list_archives(folder) if file not in shortfalls]:
        total = size + sum(length for _, length in left)
        for file, length in left:
            copied = _copy_archive(locate_archive(folder / "warc", file), length, out)
            shortfalls[file] = length - copied
            size += copied
            progress(size, total)
    # A file that retention deleted meanwhile is not missed.
    missing = (f"{lost} bytes of {file}" for file, _ in _list_archives(folder) if (lost := shortfalls.get(file, 0)))
    return ExportResult(len(shortfalls), size, tuple(missing))


def _list_archives(folder: Path) -> list[tuple[str, int]]:
    with read_state(folder) as db:
        return db.execute("SELECT file, length FROM archive ORDER BY newest_s, file").fetchall()


def _copy_archive(path: Path, length: int, out: BinaryIO) -> int:
    """Copy an archive file to the export and return how many of its bytes were available."""
    left = length
    if not path.exists():
        return 0
    with path.open("rb") as file:
        while left and (piece := file.read(min(left, _PIECE_BYTES))):
            out.write(piece)
            left -= len(piece)
    return length - left


def export_latest(folder: Path, out: BinaryIO, software: str, now_s: float, progress: Progress) -> ExportResult:
    """Export the latest version of each page as one WARC file, responses only."""
    start = build_warcinfo_record("latest.warc.gz", software, "", now_s)
    out.write(start)
    size, count = len(start), 0
    missing: list[str] = []
    with read_state(folder) as db:
        (total,) = db.execute("SELECT count(*) FROM page WHERE file IS NOT NULL").fetchone()
        for url, record in _iter_latest(folder, db):
            if record is None:
                missing.append(f"the copy of {url}")
                continue
            out.write(record)
            size, count = size + len(record), count + 1
            progress(count, total)
    return ExportResult(count, size, tuple(missing))


def _iter_latest(folder: Path, db: sqlite3.Connection) -> Iterator[tuple[str, bytes | None]]:
    for file, rows in groupby(db.execute(_PLACES), key=lambda row: row[2]):
        with _open_archive(locate_archive(folder / "warc", file)) as archive:
            for id_, url, _, offset, length in rows:
                record = read_member(archive, offset, length) if archive else None
                yield url, record if record is not None else _read_moved(folder, id_)


def _read_moved(folder: Path, id_: int) -> bytes | None:
    """Read the record of a page for the export after retention moved it to another archive file."""
    with read_state(folder) as db:
        row = db.execute("SELECT file, offset, length FROM page WHERE id = ?", (id_,)).fetchone()
    if row is None or row[0] is None:
        return None
    with _open_archive(locate_archive(folder / "warc", row[0])) as archive:
        return read_member(archive, *row[1:]) if archive else None


@contextmanager
def _open_archive(path: Path) -> Iterator[BinaryIO | None]:
    try:
        file = path.open("rb")
    except OSError:
        yield None
        return
    with file:
        yield file
