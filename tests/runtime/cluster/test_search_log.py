"""Searches of several gateways: each one gets what the others recorded, once, and all learn the same from it."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from tests.learn.sample_events import DAY_S, made_record
from tests.postgres_server import MISSING, Postgres, find_programs, run_postgres

from vedette.adapters.event_store.reader import load_counted_clicks, load_latest_searches
from vedette.adapters.event_store.search_log import EventLog
from vedette.adapters.event_store.store import EventStore
from vedette.adapters.registry.registry import create_cluster
from vedette.engine.search.gateway import join_host, join_id
from vedette.engine.search.scoring import hash_query
from vedette.learn.events import ClickEvent, LoggedEvent, SearchEvent
from vedette.runtime.cluster.search_log import SearchLogExchange
from vedette.runtime.search.click_learning import learn
from vedette.runtime.search.reputation_store import ReputationFile

pytestmark = pytest.mark.skipif(find_programs() is None, reason=MISSING)

NOW_S = 4 * DAY_S
# Pages of two shards, the later ones better.
PAGES = {join_id(number % 2, number): 0.03 * number for number in range(1, 11)}


class Pages:
    """The pages, all on one host of their shard."""

    def find_hosts(self, ids: Sequence[int]) -> dict[int, int]:
        """Find the host of each page."""
        return {id_: join_host(id_ >> 40, 3) for id_ in ids}

    def find_url(self, id_: int) -> str:
        """Find the URL of a page."""
        return f"https://example.org/{id_}"


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL for the tests of this module."""
    with run_postgres() as server:
        yield server


class Gateway:
    """A gateway's folder, with the log of one of its servers."""

    def __init__(self, folder: Path, dsn: str, name: str) -> None:
        folder.mkdir()
        self.folder, self.log = folder, EventLog(folder, "server-1")
        self.exchange = SearchLogExchange(folder, dsn, name)

    def exchange_all(self) -> None:
        """Exchange logs, and record what arrived, as the event recorder does."""
        while self.exchange.step():
            pass
        with closing(EventStore(self.folder)) as book:
            book.ingest_all_logs()

    def recorded(self) -> tuple[list[SearchEvent], set[ClickEvent]]:
        """Return all searches and clicks."""
        return sorted(load_latest_searches(self.folder, 0.0, 10_000)), set(load_counted_clicks(self.folder, 0.0))

    def close(self) -> None:
        """Close the logs."""
        self.log.close()
        self.exchange.close()


@pytest.fixture
def gateways(postgres: Postgres, tmp_path: Path) -> Iterator[tuple[Gateway, Gateway]]:
    """Two gateways of one cluster."""
    dsn = postgres.create_database()
    create_cluster(dsn, 2, 600.0)
    one, other = (Gateway(tmp_path / name, dsn, name) for name in ("one", "other"))
    yield one, other
    one.close()
    other.close()


def test_gateways_learn_from_the_searches_of_all(gateways: tuple[Gateway, Gateway]) -> None:
    """With searches at one and clicks at the other, as behind a load balancer, both learn the same reputations."""
    slates, events = made_record(PAGES, 600)
    one, other = gateways
    for slate in slates:
        one.log.append(slate)
    for event in events:
        other.log.append(event)
    for gateway in (one, other, one, other):
        gateway.exchange_all()
    assert one.recorded() == other.recorded()
    assert len(one.recorded()[0]) == len(slates)
    found = []
    for gateway in gateways:
        told = learn(gateway.folder, gateway.folder, gateway.folder, Pages(), NOW_S)
        assert told.is_learned
        file = ReputationFile(gateway.folder)
        assert file.refresh()
        assert file.reputation is not None
        ids, hosts = np.array(list(PAGES)), np.array([join_host(id_ >> 40, 3) for id_ in PAGES])
        found.append(file.reputation.look_up(ids, hosts, hash_query("Red KITES")).mean.tolist())
    assert found[0] == found[1]
    assert found[0][-1] > found[0][0]


def test_nothing_is_shared_twice_or_comes_back(gateways: tuple[Gateway, Gateway]) -> None:
    """After a restart, a gateway continues where it was; what came from others is not sent back."""
    slates, events = made_record(PAGES, 20)
    one, other = gateways
    records: list[LoggedEvent] = [*slates, *events]
    for number, record in enumerate(records):
        (one if number % 2 else other).log.append(record)
    for gateway in (one, other):
        while gateway.exchange.step():
            pass
    for gateway in (one, other, one):
        gateway.exchange_all()
        assert not gateway.exchange.step()
    assert one.recorded() == other.recorded()
    assert len(one.recorded()[0]) == len(slates)
