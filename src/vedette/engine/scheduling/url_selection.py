"""URL selection: which URLs of a host to fetch next: front queues propose, sites and robots.txt decide.

URLs are drawn from a host's front queues with a bias towards the better ones, and leased. Each is then judged: fetch
it, refuse it for good, or let it wait because its robots.txt is unavailable or its site is paused. A waiting URL does
not block the rest of its host; the host pauses only if nothing else is left.
"""

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from itertools import count
from math import inf
from typing import NamedTuple

import numpy as np

from vedette.engine.coordinator.hosts import HostTable
from vedette.engine.coordinator.robots_cache import build_robots_task
from vedette.engine.coordinator.state import NEW_WORTH, REQUESTED_WORTH, FoundUrl, HostState
from vedette.engine.coordinator.trap_filter import Hold, Spared, TrapFilter
from vedette.engine.coordinator.url_states import NO_FETCHER, UrlStates
from vedette.engine.decision_record import Decision, DecisionRecorder
from vedette.engine.messages import FetchTask, StoredCopy
from vedette.engine.ports import ContentRow, CrawlStore, LeasedUrl, LinkBatch, PageRow, UrlFrontier
from vedette.engine.scheduling.first_fetch import FirstFetches
from vedette.engine.scheduling.rendering_model import RenderingModel
from vedette.engine.scheduling.schedule import DEFAULT_PRICE
from vedette.engine.scheduling.url_order import NEXT_STEP_S, NO_IMPACT, ImpactEstimates, ImpactLookup, WorthSorter
from vedette.engine.scheduling.url_twins import TWIN_WAIT_S, UrlTwins
from vedette.engine.search.hidden import is_in_domains
from vedette.fetch.robots import state as robots_state
from vedette.frontier.queues import ORDER_POLICIES, OrderName, assign_by_worth
from vedette.frontier.traps import get_authority
from vedette.frontier.unseen import UnseenUrls
from vedette.model import Origin, Refusal, Site, origin_of
from vedette.policy import Floats, rng_for

# How many batches without a fetchable URL are checked in one turn, and when the next ones are. A batch may be one URL:
# if URLs of an unreachable port fill the batches, this many URLs are checked.
MAX_EMPTY_BATCHES = 8
MAX_LOOKED = 64
RETRY_EMPTY_S = 60.0


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A leased URL in URL selection, its worth among those of its host, and its value in the unit of the price."""

    leased: LeasedUrl
    worth: float
    value: float


class _StoredPage(NamedTuple):
    """Stored data of a URL, for URL selection: its page row and content."""

    row: PageRow | None
    content: ContentRow | None


def build_copy(row: PageRow, content: ContentRow | None) -> StoredCopy | None:
    """Build the stored copy that a response is compared with; None without a body."""
    if not row.digest:
        return None
    baseline, modified_s = (content.baseline, content.modified_s) if content else (None, None)
    return StoredCopy(row.etag, row.last_modified, row.digest, row.payload_digest, row.fetched_s, baseline, modified_s)


class UrlSelector:
    """Select URLs for a host: lease them from its front queues, and judge each by site, robots.txt and price."""

    def __init__(
        self,
        hosts: HostTable,
        urls: UrlFrontier,
        book: CrawlStore,
        fates: UrlStates,
        thrift: TrapFilter,
        firsts: FirstFetches,
        witness: DecisionRecorder | None = None,
        foresight: ImpactEstimates = NO_IMPACT,
    ) -> None:
        self._hosts = hosts
        self._urls = urls
        self._store = book
        self._url_states = fates
        self._trap_filter = thrift
        self._first_fetches = firsts
        self._recorder = witness
        self.rendering = RenderingModel(book)
        self._impact = ImpactLookup(hosts, urls, foresight)
        self._by_worth = WorthSorter(hosts, urls, book, firsts, self._impact)
        self._held: list[tuple[int, Hold]] = []
        self._back: dict[int, None] = {}
        self._aside: list[int] = []
        self._unpaid_s = inf
        self._url_twins = UrlTwins(urls, hosts, thrift.learned)
        self.substitutes: list[FoundUrl] = []
        self._draws = 0
        self._fronts: dict[tuple[OrderName, int], int] = {}

    def build_link_batch(self, named: Sequence[FoundUrl], hosts: Sequence[int]) -> LinkBatch:
        """Build a batch of found links with front queues by the order policy, unless one is given."""
        urls = [one.url for one in named]
        foreseen: dict[int, int] = {}
        if self._impact.is_active:
            foreseen = self._impact.get_front_queues(urls)
        elif self._by_worth.price is not None:
            foreseen = self._by_worth.get_front_queues(named, self._by_worth.price)
        fronts = [
            (foreseen.get(place) or self._default_queue(one.depth)) if one.front is None else one.front
            for place, one in enumerate(named)
        ]
        return LinkBatch(urls, hosts, [one.depth for one in named], fronts)

    def select(
        self, host: HostState, worker: int, now_s: float, until_s: float, most: int | None
    ) -> tuple[FetchTask, ...]:
        """Select fetch tasks for a host that may be requested.

        Set its ``robots_tasks`` if robots.txt files must be fetched first, and ``paused_until_s`` if it must wait.

        ``most`` is how many pages may be fetched besides those requested by name.
        """
        host.is_blocked = False
        open_s = self._hosts.opens_at_s(host, now_s)
        if open_s > now_s:
            self._pause(host, open_s)
            return ()
        files = self._hosts.robots
        unknown, wait_s = files.list_unknown(host), files.wait_s(host, now_s)
        if unknown or wait_s is not None:
            self.request_robots(host, unknown)
            self._pause(host, wait_s or 0.0)
            return ()
        most = self._limit_to_budget(host, now_s, most)
        if host.budget_wait and not self._hosts.count_requested(host):
            self._pause(host, 0.0)
            return ()
        self._unpaid_s, looked, below = inf, 0, self._first_fetches.below_count
        later: list[float] = []
        self._by_worth.step(host, now_s)
        for batch in count(1):
            wanted, leased = self._draw(host, worker, until_s, most)
            given, waits = self._judge_batch(host, leased, worker, now_s)
            later += waits
            looked += len(leased)
            if given or host.robots_pending or len(leased) < max(wanted, 1):
                break
            if batch >= MAX_EMPTY_BATCHES and (not self._aside or looked >= MAX_LOOKED):
                break
        host.is_blocked = 0 < looked == len(self._aside)
        self._release_set_aside(host, worker)
        if self._unpaid_s < inf:
            later.append(self._next_budget_s(host, looked, now_s))
        if self._by_worth.should_sort(host, looked, self._first_fetches.below_count - below, now_s):
            later.append(now_s + NEXT_STEP_S)
        if given or not later:
            self._pause(host, 0.0)
        else:
            self._pause(host, min(later) if len(leased) < wanted else min(*later, now_s + RETRY_EMPTY_S))
        return given

    def can_select(self, host: HostState, now_s: float) -> bool:
        """Check whether a host may have URLs to select; otherwise its URLs are refused or held back."""
        return self._check_scope(host, now_s) and not self._hold_back_host(host, now_s)

    def _check_scope(self, host: HostState, now_s: float) -> bool:
        """Check whether a running site may have URLs on a host; refuse URLs of no site."""
        why = Refusal.BLOCKED if is_in_domains(host.name, self._hosts.rules.blocked) else Refusal.OUT_OF_SCOPE
        if why is Refusal.OUT_OF_SCOPE:
            if self._hosts.sites.find_by_host(host.name):
                return True
            if self._hosts.paused.find_by_host(host.name):
                host.paused_until_s = float("inf")
                return False
        for one in self._urls.lease([host.id] * self._hosts.rules.max_leases, NO_FETCHER, now_s):
            self._url_states.refuse(one.id, why, str(why), NO_FETCHER, now_s)
        return False

    def _hold_back_host(self, host: HostState, now_s: float) -> bool:
        """Hold back all URLs of a host beyond the limit of its domain (host trap), before any request."""
        if (
            host.busy
            or host.requested
            or host.trials
            or not self._trap_filter.is_saturated(get_authority(f"{one}/") for one in host.origins)
        ):
            return False
        leased = self._urls.lease([host.id] * self._hosts.rules.max_leases, NO_FETCHER, now_s)
        for one in leased:
            site = self._hosts.sites.find_site(one.url)
            judged = self._trap_filter.judge(one.url, site) if site is not None else None
            if isinstance(judged, Hold):
                self._held.append((one.id, judged))
            else:
                self._url_states.release([one.id], NO_FETCHER)
        held = bool(self._held)
        self._save_held(host, NO_FETCHER, now_s)
        return held

    def _pause(self, host: HostState, until_s: float) -> None:
        host.paused_until_s = until_s
        host.robots_trouble = (self._hosts.robots.explain_wait(host) or str(host.unreachable or "")) if until_s else ""

    def _limit_to_budget(self, host: HostState, now_s: float, most: int | None) -> int | None:
        """Limit a host's turn to the fetch budget; if nothing is left, queue the host for it."""
        budget = self._hosts.budget
        if budget is None:
            return most
        sites = [site.start for site in self._hosts.sites.find_by_host(host.name)]
        offer = budget.get_quota(sites, now_s)
        if not offer:
            budget.enqueue(host, sites, now_s)
        return offer if most is None else min(offer, most)

    def _charge_budget(self, host: HostState, id_: int, site: Site, now_s: float) -> bool:
        """Charge the fetch budget for a selected URL; return whether its site had a page left."""
        budget = self._hosts.budget
        if budget is None or budget.take(site.start, now_s, at_once=id_ in host.requested):
            return True
        self._unpaid_s = min(self._unpaid_s, budget.ready_s(site.start))
        return False

    def _next_budget_s(self, host: HostState, looked: int, now_s: float) -> float:
        """Return when to retry a host if one of its sites has no fetch budget left."""
        seen_all = self._urls.count_waiting(host.id) <= looked
        return self._unpaid_s if seen_all else now_s + self._hosts.rules.ahead_s

    def request_robots(self, host: HostState, origins: Iterable[Origin]) -> None:
        """Queue requests for the robots.txt files of origins, unless they are in progress."""
        for origin in origins:
            if origin not in host.robots_pending:
                host.robots_pending[origin] = None
                host.robots_tasks.append(build_robots_task(origin, self._hosts.robots.get(origin)))

    # propose

    def _default_queue(self, depth: int) -> int:
        """Return the front queue of a URL that was just found once: only its depth is known."""
        name = self._hosts.rules.order
        if (name, depth) not in self._fronts:
            worth = self._score(UnseenUrls(np.array([depth]), np.zeros(1, np.int64), np.ones(1, np.int64)))
            self._fronts[name, depth] = int(
                assign_by_worth(worth, ORDER_POLICIES[name].best, ORDER_POLICIES[name].worst)[0]
            )
        return self._fronts[name, depth]

    def _score(self, batch: UnseenUrls) -> Floats:
        policy, seed = ORDER_POLICIES[self._hosts.rules.order].policy, self._hosts.rules.seed
        stream = f"order/{policy.name}/{self._draws}"
        worth = policy.worth(policy.start(None), batch, 0.0, rng_for(seed, stream))
        if self._recorder is not None:
            facts = {each.name: getattr(batch, each.name).tolist() for each in fields(batch)}
            self._recorder(Decision("order", 0.0, seed, stream, {policy.name: {}}, facts, {"worth": worth.tolist()}))
        return worth

    def _draw(self, host: HostState, worker: int, until_s: float, most: int | None) -> tuple[int, list[_Candidate]]:
        """Lease candidates from a host's front queues, requested ones first; return how many were wanted, and them."""
        wished = self._hosts.count_requested(host)
        room = self._count_room(host, wished, most)
        self._impact.reorder_host(host)
        self._draws += 1
        rng = rng_for(self._hosts.rules.seed, f"lease/{self._draws}")
        leased = self._urls.lease([host.id] * wished, worker, until_s) if wished else []
        leased += self._urls.lease([host.id] * (room * self._sample_factor(room)), worker, until_s, rng)
        drawn = self._rank(host, leased)
        best, rest = drawn[: wished + room], drawn[wished + room :]
        if rest:
            self._release_leases(host, [one.leased.id for one in rest], worker)
        return wished + room, best

    def _count_room(self, host: HostState, wished: int, most: int | None) -> int:
        if self._hosts.rules.only_requested:
            return 0
        room = self._hosts.batch_size(host) - len(host.in_flight) - wished
        return max(room if most is None else min(room, most), 0)

    def _sample_factor(self, room: int) -> int:
        """How many candidates are leased per URL selected, if the order policy's worth grows with time."""
        rules = self._hosts.rules
        return max(1, min(ORDER_POLICIES[rules.order].sample, rules.max_leases // max(room, 1)))

    def _rank(self, host: HostState, leased: list[LeasedUrl]) -> list[_Candidate]:
        """Rank leased candidates by their current worth, the best first."""
        ids = np.array([one.id for one in leased], np.uint32)
        depths = np.array([one.depth for one in leased], np.int64)
        named = self._urls.count_inlinks(ids).astype(np.int64)
        batch = UnseenUrls(depths, ids.astype(np.int64), named)
        worths = self._score(self._impact.add_impact(leased, batch) if self._impact.is_active else batch).tolist()
        urgent = {one.id: NEW_WORTH for one in leased if one.id in host.new_urls}
        urgent |= {one.id: REQUESTED_WORTH for one in leased if one.id in host.requested}
        ranked = [urgent.get(one.id, worth) for one, worth in zip(leased, worths, strict=True)]
        drawn = [_Candidate(one, worth, worth) for one, worth in zip(leased, ranked, strict=True)]
        return sorted(drawn, key=lambda one: -one.worth)

    # decide

    def _judge_batch(
        self, host: HostState, drawn: list[_Candidate], worker: int, now_s: float
    ) -> tuple[tuple[FetchTask, ...], list[float]]:
        """Judge leased candidates: return the tasks among them, and until when the others wait."""
        copies = self._store.get_pages([one.leased.id for one in drawn])
        contents = self._store.get_contents(copies) if copies else {}
        drawn = self._add_values(host, drawn, copies)
        self._url_twins.start_batch(host, (one.leased.url for one in drawn))
        verdicts = [
            self._judge_url(
                host, one, _StoredPage(copies.get(one.leased.id), contents.get(one.leased.id)), worker, now_s
            )
            for one in drawn
        ]
        self._save_held(host, worker, now_s)
        for id_ in [one.leased.id for one in drawn if one.leased.id not in self._back]:
            host.new_urls.pop(id_, None)
            host.refreshes.pop(id_, None)
        self._back.clear()
        given = tuple(verdict for verdict in verdicts if isinstance(verdict, FetchTask))
        return given, [verdict for verdict in verdicts if isinstance(verdict, float)]

    def _add_values(self, host: HostState, drawn: list[_Candidate], known_ids: Container[int]) -> list[_Candidate]:
        """Return candidates with their value in the unit of the price, by which hosts are compared.

        Only if URLs are ordered by impact: the other orders have their own units. A refresh is worth its price if
        nothing more is known: otherwise the page would not be waiting here.
        """
        if self._hosts.rules.order == "impact":
            others = [one for one in drawn if one.worth < NEW_WORTH]
            unseen = [one.leased for one in others if one.leased.id not in known_ids]
            inlinks = self._urls.count_inlinks(np.array([one.id for one in unseen], np.uint32)).tolist()
            gains = self._impact.get_gains(unseen) if self._impact.is_active else None
            worths = self._first_fetches.estimate_worths([one.url for one in unseen], inlinks, gains).tolist()
            price = self._first_fetches.price or DEFAULT_PRICE
            values = {one.leased.id: host.refreshes.get(one.leased.id, price) for one in others}
            values |= dict(zip((one.id for one in unseen), worths, strict=True))
            drawn = [replace(one, value=values.get(one.leased.id, one.worth)) for one in drawn]
        host.worth = max((one.value for one in drawn if one.value < NEW_WORTH), default=host.worth)
        return drawn

    def _judge_url(
        self, host: HostState, one: _Candidate, copy: _StoredPage, worker: int, now_s: float
    ) -> FetchTask | float | None:
        """Judge a leased URL: return its task, when to check it again, or None if refused or awaiting robots.txt."""
        id_, url = one.leased.id, one.leased.url
        site = self._hosts.sites.find_site(url)
        if site is None:
            return self._reject_unsited(id_, url, worker, now_s)
        origin = origin_of(url)
        if not self._hosts.can_route(host, origin):
            host.origins[origin] = None
            self._set_aside(id_)
            return max(host.lookup_retry_s, now_s)
        if site.ignore_robots:
            return self._admit_url(host, one, copy, site, worker, now_s, inf)
        return self._check_robots(host, one, copy, site, worker, now_s)

    def _check_robots(
        self, host: HostState, one: _Candidate, copy: _StoredPage, site: Site, worker: int, now_s: float
    ) -> FetchTask | float | None:
        """Judge a leased URL by its robots.txt: refuse it, let it wait, or go on."""
        id_, url, origin = one.leased.id, one.leased.url, origin_of(one.leased.url)
        host.origins[origin] = None
        state = self._hosts.robots.get(origin)
        verdict = robots_state.check_url(state, url, now_s)
        if isinstance(verdict, robots_state.UrlDisallowed):
            self._url_states.refuse(id_, Refusal.ROBOTS, f"{Refusal.ROBOTS}: {verdict.rule}", worker, now_s)
            return None
        if isinstance(verdict, robots_state.UrlAllowed):
            return self._admit_url(host, one, copy, site, worker, now_s, state.until_s)
        if isinstance(verdict, robots_state.RobotsNeeded):
            self._release_leases(host, [id_], worker)
            self.request_robots(host, [origin])
            return None
        self._set_aside(id_)
        return verdict.until_s

    def _admit_url(
        self, host: HostState, one: _Candidate, copy: _StoredPage, site: Site, worker: int, now_s: float, until_s: float
    ) -> FetchTask | float | None:
        """Build the task of a URL that may be fetched, unless it is a trap or below the price."""
        id_, url = one.leased.id, one.leased.url
        unseen = copy.row is None and id_ not in host.requested
        if unseen:
            judged = self._trap_filter.judge(url, site, is_trial=id_ in host.trials)
            if isinstance(judged, Hold):
                self._held.append((id_, judged))
                host.trials.pop(id_, None)
                return None
            if isinstance(judged, Spared):
                self._url_states.refuse(id_, judged.refusal, judged.why, worker, now_s)
                if judged.substitute is not None:
                    self.substitutes.append(FoundUrl(judged.substitute, one.leased.depth, source=url))
                return None
            if self._url_twins.must_wait(url, now_s):
                self._release_leases(host, [id_], worker)
                return now_s + TWIN_WAIT_S
            if one.leased.depth and self._first_fetches.price is not None:
                (named,) = self._urls.count_inlinks(np.array([id_], np.uint32)).tolist()
                later_s = self._first_fetches.check_price(url, named, now_s, self._impact.get_gain(one.leased))
                if later_s is not None:
                    self._release_leases(host, [id_], worker)
                    return later_s
        if not self._charge_budget(host, id_, site, now_s):
            self._release_leases(host, [id_], worker)
            return None
        if unseen:
            host.trials.pop(id_, None)
            self._trap_filter.on_request(id_, url)
            self._url_twins.on_request(url)
        task = _build_task(host, one, copy, self._url_states.hops.get(id_, 0), until_s)
        task = task._replace(cookies=self._url_states.cookies.get(id_, ""))
        return self._add_render_mode(task, one, copy, site) if self._hosts.rules.render else task

    def _add_render_mode(self, task: FetchTask, one: _Candidate, copy: _StoredPage, site: Site) -> FetchTask:
        """Add to a task whether its page may be rendered.

        The worth of a known page was judged when it became due. The stored text of a page that needs a script may
        differ from what the script would produce now, so the page is fetched unconditionally.
        """
        priced = copy.row is None and one.leased.depth > 0 and self._first_fetches.price is not None
        worth, price = self.estimate_first_worth(task.id, task.url) if priced else (None, None)
        mode, why = self.rendering.select_mode(task.url, site, worth, price)
        in_full = mode == "always" or (mode == "auto" and copy.content is not None and copy.content.needs_script)
        validators = ("", "") if in_full else task.validators
        return task._replace(render=mode, render_why=why, validators=validators)

    def _release_leases(self, host: HostState, ids: Sequence[int], worker: int) -> None:
        """Requeue leased URLs that were not selected; newly published ones go to the front again."""
        self._url_states.release(ids, worker)
        self._back.update(dict.fromkeys(ids))
        news = [id_ for id_ in ids if id_ in host.new_urls]
        if news:
            self._urls.move_to_front(news)

    def _set_aside(self, id_: int) -> None:
        """Keep the lease of a URL whose port is unreachable until the turn of its host ends.

        If they were requeued at once, a few of them at the front would be drawn again and again, and the other ports
        would starve.
        """
        self._aside.append(id_)
        self._back[id_] = None

    def _release_set_aside(self, host: HostState, worker: int) -> None:
        aside, self._aside = self._aside, []
        if aside:
            self._release_leases(host, aside, worker)
            self._back.clear()

    def estimate_first_worth(self, id_: int, url: str) -> tuple[float, float | None]:
        """Return the current worth of a URL's first fetch, and the price; None if there is none."""
        (named,) = self._urls.count_inlinks(np.array([id_], np.uint32)).tolist()
        gain = self._impact.get_gain(LeasedUrl(id_, 0, url, 0, 1.0))
        return self._first_fetches.estimate_worth(url, named, gain), self._first_fetches.price

    def _save_held(self, host: HostState, worker: int, now_s: float) -> None:
        """Save URLs that the trap filter holds back as refused for now, to be released later."""
        held, self._held = self._held, []
        if held:
            self._store.hold_urls([(id_, host.id, one.place) for id_, one in held])
        for id_, one in held:
            self._url_states.refuse(id_, Refusal.TRAP, one.why, worker, now_s)
            host.held_back[one.place] = host.held_back.get(one.place, 0) + 1

    def _reject_unsited(self, id_: int, url: str, worker: int, now_s: float) -> float | None:
        """Reject a URL without a running site: one of a paused site waits, one of no site is refused."""
        if self._hosts.paused.find_site(url) is not None:
            self._url_states.release([id_], worker)
            return inf
        self._url_states.refuse(id_, Refusal.OUT_OF_SCOPE, str(Refusal.OUT_OF_SCOPE), worker, now_s)
        return None


def _build_task(host: HostState, one: _Candidate, copy: _StoredPage, hops: int, valid_until_s: float) -> FetchTask:
    """Build the fetch task of a URL: conditional where an archived copy is stored, else a full fetch."""
    leased = one.leased
    at_hand = build_copy(copy.row, copy.content) if copy.row and copy.row.place else None
    return FetchTask(
        leased.id,
        host.name,
        leased.url,
        "page",
        one.worth,
        leased.depth,
        hops,
        validators=(at_hand.etag, at_hand.last_modified) if at_hand else ("", ""),
        copy=at_hand,
        valid_until_s=valid_until_s,
        value=one.value,
    )
