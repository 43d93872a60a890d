"""Gain store ``gains.db``: how much each fetch improved search, measured by the indexer for the coordinator.

index/gains.db   beside the generations, so that a new generation goes on with the same list

The indexer is its only writer. The coordinator stores in the state how far it has read (``seq``), and requests what
came since; reading drops nothing, and several may read. The list is bounded: when it is too long, the oldest are
dropped.

Sequence numbers start at the creation time of the file, in microseconds. So they always grow, even if the index was
lost and is rebuilt, and a reader with an old number misses nothing.
"""

import sqlite3
import time
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any, Literal, NamedTuple

from vedette.adapters.files.sqlite_file import DAMAGED

FILE = "gains.db"
MAX_KEPT = 200_000
TRIM_EVERY = 10_000

_SCHEMA = """
CREATE TABLE IF NOT EXISTS gain (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  page INTEGER NOT NULL,           -- whose fetch it was
  fetched_s REAL NOT NULL,
  what TEXT NOT NULL,              -- first, again, gone, names
  gain REAL NOT NULL,              -- by the scores of texts
  by_links REAL NOT NULL,          -- by the importance of pages
  views REAL                       -- how often the page is shown now, where that was found out
) STRICT;
"""
_SCALE_SCHEMA = """
CREATE TABLE IF NOT EXISTS scale (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  per_view REAL NOT NULL           -- what a view of any result brings, in the unit of gains
) STRICT;
"""
_SINCE = "SELECT seq, page, fetched_s, what, gain, by_links, views FROM gain WHERE seq > ? ORDER BY seq LIMIT ?"
_APPEND = "INSERT INTO gain (page, fetched_s, what, gain, by_links, views) VALUES (?, ?, ?, ?, ?, ?)"

# A first fetch; a later one that found a change; one that found it gone; its anchor texts for other pages.
GainKind = Literal["first", "again", "gone", "names"]


class Gain(NamedTuple):
    """The search gain of one fetch, Delta-Q_A (``index.quality.gains``), in views of one search, by answer quality.

    A fetch may have two rows: one for the page itself, one for its anchor texts for others (``names``). A page with a
    new anchor text has a row with a gain of 0 and its new ``views``, which are None if unknown.
    """

    seq: int
    page: int
    fetched_s: float
    what: GainKind
    gain: float
    by_links: float
    views: float | None


class GainStore:
    """Writer of the gain store; appended gains are durable and visible after the next commit."""

    def __init__(self, folder: Path, most: int = MAX_KEPT) -> None:
        self._most = most
        self._pending: list[tuple[object, ...]] = []
        self._since_trim = 0
        self._db = _open_or_recreate(folder / FILE)

    def append(self, gains: Iterable[Gain]) -> None:
        """Append search gains to the gain store; it assigns the sequence numbers, whatever ``seq`` says."""
        self._pending += [gain[1:] for gain in gains]

    def save_scale(self, per_view: float) -> None:
        """Save the value of a view of any result, in the unit of gains."""
        self._db.execute("INSERT OR REPLACE INTO scale VALUES (1, ?)", (per_view,))

    def commit(self) -> None:
        """Commit the appended search gains; the file is locked only for this moment."""
        if not self._pending:
            return
        with self._db:
            self._db.execute("BEGIN IMMEDIATE")
            self._db.executemany(_APPEND, self._pending)
            self._trim(len(self._pending))
        self._pending.clear()

    def close(self) -> None:
        """Close the gain store; uncommitted gains are lost."""
        self._db.close()

    def _trim(self, more: int) -> None:
        """Delete the oldest search gains occasionally, when the gain store is too long."""
        self._since_trim += more
        if self._since_trim >= min(TRIM_EVERY, self._most):
            self._since_trim = 0
            sql = "DELETE FROM gain WHERE seq <= (SELECT seq FROM gain ORDER BY seq DESC LIMIT 1 OFFSET ?)"
            self._db.execute(sql, (self._most,))


def read_gains_since(index: Path, seq: int, most: int) -> list[Gain]:
    """Return the next search gains after a sequence number, oldest first; 0 is before all.

    Each query uses its own connection: the file may be recreated between two of them. Nothing is returned if there is
    no gain store yet.
    """
    return [Gain(*row) for row in _query(index, _SINCE, seq, most)]


def read_scale(index: Path) -> float | None:
    """Return the value of a view of any result, in the unit of gains; None if it was not measured yet."""
    rows = _query(index, "SELECT per_view FROM scale")
    return float(rows[0][0]) if rows else None


def _query(index: Path, sql: str, *values: int) -> list[tuple[Any, ...]]:
    path = index / FILE
    if not path.exists():
        return []
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as db:
            return db.execute(sql, values).fetchall()
    except DAMAGED:  # it is just being created, or was released
        return []


def _open_or_recreate(path: Path) -> sqlite3.Connection:
    """Open the gain store file; recreate a damaged one, since nothing else depends on it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        return _connect(path)
    except sqlite3.OperationalError:  # it is in use, or not writable
        raise
    except DAMAGED:
        for each in sorted(path.parent.glob(f"{path.name}*")):
            each.unlink()
        return _connect(path)


def _connect(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = NORMAL")
    with db:
        db.execute("BEGIN IMMEDIATE")
        db.execute(_SCHEMA)
        db.execute(_SCALE_SCHEMA)
        if not db.execute("SELECT 1 FROM sqlite_sequence WHERE name = 'gain'").fetchone():
            db.execute("INSERT INTO sqlite_sequence VALUES ('gain', ?)", (time.time_ns() // 1000,))
    return db
