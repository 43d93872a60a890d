"""Data folder: lock, open and read the state of a crawl; one process tree holds it at a time.

state.db   SQLite with a write-ahead log: known URLs, leases, pages, hosts, sites
urls       the known URLs as saved at a clean exit; rebuilt when missing
bands      the MinHash banding index over page content; rebuilt when missing or behind
warc/      fetched pages; warc/unacknowledged has data found there that no state refers to
shard      in a cluster: which shard the folder is
format     a number; a newer format is refused, an older one is upgraded
lock       held while a process and its children use the folder; has the number of the process
"""

import errno
import fcntl
import os
import re
import socket
import sqlite3
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO

import numpy as np

from vedette.adapters.archive.warc_writer import quarantine_unacknowledged
from vedette.adapters.crawl_store.migrations import NEWEST_FORMAT, upgrade_folder, write_format
from vedette.adapters.crawl_store.minhash_bands import BandTable
from vedette.adapters.crawl_store.store import CrawlStore, create_tables
from vedette.adapters.files.sqlite_file import DAMAGED, is_damage
from vedette.adapters.url_store.rows import create_url_tables
from vedette.adapters.url_store.store import UrlStore
from vedette.errors import StoreBusy, StoreCorrupt, StoreError, StoreNewer
from vedette.model import PARTITIONS
from vedette.parse.similarity.minhash import compute_bands

FORMAT = NEWEST_FORMAT
SHARD_FILE = "shard"
BATCH_SKETCHES = 10_000
MOVABLE = ("warc", "index")
# Of the state, for the coordinator: rows are looked up all over the file, and reading one again takes a system call.
CACHE_KIB = 16 << 10
MAX_ENDING_S = 60.0  # for the children of a process that was killed

_FOREIGN_RIGHTS = stat.S_IRWXO | stat.S_IWGRP
_NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


@dataclass(slots=True)
class State:
    """The open state of a data folder, for its one writer.

    ``clean`` means that the last user closed it properly; ``notices`` are messages for the operator about the start.
    """

    folder: Path
    db: sqlite3.Connection
    urls: UrlStore
    store: CrawlStore
    bands: BandTable
    clean: bool
    notices: tuple[str, ...]

    def commit(self) -> None:
        """Commit the open transaction of the data folder's state, if there is one."""
        with explain_errors(self.folder):
            if self.db.in_transaction:
                self.db.execute("COMMIT")

    def close(self, *, clean: bool) -> None:
        """Close the data folder's state; a clean close saves the next start a scan."""
        try:
            with explain_errors(self.folder):
                if clean:
                    self.store.set_value("end", "clean")
                self.commit()
                if clean:
                    self.urls.save_snapshot(self.folder / "urls")
                    self.bands.close()
        finally:
            self.db.close()


def lock_folder(folder: Path, *, in_cluster: bool = False) -> IO[str]:
    """Create the data folder if needed, check its format, and lock it for this process and its children.

    The folder of a shard is refused to all but its cluster: alone, it would crawl the hosts of all others.
    """
    if not in_cluster and (folder / SHARD_FILE).exists():
        raise StoreError(
            f"{folder} is a shard of a cluster: start it with vedette cluster join. "
            "Only read-only commands can access it directly"
        )
    with explain_errors(folder):
        _refuse_links(folder)
        check_format(folder)
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = (folder / "lock").open("a+")
        try:
            _take_lock(lock)
            check_format(folder)  # again: the last holder may have raised it
        except BlockingIOError:
            lock.close()
            raise StoreBusy(
                f"{folder} is in use by another vedette process: stop it, or choose another folder"
            ) from None
        except StoreError:
            lock.close()
            raise
        return lock


def _refuse_links(folder: Path) -> None:
    """Refuse a data folder with links to elsewhere, which would be written to, cut off and deleted there.

    The largest parts may be on another disk.
    """
    found = [Path(at, name) for at, folders, files in os.walk(folder) for name in (*folders, *files)]
    links = [path for path in found if path.is_symlink()]
    for path in (folder / name for name in MOVABLE):
        if path in links and path.is_dir():
            links.remove(path)
            links += [one for one in path.rglob("*") if one.is_symlink()]
    if links:
        raise StoreError(
            f"{links[0]} is a link to {str(links[0].readlink())!a}: replace it with its target; only "
            f"{' and '.join(MOVABLE)} can be links to other folders"
        )


def _take_lock(lock: IO[str]) -> None:
    """Lock an open lock file; if the process that locked it was killed, wait until its children have ended as well."""
    last_s = time.monotonic() + MAX_ENDING_S
    while True:
        with suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        if time.monotonic() > last_s or not _is_holder_gone(lock):
            raise BlockingIOError
        time.sleep(0.02)  # nothing signals that a lock is free
    lock.truncate(0)
    lock.write(f"{os.getpid()}\n")
    lock.flush()


def _is_holder_gone(lock: IO[str]) -> bool:
    lock.seek(0)
    holder = lock.read(20).strip()
    if not (holder.isascii() and holder.isdigit()):
        return False
    try:
        os.kill(int(holder), 0)
    except ProcessLookupError:
        return True
    except (OverflowError, PermissionError):
        return False
    return False


def open_state(
    folder: Path, owner: str, now_s: float, partitions: range = range(PARTITIONS), *, is_streamed: bool = False
) -> State:
    """Open the state of a locked data folder as its next epoch of ownership; undo half-finished work of a crash.

    A state that Litestream streams is checkpointed by it alone: a checkpoint by others between two of its steps makes
    the stream corrupt.
    """
    with explain_errors(folder):
        notices = upgrade_folder(folder, check_format(folder)) + _make_private(folder)
        (folder / "warc").mkdir(exist_ok=True)
        db = sqlite3.connect(folder / "state.db", isolation_level=None)
        try:
            if is_streamed:
                db.execute("PRAGMA wal_autocheckpoint = 0")
            _create_tables(db, folder)
            epoch = _claim_partitions(db, owner, now_s, partitions)
            store = CrawlStore(db)
            store.create_secret()
            clean = store.get_value("end") in {None, "clean"}
            store.set_value("end", "running")
            db.execute("COMMIT")
            image = folder / "urls"
            urls = UrlStore(db, epoch, image if clean else None)
            with suppress(FileNotFoundError):
                image.unlink()
            urls.requeue_expired(float("inf"))
            notices += quarantine_unacknowledged(folder / "warc", store.load_archive_lengths())
            bands = open_bands(folder / "bands", urls.secret, store, clean=clean)
            state = State(folder, db, urls, store, bands, clean, tuple(notices))
            state.commit()
        except BaseException:
            db.close()
            raise
        return state


def _make_private(folder: Path) -> list[str]:
    """Remove other users' permissions on a data folder, and its group's write permission; return what was changed.

    A group may keep its right to read, for backups.
    """
    mode = stat.S_IMODE(folder.stat().st_mode)
    if not mode & _FOREIGN_RIGHTS:
        return []
    try:
        folder.chmod(mode & ~_FOREIGN_RIGHTS)
    except PermissionError:
        return [f"{folder} is open to other users and belongs to one of them; run: chmod o=,g-w {folder}"]
    return [f"{folder} was open to other users; it no longer is (mode {mode & ~_FOREIGN_RIGHTS:o})"]


def open_bands(path: Path, secret: int, store: CrawlStore, *, clean: bool) -> BandTable:
    """Open the data folder's MinHash band table; rebuild it from all sketches unless it was closed cleanly."""
    bands = BandTable(path, secret)
    if clean and not bands.behind:
        return bands
    bands.reset()
    sketches = store.iter_sketches()
    while rows := list(islice(sketches, BATCH_SKETCHES)):
        ids, mins = np.array([id_ for id_, _ in rows], np.uint32), b"".join(sketch for _, sketch in rows)
        bands.match_or_add(ids, compute_bands(np.frombuffer(mins, np.uint8).reshape(len(rows), -1)))
    return bands


@contextmanager
def read_state(folder: Path) -> Iterator[sqlite3.Connection]:
    """Open ``state.db`` of a data folder to read one snapshot while it is written; migrate an older folder first."""
    with explain_errors(folder):
        db = _connect_readonly(folder)
    try:
        with explain_database_errors(folder):
            db.execute("BEGIN")
            db.execute("SELECT 1 FROM life").fetchone()
            yield db
    finally:
        db.close()


def _connect_readonly(folder: Path) -> sqlite3.Connection:
    if not (folder / "format").exists():
        raise StoreError(f"{folder} is not a data folder; specify one with --data")
    if check_format(folder) in range(1, FORMAT):
        with lock_folder(folder):
            upgrade_folder(folder, check_format(folder))
    return sqlite3.connect(f"{(folder / 'state.db').resolve().as_uri()}?mode=ro", uri=True, isolation_level=None)


def _create_tables(db: sqlite3.Connection, folder: Path) -> None:
    """Create the tables of a new data folder; a folder that has lost them is refused.

    To an empty state all archived pages are unacknowledged, and those are deleted after a while.
    """
    is_empty = not db.execute("SELECT 1 FROM sqlite_master").fetchone()
    if is_empty and any((folder / "warc").glob("*.warc.gz")):
        raise StoreCorrupt(
            f"{folder}/state.db is missing or empty: restore a backup, or choose another folder and import "
            f"{folder / 'warc'} there"
        )
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = NORMAL")
    db.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
    db.execute("BEGIN IMMEDIATE")
    create_url_tables(db)
    create_tables(db)
    if not (folder / "format").exists():
        write_format(folder, FORMAT)


def _claim_partitions(db: sqlite3.Connection, owner: str, now_s: float, partitions: range) -> int:
    """Claim the partitions of a data folder; the epoch distinguishes its writes from those of an earlier owner."""
    (last,) = db.execute("SELECT coalesce(max(epoch), 0) FROM ownership").fetchone()
    db.execute("DELETE FROM ownership")
    row = (partitions[0], partitions[-1], owner, last + 1, now_s + 3600.0)
    db.execute("INSERT INTO ownership VALUES (?, ?, ?, ?, ?)", row)
    return int(last) + 1


def check_format(folder: Path) -> int | None:
    """Return the data folder's format number, None if it has none yet; refuse a newer one before any change."""
    path = folder / "format"
    if not path.exists():
        return None
    text = path.read_text("utf-8", "replace").strip()
    if not re.fullmatch("[1-9][0-9]{0,8}", text):
        raise StoreCorrupt(f"{path} has {text[:40]!a} instead of a format number: this is not a data folder")
    if int(text) > FORMAT:
        raise StoreNewer(
            f"{folder} has format {text}, but this vedette only knows formats up to {FORMAT}: use a newer version"
        )
    return int(text)


@contextmanager
def explain_errors(folder: Path) -> Iterator[None]:
    """Turn file system and database errors of a data folder into messages that say what to do."""
    try:
        with explain_database_errors(folder):
            yield
    except OSError as error:
        why = error.strerror or str(error)
        if error.errno in _NO_SPACE:
            raise StoreError(f"{folder}: {why}. No committed data was lost. Free up disk space.") from error
        raise StoreError(f"{folder}: {why}. Choose a folder that you can write to.") from error


@contextmanager
def explain_database_errors(folder: Path) -> Iterator[None]:
    """Turn database errors of a data folder into messages that say what to do."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if is_damage(error):
            raise StoreCorrupt(_explain_unreadable(folder, error)) from error
        raise StoreError(
            f"{folder}: {error}. No committed data was lost. Free up disk space or check permissions."
        ) from error
    except DAMAGED as error:
        raise StoreCorrupt(_explain_unreadable(folder, error)) from error


def _explain_unreadable(folder: Path, error: Exception) -> str:
    return f"{folder}/state.db cannot be read ({error}): restore a backup, or choose another folder"


@contextmanager
def open_for_write(folder: Path, wall_s: float) -> Iterator[State]:
    """Open the state of a data folder for writing while no coordinator runs; commit at the end, or roll back.

    A folder whose last crawl was killed stays marked: the next crawl must be as careful as after a crash.
    """
    with lock_folder(folder):
        state = open_state(folder, socket.gethostname(), wall_s)
        try:
            yield state
        except BaseException:
            if state.db.in_transaction:
                state.db.execute("ROLLBACK")
            if state.clean:
                state.store.set_value("end", "clean")
            state.db.close()
            raise
        state.close(clean=state.clean)
