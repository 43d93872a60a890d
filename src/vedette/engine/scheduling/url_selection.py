"""What a host is asked for next: the front queues propose, sites and robots.txt dispose.

URLs are drawn from a host's front queues with a bias towards the better ones, and leased. Each is then judged: it may
be asked for, or it is refused for good, or it waits again because its robots.txt cannot be had or its site is paused.
What waits again does not keep the rest of its host waiting; only where nothing else is left does the host pause.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from math import inf
from typing import NamedTuple

import numpy as np

from vedette.engine.coordinator.hosts import Hosts
from vedette.engine.coordinator.robots_cache import errand_for
from vedette.engine.coordinator.state import KeptHost, Named
from vedette.engine.coordinator.trap_filter import Held, Spared, Thrift
from vedette.engine.coordinator.url_states import Fates
from vedette.engine.decision_record import Decision, Witness
from vedette.engine.messages import Copy, Errand
from vedette.engine.ports import Book, ContentRow, Leased, PageRow, Told, Urls
from vedette.engine.scheduling.first_fetch import FirstFetches
from vedette.engine.scheduling.impact_lookup import Foreseeing
from vedette.engine.scheduling.impact_ports import BLIND, Foresight
from vedette.engine.scheduling.worth_queue import SOON_S, ByWorth
from vedette.fetch.robots import state as robots_state
from vedette.frontier.queues import ORDERS, OrderName, front_of
from vedette.frontier.traps import authority_of
from vedette.frontier.unseen import Unseen
from vedette.model import Origin, Refusal, Site, origin_of
from vedette.policy import Floats, rng_for

__all__ = ["NOBODY", "Chooser", "copy_of"]

WISHED, NEW = 1e9, 1e8
NOBODY = -1
# How many batches in which nothing may be asked for are looked at in one turn, and when the next ones are.
LOOKS = 8
LOOK_AGAIN_S = 60.0


@dataclass(frozen=True, slots=True)
class _Drawn:
    """A URL that was leased, and what it is worth now."""

    leased: Leased
    worth: float


class _At(NamedTuple):
    """What is at hand of a URL."""

    row: PageRow | None
    content: ContentRow | None


def copy_of(row: PageRow, content: ContentRow | None) -> Copy | None:
    """What an answer is held against; None where there was no body."""
    if not row.digest:
        return None
    kept = content.kept if content else None
    return Copy(row.etag, row.last_modified, row.digest, row.payload_digest, row.fetched_s, kept)


class Chooser:
    """Leases URLs and judges them."""

    def __init__(
        self,
        hosts: Hosts,
        urls: Urls,
        book: Book,
        fates: Fates,
        thrift: Thrift,
        firsts: FirstFetches,
        witness: Witness | None = None,
        foresight: Foresight = BLIND,
    ) -> None:
        self._hosts = hosts
        self._urls = urls
        self._book = book
        self._fates = fates
        self._thrift = thrift
        self._firsts = firsts
        self._witness = witness
        self._foreseeing = Foreseeing(hosts, urls, foresight)
        self._by_worth = ByWorth(hosts, urls, book, firsts, self._foreseeing)
        self._held: list[tuple[int, Held]] = []
        self._back: dict[int, None] = {}
        self._unpaid_s = inf
        self.instead: list[Named] = []
        self._draws = 0
        self._fronts: dict[tuple[OrderName, int], int] = {}

    def told(self, named: Sequence[Named], hosts: Sequence[int]) -> Told:
        """Links with their front queues: what the order policy says, unless somebody says otherwise."""
        urls = [one.url for one in named]
        foreseen = self._foreseeing.fronts(urls) or self._by_worth.fronts(named)
        fronts = [
            (foreseen.get(place) or self._front(one.depth)) if one.front is None else one.front
            for place, one in enumerate(named)
        ]
        return Told(urls, hosts, [one.depth for one in named], fronts)

    def choose(self, host: KeptHost, worker: int, now_s: float, until_s: float, most: int | None) -> tuple[Errand, ...]:
        """Errands to a host that may be asked; its ``errands`` are what must be known before, ``paused_s`` says when.

        ``most`` is how many pages may be asked for beside what somebody waits for.
        """
        open_s = self._hosts.open_s(host, now_s)
        if open_s > now_s:
            self._pause(host, open_s)
            return ()
        files = self._hosts.files
        unknown, wait_s = files.unknown(host), files.wait_s(host, now_s)
        if unknown or wait_s is not None:
            self._ask_robots(host, unknown)
            self._pause(host, wait_s or 0.0)
            return ()
        most = self._affordable(host, now_s, most)
        if host.short_of and not self._hosts.to_grant(host):
            self._pause(host, 0.0)
            return ()
        self._unpaid_s, looked, below = inf, 0, self._firsts.below
        self._by_worth.step(host, now_s)
        for _ in range(LOOKS):
            wanted, leased = self._drawn(host, worker, until_s, most)
            given, later = self._judged(host, leased, worker, now_s)
            looked += len(leased)
            if given or host.robots_wait or len(leased) < max(wanted, 1):
                break
        if self._unpaid_s < inf:
            later.append(self._paid_s(host, looked, now_s))
        if self._by_worth.wants(host, looked, self._firsts.below - below, now_s):
            later.append(now_s + SOON_S)
        if given or not later:
            self._pause(host, 0.0)
        else:
            self._pause(host, min(later) if len(leased) < wanted else min(*later, now_s + LOOK_AGAIN_S))
        return given

    def holds(self, host: KeptHost, now_s: float) -> bool:
        """Whether a host is one too many of its domain: what waits for it is held back, before any request."""
        if host.busy or host.wishes or not self._thrift.is_closed(authority_of(f"{one}/") for one in host.origins):
            return False
        leased = self._urls.lease([host.id] * self._hosts.rules.lease_most, NOBODY, now_s)
        for one in leased:
            site = self._hosts.sites.site_of(one.url)
            judged = self._thrift.judged(one.url, site) if site is not None else None
            if isinstance(judged, Held):
                self._held.append((one.id, judged))
            else:
                self._fates.put_back([one.id], NOBODY)
        held = bool(self._held)
        self._hold(host, NOBODY, now_s)
        return held

    def _pause(self, host: KeptHost, until_s: float) -> None:
        host.paused_s = until_s
        host.robots_trouble = self._hosts.files.why(host) if until_s else ""

    def _affordable(self, host: KeptHost, now_s: float, most: int | None) -> int | None:
        """How many pages the fetch budget leaves to a host in this turn; where none are left, it stands in line."""
        budget = self._hosts.budget
        if budget is None:
            return most
        sites = [site.start for site in self._hosts.sites.of_host(host.name)]
        offer = budget.offer(sites, now_s)
        if not offer:
            budget.wait(host, sites, now_s)
        return offer if most is None else min(offer, most)

    def _pays(self, host: KeptHost, id_: int, site: Site, now_s: float) -> bool:
        """Whether the fetch budget has a page left for the URL's site, which is taken then."""
        budget = self._hosts.budget
        if budget is None or budget.take(site.start, now_s, at_once=id_ in host.wishes):
            return True
        self._unpaid_s = min(self._unpaid_s, budget.ready_s(site.start))
        return False

    def _paid_s(self, host: KeptHost, looked: int, now_s: float) -> float:
        """When to look again at a host where one site of several has nothing left; others may, further back."""
        seen_all = self._urls.waiting(host.id) <= looked
        return self._unpaid_s if seen_all else now_s + self._hosts.rules.ahead_s

    def _ask_robots(self, host: KeptHost, origins: Iterable[Origin]) -> None:
        for origin in origins:
            if origin not in host.robots_wait:
                host.robots_wait[origin] = None
                host.errands.append(errand_for(origin, self._hosts.files.of(origin)))

    # propose

    def _front(self, depth: int) -> int:
        """The front queue of a URL that was named once, just now: no more is known of it than its depth."""
        name = self._hosts.rules.order
        if (name, depth) not in self._fronts:
            worth = self._worth(Unseen(np.array([depth]), np.zeros(1, np.int64), np.ones(1, np.int64)))
            self._fronts[name, depth] = int(front_of(worth, ORDERS[name].best, ORDERS[name].worst)[0])
        return self._fronts[name, depth]

    def _worth(self, batch: Unseen) -> Floats:
        policy, seed = ORDERS[self._hosts.rules.order].policy, self._hosts.rules.seed
        stream = f"order/{policy.name}/{self._draws}"
        worth = policy.worth(policy.start(None), batch, 0.0, rng_for(seed, stream))
        if self._witness is not None:
            facts = {each.name: getattr(batch, each.name).tolist() for each in fields(batch)}
            self._witness(Decision("order", 0.0, seed, stream, {policy.name: {}}, facts, {"worth": worth.tolist()}))
        return worth

    def _drawn(self, host: KeptHost, worker: int, until_s: float, most: int | None) -> tuple[int, list[_Drawn]]:
        """How many were wanted, and those that there were: what somebody waits for comes first."""
        wished = self._hosts.to_grant(host)
        room = self._room(host, wished, most)
        self._foreseeing.line_up(host)
        self._draws += 1
        rng = rng_for(self._hosts.rules.seed, f"lease/{self._draws}")
        leased = self._urls.lease([host.id] * wished, worker, until_s) if wished else []
        leased += self._urls.lease([host.id] * (room * self._sample(room)), worker, until_s, rng)
        drawn = self._ranked(host, leased)
        best, rest = drawn[: wished + room], drawn[wished + room :]
        if rest:
            self._put_back(host, [one.leased.id for one in rest], worker)
        return wished + room, best

    def _room(self, host: KeptHost, wished: int, most: int | None) -> int:
        if self._hosts.rules.only_wished:
            return 0
        room = self._hosts.batch(host) - len(host.out) - wished
        return max(room if most is None else min(room, most), 0)

    def _sample(self, room: int) -> int:
        """One is chosen of so many: where worth grows while a URL waits, its place in a queue does not say it all."""
        rules = self._hosts.rules
        return max(1, min(ORDERS[rules.order].sample, rules.lease_most // max(room, 1)))

    def _ranked(self, host: KeptHost, leased: list[Leased]) -> list[_Drawn]:
        """By what they are worth now, the best first."""
        ids = np.array([one.id for one in leased], np.uint32)
        depths = np.array([one.depth for one in leased], np.int64)
        named = self._urls.times_named(ids).astype(np.int64)
        worths = self._worth(self._foreseeing.weighed(leased, Unseen(depths, ids.astype(np.int64), named))).tolist()
        drawn = [
            _Drawn(one, WISHED if one.id in host.wishes else NEW if one.id in host.news else worth)
            for one, worth in zip(leased, worths, strict=True)
        ]
        return sorted(drawn, key=lambda one: -one.worth)

    # dispose

    def _judged(
        self, host: KeptHost, drawn: list[_Drawn], worker: int, now_s: float
    ) -> tuple[tuple[Errand, ...], list[float]]:
        """The errands among them, and until when those wait that may not be asked for now."""
        copies = self._book.copies([one.leased.id for one in drawn])
        contents = self._book.contents(copies) if copies else {}
        verdicts = [
            self._verdict(host, one, _At(copies.get(one.leased.id), contents.get(one.leased.id)), worker, now_s)
            for one in drawn
        ]
        self._hold(host, worker, now_s)
        for id_ in [one.leased.id for one in drawn if one.leased.id not in self._back]:
            host.news.pop(id_, None)
        self._back.clear()
        given = tuple(verdict for verdict in verdicts if isinstance(verdict, Errand))
        return given, [verdict for verdict in verdicts if isinstance(verdict, float)]

    def _verdict(self, host: KeptHost, one: _Drawn, copy: _At, worker: int, now_s: float) -> Errand | float | None:
        """The errand for a leased URL; or when it may be looked at again; or None: refused, or it waits for a file."""
        id_, url = one.leased.id, one.leased.url
        site = self._hosts.sites.site_of(url)
        if site is None:
            return self._unsited(id_, url, worker, now_s)
        if site.ignore_robots and not self._hosts.is_astray(host):
            return self._errand(host, one, copy, site, worker, now_s, inf)
        origin = origin_of(url)
        host.origins[origin] = None
        state = self._hosts.files.of(origin)
        verdict = robots_state.verdict(state, url, now_s)
        if isinstance(verdict, robots_state.Disallowed):
            self._fates.refuse(id_, Refusal.ROBOTS, f"{Refusal.ROBOTS}: {verdict.rule}", worker, now_s)
            return None
        if isinstance(verdict, robots_state.Allowed) and not self._hosts.is_astray(host):
            return self._errand(host, one, copy, site, worker, now_s, state.until_s)
        self._put_back(host, [id_], worker)
        if isinstance(verdict, robots_state.Ask):
            self._ask_robots(host, [origin])
            return None
        return verdict.until_s if isinstance(verdict, robots_state.Wait) else now_s

    def _errand(
        self, host: KeptHost, one: _Drawn, copy: _At, site: Site, worker: int, now_s: float, until_s: float
    ) -> Errand | float | None:
        """The errand for a URL that may be asked for, unless it is not worth a first fetch, ever or at this price."""
        id_, url = one.leased.id, one.leased.url
        unseen = copy.row is None and id_ not in host.wishes
        if unseen:
            judged = self._thrift.judged(url, site)
            if isinstance(judged, Held):
                self._held.append((id_, judged))
                return None
            if isinstance(judged, Spared):
                self._fates.refuse(id_, judged.refusal, judged.why, worker, now_s)
                if judged.instead is not None:
                    self.instead.append(Named(judged.instead, one.leased.depth, source=url))
                return None
            if one.leased.depth and (later_s := self._later_s(one.leased, now_s)) is not None:
                self._put_back(host, [id_], worker)
                return later_s
        if not self._pays(host, id_, site, now_s):
            self._put_back(host, [id_], worker)
            return None
        if unseen:
            self._thrift.went(id_, url)
        return _errand(host, one, copy, self._fates.hops.get(id_, 0), until_s)

    def _put_back(self, host: KeptHost, ids: Sequence[int], worker: int) -> None:
        """They wait again; news goes to the front once more."""
        self._fates.put_back(ids, worker)
        self._back.update(dict.fromkeys(ids))
        news = [id_ for id_ in ids if id_ in host.news]
        if news:
            self._urls.first(news)

    def _later_s(self, leased: Leased, now_s: float) -> float | None:
        """When to look again at an unseen URL that is not worth the price; None where it is."""
        (named,) = self._urls.times_named(np.array([leased.id], np.uint32)).tolist()
        return self._firsts.later_s(leased.url, named, now_s, self._foreseeing.gain(leased))

    def first_worth(self, id_: int, url: str) -> tuple[float, float | None]:
        """What a first fetch of a URL is worth now, and the price of the moment; None where there is none."""
        (named,) = self._urls.times_named(np.array([id_], np.uint32)).tolist()
        gain = self._foreseeing.gain(Leased(id_, 0, url, 0, 1.0))
        return self._firsts.worth(url, named, gain), self._firsts.price

    def _hold(self, host: KeptHost, worker: int, now_s: float) -> None:
        """What is not worth a fetch yet is refused for now, and found again when it is."""
        held, self._held = self._held, []
        if held:
            self._book.hold([(id_, host.id, one.place) for id_, one in held])
        for id_, one in held:
            self._fates.refuse(id_, Refusal.TRAP, one.why, worker, now_s)
            host.held[one.place] = host.held.get(one.place, 0) + 1

    def _unsited(self, id_: int, url: str, worker: int, now_s: float) -> float | None:
        """A URL of a paused site waits until sites change; one that no site takes any more is refused."""
        if self._hosts.paused.site_of(url) is not None:
            self._fates.put_back([id_], worker)
            return inf
        self._fates.refuse(id_, Refusal.OUT_OF_SCOPE, str(Refusal.OUT_OF_SCOPE), worker, now_s)
        return None


def _errand(host: KeptHost, one: _Drawn, copy: _At, hops: int, valid_until_s: float) -> Errand:
    """Conditional where a copy is at hand; one that is no longer archived is asked for whole."""
    leased = one.leased
    at_hand = copy_of(copy.row, copy.content) if copy.row and copy.row.place else None
    pairs = (("if-none-match", at_hand.etag), ("if-modified-since", at_hand.last_modified)) if at_hand else ()
    return Errand(
        leased.id,
        host.name,
        leased.url,
        "page",
        one.worth,
        leased.depth,
        hops,
        headers=tuple((name, value) for name, value in pairs if value),
        copy=at_hand,
        valid_until_s=valid_until_s,
    )
