"""The URL store: leases, what survives, and which writes are refused."""

import os
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from vedette.adapters.url_store.rows import create_url_tables
from vedette.adapters.url_store.store import UrlStore
from vedette.engine.ports import LeasedUrl, LinkBatch, UrlState
from vedette.errors import StoreCorrupt, StoreError
from vedette.model import partition_of
from vedette.policy import rng_for

HOST = "www.example.org"
WORKER, OTHER_WORKER = 1, 2


def connect(path: Path) -> sqlite3.Connection:
    """A database as the coordinator opens it."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    return connection


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The path of the state."""
    return tmp_path / "state.db"


@pytest.fixture
def connection(path: Path) -> Iterator[sqlite3.Connection]:
    """A new state."""
    connection = connect(path)
    create_url_tables(connection)
    yield connection
    connection.close()


@pytest.fixture
def store(connection: sqlite3.Connection) -> UrlStore:
    """An empty store."""
    return UrlStore(connection, epoch=1)


def page(number: int) -> str:
    """Return one of the host's URLs."""
    return f"https://{HOST}/{number}"


def tell(store: UrlStore, urls: list[str], priorities: list[int] | None = None, host: str = HOST) -> list[int]:
    """Add links to one host, and return the ids of the new ones."""
    report = LinkBatch(urls, store.intern_hosts([host] * len(urls)), [3] * len(urls), priorities or [0] * len(urls))
    return [int(id_) for id_ in store.add(report, found_s=10.0)]


def lease(store: UrlStore, count: int, host: int = 0, until_s: float = 60.0) -> list[LeasedUrl]:
    """Lease up to this many URLs of a host, best first."""
    return store.lease([host] * count, WORKER, until_s)


def test_only_unknown_links_become_rows(store: UrlStore, connection: sqlite3.Connection) -> None:
    """Links added twice, in one batch or two, are one row with the first data."""
    assert tell(store, [page(1), page(2), page(1)], [4, 5, 6]) == [1, 2]
    assert tell(store, [page(2), page(3)], [7, 7]) == [3]
    rows = connection.execute("SELECT id, partition, host, url, depth, priority, found_s FROM url").fetchall()
    partition = partition_of(HOST)
    assert rows == [(id_, partition, 0, page(id_), 3, front, 10.0) for id_, front in ((1, 4), (2, 5), (3, 7))]


def test_ids_and_counts_are_found_by_url(store: UrlStore) -> None:
    """A known URL has its id and how often it was linked; an unknown one has id 0."""
    tell(store, [page(1), page(2), page(1)])
    ids = store.find_ids([page(2), page(9), page(1)])
    assert ids.tolist() == [2, 0, 1]
    assert store.count_inlinks(ids[[0, 2]]).tolist() == [1, 2]


def test_best_queue_first_then_first_come(store: UrlStore) -> None:
    """Without randomness the best queue is emptied first, and each queue is first in, first out."""
    tell(store, [page(number) for number in range(6)], [2, 0, 7, 0, 2, 0])
    leased = lease(store, 9)
    assert [one.url for one in leased] == [page(number) for number in (1, 3, 5, 0, 4, 2)]
    assert {one.propensity for one in leased} == {1.0}


def test_drawn_queues_halve_by_level(store: UrlStore) -> None:
    """A queue two levels lower is drawn a quarter as often, and the propensity says so."""
    tell(store, [page(number) for number in range(4000)], [1, 3] * 2000)
    leased = store.lease([0] * 2000, WORKER, 60.0, rng_for(1, "test"))
    fronts = Counter(round(one.propensity, 9) for one in leased)
    assert set(fronts) == {0.8, 0.2}
    assert 0.17 < fronts[0.2] / 2000 < 0.23


def test_a_url_has_one_lease_at_most(store: UrlStore) -> None:
    """A leased URL is not leased again, even if it is added again."""
    tell(store, [page(1)])
    assert [one.url for one in lease(store, 2)] == [page(1)]
    tell(store, [page(1)])
    assert lease(store, 1) == []


def test_hosts_have_their_own_queues(store: UrlStore) -> None:
    """Each host only returns its own URLs, and is listed while it has some."""
    tell(store, [page(1)])
    tell(store, ["https://b.test/1", "https://b.test/2"], host="b.test")
    assert (store.count_waiting(0), store.count_waiting(1), store.hosts_with_work().tolist()) == (1, 2, [0, 1])
    assert [one.url for one in store.lease(np.array([1, 0, 0]), WORKER, 60.0)] == ["https://b.test/1", page(1)]
    assert store.hosts_with_work().tolist() == [1]


def test_acknowledgement_ends_a_url(store: UrlStore) -> None:
    """An acknowledged URL never waits again, and is counted under its final state."""
    tell(store, [page(number) for number in range(4)])
    one, two, three, _ = lease(store, 4)
    store.acknowledge([one.id, two.id], UrlState.FETCHED, WORKER)
    store.acknowledge([three.id], UrlState.REFUSED, WORKER)
    assert store.requeue_expired(now_s=61.0).tolist() == [4]
    counts = store.get_counts()
    assert (counts.known, counts.waiting, counts.leased) == (4, 1, 0)
    assert (counts.fetched, counts.refused, counts.failed) == (2, 1, 0)


@pytest.mark.parametrize("again", [False, True])
def test_late_acknowledgement_does_not_count(store: UrlStore, *, again: bool) -> None:
    """After a lease has expired, its worker's acknowledgment changes nothing."""
    tell(store, [page(1)])
    (out,) = lease(store, 1, until_s=5.0)
    store.requeue_expired(now_s=5.0)
    if again:
        store.lease([0], OTHER_WORKER, 60.0)
    before = store.get_counts()
    assert store.acknowledge([out.id], UrlState.FETCHED, WORKER).tolist() == []
    assert store.get_counts() == before


def test_leases_run_out_by_time(store: UrlStore) -> None:
    """A lease expires on time and not before; its URL then waits behind the others of its queue."""
    tell(store, [page(1), page(2)])
    lease(store, 1, until_s=5.0)
    assert store.requeue_expired(now_s=4.9).tolist() == []
    assert store.requeue_expired(now_s=5.0).tolist() == [1]
    assert [one.url for one in lease(store, 2)] == [page(2), page(1)]


def test_put_back_keeps_the_priority(store: UrlStore) -> None:
    """A returned URL waits in its own queue again, and only its worker can return it."""
    tell(store, [page(1), page(2)], [1, 6])
    out = [one.id for one in lease(store, 2)]
    assert store.release_leases(out, OTHER_WORKER).tolist() == []
    assert store.release_leases(np.array(out[::-1], np.uint32), WORKER).tolist() == out
    assert [one.id for one in lease(store, 2)] == out


def test_empty_batches(store: UrlStore) -> None:
    """Empty batches of additions, leases and acknowledgments do nothing."""
    assert tell(store, []) == []
    assert store.lease([], WORKER, 60.0) == []
    assert store.acknowledge([], UrlState.FAILED, WORKER).tolist() == []
    assert store.get_counts().known == 0


@pytest.mark.parametrize(
    "report",
    [
        LinkBatch([page(1)], [1], [0], [0]),
        LinkBatch([page(1)], [-1], [0], [0]),
        LinkBatch([page(1)], [0], [0], [8]),
        LinkBatch([page(1)], [0], [0], [-1]),
        LinkBatch([page(1)], [0], [], [0]),
    ],
)
def test_wrong_batches_leave_the_store_usable(store: UrlStore, report: LinkBatch) -> None:
    """A batch with an unknown host, queue or missing column is rejected before it has any effect."""
    tell(store, [page(0)])
    with pytest.raises(ValueError, match=r"host|front queue|columns"):
        store.add(report, found_s=0.0)
    assert tell(store, [page(1)]) == [2]


def own(connection: sqlite3.Connection, partition: int, epoch: int) -> None:
    """Take over a partition."""
    row = (partition, partition, "other", epoch, 1e9)
    connection.execute("INSERT INTO ownership VALUES (?, ?, ?, ?, ?)", row)


def test_stale_epochs_are_refused(store: UrlStore, connection: sqlite3.Connection) -> None:
    """Once a partition has a newer owner, all older writes to its hosts are rejected."""
    tell(store, [page(number) for number in range(3)])
    (out,) = lease(store, 1, until_s=5.0)
    connection.commit()
    own(connection, partition_of(HOST), epoch=2)
    rows = "SELECT (SELECT count(*) FROM url), (SELECT count(*) FROM lease), (SELECT count(*) FROM fate)"
    before = connection.execute(rows).fetchone(), store.get_counts()
    writes: list[Callable[[], object]] = [
        lambda: tell(store, [page(9)]),
        lambda: lease(store, 1),
        lambda: store.acknowledge([out.id], UrlState.FETCHED, WORKER),
        lambda: store.release_leases([out.id], WORKER),
        lambda: store.requeue_expired(now_s=9.0),
    ]
    for write in writes:
        with pytest.raises(StoreError, match="write from epoch 1 refused"):
            write()
    assert (connection.execute(rows).fetchone(), store.get_counts()) == before


def test_epochs_count_by_partition(store: UrlStore, connection: sqlite3.Connection) -> None:
    """A newer owner of other partitions, or one with the same epoch, has no effect."""
    own(connection, (partition_of(HOST) + 1) % 1024, epoch=2)
    own(connection, partition_of(HOST), epoch=1)
    assert tell(store, [page(1)]) == [1]


def test_rolled_back_writes_close_the_store(store: UrlStore, connection: sqlite3.Connection) -> None:
    """After a rollback memory is ahead of the state: the store refuses, and a new one is correct."""
    tell(store, [page(1)])
    connection.commit()
    lease(store, 1)
    connection.rollback()
    with pytest.raises(StoreError, match="reopen the state"):
        lease(store, 1)
    connection.rollback()
    assert [one.url for one in lease(UrlStore(connection, epoch=1), 1)] == [page(1)]


def test_two_writers_are_noticed(store: UrlStore, connection: sqlite3.Connection) -> None:
    """Of two stores on one state, the one that wrote first continues, and the other refuses."""
    other = UrlStore(connection, epoch=1)
    tell(store, [page(1)])
    with pytest.raises(StoreError, match="another process is writing"):
        tell(other, [page(2)])


def test_failed_write_closes_the_store(store: UrlStore, connection: sqlite3.Connection) -> None:
    """If the database rejects a row, nothing more is written on top of it."""
    tell(store, [page(1)])
    connection.execute("CREATE TRIGGER full BEFORE INSERT ON url BEGIN SELECT raise(FAIL, 'disk is full'); END")
    with pytest.raises(sqlite3.DatabaseError, match="disk is full"):
        tell(store, [page(2)])
    with pytest.raises(StoreError, match="reopen the state"):
        lease(store, 1)


def answers(store: UrlStore) -> object:
    """Return everything that a store reports."""
    hosts = store.hosts_with_work().tolist()
    return store.get_counts(), hosts, [store.count_waiting(host) for host in hosts]


def used(store: UrlStore, connection: sqlite3.Connection) -> None:
    """Do some of everything, and commit."""
    tell(store, [page(number) for number in range(300)], [number % 8 for number in range(300)])
    tell(store, [page(number) for number in range(50)])
    out = [one.id for one in lease(store, 100)]
    store.acknowledge(out[:40], UrlState.FETCHED, WORKER)
    store.acknowledge(out[40:50], UrlState.FAILED, WORKER)
    store.release_leases(out[50:70], WORKER)
    connection.commit()


def test_rows_alone_make_the_store(store: UrlStore, connection: sqlite3.Connection) -> None:
    """A store created from another one's rows reports the same, and continues with the next id."""
    used(store, connection)
    again = UrlStore(connection, epoch=1)
    assert answers(again) == answers(store)
    assert tell(again, [page(7), page(1000)]) == [301]


def test_image_spares_the_scan(store: UrlStore, connection: sqlite3.Connection, tmp_path: Path) -> None:
    """A file saved at the end has everything, even the order of returned URLs, which the rows don't have."""
    used(store, connection)
    store.save_snapshot(tmp_path / "urls")
    before, order = answers(store), lease(store, 250)
    connection.rollback()
    again = UrlStore(connection, epoch=1, image=tmp_path / "urls")
    assert answers(again) == before
    assert lease(again, 250) == order


def test_stale_image_gives_only_counts(store: UrlStore, connection: sqlite3.Connection, tmp_path: Path) -> None:
    """A file from before the last write is only used for link counts."""
    used(store, connection)
    store.save_snapshot(tmp_path / "urls")
    tell(store, [page(1000), page(0)])
    connection.commit()
    again = UrlStore(connection, epoch=1, image=tmp_path / "urls")
    assert answers(again) == answers(store)
    assert again.count_inlinks(np.array([1, 60, 301], np.uint32)).tolist() == [2, 1, 1]


@pytest.mark.parametrize("cut", [0, 10, 1000, -30, -1])
def test_broken_image_is_not_needed(store: UrlStore, connection: sqlite3.Connection, tmp_path: Path, cut: int) -> None:
    """A truncated file counts as missing."""
    used(store, connection)
    store.save_snapshot(tmp_path / "urls")
    (tmp_path / "urls").write_bytes((tmp_path / "urls").read_bytes()[:cut])
    assert answers(UrlStore(connection, epoch=1, image=tmp_path / "urls")) == answers(store)


def test_flipped_bytes_in_an_image(store: UrlStore, connection: sqlite3.Connection, tmp_path: Path) -> None:
    """Wherever a byte of the file is wrong, the store is still correct."""
    used(store, connection)
    store.save_snapshot(tmp_path / "urls")
    whole = (tmp_path / "urls").read_bytes()
    for place in range(0, len(whole), len(whole) // 60):
        (tmp_path / "urls").write_bytes(whole[:place] + bytes([whole[place] ^ 0x41]) + whole[place + 1 :])
        assert answers(UrlStore(connection, epoch=1, image=tmp_path / "urls")) == answers(store)


def test_image_of_another_state(store: UrlStore, connection: sqlite3.Connection, tmp_path: Path) -> None:
    """A file of another data folder is rejected, even with the same number of writes."""
    used(store, connection)
    other = connect(tmp_path / "other.db")
    create_url_tables(other)
    used(stranger := UrlStore(other, epoch=1), other)
    tell(stranger, ["https://stranger.test/"])
    other.rollback()
    UrlStore(other, epoch=1).save_snapshot(tmp_path / "urls")
    other.close()
    again = UrlStore(connection, epoch=1, image=tmp_path / "urls")
    assert again.find_ids([page(0)]).tolist() == [1]
    assert answers(again) == answers(store)


def test_uncommitted_urls_are_not_saved(store: UrlStore, tmp_path: Path) -> None:
    """A file must never know more than the state."""
    tell(store, [page(1)])
    with pytest.raises(StoreError, match="commit first"):
        store.save_snapshot(tmp_path / "urls")
    assert not (tmp_path / "urls").exists()


@pytest.mark.parametrize("loss", ["DELETE FROM url WHERE id = 1", "DELETE FROM host WHERE id = 0"])
def test_missing_rows_are_noticed(store: UrlStore, connection: sqlite3.Connection, loss: str) -> None:
    """A missing row is reported instead of crawling with wrong ids."""
    tell(store, [page(1), page(2)])
    tell(store, ["https://b.test/"], host="b.test")
    connection.execute(loss)
    with pytest.raises(StoreCorrupt, match="missing"):
        UrlStore(connection, epoch=1)


CHILD = """
import sqlite3, sys
from vedette.adapters.url_store.store import UrlStore
from vedette.engine.ports import LinkBatch, UrlState
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
store = UrlStore(connection, epoch=1)
for round in range(10_000):
    start = len(store)
    numbers = range(max(0, start - 150), start + 50)
    hosts = store.intern_hosts([f"h{number % 7}.test" for number in numbers])
    urls = [f"https://h{number % 7}.test/{number}" for number in numbers]
    store.add(LinkBatch(urls, hosts, [1] * len(urls), [number % 8 for number in numbers]), 0.0)
    connection.commit()
    out = store.lease([host for host in range(7) for _ in range(3)], 1, 60.0)
    connection.commit()
    store.acknowledge([one.id for one in out[:15]], UrlState.FETCHED, 1)
    connection.commit()
    print(start + 50, 15 * round + 15, flush=True)
"""


@pytest.mark.parametrize("rounds", [1, 2, 5, 11, 23])
def test_kill_leaves_a_consistent_store(path: Path, connection: sqlite3.Connection, rounds: int) -> None:
    """A coordinator killed at work loses nothing committed, and no URL is in two places."""
    child = subprocess.Popen([sys.executable, "-c", CHILD, path], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    with child.stdout as lines:
        known, ended = max(tuple(map(int, next(lines).split())) for _ in range(rounds))
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    store = UrlStore(connection, epoch=1)
    counts = store.get_counts()
    assert counts.known >= known
    assert counts.fetched >= ended
    assert counts.known == counts.waiting + counts.leased + counts.fetched
    out = store.lease([host for host in range(7) for _ in range(counts.known)], WORKER, 60.0)
    fetched = [row[0] for row in connection.execute("SELECT url_id FROM fate")]
    leased = [row[0] for row in connection.execute("SELECT url_id FROM lease")]
    assert len(out) == counts.waiting
    assert sorted(fetched + leased) == list(range(1, counts.known + 1))
