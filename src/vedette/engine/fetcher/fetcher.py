"""The worker's half of the ring: ask hosts for what the keeper ordered, each in its own time, and read the answers.

It holds only what was leased to it. A host that must rest for long gives its errands back, so that nothing waits in a
worker that could wait in the keeper.
"""

from dataclasses import dataclass, field, replace
from math import inf

from vedette.discover.urls.duplicate_rules import Learned
from vedette.discover.urls.scope import SiteIndex
from vedette.engine.fetcher.page_reader import read_outcome
from vedette.engine.links import Links
from vedette.engine.messages import Errand, HostNews, HostOrders, Orders, Recall, Result
from vedette.fetch.politeness import Rest, Strain, rest_after
from vedette.fetch.request import page_headers
from vedette.frontier.queues import Frontier, Taken
from vedette.model import Answer, Ask, Outcome

__all__ = ["Asked", "Asker"]


@dataclass(slots=True)
class Asked:
    """A host that this worker has orders for; ``rests_until_s`` is until when it gave everything back."""

    orders: HostOrders
    strain: Strain
    out: Errand | None = None
    rests_until_s: float = -inf


@dataclass(slots=True)
class Asker:
    """All that a worker knows.

    ``hold_s`` is how long (world time) a host may rest with errands in hand. With a ``latency_factor`` a host rests at
    least that many times as long as its answer took; ``speed`` is how many world seconds pass in one of ours.
    """

    agent: str
    address_delay_s: float
    hold_s: float
    latency_factor: float = 0.0
    speed: float = 1.0
    links: Links = field(default_factory=lambda: Links(SiteIndex()))
    learned: Learned = field(default_factory=Learned)
    hosts: dict[str, Asked] = field(default_factory=dict)
    frontier: Frontier[Errand] = field(default_factory=Frontier)
    returned: list[Errand] = field(default_factory=list)
    news: dict[str, HostNews] = field(default_factory=dict)

    def take_orders(self, orders: Orders) -> None:
        """Hosts come first, then the errands to them."""
        if orders.sites is not None or orders.learned is not None:
            self.learned = self.learned if orders.learned is None else orders.learned
            self.links = Links(
                self.links.sites if orders.sites is None else SiteIndex(orders.sites),
                self.learned,
            )
        for host in orders.hosts:
            known = self.hosts.get(host.name)
            if known is not None and known.orders.address == host.address:
                known.orders = host
                self.frontier.rest(host.name, host.ready_s)
                continue
            enter = self.frontier.open if known is None else self.frontier.move
            enter(host.name, host.address, host.ready_s)
            self.hosts[host.name] = Asked(host, Strain(host.strain))
        for errand in orders.errands:
            asked = self.hosts[errand.host]
            if asked.rests_until_s > asked.orders.ready_s:  # given out before the keeper heard that it rests
                self.returned.append(errand)
            else:
                self.frontier.add(errand.host, errand, errand.worth)

    def recall(self, recall: Recall) -> None:
        """Whatever has not left of these hosts goes back."""
        for name in recall.hosts:
            if name in self.hosts:
                self.returned += self.frontier.clear(name)

    def next_s(self) -> float | None:
        """When ``take`` may bring something that it does not bring now."""
        return self.frontier.next_s()

    def take(self, now_s: float) -> Ask | None:
        """A request that may leave now."""
        while (taken := self.frontier.take(now_s)) is not None:
            if taken.item.valid_until_s > now_s:
                return self._ask(taken)
            self.frontier.drop(taken)
            self.returned.append(taken.item)
        return None

    def came(self, host: str, outcome: Outcome) -> Result:
        """A request ended: its host rests, and what came is read."""
        asked = self.hosts[host]
        errand, asked.out = asked.out, None
        assert errand is not None, f"{host} had nothing out"
        rest = rest_after(
            outcome,
            asked.strain,
            delay_s=asked.orders.delay_s,
            crawl_delay_s=asked.orders.crawl_delay_s,
            address_delay_s=self.address_delay_s,
            latency_factor=self.latency_factor,
            speed=self.speed,
        )
        rest = _spread(rest, outcome, asked.orders.bytes_per_s)
        asked.strain = rest.strain
        self.frontier.done(host, rest.host_ready_s, rest.address_ready_s)
        self._rested(host, rest, outcome.ended_s)
        if errand.robots_of is not None and errand.robots_of.host == host:
            self._give_back_pages(host)
        held_s = max(outcome.ended_s - outcome.started_s, 0.0) / self.speed
        return read_outcome(errand, outcome, self.links)._replace(held_s=held_s)

    def _ask(self, taken: Taken[Errand]) -> Ask:
        errand = taken.item
        self.hosts[taken.host].out = errand
        return Ask(errand.url, errand.purpose, page_headers(errand.purpose, self.agent) + errand.headers)

    def _give_back_pages(self, host: str) -> None:
        """A host's own robots.txt came: from now on its word counts, so the keeper judges its pages anew."""
        for errand in self.frontier.clear(host):
            if errand.purpose == "robots":
                self.frontier.add(host, errand, errand.worth)
            else:
                self.returned.append(errand)

    def _rested(self, host: str, rest: Rest, now_s: float) -> None:
        trouble = rest.why if rest.strain.in_a_row else ""
        self.news[host] = HostNews(host, rest.host_ready_s, rest.strain.in_a_row, trouble)
        if rest.host_ready_s > now_s + self.hold_s:
            self.hosts[host].rests_until_s = rest.host_ready_s
            self.returned += self.frontier.clear(host)


def _spread(rest: Rest, outcome: Outcome, bytes_per_s: float | None) -> Rest:
    """A host whose bandwidth is not to be taken rests until what it sent is spread thinly enough."""
    if bytes_per_s is None or not isinstance(outcome, Answer):
        return rest
    size_bytes = len(outcome.payload or outcome.body)
    return replace(rest, host_ready_s=max(rest.host_ready_s, outcome.ended_s + size_bytes / bytes_per_s))
