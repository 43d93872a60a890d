"""The frontier's back queues: which host to request next, polite by host *and* by address (Mercator).

Each host has one queue, ordered by worth, and gets one request at a time. A heap holds the earliest time of each host's
next request; only its root is ever waited for, so a slow or blocked host costs the others nothing. Hosts that share an
address queue up for it: that queue is the address's own entry in the heap.

If more hosts are ready than there are connections, the host with the best waiting item goes first; the same applies to
the queue of an address. Worth only decides between hosts that may be requested; it never shortens a delay. Every fourth
turn goes to the host that has waited longest, so nothing starves (``TurnQueue``).

Invariants (asserted where they could break):
1. a host is *idle* (empty queue), *timed* (in the heap), *in line* (at its address), *ready* or *busy*: exactly one;
2. a busy host has exactly one item out, and at most one host of an address is busy;
3. a timed host is never taken before its time, nor a host before its address's time.

The frontier has no clock and no rules: ``ready_s`` values come from the caller, who knows the delays. Remote observers
use it too, so it needs no numpy.
"""

from collections import deque
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from math import inf
from typing import Any, Generic, Literal, TypeVar

Item = TypeVar("Item")
HostState = Literal["idle", "timed", "in line", "ready", "busy"]
# One turn in this many goes to the item that has waited longest.
FAIR_TURN = 4


class TurnQueue(Generic[Item]):
    """Waiting items that take turns: by worth, and every fourth time by waiting time.

    So an item gets its turn after at most four times as many turns as there were items before it, whatever later items
    are worth.

    >>> turns = TurnQueue[str]()
    >>> for item, worth in (("poor", 1.0), ("good", 3.0), ("fair", 2.0), ("best", 9.0), ("fine", 5.0)):
    ...     turns.add(item, worth)
    >>> [turns.take() for _ in range(6)]
    ['best', 'fine', 'good', 'poor', 'fair', None]
    """

    def __init__(self) -> None:
        self._waiting: dict[Item, tuple[int, float]] = {}
        self._by_worth: list[tuple[float, int, Item]] = []
        self._by_arrival: deque[tuple[int, Item]] = deque()
        self._number = self._turns = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, item: Item) -> bool:
        return item in self._waiting

    def add(self, item: Item, worth: float) -> None:
        """Add an item at the end of the queue, or raise the worth of one that waits."""
        number, before = self._waiting.get(item, (self._number + 1, -inf))
        if number > self._number:
            self._number = number
            self._by_arrival.append((number, item))
        elif worth <= before:
            return
        self._waiting[item] = number, worth
        heappush(self._by_worth, (-worth, number, item))

    def take(self) -> Item | None:
        """Take the item whose turn it is; None if none waits."""
        if not self._waiting:
            return None
        self._turns += 1
        item = self._pop_oldest() if self._turns % FAIR_TURN == 0 else self._pop_best()
        del self._waiting[item]
        return item

    def _pop_oldest(self) -> Item:
        if len(self._by_worth) > FAIR_TURN * len(self._waiting):  # most of them had their turn by age
            self._by_worth = [entry for entry in self._by_worth if self._is_waiting(entry[2], entry[1])]
            heapify(self._by_worth)
        while True:
            number, item = self._by_arrival.popleft()
            if self._is_waiting(item, number):
                return item

    def _pop_best(self) -> Item:
        while True:
            _, number, item = heappop(self._by_worth)
            if self._is_waiting(item, number):
                return item

    def _is_waiting(self, item: Item, number: int) -> bool:
        return self._waiting.get(item, (0, 0.0))[0] == number


@dataclass(slots=True, eq=False)
class _Address:
    """An IP address in the frontier: free from ``ready_s`` on, unless busy; hosts that are ready queue for it."""

    name: str
    ready_s: float = 0.0
    busy: bool = False
    timed: bool = False
    waiting: "TurnQueue[_Queue[Any]]" = field(default_factory=TurnQueue)


@dataclass(slots=True, eq=False)
class _Queue(Generic[Item]):
    """The back queue of a host at an address: its items to fetch, best first, and the time of its next request."""

    host: str
    address: _Address
    ready_s: float
    items: list[tuple[float, int, Item, float]] = field(default_factory=list)
    state: HostState = "idle"

    @property
    def value(self) -> float:
        """The value of the best item; the queue must not be empty."""
        return max(value for _, _, _, value in self.items)


@dataclass(frozen=True, slots=True)
class TakenItem(Generic[Item]):
    """An item taken from the frontier to be fetched now; its host is busy until ``complete`` or ``drop``."""

    host: str
    item: Item


class Frontier(Generic[Item]):
    """The frontier: the back queues of all active hosts, with the time of each host's next request.

    >>> frontier = Frontier[str]()
    >>> frontier.open_host("a.test", "127.0.0.2", ready_s=5.0)
    >>> frontier.add("a.test", "/second", worth=1.0); frontier.add("a.test", "/first", worth=2.0)
    >>> frontier.take(4.9), frontier.peek_next_s()
    (None, 5.0)
    >>> frontier.take(5.0)
    TakenItem(host='a.test', item='/first')
    >>> frontier.take(5.0)  # one at a time
    >>> frontier.complete("a.test", ready_s=6.0, address_ready_s=5.2)
    >>> frontier.peek_next_s()
    6.0
    """

    def __init__(self) -> None:
        self._queues: dict[str, _Queue[Item]] = {}
        self._addresses: dict[str, _Address] = {}
        self._heap: list[tuple[float, int, _Address | _Queue[Item]]] = []
        self._ready: TurnQueue[_Queue[Item]] = TurnQueue()
        self._number = 0
        self._size = 0
        self._busy = 0

    def __len__(self) -> int:
        return self._size

    def __contains__(self, host: str) -> bool:
        return host in self._queues

    @property
    def busy(self) -> int:
        """The number of hosts in the frontier with a request in flight."""
        return self._busy

    def open_host(self, host: str, address: str, ready_s: float) -> None:
        """Open the back queue of a host at an address; requests are allowed from ``ready_s`` on."""
        assert host not in self._queues, f"{host} is open already"
        gate = self._addresses.setdefault(address, _Address(address))
        self._queues[host] = _Queue(host, gate, ready_s)

    def add(self, host: str, item: Item, worth: float, value: float | None = None) -> None:
        """Add an item to fetch to the back queue of an open host.

        ``worth`` orders the items of a host; ``value`` is compared with that of other hosts, by default the same.
        """
        self._size += 1
        queue = self._queues[host]
        heappush(queue.items, (-worth, self._take_number(), item, worth if value is None else value))
        if queue.state == "idle":
            self._schedule(queue)
        elif queue.state == "ready":
            self._ready.add(queue, queue.value)
        elif queue.state == "in line":
            queue.address.waiting.add(queue, queue.value)

    def take(self, now_s: float) -> TakenItem[Item] | None:
        """Take the best item of the host whose turn it is, ready at a ready address; None if there is none."""
        while True:
            self._collect_ready(now_s)
            queue = self._ready.take()
            if queue is None:
                return None
            if self._may_dispatch(queue, now_s):
                return self._dispatch(queue)

    def _collect_ready(self, now_s: float) -> None:
        """Move hosts whose time has come, and that are first at their address, to the turn queue."""
        while self._heap and self._heap[0][0] <= now_s:
            entry = heappop(self._heap)[2]
            queue = self._leave_line(entry) if isinstance(entry, _Address) else entry
            if queue is not None and self._may_dispatch(queue, now_s):
                queue.state = "ready"
                self._ready.add(queue, queue.value)

    def complete(self, host: str, ready_s: float, address_ready_s: float) -> None:
        """Complete a host's request: set when the host, and its address, may be requested again."""
        queue = self._release(host)
        queue.address.ready_s = max(queue.address.ready_s, address_ready_s)
        queue.ready_s = max(queue.ready_s, ready_s)
        self._reschedule(queue)

    def drop(self, item: TakenItem[Item]) -> None:
        """Drop a taken item without a request; the host continues as if it had not been taken."""
        self._reschedule(self._release(item.host))

    def delay(self, host: str, ready_s: float) -> None:
        """Delay a host in the frontier: no request before this time, if it is later than the host's own."""
        queue = self._queues[host]
        queue.ready_s = max(queue.ready_s, ready_s)

    def clear(self, host: str) -> list[Item]:
        """Clear the back queue of a host and return its items, best first."""
        queue = self._queues[host]
        things, queue.items = [heappop(queue.items)[2] for _ in range(len(queue.items))], []
        self._size -= len(things)
        return things

    def move(self, host: str, address: str, ready_s: float) -> None:
        """Move a host with an empty back queue to another address; its delay moves with it."""
        queue = self._queues[host]
        assert not queue.items, f"{host} has things waiting"
        assert queue.state != "busy", f"{host} has something out"
        # The old queue, in the heap or at its address, is empty and drops out when its turn comes.
        del self._queues[host]
        self.open_host(host, address, max(ready_s, queue.ready_s))

    def peek_next_s(self) -> float | None:
        """Return the earliest time at which ``take`` may return an item; -infinity if hosts are ready already."""
        if self._ready:
            return -inf
        return self._heap[0][0] if self._heap else None

    def count_waiting(self, host: str) -> int:
        """Count the items that wait in a host's back queue."""
        queue = self._queues.get(host)
        return len(queue.items) if queue else 0

    def _take_number(self) -> int:
        self._number += 1
        return self._number

    def _schedule(self, queue: _Queue[Item]) -> None:
        if not queue.items:
            queue.state = "idle"
        else:
            queue.state = "timed"
            heappush(self._heap, (queue.ready_s, self._take_number(), queue))

    def _schedule_address(self, gate: _Address) -> None:
        if gate.waiting and not gate.busy and not gate.timed:
            gate.timed = True
            heappush(self._heap, (gate.ready_s, self._take_number(), gate))

    def _reschedule(self, queue: _Queue[Item]) -> None:
        self._schedule(queue)
        self._schedule_address(queue.address)

    def _may_dispatch(self, queue: _Queue[Item], now_s: float) -> bool:
        """Check whether a host may be requested now; if not, it waits for its time, or in the queue of its address."""
        gate = queue.address
        if queue.ready_s > now_s or not queue.items:  # it was delayed further, or it was cleared
            self._reschedule(queue)
            return False
        if not gate.busy and gate.ready_s <= now_s and (queue.state != "timed" or not gate.waiting):
            return True
        queue.state = "in line"
        gate.waiting.add(queue, queue.value)
        self._schedule_address(gate)
        return False

    def _leave_line(self, gate: _Address) -> _Queue[Item] | None:
        gate.timed = False
        return gate.waiting.take()

    def _dispatch(self, queue: _Queue[Item]) -> TakenItem[Item]:
        assert not queue.address.busy, f"{queue.host}: its address {queue.address.name} has a request in progress"
        queue.state = "busy"
        queue.address.busy = True
        self._busy += 1
        self._size -= 1
        return TakenItem(queue.host, heappop(queue.items)[2])

    def _release(self, host: str) -> _Queue[Item]:
        queue = self._queues[host]
        assert queue.state == "busy", f"{host} has nothing out"
        queue.address.busy = False
        self._busy -= 1
        return queue
