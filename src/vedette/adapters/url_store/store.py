"""URL store (frontier): known URLs, added in batches, leased out host by host, acknowledged; the caller commits.

Memory has what is used often: which URLs are known (``hash_table``) and in which order those of a host wait
(``queues``), at most 16 bytes per URL. The state has the rest, in appended rows (``rows``). Memory is rebuilt from one
scan of the rows; a snapshot saved at a clean exit avoids that.

The store writes through the caller's connection, which may have more to write in the same transaction. After a rollback
memory and state differ: the store refuses further writes and must be opened again.

A URL waits, is leased to one worker, or has ended with a fate: exactly one. A lease ends when its worker acknowledges
it or puts it back, or by time; an unfetched URL rejoins the end of its queue, so that a URL which crashes every worker
does not block its host.
"""

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
import numpy.typing as npt

from vedette.adapters.url_store.hash_table import Counts8, Ids, UrlTable, grow_array
from vedette.adapters.url_store.queues import FRONTS, HostQueues, PoppedUrl
from vedette.adapters.url_store.rows import WriteFence, ids_to_json, read_snapshot, write_snapshot
from vedette.engine.ports import LeasedUrl, LinkBatch, UrlCounts, UrlState
from vedette.errors import StoreCorrupt, StoreError
from vedette.model import partition_of

SCAN_ROWS = 20_000

Hosts = npt.NDArray[np.int64]


_LEASED = 0  # the mark of what has not ended, in addition to the fates
_REQUEUED = 0  # in the log of fates: it is queued again

_NAMED_LEASES = (
    "SELECT url_id, host, priority FROM lease "
    "WHERE url_id IN (SELECT value FROM json_each(?)) AND worker = ? ORDER BY url_id"
)
_OLD_LEASES = "SELECT url_id, host, priority FROM lease WHERE until_s <= ? ORDER BY url_id"


@dataclass(frozen=True, slots=True)
class QueuePosition:
    """A URL's position in the URL store: front queue, and URLs ahead of it, None if that is too far back."""

    front: int | None
    ahead: int | None


@dataclass(frozen=True, slots=True)
class _Leases:
    """Open leases of the URL store, by URL id."""

    ids: Ids
    hosts: Hosts
    priorities: Counts8


class UrlStore:
    """URL store of the known URLs, over a connection with the schema of ``create_url_tables``."""

    def __init__(self, connection: sqlite3.Connection, epoch: int, image: Path | None = None) -> None:
        self._db, self._epoch = connection, epoch
        self._gate = WriteFence(connection, epoch)
        self._hosts: dict[str, int] = {}
        self._partitions = np.zeros(0, np.int64)
        self._recover_hosts()
        self._recover(image)

    def __len__(self) -> int:
        return len(self._table)

    @property
    def nbytes(self) -> int:
        """Memory of all URLs in the URL store in bytes, without that of hosts."""
        return self._table.nbytes + self._queues.nbytes

    @property
    def secret(self) -> int:
        """The secret of the URL store's fingerprints, so that no web site can choose where its URLs are stored."""
        return self._gate.secret

    def intern_hosts(self, names: Sequence[str]) -> list[int]:
        """Return the URL store's id of each host, named as in ``model.Origin.host``; new hosts get the next."""
        ids = list(map(self._hosts.get, names))
        if None in ids:
            self._add_hosts(list(dict.fromkeys(name for name, id_ in zip(names, ids, strict=True) if id_ is None)))
            return [self._hosts[name] for name in names]
        return cast("list[int]", ids)

    def add(self, batch: LinkBatch, found_s: float) -> Ids:
        """Add links to the URL store; return the ids of those that were unknown and are now queued."""
        hosts = np.asarray(batch.hosts, np.int64)
        priorities = _check_fronts(batch.priorities)
        if not len(hosts) == len(batch.urls) == len(batch.depths) == len(priorities):
            raise ValueError("a batch of links has columns of different lengths")
        with self._gate.write(self._partitions_of(hosts)):
            added = self._table.add(self._table.fingerprints(batch.urls))
            new = np.flatnonzero(added.new)
            ids = added.ids[new]
            self._queues.append(ids, hosts[new], priorities[new])
            rows = [
                (
                    *(id_, int(self._partitions[batch.hosts[row]]), int(batch.hosts[row])),
                    *(batch.urls[row], int(batch.depths[row]), int(batch.priorities[row]), found_s),
                )
                for id_, row in zip(ids.tolist(), new.tolist(), strict=True)
            ]
            self._db.executemany("INSERT INTO url VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        return ids

    def find_unknown(self, urls: Sequence[str]) -> list[int]:
        """Count mentions of URLs in the URL store; return the positions of unknown ones, which must be added."""
        ids = self._table.count_mentions(self._table.fingerprints(urls))
        return np.flatnonzero(ids == 0).tolist()

    def find_ids(self, urls: Sequence[str]) -> Ids:
        """Return the URL store's id of each URL, 0 if unknown."""
        return self._table.find(self._table.fingerprints(urls))

    def count_inlinks(self, ids: Ids) -> Counts8:
        """Return how often each URL in the URL store was mentioned, up to 255; a crash may set it back."""
        return self._table.mention_counts(ids)

    def count_waiting(self, host: int) -> int:
        """Count the waiting URLs of a host in the URL store."""
        return self._queues.count_waiting(host)

    def hosts_with_work(self) -> Hosts:
        """Return the ids of the hosts that have waiting URLs in the URL store."""
        return self._queues.hosts_with_work()

    def get_counts(self) -> UrlCounts:
        """Return the number of URLs in each state from the URL store."""
        marks = self._queues.count_marks(len(self)).tolist()
        return UrlCounts(len(self), self._queues.count_total(), marks[_LEASED], *(marks[fate] for fate in UrlState))

    def lease(
        self, hosts: Sequence[int] | Hosts, worker: int, until_s: float, rng: np.random.Generator | None = None
    ) -> list[LeasedUrl]:
        """Lease one waiting URL for each mention of a host, if it has any, to a worker until a time.

        With ``rng`` the front queue is drawn, without it the best comes first.
        """
        wanted = np.asarray(hosts, np.int64)
        with self._gate.write(self._partitions_of(wanted)):
            popped = self._queues.pop(wanted.tolist(), rng.random(len(hosts)).tolist() if rng is not None else None)
            self._queues.mark(np.array([one.id for one in popped], np.uint32), _LEASED)
            self._write_leases(popped, worker, until_s)
            return self._read_leased(popped)

    def acknowledge(self, ids: Iterable[int], fate: UrlState, worker: int) -> Ids:
        """End leased URLs with a final state; return those that the worker still had leased."""
        held = self._read_leases(_NAMED_LEASES, ids_to_json(ids), worker)
        partitions = self._partitions_of(held.hosts)
        with self._gate.write(partitions):
            self._queues.mark(held.ids, fate)
            self._end_leases(held)
            rows = zip(partitions.tolist(), held.ids.tolist(), [int(fate)] * len(held.ids), strict=True)
            self._db.executemany("INSERT INTO fate (partition, url_id, fate) VALUES (?, ?, ?)", rows)
        return held.ids

    def release_leases(self, ids: Iterable[int], worker: int) -> Ids:
        """Requeue leased URLs unfetched; return those that the worker still had leased."""
        return self._requeue(self._read_leases(_NAMED_LEASES, ids_to_json(ids), worker))

    def requeue_expired(self, now_s: float) -> Ids:
        """Requeue the URLs of expired leases in the URL store."""
        return self._requeue(self._read_leases(_OLD_LEASES, now_s))

    def requeue(self, ids: Iterable[int], priority: int) -> Ids:
        """Requeue ended URLs of the URL store in this front queue; return those that had ended."""
        self._gate.begin()
        rows = np.array(self._hosts_of(ids), np.int64).reshape(-1, 2)
        ended = self._queues.have_ended(rows[:, 0].astype(np.uint32))
        rows = rows[ended]
        partitions = self._partitions_of(rows[:, 1])
        with self._gate.write(partitions):
            log = zip(partitions.tolist(), rows[:, 0].tolist(), [_REQUEUED] * len(rows), strict=True)
            self._db.executemany("INSERT INTO fate (partition, url_id, fate) VALUES (?, ?, ?)", log)
            self._queues.append(rows[:, 0].astype(np.uint32), rows[:, 1], _check_fronts([priority] * len(rows)))
        return rows[:, 0].astype(np.uint32)

    def move_to_front(self, ids: Iterable[int]) -> Ids:
        """Move URLs waiting in the URL store to the front of their host's best queue, until a restart at least."""
        waiting = [(id_, host) for id_, host in self._hosts_of(ids) if self._queues.get_mark(id_) is None]
        for id_, host in reversed(waiting):
            self._queues.move_to_front(id_, host)
        return np.array([id_ for id_, _ in waiting], np.uint32)

    def get_queue(self, host: int) -> tuple[Ids, Counts8]:
        """Return a host's waiting URLs in order with their front queues, except those in the best one."""
        return self._queues.list_waiting(host)

    def set_queue(self, host: int, ids: Ids, fronts: Sequence[int] | npt.NDArray[np.int64]) -> None:
        """Reorder the waiting URLs of a host in the URL store, until the next restart at least."""
        self._queues.reorder(host, ids, _check_fronts(fronts))

    def find_state(self, id_: int) -> UrlState | QueuePosition | None:
        """Return the state of a known URL from the URL store: its position, its end, or None if leased."""
        mark = self._queues.get_mark(id_)
        if mark is not None:
            return None if mark == _LEASED else UrlState(mark)
        ((_, host),) = self._hosts_of([id_])
        return QueuePosition(*(self._queues.find_position(id_, host) or (None, None)))

    def _hosts_of(self, ids: Iterable[int]) -> list[tuple[int, int]]:
        sql = "SELECT id, host FROM url WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id"
        return self._db.execute(sql, (ids_to_json(ids),)).fetchall()

    def host_names_with_work(self) -> list[str]:
        """Return the names of the hosts that have waiting URLs in the URL store."""
        busy = frozenset(self.hosts_with_work().tolist())
        return [name for name, id_ in self._hosts.items() if id_ in busy]

    def save_snapshot(self, image: Path) -> None:
        """Save a snapshot of the URL store, which saves the next start its scan if nothing is written after."""
        if self._db.in_transaction:
            raise StoreError("cannot save the known URLs while there are uncommitted changes: commit first")
        write_snapshot(image, self._gate.secret, self._gate.turn, self._table, self._queues)

    def _add_hosts(self, names: list[str]) -> None:
        partitions = np.array([partition_of(name) for name in names], np.int64)
        ids = range(len(self._hosts), len(self._hosts) + len(names))
        with self._gate.write(partitions):
            self._db.executemany("INSERT INTO host VALUES (?, ?, ?)", zip(ids, partitions.tolist(), names, strict=True))
            self._register_hosts(names, partitions)

    def _register_hosts(self, names: Sequence[str], partitions: Hosts) -> None:
        start, stop = len(self._hosts), len(self._hosts) + len(names)
        self._hosts.update(zip(names, range(start, stop), strict=True))
        grow_array(self, "_partitions", stop)
        self._partitions[start:stop] = partitions

    def _partitions_of(self, hosts: Hosts) -> Hosts:
        if hosts.size and not 0 <= hosts.min() <= hosts.max() < len(self._hosts):
            raise ValueError("unknown host id: use the ids from host_ids")
        return self._partitions[hosts]

    def _write_leases(self, popped: list[PoppedUrl], worker: int, until_s: float) -> None:
        rows = (
            (one.id, int(self._partitions[one.host]), one.host, one.front, worker, self._epoch, until_s)
            for one in popped
        )
        self._db.executemany("INSERT INTO lease VALUES (?, ?, ?, ?, ?, ?, ?)", rows)

    def _read_leased(self, popped: list[PoppedUrl]) -> list[LeasedUrl]:
        sql = "SELECT id, url, depth FROM url WHERE id IN (SELECT value FROM json_each(?))"
        rows = {row[0]: row for row in self._db.execute(sql, (ids_to_json(one.id for one in popped),))}
        return [LeasedUrl(one.id, one.host, rows[one.id][1], rows[one.id][2], one.propensity) for one in popped]

    def _read_leases(self, select: str, *values: object) -> _Leases:
        self._gate.begin()
        rows = np.array(self._db.execute(select, values).fetchall(), np.int64).reshape(-1, 3)
        return _Leases(rows[:, 0].astype(np.uint32), rows[:, 1], rows[:, 2].astype(np.uint8))

    def _end_leases(self, held: _Leases) -> None:
        sql = "DELETE FROM lease WHERE url_id IN (SELECT value FROM json_each(?))"
        self._db.execute(sql, (ids_to_json(held.ids.tolist()),))

    def _requeue(self, held: _Leases) -> Ids:
        if not len(held.ids):
            return held.ids
        with self._gate.write(self._partitions_of(held.hosts)):
            self._end_leases(held)
            self._queues.append(held.ids, held.hosts, held.priorities)
        return held.ids

    def _recover_hosts(self) -> None:
        rows = self._db.execute("SELECT id, partition, name FROM host ORDER BY id").fetchall()
        if [row[0] for row in rows] != list(range(len(rows))):
            raise StoreCorrupt("hosts are missing from the state: restore it from a backup")
        self._register_hosts([row[2] for row in rows], np.array([row[1] for row in rows], np.int64))

    def _recover(self, image: Path | None) -> None:
        """Load the URL store from a current snapshot or from its rows; counts may come from an older one."""
        found = read_snapshot(image, self._gate.secret) if image is not None else None
        if found is not None and found.turn == self._gate.turn:
            self._table, self._queues = found.table, found.queues
            return
        self._scan()
        if found is not None and found.turn < self._gate.turn:
            self._table.restore_counts(found.table.to_arrays()["named"])

    def _scan(self) -> None:
        """Rebuild the URL store from all rows, in order of ids: a URL without lease and final state is queued."""
        last_id = self._db.execute("SELECT max(id) FROM url").fetchone()[0] or 0
        self._table, self._queues = UrlTable(self._gate.secret, room=last_id), HostQueues()
        self._queues.reserve_hosts(len(self._hosts))
        self._queues.reserve_ids(last_id)
        self._scan_fates()
        ids = _to_column(self._db.execute("SELECT url_id FROM lease")).astype(np.uint32)
        self._queues.mark(ids, _LEASED)
        rows = self._db.execute("SELECT url, host, priority FROM url ORDER BY id")
        while batch := rows.fetchmany(SCAN_ROWS):
            self._scan_urls(batch)
        if len(self._table) != last_id:
            raise StoreCorrupt(
                f"{last_id - len(self._table)} URLs are missing from the state: restore it from a backup"
            )

    def _scan_fates(self) -> None:
        rows = self._db.execute("SELECT url_id, fate FROM fate ORDER BY id")
        while batch := rows.fetchmany(SCAN_ROWS):
            last = dict(batch)
            for fate in (*UrlState, _REQUEUED):
                ids = np.array([id_ for id_, ended in last.items() if ended == fate], np.uint32)
                if fate == _REQUEUED:
                    self._queues.unmark(ids)
                else:
                    self._queues.mark(ids, fate)

    def _scan_urls(self, batch: list[tuple[str, int, int]]) -> None:
        urls, hosts, priorities = zip(*batch, strict=True)
        added = self._table.add(self._table.fingerprints(urls))
        idle = self._queues.are_unmarked(added.ids)
        self._queues.append(added.ids[idle], np.array(hosts, np.int64)[idle], np.array(priorities, np.uint8)[idle])


def _check_fronts(priorities: Sequence[int] | npt.NDArray[np.int64]) -> Counts8:
    fronts = np.asarray(priorities, np.int64)
    if fronts.size and not 0 <= fronts.min() <= fronts.max() < FRONTS:
        raise ValueError(f"the priority must be a front queue number from 0 to {FRONTS - 1}")
    return fronts.astype(np.uint8)


def _to_column(rows: Iterable[tuple[int]]) -> npt.NDArray[np.int64]:
    return np.array([row[0] for row in rows], np.int64)
