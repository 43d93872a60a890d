"""Host table of the coordinator: crawl delays, addresses, DNS lookups, and when each host is served next.

The politeness state of a host is stored here while no fetcher owns it, so it survives the loss of any fetcher.
"""

from collections.abc import Container, Iterable, Iterator, Sequence
from heapq import heappop, heappush
from math import inf

import xxhash

from vedette.discover.urls.scope import SiteIndex
from vedette.engine.coordinator.robots_cache import RobotsCache
from vedette.engine.coordinator.state import Assignment, CrawlRules, HostState
from vedette.engine.messages import FetchTask, HostSettings, HostUpdate, WorkBatch
from vedette.engine.ports import HostRow, UrlFrontier
from vedette.engine.scheduling.budget import FetchBudget
from vedette.fetch.connect_to import Endpoint, find_endpoint
from vedette.fetch.politeness import find_next_open_s, parse_hours
from vedette.fetch.robots.state import RobotsFailure, RobotsResponse, RobotsState, RobotsStatus
from vedette.frontier.back_queues import TurnQueue
from vedette.model import Failure, Origin, origin_of

# A heap without removal from the middle: an entry is valid only while it matches its host's ``queued_s``. A host that
# is popped too early is simply put back.


class HostCalendar:
    """Calendar of the coordinator's next turn for each host; each host is in it at most once.

    Among due hosts, the one with the best waiting URL comes first, as far as known (``HostState.worth``); every fourth
    time it is the one that has waited longest. This matters when fetchers have no capacity for all of them.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, HostState]] = []
        self._due: TurnQueue[HostState] = TurnQueue()
        self._number = 0

    def put(self, host: HostState, at_s: float) -> None:
        """Schedule a host in the calendar, unless it is scheduled for an earlier time."""
        if host.queued_s is None or at_s < host.queued_s:
            host.queued_s = at_s
            self._number += 1
            heappush(self._heap, (at_s, self._number, host))
        elif host in self._due:
            self._due.add(host, host.best_worth)

    def take(self, until_s: float) -> HostState | None:
        """Pop the next host from the calendar that is due by a time."""
        while self._heap and self._heap[0][0] <= until_s:
            at_s, _, host = heappop(self._heap)
            if host.queued_s == at_s:
                self._due.add(host, host.best_worth)
        while (due := self._due.take()) is not None:
            if due.queued_s is not None and due.queued_s <= until_s:
                due.queued_s = None
                return due
        return None

    def next_s(self) -> float | None:
        """Return the time of the first host in the calendar; -infinity if some are due already."""
        while self._heap and self._heap[0][2].queued_s != self._heap[0][0]:
            heappop(self._heap)
        if self._due:
            return -inf
        return self._heap[0][0] if self._heap else None


# An address is valid for half an hour. A name that does not resolve is looked up again after delays that double; its
# URLs keep waiting. A resolver that does not answer is tried again within minutes. A name that does not exist, or has
# only disallowed addresses, gets delays of up to six hours: a lookup costs the site nothing.


ADDRESS_TTL_S = 1800.0
_RESOLVER_PAUSES_S = (5.0, 300.0)
_NAME_PAUSES_S = (600.0, 21_600.0)
_MAX_DOUBLINGS = 16


def apply_lookup(host: HostState, allowed: Sequence[str], failure: Failure | None, now_s: float) -> None:
    """Apply a DNS answer to a host, with those of its addresses that are allowed."""
    host.resolving, host.detoured = False, False
    if allowed:
        host.address, host.address_until_s = allowed[0], now_s + ADDRESS_TTL_S
        host.unreachable, host.lookup_failures, host.lookup_retry_s = None, 0, 0.0
        return
    failure = failure or Failure.ADDRESS
    host.lookup_failures = host.lookup_failures + 1 if host.unreachable is failure else 1
    first_s, most_s = _RESOLVER_PAUSES_S if failure is Failure.RESOLVER else _NAME_PAUSES_S
    host.lookup_retry_s = now_s + min(first_s * 2.0 ** min(host.lookup_failures - 1, _MAX_DOUBLINGS), most_s)
    host.unreachable, host.address = failure, None


# Hosts of remote observers have no address here, and get as many tasks as keep an observer busy without home.
OBSERVED = "observed"
OBSERVER_BATCH = 512

# After a crash it is unknown what a host requested a moment ago, by robots.txt or Retry-After.
CAUTIOUS_REST_S = 60.0
# No delay exceeds the longest accepted Retry-After: a later time was saved by a clock that was set back since.
MAX_REST_S = 86_400.0


class HostTable:
    """All hosts ever named, and the calendar of those with work: delays, addresses, fetchers, queues."""

    def __init__(self, rules: CrawlRules, urls: UrlFrontier, workers: int) -> None:
        self.by_name: dict[str, HostState] = {}
        self.robots = RobotsCache()
        self.calendar = HostCalendar()
        self._urls = urls
        self._workers = workers
        self._changed: dict[str, HostState] = {}
        self._quiet_until_s: dict[str, float] = {}
        self._all_quiet_until_s = 0.0
        self.budget: FetchBudget | None = None
        self._reserved: frozenset[str] = frozenset()
        self._reserved_for = -1
        self.apply_rules(rules)

    def apply_rules(self, rules: CrawlRules) -> None:
        """Apply changed crawl rules to the host table; every host is checked again."""
        self.rules = rules
        self.sites, self.paused = SiteIndex(rules.sites), SiteIndex(rules.paused)
        # Both are needed with every page, and depend only on the rules.
        self._delays: dict[str, float] = {}
        self._detours: dict[Origin, Endpoint | None] = {}
        self._update_budget(rules)
        for host in self.by_name.values():
            host.paused_until_s, host.lookup_retry_s, host.lookup_failures, host.budget_wait = 0.0, 0.0, 0, ""
            self.requeue(host)

    def _update_budget(self, rules: CrawlRules) -> None:
        """Update the fetch budget of the host table; what was spent under earlier rules stays spent."""
        self.budget = (self.budget or FetchBudget()) if rules.budget_per_s else None
        if self.budget is not None:
            self.budget.apply_rules(rules)

    def get(self, name: str) -> HostState:
        """Return the state of a host by its name."""
        host = self.by_name.get(name)
        return host or self.get_or_add(name, self._urls.intern_hosts([name])[0])

    def get_or_add(self, name: str, id_: int) -> HostState:
        """Return the state of a host, adding it to the host table under its known id."""
        host = self.by_name.get(name)
        if host is None:
            host = self.by_name[name] = HostState(name, id_)
        return host

    def add_origin(self, host: HostState, origin: Origin) -> None:
        """Note that a URL of this origin waits for its host."""
        host.origins[origin] = None
        host.paused_until_s, host.is_blocked = 0.0, False
        self.enqueue(host)

    def apply_update(self, update: HostUpdate, worker: int) -> HostState:
        """Apply a fetcher's host update: next allowed time and failure streak.

        A fetcher that no longer owns the host can only request a longer delay.
        """
        host = self.by_name[update.name]
        host.ready_s = max(host.ready_s, update.ready_s)
        if host.worker == worker:
            host.failure_streak, host.rest_trouble = update.failure_streak, update.trouble
        return host

    # A robots.txt may be redirected across several hosts before it applies to its own. Each host gets the request at
    # its own pace. Only pages wait for robots.txt; a robots.txt request waits for politeness alone, so no chain of
    # redirects can deadlock.

    def apply_robots(self, origin: Origin, event: RobotsResponse | RobotsFailure) -> tuple[HostState, RobotsState]:
        """Apply the outcome of an origin's robots.txt fetch; return its host and the new state."""
        owner = self.by_name[origin.host]
        state = self.robots.observe(origin, event, self.rules.robots_max_age_s, self.delay_s(owner))
        owner.robots_pending.pop(origin, None)
        owner.paused_until_s = 0.0
        is_waiting = state.status is RobotsStatus.WAITING
        owner.robots_trouble = self.robots.describe_failure(owner, origin) if is_waiting else ""
        # A crawl-delay counts from the response that contained it.
        owner.ready_s = max(owner.ready_s, event.now_s + (state.crawl_delay_s or 0.0))
        self._changed[owner.name] = owner
        return owner, state

    def follow_robots_redirect(self, task: FetchTask, target: str) -> None:
        """Queue the next hop of a redirected robots.txt at its target host."""
        assert task.robots_of is not None
        there, owner = self.get(origin_of(target).host), self.by_name.get(task.robots_of.host)
        there.robots_tasks.append(task._replace(host=there.name, url=target, hops=task.hops + 1, validators=("", "")))
        if owner is not None:  # otherwise another shard wants it
            owner.robots_trouble = "" if there is owner else f"its robots.txt is fetched from {there.name}"
        self.enqueue(there)

    def build_changes(self, now_s: float, room: Container[int]) -> list[Assignment]:
        """Build assignments that send host settings changed since the last call (longer delays) to fetchers."""
        changed, self._changed = self._changed, {}
        return [
            Assignment(host.worker, WorkBatch((self.build_settings(host, now_s),)))
            for host in changed.values()
            if host.busy and host.worker is not None and host.worker in room
        ]

    # when

    def enqueue(self, host: HostState) -> None:
        """Put a host in the calendar, if it has anything to request."""
        if not host.resolving and not host.awaits_turn and self._has_work(host):
            self.calendar.put(host, self.due_s(host))

    def wake(self, names: Iterable[str]) -> None:
        """Put hosts that have a due page in the calendar, even if they were paused."""
        for name in dict.fromkeys(names):
            host = self.get(name)
            host.paused_until_s = 0.0
            self.enqueue(host)

    def requeue(self, host: HostState) -> None:
        """Put a host in the calendar by its current time, replacing its earlier entry."""
        host.queued_s = None
        self.enqueue(host)

    def retry(self, names: Sequence[str], target: str) -> None:
        """Look up hosts and fetch their robots.txt again at once; a requested back-off still applies.

        ``target`` is a URL, for its host, or the start of a site; empty for all hosts.
        """
        for host in map(self.get, names):
            starts = [site.start for site in self.sites.find_by_host(host.name)]
            if not target or host.name == origin_of(target).host or target in starts:
                host.lookup_retry_s = host.paused_until_s = 0.0
                self.robots.expire_waits(host)
                self.requeue(host)

    def pop_due(self, now_s: float) -> HostState | None:
        """Pop the next due host; hosts that were waiting for fetch budget and now have it come first."""
        released = self.budget.pop_ready(now_s) if self.budget is not None else None
        return released or self.calendar.take(now_s)

    def refund_budget(self, url: str) -> None:
        """Refund the fetch budget for a page that a fetcher gave back unsent."""
        site = self.sites.find_site(url) if self.budget is not None else None
        if self.budget is not None and site is not None:
            self.budget.refund(site.start)

    def due_s(self, host: HostState) -> float:
        """Return when to serve a host: tasks leave slightly ahead of its time, but never shorten a pause."""
        if host.address is None and host.unreachable and not self._is_awaited(host):
            return host.lookup_retry_s
        ahead_s = host.ready_s - self.rules.ahead_s
        return ahead_s if host.robots_tasks else max(ahead_s, host.paused_until_s)

    def _is_awaited(self, host: HostState) -> bool:
        """Check whether a waiting request must learn that a host is unreachable."""
        is_requested = host.unreachable is not Failure.RESOLVER and self.count_requested(host) > 0
        return bool(host.robots_tasks) or is_requested

    def next_s(self) -> float | None:
        """Return when a host is next due in the host table, for its pages or for a DNS lookup."""
        budget_s = self.budget.next_s() if self.budget is not None else None
        times = (self.calendar.next_s(), budget_s)
        return min((time_s for time_s in times if time_s is not None), default=None)

    def soonest_s(self, host: HostState) -> float:
        """Return the earliest time a host may be requested; infinity if that depends on another host."""
        if host.robots_pending and not host.robots_tasks:
            return inf
        budget_s = self.budget.next_s() if self.budget is not None and host.budget_wait else None
        lookup_s = host.lookup_retry_s if host.address is None else 0.0
        return max(host.ready_s, host.paused_until_s, lookup_s, budget_s or 0.0)

    def list_unfinished(self) -> list[HostState]:
        """List the hosts that still have work, now or later."""
        return [host for host in self.by_name.values() if host.busy or host.robots_tasks or self._is_wanted(host)]

    def count_waiting(self, host: HostState) -> int:
        """Count the waiting URLs of a host in the coordinator's host table."""
        return self._urls.count_waiting(host.id)

    def has_waiting(self, host: HostState) -> bool:
        """Check whether any URL of a host is waiting."""
        return self._urls.count_waiting(host.id) > 0

    def _is_wanted(self, host: HostState) -> bool:
        if self.rules.only_requested:
            return bool(host.requested)
        return host.paused_until_s < inf and self.has_waiting(host)

    def has_work_by(self, host: HostState, by_s: float) -> bool:
        """Check whether a host may be requested by a time, if the budget allows it."""
        return bool(host.robots_tasks) or (self.has_waiting(host) and host.paused_until_s <= by_s)

    def _has_work(self, host: HostState) -> bool:
        if host.robots_tasks or not self.has_waiting(host):
            return bool(host.robots_tasks)
        if host.robots_pending or self.count_requested(host):
            return not host.robots_pending
        if host.budget_wait or self.rules.only_requested:
            return False
        return len(host.in_flight) <= self.batch_size(host) // 2

    @staticmethod
    def count_requested(host: HostState) -> int:
        """Count the URLs of a host that were requested by name and are not assigned yet."""
        return sum(id_ not in host.in_flight for id_ in host.requested)

    # how

    def batch_size(self, host: HostState) -> int:
        """Return how many tasks for a host a fetcher gets at once: one where the host has a failure streak.

        Otherwise as many as keep it busy for a while. Tasks that a fetcher holds for a paused host are already paid
        for, and would leave later in a burst with those of others.
        """
        if host.failure_streak:
            return 1
        if host.name in self._reserved:
            return OBSERVER_BATCH
        gap_s = self.gap_s(host.name)
        return max(2, min(int(self.rules.lease_span_s / gap_s), self.rules.max_leases, 2 + host.success_streak))

    def gap_s(self, name: str) -> float:
        """Return the shortest time between two requests to a host: its configured delay or robots.txt crawl-delay."""
        host = self.by_name.get(name)
        own_s = (self.delay_s(host), self.robots.crawl_delay_s(host) or 0.0) if host else (self.rules.delay_s,)
        return max(*own_s, 1e-3)

    def delay_s(self, host: HostState) -> float:
        """Return the crawl delay of a host: the longest among its sites, else the operator's default."""
        if host.name not in self._delays:
            own = [site.delay_s for site in self.sites.find_by_host(host.name) if site.delay_s is not None]
            self._delays[host.name] = max(own, default=self.rules.delay_s)
        return self._delays[host.name]

    def opens_at_s(self, host: HostState, now_s: float) -> float:
        """Return the next time within the crawl hours of every site of this host."""
        hours = [parse_hours(site.hours) for site in self.sites.find_by_host(host.name) if site.hours]
        return max((find_next_open_s(spans, now_s) for spans in hours), default=now_s)

    def build_settings(self, host: HostState, now_s: float) -> HostSettings:
        """Build the host settings that are sent to a fetcher: address, delays, earliest time."""
        address = host.address or ""
        quiet_s = max(self._all_quiet_until_s, self._quiet_until_s.get(address, 0.0))
        ready_s = max(host.ready_s, now_s, quiet_s)
        crawl_delay_s = self.robots.crawl_delay_s(host)
        rates = [site.bytes_per_s for site in self.sites.find_by_host(host.name) if site.bytes_per_s]
        rate = min(rates, default=None)
        return HostSettings(host.name, address, self.delay_s(host), crawl_delay_s, ready_s, host.failure_streak, rate)

    def assign_fetcher(self, host: HostState) -> int:
        """Choose the fetcher of a host; all hosts of one address go to the same fetcher, which enforces its delays."""
        if host.name in self._reserved:
            host.worker = self._reserved_for
        elif host.worker is None or not host.busy:
            assert host.address is not None, f"{host.name} has no address"
            host.worker = xxhash.xxh64_intdigest(host.address.encode()) % self._workers
        return host.worker

    # where

    def reserve(self, names: Iterable[str], worker: int, now_s: float) -> None:
        """Reserve hosts for a worker that finds their addresses by itself: the hub of the remote observers.

        A host that changes hands finishes what is in flight first. Its address is looked up again afterwards.
        """
        before, self._reserved, self._reserved_for = self._reserved, frozenset(names), worker
        for name in sorted(before ^ self._reserved):
            host = self.get(name)
            host.unreachable, host.resolving, host.lookup_retry_s = None, False, 0.0
            self.rest(host, now_s)
            self.requeue(host)

    def changes_hands(self, host: HostState) -> bool:
        """Check whether a host still has tasks in flight at the worker that it no longer belongs to."""
        return host.busy and (host.name in self._reserved) != (host.worker == self._reserved_for)

    def resolve_address(self, host: HostState, now_s: float) -> bool:
        """Return whether a host can be requested: its address is known, or an operator override gives one.

        Otherwise set ``resolving`` if its name must be looked up now.
        """
        if host.name in self._reserved:
            host.address = OBSERVED
            return True
        host.address = None if host.address == OBSERVED else host.address
        needs_lookup = self._needs_lookup(host)
        if host.address is not None:
            astray = host.detoured and needs_lookup and now_s >= host.lookup_retry_s
            if host.busy or (now_s < host.address_until_s and not astray):
                return not astray
        if needs_lookup and now_s >= host.lookup_retry_s:
            host.resolving = True
            return False
        return self._use_detour(host, now_s)

    def can_route(self, host: HostState, origin: Origin) -> bool:
        """Check whether the host's address applies to one of its ports; an override affects only the ports it names."""
        return host.address is not None and (not host.detoured or self._find_endpoint(origin) is not None)

    def pop_unroutable(self, host: HostState) -> list[FetchTask]:
        """Pop the robots.txt requests that cannot be sent to a host because its name does not resolve."""
        files = [task for task in host.robots_tasks if not self.can_route(host, origin_of(task.url))]
        host.robots_tasks = [task for task in host.robots_tasks if task not in files]
        return files

    def on_dns(self, name: str, addresses: Sequence[str], failure: Failure | None, now_s: float) -> None:
        """Apply a DNS answer to the host table; ports with an override continue if the name does not resolve."""
        host = self.by_name[name]
        if name in self._reserved:
            return
        apply_lookup(host, self._list_allowed(host, addresses), failure, now_s)
        if host.unreachable is not None:
            self._use_detour(host, now_s)
        self.enqueue(host)

    def _use_detour(self, host: HostState, now_s: float) -> bool:
        """Point a host to the address of its first override that is allowed, if any."""
        routes = [self._find_endpoint(origin) for origin in self._list_origins(host)]
        if not any(routes) and not host.origins:  # its ports are not known yet: try one with an override first
            routes = [rule.to for rule in self.rules.detours if rule.matches_host(host.name)]
        addresses = [route.address for route in routes if route is not None]
        if not addresses:
            return False
        if not self._list_allowed(host, addresses[:1]):
            apply_lookup(host, (), Failure.ADDRESS, now_s)
            return False
        if not self._needs_lookup(host):
            host.unreachable = None
        host.address, host.detoured, host.address_until_s = addresses[0], True, now_s + ADDRESS_TTL_S
        return True

    def _needs_lookup(self, host: HostState) -> bool:
        """Check whether a port of a host has no override, so that the name must be looked up."""
        if not self.rules.detours:
            return True
        origins = self._list_origins(host)
        if not origins:
            return not any(rule.matches_host(host.name) for rule in self.rules.detours)
        return any(self._find_endpoint(origin) is None for origin in origins)

    @staticmethod
    def _list_origins(host: HostState) -> list[Origin]:
        return [*host.origins, *(origin_of(task.url) for task in host.robots_tasks)]

    def _find_endpoint(self, origin: Origin) -> Endpoint | None:
        if origin not in self._detours:
            self._detours[origin] = find_endpoint(origin, self.rules.detours)
        return self._detours[origin]

    def _list_allowed(self, host: HostState, addresses: Sequence[str]) -> list[str]:
        private = any(site.allow_private for site in self.sites.find_by_host(host.name))
        return [address for address in addresses if self.rules.can_fetch_address(address, private=private)]

    # delays

    def rest_cautiously(self, host: HostState, now_s: float) -> None:
        """Give a host its full delay, since a lost fetcher may have just sent it a request."""
        self.rest(host, now_s, CAUTIOUS_REST_S)

    def rest(self, host: HostState, now_s: float, least_s: float = 0.0) -> None:
        """Delay the next request to a host after a response, by the crawl delay or longer."""
        pauses_s = (self.delay_s(host), self.robots.crawl_delay_s(host) or 0.0, self.rules.address_delay_s)
        host.ready_s = max(host.ready_s, now_s + max(*pauses_s, least_s))

    def start_turn(self, address: str, hosts: Sequence[HostState], ready_s: float) -> None:
        """Serve the hosts that waited for a turn at their address, which another shard may have just requested."""
        self._quiet_until_s[address] = ready_s
        for host in hosts:
            self.enqueue(host)

    def restore_host(self, row: HostRow, ready_s: float) -> None:
        """Restore the delays of a host from the state of an earlier run."""
        host = self.get(row.name)
        host.ready_s, host.failure_streak, host.rest_trouble = ready_s, row.failure_streak, row.trouble

    def restore(self, names: Sequence[str], robots: Iterable[Origin], now_s: float, *, clean: bool) -> None:
        """Restore the host table from an earlier run; the address last requested also waits briefly."""
        for name, id_ in zip(names, self._urls.intern_hosts(list(names)), strict=True):
            self.get_or_add(name, id_)
        for origin in robots:
            self.get(origin.host).origins[origin] = None
        if self.by_name:
            self._all_quiet_until_s = now_s + self.rules.address_delay_s
        for host in self.by_name.values():
            host.ready_s = min(host.ready_s, now_s + MAX_REST_S)
            if not clean:
                self.rest_cautiously(host, now_s)
            self.enqueue(host)

    def take_orphans(self, worker: int, now_s: float) -> Iterator[HostState]:
        """Take the hosts from a dead fetcher; hosts and addresses it may have just requested wait out their delay."""
        self._quiet_until_s = {place: until_s for place, until_s in self._quiet_until_s.items() if until_s > now_s}
        for host in [host for host in self.by_name.values() if host.worker == worker]:
            self._quiet_until_s[host.address or ""] = now_s + self.rules.address_delay_s
            if host.busy:
                self.rest_cautiously(host, now_s)
            host.worker = None
            yield host
            self.requeue(host)
