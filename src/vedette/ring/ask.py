"""The worker's half of the ring: ask hosts for what the keeper ordered, each in its own time, and read the answers.

It holds only what was leased to it. A host that must rest for long gives its errands back, so that nothing waits in a
worker that could wait in the keeper.
"""

from dataclasses import dataclass, field

from vedette.facts import Ask, Outcome, Site
from vedette.fetch.polite import Rest, Strain, rest_after
from vedette.fetch.request import page_headers
from vedette.order.frontier import Frontier, Taken
from vedette.ring.orders import Errand, HostNews, HostOrders, Orders, Recall, Result
from vedette.ring.reading import read_outcome

__all__ = ["Asked", "Asker"]


@dataclass(slots=True)
class Asked:
    """A host that this worker has orders for."""

    orders: HostOrders
    strain: Strain
    out: Errand | None = None


@dataclass(slots=True)
class Asker:
    """All that a worker knows. ``hold_s`` is how long (world time) a host may rest with errands in hand."""

    agent: str
    address_delay_s: float
    hold_s: float
    sites: tuple[Site, ...] = ()
    hosts: dict[str, Asked] = field(default_factory=dict)
    frontier: Frontier[Errand] = field(default_factory=Frontier)
    returned: list[Errand] = field(default_factory=list)
    news: dict[str, HostNews] = field(default_factory=dict)

    def take_orders(self, orders: Orders) -> None:
        """Hosts come first, then the errands to them."""
        if orders.sites is not None:
            self.sites = orders.sites
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
        )
        asked.strain = rest.strain
        self.frontier.done(host, rest.host_ready_s, rest.address_ready_s)
        self._rested(host, rest, outcome.ended_s)
        return read_outcome(errand, outcome, self.sites)

    def _ask(self, taken: Taken[Errand]) -> Ask:
        errand = taken.item
        self.hosts[taken.host].out = errand
        return Ask(errand.url, errand.purpose, page_headers(errand.purpose, self.agent) + errand.headers)

    def _rested(self, host: str, rest: Rest, now_s: float) -> None:
        trouble = rest.why if rest.strain.in_a_row else ""
        self.news[host] = HostNews(host, rest.host_ready_s, rest.strain.in_a_row, trouble)
        if rest.host_ready_s > now_s + self.hold_s:
            self.returned += self.frontier.clear(host)
