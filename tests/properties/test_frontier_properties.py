"""The frontier compared with a slow and obviously correct model: lists, searched from end to end."""

from collections import Counter
from dataclasses import dataclass, field
from math import inf

from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from vedette.frontier.back_queues import FAIR_TURN, Frontier, TakenItem

HOSTS = {"a": "near", "b": "near", "c": "near", "d": "far", "e": "far"}

# Few and round values: ties are where orders go wrong.
spans = st.sampled_from([0.0, 1.0, 2.0, 7.0])
worths = st.sampled_from([-1.0, 0.0, 0.0, 3.0, inf])
addresses = st.sampled_from(["near", "far"])
hosts = st.sampled_from(list(HOSTS))


@dataclass(slots=True)
class Thing:
    """An item that waits at a host; ``joined`` numbers the times at which items joined a queue."""

    item: int
    worth: float
    joined: int


@dataclass(slots=True)
class Address:
    """A server, and which of its hosts is busy."""

    ready_s: float = 0.0
    busy: str | None = None


@dataclass(slots=True)
class Model:
    """A host in the model; ``overtaken`` counts requests to others while this host was ready."""

    address: Address
    ready_s: float
    out: Thing | None = None
    things: list[Thing] = field(default_factory=list)
    overtaken: Counter[str] = field(default_factory=Counter)

    def best(self) -> Thing | None:
        """Return the first item."""
        return min(self.things, key=lambda thing: (-thing.worth, thing.joined), default=None)

    def wants(self, now_s: float) -> bool:
        """Check whether it waits only for its address."""
        return self.out is None and self.ready_s <= now_s and bool(self.things)

    def first_s(self) -> float:
        """When something of it could be taken, were nothing else to happen; infinity for never."""
        if self.out is not None or self.address.busy is not None or not self.things:
            return inf
        return max(self.ready_s, self.address.ready_s)


class FrontierMachine(RuleBasedStateMachine):
    """Every method of the frontier, in any order that its contract allows, with a clock that never goes back."""

    def __init__(self) -> None:
        super().__init__()
        self.frontier = Frontier[int]()
        self.now_s = 0.0
        self.hosts: dict[str, Model] = {}
        self.ended: Counter[int] = Counter()
        self.items = 0
        self.joins = 0

    @initialize(starts=st.fixed_dictionaries(dict.fromkeys(HOSTS, spans)))
    def open(self, starts: dict[str, float]) -> None:
        """Open all hosts."""
        self.addresses = {name: Address() for name in HOSTS.values()}
        for host, address in HOSTS.items():
            self.frontier.open_host(host, address, starts[host])
            self.hosts[host] = Model(self.addresses[address], starts[host])

    @rule(host=hosts, worth=worths)
    def add(self, host: str, worth: float) -> None:
        """Find an item."""
        self.items += 1
        self.joins += 1
        self.hosts[host].things.append(Thing(self.items, worth, self.joins))
        self.frontier.add(host, self.items, worth)

    @rule(span_s=spans)
    def wait(self, span_s: float) -> None:
        """Let time pass."""
        self.now_s += span_s

    @rule()
    def take(self) -> None:
        """Take an item exactly if the model has one, and check that it is the best of its host."""
        taken = self.frontier.take(self.now_s)
        if taken is None:
            assert not [name for name, host in self.hosts.items() if host.first_s() <= self.now_s]
            next_s = self.frontier.peek_next_s()
            assert next_s is None or next_s > self.now_s
        else:
            self._check_taken(taken)

    @precondition(lambda self: self.frontier.busy)
    @rule(data=st.data(), rest_s=spans, address_rest_s=spans)
    def done(self, data: st.DataObject, rest_s: float, address_rest_s: float) -> None:
        """Receive a response."""
        name, host, thing = self._end(data)
        self.ended[thing.item] += 1
        host.ready_s = max(host.ready_s, self.now_s + rest_s)
        host.address.ready_s = max(host.address.ready_s, self.now_s + address_rest_s)
        self.frontier.complete(name, self.now_s + rest_s, self.now_s + address_rest_s)

    @precondition(lambda self: self.frontier.busy)
    @rule(data=st.data())
    def drop(self, data: st.DataObject) -> None:
        """Drop an unwanted item."""
        name, _, thing = self._end(data)
        self.ended[thing.item] += 1
        self._not_asked(name)
        self.frontier.drop(TakenItem(name, thing.item))

    @rule(name=hosts, span_s=spans)
    def rest(self, name: str, span_s: float) -> None:
        """Give a host a longer delay."""
        host = self.hosts[name]
        if self.now_s + span_s > host.ready_s:
            host.ready_s = self.now_s + span_s
            host.overtaken.clear()
        self.frontier.delay(name, self.now_s + span_s)

    @rule(name=hosts)
    def clear(self, name: str) -> None:
        """Return everything that waits for a host, best first."""
        host = self.hosts[name]
        expected = sorted(host.things, key=lambda thing: (-thing.worth, thing.joined))
        assert self.frontier.clear(name) == [thing.item for thing in expected]
        self.ended.update(thing.item for thing in host.things)
        host.things.clear()
        host.overtaken.clear()

    @rule(name=hosts, address=addresses, span_s=spans)
    def move(self, name: str, address: str, span_s: float) -> None:
        """An idle host moves to another address, or stays."""
        host = self.hosts[name]
        if host.out is None and not host.things:
            host.address = self.addresses[address]
            host.ready_s = max(host.ready_s, self.now_s + span_s)
            host.overtaken.clear()
            self.frontier.move(name, address, self.now_s + span_s)

    @invariant()
    def numbers_agree(self) -> None:
        """Check that nothing is lost or counted twice."""
        out = [name for name, host in self.hosts.items() if host.out is not None]
        assert self.frontier.busy == len(out)
        assert len(self.frontier) == sum(len(host.things) for host in self.hosts.values())
        assert all(self.frontier.count_waiting(name) == len(host.things) for name, host in self.hosts.items())

    @invariant()
    def next_time_is_never_late(self) -> None:
        """Sleeping until ``next_s`` misses nothing."""
        first_s = min((host.first_s() for host in self.hosts.values()), default=inf)
        next_s = self.frontier.peek_next_s()
        assert first_s == inf or (next_s is not None and next_s <= first_s)

    def teardown(self) -> None:
        """Check that every item is taken exactly once, whatever happened before."""
        for name, host in self.hosts.items():
            if host.out is not None:
                self.ended[host.out.item] += 1
                self.frontier.complete(name, self.now_s, self.now_s)
        while (next_s := self.frontier.peek_next_s()) is not None:
            self.now_s = max(self.now_s, next_s)
            while (taken := self.frontier.take(self.now_s)) is not None:
                self.ended[taken.item] += 1
                self.frontier.complete(taken.host, self.now_s, self.now_s)
        assert self.ended == Counter(range(1, self.items + 1))
        assert len(self.frontier) == 0

    def _check_taken(self, taken: TakenItem[int]) -> None:
        host = self.hosts[taken.host]
        assert host.first_s() <= self.now_s, "before its host's or its address's time, or while something is out"
        best = host.best()
        assert best is not None
        assert taken.item == best.item
        host.things.remove(best)
        host.out, host.address.busy = best, taken.host
        self._check_fair(taken.host)

    def _check_fair(self, name: str) -> None:
        """Check that worth decides whose turn it is, and that no due host is overtaken forever."""
        taken = self.hosts[name]
        taken.overtaken.clear()
        for neighbour in self.hosts.values():
            if neighbour.address is taken.address and neighbour.wants(self.now_s):
                neighbour.overtaken[name] += 1
                assert neighbour.overtaken.total() <= FAIR_TURN * len(HOSTS)

    def _not_asked(self, name: str) -> None:
        """Take an item and drop it: the address was not used, so no one was overtaken."""
        for host in self.hosts.values():
            host.overtaken[name] -= host.overtaken[name] > 0

    def _end(self, data: st.DataObject) -> tuple[str, Model, Thing]:
        """Complete one of the items in flight."""
        name = data.draw(st.sampled_from([name for name, host in self.hosts.items() if host.out is not None]))
        host = self.hosts[name]
        thing, host.out, host.address.busy = host.out, None, None
        assert thing is not None
        return name, host, thing


def test_the_frontier_agrees_with_its_model() -> None:
    """One request per host and address, never early, best first; nothing starves or is lost."""
    run_state_machine_as_test(FrontierMachine)
