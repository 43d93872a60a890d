"""Archive retention: keep the latest version of each page, and every version for some days.

Only whole files are deleted. A file that is old enough and contains few latest versions is rewritten first: these are
copied to a new file (series ``kept``, without their requests), the locations in the state are changed, and then the old
file is deleted. A file is never touched while a writer may still append to it, that is, while it is the latest of its
series.

Above a size limit, files are rewritten whatever their age, and when that is not enough, the least recently fetched
pages lose their copy. Their rows stay, with a note, and without the validators that would make the next fetch
conditional.

Every change of the state is committed before a file is deleted: a kill at any moment loses nothing that a page refers
to. The caller runs one ``step`` per second; each does a bounded amount of work.
"""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from vedette.adapters.archive.warc_reader import read_member
from vedette.adapters.archive.warc_writer import UNACKNOWLEDGED_DIR, WarcWriter, find_growing, locate_archive
from vedette.adapters.crawl_store.data_folder import State

GIVEN_UP = "its archived copy was deleted to keep the archive within store.max_size"
UNREADABLE = "its archived copy can no longer be read"

SERIES = "kept"
# Rewriting pays off when half of a file is obsolete; under pressure when an eighth is.
REWRITE_SHARE = 1 / 2
REWRITE_SHARE_UNDER_PRESSURE = 7 / 8
STEP_BYTES = 4 << 20
STEP_PAGES = 2000
STEP_FILES = 20
REST_STEPS = 600
# When copies must be dropped, drop a little more, so that it need not be done again at once.
SPARE_SHARE = 1 / 20

FileAction = Literal["keep", "rewrite", "delete"]


@dataclass(frozen=True, slots=True)
class RetentionPolicy:
    """How long and how much the archive retains; ``max_bytes`` 0 sets no limit."""

    keep_s: float
    max_bytes: int = 0


@dataclass(frozen=True, slots=True)
class ArchiveFile:
    """An archive file for retention: acknowledged length, newest record, and bytes of latest versions in it."""

    file: str
    length: int
    newest_s: float
    latest_bytes: int


def decide_file(stored: ArchiveFile, keeping: RetentionPolicy, now_s: float, *, pressed: bool) -> FileAction:
    """Decide whether retention keeps, rewrites or deletes an archive file that is no longer written to.

    >>> stored = ArchiveFile("a", 1000, newest_s=0.0, latest_bytes=400)
    >>> decide_file(stored, RetentionPolicy(keep_s=60.0), now_s=61.0, pressed=False)
    'rewrite'
    """
    if not pressed and now_s < stored.newest_s + keeping.keep_s:
        return "keep"
    if stored.latest_bytes == 0:
        return "delete"
    share = REWRITE_SHARE_UNDER_PRESSURE if pressed else REWRITE_SHARE
    return "rewrite" if stored.latest_bytes <= share * stored.length else "keep"


@dataclass(slots=True)
class Retention:
    """Apply archive retention file by file, in rounds with a pause in between."""

    state: State
    policy: RetentionPolicy
    software: str
    rotate_bytes: int = 1_000_000_000
    _round: list[str] = field(default_factory=list)
    _rewriting: ArchiveFile | None = None
    _writer: WarcWriter | None = None
    _rest: int = 0
    _running: bool = False
    _freed: bool = False
    _futile: bool = False

    def step(self, now_s: float, wall_s: float, *, roomy: bool = True) -> None:
        """Do a bounded step of archive retention; with a full disk, delete files but write none."""
        if self._rewriting is not None and roomy:
            self._rewrite_step(self._rewriting, now_s)
        elif self._round:
            self._scan_files(now_s, roomy=roomy)
        elif self._running:
            self._end_round(now_s)
        elif self._rest > 0 and (self._futile or not self._excess_bytes()):
            self._rest -= 1
        else:
            self._begin_round(wall_s)

    def abandon_file(self) -> None:
        """Skip an archive file that retention could not read or write until the next round."""
        self._rewriting = None
        self.close()

    def close(self) -> None:
        """Close the archive file that retention is writing; everything that counts in it is acknowledged."""
        if self._writer is not None:
            with suppress(OSError):
                self._writer.close()
            self._writer = None

    # rounds

    def _begin_round(self, wall_s: float) -> None:
        self._round = self._list_closed_files()
        self._running, self._freed = True, False
        _delete_old_files(self.state.folder / "warc" / UNACKNOWLEDGED_DIR, wall_s - self.policy.keep_s)

    def _end_round(self, now_s: float) -> None:
        self._running, self._rest = False, REST_STEPS
        excess = self._excess_bytes()
        self._futile = excess > 0 and not self._freed and not self._drop_oldest_copies(excess, now_s)

    def _scan_files(self, now_s: float, *, roomy: bool) -> None:
        """Scan archive files for one to delete or rewrite, a bounded number per retention step."""
        pressed = self._excess_bytes() > 0
        for _ in range(min(STEP_FILES, len(self._round))):
            stored = self._load_file(self._round.pop(0))
            found = decide_file(stored, self.policy, now_s, pressed=pressed)
            if found == "delete":
                self._delete(stored.file)
                return
            if found == "rewrite" and roomy:
                self._rewriting = stored
                return

    def _excess_bytes(self) -> int:
        """Return by how many bytes the archive exceeds the retention limit."""
        if not self.policy.max_bytes:
            return 0
        (total,) = self._db.execute("SELECT coalesce(sum(length), 0) FROM archive").fetchone()
        return max(int(total) - self.policy.max_bytes, 0)

    def _list_closed_files(self) -> list[str]:
        """List the archive files that no writer appends to any more, oldest first, for retention."""
        files = [row[0] for row in self._db.execute("SELECT file FROM archive ORDER BY newest_s, file")]
        open_files = find_growing(files)
        return [file for file in files if file not in open_files]

    def _load_file(self, file: str) -> ArchiveFile:
        length, newest_s = self._db.execute("SELECT length, newest_s FROM archive WHERE file = ?", (file,)).fetchone()
        (latest,) = self._db.execute("SELECT coalesce(sum(length), 0) FROM page WHERE file = ?", (file,)).fetchone()
        return ArchiveFile(file, length, newest_s, latest)

    # files

    def _delete(self, file: str) -> None:
        """Delete an archive file under retention.

        The commit must survive a power loss here, since what it replaces will be gone.
        """
        self.state.commit()
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.execute("DELETE FROM archive WHERE file = ?", (file,))
        self._db.execute("PRAGMA synchronous = NORMAL")
        locate_archive(self.state.folder / "warc", file).unlink(missing_ok=True)
        self._freed = True

    def _rewrite_step(self, stored: ArchiveFile, now_s: float) -> None:
        """Copy some latest versions to a new archive file and commit their locations; delete the old file last."""
        sql = "SELECT id, offset, length FROM page WHERE file = ? ORDER BY offset LIMIT ?"
        rows = self._db.execute(sql, (stored.file, STEP_PAGES)).fetchall()
        if rows:
            self._move_records(stored, rows, now_s)
            self.state.commit()
        else:
            self._rewriting = None
            self._delete(stored.file)

    def _move_records(self, stored: ArchiveFile, rows: list[tuple[int, int, int]], now_s: float) -> None:
        writer = self._open_writer()
        moved, broken, size = [], [], 0
        for id_, record in _read_records(locate_archive(self.state.folder / "warc", stored.file), rows):
            if record is None:
                broken.append(id_)
                continue
            place = writer.append_packed([record], now_s)
            moved.append((place.file, place.offset, id_))
            size += len(record)
            if size >= STEP_BYTES:
                break
        lengths = writer.flush()
        self._begin()
        self.state.store.acknowledge_archive(lengths, stored.newest_s)
        self._db.executemany("UPDATE page SET file = ?, offset = ? WHERE id = ?", moved)
        self._clear_copies(broken, UNREADABLE, now_s)

    def _open_writer(self) -> WarcWriter:
        if self._writer is None:
            folder = self.state.folder / "warc"
            self._writer = WarcWriter(folder, SERIES, self.software, rotate_bytes=self.rotate_bytes, sync=True)
        return self._writer

    # pages

    def _drop_oldest_copies(self, excess_bytes: int, now_s: float) -> bool:
        """Drop the archived copies of the least recently fetched pages, until the archive is within its limit."""
        # Only computed if needed: otherwise storing each refetched page would cost a third more.
        self._db.execute("CREATE INDEX IF NOT EXISTS page_fetched ON page (fetched_s) WHERE file IS NOT NULL")
        wanted = excess_bytes + self.policy.max_bytes * SPARE_SHARE
        ids: list[int] = []
        rows = self._db.execute("SELECT id, length FROM page WHERE file IS NOT NULL ORDER BY fetched_s LIMIT 100000")
        for id_, length in rows:
            if wanted <= 0:
                break
            ids.append(id_)
            wanted -= length
        self._begin()
        self._clear_copies(ids, GIVEN_UP, now_s)
        self.state.commit()
        return bool(ids)

    def _clear_copies(self, ids: Iterable[int], why: str, now_s: float) -> None:
        """Clear the archive locations and validators of pages whose copies retention dropped.

        Without validators the next response is complete; the digest still shows whether it is new.
        """
        sql = (
            "UPDATE page SET file = NULL, offset = NULL, length = NULL, payload_digest = '', etag = '', "
            "last_modified = '' WHERE id = ?"
        )
        for id_ in ids:
            self._db.execute(sql, (id_,))
            self.state.store.add_note(id_, why, now_s)

    @property
    def _db(self) -> sqlite3.Connection:
        return self.state.db

    def _begin(self) -> None:
        if not self._db.in_transaction:
            self._db.execute("BEGIN IMMEDIATE")


def _read_records(path: Path, rows: Iterable[tuple[int, int, int]]) -> Iterator[tuple[int, bytes | None]]:
    """Yield the compressed archive record of each page for a retention rewrite, None if unreadable."""
    if not path.exists():
        yield from ((id_, None) for id_, _, _ in rows)
        return
    with path.open("rb") as file:
        for id_, offset, length in rows:
            yield id_, read_member(file, offset, length)


def _delete_old_files(folder: Path, before_s: float) -> None:
    """Delete unacknowledged archive files that are older than the retention time."""
    if folder.is_dir():
        for path in sorted(folder.iterdir()):
            if path.is_file() and path.stat().st_mtime < before_s:
                path.unlink()
