"""The keeper's half of the ring: what is known, what may be asked for, and by which worker.

It alone decides and it alone writes. Politeness towards a host lives here while nobody asks it, so that it survives
the death of any worker; robots.txt is judged here, before an errand is given out.

    found      1  links become known URLs, if a site takes them          (discover)
    hand_out   2  the best waiting URLs of hosts that may be asked       (order)
    taken_in   3  results: robots.txt, redirects, pages, failures        (fetch, parse)
    renewed    6  known pages whose time has come wait again             (refresh)
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from heapq import heappop, heappush
from math import inf

import xxhash

from vedette.decide import rng_for
from vedette.discover.normalize import normalize
from vedette.discover.scope import site_of
from vedette.facts import Failure, Origin, Refusal, origin_of
from vedette.fetch import robots_state
from vedette.fetch.connect import detour_for
from vedette.fetch.request import PRODUCT
from vedette.fetch.robots_state import UNKNOWN, RobotsState
from vedette.ring.kept import KeptHost, Order, Rules, Tally
from vedette.ring.orders import Copy, Errand, Fetched, HostNews, HostOrders, Orders, Report, Result, Silent
from vedette.ring.ports import Book, Fate, Leased, PageRow, Told, Urls
from vedette.ring.schedule import Schedule

__all__ = ["Keeper"]

FIRST = inf
FRONTS = 8
LOOKUP_LIFE_S = 1800.0
FIRST_LOOKUP_PAUSE_S = 5.0
LONGEST_LOOKUP_PAUSE_S = 300.0
# After a crash nobody knows what a host's robots.txt had asked for a moment ago.
CAUTIOUS_REST_S = 60.0
PAUSED_LOOK_S = 600.0
HOPELESS = frozenset({Failure.TLS, Failure.TOO_LARGE, Failure.PROTOCOL, Failure.ADDRESS, Failure.NAME})


class Keeper:
    """All that is decided. Ports are handed in; what they are told is durable once the driver commits."""

    def __init__(self, rules: Rules, urls: Urls, book: Book, schedule: Schedule, workers: int) -> None:
        self.rules = rules
        self.schedule = schedule
        self.urls = urls
        self.book = book
        self.workers = workers
        self.hosts: dict[str, KeptHost] = {}
        self.robots: dict[Origin, RobotsState] = {}
        self.tally = Tally()
        self.pages_out = 0
        self._ready: list[tuple[float, int, str]] = []
        self._lookups: list[tuple[float, str]] = []
        self._robots_out: dict[Origin, KeptHost] = {}
        self._attempts: Counter[int] = Counter()
        self._hops: dict[int, int] = {}
        self._answers: list[tuple[int, Fetched]] = []
        self._numbers = 0

    # 1 discover

    def found(self, urls: Sequence[str], depth: int, now_s: float, *, hops: int = 0, front: int | None = None) -> int:
        """URLs that belong to a site, in its spelling: the unseen ones wait from now on. How many those were."""
        if not urls:
            return 0
        names = [origin_of(url).host for url in urls]
        priority = min(1 + depth, FRONTS - 1) if front is None else front
        ids = self.urls.host_ids(names)
        told = Told(urls, ids, [depth] * len(urls), [priority] * len(urls))
        new: list[int] = self.urls.add(told, now_s).tolist()
        if hops:
            self._hops.update(dict.fromkeys(new, hops))
        for name, id_ in dict(zip(names, ids, strict=True)).items():
            self._enqueue(self._host(name, id_))
        return len(new)

    def sited(self, url: str) -> str | None:
        """The URL in the spelling of the site that takes it; None where none does."""
        site = site_of(url, self.rules.sites)
        return normalize(url, site) if site else None

    def _host(self, name: str, id_: int) -> KeptHost:
        host = self.hosts.get(name)
        if host is None:
            host = self.hosts[name] = KeptHost(name, id_)
        return host

    # 2 order

    def hand_out(self, now_s: float, until_s: float, room: dict[int, int]) -> tuple[list[Order], list[str]]:
        """Orders for workers with room, and hosts to be looked up; leases end at the wall time ``until_s``."""
        orders: list[Order] = []
        lookups = self._due_lookups(now_s)
        full: list[KeptHost] = []
        while self._ready and self._ready[0][0] <= now_s + self.rules.ahead_s:
            ready_s, _, name = heappop(self._ready)
            host = self.hosts[name]
            if host.queued_s != ready_s:
                continue
            host.queued_s = None
            if not self._located(host, now_s, lookups):
                continue
            worker = self._worker_of(host)
            if room.get(worker, 0) <= 0 or self._is_full():
                full.append(host)
                continue
            order = self._order(host, worker, now_s, until_s)
            if order is not None:
                orders.append(order)
                room[worker] -= len(order.orders.errands)
        for host in full:
            self._enqueue(host)
        return orders, lookups

    def _enqueue(self, host: KeptHost) -> None:
        """Into the heap of hosts by the time at which they may be asked, if there is anything to ask."""
        if host.queued_s is None and not host.resolving and self._has_work(host):
            host.queued_s = host.ready_s
            self._numbers += 1
            heappush(self._ready, (host.ready_s, self._numbers, host.name))

    def _has_work(self, host: KeptHost) -> bool:
        if host.errands or host.closed:
            return bool(host.errands) or self.urls.waiting(host.id) > 0
        few = len(host.out) <= self._batch(host) // 2
        return few and not host.robots_wait and self.urls.waiting(host.id) > 0

    def _batch(self, host: KeptHost) -> int:
        gap_s = max(self._delay_s(host), self._crawl_delay_s(host) or 0.0, 1e-3)
        return max(2, min(int(self.rules.lease_span_s / gap_s), self.rules.lease_most))

    def _worker_of(self, host: KeptHost) -> int:
        """All hosts of an address go to one worker, so that its pauses can be kept there."""
        if host.worker is None or not host.out:
            assert host.address is not None
            host.worker = _worker_for(host.address, self.workers)
        return host.worker

    def _order(self, host: KeptHost, worker: int, now_s: float, until_s: float) -> Order | None:
        if not host.errands and not host.robots_wait:
            errands = self._lease(host, worker, now_s, until_s)
        else:
            errands = tuple(host.errands)
            host.errands.clear()
            self._robots_out.update({errand.robots_of: host for errand in errands if errand.robots_of})
        self._enqueue(host)
        if not errands:
            return None
        orders = HostOrders(
            host.name,
            host.address or "",
            self._delay_s(host),
            self._crawl_delay_s(host),
            max(host.ready_s, now_s),
            host.strain,
        )
        return Order(worker, Orders((orders,), errands))

    def _lease(self, host: KeptHost, worker: int, now_s: float, until_s: float) -> tuple[Errand, ...]:
        room = self._batch(host) - len(host.out)
        if self.rules.most_pages is not None:
            room = min(room, self.rules.most_pages - self.tally.pages - self.pages_out)
        self._numbers += 1
        rng = rng_for(self.rules.seed, f"lease/{self._numbers}")
        leased = self.urls.lease([host.id] * max(room, 0), worker, until_s, rng)
        copies = self.book.copies([one.id for one in leased])
        errands = (self._judged(host, one, copies.get(one.id), worker, now_s) for one in leased)
        given = tuple(errand for errand in errands if errand is not None)
        host.out.update((errand.id, errand) for errand in given)
        self.pages_out += len(given)
        return given

    def _judged(self, host: KeptHost, one: Leased, copy: PageRow | None, worker: int, now_s: float) -> Errand | None:
        """The errand for a leased URL, if site and robots.txt let it be asked for now."""
        if site_of(one.url, self.rules.sites) is None:
            self._unsited(host, one, worker, now_s)
            return None
        origin = origin_of(one.url)
        host.origins[origin] = None
        state = self.robots.get(origin, UNKNOWN)
        verdict = robots_state.verdict(state, one.url, now_s)
        if isinstance(verdict, robots_state.Allowed):
            return self._errand(host, one, copy, state)
        if isinstance(verdict, robots_state.Disallowed):
            self._refuse(one.id, Refusal.ROBOTS, f"{Refusal.ROBOTS}: {verdict.rule}", worker, now_s)
            return None
        self.urls.put_back([one.id], worker)
        if isinstance(verdict, robots_state.Wait):
            host.trouble = f"robots.txt: {verdict.why}"
            host.ready_s = max(host.ready_s, verdict.until_s)
        elif origin not in host.robots_wait:
            host.robots_wait[origin] = None
            headers = robots_state.conditional_headers(state)
            host.errands.append(
                Errand(0, host.name, origin.robots_url, "robots", FIRST, headers=headers, robots_of=origin)
            )
        return None

    def _unsited(self, host: KeptHost, one: Leased, worker: int, now_s: float) -> None:
        """A URL of a paused site waits; one that no site takes any more is refused."""
        if site_of(one.url, self.rules.paused) is not None:
            self.urls.put_back([one.id], worker)
            host.ready_s = max(host.ready_s, now_s + PAUSED_LOOK_S)
        else:
            self._refuse(one.id, Refusal.OUT_OF_SCOPE, str(Refusal.OUT_OF_SCOPE), worker, now_s)

    def _errand(self, host: KeptHost, one: Leased, copy: PageRow | None, state: RobotsState) -> Errand:
        at_hand = (
            Copy(copy.etag, copy.last_modified, copy.digest, copy.payload_digest, copy.fetched_s)
            if copy and copy.digest
            else None
        )
        pairs = (("if-none-match", copy.etag), ("if-modified-since", copy.last_modified)) if copy and at_hand else ()
        return Errand(
            one.id,
            host.name,
            one.url,
            "page",
            worth=-float(one.depth),
            depth=one.depth,
            hops=self._hops.get(one.id, 0),
            headers=tuple((name, value) for name, value in pairs if value),
            copy=at_hand,
            valid_until_s=state.until_s,
        )

    def _refuse(self, id_: int, refusal: Refusal, why: str, worker: int, now_s: float) -> None:
        self.urls.acknowledge([id_], Fate.REFUSED, worker)
        self.book.note(id_, why, now_s)
        self.tally.refusals[refusal] += 1

    def _is_full(self) -> bool:
        most = self.rules.most_pages
        return most is not None and self.tally.pages + self.pages_out >= most

    # names

    def _located(self, host: KeptHost, now_s: float, lookups: list[str]) -> bool:
        """Whether the host's address is known and may be asked; otherwise it is looked up, or its URLs have ended."""
        if host.closed is not None:
            self._end_closed(host, now_s)
            return False
        fresh = host.address is not None and (now_s < host.address_until_s or bool(host.out))
        if fresh:
            return True
        detour = self._detour(host)
        if detour is not None:
            self.named(host.name, (detour,), None, now_s)
            return host.address is not None
        host.resolving = True
        lookups.append(host.name)
        return False

    def _detour(self, host: KeptHost) -> str | None:
        ports = (Origin("https", host.name, 443), Origin("http", host.name, 80))
        return next((to.address for port in ports if (to := detour_for(port, self.rules.detours))), None)

    def named(self, name: str, addresses: Sequence[str], failure: Failure | None, now_s: float) -> None:
        """A resolver spoke."""
        host = self.hosts[name]
        host.resolving = False
        if failure is Failure.RESOLVER:
            pause_s = min(FIRST_LOOKUP_PAUSE_S * 2.0**host.lookups, LONGEST_LOOKUP_PAUSE_S)
            host.lookups = min(host.lookups + 1, 16)
            host.trouble = str(failure)
            host.resolving = True
            heappush(self._lookups, (now_s + pause_s, name))
            return
        allowed = [address for address in addresses if self.rules.may_ask(address)]
        host.lookups = 0
        host.closed = None if allowed else failure or Failure.ADDRESS
        host.address = allowed[0] if allowed else None
        host.address_until_s = now_s + LOOKUP_LIFE_S
        host.trouble = str(host.closed or "")
        self._enqueue(host)

    def _due_lookups(self, now_s: float) -> list[str]:
        due = []
        while self._lookups and self._lookups[0][0] <= now_s:
            due.append(heappop(self._lookups)[1])
        return due

    def _end_closed(self, host: KeptHost, now_s: float) -> None:
        """No address may be asked: what waits has failed. Whoever names the host again has it looked up again."""
        failure = host.closed or Failure.NAME
        for errand in (*host.errands,):
            self._robots_known(errand, robots_state.RobotsSilent(now_s, str(failure)))
        host.errands.clear()
        leased = self.urls.lease([host.id] * self.rules.lease_most, 0, now_s)
        for one in leased:
            self._fail(one.id, str(failure), 0, now_s)
        if leased:
            self._enqueue(host)
        else:
            host.closed = None
            host.address_until_s = 0.0

    # 3 fetch and 4 parse: what came back

    def taken_in(self, worker: int, report: Report) -> None:
        """A worker's report."""
        for news in report.hosts:
            self._heard(news)
        for errand in report.returned:
            self._returned(errand, worker)
        for result in report.results:
            self._result(result, worker)
        self._keep_answers()

    def _heard(self, news: HostNews) -> None:
        host = self.hosts[news.name]
        host.ready_s, host.strain, host.trouble = max(host.ready_s, news.ready_s), news.strain, news.trouble
        self.book.keep_host(host.name, host.ready_s, host.strain, host.trouble)

    def _returned(self, errand: Errand, worker: int) -> None:
        host = self.hosts[errand.host]
        if errand.robots_of is not None:
            host.errands.append(errand)
        elif host.out.pop(errand.id, None) is not None:
            self.pages_out -= 1
            self.urls.put_back([errand.id], worker)
        self._enqueue(host)

    def _result(self, result: Result, worker: int) -> None:
        errand = result.errand
        host = self.hosts[errand.host]
        self.tally.requests += 1
        if errand.robots_of is not None:
            self._robots_came(errand, result)
        elif host.out.pop(errand.id, None) is not None:
            self.pages_out -= 1
            self._page_came(host, result, worker)
        self._enqueue(host)

    def _robots_came(self, errand: Errand, result: Result) -> None:
        self.tally.robots += 1
        if isinstance(result, Silent):
            self._robots_known(errand, robots_state.RobotsSilent(result.ended_s, str(result.failure)))
        elif result.location and errand.hops < robots_state.REDIRECTS_MAX:
            self._robots_hop(errand, result.location)
        else:
            hops = errand.hops + (result.location is not None)
            answered = robots_state.RobotsAnswered(result.ended_s, result.status, result.robots, hops, result.headers)
            self._robots_known(errand, answered)

    def _robots_hop(self, errand: Errand, target: str) -> None:
        """One redirect further, in the line of whichever host it leads to."""
        name = origin_of(target).host
        there = self._host(name, self.urls.host_ids([name])[0])
        there.errands.append(replace(errand, host=name, url=target, hops=errand.hops + 1, headers=()))
        self._enqueue(there)

    def _robots_known(self, errand: Errand, event: robots_state.RobotsAnswered | robots_state.RobotsSilent) -> None:
        origin = errand.robots_of
        assert origin is not None
        self._robots_out.pop(origin, None)
        state = robots_state.observe(self.robots.get(origin, UNKNOWN), event, PRODUCT, self.rules.robots_most_s)
        self.robots[origin] = state
        self.book.keep_robots(origin, state)
        owner = self.hosts[origin.host]
        owner.robots_wait.pop(origin, None)
        owner.trouble = ""
        # A crawl-delay counts from the answer that told it.
        owner.ready_s = max(owner.ready_s, event.now_s + (state.crawl_delay_s or 0.0))
        for sitemap in state.sitemaps:
            if (url := self.sited(sitemap)) is not None:
                self.found([url], 0, event.now_s, front=0)
        self._enqueue(owner)

    def _page_came(self, host: KeptHost, result: Result, worker: int) -> None:
        errand = result.errand
        if isinstance(result, Silent):
            self._again_or_fail(
                errand, str(result.failure), worker, result.ended_s, hopeless=result.failure in HOPELESS
            )
        elif result.status == 429 or result.status >= 500:
            self._again_or_fail(errand, f"status {result.status}", worker, result.ended_s, hopeless=False)
        else:
            self._answered(host, result, worker)

    def _again_or_fail(self, errand: Errand, why: str, worker: int, now_s: float, *, hopeless: bool) -> None:
        self._attempts[errand.id] += 1
        if self._attempts[errand.id] < self.rules.most_attempts and not hopeless:
            self.urls.put_back([errand.id], worker)
            return
        del self._attempts[errand.id]
        self._fail(errand.id, why, worker, now_s)

    def _fail(self, id_: int, why: str, worker: int, now_s: float) -> None:
        self.urls.acknowledge([id_], Fate.FAILED, worker)
        self.book.note(id_, why, now_s)
        self.tally.failures[why] += 1

    def _answered(self, host: KeptHost, result: Fetched, worker: int) -> None:
        errand = result.errand
        self._attempts.pop(errand.id, None)
        self.tally.statuses[result.status] += 1
        self.tally.bytes += result.body_bytes
        if result.location is not None and errand.hops >= self.rules.most_redirects:
            self._fail(errand.id, f"more than {self.rules.most_redirects} redirects", worker, result.ended_s)
            return
        self.urls.acknowledge([errand.id], Fate.FETCHED, worker)
        self._answers.append((host.id, result))
        good = result.status < 300 or result.status == 304
        self.tally.pages += good
        self.tally.new_pages += good and errand.copy is None
        self.tally.unchanged += good and not result.changed
        self._follow(result)

    def _follow(self, result: Fetched) -> None:
        """Links lead one deeper; a redirect is where the page itself went."""
        errand = result.errand
        if result.location is not None:
            self.tally.redirects += 1
            target = self.sited(result.location)
            if target is not None:
                self.found([target], errand.depth, result.ended_s, hops=errand.hops + 1)
        self.found(result.sources, 0, result.ended_s, front=0)
        self.found(result.links, errand.depth + 1, result.ended_s)

    # 6 refresh

    def _keep_answers(self) -> None:
        """The answers of a report become rows, each with the time at which it is due again."""
        answers, self._answers = self._answers, []
        earlier = self.book.copies([result.errand.id for _, result in answers])
        for row, links in self.schedule.rows(answers, earlier):
            self.book.keep_page(row, links)

    def renewed(self, now_s: float, most: int = 1000) -> int:
        """Known pages whose time has come wait again; how many."""
        due = self.book.due(now_s, most) if self.rules.recrawl else ()
        woken = self.urls.again([one.id for one in due], priority=1)
        for name in dict.fromkeys(one.host for one in due):
            self._enqueue(self._host(name, self.urls.host_ids([name])[0]))
        return len(woken)

    # how it stands

    def ending(self, now_s: float, patience_s: float) -> str | None:
        """``done`` when nothing is left, ``stuck`` when only hosts in trouble are, for longer than that; else None."""
        if self.pages_out or self._robots_out or any(host.errands for host in self.hosts.values()):
            return None
        counts = self.urls.counts()
        if self._is_full() or not counts.waiting + counts.leased:
            return "done"
        left = [host for host in self.hosts.values() if self.urls.waiting(host.id)]
        waits = all(host.trouble and self._soonest_s(host) > now_s + patience_s for host in left)
        return "stuck" if waits else None

    def _soonest_s(self, host: KeptHost) -> float:
        lookup_s = min((due_s for due_s, name in self._lookups if name == host.name), default=0.0)
        return max(host.ready_s, lookup_s)

    def waits(self, now_s: float) -> dict[str, int]:
        """Why hosts are not being asked, and how many for each reason."""
        counts: Counter[str] = Counter()
        for host in self.hosts.values():
            if host.out or host.errands or self.urls.waiting(host.id):
                counts[self._wait_of(host, now_s)] += 1
        return dict(sorted(counts.items()))

    def _wait_of(self, host: KeptHost, now_s: float) -> str:
        if host.trouble:
            return host.trouble
        if host.robots_wait:
            return "waiting for its robots.txt"
        if host.resolving:
            return "being looked up"
        return "being asked" if host.out else "resting" if host.ready_s > now_s else "waiting for a worker"

    # when things break

    def recall_host(self, name: str, ready_s: float, strain: int, trouble: str) -> None:
        """What an earlier run knew of a host's pauses."""
        host = self._host(name, self.urls.host_ids([name])[0])
        host.ready_s, host.strain, host.trouble = ready_s, strain, trouble

    def begin(self, names: Sequence[str], robots: dict[Origin, RobotsState], now_s: float, *, clean: bool) -> None:
        """Hosts with work and what is known of robots.txt, after a start; after a crash every host rests first."""
        self.robots.update(robots)
        for name, id_ in zip(names, self.urls.host_ids(list(names)), strict=True):
            host = self._host(name, id_)
            if not clean:
                host.ready_s = max(host.ready_s, now_s + self._full_rest_s(host))
            self._enqueue(host)

    def lost(self, worker: int, now_s: float) -> None:
        """A worker died: what it held waits again, and its hosts, which it may just have asked, rest first."""
        for host in self.hosts.values():
            if host.worker != worker:
                continue
            host.ready_s = max(host.ready_s, now_s + self._full_rest_s(host))
            held, host.out, host.worker = host.out, {}, None
            self.pages_out -= len(held)
            self.urls.put_back(held, worker)
            for origin in [origin for origin, there in self._robots_out.items() if there is host]:
                del self._robots_out[origin]
                self.hosts[origin.host].robots_wait.pop(origin, None)
                self._enqueue(self.hosts[origin.host])
            self._requeue(host)

    def _full_rest_s(self, host: KeptHost) -> float:
        known = [state for origin, state in self.robots.items() if origin.host == host.name]
        told_s = max((state.crawl_delay_s or 0.0 for state in known), default=CAUTIOUS_REST_S)
        return max(self._delay_s(host), self.rules.address_delay_s, told_s)

    def _requeue(self, host: KeptHost) -> None:
        """Into the heap by its present time, wherever it stood."""
        host.queued_s = None
        self._enqueue(host)

    def _delay_s(self, host: KeptHost) -> float:
        """The longest delay that a site on this host asks for; else the operator's."""
        own = [
            site.delay_s
            for site in self.rules.sites
            if site.delay_s is not None and origin_of(site.start).host == host.name
        ]
        return max(own, default=self.rules.delay_s)

    def _crawl_delay_s(self, host: KeptHost) -> float | None:
        origins = (Origin("https", host.name, 443), Origin("http", host.name, 80), *host.origins)
        told = [state.crawl_delay_s for origin in origins if (state := self.robots.get(origin)) is not None]
        return max((delay_s for delay_s in told if delay_s is not None), default=None)


def _worker_for(address: str, workers: int) -> int:
    return xxhash.xxh64_intdigest(address.encode()) % workers
