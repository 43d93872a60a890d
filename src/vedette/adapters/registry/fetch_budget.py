"""Fetch budget of a cluster in PostgreSQL: spending and demand of shards, the price, and each shard's share.

Each shard reports about once a second. Any shard may run the controller's next step when it is due: it locks the row of
the budget, counts the reports, moves the price, and divides the budget. No leader has to be elected, and nothing is
lost if a node fails. Only shards that may send requests get a share.
"""

from typing import TYPE_CHECKING, Any

from vedette.engine.scheduling.cluster_budget import ClusterBudget, ShardSpending, find_unheard_share
from vedette.engine.scheduling.price_controller import CommonPrice

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[Any]

STEP_EVERY_S = 1.0


def report_spending(connection: "Connection", shard: int, spending: ShardSpending) -> float:
    """Save a shard's spending and demand; return the share of the budget that it may spend now, 0 if unknown.

    The transaction must begin with ``fence``.
    """
    sql = """
        INSERT INTO vedette.shard_spending AS known
        VALUES (%(shard)s, %(refreshes)s, %(others)s, %(pages)s, %(wanted)s, %(share)s, %(price)s, %(settled)s, 0)
        ON CONFLICT (shard) DO UPDATE SET refreshes = known.refreshes + EXCLUDED.refreshes,
        others = known.others + EXCLUDED.others, pages = EXCLUDED.pages, wanted_per_s = EXCLUDED.wanted_per_s,
        used_per_s = greatest(EXCLUDED.used_per_s, known.share_per_s), price = EXCLUDED.price,
        is_settled = EXCLUDED.is_settled RETURNING share_per_s
    """
    values = {
        "shard": shard,
        "refreshes": spending.refreshes,
        "others": spending.others,
        "pages": spending.pages,
        "wanted": spending.wanted_per_s,
        "share": spending.share_per_s,
        "price": spending.price,
        "settled": spending.is_settled,
    }
    (share_per_s,) = connection.execute(sql, values).fetchone() or (0.0,)
    return float(share_per_s)


def move_price(connection: "Connection", policy: str, budget_per_s: float, speed: float) -> None:
    """Move the price and divide the budget, if at least a second has passed since the last step.

    ``speed`` is the number of world seconds per second.
    """
    sql = """
        SELECT state, extract(epoch FROM clock_timestamp() - greatest(at, '2000-01-01'))::float8 FROM vedette.budget
        WHERE at < clock_timestamp() - make_interval(secs => %s) FOR UPDATE SKIP LOCKED
    """
    found = connection.execute(sql, (STEP_EVERY_S,)).fetchone()
    if found is None:
        return
    reports = _take_reports(connection, budget_per_s)
    if not reports:
        return
    # Without steps, nothing was counted, so a pause gives no information about the price.
    passed_s = min(found[1], 10 * STEP_EVERY_S)
    budget = ClusterBudget.from_json(found[0], policy).step(reports, budget_per_s, passed_s * speed)
    shares = budget.split(reports)
    sql = """
        UPDATE vedette.shard_spending SET share_per_s = new.share
        FROM unnest(%s::int[], %s::float8[]) AS new (number, share) WHERE shard = new.number
    """
    connection.execute(sql, (list(shares), list(shares.values())))
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


def _take_reports(connection: "Connection", budget_per_s: float) -> dict[int, ShardSpending]:
    """Collect what was spent since the last step; a shard without a lease loses its share."""
    sql = "SELECT shard FROM vedette.lease WHERE until > clock_timestamp()"
    running = [shard for (shard,) in connection.execute(sql)]
    sql = """
        UPDATE vedette.shard_spending SET share_per_s = 0, used_per_s = 0, wanted_per_s = 0
        WHERE NOT shard = ANY(%s) AND (share_per_s > 0 OR used_per_s > 0)
    """
    connection.execute(sql, (running,))
    sql = """
        SELECT shard, refreshes, others, pages, wanted_per_s, greatest(used_per_s, share_per_s), price, is_settled
        FROM vedette.shard_spending WHERE shard = ANY(%s) ORDER BY shard FOR UPDATE
    """
    rows = connection.execute(sql, (running,)).fetchall()
    sql = "UPDATE vedette.shard_spending SET refreshes = 0, others = 0 WHERE shard = ANY(%s)"
    connection.execute(sql, ([row[0] for row in rows],))
    unheard = ShardSpending(share_per_s=find_unheard_share(budget_per_s, max(len(running), 1)))
    return dict.fromkeys(running, unheard) | {row[0]: ShardSpending(*row[1:]) for row in rows}
