"""``record.db`` of a data folder: what was asked and shown, what people did with it, and numbers over time.

SQLite with a write-ahead log. What is deleted is overwritten, not merely let go, and where somebody asks for something
to be forgotten the whole file is written anew. It has a number of its own, apart from the folder's format: it can be
thrown away, and the crawl goes on.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

from vedette.errors import StoreBusy, StoreCorrupt, StoreError, StoreNewer

__all__ = ["DAY_S", "HOUR_S", "RECORD", "hour_of", "move_aside", "open_record", "read_record", "record_said_plainly"]

RECORD = "record.db"
DAMAGED = "record-damaged-*.db*"
HOUR_S = 3600
DAY_S = 86_400
# How long a writer waits for the other one: for the recorder, or for somebody who lets things be forgotten.
BUSY_S = 10.0
LARGEST_WAL_BYTES = 64 << 20

# Each entry leads from one version to the next.
_STEPS = (
    """
CREATE TABLE slate (
  number INTEGER PRIMARY KEY,      -- in the order in which they came
  id TEXT NOT NULL UNIQUE,
  at_s REAL NOT NULL,
  query TEXT NOT NULL,             -- as it was typed
  words TEXT NOT NULL,             -- in the form in which queries are counted together
  visitor TEXT NOT NULL,
  page INTEGER NOT NULL,           -- of the results, from 1
  empty INTEGER NOT NULL,          -- 1 where there was no result
  doubt TEXT NOT NULL,             -- why it is not counted
  line BLOB NOT NULL               -- all of it, as it was logged, packed
) STRICT;
CREATE INDEX slate_at ON slate (at_s);
CREATE INDEX slate_asked ON slate (words, visitor, at_s);
CREATE INDEX slate_visitor ON slate (visitor);
CREATE INDEX slate_doubted ON slate (at_s, doubt) WHERE doubt <> '';
CREATE TABLE event (
  slate TEXT NOT NULL,
  kind TEXT NOT NULL,              -- view, click
  page INTEGER NOT NULL,           -- that was opened; 0 for a view
  at_s REAL NOT NULL,
  after_s REAL NOT NULL,
  visitor TEXT NOT NULL,
  doubt TEXT NOT NULL,
  PRIMARY KEY (slate, kind, page)
) STRICT, WITHOUT ROWID;
CREATE INDEX event_at ON event (at_s);
CREATE INDEX event_visitor ON event (visitor);
CREATE INDEX event_doubted ON event (at_s, doubt) WHERE doubt <> '';
CREATE TABLE asked (
  hour_s INTEGER NOT NULL,         -- when the hour began; after a year, the day
  words TEXT NOT NULL,
  searches INTEGER NOT NULL,
  visitors INTEGER NOT NULL,       -- different marks in that hour
  empty INTEGER NOT NULL,
  clicks INTEGER NOT NULL,
  query TEXT NOT NULL,             -- as it was last typed
  last_s REAL NOT NULL,
  PRIMARY KEY (hour_s, words)
) STRICT, WITHOUT ROWID;
CREATE INDEX asked_words ON asked (words);
CREATE TABLE hour (
  hour_s INTEGER PRIMARY KEY,
  searches INTEGER NOT NULL,
  empty INTEGER NOT NULL,
  views INTEGER NOT NULL,
  clicks INTEGER NOT NULL,
  opened INTEGER NOT NULL          -- searches of which at least one result was opened
) STRICT;
CREATE TABLE visit (
  visitor TEXT NOT NULL,
  hour_s INTEGER NOT NULL,
  searches INTEGER NOT NULL,
  clicks INTEGER NOT NULL,
  PRIMARY KEY (visitor, hour_s)
) STRICT, WITHOUT ROWID;
CREATE TABLE imported (
  words TEXT NOT NULL,
  at_s REAL NOT NULL,
  times INTEGER NOT NULL,
  PRIMARY KEY (words, at_s)
) STRICT, WITHOUT ROWID;
CREATE TABLE series (
  name TEXT NOT NULL,
  at_s REAL NOT NULL,
  value REAL NOT NULL,
  PRIMARY KEY (name, at_s)
) STRICT, WITHOUT ROWID;
CREATE TABLE folded (
  file TEXT PRIMARY KEY,
  at INTEGER NOT NULL,             -- how many of its bytes are in the tables
  blanked INTEGER NOT NULL         -- how many of these are overwritten in the file
) STRICT, WITHOUT ROWID;
CREATE TABLE life (what TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
""",
)


def hour_of(at_s: float) -> int:
    """When the hour of a moment began.

    >>> hour_of(7300.5)
    7200
    """
    return int(at_s // HOUR_S) * HOUR_S


def open_record(folder: Path) -> sqlite3.Connection:
    """To write, made or brought up to date where need be; a newer one is refused untouched."""
    with record_said_plainly(folder):
        if not (folder / RECORD).exists():  # to open and close a database that is in use would undo its locks
            (folder / RECORD).touch(mode=0o600)
        db = sqlite3.connect(folder / RECORD, timeout=BUSY_S, isolation_level=None)
        try:
            _known_version(db, folder)
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = NORMAL")
            db.execute("PRAGMA secure_delete = ON")
            db.execute(f"PRAGMA journal_size_limit = {LARGEST_WAL_BYTES}")
            _bring_up_to_date(db, folder)
        except BaseException:
            db.close()
            raise
        return db


@contextmanager
def read_record(folder: Path) -> Iterator[sqlite3.Connection | None]:
    """To read beside the writer; None where nothing was ever recorded."""
    path = folder / RECORD
    if not path.exists():
        yield None
        return
    with record_said_plainly(folder):
        db = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", timeout=BUSY_S, uri=True, isolation_level=None)
        try:
            yield db if _known_version(db, folder) else None
        finally:
            db.close()


def move_aside(folder: Path) -> Path:
    """A file that cannot be read makes way for a new one; where it is now."""
    names = (folder / f"record-damaged-{number}.db" for number in count(1))
    aside = next(path for path in names if not path.exists())
    (folder / RECORD).rename(aside)
    for end in ("-wal", "-shm"):
        with suppress(FileNotFoundError):
            (folder / f"{RECORD}{end}").rename(f"{aside}{end}")
    return aside


@contextmanager
def record_said_plainly(folder: Path) -> Iterator[None]:
    """Troubles of file system and database, in words that say what to do."""
    path = folder / RECORD
    try:
        yield
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
            raise StoreBusy(f"{path} is being written by another vedette: try again in a moment") from error
        raise StoreError(f"{path}: {error}; nothing committed is lost: make room, or check permissions") from error
    except sqlite3.DatabaseError as error:
        raise StoreCorrupt(f"{path} cannot be read ({error}): it may be deleted, searches are recorded anew") from error
    except OSError as error:
        raise StoreError(f"{error.filename or path}: {error.strerror}: make room, or check permissions") from error


def _known_version(db: sqlite3.Connection, folder: Path) -> int:
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if version > len(_STEPS):
        raise StoreNewer(
            f"{folder / RECORD} has version {version}, and this vedette knows versions up to {len(_STEPS)}: "
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
