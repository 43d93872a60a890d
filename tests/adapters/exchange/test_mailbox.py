"""The mailbox on a real PostgreSQL: links wait until they are applied, and addresses have one owner."""

from collections.abc import Iterator

import pytest
from tests.postgres_server import MISSING, Postgres, find_programs, run_postgres

from vedette.adapters.exchange import mailbox
from vedette.adapters.exchange.link_store import OutboxRow
from vedette.adapters.exchange.mailbox import (
    Batch,
    acknowledge_links,
    claim_addresses,
    drop_copied_links,
    drop_old_links,
    fetch_links,
    free_addresses,
    list_contested,
    reopen_links,
    send_links,
)
from vedette.adapters.registry.database import connect
from vedette.adapters.registry.registry import claim_shard, create_cluster

pytestmark = pytest.mark.skipif(find_programs() is None, reason=MISSING)
X, Y = "127.0.0.1", "127.0.0.2"
LONG_S = 600.0


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL for the tests of this module."""
    with run_postgres() as server:
        yield server


@pytest.fixture
def dsn(postgres: Postgres) -> str:
    """A database with a cluster of three shards, each with an owner."""
    dsn = postgres.create_database()
    create_cluster(dsn, 3, LONG_S)
    for _ in range(3):
        with connect(dsn) as connection:
            claim_shard(connection, "a", (), LONG_S)
    return dsn


def claim(dsn: str, shard: int, *addresses: str, epoch: int = 1) -> list[str]:
    """Claim addresses; return those that the shard got."""
    with connect(dsn) as connection:
        return [address for address, _ in claim_addresses(connection, shard, epoch, addresses, 0.25)]


def free(dsn: str, shard: int, *addresses: str) -> None:
    """Free addresses of a shard."""
    with connect(dsn) as connection:
        free_addresses(connection, shard, 1, addresses, 0.25)


def contested(dsn: str, shard: int) -> list[str]:
    """Return a shard's addresses that others wait for."""
    with connect(dsn) as connection:
        return list_contested(connection, shard, 1)


def end_lease(dsn: str, shard: int) -> None:
    """Let the lease of a shard end."""
    with connect(dsn) as connection:
        connection.execute("UPDATE vedette.lease SET until = clock_timestamp() WHERE shard = %s", (shard,))


def test_links_wait_until_they_are_acknowledged(dsn: str) -> None:
    """Links arrive in the order of the outbox, repeatedly, no matter how often they were sent."""
    rows = [OutboxRow(1, 1, 2, b"one"), OutboxRow(1, 2, 2, b"two"), OutboxRow(1, 3, 0, b"other")]
    for _ in range(2):
        with connect(dsn) as connection:
            send_links(connection, 1, rows)
            assert fetch_links(connection, 2, 10) == [Batch(1, 1, 1, b"one"), Batch(1, 1, 2, b"two")]
    with connect(dsn) as connection:
        acknowledge_links(connection, 2, fetch_links(connection, 2, 1))
        assert fetch_links(connection, 2, 10) == [Batch(1, 1, 2, b"two")]
        send_links(connection, 1, rows)
        assert fetch_links(connection, 2, 10) == [Batch(1, 1, 2, b"two")]


def test_batches_that_fill_the_memory_are_not_fetched(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch larger than any shard sends is returned empty, so that it is skipped; large ones arrive one by one."""
    monkeypatch.setattr(mailbox, "MAX_BATCH_BYTES", 100)
    with connect(dsn) as connection:
        send_links(
            connection, 1, [OutboxRow(1, number, 2, b"x" * size) for number, size in enumerate((60, 60, 101, 9))]
        )
        assert [len(one.links) for one in fetch_links(connection, 2, 10)] == [60, 60]
        acknowledge_links(connection, 2, fetch_links(connection, 2, 2))
        assert [len(one.links) for one in fetch_links(connection, 2, 10)] == [0]
        acknowledge_links(connection, 2, fetch_links(connection, 2, 1))
        assert [len(one.links) for one in fetch_links(connection, 2, 10)] == [9]


def test_what_a_power_cut_took_from_a_shard_is_sent_again(dsn: str) -> None:
    """Rows after a shard's position arrive again, even if it acknowledged them; others do not."""
    with connect(dsn) as connection:
        send_links(connection, 1, [OutboxRow(1, number, 2, b"x") for number in range(1, 5)])
        acknowledge_links(connection, 2, fetch_links(connection, 2, 10))
        reopen_links(connection, 2, {1: (1, 3)})
        assert fetch_links(connection, 2, 10) == [Batch(1, 1, 4, b"x")]


def test_applied_links_are_kept_until_a_copy_has_them(dsn: str) -> None:
    """What the copy has cannot be sent again; what only the owner has can, and so can what was just applied."""
    with connect(dsn) as connection:
        send_links(connection, 1, [OutboxRow(1, number, 2, b"x") for number in range(1, 5)])
        acknowledge_links(connection, 2, fetch_links(connection, 2, 3))
        drop_copied_links(connection, 2, {1: (1, 2), 0: (9, 9)})
        drop_old_links(connection, 2)
        reopen_links(connection, 2, {})
        assert fetch_links(connection, 2, 10) == [Batch(1, 1, 3, b"x"), Batch(1, 1, 4, b"x")]


def test_an_address_has_one_owner_until_it_frees_it(dsn: str) -> None:
    """The second shard waits, the first one is notified, and the second gets the address once it is released."""
    assert claim(dsn, 0, X, Y) == [X, Y]
    assert claim(dsn, 1, X) == []
    assert (contested(dsn, 0), contested(dsn, 1)) == ([X], [])
    free(dsn, 0, X)
    with connect(dsn) as connection:
        ((address, wait_s),) = claim_addresses(connection, 1, 1, [X], 0.25)
    assert address == X
    assert 0.0 <= wait_s <= 0.25
    assert claim(dsn, 0, X) == []


def test_shards_take_turns_in_the_order_in_which_they_came(dsn: str) -> None:
    """The former owner waits behind those already waiting, but not for shards that no longer want the address."""
    claim(dsn, 0, X)
    assert [claim(dsn, 1, X), claim(dsn, 2, X)] == [[], []]
    free(dsn, 0, X)
    assert claim(dsn, 0, X) == []
    assert claim(dsn, 2, X) == []
    assert claim(dsn, 1, X) == [X]
    free(dsn, 1, X)
    claim(dsn, 2)
    assert claim(dsn, 0, X) == [X]


def test_the_addresses_of_a_dead_shard_are_free(dsn: str) -> None:
    """When its owner's lease ends, an address is free after a pause; a dead shard's claim blocks no one."""
    claim(dsn, 0, X)
    claim(dsn, 1, X)
    end_lease(dsn, 0)
    end_lease(dsn, 1)
    with connect(dsn) as connection:
        ((address, wait_s),) = claim_addresses(connection, 2, 1, [X], 5.0)
    assert address == X
    assert 4.0 < wait_s <= 5.0


def test_a_new_owner_of_a_shard_has_its_addresses_after_a_pause(dsn: str) -> None:
    """A shard's next epoch gets its address again, but not immediately: the last owner may have just used it."""
    claim(dsn, 0, X)
    with connect(dsn) as connection:
        ((address, wait_s),) = claim_addresses(connection, 0, 2, [X], 5.0)
    assert address == X
    assert 4.0 < wait_s <= 5.0
