"""The observers and their hosts, in ``state.db``: written by the coordinator, read by the observer hub.

Missing tables are created, so the folder's format does not change. The caller commits. Keys are not stored: they are
derived from the folder's secret, the observer's name and its generation.
"""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from vedette.adapters.files.sqlite_file import execute_schemas

_SCHEMA = """
CREATE TABLE IF NOT EXISTS observer (
  name TEXT PRIMARY KEY,
  generation INTEGER NOT NULL,     -- of its key: each enrolment has another
  secret_sites TEXT NOT NULL,      -- whose credentials it gets, as a JSON list of their starts
  added_s REAL NOT NULL,
  revoked_s REAL,
  why TEXT NOT NULL,               -- it was revoked
  is_auto INTEGER NOT NULL DEFAULT 0  -- whether it gets hosts that are faster from there
) STRICT;
CREATE TABLE IF NOT EXISTS observed_host (
  host TEXT PRIMARY KEY,
  observer TEXT NOT NULL,          -- empty for a host that was brought home, and why
  epoch INTEGER NOT NULL,          -- of the assignment; no two have the same
  since_s REAL NOT NULL,
  why TEXT NOT NULL,
  by_hand INTEGER NOT NULL,        -- whether an operator chose it, so that costs do not change it
  next TEXT                        -- who gets it once its observer has let go: an observer, or empty for home
) STRICT;
"""
_HAS_TABLES = "SELECT count(*) FROM sqlite_schema WHERE name IN ('observer', 'observed_host') AND type = 'table'"
_EPOCH_KEY = "observer_epoch"
_SAVE_EPOCH = "INSERT INTO life VALUES (?, '1') ON CONFLICT DO UPDATE SET value = value + 1 RETURNING value"


class ObserverRow(NamedTuple):
    """An enrolled observer; ``secret_sites`` are the private sites whose credentials it may have.

    An ``is_auto`` one also gets hosts that no one assigned, if they are faster from there.
    """

    name: str
    generation: int
    secret_sites: tuple[str, ...] = ()
    added_s: float = 0.0
    revoked_s: float | None = None
    why: str = ""
    is_auto: bool = False


class ObservedHostRow(NamedTuple):
    """A host and its observer, empty for home: since when, why, and who gets it next (None if it stays)."""

    host: str
    observer: str
    epoch: int
    since_s: float
    why: str
    by_hand: bool = False
    next: str | None = None


def create_observer_tables(connection: sqlite3.Connection) -> None:
    """Create missing tables of observers."""
    execute_schemas(connection, _SCHEMA)
    if "is_auto" not in {name for _, name, *_ in connection.execute("PRAGMA table_info(observer)")}:
        connection.execute("ALTER TABLE observer ADD COLUMN is_auto INTEGER NOT NULL DEFAULT 0")


class ObserverRegistry:
    """The observers of a data folder and the hosts assigned to them, over ``state.db``."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection

    def has_tables(self) -> bool:
        """Check whether ``state.db`` has the tables; an older one gets them when a coordinator opens it."""
        return bool(self._db.execute(_HAS_TABLES).fetchone()[0] == 2)

    def list_observers(self) -> list[ObserverRow]:
        """List all observers by name, including revoked ones."""
        rows = self._db.execute("SELECT * FROM observer ORDER BY name") if self.has_tables() else ()
        found = [ObserverRow(name, number, tuple(json.loads(sites)), *rest) for name, number, sites, *rest in rows]
        return [row._replace(is_auto=bool(row.is_auto)) for row in found]

    def find_observer(self, name: str) -> ObserverRow | None:
        """Find an observer that has not been revoked."""
        return next((row for row in self.list_observers() if row.name == name and row.revoked_s is None), None)

    def save_observer(self, row: ObserverRow) -> None:
        """Save a new or changed observer."""
        values = row._replace(secret_sites=json.dumps(row.secret_sites))  # type: ignore[arg-type]  # as stored
        self._db.execute("INSERT OR REPLACE INTO observer VALUES (?, ?, ?, ?, ?, ?, ?)", values)

    def list_hosts(self) -> list[ObservedHostRow]:
        """List the hosts of observers, sorted by name."""
        return [row for row in self._list_rows() if row.observer]

    def list_kept(self) -> list[ObservedHostRow]:
        """List the hosts that an operator assigned to home, by name."""
        return [row for row in self._list_rows() if not row.observer and row.by_hand]

    def find_host(self, host: str) -> ObservedHostRow | None:
        """Find who observes a host, and why; None if no observer ever did."""
        return next((row for row in self._list_rows() if row.host == host), None)

    def assign(self, hosts: Sequence[str], observer: str, now_s: float, why: str, *, by_hand: bool) -> None:
        """Assign hosts to an observer, or back to home (empty).

        A host of another observer is handed over once that observer has released it.
        """
        known = {row.host: row for row in self._list_rows()}
        for host in hosts:
            row = known.get(host)
            if row is None or (observer and not row.observer):
                self._save(ObservedHostRow(host, observer, self._take_epoch(), now_s, why, by_hand))
            elif row.observer == observer:
                self._save(row._replace(why=why, by_hand=by_hand, next=None))
            else:
                self._save(row._replace(next=observer, why=why, by_hand=by_hand))

    def release(self, hosts: Iterable[str], now_s: float) -> None:
        """Hand over hosts that their observer has released."""
        known = {row.host: row for row in self.list_hosts()}
        for row in (known[host] for host in hosts if host in known and known[host].next is not None):
            place = row.next if row.next and self.find_observer(row.next) is not None else ""
            self._save(row._replace(observer=place, epoch=self._take_epoch(), since_s=now_s, next=None))

    def drop_hosts(self, observer: str) -> list[str]:
        """Take all hosts away from an observer immediately, and return them."""
        rows = self._db.execute("DELETE FROM observed_host WHERE observer = ? RETURNING host", (observer,))
        return sorted(host for (host,) in rows)

    def _list_rows(self) -> list[ObservedHostRow]:
        rows = self._db.execute("SELECT * FROM observed_host ORDER BY host") if self.has_tables() else ()
        return [ObservedHostRow(*row)._replace(by_hand=bool(row[5])) for row in rows]

    def _save(self, row: ObservedHostRow) -> None:
        self._db.execute("INSERT OR REPLACE INTO observed_host VALUES (?, ?, ?, ?, ?, ?, ?)", row)

    def _take_epoch(self) -> int:
        return int(self._db.execute(_SAVE_EPOCH, (_EPOCH_KEY,)).fetchone()[0])
