"""Observer store ``observers.db``: errands that home gave to observers, their outcomes, and the costs of links.

Only the observer hub writes to it. An errand is identified by its URL until the coordinator has its outcome, so if the
hub is killed, no page is fetched twice, and no outcome is lost.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

from vedette.adapters.files.sqlite_file import SqliteFile, SqliteStore
from vedette.adapters.observers.wire import decode, encode
from vedette.engine.observers.messages import Observation

OBSERVERS_NAME = "observers.db"
_STEPS = (
    """
CREATE TABLE errand (
  number INTEGER PRIMARY KEY AUTOINCREMENT,  -- never used again
  url TEXT NOT NULL UNIQUE,
  host TEXT NOT NULL,
  observer TEXT NOT NULL,          -- who has it; empty while it waits
  epoch INTEGER NOT NULL,          -- of the host's assignment when it was given away
  outcome BLOB                     -- the observation, until the coordinator has it
) STRICT;
CREATE INDEX errand_host ON errand (host);
CREATE INDEX errand_observer ON errand (observer);
CREATE TABLE contact (
  observer TEXT PRIMARY KEY,
  sequence INTEGER NOT NULL,       -- of its last report
  heard_s REAL NOT NULL,
  lease_until_s REAL NOT NULL,
  facts TEXT NOT NULL              -- its links and checks, as JSON
) STRICT;
CREATE TABLE observed (
  url TEXT PRIMARY KEY,
  observer TEXT NOT NULL,
  at_s REAL NOT NULL               -- last reported; its pages are fetched again if it turns out to lie
) STRICT;
CREATE INDEX observed_by ON observed (observer);
""",
)
OBSERVERS_FILE = SqliteFile(OBSERVERS_NAME, _STEPS, "delete it: what observers have not reported is fetched again")
_ADD = "INSERT INTO errand (url, host, observer, epoch) VALUES (?, ?, '', 0) ON CONFLICT DO NOTHING"
_OBSERVED = "INSERT OR REPLACE INTO observed VALUES (?, ?, ?)"


class ErrandRow(NamedTuple):
    """A stored errand: its observer (empty if it is waiting), its epoch, and its outcome if there is one."""

    number: int
    url: str
    host: str
    observer: str
    epoch: int
    outcome: Observation | None


class ContactRow(NamedTuple):
    """The last report of an observer: its number and time, the end of its lease, and the measurements."""

    observer: str
    sequence: int = 0
    heard_s: float = 0.0
    lease_until_s: float = 0.0
    facts: str = "{}"


class ObserverStore(SqliteStore):
    """The errands and contacts of a data folder's observers."""

    FILE = OBSERVERS_FILE

    def open_transaction(self) -> AbstractContextManager[sqlite3.Connection]:
        """Open a transaction for changes that must be saved together, such as a report and the reply to it."""
        return self._transaction()

    def add_errands(self, errands: Sequence[tuple[str, str]]) -> None:
        """Add errands, as URL and host; existing ones are not changed."""
        self._db.executemany(_ADD, errands)

    def find_errands(self, urls: Sequence[str]) -> Iterator[ErrandRow]:
        """Find errands by their URLs."""
        for url in urls:
            yield from self._load("WHERE url = ?", url)

    def find_errand(self, number: int) -> ErrandRow | None:
        """Find an errand by its number."""
        return next(self._load("WHERE number = ?", number), None)

    def list_answered(self) -> list[ErrandRow]:
        """List the errands whose outcomes the coordinator may not have."""
        return list(self._load("WHERE outcome IS NOT NULL"))

    def list_waiting(self, host: str, most: int) -> list[ErrandRow]:
        """List waiting errands of a host, oldest first."""
        return list(self._load("WHERE host = ? AND observer = '' ORDER BY number LIMIT ?", host, most))

    def list_out(self, observer: str) -> list[ErrandRow]:
        """List an observer's errands."""
        return list(self._load("WHERE observer = ? AND outcome IS NULL", observer))

    def give(self, numbers: Sequence[int], observer: str, epoch: int) -> None:
        """Give errands to an observer under their host's epoch; an empty name takes them back."""
        sql = "UPDATE errand SET observer = ?, epoch = ? WHERE number = ? AND outcome IS NULL"
        self._db.executemany(sql, [(observer, epoch, number) for number in numbers])

    def free_stale(self, host: str, epoch: int) -> None:
        """Free the errands of a host that were given out under an earlier assignment."""
        sql = "UPDATE errand SET observer = '', epoch = 0 WHERE host = ? AND outcome IS NULL AND epoch NOT IN (0, ?)"
        self._db.execute(sql, (host, epoch))

    def save_outcome(self, outcome: Observation, observer: str, now_s: float) -> None:
        """Save the outcome of an errand."""
        self._db.execute("UPDATE errand SET outcome = ? WHERE number = ?", (encode(outcome), outcome.number))
        self._db.execute(_OBSERVED, (outcome.url, observer, now_s))

    def delete_errands(self, urls: Sequence[str]) -> None:
        """Delete errands whose outcomes the coordinator has, or that it has taken back."""
        self._db.executemany("DELETE FROM errand WHERE url = ?", [(url,) for url in urls])

    def get_contact(self, observer: str) -> ContactRow:
        """Return the last contact of an observer."""
        rows = self._query("SELECT * FROM contact WHERE observer = ?", observer)
        return ContactRow(*rows[0]) if rows else ContactRow(observer)

    def save_contact(self, row: ContactRow) -> None:
        """Save the last contact of an observer."""
        self._db.execute("INSERT OR REPLACE INTO contact VALUES (?, ?, ?, ?, ?)", row)

    def take_observed(self, observer: str, most: int) -> list[str]:
        """Take URLs that an observer reported, so that they can be fetched again."""
        sql = "SELECT url FROM observed WHERE observer = ? LIMIT ?"
        urls = [url for (url,) in self._query(sql, observer, most)]
        self._db.executemany("DELETE FROM observed WHERE url = ?", [(url,) for url in urls])
        return urls

    def _load(self, where: str, *values: float | str) -> Iterator[ErrandRow]:
        rows = self._query(f"SELECT number, url, host, observer, epoch, outcome FROM errand {where}", *values)  # noqa: S608 - our own clauses
        for row in rows:
            yield ErrandRow._make((*row[:-1], None if row[-1] is None else decode(Observation, row[-1])))


def read_contacts(folder: Path) -> dict[str, ContactRow]:
    """Read the last contacts of all observers by name, while the hub may be writing."""
    return {row[0]: ContactRow(*row) for row in OBSERVERS_FILE.query(folder, "SELECT * FROM contact")}
