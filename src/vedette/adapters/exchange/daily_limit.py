"""Daily limit of a cluster: how many requests each shard may still send today to an address or a domain.

A shard reserves requests in PostgreSQL in batches before it sends them, and counts sent requests in its own
``requests.db``. So all shards together never exceed the limit, even if a machine is lost: its reserved requests count
as sent. A shard that passes on an address returns the requests that it did not use. If a fetcher has no reserved
requests left for a host, the host waits until the shard's exchanger has reserved more.
"""

import sqlite3
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from vedette.adapters.crawl_store.request_budget import Key, Refusal, RequestBudget
from vedette.timeutil import DAY_S

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[Any]

# A reservation is the limit divided by this; the next one is made when half of it is left.
CHUNKS = 50
RETRY_WALL_S = 0.4
_SCHEMA = """
CREATE TABLE IF NOT EXISTS reserved (
  kind TEXT NOT NULL,
  name TEXT NOT NULL,
  requests INTEGER NOT NULL,       -- that this shard may send today, with those that it sent
  is_wanted INTEGER NOT NULL,      -- more are needed
  is_used_up INTEGER NOT NULL,     -- the cluster has no more
  PRIMARY KEY (kind, name)
) STRICT, WITHOUT ROWID
"""
_WANTED = "CREATE INDEX IF NOT EXISTS wanted ON reserved (kind, name) WHERE is_wanted"
_WANT = "INSERT INTO reserved VALUES (?, ?, 0, 1, 0) ON CONFLICT DO UPDATE SET is_wanted = 1, is_used_up = 0"
_ADD = """
INSERT INTO reserved VALUES (?, ?, ?, 0, ?)
ON CONFLICT DO UPDATE SET requests = requests + excluded.requests, is_wanted = 0, is_used_up = excluded.is_used_up
"""


class AwaitedReservation(NamedTuple):
    """A request waits until the shard has reserved more of the daily limit, for ``wait_s`` of world time."""

    wait_s: float

    def __str__(self) -> str:
        return ""

    def find_retry_s(self, now_s: float) -> float:
        """Return when to try again."""
        return now_s + self.wait_s


class SharedRequestBudget(RequestBudget):
    """The requests per day that a shard's fetchers may send: at most those reserved. ``limit`` is the cluster's."""

    def __init__(self, folder: Path, limit: int, speed: float = 1.0) -> None:
        super().__init__(folder, limit)
        self._chunk, self._wait_s = max(limit // CHUNKS, 1), RETRY_WALL_S * speed
        with self._transaction() as db:
            db.execute(_SCHEMA)
            db.execute(_WANTED)

    def list_wanted(self) -> list[Key]:
        """List the addresses and domains for which more requests should be reserved."""
        return [(kind, name) for kind, name in self._query("SELECT kind, name FROM reserved WHERE is_wanted")]

    def list_unknown(self, keys: Iterable[Key]) -> list[Key]:
        """List those of the given addresses and domains for which nothing was reserved today."""
        sql = "SELECT 1 FROM reserved WHERE kind = ? AND name = ?"
        return [key for key in keys if not self._query(sql, *key)]

    def add_reserved(self, reserved: Mapping[Key, int], day: int) -> None:
        """Add requests reserved on a day; 0 means that the cluster has used up the limit."""
        with self._transaction() as db:
            if db.execute("SELECT day FROM today").fetchone() == (day,):
                db.executemany(_ADD, [(*key, number, number == 0) for key, number in reserved.items()])

    def take_unused(self, addresses: Collection[str]) -> dict[Key, int]:
        """Take back unused reserved requests for addresses, to give them to other shards."""
        unused: dict[Key, int] = {}
        with self._transaction() as db:
            for address in addresses:
                key = ("address", address)
                row = db.execute("SELECT requests FROM reserved WHERE kind = ? AND name = ?", key).fetchone()
                if row is not None:
                    sent = self._count(db, key)
                    unused[key] = int(row[0]) - sent
                    db.execute("UPDATE reserved SET requests = ? WHERE kind = ? AND name = ?", (sent, *key))
        return unused

    def _check(self, db: sqlite3.Connection, key: Key) -> Refusal | None:
        sql = "SELECT requests, is_wanted, is_used_up FROM reserved WHERE kind = ? AND name = ?"
        reserved, is_wanted, is_used_up = db.execute(sql, key).fetchone() or (0, 0, 0)
        left = reserved - self._count(db, key)
        if not is_wanted and (left <= 0 or (left <= self._chunk // 2 and not is_used_up)):
            db.execute(_WANT, key)
        if left > 0:
            return None
        return self._refuse(db, key) if is_used_up else AwaitedReservation(self._wait_s)

    def _forget(self, db: sqlite3.Connection) -> None:
        super()._forget(db)
        db.execute("DELETE FROM reserved")


def reserve_requests(connection: "Connection", day: int, keys: Collection[Key], limit: int) -> dict[Key, int]:
    """Reserve some requests for each of these addresses and domains; return how many were granted.

    The transaction must begin with ``fence``.
    """
    if not keys:
        return {}
    columns = [[key[0] for key in sorted(set(keys))], [key[1] for key in sorted(set(keys))]]
    sql = """
        INSERT INTO vedette.daily_requests
        SELECT %s, kind, name, 0 FROM unnest(%s::text[], %s::text[]) AS wanted (kind, name) ON CONFLICT DO NOTHING
    """
    connection.execute(sql, (day, *columns))
    sql = """
        WITH before AS (
            SELECT kind, name, reserved FROM vedette.daily_requests
            WHERE day = %(day)s AND (kind, name) IN (SELECT * FROM unnest(%(kinds)s::text[], %(names)s::text[]))
            ORDER BY kind, name FOR UPDATE)
        UPDATE vedette.daily_requests AS known
        SET reserved = greatest(before.reserved, least(before.reserved + %(chunk)s, %(limit)s)) FROM before
        WHERE known.day = %(day)s AND known.kind = before.kind AND known.name = before.name
        RETURNING known.kind, known.name, known.reserved - before.reserved
    """
    values = {"day": day, "kinds": columns[0], "names": columns[1], "chunk": max(limit // CHUNKS, 1), "limit": limit}
    return {(kind, name): number for kind, name, number in connection.execute(sql, values)}


def return_requests(connection: "Connection", day: int, unused: Mapping[Key, int]) -> None:
    """Return requests that were reserved today and not sent."""
    rows = [(number, day, *key) for key, number in sorted(unused.items()) if number > 0]
    sql = "UPDATE vedette.daily_requests SET reserved = reserved - %s WHERE day = %s AND kind = %s AND name = %s"
    with connection.cursor() as cursor:
        cursor.executemany(sql, rows)


def drop_old_days(connection: "Connection", day: int) -> None:
    """Delete reservations of past days."""
    connection.execute("DELETE FROM vedette.daily_requests WHERE day < %s", (day - 2,))


def find_day(now_s: float) -> int:
    """Return the day of a world time."""
    return int(now_s // DAY_S)
