"""Indexer store ``book.db``: anchor texts, aliases of URLs, title counts, and the progress of a generation.

One SQLite file in each generation, committed right after the index itself: after a crash the same changes are read
again, and the same rows are written.
"""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np

from vedette.adapters.files.sqlite_file import DAMAGED, execute_schemas
from vedette.errors import StoreError
from vedette.policy import Ints

FILE = "book.db"

_SCHEMA = """
CREATE TABLE IF NOT EXISTS anchor (
  target INTEGER NOT NULL,         -- fingerprint of a URL
  text TEXT NOT NULL,
  times INTEGER NOT NULL,          -- how many pages call it that
  PRIMARY KEY (target, text)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS known (
  print INTEGER PRIMARY KEY,       -- fingerprint of the URL of a page that is in the index
  page INTEGER NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS alias (
  print INTEGER PRIMARY KEY,       -- a URL that leads to another, or is a copy of it
  target INTEGER NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS alias_target ON alias (target);
CREATE TABLE IF NOT EXISTS title (
  host INTEGER NOT NULL,
  print INTEGER NOT NULL,
  pages INTEGER NOT NULL,          -- how many pages of the host have this title
  PRIMARY KEY (host, print)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS foreign_anchor (
  target INTEGER NOT NULL,
  text TEXT NOT NULL,
  times INTEGER NOT NULL,          -- of those counted in ``anchor``, how many pages of other shards call it that
  PRIMARY KEY (target, text)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS renamed (page INTEGER PRIMARY KEY) STRICT;
CREATE TABLE IF NOT EXISTS progress (what TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT;
"""

_NAME = "INSERT INTO anchor VALUES (?, ?, 1) ON CONFLICT DO UPDATE SET times = times + 1 RETURNING times"
_NAME_AGAIN = "INSERT INTO anchor VALUES (?, ?, 1) ON CONFLICT DO NOTHING RETURNING times"
_NAMES = (
    "SELECT text, sum(times) FROM anchor WHERE target IN (SELECT value FROM json_each(?)) "
    "GROUP BY text ORDER BY 2 DESC, 1 LIMIT ?"
)
MAX_ANCHOR_LENGTH = 120
# Anchor texts go all over the file; what does not fit is written before the commit, and read again.
CACHE_KIB = 16 << 10
MAX_ALIASES = 20
MAX_ANCHORS_READ = 200


class IndexerStore:
    """Indexer store: reads and writes ``book.db`` of an index generation."""

    def __init__(self, folder: Path) -> None:
        self._db = sqlite3.connect(folder / FILE, isolation_level=None)
        try:
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = NORMAL")
            self._db.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
            execute_schemas(self._db, _SCHEMA)
            self._db.execute("BEGIN IMMEDIATE")
        except BaseException:
            self._db.close()
            raise

    def commit(self) -> None:
        """Commit the indexer store, so that it survives the end of the process."""
        self._db.execute("COMMIT")
        self._db.execute("BEGIN IMMEDIATE")

    def close(self) -> None:
        """Close the indexer store; uncommitted changes are lost."""
        self._db.close()

    def get_progress(self, what: str) -> int:
        """Return the progress of an indexer task in a generation; 0 if it has not started."""
        row = self._db.execute("SELECT value FROM progress WHERE what = ?", (what,)).fetchone()
        return int(row[0]) if row else 0

    def set_progress(self, what: str, value: int) -> None:
        """Set the progress of an indexer task in a generation."""
        self._db.execute("INSERT OR REPLACE INTO progress VALUES (?, ?)", (what, value))

    # anchor texts

    def add_anchors(self, links: Iterable[tuple[int, str]], *, again: bool) -> list[int]:
        """Add anchor texts of a page's links to the indexer store; return the targets with a new text.

        ``again`` means that the page was counted before. The targets' pages are queued to be indexed again.
        """
        anchors = [(target, text[:MAX_ANCHOR_LENGTH]) for target, text in links if text]
        insert = _NAME_AGAIN if again else _NAME
        new = [target for target, text in anchors if self._db.execute(insert, (target, text)).fetchone() == (1,)]
        self._mark_renamed(new)
        return new

    def set_foreign_anchors(self, counts: Iterable[tuple[int, str, int]]) -> None:
        """Set how many pages of other shards call these URLs by these texts."""
        new = []
        for target, text, times in counts:
            sql = "SELECT times FROM foreign_anchor WHERE target = ? AND text = ?"
            (before,) = self._db.execute(sql, (target, text)).fetchone() or (0,)
            sql = "INSERT INTO anchor VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET times = times + excluded.times"
            self._db.execute(sql, (target, text, times - before))
            self._db.execute("INSERT OR REPLACE INTO foreign_anchor VALUES (?, ?, ?)", (target, text, times))
            if not before:
                new.append(target)
        self._mark_renamed(new)

    def _mark_renamed(self, targets: Sequence[int]) -> None:
        """Queue the pages at these URLs, or at their alias targets, to be indexed with a new anchor text."""
        self._db.executemany(
            "INSERT OR IGNORE INTO renamed SELECT page FROM known "
            "WHERE print = ?1 OR print = (SELECT target FROM alias WHERE print = ?1)",
            [(target,) for target in dict.fromkeys(targets)],
        )

    def pop_renamed(self, most: int) -> list[int]:
        """Return pages with new anchor texts and take them off the indexer store's queue."""
        ids = [row[0] for row in self._db.execute("SELECT page FROM renamed LIMIT ?", (most,))]
        self._db.executemany("DELETE FROM renamed WHERE page = ?", [(id_,) for id_ in ids])
        return ids

    def top_anchors(self, print_: int, most: int) -> tuple[tuple[str, int], ...]:
        """Return the most frequent anchor texts of a URL and its aliases, with their counts."""
        aliases = self._db.execute("SELECT print FROM alias WHERE target = ? LIMIT ?", (print_, MAX_ALIASES))
        prints = [print_, *(row[0] for row in aliases)]
        return tuple(self._db.execute(_NAMES, (json.dumps(prints), most)))

    # pages and aliases

    def add_page(self, print_: int, page: int) -> None:
        """Record in the indexer store that a page is in the index."""
        self._db.execute("INSERT OR REPLACE INTO known VALUES (?, ?)", (print_, page))

    def remove_page(self, print_: int) -> None:
        """Record in the indexer store that a page is no longer in the index."""
        self._db.execute("DELETE FROM known WHERE print = ?", (print_,))

    def find_page(self, print_: int) -> int:
        """Find the indexed page of a URL fingerprint in the indexer store; 0 if there is none."""
        row = self._db.execute("SELECT page FROM known WHERE print = ?", (print_,)).fetchone()
        return int(row[0]) if row else 0

    def add_alias(self, print_: int, target: int) -> None:
        """Record in the indexer store that a URL is an alias of another, which inherits its anchor texts."""
        self._db.execute("INSERT OR REPLACE INTO alias VALUES (?, ?)", (print_, target))
        self._mark_renamed([target])

    def remove_alias(self, print_: int) -> None:
        """Record in the indexer store that a URL is no longer an alias."""
        self._db.execute("DELETE FROM alias WHERE print = ?", (print_,))

    # titles that many pages have

    def count_title(self, host: int, print_: int, *, count: bool) -> int:
        """Return how many pages of the host have this title, by the indexer store; ``count`` adds one."""
        if count:
            sql = "INSERT INTO title VALUES (?, ?, 1) ON CONFLICT DO UPDATE SET pages = pages + 1"
            self._db.execute(sql, (host, print_))
        sql = "SELECT pages FROM title WHERE host = ? AND print = ?"
        row = self._db.execute(sql, (host, print_)).fetchone()
        return int(row[0]) if row else 0


def follow_aliases(folder: Path, prints: Ints) -> Ints:
    """Replace URL fingerprints that are aliases by their targets, one step, as of the indexer's last commit."""
    with _open_readonly(folder) as db:
        rows = db.execute("SELECT print, target FROM alias ORDER BY print").fetchall()
    if not rows or not len(prints):
        return prints
    aliases = np.array(rows, np.int64)
    places = np.minimum(np.searchsorted(aliases[:, 0], prints), len(aliases) - 1)
    return np.where(aliases[places, 0] == prints, aliases[places, 1], prints)


def read_anchors(folder: Path, prints: Sequence[int], most: int) -> list[tuple[int, str]]:
    """Read anchor texts of URLs from the indexer store as of its last commit: position of the URL, and text.

    At most ``most`` per URL, the most frequent among the first few hundred, so that a URL with a million texts costs no
    more.
    """
    found: list[tuple[int, str]] = []
    with _open_readonly(folder) as db:
        for place, print_ in enumerate(prints):
            rows = db.execute(
                "SELECT times, text FROM anchor WHERE target = ? LIMIT ?", (print_, MAX_ANCHORS_READ)
            ).fetchall()
            found += [(place, text) for _, text in sorted(rows, key=lambda row: (-row[0], row[1]))[:most]]
    return found


def find_store_damage(folder: Path, rows: int) -> str:
    """Return what is wrong with the indexer store of a generation whose page table has this many rows."""
    path = folder / FILE
    if not path.exists():
        return f"{FILE} is missing" if rows else ""
    try:
        with closing(sqlite3.connect(path)) as db:
            (verdict,) = db.execute("PRAGMA quick_check(1)").fetchone()
            last = db.execute("SELECT max(page) FROM known").fetchone()[0] if verdict == "ok" else 0
    except sqlite3.OperationalError as error:
        return f"{FILE} has no tables" if "no such table" in str(error) and rows else ""
    except DAMAGED as error:
        return f"{FILE} cannot be read ({error})"
    if verdict != "ok":
        return f"{FILE} is damaged ({' '.join(str(verdict).split())[:100]})"
    return "pages are missing" if (last or 0) >= max(rows, 1) else ""


def read_page_id(folder: Path, print_: int) -> int:
    """Read the indexed page of a URL from the indexer store, as of its last commit; 0 if there is none."""
    try:
        with _open_readonly(folder) as db:
            row = db.execute("SELECT page FROM known WHERE print = ?", (print_,)).fetchone()
    except (*DAMAGED, StoreError):  # it is just being created, or was released
        return 0
    return int(row[0]) if row else 0


@contextmanager
def _open_readonly(folder: Path) -> Iterator[sqlite3.Connection]:
    """Open the indexer store as of its last commit; a store that is gone raises ``StoreError``, at any time."""
    path = folder / FILE
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as db:
            yield db
    except sqlite3.OperationalError:
        if path.exists():
            raise
        raise StoreError(f"{path} no longer exists: a newer generation of the index has replaced it.") from None
