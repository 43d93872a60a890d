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
from vedette.engine.coordinator.admission import Admission
from vedette.engine.coordinator.answers import AnswerHandler
from vedette.engine.coordinator.duplicates import DuplicateDetector
from vedette.engine.coordinator.hosts import HostTable
from vedette.engine.coordinator.newness import NoveltyDetector
from vedette.engine.coordinator.robots_fetch import RobotsFetches
from vedette.engine.coordinator.state import Assignment, CrawlCounts, CrawlRules, FoundUrl, HostState
from vedette.engine.coordinator.trap_filter import HeldBack, TrapFilter
from vedette.engine.coordinator.url_states import ResultHandler, UrlStates
from vedette.engine.links import apply_copy_rules
from vedette.engine.messages import FetchReport, FetchResult, FetchTask, HostUpdate, WorkBatch
from vedette.engine.ports import CrawlStore, FetchGain, HostRow, UrlFrontier
from vedette.engine.scheduling.first_fetch import FirstFetches
from vedette.engine.scheduling.impact_ports import NO_IMPACT, ImpactEstimates
from vedette.engine.scheduling.poll_results import PollTracker
from vedette.engine.scheduling.refresh import RefreshScheduler
from vedette.engine.scheduling.schedule import Schedule
from vedette.engine.scheduling.spending import SpendingLog
from vedette.engine.scheduling.url_selection import NO_FETCHER, UrlSelector
from vedette.engine.search.hidden import is_in_domains
from vedette.fetch.robots.state import RobotsFailure, RobotsState
from vedette.model import Failure, Origin, Refusal


class Coordinator:
    """All that is decided. Ports are handed in; what they are told is durable once the driver commits."""

    def __init__(
        self,
        rules: CrawlRules,
        urls: UrlFrontier,
        book: CrawlStore,
        schedule: Schedule,
        copies: DuplicateDetector,
        workers: int,
        foresight: ImpactEstimates = NO_IMPACT,
    ) -> None:
        self.schedule = schedule
        self.urls = urls
        self.store = book
        self.tally = CrawlCounts()
        self.pages_out = 0
        self.copies = copies
        self.trap_filter = TrapFilter(lambda: copies.copy_rules)
        self._hosts = HostTable(rules, urls, workers)
        self._novelty = NoveltyDetector(self._hosts, urls, book)
        self._held_back = HeldBack(self._hosts, urls, book, self.trap_filter, self.tally)
        self._url_states = UrlStates(urls, book, schedule, self.tally)
        self.first_fetches = FirstFetches(rules, book, lambda: self.refresher.price)
        witness = schedule.witness
        self._selector = UrlSelector(
            self._hosts, urls, book, self._url_states, self.trap_filter, self.first_fetches, witness, foresight
        )
        self._robots = RobotsFetches(self._hosts, book, self._add_sitemaps)
        self.refresher = RefreshScheduler(rules, book, schedule.seed, schedule.witness)
        self._polls = PollTracker(self._hosts, urls, book, self.refresher)
        self._admission = Admission(
            self._hosts, urls, self._selector, self._polls, self._novelty, self._url_states, self.trap_filter
        )
        self.spending = SpendingLog(book, self._find_site_start, self.refresher.poller.is_source)
        self._answers = AnswerHandler(
            self._hosts, urls, book, schedule, self.refresher, copies, self.trap_filter, self.normalize_url
        )
        self._results = ResultHandler(
            self._hosts, self._robots, self._url_states, self._answers, self.trap_filter, self.tally
        )

    @property
    def rules(self) -> CrawlRules:
        """What the operator decided."""
        return self._hosts.rules

    @property
    def hosts(self) -> dict[str, HostState]:
        """The hosts in play, by name."""
        return self._hosts.by_name

    @property
    def robots(self) -> dict[Origin, RobotsState]:
        """What is known of robots.txt files."""
        return self._hosts.robots.states

    # 1 discover

    def add_urls(
        self, urls: Sequence[str], depth: int, now_s: float, *, hops: int = 0, front: int | None = None
    ) -> int:
        """URLs that belong to a site, in its spelling: the unseen ones wait from now on. How many those were."""
        return self._admission.admit([(urls, FoundUrl("", depth, hops, front))], now_s)

    def add_announced(self, urls: Sequence[str], named: FoundUrl, now_s: float) -> int:
        """URLs that a source named which was not fetched: it was pushed here, or pinged. How many were unseen."""
        return self._admission.admit([(urls, named)], now_s)

    def request_urls(self, urls: Sequence[str], now_s: float) -> list[int]:
        """Somebody waits for these URLs, each in its site's spelling: they come next when their host may be asked."""
        self.add_urls(urls, 0, now_s, front=0)
        return self._admission.request(urls)

    def _add_sitemaps(self, urls: Sequence[str], now_s: float) -> None:
        """What robots.txt names belongs to a site like any other link."""
        self.add_urls([url for url in map(self.normalize_url, urls) if url is not None], 0, now_s, front=0)

    def normalize_url(self, url: str) -> str | None:
        """The URL in the spelling of the site that takes it; None where none does."""
        site = self._hosts.sites.find_site(url)
        return apply_copy_rules(normalize(url, site), site, self.copies.copy_rules) if site else None

    def _find_site_start(self, url: str) -> str:
        site = self._hosts.sites.find_site(url)
        return site.start if site is not None else ""

    # 2 order

    def assign_work(self, now_s: float, until_s: float, room: dict[int, int]) -> tuple[list[Assignment], list[str]]:
        """Orders for workers with room, and hosts to be looked up; leases end at the wall time ``until_s``.

        Each host has one turn, however much there is to judge, so that a call takes no longer than it must.
        """
        orders, lookups = self._push_host_settings(now_s, room), self._hosts.lookups.pop_due(now_s)
        seen: list[HostState] = []
        while not self._is_full() and any(free > 0 for free in room.values()):
            host = self._hosts.pop_due(now_s)
            if host is None:
                break
            seen.append(host)
            order = self._serve_host(host, now_s, until_s, room)
            if order is not None:
                orders.append(order)
                room[order.worker] -= len(order.batch.tasks)
        lookups += [host.name for host in seen if host.resolving]
        for host in seen:
            self._hosts.enqueue(host)
        instead, self._selector.substitutes = self._selector.substitutes, []
        self._admission.admit([((one.url,), one) for one in instead], now_s)
        return orders, lookups

    def next_s(self) -> float | None:
        """When ``assign_work`` may bring something that it does not bring now; None if only an event can help."""
        return None if self._is_full() else self._hosts.next_s()

    def _push_host_settings(self, now_s: float, room: dict[int, int]) -> list[Assignment]:
        """Longer pauses for hosts that a worker is asking."""
        return [
            Assignment(host.worker, WorkBatch((self._hosts.build_settings(host, now_s),)))
            for host in self._robots.pop_changed()
            if host.busy and host.worker is not None and host.worker in room
        ]

    def _serve_host(self, host: HostState, now_s: float, until_s: float, room: dict[int, int]) -> Assignment | None:
        if self._hosts.due_s(host) > now_s:
            return None
        if host.unreachable is not None:
            self._fail_unreachable(host, now_s)
            return None
        if not host.robots_tasks and (not self._check_scope(host, now_s) or self._selector.hold_back_host(host, now_s)):
            return None
        if not self._hosts.resolve_address(host, now_s):
            return None
        worker = self._hosts.assign_fetcher(host)
        return self._build_assignment(host, worker, now_s, until_s) if room.get(worker, 0) > 0 else None

    def _check_scope(self, host: HostState, now_s: float) -> bool:
        """Whether a running site may have URLs there; those of paused ones wait, those of no site are refused."""
        why = Refusal.BLOCKED if is_in_domains(host.name, self.rules.blocked) else Refusal.OUT_OF_SCOPE
        if why is Refusal.OUT_OF_SCOPE:
            if self._hosts.sites.find_by_host(host.name):
                return True
            if self._hosts.paused.find_by_host(host.name):
                host.paused_until_s = float("inf")
                return False
        for one in self.urls.lease([host.id] * self.rules.max_leases, NO_FETCHER, now_s):
            self._url_states.refuse(one.id, why, str(why), NO_FETCHER, now_s)
        return False

    def _build_assignment(self, host: HostState, worker: int, now_s: float, until_s: float) -> Assignment | None:
        pages: tuple[FetchTask, ...] = ()
        if not host.robots_tasks and not host.robots_pending:
            most = self.rules.max_pages
            room = None if most is None else most - self.tally.pages - self.pages_out
            pages = self._selector.select(host, worker, now_s, until_s, room)
        files, host.robots_tasks = host.robots_tasks, []
        if files and self._hosts.budget is not None:
            self._hosts.budget.charge_robots(len(files), now_s)
        self.refresher.add_spent(others=len(files) + sum(errand.copy is None for errand in pages))
        host.robots_in_flight.update({errand.robots_of: errand for errand in files if errand.robots_of})
        self.pages_out += sum(errand.id not in host.in_flight for errand in pages)
        host.in_flight.update((errand.id, errand) for errand in pages)
        errands = (*files, *pages)
        return Assignment(worker, WorkBatch((self._hosts.build_settings(host, now_s),), errands)) if errands else None

    def _is_full(self) -> bool:
        most = self.rules.max_pages
        return most is not None and self.tally.pages + self.pages_out >= most

    def on_dns(self, name: str, addresses: Sequence[str], failure: Failure | None, now_s: float) -> None:
        """A resolver spoke."""
        self._hosts.on_dns(name, addresses, failure, now_s)

    def _fail_unreachable(self, host: HostState, now_s: float) -> None:
        """No address may be asked: what waits has failed. Whoever names the host again has it looked up again."""
        failure = str(host.unreachable)
        files, host.robots_tasks = host.robots_tasks, []
        for errand in files:
            self._robots.apply_event(errand, RobotsFailure(now_s, failure))
        for one in self.urls.lease([host.id] * self.rules.max_leases, NO_FETCHER, now_s):
            self._url_states.fail(one.id, one.url, failure, NO_FETCHER, now_s)
        if not self._hosts.has_waiting(host):
            host.unreachable, host.address_until_s = None, 0.0

    # 3 fetch and 4 parse: what came back

    def apply_report(self, worker: int, report: FetchReport) -> None:
        """A worker's report; what it says of hosts that it lost meanwhile is only heeded where it asks for rest."""
        self._save_hosts([self._apply_host_update(news, worker) for news in report.host_updates])
        self.spending.begin_report(report.results)
        for errand in report.returned:
            self._on_returned(errand, worker)
        for result in report.results:
            self._on_result(result, worker)
        began_s = min((result.started_s for result in report.results), default=0.0)
        ended_s = max((result.ended_s for result in report.results), default=0.0)
        self._admission.admit(self._answers.save(worker), ended_s)
        self.spending.end_report(self._polls.get_new_count, ended_s)
        self.first_fetches.below_price.save_periodically(self.store, ended_s)
        if self.rules.recrawl:
            self._polls.on_report(report.results, ended_s)
            self.first_fetches.on_results(report.results)
        ended = (*report.returned, *(result.task for result in report.results))
        for name in dict.fromkeys(errand.host for errand in ended):
            self._held_back.release(self.hosts[name])
            self._hosts.enqueue(self.hosts[name])
            if report.results:
                self._novelty.on_host_answered(self.hosts[name], began_s, ended_s)

    def _apply_host_update(self, news: HostUpdate, worker: int) -> HostState:
        host = self.hosts[news.name]
        host.ready_s = max(host.ready_s, news.ready_s)
        if host.worker == worker:
            host.failure_streak, host.rest_trouble = news.failure_streak, news.trouble
        return host

    def _save_hosts(self, hosts: Sequence[HostState]) -> None:
        self.store.save_hosts(
            [HostRow(host.name, host.ready_s, host.failure_streak, host.rest_trouble) for host in hosts]
        )

    def _on_returned(self, errand: FetchTask, worker: int) -> None:
        host = self.hosts[errand.host]
        if self._close_task(host, errand, worker):
            if errand.robots_of is not None:
                host.robots_tasks.append(errand)
            else:
                self._url_states.release([errand.id], worker)
                self.trap_filter.on_dropped([errand.id])
                self._hosts.refund_budget(errand.url)

    def _on_result(self, result: FetchResult, worker: int) -> None:
        host = self.hosts[result.task.host]
        if self._close_task(host, result.task, worker):
            self.spending.add_result(result, wished=result.task.id in host.requested)
            self._results.on_result(host, result, worker)

    def _close_task(self, host: HostState, errand: FetchTask, worker: int) -> bool:
        """Whether the worker had this errand, which is no longer out then; late words of a lost worker do not count."""
        if host.worker != worker:
            return False
        if errand.robots_of is not None:
            return host.robots_in_flight.pop(errand.robots_of, None) is not None
        had = host.in_flight.pop(errand.id, None) is not None
        self.pages_out -= had
        return had

    # 6 refresh

    def wake_due_pages(self, now_s: float, most: int = 1000) -> int:
        """Time goes by: known pages whose time has come, at the price of the moment, wait again; how many."""
        self.spending.save_periodically(now_s)
        if not self.rules.recrawl:
            return 0
        self.refresher.step(now_s)
        due, judged = self.refresher.get_due(now_s, most)
        woken = set(self.urls.requeue([one.id for one in due], priority=1).tolist())
        refreshes = len(woken & judged)
        self.refresher.add_spent(refreshes, len(woken) - refreshes)
        for name in dict.fromkeys(one.host for one in due):
            host = self._hosts.get(name)
            host.paused_until_s = 0.0
            self._hosts.enqueue(host)
        return len(woken)

    def on_gains(self, gains: Sequence[FetchGain], now_s: float, firsts: Sequence[FetchGain] = ()) -> None:
        """What fetches turned out to have brought to search; ``first_fetches`` is what first ones did."""
        self.refresher.on_gains(gains, now_s)
        self.spending.add_gains((*gains, *firsts))
        self.first_fetches.on_change_gains(gains, now_s)
        self.first_fetches.on_first_gains(firsts, now_s)

    # the operator

    def get_request_host(self, id_: int) -> str | None:
        """The host of a URL that somebody waits for; None where nobody does any more."""
        host = self._url_states.requested.get(id_)
        return host.name if host else None

    def apply_rules(self, rules: CrawlRules, names: Sequence[str], now_s: float) -> tuple[str, ...]:
        """Other rules from now on, and hosts that may have work; the hosts whose errands are to be called back."""
        for name, id_ in zip(names, self.urls.intern_hosts(list(names)), strict=True):
            self._hosts.get_or_add(name, id_)
        self._hosts.apply_rules(rules)
        self.refresher.apply_rules(rules)
        self.first_fetches.apply_rules(rules)
        self._trust_starts()
        for host in [host for host in self.hosts.values() if host.held_back]:
            self._held_back.release(host)
            self._hosts.requeue(host)
        for site in rules.sites:
            self.add_urls([site.start], 0, now_s, front=0)
        return tuple(
            host.name
            for host in self.hosts.values()
            if any(self._hosts.sites.find_site(errand.url) is None for errand in host.in_flight.values())
        )

    # how it stands

    def get_ending(self, now_s: float, patience_s: float) -> str | None:
        """``done`` when nothing is left, ``stuck`` when only hosts in trouble are, for longer than that; else None."""
        if self.pages_out:
            return None
        return "done" if self._is_full() else standing.find_ending(self._hosts, now_s, patience_s)

    def count_waits(self, now_s: float) -> dict[str, int]:
        """Why hosts are not being asked, and how many for each reason."""
        return standing.count_waits(self._hosts, now_s)

    def list_hosts(self, now_s: float, most: int) -> tuple[list[standing.HostStatus], int]:
        """The hosts with something to do, those first that somebody should look at; and how many there are."""
        return standing.list_hosts(self._hosts, now_s, most)

    def explain_wait(self, name: str, now_s: float) -> tuple[str, float]:
        """Why a host is not being asked for more, and when it may be asked."""
        host = self.hosts.get(name)
        return (
            (standing.explain_wait(host, now_s), self._hosts.soonest_s(host))
            if host
            else ("nothing to ask it for", now_s)
        )

    def estimate_first_worth(self, id_: int, url: str) -> tuple[float, float | None]:
        """What a first fetch of a URL is worth now, and what it must be worth; None where nothing has a price."""
        return self._selector.estimate_first_worth(id_, url)

    # when things break

    def restore_host(self, name: str, ready_s: float, strain: int, trouble: str) -> None:
        """What an earlier run knew of a host's pauses."""
        host = self._hosts.get(name)
        host.ready_s, host.failure_streak, host.rest_trouble = ready_s, strain, trouble

    def rest_host(self, name: str, asked_s: float) -> None:
        """Somebody else had an answer of a host then: it has its rest from there."""
        self._hosts.rest(self._hosts.get(name), asked_s)

    def start(
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
        self._trust_starts()
        for name, place, count in held:
            self._hosts.get(name).held_back[place] = count
        self.robots.update(robots)
        self._hosts.restore(names, robots, now_s, clean=clean)
        for name in dict.fromkeys(name for name, _, _ in held):
            self._held_back.release(self._hosts.get(name))
            self._hosts.enqueue(self._hosts.get(name))

    def _trust_starts(self) -> None:
        """The operator named these hosts, whatever became of their accounts in a crash."""
        for site in self.rules.sites:
            self.trap_filter.add_url(site.start, None, is_named=False)

    def on_fetcher_lost(self, worker: int, now_s: float) -> None:
        """A worker died: what it held waits again, and its hosts, which it may just have asked, rest first."""
        for host in self._hosts.take_orphans(worker, now_s):
            held, host.in_flight = host.in_flight, {}
            self.trap_filter.on_dropped(held)
            files, host.robots_in_flight = host.robots_in_flight, {}
            self.pages_out -= len(held)
            self._url_states.release(held, worker)
            if held:
                self._held_back.release(host)
            host.robots_tasks += files.values()
            if held or files:
                self._save_hosts([host])
