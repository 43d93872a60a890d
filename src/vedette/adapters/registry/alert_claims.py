"""Claims of alerts by shards: an alert about a page is sent once, even if the page moves or is found by two shards."""

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from vedette.adapters.registry.database import fence

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[Any]

AlertPage = tuple[str, int]


def claim_pages(connection: "Connection", shard: int, epoch: int, pairs: Collection[AlertPage]) -> frozenset[AlertPage]:
    """Claim pairs of alert and page for a shard; return those that were neither sent nor claimed by another shard."""
    fence(connection, shard, epoch)
    sql = """
        INSERT INTO vedette.alert_page AS known (alert, page, shard)
        SELECT alert, page, %s FROM unnest(%s::text[], %s::bigint[]) AS pair (alert, page)
        ON CONFLICT (alert, page) DO UPDATE SET shard = EXCLUDED.shard
        WHERE known.shard = EXCLUDED.shard AND NOT known.is_sent RETURNING alert, page
    """
    alerts, pages = [alert for alert, _ in pairs], [page for _, page in pairs]
    return frozenset((alert, page) for alert, page in connection.execute(sql, (shard, alerts, pages)))


def mark_sent(connection: "Connection", pairs: Collection[AlertPage]) -> None:
    """Mark claimed pairs as sent: their shard has saved them, and no shard sends them again."""
    sql = """
        UPDATE vedette.alert_page SET is_sent = true
        WHERE (alert, page) IN (SELECT * FROM unnest(%s::text[], %s::bigint[]))
    """
    connection.execute(sql, ([alert for alert, _ in pairs], [page for _, page in pairs]))
