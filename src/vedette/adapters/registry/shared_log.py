"""Search logs that gateways share in PostgreSQL, so that each gateway has all searches and clicks."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from vedette.adapters.registry.database import fetch_row

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[Any]

# A gateway that was offline for longer misses what the others recorded before.
KEEP_DAYS = 7
MAX_ROWS = 200
# Line numbers become visible in order, because readers continue after the last number they saw.
_LOCK = 0x7665_6C6F
_SCHEMA = """
CREATE TABLE IF NOT EXISTS vedette.shared_log (
  number bigserial PRIMARY KEY,
  gateway text NOT NULL,
  lines bytea NOT NULL,
  at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE TABLE IF NOT EXISTS vedette.shared_log_place (
  gateway text NOT NULL,
  file text NOT NULL,                  -- of its own log; empty for the number up to which it has the others' lines
  place bigint NOT NULL,
  PRIMARY KEY (gateway, file)
);
"""


def create_tables(connection: "Connection") -> None:
    """Create missing tables; several gateways may do so at once."""
    fetch_row(connection, "SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
    connection.execute(_SCHEMA)


def load_places(connection: "Connection", gateway: str) -> dict[str, int]:
    """Load how much of its own log files a gateway has shared, and up to which line it has the others' logs."""
    rows = connection.execute("SELECT file, place FROM vedette.shared_log_place WHERE gateway = %s", (gateway,))
    return dict(rows.fetchall())


def save_places(connection: "Connection", gateway: str, places: Mapping[str, int], gone: Iterable[str]) -> None:
    """Save the places of a gateway, and drop those of deleted files."""
    sql = """
        INSERT INTO vedette.shared_log_place VALUES (%s, %s, %s)
        ON CONFLICT (gateway, file) DO UPDATE SET place = EXCLUDED.place
    """
    with connection.cursor() as cursor:
        cursor.executemany(sql, [(gateway, file, place) for file, place in places.items()])
    sql = "DELETE FROM vedette.shared_log_place WHERE gateway = %s AND file = ANY(%s)"
    connection.execute(sql, (gateway, list(gone)))


def share_lines(connection: "Connection", gateway: str, lines: Iterable[bytes]) -> None:
    """Share lines of a gateway's log, and delete lines that all gateways had time to read."""
    fetch_row(connection, "SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
    sql = "INSERT INTO vedette.shared_log (gateway, lines) VALUES (%s, %s)"
    with connection.cursor() as cursor:
        cursor.executemany(sql, [(gateway, each) for each in lines])
    connection.execute(f"DELETE FROM vedette.shared_log WHERE at < clock_timestamp() - interval '{KEEP_DAYS} days'")  # noqa: S608 - our number


def read_lines(connection: "Connection", gateway: str, after: int) -> list[tuple[int, bytes]]:
    """Read the next lines of other gateways after a number, with their numbers."""
    sql = "SELECT number, lines FROM vedette.shared_log WHERE number > %s AND gateway <> %s ORDER BY number LIMIT %s"
    return [(number, bytes(lines)) for number, lines in connection.execute(sql, (after, gateway, MAX_ROWS))]
