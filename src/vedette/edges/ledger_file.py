"""``ledger.db`` of a data folder: what was shown of sponsored results, who owes what for it, and counts for reports.

SQLite with a write-ahead log, every commit on the disk before it is answered. Each server process writes, one at a
time. Entries are only ever added: the database itself refuses to change or drop one, and to hold or close a showing
twice. It has a number of its own, as ``record.db`` has.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vedette.errors import StoreBusy, StoreCorrupt, StoreError, StoreNewer

__all__ = ["LEDGER", "ledger_said_plainly", "open_ledger", "read_ledger"]

LEDGER = "ledger.db"
# A search waits for it: rather no ad than a slow page.
BUSY_S = 2.0
LARGEST_WAL_BYTES = 16 << 20

# Each entry leads from one version to the next.
_STEPS = (
    """
CREATE TABLE entry (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  kind TEXT NOT NULL,              -- held, charged, refused, let go
  token TEXT NOT NULL,             -- of the showing
  payer TEXT NOT NULL,             -- the campaign
  day TEXT NOT NULL,               -- whose budget it is of
  amount TEXT NOT NULL,            -- exact
  at_s REAL NOT NULL,              -- wall time, as all times here
  reason TEXT NOT NULL             -- why a click was refused
) STRICT;
-- Held once, and then closed once.
CREATE UNIQUE INDEX entry_once ON entry (token, kind = 'held');
CREATE TRIGGER entry_stays BEFORE UPDATE ON entry BEGIN SELECT raise(ABORT, 'entries are only added'); END;
CREATE TRIGGER entry_lasts BEFORE DELETE ON entry BEGIN SELECT raise(ABORT, 'entries are only added'); END;
CREATE TABLE balance (
  payer TEXT NOT NULL,
  day TEXT NOT NULL,
  charged TEXT NOT NULL,           -- what all entries add up to
  held TEXT NOT NULL,
  PRIMARY KEY (payer, day)
) STRICT, WITHOUT ROWID;
CREATE TABLE showing (
  token TEXT PRIMARY KEY,
  at_s REAL NOT NULL,
  day TEXT NOT NULL,
  payer TEXT NOT NULL,
  ad INTEGER NOT NULL,
  phrase TEXT NOT NULL,            -- the target that took the query
  slot INTEGER NOT NULL,           -- from 0
  score REAL NOT NULL,
  propensity REAL NOT NULL,
  price TEXT NOT NULL,             -- of a click
  reason TEXT NOT NULL,            -- why it was chosen
  closed TEXT NOT NULL,            -- what became of it; empty while it is open
  said TEXT NOT NULL,              -- why its click was refused
  mark TEXT NOT NULL               -- of the address that clicked, good for one day
) STRICT, WITHOUT ROWID;
CREATE INDEX showing_open ON showing (at_s) WHERE closed = '';
CREATE INDEX showing_at ON showing (at_s);
CREATE INDEX showing_mark ON showing (payer, day, mark) WHERE mark <> '';
CREATE TABLE tally (
  day TEXT NOT NULL,
  ad INTEGER NOT NULL,
  phrase TEXT NOT NULL,
  payer TEXT NOT NULL,
  shown INTEGER NOT NULL,
  views REAL NOT NULL,             -- showings by how much their slots are seen
  clicked INTEGER NOT NULL,        -- and charged
  charged TEXT NOT NULL,
  lost_budget INTEGER NOT NULL,    -- queries that it would have taken part in with more money
  lost_rank INTEGER NOT NULL,
  lost_reserve INTEGER NOT NULL,
  PRIMARY KEY (day, ad, phrase)
) STRICT, WITHOUT ROWID;
CREATE TABLE asked (
  day TEXT NOT NULL,
  hour INTEGER NOT NULL,           -- where the operator is
  phrase TEXT NOT NULL,
  times INTEGER NOT NULL,
  PRIMARY KEY (day, hour, phrase)
) STRICT, WITHOUT ROWID;
CREATE TABLE refusal (
  day TEXT NOT NULL,
  payer TEXT NOT NULL,             -- empty where nobody's token was shown
  reason TEXT NOT NULL,
  times INTEGER NOT NULL,
  PRIMARY KEY (day, payer, reason)
) STRICT, WITHOUT ROWID
""",
)


def open_ledger(folder: Path) -> sqlite3.Connection:
    """To write, made or brought up to date where need be; a newer one is refused untouched."""
    path = folder / LEDGER
    with ledger_said_plainly(folder):
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
def read_ledger(folder: Path) -> Iterator[sqlite3.Connection | None]:
    """One moment of it, beside the writers; None where nothing was ever shown."""
    path = folder / LEDGER
    if not path.exists():
        yield None
        return
    with ledger_said_plainly(folder):
        db = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", timeout=BUSY_S, uri=True, isolation_level=None)
        try:
            db.execute("BEGIN")
            yield db if _known_version(db, folder) else None
        finally:
            db.close()


@contextmanager
def ledger_said_plainly(folder: Path) -> Iterator[None]:
    """Troubles of file system and database, in words that say what to do."""
    path = folder / LEDGER
    try:
        yield
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
            raise StoreBusy(f"{path} is being written by another vedette: try again in a moment") from error
        raise StoreError(f"{path}: {error}; nothing committed is lost: make room, or check permissions") from error
    except sqlite3.DatabaseError as error:
        raise StoreCorrupt(f"{path} cannot be read ({error}): restore it, for it says who owes what") from error
    except OSError as error:
        raise StoreError(f"{error.filename or path}: {error.strerror}: make room, or check permissions") from error


def _known_version(db: sqlite3.Connection, folder: Path) -> int:
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if version > len(_STEPS):
        raise StoreNewer(
            f"{folder / LEDGER} has version {version}, and this vedette knows versions up to {len(_STEPS)}: "
            "use a newer one"
        )
    return int(version)


def _bring_up_to_date(db: sqlite3.Connection, folder: Path) -> None:
    """In one transaction; whoever comes second finds it done."""
    if _known_version(db, folder) == len(_STEPS):
        return
    db.execute("BEGIN IMMEDIATE")
    for step in _STEPS[_known_version(db, folder) :]:
        for statement in _statements(step):
            db.execute(statement)
    db.execute(f"PRAGMA user_version = {len(_STEPS)}")
    db.execute("COMMIT")


def _statements(step: str) -> Iterator[str]:
    """Cut where a statement is whole: those of triggers have semicolons within."""
    text = ""
    for line in step.splitlines(keepends=True):
        text += line
        if sqlite3.complete_statement(text):
            yield text
            text = ""
    if text.strip():
        yield text
