"""The fetch budget on a real PostgreSQL: one price, and shares within the budget."""

import time
from collections.abc import Iterator

import pytest
from tests.postgres_server import MISSING, Postgres, find_programs, run_postgres

from vedette.adapters.registry.database import connect
from vedette.adapters.registry.fetch_budget import STEP_EVERY_S, load_price, move_price, report_spending
from vedette.adapters.registry.registry import claim_shard, create_cluster
from vedette.engine.scheduling.cluster_budget import ShardSpending

pytestmark = pytest.mark.skipif(find_programs() is None, reason=MISSING)
POLICY, PER_S, SHARDS = "expected-gain", 8.0, 4
FAST = 3600.0


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL for the tests of this module."""
    with run_postgres() as server:
        yield server


@pytest.fixture
def dsn(postgres: Postgres) -> str:
    """A database with a cluster of four shards, each with an owner."""
    dsn = postgres.create_database()
    create_cluster(dsn, SHARDS, 600.0)
    for _ in range(SHARDS):
        with connect(dsn) as connection:
            claim_shard(connection, "a", (), 600.0)
    return dsn


def step(dsn: str, wanted: list[float], used: list[float], refreshes: int = 0) -> list[float]:
    """Let all shards report, the controller step once, and all shards get their shares."""
    time.sleep(STEP_EVERY_S)  # PostgreSQL's clock decides whether the controller steps
    for _ in range(2):
        shares = []
        for number in range(SHARDS):
            spending = ShardSpending(refreshes, 0, 1000.0, wanted[number], used[number], 2.0, is_settled=True)
            with connect(dsn) as connection:
                shares.append(report_spending(connection, number, spending))
                move_price(connection, POLICY, PER_S, FAST)
    return shares


def test_shares_follow_what_shards_want_and_never_exceed_the_budget(dsn: str) -> None:
    """The shard that wants most gets most, once the others have given it up; a shard without a lease gets nothing."""
    wanted, used = [1.0, 1.0, 1.0, 1.0], [0.1] * SHARDS
    seen = []
    for round_ in range(5):
        if round_ == 2:
            wanted = [17.0, 1.0, 1.0, 1.0]
        before, used = used, step(dsn, wanted, used)
        seen.append(used)
        most = [max(one, other) for one, other in zip(before, used, strict=True)] if round_ else used
        assert sum(most) <= PER_S * 1.01, seen
    assert used[0] == pytest.approx(0.85 * PER_S, rel=0.01)
    with connect(dsn) as connection:
        connection.execute("UPDATE vedette.lease SET until = clock_timestamp() WHERE shard = 0")
    for _ in range(3):
        used = step(dsn, wanted, used)
    assert sum(used[1:]) == pytest.approx(PER_S, rel=0.01)


def test_all_shards_follow_one_price_that_moves_with_what_they_spend(dsn: str) -> None:
    """The first price is the one that the shards have found; it rises if they spend too much."""
    prices = []
    for refreshes in (0, 0, 100_000, 100_000):
        step(dsn, [1.0] * SHARDS, [1.0] * SHARDS, refreshes)
        with connect(dsn) as connection:
            prices.append(load_price(connection))
    first, idle, *_, last = [price.value or 0.0 for price in prices]
    assert first == pytest.approx(2.0)
    assert (prices[-1].policy, prices[-1].pages) == (POLICY, SHARDS * 1000.0)
    assert idle < first < last
