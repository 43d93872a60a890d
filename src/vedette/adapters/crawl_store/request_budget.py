"""Request budget ``requests.db``: requests of the day to each address and domain, counted by the fetchers.

The coordinator decides what is requested, and when. If a bug there, or in its clock, budget or state, assigns too much,
this is the last line of defense of other people's servers: no request is sent before it is counted here, and none
beyond the daily limit. All fetchers of a data folder count in one file, and a count survives ``kill -9``. If it cannot
be written, nothing is sent.

A day is a day of world time, in UTC. A clock that is set back does not start another budget.
"""

import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple, Protocol

from vedette.adapters.files.sqlite_file import SqliteFile, SqliteStore
from vedette.errors import StoreCorrupt, VedetteError
from vedette.model import registrable_domain
from vedette.timeutil import DAY_S, HOUR_S

REQUESTS_NAME = "requests.db"
MAX_DAYS_AHEAD = 2
_STEPS = (
    """
CREATE TABLE today (day INTEGER NOT NULL) STRICT;
INSERT INTO today VALUES (0);
CREATE TABLE spent (
  kind TEXT NOT NULL,              -- address, domain
  name TEXT NOT NULL,
  requests INTEGER NOT NULL,       -- sent today
  refused INTEGER NOT NULL,        -- not sent today because of the limit
  PRIMARY KEY (kind, name)
) STRICT, WITHOUT ROWID
""",
)
# A power cut may cost the last counts, never the file; a kill costs nothing.
REQUESTS_FILE = SqliteFile(REQUESTS_NAME, _STEPS, "it is replaced at the next start", ("synchronous = NORMAL",))
_REQUESTS = "SELECT requests FROM spent WHERE kind = ? AND name = ?"
_COUNT = "INSERT INTO spent VALUES (?, ?, 1, 0) ON CONFLICT DO UPDATE SET requests = requests + 1"
_REFUSE = "INSERT INTO spent VALUES (?, ?, 0, 1) ON CONFLICT DO UPDATE SET refused = refused + 1 RETURNING *"
_EXCEEDED = "SELECT * FROM spent WHERE refused > 0 ORDER BY refused DESC, kind, name"
Key = tuple[str, str]


class ExceededLimit(NamedTuple):
    """An address or domain that reached the daily limit: requests sent today, and refusals since."""

    kind: str
    name: str
    requests: int
    refused: int

    def __str__(self) -> str:
        return f"the daily limit of {self.requests} requests to {self.kind} {self.name} is used up"

    def find_retry_s(self, now_s: float) -> float:
        """Return when to try again: with the next day, or in an hour if that is sooner.

        >>> ExceededLimit("domain", "a.test", 9, 1).find_retry_s(3 * DAY_S - 60.0) / DAY_S
        3.0
        """
        return min((now_s // DAY_S + 1) * DAY_S, now_s + HOUR_S)


class Refusal(Protocol):
    """Why a request may not be sent now; the text is empty if that is no trouble."""

    def find_retry_s(self, now_s: float) -> float:
        """Return when to try again."""


class RequestBudget(SqliteStore):
    """The daily requests of a data folder's fetchers, at most ``limit`` to each address and registrable domain."""

    FILE = REQUESTS_FILE

    def __init__(self, folder: Path, limit: int) -> None:
        with _lock_directory(folder):
            try:
                super().__init__(folder)
                self._check_file()
            except StoreCorrupt:
                self.FILE.move_aside(folder)
                super().__init__(folder)
        self._limit = limit

    def spend(self, host: str, address: str, now_s: float) -> Refusal | None:
        """Count a request that is about to be sent; return what forbids it, if anything does."""
        keys = (("address", address), ("domain", registrable_domain(host)))
        with self._transaction() as db:
            self._set_day(db, int(now_s // DAY_S))
            refusal = next((one for key in keys if (one := self._check(db, key)) is not None), None)
            if refusal is None:
                db.executemany(_COUNT, keys)
        return refusal

    def _check(self, db: sqlite3.Connection, key: Key) -> Refusal | None:
        """Check whether one more request to an address or domain is allowed."""
        return self._refuse(db, key) if self._count(db, key) >= self._limit else None

    @staticmethod
    def _count(db: sqlite3.Connection, key: Key) -> int:
        row = db.execute(_REQUESTS, key).fetchone()
        return 0 if row is None else int(row[0])

    def _refuse(self, db: sqlite3.Connection, key: Key) -> ExceededLimit:
        return ExceededLimit(*db.execute(_REFUSE, key).fetchone())._replace(requests=self._limit)

    def _set_day(self, db: sqlite3.Connection, day: int) -> None:
        """Start the counts of another day; those of a later one, before the clock was set back, go on.

        They also go on when that day comes again: a clock that goes back and forth at midnight gets one budget. A day
        that is far ahead was a wrong one.
        """
        (counted,) = db.execute("SELECT day FROM today").fetchone()
        if counted < day:
            self._forget(db)
        if counted < day or counted - day > MAX_DAYS_AHEAD:
            db.execute("UPDATE today SET day = ?", (day,))

    def _forget(self, db: sqlite3.Connection) -> None:
        """Forget the counts of a day that is over."""
        db.execute("DELETE FROM spent")

    def _check_file(self) -> None:
        ((verdict,),) = self._query("PRAGMA quick_check(1)")
        if verdict != "ok":
            self.close()
            raise StoreCorrupt(str(verdict))


def read_exceeded(folder: Path) -> tuple[ExceededLimit, ...]:
    """Read which addresses and domains reached the daily limit; none where that cannot be read."""
    with suppress(VedetteError):
        return tuple(ExceededLimit(*row) for row in REQUESTS_FILE.query(folder, _EXCEEDED))
    return ()


@contextmanager
def _lock_directory(folder: Path) -> Iterator[None]:
    """Let one fetcher at a time open, and if needed replace, the file."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
