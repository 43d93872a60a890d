"""The frontier: who may be asked next, and for what. Mercator's back queues, with politeness by host *and* address.

Each host has one queue, ordered by worth, and is asked for one thing at a time. A heap holds the earliest time at
which each host may be asked again; its root is the only thing that is ever waited for, so a slow or blocked host
costs the others nothing. Hosts that share an address stand in line for it: the line is the address's own entry in
the heap.

Invariants (asserted where they could break):
1. a host is *idle* (empty queue), *timed* (in the heap), *in line* (at its address), *held* or *busy*: exactly one;
2. a busy host has exactly one thing out, and at most one host of an address is busy;
3. a timed host is never taken before its time, nor a host before its address's time.

The frontier knows no clock and no rules: ``ready_s`` values are handed in by whoever knows delays.
"""

from collections import Counter, deque
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Generic, Literal, TypeVar

__all__ = ["Frontier", "Standing", "Taken"]

Item = TypeVar("Item")
Standing = Literal["idle", "timed", "in line", "held", "busy"]


@dataclass(slots=True)
class _Gate:
    """An address: free from ``ready_s`` on, unless busy; hosts whose own time has come stand in ``line``."""

    name: str
    ready_s: float = 0.0
    busy: bool = False
    timed: bool = False
    line: deque[str] = field(default_factory=deque)


@dataclass(slots=True)
class _Queue(Generic[Item]):
    """A host: its things to ask for, best first, and when it may be asked."""

    host: str
    gate: _Gate
    ready_s: float
    things: list[tuple[float, int, Item]] = field(default_factory=list)
    standing: Standing = "idle"


@dataclass(frozen=True, slots=True)
class Taken(Generic[Item]):
    """A thing that may be asked for now; the host is busy until ``done``, ``put_back`` or ``drop``."""

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
        self._heap: list[tuple[float, int, _Gate | str]] = []
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
        gate = self._gates.setdefault(address, _Gate(address))
        self._queues[host] = _Queue(host, gate, ready_s)

    def add(self, host: str, item: Item, worth: float) -> None:
        """One more thing to ask an open host for."""
        queue = self._queues[host]
        heappush(queue.things, (-worth, self._count(), item))
        self._size += 1
        if queue.standing == "idle":
            self._time(queue)

    def take(self, now_s: float) -> Taken[Item] | None:
        """The best thing of a host whose time, and whose address's time, has come; None if there is none."""
        while self._heap and self._heap[0][0] <= now_s:
            entry = heappop(self._heap)[2]
            queue: _Queue[Item] | None
            if isinstance(entry, _Gate):
                queue = self._next_in_line(entry)
            else:
                queue = self._at_gate(self._queues[entry], now_s)
            if queue is not None:
                return self._give(queue)
        return None

    def done(self, host: str, ready_s: float, address_ready_s: float, *, hold: bool = False) -> None:
        """The answer came: when the host, and its address, may be asked again (``hold``: not before ``release``)."""
        queue = self._free(host)
        queue.gate.ready_s = max(queue.gate.ready_s, address_ready_s)
        queue.ready_s = ready_s
        if hold:
            queue.standing = "held"
        else:
            self._time(queue)
        self._time_gate(queue.gate)

    def put_back(self, taken: Taken[Item], worth: float, ready_s: float) -> None:
        """Nothing was asked: the thing returns to its queue, and the host waits until ``ready_s``."""
        queue = self._free(taken.host)
        heappush(queue.things, (-worth, self._count(), taken.item))
        self._size += 1
        queue.ready_s = max(queue.ready_s, ready_s)
        self._time(queue)
        self._time_gate(queue.gate)

    def drop(self, taken: Taken[Item]) -> None:
        """Nothing was asked and the thing does not return; the host goes on as if it had not been taken."""
        queue = self._free(taken.host)
        self._time(queue)
        self._time_gate(queue.gate)

    def release(self, host: str, ready_s: float) -> None:
        """A held host may be asked from ``ready_s`` on; any other stays as it is."""
        queue = self._queues.get(host)
        if queue is not None and queue.standing == "held":
            queue.ready_s = max(queue.ready_s, ready_s)
            self._time(queue)

    def next_s(self) -> float | None:
        """The earliest time at which ``take`` may bring something that it does not bring now."""
        return self._heap[0][0] if self._heap else None

    def waiting(self, host: str) -> int:
        """How many things wait in a host's queue."""
        return len(self._queues[host].things) if host in self._queues else 0

    def standings(self) -> Counter[Standing]:
        """How many hosts stand where; for people."""
        return Counter(queue.standing for queue in self._queues.values())

    def _count(self) -> int:
        self._number += 1
        return self._number

    def _time(self, queue: _Queue[Item]) -> None:
        queue.standing = "timed" if queue.things else "idle"
        if queue.things:
            heappush(self._heap, (queue.ready_s, self._count(), queue.host))

    def _time_gate(self, gate: _Gate) -> None:
        if gate.line and not gate.busy and not gate.timed:
            gate.timed = True
            heappush(self._heap, (gate.ready_s, self._count(), gate))

    def _at_gate(self, queue: _Queue[Item], now_s: float) -> _Queue[Item] | None:
        gate = queue.gate
        if not gate.busy and not gate.line and gate.ready_s <= now_s:
            return queue
        queue.standing = "in line"
        gate.line.append(queue.host)
        self._time_gate(gate)
        return None

    def _next_in_line(self, gate: _Gate) -> _Queue[Item]:
        gate.timed = False
        return self._queues[gate.line.popleft()]

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
