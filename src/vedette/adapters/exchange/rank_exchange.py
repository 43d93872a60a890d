"""Exchange of rank blocks through PostgreSQL: each shard writes its newest block, and reads those of the others."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[Any]

# A larger block is not sent: this is a shard with more than about eight million pages.
MAX_BYTES = 64 << 20
CHUNK_BYTES = 1 << 20


def send_block(connection: "Connection", shard: int, version: int, packed: bytes) -> None:
    """Replace the block of a shard. The transaction must begin with ``fence``."""
    connection.execute("DELETE FROM vedette.rank_block WHERE shard = %s", (shard,))
    sql = "INSERT INTO vedette.rank_block VALUES (%s, %s, %s, %s)"
    for part, start in enumerate(range(0, len(packed), CHUNK_BYTES)):
        connection.execute(sql, (shard, version, part, packed[start : start + CHUNK_BYTES]))


def list_versions(connection: "Connection", shard: int) -> Mapping[int, int]:
    """List the version of the block that each other shard has sent."""
    sql = "SELECT shard, max(version) FROM vedette.rank_block WHERE part = 0 AND shard <> %s GROUP BY shard"
    return dict(connection.execute(sql, (shard,)).fetchall())


def fetch_block(connection: "Connection", shard: int) -> bytes:
    """Load the block of a shard; the transaction must read from a single snapshot."""
    rows = connection.execute("SELECT data FROM vedette.rank_block WHERE shard = %s ORDER BY part", (shard,))
    return b"".join(data for (data,) in rows)
