"""The frontier: who may be asked next, and for what. Mercator's back queues, with politeness by host *and* address.

Each host has one queue, ordered by worth, and is asked for one thing at a time. A heap holds the earliest time at
which each host may be asked again; its root is the only thing that is ever waited for, so a slow or blocked host
costs the others nothing. Hosts that share an address stand in line for it: the line is the address's own entry in
the heap. A thing that may not be asked for yet waits outside its queue, and its host goes on meanwhile.

A *held* host is asked for nothing but *urgent* things, those of infinite worth: what somebody else waits for must get
through, or two hosts that wait for each other would wait for ever.

Invariants (asserted where they could break):
1. a host is *idle* (empty queue), *timed* (in the heap), *in line* (at its address), *held* (and nothing urgent) or
   *busy*: exactly one;
2. a busy host has exactly one thing out, and at most one host of an address is busy;
3. a timed host is never taken before its time, nor a host before its address's time.

The frontier knows no clock and no rules: ``ready_s`` values are handed in by whoever knows delays.
"""

from collections import Counter, deque
from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import inf
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
    """A host: its things to ask for, best first, how many more may not be asked for yet, and when it may be asked."""

    host: str
    gate: _Gate
    ready_s: float
    things: list[tuple[float, int, Item]] = field(default_factory=list)
    later: int = 0
    standing: Standing = "idle"
    held: bool = False


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
        self._later: list[tuple[float, int, float, Taken[Item]]] = []
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
        """One more thing to ask an open host for; infinite worth makes it urgent."""
        self._size += 1
        self._line_up(self._queues[host], item, worth)

    def take(self, now_s: float) -> Taken[Item] | None:
        """The best thing of a host whose time, and whose address's time, has come; None if there is none."""
        self._bring_back(now_s)
        while self._heap and self._heap[0][0] <= now_s:
            entry = heappop(self._heap)[2]
            queue: _Queue[Item] | None
            if isinstance(entry, _Gate):
                queue = self._next_in_line(entry, now_s)
            else:
                queue = self._at_gate(self._queues[entry], now_s)
            if queue is not None:
                return self._give(queue)
        return None

    def done(self, host: str, ready_s: float, address_ready_s: float, *, hold: bool = False) -> None:
        """The answer came: when the host, and its address, may be asked again (``hold``: not before ``release``)."""
        queue = self._free(host)
        queue.gate.ready_s = max(queue.gate.ready_s, address_ready_s)
        queue.ready_s, queue.held = ready_s, hold
        self._go_on(queue)

    def put_back(self, taken: Taken[Item], worth: float, ready_s: float) -> None:
        """Nothing was asked, and the thing may not be asked for before ``ready_s``; the host goes on without it."""
        queue = self._free(taken.host)
        queue.later += 1
        self._size += 1
        heappush(self._later, (ready_s, self._count(), worth, taken))
        self._go_on(queue)

    def drop(self, taken: Taken[Item]) -> None:
        """Nothing was asked and the thing does not return; the host goes on as if it had not been taken."""
        self._go_on(self._free(taken.host))

    def release(self, host: str, ready_s: float) -> None:
        """A held host may be asked for everything again, from ``ready_s`` on; any other stays as it is."""
        queue = self._queues.get(host)
        if queue is not None and queue.held:
            queue.held = False
            queue.ready_s = max(queue.ready_s, ready_s)
            if queue.standing == "held":
                self._time(queue)

    def rest(self, host: str, ready_s: float) -> None:
        """A host is not to be asked before this time, if that is later than what was known."""
        queue = self._queues[host]
        queue.ready_s = max(queue.ready_s, ready_s)

    def clear(self, host: str) -> list[Item]:
        """Everything that waits for a host, which has nothing left to be asked for then."""
        queue = self._queues[host]
        assert not queue.later, f"{host} has things that wait for a time of their own"
        things, queue.things = [item for _, _, item in sorted(queue.things)], []
        self._size -= len(things)
        return things

    def move(self, host: str, address: str, ready_s: float) -> None:
        """A host without anything to be asked for has another address from now on."""
        assert not self.waiting(host), f"{host} has things waiting"
        assert self._queues[host].standing != "busy", f"{host} has something out"
        del self._queues[host]
        self.open(host, address, ready_s)

    def next_s(self) -> float | None:
        """The earliest time at which ``take`` may bring something that it does not bring now."""
        return min((heap[0][0] for heap in (self._heap, self._later) if heap), default=None)

    def waiting(self, host: str) -> int:
        """How many things wait for a host, whether they may be asked for now or later."""
        queue = self._queues.get(host)
        return len(queue.things) + queue.later if queue else 0

    def standings(self) -> Counter[Standing]:
        """How many hosts stand where; for people."""
        return Counter(queue.standing for queue in self._queues.values())

    def _count(self) -> int:
        self._number += 1
        return self._number

    def _bring_back(self, now_s: float) -> None:
        while self._later and self._later[0][0] <= now_s:
            _, _, worth, taken = heappop(self._later)
            queue = self._queues[taken.host]
            queue.later -= 1
            self._line_up(queue, taken.item, worth)

    def _line_up(self, queue: _Queue[Item], item: Item, worth: float) -> None:
        heappush(queue.things, (-worth, self._count(), item))
        if queue.standing in {"idle", "held"}:
            self._time(queue)

    def _time(self, queue: _Queue[Item]) -> None:
        if not queue.things:
            queue.standing = "idle"
        elif queue.held and queue.things[0][0] != -inf:
            queue.standing = "held"
        else:
            queue.standing = "timed"
            heappush(self._heap, (queue.ready_s, self._count(), queue.host))

    def _time_gate(self, gate: _Gate) -> None:
        if gate.line and not gate.busy and not gate.timed:
            gate.timed = True
            heappush(self._heap, (gate.ready_s, self._count(), gate))

    def _go_on(self, queue: _Queue[Item]) -> None:
        self._time(queue)
        self._time_gate(queue.gate)

    def _at_gate(self, queue: _Queue[Item], now_s: float) -> _Queue[Item] | None:
        gate = queue.gate
        if queue.standing != "timed":  # it was moved, and this entry is of its earlier address
            return None
        if queue.ready_s > now_s or not queue.things:  # it was told to wait longer, or it was cleared
            self._time(queue)
            return None
        if not gate.busy and not gate.line and gate.ready_s <= now_s:
            return queue
        queue.standing = "in line"
        gate.line.append(queue.host)
        self._time_gate(gate)
        return None

    def _next_in_line(self, gate: _Gate, now_s: float) -> _Queue[Item] | None:
        gate.timed = False
        queue = self._queues[gate.line.popleft()]
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
