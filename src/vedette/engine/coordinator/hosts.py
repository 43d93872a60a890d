"""The hosts in play: their pauses, their addresses, and when the keeper comes back to each.

Politeness towards a host lives here while nobody asks it, so that it survives the death of any worker.
"""

from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush
from math import inf

import xxhash

from vedette.discover.urls.scope import SiteIndex
from vedette.engine.coordinator.robots_cache import RobotsFiles
from vedette.engine.coordinator.state import KeptHost, Rules
from vedette.engine.messages import HostOrders
from vedette.engine.ports import Urls
from vedette.engine.scheduling.budget import Budget
from vedette.fetch.connect_to import detour_for
from vedette.fetch.politeness import next_open_s, read_hours
from vedette.model import Failure, Origin

__all__ = ["Calendar", "Hosts", "Lookups", "detour_of"]

# A heap whose entries are never taken out of its middle: an entry counts only while it says what its host says
# (``queued_s``). Whoever comes to a host before its time simply puts it back.


class Calendar:
    """Hosts to come back to, each at most once."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, KeptHost]] = []
        self._number = 0

    def put(self, host: KeptHost, at_s: float) -> None:
        """Come back to this host then, unless it is to be come back to earlier."""
        if host.queued_s is None or at_s < host.queued_s:
            host.queued_s = at_s
            self._number += 1
            heappush(self._heap, (at_s, self._number, host))

    def take(self, until_s: float) -> KeptHost | None:
        """The first host whose time comes until then; it is no longer in the calendar."""
        self._skip()
        if not self._heap or self._heap[0][0] > until_s:
            return None
        host = heappop(self._heap)[2]
        host.queued_s = None
        return host

    def next_s(self) -> float | None:
        """The time of the first host."""
        self._skip()
        return self._heap[0][0] if self._heap else None

    def _skip(self) -> None:
        while self._heap and self._heap[0][2].queued_s != self._heap[0][0]:
            heappop(self._heap)


# An address holds for half an hour. A resolver that does not answer is asked again after pauses that double; its
# trouble is not the host's, so nothing is given up meanwhile. A name that does not exist, or lies only at addresses
# that may not be asked, closes the host: what waits for it has failed.


LOOKUP_LIFE_S = 1800.0
FIRST_PAUSE_S = 5.0
LONGEST_PAUSE_S = 300.0


class Lookups:
    """The names whose lookup failed for the moment."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, str]] = []

    def due(self, now_s: float) -> list[str]:
        """The names to be looked up again."""
        due = []
        while self._heap and self._heap[0][0] <= now_s:
            due.append(heappop(self._heap)[1])
        return due

    def next_s(self) -> float | None:
        """When the first of them is due."""
        return self._heap[0][0] if self._heap else None

    def heard(self, host: KeptHost, allowed: Sequence[str], failure: Failure | None, now_s: float) -> None:
        """A resolver spoke; of what it said, these addresses may be asked."""
        if failure is Failure.RESOLVER:
            self._later(host, now_s)
            return
        host.resolving, host.lookups, host.lookup_trouble = False, 0, ""
        host.closed = None if allowed else failure or Failure.ADDRESS
        host.address = allowed[0] if allowed else None
        host.address_until_s = now_s + LOOKUP_LIFE_S

    def _later(self, host: KeptHost, now_s: float) -> None:
        pause_s = min(FIRST_PAUSE_S * 2.0**host.lookups, LONGEST_PAUSE_S)
        host.resolving, host.lookup_trouble = True, str(Failure.RESOLVER)
        host.lookups = min(host.lookups + 1, 16)
        host.paused_lookup_s = now_s + pause_s
        heappush(self._heap, (host.paused_lookup_s, host.name))


def detour_of(host: KeptHost, rules: Rules) -> str | None:
    """The address that stands in for a host; None where a port of it, as far as is known, has none of these."""
    ports = tuple(host.origins) or (Origin("https", host.name, 443), Origin("http", host.name, 80))
    routes = [detour_for(port, rules.detours) for port in ports]
    return routes[0].address if routes[0] and all(routes) else None


# After a crash nobody knows what a host had asked for a moment ago, by its robots.txt or by Retry-After.
CAUTIOUS_REST_S = 60.0
# Nothing rests longer than Retry-After may ask for: a time beyond it was kept by a clock that was put back since.
LONGEST_REST_S = 86_400.0


class Hosts:
    """Every host that was ever named, and the calendar of those with something to ask for."""

    def __init__(self, rules: Rules, urls: Urls, workers: int) -> None:
        self.by_name: dict[str, KeptHost] = {}
        self.files = RobotsFiles()
        self.calendar = Calendar()
        self.lookups = Lookups()
        self._urls = urls
        self._workers = workers
        self._quiet_until_s: dict[str, float] = {}
        self._all_quiet_until_s = 0.0
        self.budget: Budget | None = None
        self.rule(rules)

    def rule(self, rules: Rules) -> None:
        """Other rules from now on: what waits for any host is looked at again."""
        self.rules = rules
        self.sites, self.paused = SiteIndex(rules.sites), SiteIndex(rules.paused)
        # Both are asked for with every page, and follow from the rules alone.
        self._delays: dict[str, float] = {}
        self._detours: dict[tuple[str, int], str | None] = {}
        self._limit(rules)
        for host in self.by_name.values():
            host.paused_s, host.short_of = 0.0, ""
            self.requeue(host)

    def _limit(self, rules: Rules) -> None:
        """What was spent under earlier rules stays spent."""
        self.budget = (self.budget or Budget()) if rules.budget_per_s else None
        if self.budget is not None:
            self.budget.rule(rules)

    def get(self, name: str) -> KeptHost:
        """The host of this name."""
        host = self.by_name.get(name)
        return host or self.known(name, self._urls.host_ids([name])[0])

    def known(self, name: str, id_: int) -> KeptHost:
        """The host of this name, whose id is known."""
        host = self.by_name.get(name)
        if host is None:
            host = self.by_name[name] = KeptHost(name, id_)
        return host

    # when

    def enqueue(self, host: KeptHost) -> None:
        """Into the calendar, if there is anything to ask for."""
        if not host.resolving and self._has_work(host):
            self.calendar.put(host, self.due_s(host))

    def requeue(self, host: KeptHost) -> None:
        """Into the calendar by its present time, wherever it stood."""
        host.queued_s = None
        self.enqueue(host)

    def take(self, now_s: float) -> KeptHost | None:
        """The next host whose time has come: who waited for the fetch budget and has it comes first."""
        released = self.budget.released(now_s) if self.budget is not None else None
        return released or self.calendar.take(now_s)

    def give_back(self, url: str) -> None:
        """A page that was given out came back unasked: the budget has it again."""
        site = self.sites.site_of(url) if self.budget is not None else None
        if self.budget is not None and site is not None:
            self.budget.give_back(site.start)

    def due_s(self, host: KeptHost) -> float:
        """When it is time to look at a host: errands leave a little ahead of its time, pauses are not cut short."""
        if host.closed:
            return 0.0
        ahead_s = host.ready_s - self.rules.ahead_s
        return ahead_s if host.errands else max(ahead_s, host.paused_s)

    def next_s(self) -> float | None:
        """When there may be something to give out, or to look up, that there is not now."""
        budget_s = self.budget.next_s() if self.budget is not None else None
        times = (self.calendar.next_s(), self.lookups.next_s(), budget_s)
        return min((time_s for time_s in times if time_s is not None), default=None)

    def soonest_s(self, host: KeptHost) -> float:
        """When a host may be asked, as far as is known; infinity where that depends on another host."""
        if host.robots_wait and not host.errands:
            return inf
        budget_s = self.budget.next_s() if self.budget is not None and host.short_of else None
        return max(host.ready_s, host.paused_s, host.paused_lookup_s if host.lookup_trouble else 0.0, budget_s or 0.0)

    def left(self) -> list[KeptHost]:
        """The hosts that somebody still wants something of, now or later."""
        return [host for host in self.by_name.values() if host.busy or host.errands or self._is_wanted(host)]

    def waiting(self, host: KeptHost) -> int:
        """How many URLs of a host wait."""
        return self._urls.waiting(host.id)

    def waiting_for(self, host: KeptHost) -> bool:
        """Whether any URL of a host waits."""
        return self._urls.waiting(host.id) > 0

    def _is_wanted(self, host: KeptHost) -> bool:
        if self.rules.only_wished:
            return bool(host.wishes)
        return host.paused_s < inf and self.waiting_for(host)

    def _has_work(self, host: KeptHost) -> bool:
        if host.errands or not self.waiting_for(host):
            return bool(host.errands)
        if host.closed or host.robots_wait or self.to_grant(host):
            return not host.robots_wait or host.closed is not None
        if host.short_of or self.rules.only_wished:
            return False
        return len(host.out) <= self.batch(host) // 2

    @staticmethod
    def to_grant(host: KeptHost) -> int:
        """How many URLs that somebody waits for are not out yet."""
        return sum(id_ not in host.out for id_ in host.wishes)

    # how

    def batch(self, host: KeptHost) -> int:
        """How many errands a worker gets at once: as many as keep it busy for a while, and one where it is strained.

        What a worker holds for a host that rests was paid for, and would leave later together with what others hold.
        """
        if host.strain:
            return 1
        gap_s = max(self.delay_s(host), self.files.crawl_delay_s(host) or 0.0, 1e-3)
        return max(2, min(int(self.rules.lease_span_s / gap_s), self.rules.lease_most, 2 + host.streak))

    def delay_s(self, host: KeptHost) -> float:
        """The longest delay that a site with this host asks for; else the operator's."""
        if host.name not in self._delays:
            own = [site.delay_s for site in self.sites.of_host(host.name) if site.delay_s is not None]
            self._delays[host.name] = max(own, default=self.rules.delay_s)
        return self._delays[host.name]

    def open_s(self, host: KeptHost, now_s: float) -> float:
        """The first time from now on that lies within the crawl hours of every site with this host."""
        hours = [read_hours(site.hours) for site in self.sites.of_host(host.name) if site.hours]
        return max((next_open_s(spans, now_s) for spans in hours), default=now_s)

    def orders_for(self, host: KeptHost, now_s: float) -> HostOrders:
        """How a worker is to treat a host."""
        address = host.address or ""
        quiet_s = max(self._all_quiet_until_s, self._quiet_until_s.get(address, 0.0))
        ready_s = max(host.ready_s, now_s, quiet_s)
        crawl_delay_s = self.files.crawl_delay_s(host)
        rates = [site.bytes_per_s for site in self.sites.of_host(host.name) if site.bytes_per_s]
        rate = min(rates, default=None)
        return HostOrders(host.name, address, self.delay_s(host), crawl_delay_s, ready_s, host.strain, rate)

    def worker_of(self, host: KeptHost) -> int:
        """All hosts of an address go to one worker, so that its pauses can be kept there."""
        if host.worker is None or not host.busy:
            assert host.address is not None, f"{host.name} has no address"
            host.worker = xxhash.xxh64_intdigest(host.address.encode()) % self._workers
        return host.worker

    # where

    def located(self, host: KeptHost, now_s: float) -> bool:
        """Whether the address of a host is known, or was just told by a detour; otherwise it is to be looked up."""
        astray = self.is_astray(host)
        if host.address is not None and (host.busy or (now_s < host.address_until_s and not astray)):
            return not astray
        detour = self._detour_of(host)
        if detour is None:
            host.resolving, host.detoured = True, False
            return False
        self.named(host.name, (detour,), None, now_s)
        host.detoured = True
        return host.address is not None

    def is_astray(self, host: KeptHost) -> bool:
        """Whether a detour stands in for a host, and not for all of its ports."""
        return host.detoured and self._detour_of(host) is None

    def _detour_of(self, host: KeptHost) -> str | None:
        place = host.name, len(host.origins)
        if place not in self._detours:
            self._detours[place] = detour_of(host, self.rules)
        return self._detours[place]

    def named(self, name: str, addresses: Sequence[str], failure: Failure | None, now_s: float) -> None:
        """A resolver spoke."""
        host = self.by_name[name]
        private = any(site.allow_private for site in self.sites.of_host(name))
        allowed = [address for address in addresses if self.rules.may_ask(address, private=private)]
        self.lookups.heard(host, allowed, failure, now_s)
        self.enqueue(host)

    # rest

    def rests(self, host: KeptHost, now_s: float) -> None:
        """Somebody may have asked a host a moment ago, and nobody read the answer: it has its full rest first."""
        self.answered(host, now_s, CAUTIOUS_REST_S)

    def answered(self, host: KeptHost, now_s: float, least_s: float = 0.0) -> None:
        """Somebody had an answer of a host just now: it rests as long as after any other, or longer."""
        pauses_s = (self.delay_s(host), self.files.crawl_delay_s(host) or 0.0, self.rules.address_delay_s)
        host.ready_s = max(host.ready_s, now_s + max(*pauses_s, least_s))

    def begin(self, names: Sequence[str], robots: Iterable[Origin], now_s: float, *, clean: bool) -> None:
        """What an earlier run left; whatever address it asked last is left in peace for a moment, too."""
        for name, id_ in zip(names, self._urls.host_ids(list(names)), strict=True):
            self.known(name, id_)
        for origin in robots:
            self.get(origin.host).origins[origin] = None
        if self.by_name:
            self._all_quiet_until_s = now_s + self.rules.address_delay_s
        for host in self.by_name.values():
            host.ready_s = min(host.ready_s, now_s + LONGEST_REST_S)
            if not clean:
                self.rests(host, now_s)
            self.enqueue(host)

    def orphans(self, worker: int, now_s: float) -> Iterator[KeptHost]:
        """The hosts of a dead worker, which are nobody's then: those that it may have asked rest, as do addresses."""
        self._quiet_until_s = {place: until_s for place, until_s in self._quiet_until_s.items() if until_s > now_s}
        for host in [host for host in self.by_name.values() if host.worker == worker]:
            self._quiet_until_s[host.address or ""] = now_s + self.rules.address_delay_s
            if host.busy:
                self.rests(host, now_s)
            host.worker = None
            yield host
            self.requeue(host)
