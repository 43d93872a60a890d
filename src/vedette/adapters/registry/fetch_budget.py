"""Fetch budget of a cluster in PostgreSQL: the price, what shards spent, and the pool of pages that they draw from.

A shard draws what it lacks in one short transaction, and reports about once a second. The controller is a step that any
shard may take when it is time: it locks the row of the budget, counts what was reported, and moves the price. No shard
has to be elected, and nothing is lost if a node dies: what it had drawn counts as spent.
"""

from typing import TYPE_CHECKING, Any

from vedette.engine.scheduling.cluster_budget import ClusterBudget, FetchPool, ShardSpending, size_pool
from vedette.engine.scheduling.price_controller import CommonPrice

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[Any]

STEP_EVERY_S = 1.0


def draw_pages(
    connection: "Connection", shard: int, lacking: float, budget_per_s: float, speed: float
) -> tuple[float, bool]:
    """Draw what a shard lacks from the pool; return what it gets, and whether sites may borrow.

    The transaction must begin with ``fence``. It does not wait for the disk, because other shards wait for it: a crash
    of PostgreSQL may grant some pages twice, those of less than a second.
    """
    connection.execute("SET LOCAL synchronous_commit = off")
    sql = """
        SELECT pages, extract(epoch FROM clock_timestamp() - greatest(at, '2000-01-01'))::float8
        FROM vedette.fetch_pool FOR UPDATE
    """
    pages, passed_s = connection.execute(sql).fetchone() or (0.0, 0.0)
    sql = """
        SELECT shard, lacking, due FROM vedette.fetch_want LEFT JOIN vedette.lease USING (shard)
        WHERE until > clock_timestamp() OR shard = %s
    """
    rows = connection.execute(sql, (shard,)).fetchall()
    wanted, due = {row[0]: row[1] for row in rows}, {row[0]: row[2] for row in rows}
    pool = FetchPool(size_pool(budget_per_s, speed), pages, wanted, due)
    drawn, pool = pool.draw(shard, lacking, passed_s * speed * budget_per_s)
    sql = """
        INSERT INTO vedette.fetch_want SELECT * FROM unnest(%s::int[], %s::float8[], %s::float8[])
        ON CONFLICT (shard) DO UPDATE SET lacking = EXCLUDED.lacking, due = EXCLUDED.due
    """
    connection.execute(sql, (list(pool.lacking), list(pool.lacking.values()), [pool.due[one] for one in pool.lacking]))
    connection.execute("UPDATE vedette.fetch_pool SET pages = %s, at = clock_timestamp()", (pool.pages,))
    return drawn, pool.has_spare


def report_spending(connection: "Connection", shard: int, spending: ShardSpending) -> None:
    """Save what a shard spent; the transaction must begin with ``fence``."""
    sql = """
        INSERT INTO vedette.shard_spending AS known
        VALUES (%(shard)s, %(refreshes)s, %(others)s, %(pages)s, %(price)s, %(settled)s)
        ON CONFLICT (shard) DO UPDATE SET refreshes = known.refreshes + EXCLUDED.refreshes,
        others = known.others + EXCLUDED.others, pages = EXCLUDED.pages, price = EXCLUDED.price,
        is_settled = EXCLUDED.is_settled
    """
    values = {
        "shard": shard,
        "refreshes": spending.refreshes,
        "others": spending.others,
        "pages": spending.pages,
        "price": spending.price,
        "settled": spending.is_settled,
    }
    connection.execute(sql, values)


def move_price(connection: "Connection", policy: str, budget_per_s: float, speed: float) -> None:
    """Move the price, if a second has passed since this was last done.

    ``speed`` is the number of world seconds per second.
    """
    sql = """
        SELECT state, extract(epoch FROM clock_timestamp() - greatest(at, '2000-01-01'))::float8 FROM vedette.budget
        WHERE at < clock_timestamp() - make_interval(secs => %s) FOR UPDATE SKIP LOCKED
    """
    found = connection.execute(sql, (STEP_EVERY_S,)).fetchone()
    if found is None:
        return
    reports = _take_reports(connection)
    if not reports:
        return
    # Without steps, nothing was counted, so a pause gives no information about the price.
    passed_s = min(found[1], 10 * STEP_EVERY_S)
    budget = ClusterBudget.from_json(found[0], policy).step(reports, budget_per_s, passed_s * speed)
    price = budget.price
    sql = """
        UPDATE vedette.budget SET state = %s, at = clock_timestamp(), policy = %s, price = %s, target_per_s = %s,
        pages = %s
    """
    connection.execute(sql, (budget.to_json(), *price))


def load_price(connection: "Connection") -> CommonPrice:
    """Load the price that all shards follow."""
    row = connection.execute("SELECT policy, price, target_per_s, pages FROM vedette.budget").fetchone()
    return CommonPrice(*row) if row is not None else CommonPrice("", None, 0.0, 0.0)


def _take_reports(connection: "Connection") -> dict[int, ShardSpending]:
    """Take what was spent since the last step, by the shards that have a lease."""
    sql = """
        SELECT shard, refreshes, others, pages, price, is_settled FROM vedette.shard_spending
        WHERE shard IN (SELECT shard FROM vedette.lease WHERE until > clock_timestamp()) ORDER BY shard FOR UPDATE
    """
    rows = connection.execute(sql).fetchall()
    sql = "UPDATE vedette.shard_spending SET refreshes = 0, others = 0 WHERE shard = ANY(%s)"
    connection.execute(sql, ([row[0] for row in rows],))
    return {
        shard: ShardSpending(refreshes, others, pages, price=price, is_settled=is_settled)
        for shard, refreshes, others, pages, price, is_settled in rows
    }
