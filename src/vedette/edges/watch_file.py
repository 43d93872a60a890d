"""``watch.db`` of a data folder: the pages that were new, who was to be told of which, and what became of it.

SQLite with a write-ahead log, every commit on the disk before it is answered: what the indexer has written here is
dropped from the keeper's news. Three processes write, each for a moment: the indexer what is new, the herald what is
told, and whoever tests a webhook. It has a number of its own, as ``record.db`` has.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

from vedette.errors import StoreBusy, StoreCorrupt, StoreError, StoreNewer

__all__ = ["WATCHES", "move_aside", "open_watches", "read_watches", "watches_said_plainly"]

WATCHES = "watch.db"
BUSY_S = 10.0
LARGEST_WAL_BYTES = 16 << 20

# Each entry leads from one version to the next.
_STEPS = (
    """
CREATE TABLE once (
  print INTEGER PRIMARY KEY,       -- of the URL: a page is told of once, whatever is built anew
  at_s REAL NOT NULL
) STRICT;
CREATE TABLE fresh (
  print INTEGER PRIMARY KEY,
  page INTEGER NOT NULL,
  found_s REAL NOT NULL,
  how TEXT NOT NULL,
  via TEXT NOT NULL,               -- the URL of the page that named it
  at_s REAL NOT NULL
) STRICT;
CREATE TABLE moved (
  print INTEGER PRIMARY KEY,       -- of the URL that a known page leads to by now
  at_s REAL NOT NULL
) STRICT;
CREATE TABLE item (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  page INTEGER NOT NULL,
  url TEXT NOT NULL,
  title TEXT NOT NULL,
  snippet TEXT NOT NULL,
  found_s REAL NOT NULL,
  how TEXT NOT NULL,
  via TEXT NOT NULL,
  born_s REAL,                     -- what the page says of its date
  told_s REAL NOT NULL,
  private TEXT NOT NULL            -- the site with whose secrets it was fetched, where it was
) STRICT;
CREATE TABLE match (
  watch TEXT NOT NULL,             -- the mark of a watch
  seq INTEGER NOT NULL,
  PRIMARY KEY (watch, seq)
) STRICT, WITHOUT ROWID;
CREATE TABLE delivery (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,         -- as the receiver sees it, the same at every try
  watch TEXT NOT NULL,
  first INTEGER NOT NULL,          -- the items from this one
  last INTEGER NOT NULL,           -- to that one, as far as they match; 0 for a test
  at_s REAL NOT NULL,              -- wall time, as all times of deliveries
  next_s REAL,                     -- when it is tried next; none where it is over
  tries INTEGER NOT NULL,
  status INTEGER NOT NULL,         -- what the receiver last answered; 0 for nothing
  error TEXT NOT NULL,             -- why the last try failed; empty where it did not
  ended_s REAL
) STRICT;
CREATE INDEX delivery_next ON delivery (next_s) WHERE next_s IS NOT NULL;
CREATE INDEX delivery_watch ON delivery (watch, number)
""",
)


def open_watches(folder: Path) -> sqlite3.Connection:
    """To write, made or brought up to date where need be; a newer one is refused untouched."""
    path = folder / WATCHES
    with watches_said_plainly(folder):
        if not path.exists():  # to open and close a database that is in use would undo its locks
            path.touch(mode=0o600)
        db = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
        try:
            _known_version(db, folder)
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = FULL")
            db.execute(f"PRAGMA journal_size_limit = {LARGEST_WAL_BYTES}")
            _bring_up_to_date(db, folder)
        except BaseException:
            db.close()
            raise
        return db


@contextmanager
def read_watches(folder: Path) -> Iterator[sqlite3.Connection | None]:
    """To read beside the writers; None where nothing was ever new."""
    path = folder / WATCHES
    if not path.exists():
        yield None
        return
    with watches_said_plainly(folder):
        db = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", timeout=BUSY_S, uri=True, isolation_level=None)
        try:
            yield db if _known_version(db, folder) else None
        finally:
            db.close()


def move_aside(folder: Path) -> Path:
    """A file that cannot be read makes way for a new one; where it is now."""
    names = (folder / f"watch-damaged-{number}.db" for number in count(1))
    aside = next(path for path in names if not path.exists())
    (folder / WATCHES).rename(aside)
    for end in ("-wal", "-shm"):
        with suppress(FileNotFoundError):
            (folder / f"{WATCHES}{end}").rename(f"{aside}{end}")
    return aside


@contextmanager
def watches_said_plainly(folder: Path) -> Iterator[None]:
    """Troubles of file system and database, in words that say what to do."""
    path = folder / WATCHES
    try:
        yield
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
            raise StoreBusy(f"{path} is being written by another vedette: try again in a moment") from error
        raise StoreError(f"{path}: {error}; nothing committed is lost: make room, or check permissions") from error
    except sqlite3.DatabaseError as error:
        raise StoreCorrupt(f"{path} cannot be read ({error}): it may be deleted, new pages are told anew") from error
    except OSError as error:
        raise StoreError(f"{error.filename or path}: {error.strerror}: make room, or check permissions") from error


def _known_version(db: sqlite3.Connection, folder: Path) -> int:
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if version > len(_STEPS):
        raise StoreNewer(
            f"{folder / WATCHES} has version {version}, and this vedette knows versions up to {len(_STEPS)}: "
            "use a newer one"
        )
    return int(version)


def _bring_up_to_date(db: sqlite3.Connection, folder: Path) -> None:
    """In one transaction; whoever comes second finds it done."""
    if _known_version(db, folder) == len(_STEPS):
        return
    db.execute("BEGIN IMMEDIATE")
    for step in _STEPS[_known_version(db, folder) :]:
        for statement in step.split(";\n"):
            db.execute(statement)
    db.execute(f"PRAGMA user_version = {len(_STEPS)}")
    db.execute("COMMIT")
