"""Host queues: which URLs of a host wait, and in which order, at four bytes per known URL.

Every host has eight *front queues*, Mercator's priorities, 0 the best. A queue is a ring of ids: one array holds, for
each id, the next id, and each queue knows its last one, which is followed by its first. So a URL joins and leaves at
the cost of two array cells, however long the queue, and no index on disk is touched.

An id that does not wait needs no successor; its cell holds its state instead (a *mark*), so that no id can be queued,
leased or ended twice.

A URL is taken from the best non-empty queue, or, given a random number, from a queue drawn among the non-empty ones
with weights that halve from each to the next worse: then nothing starves. The propensity of the draw is returned with
the URL.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt

from vedette.adapters.url_store.hash_table import Bools, Counts8, Ids, grow_array
from vedette.errors import StoreError

FRONTS = 8
MARKS = 256
MAX_IDS = (1 << 32) - MARKS - 1


@dataclass(frozen=True, slots=True)
class PoppedUrl:
    """A URL id popped from its host's queues, its front queue, and the probability of drawing that queue."""

    id: int
    host: int
    front: int
    propensity: float


@dataclass(frozen=True, slots=True)
class _QueueWeights:
    """The non-empty front queues of a host, and where each one's share of the unit interval ends."""

    fronts: tuple[int, ...]
    ends: tuple[float, ...]

    def draw(self, lot: float) -> tuple[int, float]:
        """Return the front queue that a random number of [0, 1) selects, and its probability."""
        place = min(bisect_right(self.ends, lot), len(self.fronts) - 1)
        return self.fronts[place], self.ends[place] - (self.ends[place - 1] if place else 0.0)


def _build_weights(mask: int) -> _QueueWeights:
    fronts = tuple(front for front in range(FRONTS) if mask >> front & 1)
    total = sum(0.5**front for front in fronts)
    return _QueueWeights(fronts, tuple(accumulate(0.5**front / total for front in fronts)))


_WEIGHTS = tuple(map(_build_weights, range(1 << FRONTS)))


class HostQueues:
    """Queues of the waiting URLs of all hosts; hosts are numbered from 0.

    >>> queues = HostQueues()
    >>> queues.append(np.array([1, 2, 3], np.uint32), np.array([0, 0, 0]), np.array([5, 0, 5], np.uint8))
    >>> [popped.id for popped in queues.pop([0, 0, 0, 0], None)]
    [2, 1, 3]
    """

    def __init__(self) -> None:
        self._after = np.zeros(0, np.uint32)
        self._last = np.zeros((0, FRONTS), np.uint32)
        self._filled = np.zeros(0, np.uint8)
        self._waiting = np.zeros(0, np.uint32)

    @property
    def nbytes(self) -> int:
        """Memory of the host queues in bytes, without what is kept per host."""
        return self._after.nbytes

    def reserve_hosts(self, hosts: int) -> None:
        """Make room in the host queues for this many hosts."""
        for name in ("_last", "_filled", "_waiting"):
            grow_array(self, name, hosts)

    def reserve_ids(self, ids: int) -> None:
        """Make room in the host queues for URL ids up to this one."""
        if ids > MAX_IDS:
            raise StoreError(f"more than {MAX_IDS} known URLs: move some sites to another data folder")
        grow_array(self, "_after", ids + 1)

    def append(self, ids: Ids, hosts: npt.NDArray[Any], fronts: Counts8) -> None:
        """Append distinct URL ids that wait nowhere to the queues of their hosts, in the order given."""
        if not len(ids):
            return
        self.reserve_hosts(int(hosts.max()) + 1)
        self.reserve_ids(int(ids.max()))
        queues = hosts.astype(np.int64) * FRONTS + fronts
        order = np.argsort(queues, kind="stable")
        ids, queues = ids[order], queues[order]
        starts = np.flatnonzero(np.diff(queues, prepend=-1))
        stops = np.append(starts[1:], len(ids)) - 1
        self._after[ids[:-1]] = ids[1:]
        self._close_rings(queues[starts], ids[starts], ids[stops])
        np.add.at(self._waiting, hosts, 1)
        np.bitwise_or.at(self._filled, hosts, np.left_shift(1, fronts).astype(np.uint8))

    def pop(self, hosts: Sequence[int], lots: Sequence[float] | None) -> list[PoppedUrl]:
        """Pop one URL id for each mention of a host, none for a host with an empty queue.

        ``lots`` are random numbers in [0, 1), one for each mention; without them the best queue is emptied first.
        """
        popped = []
        for turn, host in enumerate(hosts):
            mask = int(self._filled[host]) if host < len(self._filled) else 0
            if mask:
                drawn = _WEIGHTS[mask].draw(lots[turn]) if lots is not None else (_WEIGHTS[mask].fronts[0], 1.0)
                popped.append(PoppedUrl(self._pop_front(host, drawn[0]), host, *drawn))
        return popped

    def mark(self, ids: Ids, mark: int) -> None:
        """Mark the state of URL ids that are in no host queue."""
        if len(ids):
            self.reserve_ids(int(ids.max()))
            self._after[ids] = MAX_IDS + 1 + mark

    def are_unmarked(self, ids: Ids) -> Bools:
        """Return which URL ids may wait in a host queue, by their marks."""
        return self._after[ids] <= MAX_IDS

    def unmark(self, ids: Ids) -> None:
        """Clear the marks of URL ids in the host queues."""
        if len(ids):
            self.reserve_ids(int(ids.max()))
            self._after[ids] = 0

    def have_ended(self, ids: Ids) -> Bools:
        """Return which URL ids neither wait in a host queue nor are leased."""
        return self._after[ids] > MAX_IDS + 1

    def count_waiting(self, host: int) -> int:
        """Count the URLs in the queues of a host."""
        return int(self._waiting[host]) if host < len(self._waiting) else 0

    def move_to_front(self, id_: int, host: int) -> None:
        """Move a waiting URL id to the front of its host's best queue."""
        before = int(np.flatnonzero(self._after == id_)[0])
        ends = np.flatnonzero(self._last[host] == id_)
        if before == id_:
            self._last[host, ends] = 0
            self._filled[host] &= 0xFF ^ (1 << int(ends[0]))
        else:
            self._after[before] = self._after[id_]
            self._last[host, ends] = before
        self._push_front(id_, host)

    def find_position(self, id_: int, host: int, most: int = 10_000) -> tuple[int, int] | None:
        """Return a URL id's front queue and how many are ahead of it there; None if more than ``most``."""
        for front in range(FRONTS):
            last = int(self._last[host, front])
            at, ahead = int(self._after[last]) if last else 0, 0
            while last and ahead < most:
                if at == id_:
                    return front, ahead
                if at == last:
                    break
                at, ahead = int(self._after[at]), ahead + 1
        return None

    def list_waiting(self, host: int) -> tuple[Ids, Counts8]:
        """List the waiting URLs of a host in order with their queues, without the best, which holds requests."""
        ids: list[int] = []
        fronts: list[int] = []
        after = self._after.data  # reading a number from the list costs a fifth of reading it from the array
        for front in range(1, FRONTS) if host < len(self._last) else ():
            last = int(self._last[host, front])
            before, at = len(ids), 0
            while last and at != last:
                at = after[at or last]
                ids.append(at)
            fronts += [front] * (len(ids) - before)
        return np.array(ids, np.uint32), np.array(fronts, np.uint8)

    def reorder(self, host: int, ids: Ids, fronts: Counts8) -> None:
        """Reorder the waiting URL ids of a host, and reassign their front queues."""
        if len(ids):
            self._last[host, 1:] = 0
            self._filled[host] &= 1
            self._waiting[host] -= len(ids)
            self.append(ids, np.full(len(ids), host, np.int64), fronts)

    def get_mark(self, id_: int) -> int | None:
        """Return the mark of a URL id in the host queues; None while it waits."""
        cell = int(self._after[id_])
        return cell - MAX_IDS - 1 if cell > MAX_IDS else None

    def hosts_with_work(self) -> npt.NDArray[np.int64]:
        """Return the numbers of the hosts whose queues are not empty."""
        return np.flatnonzero(self._filled)

    def count_total(self) -> int:
        """Count the URLs in all host queues."""
        return int(self._waiting.sum(dtype=np.int64))

    def count_marks(self, ids: int) -> npt.NDArray[np.int64]:
        """Count how many URL ids up to this one have each mark."""
        cells = self._after[1 : ids + 1]
        return np.bincount(cells[cells > MAX_IDS] - np.uint32(MAX_IDS + 1), minlength=MARKS)

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the host queues as arrays to save; they change as the queues are used."""
        return {"after": self._after, "last": self._last, "filled": self._filled, "waiting": self._waiting}

    @classmethod
    def from_arrays(cls, arrays: dict[str, npt.NDArray[Any]]) -> "HostQueues":
        """Build host queues from what ``to_arrays`` returned."""
        queues = cls()
        for name in queues.to_arrays():
            setattr(queues, f"_{name}", arrays[name].copy())
        return queues

    def _close_rings(self, queues: npt.NDArray[np.int64], firsts: Ids, lasts: Ids) -> None:
        """Close chains of URL ids into rings, one for each queue, appended to what waits there already."""
        last = self._last.reshape(-1)
        before = last[queues]
        old, empty = before != 0, before == 0
        self._after[lasts[empty]] = firsts[empty]
        self._after[lasts[old]] = self._after[before[old]]
        self._after[before[old]] = firsts[old]
        last[queues] = lasts

    def _push_front(self, id_: int, host: int) -> None:
        last = int(self._last[host, 0])
        if last:
            self._after[id_], self._after[last] = self._after[last], id_
            return
        self._after[id_] = self._last[host, 0] = id_
        self._filled[host] |= 1

    def _pop_front(self, host: int, front: int) -> int:
        last = int(self._last[host, front])
        first = int(self._after[last])
        assert 0 < first <= MAX_IDS, f"id {last} is last of a queue and bears a mark"
        if first == last:
            self._last[host, front] = 0
            self._filled[host] &= 0xFF ^ (1 << front)
        else:
            self._after[last] = self._after[first]
        self._waiting[host] -= 1
        return first
