"""Data folder: lock, open and read the state of a crawl; one process tree holds it at a time.

state.db   SQLite with a write-ahead log: known URLs, leases, pages, hosts, sites
urls       the known URLs as saved at a clean exit; rebuilt when missing
bands      the MinHash banding index over page content; rebuilt when missing or behind
warc/      fetched pages; warc/unacknowledged has data found there that no state refers to
format     a number; a newer format is refused, an older one is upgraded
lock       held while a process uses the folder
"""

import errno
import fcntl
import re
import socket
import sqlite3
import stat
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
from vedette.adapters.url_store.rows import create_url_tables
from vedette.adapters.url_store.store import UrlStore
from vedette.errors import StoreBusy, StoreCorrupt, StoreError, StoreNewer
from vedette.model import PARTITIONS
from vedette.parse.similarity.minhash import compute_bands

FORMAT = NEWEST_FORMAT
BATCH_SKETCHES = 10_000

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


def lock_folder(folder: Path) -> IO[str]:
    """Create the data folder if needed, check its format, and lock it for this process and its children."""
    with explain_errors(folder):
        check_format(folder)
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = (folder / "lock").open("a")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
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


def open_state(folder: Path, owner: str, now_s: float) -> State:
    """Open the state of a locked data folder as its next epoch of ownership; undo half-finished work of a crash."""
    with explain_errors(folder):
        notices = upgrade_folder(folder, check_format(folder)) + _make_private(folder)
        (folder / "warc").mkdir(exist_ok=True)
        db = sqlite3.connect(folder / "state.db", isolation_level=None)
        try:
            _create_tables(db, folder)
            epoch = _claim_partitions(db, owner, now_s)
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
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = NORMAL")
    db.execute("BEGIN IMMEDIATE")
    create_url_tables(db)
    create_tables(db)
    if not (folder / "format").exists():
        write_format(folder, FORMAT)


def _claim_partitions(db: sqlite3.Connection, owner: str, now_s: float) -> int:
    """Claim all partitions of a data folder; the epoch distinguishes its writes from those of an earlier owner."""
    (last,) = db.execute("SELECT coalesce(max(epoch), 0) FROM ownership").fetchone()
    db.execute("DELETE FROM ownership")
    db.execute("INSERT INTO ownership VALUES (0, ?, ?, ?, ?)", (PARTITIONS - 1, owner, last + 1, now_s + 3600.0))
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
        raise StoreError(
            f"{folder}: {error}. No committed data was lost. Free up disk space or check permissions."
        ) from error
    except sqlite3.DatabaseError as error:
        raise StoreCorrupt(
            f"{folder}/state.db cannot be read ({error}): restore a backup, or choose another folder"
        ) from error


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
