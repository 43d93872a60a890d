"""Sampled checks: home fetches some pages that an observer has just observed, and compares them.

A check has the host for itself, and the others that the observer has at its address: their observer gets no further
errands, and the check waits for a later report in which it has none left. The delays of host and address pass before
and after, also if a host changes hands then. A check also measures what the page costs from home, for eq. 41. Pages may
change in between, so texts are compared by their sketches, and one difference proves nothing.
"""

from typing import NamedTuple

from vedette.adapters.crawl_store.data_folder import read_state
from vedette.adapters.crawl_store.request_budget import RequestBudget
from vedette.adapters.crawl_store.store import CrawlStore
from vedette.adapters.net.dns import Resolver
from vedette.discover.urls.scope import SiteIndex
from vedette.engine.fetcher.page_reader import parse_outcome
from vedette.engine.links import LinkResolver
from vedette.engine.messages import FetchSuccess, FetchTask, HostUpdate
from vedette.fetch.connect_to import Endpoint, find_endpoint
from vedette.fetch.politeness import FailureStreak, compute_delay
from vedette.fetch.request import build_headers
from vedette.model import FetchOutcome, FetchRequest, FetchResponse, origin_of
from vedette.parse.change.comparison import StoredVersion
from vedette.parse.similarity.minhash import estimate_similarity
from vedette.policy import rng_for
from vedette.runtime.observers.desk import ErrandDesk, get_gap_s
from vedette.runtime.observers.facts import CHECK_SHARE
from vedette.runtime.processes.settings import RuntimeSettings, build_rules

# Until a link is measured, more pages are checked.
FIRST_CHECKS, FIRST_SHARE = 8.0, 0.25
MIN_SIMILARITY = 0.5
# The observer must have reported while its host is checked, because it follows its plan if home does not respond.
SILENT_S = 20.0
TIMEOUT_S = 900.0


class _Check(NamedTuple):
    """A check that waits for its host, or its response; the ``hosts`` at its address are paused since ``since_s``."""

    url: str
    host: str
    hosts: frozenset[str]
    observer: str
    status: int
    version: StoredVersion | None
    since_s: float
    free_s: float | None = None
    is_sent: bool = False


class PageChecks:
    """The checks of an observer hub, one at a time."""

    def __init__(self, settings: RuntimeSettings, budget: RequestBudget) -> None:
        self._settings, self._budget = settings, budget
        self._rng = rng_for(int(settings.clock.wall_now()), "observer checks")
        self._check: _Check | None = None
        self._resolver = Resolver(threads=1)
        self._routes: dict[str, tuple[Endpoint | None, float]] = {}

    @property
    def fd(self) -> int:
        """The descriptor that wakes the hub up when a name has been resolved."""
        return self._resolver.fd

    def drain(self) -> None:
        """Reset the descriptor."""
        self._resolver.drain()

    def close(self) -> None:
        """Give up all lookups."""
        self._resolver.close()

    def consider(self, result: FetchSuccess, observer: str, desk: ErrandDesk) -> None:
        """Consider checking a page that an observer has just observed; pages are chosen at random."""
        task = result.task
        if self._check is not None or task.robots_of is not None or task.part_of is not None or result.status != 200:
            return
        direct = desk.facts[observer].direct.get(task.host) if observer in desk.facts else None
        share = CHECK_SHARE if direct and direct.count >= FIRST_CHECKS else FIRST_SHARE
        if result.content is None or self._rng.random() >= share or desk.find_secrets(task.url):
            return
        # Not since the observation: the reply to the report that brought it may have given further errands of the host.
        now_s = self._settings.clock.now()
        hosts = desk.list_neighbors(task.host, observer)
        self._check = _Check(task.url, task.host, hosts, observer, result.status, result.content.baseline, now_s)
        desk.paused.update(hosts)

    def take_request(self, now_s: float, desk: ErrandDesk) -> tuple[FetchRequest, Endpoint] | None:
        """Take the request of a check once its host is free and the delay has passed."""
        check = self._check
        if check is None or check.is_sent:
            return None
        heard_s, held = desk.held_hosts.get(check.observer, (0.0, frozenset[str]()))
        if now_s - check.since_s > TIMEOUT_S or now_s - heard_s > SILENT_S * self._settings.clock.speed:
            self._end(desk)
            return None
        if check.free_s is None:
            if heard_s > check.since_s and not check.hosts & held:
                gap_s = max(get_gap_s(desk.hosts[check.host]), self._settings.config.crawl.address_delay_s)
                self._check = check._replace(free_s=now_s + gap_s)
            return None
        if now_s < max(check.free_s, desk.hosts[check.host].ready_s):
            return None
        route = self._find_route(check, now_s)
        if route is None or self._budget.spend(check.host, route.address, now_s) is not None:
            if route is not None or not self._resolver.pending:  # else home may not, or cannot, reach the host
                self._end(desk)
            return None
        self._check = check._replace(is_sent=True)
        return FetchRequest(check.url, "page", build_headers("page", desk.agent)), route

    def on_outcome(self, outcome: FetchOutcome, links: LinkResolver, desk: ErrandDesk) -> list[HostUpdate]:
        """Compare the response to a check with what the observer said; return when its hosts may be requested again."""
        check = self._check
        assert check is not None
        ready_s = outcome.ended_s + self._settings.config.crawl.address_delay_s
        others = sorted(name for name in check.hosts if name != check.host and name in desk.hosts)
        updates = [self._rest(check, outcome, desk), *(desk.rest(name, ready_s) for name in others)]
        self._end(desk)
        if isinstance(outcome, FetchResponse) and outcome.status not in {429, 503}:
            self._compare(check, outcome, links, desk)
        return updates

    def _rest(self, check: _Check, outcome: FetchOutcome, desk: ErrandDesk) -> HostUpdate:
        """Start the delay of a host after a check; if home cannot reach it, this says nothing about its observer."""
        known, crawl = desk.hosts[check.host], self._settings.config.crawl
        if not isinstance(outcome, FetchResponse):
            return desk.rest(check.host, outcome.ended_s + get_gap_s(known))
        rest = compute_delay(
            outcome,
            FailureStreak(known.failure_streak),
            delay_s=known.delay_s,
            crawl_delay_s=known.crawl_delay_s,
            address_delay_s=crawl.address_delay_s,
            latency_factor=crawl.latency_factor,
            speed=self._settings.clock.speed,
        )
        streak, ready_s = rest.failure_streak.count, max(known.ready_s, rest.host_ready_s)
        desk.hosts[check.host] = known._replace(ready_s=ready_s, failure_streak=streak)
        return HostUpdate(check.host, ready_s, streak, rest.why if streak else "")

    @staticmethod
    def _compare(check: _Check, outcome: FetchResponse, links: LinkResolver, desk: ErrandDesk) -> None:
        desk.measure_direct(check.observer, check.host, len(outcome.body), outcome.ended_s - outcome.started_s)
        read = parse_outcome(FetchTask(0, check.host, check.url, "page"), outcome, links)
        assert isinstance(read, FetchSuccess)
        version = read.content.baseline if read.content else None
        is_same = read.status == check.status and _is_similar(version, check.version)
        desk.count_check(check.observer, check.url, is_same=is_same)

    def _end(self, desk: ErrandDesk) -> None:
        if self._check is not None:
            desk.paused -= self._check.hosts
        self._check = None

    def _find_route(self, check: _Check, now_s: float) -> Endpoint | None:
        """Find the address of a host as seen from home; end the check if home may not request it."""
        origin = origin_of(check.url)
        detour = find_endpoint(origin, self._settings.detours)
        for lookup in self._resolver.take_answers():
            allowed = [address for address in lookup.addresses if self._may_fetch(lookup.host, address)]
            route = Endpoint(allowed[0], origin.port) if allowed else None
            self._routes[lookup.host] = route, now_s
        if detour is not None:
            return detour if self._may_fetch(check.host, detour.address) else None
        route, at_s = self._routes.get(check.host, (None, -1e9))
        if now_s - at_s > TIMEOUT_S and not self._resolver.pending:
            self._resolver.submit(check.host)
        return route

    def _may_fetch(self, host: str, address: str) -> bool:
        with read_state(self._settings.folder) as db:
            rules = build_rules(self._settings, CrawlStore(db).list_sites())
        private = any(site.allow_private for site in SiteIndex(rules.sites).find_by_host(host))
        return rules.can_fetch_address(address, private=private)


def _is_similar(one: StoredVersion | None, other: StoredVersion | None) -> bool:
    """Check whether two versions of a page have mostly the same text; without a sketch, compare them exactly."""
    if one is None or other is None:
        return one is other
    if one.sketch and other.sketch:
        return estimate_similarity(one.sketch, other.sketch) >= MIN_SIMILARITY
    return one.main_print == other.main_print
