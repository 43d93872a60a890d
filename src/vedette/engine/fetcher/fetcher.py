"""The fetcher: send the requests that the coordinator assigned, each host at its own pace, and parse responses.

It holds only what was leased to it. If a host must wait long, its tasks are given back: nothing waits in a fetcher that
could wait in the coordinator.
"""

from dataclasses import dataclass, field, replace
from math import inf

from vedette.discover.urls.duplicate_rules import CopyRules
from vedette.discover.urls.scope import SiteIndex
from vedette.engine.fetcher.page_reader import parse_outcome
from vedette.engine.links import LinkResolver
from vedette.engine.messages import FetchResult, FetchTask, HostSettings, HostUpdate, Recall, WorkBatch
from vedette.fetch.politeness import FailureStreak, HostDelay, compute_delay
from vedette.fetch.request import build_conditional_headers, build_headers
from vedette.frontier.back_queues import Frontier
from vedette.model import FetchOutcome, FetchRequest, FetchResponse
from vedette.parse.text.dates import RebuildDetector


@dataclass(slots=True)
class AssignedHost:
    """A host assigned to this fetcher; ``rests_until_s`` is the end of the delay for which it gave its tasks back."""

    settings: HostSettings
    failure_streak: FailureStreak
    in_flight: FetchTask | None = None
    rests_until_s: float = -inf


@dataclass(slots=True)
class Fetcher:
    """All decisions of a fetcher: assigned hosts, unsent tasks, and which request may be sent now.

    ``hold_s`` is how long (world time) a waiting host may hold tasks. With a ``latency_factor`` the delay is at least
    that many times the response time; ``speed`` is the number of world seconds per second of wall time.
    """

    agent: str
    address_delay_s: float
    hold_s: float
    latency_factor: float = 0.0
    speed: float = 1.0
    links: LinkResolver = field(default_factory=lambda: LinkResolver(SiteIndex()))
    copy_rules: CopyRules = field(default_factory=CopyRules)
    hosts: dict[str, AssignedHost] = field(default_factory=dict)
    frontier: Frontier[FetchTask] = field(default_factory=Frontier)
    returned: list[FetchTask] = field(default_factory=list)
    host_updates: dict[str, HostUpdate] = field(default_factory=dict)
    rebuilds: RebuildDetector = field(default_factory=RebuildDetector)

    def accept_batch(self, orders: WorkBatch) -> None:
        """Accept a work batch from the coordinator: host settings first, then their tasks."""
        self.agent = orders.agent or self.agent
        if orders.sites is not None or orders.copy_rules is not None:
            self.copy_rules = self.copy_rules if orders.copy_rules is None else orders.copy_rules
            self.links = LinkResolver(
                self.links.sites if orders.sites is None else SiteIndex(orders.sites),
                self.copy_rules,
            )
        for host in orders.hosts:
            known = self.hosts.get(host.name)
            if known is not None and known.settings.address == host.address:
                known.settings = host
                self.frontier.delay(host.name, host.ready_s)
                continue
            enter = self.frontier.open_host if known is None else self.frontier.move
            enter(host.name, host.address, host.ready_s)
            self.hosts[host.name] = AssignedHost(host, FailureStreak(host.failure_streak))
        for task in orders.tasks:
            asked = self.hosts[task.host]
            if asked.rests_until_s > asked.settings.ready_s:  # assigned before the coordinator learned about the delay
                self.returned.append(task)
            else:
                self.frontier.add(task.host, task, task.worth, task.value)

    def recall(self, recall: Recall) -> None:
        """Give back every unsent task of these hosts to the coordinator."""
        for name in recall.hosts:
            if name in self.hosts:
                self.returned += self.frontier.clear(name)

    def next_s(self) -> float | None:
        """Return when the fetcher's ``take_request`` may next have a request."""
        return self.frontier.peek_next_s()

    def take_request(self, now_s: float) -> FetchRequest | None:
        """Take a request that the fetcher may send now."""
        while (taken := self.frontier.take(now_s)) is not None:
            task = taken.item
            if task.valid_until_s > now_s:
                self.hosts[taken.host].in_flight = task
                accept = task.part_of.accept if task.part_of else ""
                headers = build_headers(task.purpose, self.agent, accept) + build_conditional_headers(*task.validators)
                cookies = (("cookie", task.cookies),) if task.cookies else ()
                return FetchRequest(task.url, task.purpose, headers, cookies)
            self.frontier.drop(taken)
            self.returned.append(task)
        return None

    def take_back(self, host: str, until_s: float, why: str) -> None:
        """Take back a request that must not be sent: the host waits, and all its tasks return to the coordinator."""
        asked = self.hosts[host]
        task, asked.in_flight = asked.in_flight, None
        assert task is not None, f"{host} had nothing out"
        self.frontier.complete(host, until_s, -inf)
        asked.rests_until_s = until_s
        self.returned += [task, *self.frontier.clear(host)]
        self.host_updates[host] = HostUpdate(host, until_s, asked.failure_streak.count, why)

    def on_outcome(self, host: str, outcome: FetchOutcome) -> FetchResult:
        """Handle the outcome of a request: start the host's delay, and parse the response into a result."""
        asked = self.hosts[host]
        task, asked.in_flight = asked.in_flight, None
        assert task is not None, f"{host} had nothing out"
        rest = compute_delay(
            outcome,
            asked.failure_streak,
            delay_s=asked.settings.delay_s,
            crawl_delay_s=asked.settings.crawl_delay_s,
            address_delay_s=self.address_delay_s,
            latency_factor=self.latency_factor,
            speed=self.speed,
        )
        if asked.settings.bytes_per_s is not None and isinstance(outcome, FetchResponse):
            # A host with limited bandwidth waits until the bytes it sent are spread thinly enough.
            spread_s = len(outcome.payload or outcome.body) / asked.settings.bytes_per_s
            rest = replace(rest, host_ready_s=max(rest.host_ready_s, outcome.ended_s + spread_s))
        asked.failure_streak = rest.failure_streak
        self.frontier.complete(host, rest.host_ready_s, rest.address_ready_s)
        self._apply_rest(host, rest, outcome.ended_s)
        if task.robots_of is not None and task.robots_of.host == host:
            self._return_pages(host)
        held_s = max(outcome.ended_s - outcome.started_s, 0.0) / self.speed
        return parse_outcome(task, outcome, self.links, self.rebuilds)._replace(connection_s=held_s)

    def _return_pages(self, host: str) -> None:
        """Give back a host's pages after its robots.txt arrived, so that the coordinator checks them again."""
        for task in self.frontier.clear(host):
            if task.purpose == "robots":
                self.frontier.add(host, task, task.worth, task.value)
            else:
                self.returned.append(task)

    def _apply_rest(self, host: str, rest: HostDelay, now_s: float) -> None:
        trouble = rest.why if rest.failure_streak.count else ""
        self.host_updates[host] = HostUpdate(host, rest.host_ready_s, rest.failure_streak.count, trouble)
        if rest.host_ready_s > now_s + self.hold_s:
            self.hosts[host].rests_until_s = rest.host_ready_s
            self.returned += self.frontier.clear(host)
