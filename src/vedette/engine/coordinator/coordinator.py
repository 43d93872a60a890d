"""The keeper's half of the ring: what is known, what may be asked for, and by which worker.

It alone decides and it alone writes. robots.txt is judged here, before an errand is given out.

    found      1  links become known URLs, if a site takes them          (discover)
    hand_out   2  the best waiting URLs of hosts that may be asked       (order)
    taken_in   3  results: robots.txt, redirects, pages, failures        (fetch, parse)
    renewed    6  known pages whose time has come wait again             (refresh)
"""

from collections.abc import Sequence

from vedette.discover.urls.normalize import normalize
from vedette.engine.coordinator import status as standing
from vedette.engine.coordinator.admission import Finds
from vedette.engine.coordinator.answers import Answers
from vedette.engine.coordinator.duplicates import Copies
from vedette.engine.coordinator.hosts import Hosts
from vedette.engine.coordinator.newness import Newness
from vedette.engine.coordinator.robots_fetch import RobotsErrands
from vedette.engine.coordinator.state import KeptHost, Named, Order, Rules, Tally
from vedette.engine.coordinator.trap_filter import HeldBack, Thrift
from vedette.engine.coordinator.url_states import Fates, Results
from vedette.engine.links import spelt
from vedette.engine.messages import Errand, HostNews, Orders, Report, Result
from vedette.engine.ports import Book, Gained, HostRow, Urls
from vedette.engine.scheduling.first_fetch import FirstFetches
from vedette.engine.scheduling.impact_ports import BLIND, Foresight
from vedette.engine.scheduling.poll_results import Looks
from vedette.engine.scheduling.refresh import Refreshing
from vedette.engine.scheduling.schedule import Schedule
from vedette.engine.scheduling.spending import Spending
from vedette.engine.scheduling.url_selection import NOBODY, Chooser
from vedette.engine.search.hidden import lies_in
from vedette.fetch.robots.state import RobotsSilent, RobotsState
from vedette.model import Failure, Origin, Refusal

__all__ = ["Keeper"]


class Keeper:
    """All that is decided. Ports are handed in; what they are told is durable once the driver commits."""

    def __init__(
        self,
        rules: Rules,
        urls: Urls,
        book: Book,
        schedule: Schedule,
        copies: Copies,
        workers: int,
        foresight: Foresight = BLIND,
    ) -> None:
        self.schedule = schedule
        self.urls = urls
        self.book = book
        self.tally = Tally()
        self.pages_out = 0
        self.copies = copies
        self.thrift = Thrift(lambda: copies.learned)
        self._hosts = Hosts(rules, urls, workers)
        self._newness = Newness(self._hosts, urls, book)
        self._held_back = HeldBack(self._hosts, urls, book, self.thrift, self.tally)
        self._fates = Fates(urls, book, schedule, self.tally)
        self.firsts = FirstFetches(rules, book, lambda: self.refreshing.price)
        witness = schedule.witness
        self._chooser = Chooser(self._hosts, urls, book, self._fates, self.thrift, self.firsts, witness, foresight)
        self._robots = RobotsErrands(self._hosts, book, self._sitemaps)
        self.refreshing = Refreshing(rules, book, schedule.seed, schedule.witness)
        self._looks = Looks(self._hosts, urls, book, self.refreshing)
        self._finds = Finds(self._hosts, urls, self._chooser, self._looks, self._newness, self._fates, self.thrift)
        self.spending = Spending(book, self._site_start, self.refreshing.looking.is_source)
        self._answers = Answers(self._hosts, urls, book, schedule, self.refreshing, copies, self.thrift, self.sited)
        self._results = Results(self._hosts, self._robots, self._fates, self._answers, self.thrift, self.tally)

    @property
    def rules(self) -> Rules:
        """What the operator decided."""
        return self._hosts.rules

    @property
    def hosts(self) -> dict[str, KeptHost]:
        """The hosts in play, by name."""
        return self._hosts.by_name

    @property
    def robots(self) -> dict[Origin, RobotsState]:
        """What is known of robots.txt files."""
        return self._hosts.files.states

    # 1 discover

    def found(self, urls: Sequence[str], depth: int, now_s: float, *, hops: int = 0, front: int | None = None) -> int:
        """URLs that belong to a site, in its spelling: the unseen ones wait from now on. How many those were."""
        return self._finds.named([(urls, Named("", depth, hops, front))], now_s)

    def announced(self, urls: Sequence[str], named: Named, now_s: float) -> int:
        """URLs that a source named which was not fetched: it was pushed here, or pinged. How many were unseen."""
        return self._finds.named([(urls, named)], now_s)

    def wish(self, urls: Sequence[str], now_s: float) -> list[int]:
        """Somebody waits for these URLs, each in its site's spelling: they come next when their host may be asked."""
        self.found(urls, 0, now_s, front=0)
        return self._finds.wish(urls)

    def _sitemaps(self, urls: Sequence[str], now_s: float) -> None:
        """What robots.txt names belongs to a site like any other link."""
        self.found([url for url in map(self.sited, urls) if url is not None], 0, now_s, front=0)

    def sited(self, url: str) -> str | None:
        """The URL in the spelling of the site that takes it; None where none does."""
        site = self._hosts.sites.site_of(url)
        return spelt(normalize(url, site), site, self.copies.learned) if site else None

    def _site_start(self, url: str) -> str:
        site = self._hosts.sites.site_of(url)
        return site.start if site is not None else ""

    # 2 order

    def hand_out(self, now_s: float, until_s: float, room: dict[int, int]) -> tuple[list[Order], list[str]]:
        """Orders for workers with room, and hosts to be looked up; leases end at the wall time ``until_s``.

        Each host has one turn, however much there is to judge, so that a call takes no longer than it must.
        """
        orders, lookups = self._news(now_s, room), self._hosts.lookups.due(now_s)
        seen: list[KeptHost] = []
        while not self._is_full() and any(free > 0 for free in room.values()):
            host = self._hosts.take(now_s)
            if host is None:
                break
            seen.append(host)
            order = self._turn(host, now_s, until_s, room)
            if order is not None:
                orders.append(order)
                room[order.worker] -= len(order.orders.errands)
        lookups += [host.name for host in seen if host.resolving]
        for host in seen:
            self._hosts.enqueue(host)
        instead, self._chooser.instead = self._chooser.instead, []
        self._finds.named([((one.url,), one) for one in instead], now_s)
        return orders, lookups

    def next_s(self) -> float | None:
        """When ``hand_out`` may bring something that it does not bring now; None if only an event can help."""
        return None if self._is_full() else self._hosts.next_s()

    def _news(self, now_s: float, room: dict[int, int]) -> list[Order]:
        """Longer pauses for hosts that a worker is asking."""
        return [
            Order(host.worker, Orders((self._hosts.orders_for(host, now_s),)))
            for host in self._robots.changed()
            if host.busy and host.worker is not None and host.worker in room
        ]

    def _turn(self, host: KeptHost, now_s: float, until_s: float, room: dict[int, int]) -> Order | None:
        if self._hosts.due_s(host) > now_s:
            return None
        if host.closed is not None:
            self._end_closed(host, now_s)
            return None
        if not host.errands and (not self._is_sited(host, now_s) or self._chooser.holds(host, now_s)):
            return None
        if not self._hosts.located(host, now_s):
            return None
        worker = self._hosts.worker_of(host)
        return self._order(host, worker, now_s, until_s) if room.get(worker, 0) > 0 else None

    def _is_sited(self, host: KeptHost, now_s: float) -> bool:
        """Whether a running site may have URLs there; those of paused ones wait, those of no site are refused."""
        why = Refusal.BLOCKED if lies_in(host.name, self.rules.blocked) else Refusal.OUT_OF_SCOPE
        if why is Refusal.OUT_OF_SCOPE:
            if self._hosts.sites.of_host(host.name):
                return True
            if self._hosts.paused.of_host(host.name):
                host.paused_s = float("inf")
                return False
        for one in self.urls.lease([host.id] * self.rules.lease_most, NOBODY, now_s):
            self._fates.refuse(one.id, why, str(why), NOBODY, now_s)
        return False

    def _order(self, host: KeptHost, worker: int, now_s: float, until_s: float) -> Order | None:
        pages: tuple[Errand, ...] = ()
        if not host.errands and not host.robots_wait:
            most = self.rules.most_pages
            room = None if most is None else most - self.tally.pages - self.pages_out
            pages = self._chooser.choose(host, worker, now_s, until_s, room)
        files, host.errands = host.errands, []
        if files and self._hosts.budget is not None:
            self._hosts.budget.took_files(len(files), now_s)
        self.refreshing.spent(others=len(files) + sum(errand.copy is None for errand in pages))
        host.asked.update({errand.robots_of: errand for errand in files if errand.robots_of})
        self.pages_out += sum(errand.id not in host.out for errand in pages)
        host.out.update((errand.id, errand) for errand in pages)
        errands = (*files, *pages)
        return Order(worker, Orders((self._hosts.orders_for(host, now_s),), errands)) if errands else None

    def _is_full(self) -> bool:
        most = self.rules.most_pages
        return most is not None and self.tally.pages + self.pages_out >= most

    def named(self, name: str, addresses: Sequence[str], failure: Failure | None, now_s: float) -> None:
        """A resolver spoke."""
        self._hosts.named(name, addresses, failure, now_s)

    def _end_closed(self, host: KeptHost, now_s: float) -> None:
        """No address may be asked: what waits has failed. Whoever names the host again has it looked up again."""
        failure = str(host.closed)
        files, host.errands = host.errands, []
        for errand in files:
            self._robots.heard(errand, RobotsSilent(now_s, failure))
        for one in self.urls.lease([host.id] * self.rules.lease_most, NOBODY, now_s):
            self._fates.fail(one.id, one.url, failure, NOBODY, now_s)
        if not self._hosts.waiting_for(host):
            host.closed, host.address_until_s = None, 0.0

    # 3 fetch and 4 parse: what came back

    def taken_in(self, worker: int, report: Report) -> None:
        """A worker's report; what it says of hosts that it lost meanwhile is only heeded where it asks for rest."""
        self._keep_hosts([self._heard(news, worker) for news in report.hosts])
        self.spending.expect(report.results)
        for errand in report.returned:
            self._returned(errand, worker)
        for result in report.results:
            self._result(result, worker)
        began_s = min((result.started_s for result in report.results), default=0.0)
        ended_s = max((result.ended_s for result in report.results), default=0.0)
        self._finds.named(self._answers.keep(worker), ended_s)
        self.spending.ended(self._looks.new_of, ended_s)
        self.firsts.held.keep_now_and_then(self.book, ended_s)
        if self.rules.recrawl:
            self._looks.ended(report.results, ended_s)
            self.firsts.ended(report.results)
        ended = (*report.returned, *(result.errand for result in report.results))
        for name in dict.fromkeys(errand.host for errand in ended):
            self._held_back.release(self.hosts[name])
            self._hosts.enqueue(self.hosts[name])
            if report.results:
                self._newness.heard(self.hosts[name], began_s, ended_s)

    def _heard(self, news: HostNews, worker: int) -> KeptHost:
        host = self.hosts[news.name]
        host.ready_s = max(host.ready_s, news.ready_s)
        if host.worker == worker:
            host.strain, host.rest_trouble = news.strain, news.trouble
        return host

    def _keep_hosts(self, hosts: Sequence[KeptHost]) -> None:
        self.book.keep_hosts([HostRow(host.name, host.ready_s, host.strain, host.rest_trouble) for host in hosts])

    def _returned(self, errand: Errand, worker: int) -> None:
        host = self.hosts[errand.host]
        if self._ended_out(host, errand, worker):
            if errand.robots_of is not None:
                host.errands.append(errand)
            else:
                self._fates.put_back([errand.id], worker)
                self.thrift.dropped([errand.id])
                self._hosts.give_back(errand.url)

    def _result(self, result: Result, worker: int) -> None:
        host = self.hosts[result.errand.host]
        if self._ended_out(host, result.errand, worker):
            self.spending.came(result, wished=result.errand.id in host.wishes)
            self._results.came(host, result, worker)

    def _ended_out(self, host: KeptHost, errand: Errand, worker: int) -> bool:
        """Whether the worker had this errand, which is no longer out then; late words of a lost worker do not count."""
        if host.worker != worker:
            return False
        if errand.robots_of is not None:
            return host.asked.pop(errand.robots_of, None) is not None
        had = host.out.pop(errand.id, None) is not None
        self.pages_out -= had
        return had

    # 6 refresh

    def renewed(self, now_s: float, most: int = 1000) -> int:
        """Time goes by: known pages whose time has come, at the price of the moment, wait again; how many."""
        self.spending.keep_now_and_then(now_s)
        if not self.rules.recrawl:
            return 0
        self.refreshing.step(now_s)
        due, judged = self.refreshing.due(now_s, most)
        woken = set(self.urls.again([one.id for one in due], priority=1).tolist())
        refreshes = len(woken & judged)
        self.refreshing.spent(refreshes, len(woken) - refreshes)
        for name in dict.fromkeys(one.host for one in due):
            host = self._hosts.get(name)
            host.paused_s = 0.0
            self._hosts.enqueue(host)
        return len(woken)

    def gained(self, gains: Sequence[Gained], now_s: float, firsts: Sequence[Gained] = ()) -> None:
        """What fetches turned out to have brought to search; ``firsts`` is what first ones did."""
        self.refreshing.gained(gains, now_s)
        self.spending.gained((*gains, *firsts))
        self.firsts.changed(gains, now_s)
        self.firsts.gained(firsts, now_s)

    # the operator

    def host_of_wish(self, id_: int) -> str | None:
        """The host of a URL that somebody waits for; None where nobody does any more."""
        host = self._fates.wished.get(id_)
        return host.name if host else None

    def ruled(self, rules: Rules, names: Sequence[str], now_s: float) -> tuple[str, ...]:
        """Other rules from now on, and hosts that may have work; the hosts whose errands are to be called back."""
        for name, id_ in zip(names, self.urls.host_ids(list(names)), strict=True):
            self._hosts.known(name, id_)
        self._hosts.rule(rules)
        self.refreshing.rule(rules)
        self.firsts.rule(rules)
        self._vouch()
        for host in [host for host in self.hosts.values() if host.held]:
            self._held_back.release(host)
            self._hosts.requeue(host)
        for site in rules.sites:
            self.found([site.start], 0, now_s, front=0)
        return tuple(
            host.name
            for host in self.hosts.values()
            if any(self._hosts.sites.site_of(errand.url) is None for errand in host.out.values())
        )

    # how it stands

    def ending(self, now_s: float, patience_s: float) -> str | None:
        """``done`` when nothing is left, ``stuck`` when only hosts in trouble are, for longer than that; else None."""
        if self.pages_out:
            return None
        return "done" if self._is_full() else standing.ending(self._hosts, now_s, patience_s)

    def waits(self, now_s: float) -> dict[str, int]:
        """Why hosts are not being asked, and how many for each reason."""
        return standing.waits(self._hosts, now_s)

    def host_standings(self, now_s: float, most: int) -> tuple[list[standing.HostStanding], int]:
        """The hosts with something to do, those first that somebody should look at; and how many there are."""
        return standing.listed(self._hosts, now_s, most)

    def wait_of(self, name: str, now_s: float) -> tuple[str, float]:
        """Why a host is not being asked for more, and when it may be asked."""
        host = self.hosts.get(name)
        return (standing.why(host, now_s), self._hosts.soonest_s(host)) if host else ("nothing to ask it for", now_s)

    def first_worth(self, id_: int, url: str) -> tuple[float, float | None]:
        """What a first fetch of a URL is worth now, and what it must be worth; None where nothing has a price."""
        return self._chooser.first_worth(id_, url)

    # when things break

    def recall_host(self, name: str, ready_s: float, strain: int, trouble: str) -> None:
        """What an earlier run knew of a host's pauses."""
        host = self._hosts.get(name)
        host.ready_s, host.strain, host.rest_trouble = ready_s, strain, trouble

    def rest(self, name: str, asked_s: float) -> None:
        """Somebody else had an answer of a host then: it has its rest from there."""
        self._hosts.answered(self._hosts.get(name), asked_s)

    def begin(
        self,
        names: Sequence[str],
        robots: dict[Origin, RobotsState],
        now_s: float,
        *,
        held: Sequence[tuple[str, str, int]] = (),
        clean: bool,
    ) -> None:
        """Hosts with work, what is known of robots.txt and what is held back, after a start.

        After a crash every host rests first.
        """
        self._vouch()
        for name, place, count in held:
            self._hosts.get(name).held[place] = count
        self.robots.update(robots)
        self._hosts.begin(names, robots, now_s, clean=clean)
        for name in dict.fromkeys(name for name, _, _ in held):
            self._held_back.release(self._hosts.get(name))
            self._hosts.enqueue(self._hosts.get(name))

    def _vouch(self) -> None:
        """The operator named these hosts, whatever became of their accounts in a crash."""
        for site in self.rules.sites:
            self.thrift.found(site.start, None, is_named=False)

    def lost(self, worker: int, now_s: float) -> None:
        """A worker died: what it held waits again, and its hosts, which it may just have asked, rest first."""
        for host in self._hosts.orphans(worker, now_s):
            held, host.out = host.out, {}
            self.thrift.dropped(held)
            files, host.asked = host.asked, {}
            self.pages_out -= len(held)
            self._fates.put_back(held, worker)
            if held:
                self._held_back.release(host)
            host.errands += files.values()
            if held or files:
                self._keep_hosts([host])
