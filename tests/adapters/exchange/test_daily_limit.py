"""The daily limit on a real PostgreSQL: all shards together stay within it."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from tests.postgres_server import MISSING, Postgres, find_programs, run_postgres

from vedette.adapters.exchange.daily_limit import (
    AwaitedReservation,
    SharedRequestBudget,
    find_day,
    reserve_requests,
    return_requests,
)
from vedette.adapters.registry.database import connect
from vedette.adapters.registry.registry import create_cluster
from vedette.timeutil import DAY_S

pytestmark = pytest.mark.skipif(find_programs() is None, reason=MISSING)
NOON_S = 20_000.5 * DAY_S
ADDRESS = "192.0.2.1"
LIMIT = 200


@pytest.fixture(scope="module")
def dsn() -> Iterator[str]:
    """A database with a cluster."""
    with run_postgres() as server:
        yield create(server)


def create(server: Postgres) -> str:
    """Create a cluster in a new database."""
    dsn = server.create_database()
    create_cluster(dsn, 4, 600.0)
    return dsn


def exchange(dsn: str, budget: SharedRequestBudget, now_s: float, ended: Sequence[str] = ()) -> None:
    """Do one step of the exchanger."""
    day = find_day(now_s)
    unused = budget.take_unused(ended)
    with connect(dsn) as connection:
        return_requests(connection, day, unused)
        reserved = reserve_requests(connection, day, budget.list_wanted(), LIMIT)
    budget.add_reserved(reserved, day)


def send(dsn: str, budget: SharedRequestBudget, host: str, tries: int, now_s: float = NOON_S) -> int:
    """Send as many of some requests as are allowed, with exchanges if needed."""
    sent = 0
    for _ in range(tries):
        for _ in range(3):
            refusal = budget.spend(host, ADDRESS, now_s)
            if not isinstance(refusal, AwaitedReservation):
                break
            exchange(dsn, budget, now_s)
        sent += refusal is None
    return sent


def test_shards_share_one_limit_and_the_loss_of_a_machine_adds_nothing(dsn: str, tmp_path: Path) -> None:
    """Two shards at one address get the limit together; a shard that is restored without its counts gets no more."""
    for name in ("one", "two", "new"):
        (tmp_path / name).mkdir()
    with (
        closing(SharedRequestBudget(tmp_path / "one", LIMIT)) as one,
        closing(SharedRequestBudget(tmp_path / "two", LIMIT)) as two,
        closing(SharedRequestBudget(tmp_path / "new", LIMIT)) as new,
    ):
        assert send(dsn, one, "a.test", 90) == 90
        lost = send(dsn, two, "b.test", 50)
        assert lost == 50
        exchange(dsn, one, NOON_S, [ADDRESS])
        rest = send(dsn, new, "c.test", LIMIT)  # in place of the second, whose machine was lost
        assert LIMIT - 150 <= rest <= LIMIT - 140
        exchange(dsn, new, NOON_S)
        assert "the daily limit of 200 requests to address 192.0.2.1" in str(new.spend("c.test", ADDRESS, NOON_S))
        assert send(dsn, one, "a.test", 20) == 0
        assert send(dsn, one, "a.test", 20, NOON_S + DAY_S) == 20


def test_the_first_request_waits_for_a_reservation_only(dsn: str, tmp_path: Path) -> None:
    """Nothing is sent before it is reserved; reserved requests are sent without another step."""
    with closing(SharedRequestBudget(tmp_path, LIMIT, speed=20.0)) as budget:
        refusal = budget.spend("new.test", "192.0.2.9", NOON_S)
        assert refusal is not None
        assert (str(refusal), refusal.find_retry_s(NOON_S) - NOON_S) == ("", 8.0)
        keys = [("domain", "new.test"), ("domain", "other.test")]
        assert budget.list_unknown(keys) == keys
        exchange(dsn, budget, NOON_S)
        assert isinstance(budget.spend("new.test", "192.0.2.9", NOON_S), AwaitedReservation)
        exchange(dsn, budget, NOON_S)
        assert budget.spend("new.test", "192.0.2.9", NOON_S) is None
        assert budget.list_unknown(keys) == keys[1:]
