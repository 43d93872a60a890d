"""Spool of an observer, ``spool.db``: errands from home, observations until home has them, and last bodies of pages.

Everything that must survive ``kill -9`` is here. An errand is marked before its request is sent. If the observer is
killed before the response is stored, the errand is reported as failed rather than requested again, so that home can
decide. Bodies are kept up to a limit, and the least recently used ones are dropped first. Unreported observations are
never dropped, so no requests are sent above the limit.
"""

from collections.abc import Sequence
from pathlib import Path

from vedette.adapters.files.sqlite_file import SqliteFile, SqliteStore
from vedette.adapters.observers.wire import decode, encode
from vedette.engine.observers.messages import Errand, Observation

SPOOL_NAME = "spool.db"
_STEPS = (
    """
CREATE TABLE errand (
  number INTEGER PRIMARY KEY,
  errand BLOB NOT NULL,
  until_s REAL NOT NULL,
  is_sent INTEGER NOT NULL         -- its request was sent, or was about to be
) STRICT;
CREATE TABLE observation (
  number INTEGER PRIMARY KEY,
  observation BLOB NOT NULL
) STRICT;
CREATE TABLE copy (
  url TEXT PRIMARY KEY,
  digest TEXT NOT NULL,
  body BLOB NOT NULL,
  used_s REAL NOT NULL
) STRICT;
CREATE INDEX copy_used ON copy (used_s);
CREATE TABLE value (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
""",
    """
CREATE TABLE plan (
  number INTEGER PRIMARY KEY,
  host TEXT NOT NULL,
  errand BLOB NOT NULL,
  due_s REAL NOT NULL,
  until_s REAL NOT NULL
) STRICT;
""",
)
SPOOL_FILE = SqliteFile(
    SPOOL_NAME, _STEPS, "delete it: what was not reported is fetched again", ("synchronous = NORMAL",)
)
_SIZES = (
    "SELECT (SELECT coalesce(sum(length(observation)), 0) FROM observation), "
    "(SELECT coalesce(sum(length(body)), 0) FROM copy)"
)


class Spool(SqliteStore):
    """The spool of an observer in its folder."""

    FILE = SPOOL_FILE

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.unreported_bytes, self._copy_bytes = self._query(_SIZES)[0]

    def get_value(self, name: str) -> str:
        """Return a named value, or an empty string if there is none."""
        return next((str(value) for (value,) in self._query("SELECT value FROM value WHERE name = ?", name)), "")

    def set_value(self, name: str, value: str) -> None:
        """Set a named value."""
        with self._transaction() as db:
            db.execute("INSERT OR REPLACE INTO value VALUES (?, ?)", (name, value))

    def add_errands(self, errands: Sequence[tuple[Errand, float]]) -> None:
        """Add errands, each with the time until which it may be sent."""
        rows = [(one.number, encode(one), until_s) for one, until_s in errands]
        with self._transaction() as db:
            db.executemany("INSERT OR IGNORE INTO errand VALUES (?, ?, ?, 0)", rows)
            db.executemany("DELETE FROM plan WHERE number = ?", [(one.number,) for one, _ in errands])

    def save_plans(self, plans: Sequence[Errand], now_s: float) -> None:
        """Save the plan for times without home, instead of the last one."""
        rows = [(one.number, one.host, encode(one), now_s + one.after_s, now_s + one.valid_s) for one in plans]
        with self._transaction() as db:
            db.execute("DELETE FROM plan")
            db.executemany("INSERT INTO plan VALUES (?, ?, ?, ?, ?)", rows)

    def load_plans(self, now_s: float) -> list[Errand]:
        """Load the plan for times without home, as of now."""
        rows = self._query("SELECT errand, due_s, until_s FROM plan ORDER BY due_s")
        return [
            decode(Errand, data)._replace(after_s=due_s - now_s, valid_s=until_s - now_s)
            for data, due_s, until_s in rows
        ]

    def delete_plans(self, hosts: Sequence[str]) -> None:
        """Delete what is planned for some hosts."""
        with self._transaction() as db:
            db.executemany("DELETE FROM plan WHERE host = ?", [(host,) for host in hosts])

    def mark_sent(self, number: int) -> None:
        """Mark an errand before its request is sent."""
        with self._transaction() as db:
            db.execute("UPDATE errand SET is_sent = 1 WHERE number = ?", (number,))

    def load_errands(self) -> list[tuple[Errand, float, bool]]:
        """Load all errands: each with the time until which it may be sent, and whether it was sent."""
        rows = self._query("SELECT errand, until_s, is_sent FROM errand ORDER BY number")
        return [(decode(Errand, data), until_s, bool(sent)) for data, until_s, sent in rows]

    def delete_errands(self, numbers: Sequence[int]) -> None:
        """Delete errands that were returned."""
        with self._transaction() as db:
            db.executemany("DELETE FROM errand WHERE number = ?", [(number,) for number in numbers])

    def save_observation(self, observation: Observation, body: bytes | None, now_s: float, copy_bytes: int) -> None:
        """Save the outcome of an errand, and its body as the last copy of the page, within the limit for copies."""
        data = encode(observation)
        with self._transaction() as db:
            db.execute("DELETE FROM errand WHERE number = ?", (observation.number,))
            db.execute("INSERT OR REPLACE INTO observation VALUES (?, ?)", (observation.number, data))
            if body is not None:
                self._forget_copy(observation.url)
                db.execute("INSERT INTO copy VALUES (?, ?, ?, ?)", (observation.url, observation.digest, body, now_s))
                self._copy_bytes += len(body)
            self._drop_copies(copy_bytes)
        self.unreported_bytes += len(data)

    def load_observations(self, most: int, most_bytes: int) -> list[Observation]:
        """Load the oldest observations that home does not have, up to a number and size, but at least one."""
        found: list[Observation] = []
        size = 0
        for (data,) in self._db.execute("SELECT observation FROM observation ORDER BY number LIMIT ?", (most,)):
            size += len(data)
            if found and size > most_bytes:
                break
            found.append(decode(Observation, data))
        return found

    def delete_observations(self, numbers: Sequence[int]) -> None:
        """Delete observations that home has."""
        with self._transaction() as db:
            db.executemany("DELETE FROM observation WHERE number = ?", [(number,) for number in numbers])
        self.unreported_bytes = self._query(_SIZES)[0][0]

    def find_copy(self, url: str, digest: str) -> bytes | None:
        """Find the last body of a page, if it has this digest."""
        rows = self._query("SELECT body FROM copy WHERE url = ? AND digest = ?", url, digest)
        return rows[0][0] if rows else None

    def _forget_copy(self, url: str) -> None:
        gone = self._db.execute("DELETE FROM copy WHERE url = ? RETURNING length(body)", (url,)).fetchall()
        self._copy_bytes -= sum(size for (size,) in gone)

    def _drop_copies(self, most_bytes: int) -> None:
        while self._copy_bytes > most_bytes:
            (url,) = self._db.execute("SELECT url FROM copy ORDER BY used_s LIMIT 1").fetchone()
            self._forget_copy(url)
