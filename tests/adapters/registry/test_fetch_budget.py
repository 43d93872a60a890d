"""Tests of ``adapters.registry.fetch_budget`` on a real PostgreSQL: one price, and draws within the budget."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.postgres_server import MISSING, Postgres, find_programs, run_postgres

from vedette.adapters.registry.database import connect
from vedette.adapters.registry.fetch_budget import STEP_EVERY_S, draw_pages, load_price, move_price, report_spending
from vedette.adapters.registry.registry import claim_shard, create_cluster
from vedette.engine.scheduling.cluster_budget import ShardSpending, size_pool

pytestmark = pytest.mark.skipif(find_programs() is None, reason=MISSING)
POLICY, SHARDS = "expected-gain", 4
PER_S, FAST = 8.0, 3600.0
# A budget that brings nothing while a test runs: only what is in the pool can be drawn.
TINY = 1e-6


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


def put_pages(dsn: str, pages: float) -> None:
    """Set how many pages the pool has."""
    with connect(dsn) as connection:
        connection.execute("UPDATE vedette.fetch_pool SET pages = %s, at = clock_timestamp()", (pages,))


def count_pages(dsn: str) -> float:
    """Return how many pages the pool has."""
    with connect(dsn) as connection:
        (pages,) = connection.execute("SELECT pages FROM vedette.fetch_pool").fetchone() or (-1.0,)
        return float(pages)


def draw(dsn: str, shard: int, lacking: float, per_s: float = TINY) -> tuple[float, bool]:
    """Draw pages for a shard."""
    with connect(dsn) as connection:
        return draw_pages(connection, shard, lacking, per_s, 1.0)


def test_concurrent_draws_never_exceed_the_pool(dsn: str) -> None:
    """Shards that draw at the same time get together what was there, also if some give back."""
    put_pages(dsn, 2.0)

    def spend(shard: int) -> float:
        return sum(draw(dsn, shard, lacking)[0] + min(lacking, 0.0) for lacking in (0.7, 1.0, -0.2, 3.0, 0.1))

    with ThreadPoolExecutor(SHARDS) as threads:
        kept = sum(threads.map(spend, range(SHARDS)))
    with connect(dsn) as connection:
        (due,) = connection.execute("SELECT sum(due) FROM vedette.fetch_want").fetchone() or (0.0,)
    assert kept + due + count_pages(dsn) == pytest.approx(2.0, abs=1e-3)


def test_pages_are_due_to_shards_by_what_they_lack_whichever_draws_first(dsn: str) -> None:
    """Of two that lack one and three pages, the second gets three times as much; one without a lease gets nothing."""
    lacking = {0: 1.0, 1: 3.0, 2: 9.0}
    for order in ((0, 1), (1, 0)):
        put_pages(dsn, 0.0)
        with connect(dsn) as connection:
            connection.execute("DELETE FROM vedette.fetch_want")
            connection.execute("UPDATE vedette.lease SET until = clock_timestamp() + interval '600 s'")
        for shard, pages in lacking.items():
            assert draw(dsn, shard, pages)[0] == pytest.approx(0.0, abs=1e-3)
        with connect(dsn) as connection:
            connection.execute("UPDATE vedette.lease SET until = clock_timestamp() WHERE shard = 2")
        put_pages(dsn, 2.0)
        got = {shard: draw(dsn, shard, lacking[shard])[0] for shard in order}
        assert got == {0: pytest.approx(0.5, abs=1e-3), 1: pytest.approx(1.5, abs=1e-3)}


def test_what_a_shard_gives_back_another_one_gets(dsn: str) -> None:
    """A share that one shard cannot use is not lost; sites may borrow once no shard lacks a page."""
    put_pages(dsn, 2.0)
    got, _ = draw(dsn, 0, 2.0)
    assert got == pytest.approx(2.0, abs=1e-3)
    assert draw(dsn, 1, 1.0)[0] == pytest.approx(0.0, abs=1e-3)
    assert draw(dsn, 0, -1.5) == (0.0, False)
    assert draw(dsn, 1, 1.0)[0] == pytest.approx(1.0, abs=1e-3)
    assert draw(dsn, 2, -1.0) == (0.0, True)


def test_the_pool_fills_at_the_rate_of_the_budget(dsn: str) -> None:
    """It holds the pages of about two seconds, and no more after a long pause."""
    put_pages(dsn, 0.0)
    before_s = time.monotonic()
    drawn = 0.0
    while drawn < 3.0:  # PostgreSQL's clock fills the pool
        drawn += draw(dsn, 0, 100.0, PER_S)[0]
    assert drawn <= PER_S * (time.monotonic() - before_s) + 0.01
    with connect(dsn) as connection:
        connection.execute("UPDATE vedette.fetch_pool SET at = at - interval '1 hour'")
    assert draw(dsn, 0, 100.0, PER_S)[0] == pytest.approx(size_pool(PER_S, 1.0))


def test_all_shards_follow_one_price_that_moves_with_what_they_spend(dsn: str) -> None:
    """The first price is the one that the shards have found; it rises if they spend too much."""
    prices = []
    for refreshes in (0, 0, 100_000, 100_000):
        time.sleep(STEP_EVERY_S)  # PostgreSQL's clock decides whether the controller steps
        for number in range(SHARDS):
            with connect(dsn) as connection:
                report_spending(connection, number, ShardSpending(refreshes, 0, 1000.0, 0.0, 2.0, is_settled=True))
        with connect(dsn) as connection:
            move_price(connection, POLICY, PER_S, FAST)
            prices.append(load_price(connection))
    first, idle, *_, last = [price.value or 0.0 for price in prices]
    assert first == pytest.approx(2.0)
    assert (prices[-1].policy, prices[-1].pages) == (POLICY, SHARDS * 1000.0)
    assert idle < first < last
