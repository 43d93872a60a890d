"""Mailbox of a cluster in PostgreSQL: links between shards, and claims of addresses that several shards request.

A shard calls it at its epoch, in a transaction that begins with ``fence``. Applied batches are kept until the shard's
copy contains their links or, without object storage, for a while: an owner that lost its last changes applies them
again. An address belongs to the shard that claimed it first, until that shard's lease ends, or until it releases the
address for a waiting shard. Claims are not renewed, so an address that only one shard uses costs only one row.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from vedette.adapters.exchange.link_store import OutboxRow, Position

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[Any]

KEEP_APPLIED_S = 600
MAX_BATCH_BYTES = 64 << 20  # of all that is fetched at once, too


class Batch(NamedTuple):
    """A row of links for a shard, as stored in the mailbox."""

    source: int
    epoch: int
    sequence: int
    links: bytes


def send_links(connection: "Connection", source: int, rows: Sequence[OutboxRow]) -> None:
    """Send links to their shards; rows that were already sent are ignored."""
    if not rows:
        return
    sql = "INSERT INTO vedette.link_batch VALUES (%s, %s, %s, %s, %s) ON CONFLICT DO NOTHING"
    values = [(row.target, source, row.epoch, row.sequence, row.links) for row in rows]
    with connection.cursor() as cursor:
        cursor.executemany(sql, values)


def fetch_links(connection: "Connection", target: int, most: int) -> list[Batch]:
    """Return the first links that wait for a shard, by source in order; a batch that is too large is returned empty."""
    sql = """
        WITH first AS (
            SELECT source, epoch, sequence, links, octet_length(links) AS size FROM vedette.link_batch
            WHERE target = %s AND applied IS NULL ORDER BY source, epoch, sequence LIMIT %s
        ), counted AS (SELECT *, sum(size) OVER (ORDER BY source, epoch, sequence) - size AS before FROM first)
        SELECT source, epoch, sequence, CASE WHEN size <= %s THEN links ELSE '' END FROM counted
        WHERE before < %s ORDER BY source, epoch, sequence
    """
    values = (target, most, MAX_BATCH_BYTES, MAX_BATCH_BYTES)
    return [Batch(*row) for row in connection.execute(sql, values)]


def acknowledge_links(connection: "Connection", target: int, batches: Sequence[Batch]) -> None:
    """Mark links as applied."""
    if batches:
        sql = """
            UPDATE vedette.link_batch SET applied = clock_timestamp() WHERE target = %s AND (source, epoch, sequence)
            IN (SELECT * FROM unnest(%s::int[], %s::bigint[], %s::bigint[]))
        """
        columns = [[getattr(one, name) for one in batches] for name in ("source", "epoch", "sequence")]
        connection.execute(sql, (target, *columns))


def drop_old_links(connection: "Connection", target: int) -> None:
    """Delete links that were applied a while ago, for a shard without copies."""
    sql = "DELETE FROM vedette.link_batch WHERE target = %s AND applied < clock_timestamp() - make_interval(secs => %s)"
    connection.execute(sql, (target, KEEP_APPLIED_S))


def drop_copied_links(connection: "Connection", target: int, positions: Mapping[int, Position]) -> None:
    """Delete links that a shard's copy contains: those of each source up to a position."""
    sql = """
        DELETE FROM vedette.link_batch
        USING unnest(%s::int[], %s::bigint[], %s::bigint[]) AS had (source, epoch, sequence)
        WHERE target = %s AND applied IS NOT NULL AND link_batch.source = had.source
        AND (link_batch.epoch, link_batch.sequence) <= (had.epoch, had.sequence)
    """
    columns = [list(positions), [at[0] for at in positions.values()], [at[1] for at in positions.values()]]
    connection.execute(sql, (*columns, target))


def reopen_links(connection: "Connection", target: int, positions: Mapping[int, Position]) -> None:
    """Send links again that a shard acknowledged but no longer has, because its machine lost power."""
    sql = "SELECT DISTINCT source FROM vedette.link_batch WHERE target = %s AND applied IS NOT NULL"
    for (source,) in connection.execute(sql, (target,)).fetchall():
        position = positions.get(source, (0, 0))
        sql = """
            UPDATE vedette.link_batch SET applied = NULL
            WHERE target = %s AND source = %s AND (epoch, sequence) > (%s, %s)
        """
        connection.execute(sql, (target, source, *position))


def list_unapplied_links(connection: "Connection", target: int, positions: Mapping[int, Position]) -> list[bytes]:
    """List the links for a shard beyond the positions that it has applied."""
    sql = "SELECT source, epoch, sequence, links FROM vedette.link_batch WHERE target = %s"
    rows = connection.execute(sql, (target,)).fetchall()
    return [links for source, epoch, sequence, links in rows if (epoch, sequence) > positions.get(source, (0, 0))]


# turns


def claim_addresses(
    connection: "Connection", shard: int, epoch: int, addresses: Sequence[str], delay_s: float
) -> list[tuple[str, float]]:
    """Claim addresses for a shard; return those that it got, each with the seconds until its first request.

    The shard waits for the other addresses in the list, first come, first served, and no longer for any that it leaves
    out.
    """
    drop = "DELETE FROM vedette.address_wait WHERE shard = %s AND NOT address = ANY(%s)"
    connection.execute(drop, (shard, list(addresses)))
    if not addresses:
        return []
    wait = """
        INSERT INTO vedette.address_wait SELECT address, %s, clock_timestamp() FROM unnest(%s::text[]) AS address
        ON CONFLICT DO NOTHING
    """
    connection.execute(wait, (shard, sorted(addresses)))
    claim = """
        INSERT INTO vedette.address AS held
        SELECT address, %(shard)s, %(epoch)s, false, clock_timestamp() FROM unnest(%(addresses)s::text[]) AS address
        ON CONFLICT (address) DO UPDATE
        SET shard = EXCLUDED.shard, epoch = EXCLUDED.epoch, is_free = false,
            ready = CASE WHEN held.is_free THEN held.ready
                ELSE clock_timestamp() + make_interval(secs => %(delay_s)s) END
        WHERE (held.shard = EXCLUDED.shard AND NOT held.is_free)
        OR ((held.is_free OR NOT EXISTS (
                SELECT FROM vedette.shard JOIN vedette.lease ON lease.shard = shard.number
                WHERE shard.number = held.shard AND shard.epoch = held.epoch AND until > clock_timestamp()))
            AND NOT EXISTS (
                SELECT FROM vedette.address_wait AS other JOIN vedette.lease ON lease.shard = other.shard
                JOIN vedette.address_wait AS mine ON mine.address = other.address AND mine.shard = %(shard)s
                WHERE other.address = held.address AND until > clock_timestamp()
                AND (other.since, other.shard) < (mine.since, mine.shard)))
        RETURNING address, greatest(extract(epoch FROM ready - clock_timestamp()), 0)::float8
    """
    values = {"shard": shard, "epoch": epoch, "addresses": sorted(addresses), "delay_s": delay_s}
    got = connection.execute(claim, values).fetchall()
    names = [address for address, _ in got]
    connection.execute("DELETE FROM vedette.address_wait WHERE shard = %s AND address = ANY(%s)", (shard, names))
    return got


def free_addresses(connection: "Connection", shard: int, epoch: int, addresses: Sequence[str], delay_s: float) -> None:
    """Release addresses for other shards, after the pause that follows every request to an address."""
    sql = """
        WITH mine AS (
            SELECT address FROM vedette.address WHERE shard = %s AND epoch = %s AND address = ANY(%s)
            ORDER BY address FOR UPDATE)
        UPDATE vedette.address SET is_free = true, ready = clock_timestamp() + make_interval(secs => %s)
        FROM mine WHERE vedette.address.address = mine.address
    """
    connection.execute(sql, (shard, epoch, list(addresses), delay_s))


def list_contested(connection: "Connection", shard: int, epoch: int) -> list[str]:
    """List a shard's addresses that another shard is waiting for."""
    sql = """
        SELECT DISTINCT address FROM vedette.address JOIN vedette.address_wait AS other USING (address)
        JOIN vedette.lease ON lease.shard = other.shard
        WHERE address.shard = %s AND address.epoch = %s AND NOT is_free AND other.shard <> %s
        AND until > clock_timestamp()
    """
    return [address for (address,) in connection.execute(sql, (shard, epoch, shard))]
