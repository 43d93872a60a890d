"""The observer's decisions: which errand may be sent now, and when its host may be requested again.

Delays are enforced by the same code as in a fetcher (``frontier.back_queues``, ``fetch.politeness``). Nothing is
requested after the lease that home granted, but what was observed before is still reported.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import NamedTuple

from vedette.engine.observers.messages import Errand, HostOrder, HostPace, Observation, RequestLimits
from vedette.fetch.observers.delta import PackedBody
from vedette.fetch.politeness import FailureStreak, compute_delay
from vedette.frontier.back_queues import Frontier
from vedette.model import FetchOutcome, FetchResponse

# Plans are followed once home has not responded for this long.
OFFLINE_AFTER_S = 60.0
_CODING_LINES = (b"content-encoding:", b"content-length:", b"transfer-encoding:")
_CODING_HEADERS = frozenset({"content-encoding", "content-length"})


class HeldErrand(NamedTuple):
    """An errand, and until when it may be sent by the observer's clock."""

    errand: Errand
    until_s: float


@dataclass(slots=True)
class ObservedHost:
    """A host that home assigned to this observer; ``address`` is None until its name was resolved and checked."""

    order: HostOrder
    failure_streak: FailureStreak
    address: str | None = None
    waiting: list[HeldErrand] = field(default_factory=list)
    in_flight: Errand | None = None
    ready_s: float = 0.0


@dataclass(slots=True)
class Observer:
    """The hosts of an observer, its errands, and which request may be sent now."""

    limits: RequestLimits
    hosts: dict[str, ObservedHost] = field(default_factory=dict)
    frontier: Frontier[HeldErrand] = field(default_factory=Frontier)
    returned: list[Errand] = field(default_factory=list)
    paces: dict[str, HostPace] = field(default_factory=dict)
    plans: dict[int, HeldErrand] = field(default_factory=dict)
    lease_until_s: float = -inf

    def add_host(self, order: HostOrder, now_s: float) -> None:
        """Add a host, or change how it is requested; a running delay is never shortened."""
        host = self.hosts.get(order.name)
        if host is None:
            host = self.hosts[order.name] = ObservedHost(order, FailureStreak(order.failure_streak))
        host.order, host.ready_s = order, max(host.ready_s, now_s + order.wait_s)
        if host.address is not None:
            self.frontier.delay(order.name, host.ready_s)

    def add_errand(self, errand: Errand, until_s: float) -> None:
        """Add an errand for an existing host; one of another epoch is returned."""
        host = self.hosts.get(errand.host)
        if host is None or host.order.epoch != errand.epoch:
            self.returned.append(errand)
        elif host.address is None:
            host.waiting.append(HeldErrand(errand, until_s))
        else:
            self.frontier.add(errand.host, HeldErrand(errand, until_s), errand.worth)

    def set_plans(self, plans: Sequence[Errand], now_s: float) -> None:
        """Replace the plan for times when home is unreachable: which pages to observe again, and when."""
        self.plans = {one.number: HeldErrand(one, now_s + one.valid_s) for one in plans if one.host in self.hosts}

    def take_due_plans(self, now_s: float, heard_s: float, offline_s: float = OFFLINE_AFTER_S) -> list[HeldErrand]:
        """Take the planned errands that are due; none while home responds."""
        if now_s - heard_s < offline_s or now_s >= self.lease_until_s:
            return []
        due = [held for held in self.plans.values() if heard_s + held.errand.after_s <= now_s < held.until_s]
        for held in due:
            del self.plans[held.errand.number]
        return due

    def list_unresolved(self, now_s: float) -> list[str]:
        """List the hosts that have errands and whose names must be resolved first."""
        return [
            name
            for name, host in self.hosts.items()
            if host.address is None and host.waiting and host.ready_s <= now_s + self.limits.timeout_s
        ]

    def set_address(self, name: str, address: str) -> None:
        """Set the checked address of a host; its errands may now be sent."""
        host = self.hosts[name]
        if host.in_flight is not None or host.address is not None:
            return
        host.address = address
        enter = self.frontier.move if name in self.frontier else self.frontier.open_host
        enter(name, address, host.ready_s)
        waiting, host.waiting = host.waiting, []
        for held in waiting:
            self.frontier.add(name, held, held.errand.worth)

    def forget_address(self, name: str) -> None:
        """Forget the address of a host with nothing in flight, so that its name is resolved again."""
        host = self.hosts[name]
        if host.in_flight is None and host.address is not None:
            host.waiting, host.address = self.frontier.clear(name), None

    def refuse_host(self, name: str, until_s: float, why: str, now_s: float) -> None:
        """Return all errands of a host that cannot be requested, such as one at a private address."""
        host = self.hosts[name]
        self._give_back([held.errand for held in host.waiting])
        host.waiting, host.ready_s = [], max(host.ready_s, until_s)
        self._set_pace(host, until_s - now_s, why)

    def recall(self, names: Sequence[str]) -> None:
        """Return all unsent errands of these hosts, because they were assigned to another observer."""
        for name in names:
            if (host := self.hosts.get(name)) is None:
                continue
            self.plans = {number: held for number, held in self.plans.items() if held.errand.host != name}
            unsent = [*host.waiting, *(self.frontier.clear(name) if host.address is not None else ())]
            host.waiting = []
            self._give_back([held.errand for held in unsent])
            if host.in_flight is None and host.address is None:
                del self.hosts[name]

    def take_errand(self, now_s: float) -> Errand | None:
        """Take an errand that may be sent now; errands that are no longer allowed are returned."""
        while now_s < self.lease_until_s and (taken := self.frontier.take(now_s)) is not None:
            errand, until_s = taken.item
            if now_s < until_s:
                self.hosts[taken.host].in_flight = errand
                return errand
            self.frontier.drop(taken)
            self._give_back([errand])
        return None

    def take_back(self, name: str, until_s: float, why: str, now_s: float) -> None:
        """Take back a request that must not be sent: its host waits, and all of its errands are returned."""
        host = self.hosts[name]
        errand, host.in_flight = host.in_flight, None
        assert errand is not None, f"{name} had nothing out"
        self.frontier.complete(name, until_s, -inf)
        host.ready_s = until_s
        self._give_back([errand, *(held.errand for held in self.frontier.clear(name))])
        self._set_pace(host, until_s - now_s, why)

    def on_outcome(self, name: str, outcome: FetchOutcome) -> Errand:
        """Start the delay of a host after a response or a failed request; return the errand."""
        host = self.hosts[name]
        errand, host.in_flight = host.in_flight, None
        assert errand is not None, f"{name} had nothing out"
        rest = compute_delay(
            outcome,
            host.failure_streak,
            delay_s=host.order.delay_s,
            crawl_delay_s=host.order.crawl_delay_s,
            address_delay_s=self.limits.address_delay_s,
            latency_factor=self.limits.latency_factor,
        )
        if host.order.bytes_per_s is not None and isinstance(outcome, FetchResponse):
            spread_s = len(outcome.payload or outcome.body) / host.order.bytes_per_s
            rest = replace(rest, host_ready_s=max(rest.host_ready_s, outcome.ended_s + spread_s))
        host.failure_streak, host.ready_s = rest.failure_streak, rest.host_ready_s
        self.frontier.complete(name, rest.host_ready_s, rest.address_ready_s)
        self._set_pace(host, rest.host_ready_s - outcome.ended_s, rest.why if rest.failure_streak.count else "")
        return errand

    def next_s(self) -> float | None:
        """Return when the next errand may be sent; None if there is none."""
        return self.frontier.peek_next_s()

    def _give_back(self, errands: Sequence[Errand]) -> None:
        self.returned += errands

    def _set_pace(self, host: ObservedHost, wait_s: float, why: str) -> None:
        name = host.order.name
        self.paces[name] = HostPace(name, host.order.epoch, wait_s, host.failure_streak.count, why)


def build_observation(errand: Errand, outcome: FetchOutcome, packed: PackedBody | None) -> Observation:
    """Build the observation of an errand; ``packed`` is the body of its response."""
    took_s = max(outcome.ended_s - outcome.started_s, 0.0)
    if not isinstance(outcome, FetchResponse):
        failure, detail = outcome.failure.name, outcome.detail
        return Observation(errand.number, errand.epoch, errand.url, outcome.ended_s, took_s, failure, detail)
    assert packed is not None
    headers, head = outcome.headers, outcome.head
    if outcome.payload != outcome.body:  # the body travels unpacked, so its headers must not claim a content coding
        headers = tuple(each for each in headers if each[0] not in _CODING_HEADERS)
        head = mark_coding(head)
    return Observation(
        errand.number,
        errand.epoch,
        errand.url,
        outcome.ended_s,
        took_s,
        status=outcome.status,
        headers=headers,
        request_head=outcome.request_head,
        head=head,
        address=outcome.address,
        form=packed.form,
        data=packed.data,
        size=packed.size,
        digest=packed.digest,
        site_bytes=len(outcome.payload) + len(outcome.head),
    )


def mark_coding(head: bytes) -> bytes:
    r"""Mark the header lines that do not apply to an unpacked body, as archives do.

    >>> mark_coding(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n")
    b'HTTP/1.1 200 OK\r\nX-Crawler-Content-Encoding: gzip\r\n\r\n'
    """
    lines = head.splitlines(keepends=True)
    return b"".join(b"X-Crawler-" + line if line.lower().startswith(_CODING_LINES) else line for line in lines)
