"""The frontier: who may be asked next, and for what. Mercator's back queues, with politeness by host *and* address.

Mercator has two kinds of queues. *Front queues* stand for priorities; from them the next URLs of a host are chosen
with a bias towards the better ones. They are durable and live where the known URLs do (``edges/url_queues``). *Back
queues* stand for hosts: each holds a few URLs of one host, which were chosen already, and a heap says which host may
be asked next. These are here.

Each host has one queue, ordered by worth, and is asked for one thing at a time. A heap holds the earliest time at
which each host may be asked again; its root is the only thing that is ever waited for, so a slow or blocked host
costs the others nothing. Hosts that share an address stand in line for it: the line is the address's own entry in
the heap.

Invariants (asserted where they could break):
1. a host is *idle* (empty queue), *timed* (in the heap), *in line* (at its address) or *busy*: exactly one;
2. a busy host has exactly one thing out, and at most one host of an address is busy;
3. a timed host is never taken before its time, nor a host before its address's time.

The frontier knows no clock and no rules: ``ready_s`` values are handed in by whoever knows delays.
"""

from collections import Counter, deque
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any, Generic, Literal, TypeVar

import numpy as np

from vedette.frontier.impact.estimates import ByImpact
from vedette.frontier.policies.breadth import Breadth
from vedette.frontier.policies.inlinks import Inlinks
from vedette.frontier.unseen import Unseen
from vedette.policy import Floats, Ints, Priority

__all__ = ["FRONTS", "ORDERS", "WANTED", "Frontier", "OrderName", "Ordering", "Standing", "Taken", "front_of"]

# A front queue holds what was found at about the same worth, so the place of a URL costs nothing to keep, whatever the
# policy. Worth that changes while a URL waits does not move it; whoever draws from the queues may look again.


FRONTS = 8
WANTED = 0

OrderName = Literal["impact", "breadth", "inlinks"]


@dataclass(frozen=True, slots=True)
class Ordering:
    """An order policy, the range of worth that tells its front queues apart, and how many it chooses one from.

    ``sample`` is 1 where worth does not change while a URL waits: the front queues say all then.
    """

    policy: Priority[None, tuple[()], Unseen, Unseen]
    best: float
    worst: float
    sample: int


ORDERS: dict[OrderName, Ordering] = {
    # Where gains are known they say the queue (``foreseen``); the range is that of breadth first, for all others.
    "impact": Ordering(ByImpact(), best=0.0, worst=-7.0, sample=1),
    "breadth": Ordering(Breadth(), best=0.0, worst=-7.0, sample=1),
    "inlinks": Ordering(Inlinks(), best=7.0, worst=0.0, sample=4),
}


def front_of(worth: Floats, best: float, worst: float) -> Ints:
    """The front queue of each worth: equal steps from ``best`` to ``worst``, and whatever lies beyond at the ends.

    >>> front_of(np.array([9.0, 1.0, 0.5, 0.0, -3.0]), best=1.0, worst=0.0).tolist()
    [1, 1, 4, 7, 7]
    """
    steps = np.floor((best - worth) / (best - worst) * (FRONTS - 1))
    return (WANTED + 1 + np.clip(steps, 0, FRONTS - 2)).astype(np.int64)


Item = TypeVar("Item")
Standing = Literal["idle", "timed", "in line", "busy"]


@dataclass(slots=True, eq=False)
class _Gate:
    """An address: free from ``ready_s`` on, unless busy; hosts whose own time has come stand in ``line``."""

    name: str
    ready_s: float = 0.0
    busy: bool = False
    timed: bool = False
    line: "deque[_Queue[Any]]" = field(default_factory=deque)


@dataclass(slots=True, eq=False)
class _Queue(Generic[Item]):
    """A host at an address: its things to ask for, best first, and when it may be asked."""

    host: str
    gate: _Gate
    ready_s: float
    things: list[tuple[float, int, Item]] = field(default_factory=list)
    standing: Standing = "idle"


@dataclass(frozen=True, slots=True)
class Taken(Generic[Item]):
    """A thing that may be asked for now; the host is busy until ``done`` or ``drop``."""

    host: str
    item: Item


class Frontier(Generic[Item]):
    """All hosts in play.

    >>> frontier = Frontier[str]()
    >>> frontier.open("a.test", "127.0.0.2", ready_s=5.0)
    >>> frontier.add("a.test", "/second", worth=1.0); frontier.add("a.test", "/first", worth=2.0)
    >>> frontier.take(4.9), frontier.next_s()
    (None, 5.0)
    >>> frontier.take(5.0)
    Taken(host='a.test', item='/first')
    >>> frontier.take(5.0)  # one at a time
    >>> frontier.done("a.test", ready_s=6.0, address_ready_s=5.2)
    >>> frontier.next_s()
    6.0
    """

    def __init__(self) -> None:
        self._queues: dict[str, _Queue[Item]] = {}
        self._gates: dict[str, _Gate] = {}
        self._heap: list[tuple[float, int, _Gate | _Queue[Item]]] = []
        self._number = 0
        self._size = 0
        self._busy = 0

    def __len__(self) -> int:
        return self._size

    def __contains__(self, host: str) -> bool:
        return host in self._queues

    @property
    def busy(self) -> int:
        """How many hosts have something out."""
        return self._busy

    def open(self, host: str, address: str, ready_s: float) -> None:
        """A host comes into play at an address, and may be asked from ``ready_s`` on."""
        assert host not in self._queues, f"{host} is open already"
        gate = self._gates.setdefault(address, _Gate(address))
        self._queues[host] = _Queue(host, gate, ready_s)

    def add(self, host: str, item: Item, worth: float) -> None:
        """One more thing to ask an open host for."""
        self._size += 1
        queue = self._queues[host]
        heappush(queue.things, (-worth, self._count(), item))
        if queue.standing == "idle":
            self._time(queue)

    def take(self, now_s: float) -> Taken[Item] | None:
        """The best thing of a host whose time, and whose address's time, has come; None if there is none."""
        while self._heap and self._heap[0][0] <= now_s:
            entry = heappop(self._heap)[2]
            queue: _Queue[Item] | None
            if isinstance(entry, _Gate):
                queue = self._next_in_line(entry, now_s)
            else:
                queue = self._at_gate(entry, now_s)
            if queue is not None:
                return self._give(queue)
        return None

    def done(self, host: str, ready_s: float, address_ready_s: float) -> None:
        """The answer came: when the host, and its address, may be asked again."""
        queue = self._free(host)
        queue.gate.ready_s = max(queue.gate.ready_s, address_ready_s)
        queue.ready_s = max(queue.ready_s, ready_s)
        self._go_on(queue)

    def drop(self, taken: Taken[Item]) -> None:
        """Nothing was asked and the thing does not return; the host goes on as if it had not been taken."""
        self._go_on(self._free(taken.host))

    def rest(self, host: str, ready_s: float) -> None:
        """A host is not to be asked before this time, if that is later than what was known."""
        queue = self._queues[host]
        queue.ready_s = max(queue.ready_s, ready_s)

    def clear(self, host: str) -> list[Item]:
        """Everything that waits for a host, best first; it has nothing left to be asked for then."""
        queue = self._queues[host]
        things, queue.things = [heappop(queue.things)[2] for _ in range(len(queue.things))], []
        self._size -= len(things)
        return things

    def move(self, host: str, address: str, ready_s: float) -> None:
        """A host without anything to be asked for has another address from now on; its rest goes with it."""
        queue = self._queues[host]
        assert not queue.things, f"{host} has things waiting"
        assert queue.standing != "busy", f"{host} has something out"
        # Wherever the old queue still stands, in the heap or in line, it is empty, and drops out when its turn comes.
        del self._queues[host]
        self.open(host, address, max(ready_s, queue.ready_s))

    def next_s(self) -> float | None:
        """The earliest time at which ``take`` may bring something that it does not bring now."""
        return self._heap[0][0] if self._heap else None

    def waiting(self, host: str) -> int:
        """How many things wait for a host."""
        queue = self._queues.get(host)
        return len(queue.things) if queue else 0

    def standings(self) -> Counter[Standing]:
        """How many hosts stand where; for people."""
        return Counter(queue.standing for queue in self._queues.values())

    def _count(self) -> int:
        self._number += 1
        return self._number

    def _time(self, queue: _Queue[Item]) -> None:
        if not queue.things:
            queue.standing = "idle"
        else:
            queue.standing = "timed"
            heappush(self._heap, (queue.ready_s, self._count(), queue))

    def _time_gate(self, gate: _Gate) -> None:
        if gate.line and not gate.busy and not gate.timed:
            gate.timed = True
            heappush(self._heap, (gate.ready_s, self._count(), gate))

    def _go_on(self, queue: _Queue[Item]) -> None:
        self._time(queue)
        self._time_gate(queue.gate)

    def _at_gate(self, queue: _Queue[Item], now_s: float) -> _Queue[Item] | None:
        gate = queue.gate
        if queue.ready_s > now_s or not queue.things:  # it was told to wait longer, or it was cleared
            self._time(queue)
            return None
        if not gate.busy and not gate.line and gate.ready_s <= now_s:
            return queue
        queue.standing = "in line"
        gate.line.append(queue)
        self._time_gate(gate)
        return None

    def _next_in_line(self, gate: _Gate, now_s: float) -> _Queue[Item] | None:
        gate.timed = False
        queue = gate.line.popleft()
        if queue.ready_s <= now_s and queue.things:
            return queue
        self._go_on(queue)  # it was told to wait longer, or was cleared: it leaves the line
        return None

    def _give(self, queue: _Queue[Item]) -> Taken[Item]:
        assert not queue.gate.busy, f"{queue.host}: its address {queue.gate.name} has something out already"
        queue.standing = "busy"
        queue.gate.busy = True
        self._busy += 1
        self._size -= 1
        return Taken(queue.host, heappop(queue.things)[2])

    def _free(self, host: str) -> _Queue[Item]:
        queue = self._queues[host]
        assert queue.standing == "busy", f"{host} has nothing out"
        queue.gate.busy = False
        self._busy -= 1
        return queue
