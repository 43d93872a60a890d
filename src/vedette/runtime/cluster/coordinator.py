"""The coordinator's side of the exchange: apply links of other shards, and take or pass on addresses.

The exchanger is a separate process, so the coordinator never waits for PostgreSQL. Each ``exchange`` request is applied
in one transaction, and the reply is sent after the commit.
"""

from collections.abc import Sequence

from vedette.adapters.clock import Clock
from vedette.adapters.crawl_store.data_folder import State
from vedette.adapters.exchange.anchor_store import AnchorStore
from vedette.adapters.exchange.canonical_store import CanonicalStore
from vedette.adapters.exchange.link_store import LinkStore, create_exchange_tables
from vedette.engine.coordinator.coordinator import Coordinator
from vedette.engine.coordinator.results import LinkGroup
from vedette.engine.coordinator.robots_cache import build_robots_task
from vedette.engine.coordinator.shard import (
    MIN_TURN_WALL_S,
    ForeignCanonical,
    ForeignLinks,
    ForeignRobots,
    PartitionShard,
    ShardMap,
)
from vedette.engine.scheduling.cluster_budget import ShardBudget
from vedette.engine.scheduling.price_controller import CommonPrice
from vedette.fetch.robots.state import UNKNOWN, RobotsFailure
from vedette.model import origin_of
from vedette.runtime.cluster.lease import ShardSettings
from vedette.runtime.processes.loop import print_error

Response = dict[str, object]


def build_shard(settings: ShardSettings, state: State, speed: float) -> PartitionShard:
    """Build a coordinator's shard over an open state."""
    create_exchange_tables(state.db)
    links, store = LinkStore(state.db, settings.epoch), state.store

    def find_steps(id_: int) -> int | None:
        found = store.get_discoveries([id_]).get(id_)
        return None if found is None else found.steps

    canonicals = build_canonicals(state)
    return PartitionShard(settings.shards, settings.number, links, MIN_TURN_WALL_S * speed, find_steps, canonicals)


def build_canonicals(state: State) -> CanonicalStore:
    """Build the canonical store of a shard over an open state."""
    return CanonicalStore(state.db, lambda url: int(state.urls.find_ids([url])[0]))


class ExchangeHandler:
    """Handler of the exchanger's requests in a shard's coordinator."""

    def __init__(self, state: State, coordinator: Coordinator, shard: PartitionShard, clock: Clock) -> None:
        self._state, self._coordinator, self._shard, self._speed = state, coordinator, shard, clock.speed
        self._anchors, self._canonicals = AnchorStore(state.db), build_canonicals(state)
        self._budget = ShardBudget(
            coordinator.refresher, coordinator.first_fetches, coordinator.host_table, shard.count_shards()
        )

    def handle(
        self,
        now_s: float,
        sent: Sequence[int],
        batches: Sequence[tuple[int, int, int, bytes]],
        granted: Sequence[tuple[str, float]],
        contested: Sequence[str],
        price: tuple[str, float | None, float, float] | None,
        drawn: tuple[float, bool],
        shards: tuple[Sequence[int], Sequence[int]] | None,
    ) -> Response:
        """Apply what the exchanger received, and return what it should do next.

        ``sent`` is the (epoch, sequence) up to which the mailbox has the outbox. ``granted`` are addresses with the
        wall seconds until their first request, and ``contested`` are those that other shards wait for. ``price`` is the
        cluster's, and ``drawn`` the pages of its budget that this shard has got, and whether sites may borrow.
        ``shards`` is the map of all shards, if it has changed.
        """
        if shards is not None:
            self._shard.use_map(ShardMap(tuple(shards[0]), tuple(shards[1])))
        if not self._state.db.in_transaction:
            self._state.db.execute("BEGIN IMMEDIATE")
        for origin in self._shard.take_overdue_robots(now_s):
            failure = RobotsFailure(now_s, "another shard has not fetched it")
            self._coordinator.apply_robots(build_robots_task(origin, UNKNOWN), failure)
        store = LinkStore(self._state.db)
        store.drop_sent((sent[0], sent[1]))
        for source in dict.fromkeys(batch[0] for batch in batches):
            rows = [(epoch, sequence, links) for one, epoch, sequence, links in batches if one == source]
            lost = store.apply_once(source, rows, lambda links: self._admit(links, now_s))
            if lost:
                print_error(f"skipped {lost} unreadable batches of links from shard {source}")
        for address, wait_s in granted:
            self._begin_turn(address, now_s, wait_s)
        ended = self._shard.end_turns(contested, now_s, self._coordinator.host_table.has_work_by)
        self._budget.follow(None if price is None else CommonPrice(*price), drawn[0], has_spare=drawn[1])
        return {
            "wanted": self._shard.list_wanted(),
            "domains": self._shard.list_wanted_domains(),
            "ended": ended,
            "positions": store.get_positions(),
            "spending": self._budget.report(),
            "policy": self._coordinator.refresher.policy,
            "budget_per_s": self._coordinator.rules.budget_per_s,
        }

    def _begin_turn(self, address: str, now_s: float, wait_s: float) -> None:
        hosts = self._shard.grant(address, now_s)
        self._coordinator.host_table.start_turn(address, hosts, now_s + wait_s * self._speed)

    def _admit(self, links: Sequence[ForeignLinks], now_s: float) -> None:
        """Admit links from another shard, under this shard's current rules.

        Links to a part that this shard no longer owns are forwarded.
        """
        coordinator, groups = self._coordinator, list[LinkGroup]()
        for one in links:
            if one.robots is not None:
                groups += self._take_robots(one.robots, now_s)
            if one.canonical is not None:
                self._take_canonical(one.canonical)
            spelt = (coordinator.normalize_url(url) for url in one.urls)
            urls = [url for url in spelt if url is not None]
            if urls:
                groups.append(one.to_group(urls))
        self._anchors.add(
            (url, text, one.is_refetch)
            for one in links
            for url, text in zip(one.urls, one.texts, strict=False)
            if text and self._shard.owns(url)
        )
        coordinator.admit_links(groups, now_s)

    def _take_canonical(self, one: ForeignCanonical) -> None:
        """Answer a question about a canonical URL, or apply an answer; send on what belongs to another shard by now."""
        if one.is_there is None and self._shard.owns(one.url):
            url = self._coordinator.normalize_url(one.url) or one.url
            self._shard.send_canonical(self._canonicals.answer(one, url))
        elif one.is_there is not None and self._shard.owns(one.page):
            self._canonicals.save_answer(one)
        else:
            self._shard.send_canonical(one)

    def _take_robots(self, one: ForeignRobots, now_s: float) -> list[LinkGroup]:
        """Request a robots.txt for another shard, or apply the response to a request; return its sitemaps."""
        table, origin = self._coordinator.host_table, origin_of(one.origin)
        task = build_robots_task(origin, UNKNOWN)._replace(hops=one.hops)
        event = one.response or one.failure
        if event is None:
            if not self._shard.pass_robots(task._replace(hops=one.hops - 1), one.url, now_s):
                table.follow_robots_redirect(task._replace(hops=one.hops - 1), one.url)
        elif not self._shard.pass_robots(task, event, now_s):
            self._shard.end_robots(origin)
            if origin.host in table.by_name:  # otherwise it was asked for before a restart
                return [self._coordinator.apply_robots(task, event)]
        return []
