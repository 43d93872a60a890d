"""The registry on a real PostgreSQL: one owner at a time, and no write of an earlier one."""

import time
from collections.abc import Iterator
from contextlib import closing

import pytest
from tests.postgres_server import MISSING, Postgres, find_programs, run_postgres

from vedette.adapters.registry import registry
from vedette.adapters.registry.database import (
    IDLE_TIMEOUT_MS,
    LeaseLost,
    check_clock,
    connect,
    explain_database,
    fence,
    open_connection,
)
from vedette.adapters.registry.registry import (
    Claim,
    claim_shard,
    create_cluster,
    drain_node,
    find_moves,
    is_draining,
    join_cluster,
    list_shards,
    release_shard,
    renew_leases,
    save_copy,
)
from vedette.errors import ClusterError, UsageError

pytestmark = pytest.mark.skipif(find_programs() is None, reason=MISSING)
LONG_S, ENDED_S = 600.0, 0.0


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL for the tests of this module."""
    with run_postgres() as server:
        yield server


@pytest.fixture
def dsn(postgres: Postgres) -> str:
    """A database with a cluster of two shards."""
    dsn = postgres.create_database()
    create_cluster(dsn, 2, LONG_S)
    return dsn


def claim(
    dsn: str, node: str, folders: tuple[str, ...] = (), lease_s: float = LONG_S, *, can_restore: bool = False
) -> Claim | None:
    """Claim a shard, in a new folder if it has none."""
    with connect(dsn) as connection:
        return claim_shard(connection, node, folders, lease_s, can_restore=can_restore)


def end_lease(dsn: str, shard: int) -> None:
    """Let the lease of a shard end."""
    with connect(dsn) as connection:
        connection.execute("UPDATE vedette.lease SET until = clock_timestamp() WHERE shard = %s", (shard,))


def test_a_transaction_that_was_cut_off_does_not_lock_its_shard(dsn: str) -> None:
    """If a node disappears between two statements of a fenced write, other nodes can still claim the shard."""
    first = claim(dsn, "a")
    assert first is not None
    with closing(open_connection(dsn)) as cut:
        fence(cut, first.shard, first.epoch)
        end_lease(dsn, first.shard)
        taken = None
        until_s = time.monotonic() + 10 * IDLE_TIMEOUT_MS / 1000
        while taken is None and time.monotonic() < until_s:
            taken = claim(dsn, "b", (first.folder,))
            taken = taken if taken is not None and taken.shard == first.shard else None
            time.sleep(0.1)  # the server ends the idle transaction at a time of its own
        with pytest.raises(ClusterError, match="idle-in-transaction"), explain_database(dsn):
            cut.execute("SELECT 1")
    assert taken is not None


def test_a_shard_with_an_owner_is_claimed_by_no_other(dsn: str) -> None:
    """Two nodes share the shards; a third one gets none while their leases last."""
    first, second = claim(dsn, "a"), claim(dsn, "b")
    assert first is not None
    assert second is not None
    assert [first[:2], second[:2]] == [(0, 1), (1, 1)]
    assert claim(dsn, "c", (first.folder, second.folder), can_restore=True) is None
    with connect(dsn) as connection:
        assert [shard.owner for shard in list_shards(connection)] == ["a", "b"]


def test_a_shard_is_claimed_only_with_its_data(dsn: str) -> None:
    """Without the folder of a shard whose lease has ended, a node gets the unused shard instead."""
    first, second = claim(dsn, "a", lease_s=ENDED_S), claim(dsn, "b", lease_s=ENDED_S)
    assert first is not None
    assert second is not None
    assert claim(dsn, "b") is None
    assert claim(dsn, "b", (first.folder,)) == Claim(0, 2, first.folder)


def test_a_node_that_restores_copies_takes_what_it_has_first(dsn: str) -> None:
    """A shard whose folder is here comes first; a restored one gets a new folder, which replaces its old one."""
    first, second = claim(dsn, "a", lease_s=ENDED_S), claim(dsn, "a", lease_s=ENDED_S)
    assert first is not None
    assert second is not None
    assert claim(dsn, "b", (second.folder,), can_restore=True) == Claim(1, 2, second.folder)
    restored = claim(dsn, "b", (), can_restore=True)
    assert restored is not None
    assert restored[:2] == (0, 2)
    assert not restored.is_local
    end_lease(dsn, 0)
    assert claim(dsn, "a", (first.folder,)) is None


def test_a_claim_names_the_newest_copy(dsn: str) -> None:
    """The next owner gets the epoch of the newest complete copy, and the status shows its age."""
    first = claim(dsn, "a")
    assert first is not None
    with connect(dsn) as connection:
        fence(connection, 0, 1)
        assert [save_copy(connection, 0, 1, 2.0) for _ in range(2)] == [True, False]
    end_lease(dsn, 0)
    second = claim(dsn, "b", (first.folder,))
    assert second is not None
    assert second.copy == 1
    with connect(dsn) as connection:
        ages = [shard.copy_age_s for shard in list_shards(connection)]
    assert ages[0] is not None
    assert ages[0] >= 2.0
    assert ages[1] is None


def test_a_node_is_drained_only_where_others_have_room(dsn: str) -> None:
    """Its shards count as wanted elsewhere; a node that is not running, and shards without room, are refused."""
    with connect(dsn) as connection:
        join_cluster(connection, "a", 2)
    assert claim(dsn, "a") is not None
    with pytest.raises(ClusterError, match="no node named x"), connect(dsn) as connection:
        drain_node(connection, "x")
    with pytest.raises(ClusterError, match="room for 0 shards, but a runs 1"), connect(dsn) as connection:
        drain_node(connection, "a")
    with connect(dsn) as connection:
        join_cluster(connection, "b", 1)
        assert (find_moves(connection, "a"), is_draining(connection, "a")) == ([], False)
        drain_node(connection, "a")
        assert (find_moves(connection, "a"), is_draining(connection, "a")) == ([0], True)


def test_a_write_of_an_earlier_owner_is_refused(dsn: str) -> None:
    """Neither an older epoch nor the current one after its lease passes the fence."""
    first = claim(dsn, "a", lease_s=ENDED_S)
    assert first is not None
    with pytest.raises(LeaseLost), connect(dsn) as connection:
        fence(connection, first.shard, first.epoch)
    second = claim(dsn, "b", (first.folder,))
    assert second == Claim(0, 2, first.folder)
    with pytest.raises(LeaseLost), connect(dsn) as connection:
        fence(connection, 0, 1)
    with connect(dsn) as connection:
        fence(connection, 0, 2)


def test_a_claim_waits_for_a_write_that_passed_the_fence(dsn: str) -> None:
    """While a fenced transaction is open, no node can claim the shard, even if its lease has ended."""
    first = claim(dsn, "a")
    assert first is not None
    with connect(dsn) as connection:
        fence(connection, first.shard, first.epoch)
        end_lease(dsn, 0)
        other = claim(dsn, "b", (first.folder,))
        assert other is not None
        assert other.shard == 1
        assert claim(dsn, "b", (first.folder,)) is None
    assert claim(dsn, "b", (first.folder,)) == Claim(0, 2, first.folder)


def test_a_lease_that_ended_is_not_renewed(dsn: str) -> None:
    """A node keeps only what it renews in time, and nothing that another node has claimed."""
    kept, lost = claim(dsn, "a"), claim(dsn, "a", lease_s=ENDED_S)
    assert kept is not None
    assert lost is not None
    with connect(dsn) as connection:
        assert renew_leases(connection, "a", [kept, lost], LONG_S) == {kept.shard}
        assert renew_leases(connection, "a", [kept._replace(epoch=7)], LONG_S) == set()
        assert renew_leases(connection, "b", [kept], LONG_S) == set()


def test_a_released_shard_is_free_at_once_but_not_by_its_former_owner(dsn: str) -> None:
    """A node that stops releases its shard; a late release at an older epoch changes nothing."""
    first = claim(dsn, "a")
    assert first is not None
    with connect(dsn) as connection:
        release_shard(connection, first)
    second = claim(dsn, "b", (first.folder,))
    assert second is not None
    with connect(dsn) as connection:
        release_shard(connection, first)
    assert claim(dsn, "c", (first.folder,)) != first._replace(epoch=3)


def test_what_does_not_fit_the_cluster_is_refused(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second cluster in a database, a name in use, another version than running nodes, or a wrong clock."""
    with pytest.raises(ClusterError, match=r"already has a cluster.*cluster join"):
        create_cluster(dsn, 4, LONG_S)
    with connect(dsn) as connection:
        join_cluster(connection, "a", 9)
    with pytest.raises(ClusterError, match="a node named a is running"), connect(dsn) as connection:
        join_cluster(connection, "a", 9)
    monkeypatch.setattr(registry, "__version__", "99.0")
    with pytest.raises(ClusterError, match=r"vedette 99\.0.*on a: install"), connect(dsn) as connection:
        join_cluster(connection, "b", 9)
    real_s = time.time
    monkeypatch.setattr(time, "time", lambda: real_s() + 300.0)
    with pytest.raises(ClusterError, match=r"clock is (299|300|301) s ahead"), connect(dsn) as connection:
        check_clock(connection)


def test_the_first_node_of_a_new_version_takes_the_cluster_along(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once all nodes have stopped, the next one determines the version."""
    monkeypatch.setattr(registry, "__version__", "99.0")
    with connect(dsn) as connection:
        assert join_cluster(connection, "a", 9).version == "99.0"


@pytest.mark.parametrize(
    ("dsn", "kind", "words"),
    [
        ("postgresql://x:secret@127.0.0.1:1/none", ClusterError, r"127\.0\.0\.1:1, database none: .*"),
        ("not a dsn", UsageError, "not a PostgreSQL connection string"),
    ],
)
def test_a_wrong_connection_string_is_one_line_without_its_password(
    dsn: str, kind: type[Exception], words: str
) -> None:
    """The message names the server, and what the library says, in one line."""
    with pytest.raises(kind, match=words) as raised, connect(dsn):
        pass
    assert "\n" not in str(raised.value)
    assert "secret" not in str(raised.value)


def test_a_database_without_a_cluster_says_so(postgres: Postgres) -> None:
    """Joining before ``init`` names the command to run."""
    with (
        pytest.raises(ClusterError, match="run vedette cluster init"),
        connect(postgres.create_database()) as connection,
    ):
        join_cluster(connection, "a", 9)
