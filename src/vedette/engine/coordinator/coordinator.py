"""The coordinator: decide what to fetch, when, and with which fetcher; the only writer of the crawl state.

Its work is a few pipelines, each a method whose lines are the steps in order:

    admit_links      links found    give unseen URLs of a site an id and a front queue, and wake their host
    apply_report     fetch result   close tasks, save pages with their due times, admit their links
    assign_work      time passed    give each due host a turn, and lease its URLs to fetchers
    wake_due_pages   time passed    move the price, requeue known pages that are due

It also handles events: a DNS answer, a lost fetcher, changed crawl rules.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from vedette.engine.coordinator import status
from vedette.engine.coordinator.duplicates import DuplicateDetector
from vedette.engine.coordinator.hosts import HostTable
from vedette.engine.coordinator.newness import NoveltyDetector
from vedette.engine.coordinator.page_parts import PagePartQueue
from vedette.engine.coordinator.redirects import RedirectFollower
from vedette.engine.coordinator.results import (
    LinkGroup,
    PollTracker,
    build_yield,
    collect_links,
    collect_signals,
    collect_unlisted,
    drop_known,
    find_relinked,
    find_retry,
)
from vedette.engine.coordinator.robots_cache import has_new_rules, to_event
from vedette.engine.coordinator.robots_review import RobotsReview
from vedette.engine.coordinator.shard import WHOLE_WEB, Shard
from vedette.engine.coordinator.sitemap_guesses import SitemapGuesser
from vedette.engine.coordinator.state import Admitted, Assignment, CrawlCounts, CrawlRules, FoundUrl, HostState
from vedette.engine.coordinator.trap_filter import HeldBack, TrapFilter
from vedette.engine.coordinator.url_states import LAST_FRONT, UrlStates
from vedette.engine.links import normalize_within
from vedette.engine.messages import FetchFailure, FetchReport, FetchResult, FetchSuccess, FetchTask, WorkBatch
from vedette.engine.ports import CrawlStore, FetchGain, PageRow, UrlFrontier, UrlState
from vedette.engine.scheduling.first_fetch import FirstFetches
from vedette.engine.scheduling.refresh import RefreshScheduler
from vedette.engine.scheduling.schedule import Schedule
from vedette.engine.scheduling.spending import SpendingLog
from vedette.engine.scheduling.url_order import NO_IMPACT, ImpactEstimates
from vedette.engine.scheduling.url_selection import UrlSelector
from vedette.fetch.robots.state import RobotsFailure, RobotsResponse, RobotsState
from vedette.model import Failure, Origin, origin_of


class Coordinator:
    """Make all crawl decisions: admit links, assign work, apply fetch reports, wake due pages.

    Ports are passed in; what is written to them is durable once the driver commits.
    """

    def __init__(
        self,
        rules: CrawlRules,
        urls: UrlFrontier,
        store: CrawlStore,
        schedule: Schedule,
        copies: DuplicateDetector,
        workers: int,
        impact: ImpactEstimates = NO_IMPACT,
        shard: Shard = WHOLE_WEB,
    ) -> None:
        self.urls, self.store, self.schedule, self.copies = urls, store, schedule, copies
        self.shard = shard
        self.tally = CrawlCounts()
        self.pages_out = 0
        hosts = self.host_table = HostTable(rules, urls, workers)
        self.trap_filter = TrapFilter(copies)
        self._held_back = HeldBack(self.trap_filter, hosts, urls, store, self.tally)
        states = self._url_states = UrlStates(urls, store, schedule, self.tally, copies)
        self._novelty = NoveltyDetector(hosts, urls, store)
        interval_s = schedule.sources.interval_s
        self.refresher = RefreshScheduler(rules, store, schedule.seed, schedule.witness, hosts.gap_s, interval_s)
        self._polls = PollTracker(hosts, urls, store, self.refresher)
        traps = self.trap_filter
        self._sitemaps = SitemapGuesser(hosts, urls, store, states, traps, self.normalize_url)
        self._redirects = RedirectFollower(hosts, urls, store, states, traps, copies, self.tally, self.normalize_url)
        firsts = self.first_fetches = FirstFetches(rules, store, self.refresher)
        self.spending = SpendingLog(store, hosts, self.refresher.poller)
        self.parts = PagePartQueue(hosts, shard)
        self._robots_review = RobotsReview(hosts, urls, store, copies)
        self.selector = UrlSelector(hosts, urls, store, states, self.trap_filter, firsts, schedule.witness, impact)

    @property
    def rules(self) -> CrawlRules:
        """The operator's crawl rules that the coordinator applies."""
        return self.host_table.rules

    @property
    def hosts(self) -> dict[str, HostState]:
        """The coordinator's active hosts, by name."""
        return self.host_table.by_name

    @property
    def robots(self) -> dict[Origin, RobotsState]:
        """The coordinator's cached robots.txt states, by origin."""
        return self.host_table.robots.states

    # links found

    def admit_links(self, groups: Sequence[LinkGroup], now_s: float) -> Admitted:
        """Admit found links, normalized by their sites, into the frontier; most of them are known already.

        All links of a report are admitted at once, grouped by origin, since each batch has a fixed cost.
        """
        unseen = drop_known(self.shard.keep_own(groups), self.urls)
        if not unseen:
            return Admitted(0, Counter())
        named = Counter(one.source for one in unseen if one.source and not (one.is_refetch and self._is_trap(one.url)))
        origins = [origin_of(one.url) for one in unseen]
        host_ids = self.urls.intern_hosts([origin.host for origin in origins])
        new_ids: list[int] = self.urls.add(self.selector.build_link_batch(unseen, host_ids), now_s).tolist()
        if any(one.hops for one in unseen) or self._novelty.can_be_new(host_ids, now_s):
            self._prioritize_news(unseen, host_ids, new_ids, now_s)
        for one in unseen:
            self.trap_filter.traps.add_url(one.url, one.source, is_named=one.from_list)
        for origin, host_id in dict(zip(origins, host_ids, strict=True)).items():
            self.host_table.add_origin(self.host_table.get_or_add(origin.host, host_id), origin)
        return Admitted(len(new_ids), named)

    def _is_trap(self, url: str) -> bool:
        """Check whether the trap filter would hold a URL back; an endless list brings nothing."""
        site = self.host_table.sites.find_site(url)
        return site is not None and self.trap_filter.judge(url, site) is not None

    def _prioritize_news(
        self, unseen: Sequence[FoundUrl], host_ids: Sequence[int], new_ids: Sequence[int], now_s: float
    ) -> None:
        """Move URLs that are new on the web to the front of their host's queue when links are admitted."""
        found = dict(zip(self.urls.find_ids([one.url for one in unseen]).tolist(), unseen, strict=True))
        self._url_states.hops.update({id_: found[id_].hops for id_ in new_ids if found[id_].hops})
        self._url_states.cookies.update({id_: found[id_].cookies for id_ in new_ids if found[id_].cookies})
        hosts = {one.url: host for one, host in zip(unseen, host_ids, strict=True)}
        news = self._novelty.detect({id_: found[id_] for id_ in new_ids}, hosts, now_s)
        self.urls.move_to_front(news)
        for id_ in news:
            host = self.host_table.get(origin_of(found[id_].url).host)
            host.new_urls[id_] = None
            if self.host_table.budget is not None:
                self.host_table.budget.prioritize(host)

    def add_urls(
        self, urls: Sequence[str], depth: int, now_s: float, *, hops: int = 0, front: int | None = None
    ) -> int:
        """Admit URLs named by an operator or a command into the frontier; return how many were unseen."""
        return self.admit_links([(urls, FoundUrl("", depth, hops, front))], now_s).urls

    def add_starts(self, now_s: float) -> None:
        """Admit the start URL of every site into the frontier, and request the sitemaps that its settings name."""
        for site in filter(lambda site: self.shard.owns(site.start), self.rules.sites):
            self.add_urls([site.start], 0, now_s, front=0)
            if site.sitemap and not self.rules.only_requested:
                self.request_urls(list(filter(self.shard.owns, self._sitemaps.list_unfetched(site))), now_s)

    def request_urls(self, urls: Sequence[str], now_s: float) -> list[int]:
        """Fetch these URLs as soon as their host may be requested; return their ids."""
        self.add_urls(urls, 0, now_s, front=0)
        ids: list[int] = self.urls.find_ids(urls).tolist()
        self.urls.requeue(ids, priority=0)
        self.urls.move_to_front(ids)
        for url, id_ in zip(urls, ids, strict=True):
            origin = origin_of(url)
            host = self._url_states.requested[id_] = self.host_table.get(origin.host)
            host.requested[id_] = None
            host.queued_s, host.lookup_retry_s = None, 0.0
            self.host_table.add_origin(host, origin)
        return ids

    def request_robots(self, origin: Origin) -> None:
        """Fetch the robots.txt of an origin again as soon as its host may be requested."""
        host = self.host_table.get(origin.host)
        host.origins[origin], host.lookup_retry_s = None, 0.0
        self.selector.request_robots(host, [origin])
        self.host_table.requeue(host)

    def normalize_url(self, url: str) -> str | None:
        """Normalize a URL by its site's rules and learned duplicate rules; None if no site covers it."""
        return normalize_within(url, self.host_table.sites, self.copies.copy_rules)

    # fetch result

    def apply_report(self, fetcher: int, report: FetchReport) -> None:
        """Apply a fetcher's report to the crawl state: close tasks, save pages, admit their links.

        For hosts that the fetcher no longer owns, only back-off requests count.
        """
        self._held_back.has_news = True
        report = self.parts.take_results(report, fetcher, self.tally)
        began_s = min((result.started_s for result in report.results), default=0.0)
        ended_s = max((result.ended_s for result in report.results), default=0.0)
        self.store.save_hosts([self.host_table.apply_update(news, fetcher).to_row() for news in report.host_updates])
        rows = self.store.get_pages([result.task.id for result in report.results if result.task.robots_of is None])
        self._take_back([task for task in report.returned if self._close_task(task, fetcher)], fetcher)
        results = [result for result in report.results if self._close_task(result.task, fetcher)]
        missed = self._sitemaps.end_misses(results, rows, fetcher)
        spent = self.spending.classify(results, rows, missed)
        results = [result for result in results if result.task.id not in missed]
        answers, sitemaps = self._end_tasks(results, fetcher)
        links = [group for result in answers for group in collect_links(result, self.normalize_url)]
        self._save_answers(answers, rows, fetcher)
        admitted = self.admit_links([*sitemaps, *missed.values(), *links], ended_s)
        self.spending.add(spent, admitted.by_source, ended_s)
        self.selector.rendering.on_results(answers)
        self.first_fetches.below_price.save_periodically(self.store, ended_s)
        if self.rules.recrawl:
            kept = [result for result in report.results if result.task.id not in missed]
            self._polls.on_report(kept, admitted.by_source, ended_s)
            self.first_fetches.on_results(kept)
        for name in dict.fromkeys(task.host for task in (*report.returned, *(one.task for one in report.results))):
            self._held_back.release(self.hosts[name], can_try=not self._is_full())
            self.host_table.enqueue(self.hosts[name])
            if report.results:
                self._novelty.on_host_answered(self.hosts[name], began_s, ended_s)

    def _close_task(self, task: FetchTask, fetcher: int) -> bool:
        """Close a fetcher's task; return whether that fetcher still owned it, since late reports do not count."""
        host = self.hosts[task.host]
        if host.worker != fetcher:
            return False
        if task.robots_of is not None:
            return host.robots_in_flight.pop(task.robots_of, None) is not None
        had = host.in_flight.pop(task.id, None) is not None
        self.pages_out -= had
        return had

    def _take_back(self, tasks: Sequence[FetchTask], fetcher: int) -> None:
        """Requeue tasks that a fetcher gave back unsent."""
        for task in tasks:
            if task.robots_of is not None:
                self.hosts[task.host].robots_tasks.append(task)
            else:
                self._url_states.release([task.id], fetcher)
                self.hosts[task.host].paused_until_s = 0.0
                self.trap_filter.on_dropped([task.id])
                self.host_table.refund_budget(task.url)

    def _apply_robots(self, task: FetchTask, event: RobotsResponse | RobotsFailure) -> RobotsState:
        """Save an origin's new robots.txt state in the coordinator, or that the file is unavailable."""
        assert task.robots_of is not None
        before = self.host_table.robots.get(task.robots_of)
        owner, state = self.host_table.apply_robots(task.robots_of, event)
        self.store.save_robots(task.robots_of, state)
        self.store.save_hosts([owner.to_row()])
        if has_new_rules(before, state):
            self._robots_review.start(task.robots_of)
        self.host_table.enqueue(owner)
        return state

    def _end_tasks(self, results: Sequence[FetchResult], fetcher: int) -> tuple[list[FetchSuccess], list[LinkGroup]]:
        """Sort the results of a fetch report: return good responses and robots.txt sitemaps, retry or fail the rest."""
        answers: list[FetchSuccess] = []
        sitemaps: list[LinkGroup] = []
        for result in results:
            task, host = result.task, self.hosts[result.task.host]
            self.tally.requests += 1
            is_good = isinstance(result, FetchSuccess) and not host.failure_streak
            host.success_streak = host.success_streak + 1 if is_good else 0
            if task.robots_of is not None:
                self.tally.robots += 1
                sitemaps.append(self._on_robots(result))
            elif isinstance(result, FetchFailure) or result.status == 429 or result.status >= 500:
                why, most = find_retry(result, self.rules.max_attempts)
                self.trap_filter.on_dropped([task.id])
                self._url_states.retry(task, why, fetcher, result.ended_s, most)
                host.paused_until_s = 0.0
            else:
                answers.append(result)
        self.tally.add_answers(answers)
        return self._redirects.follow(answers, fetcher), sitemaps

    def _on_robots(self, result: FetchResult) -> LinkGroup:
        """Handle the response to a robots.txt request; return the sitemaps it names, for admission."""
        event = to_event(result)
        if self.shard.pass_robots(result.task, event, result.ended_s):
            return (), FoundUrl("", 0)
        if isinstance(event, str):
            self.host_table.follow_robots_redirect(result.task, event)
            return (), FoundUrl("", 0)
        return self.apply_robots(result.task, event)

    def apply_robots(self, task: FetchTask, event: RobotsResponse | RobotsFailure) -> LinkGroup:
        """Apply the outcome of an origin's robots.txt; return the sitemaps it names, for admission."""
        assert task.robots_of is not None
        return self._sitemaps.find_sitemaps(task.robots_of, self._apply_robots(task, event))

    def _save_answers(self, answers: Sequence[FetchSuccess], rows: Mapping[int, PageRow], fetcher: int) -> None:
        """Save fetched pages with their next due times; pass on their signals, links and duplicates."""
        if not answers:
            return
        ids = [result.task.id for result in answers]
        now_s = max(result.ended_s for result in answers)
        self.urls.acknowledge(ids, UrlState.FETCHED, fetcher)
        due_s: dict[int, float] = {}
        relinked: list[int] = []
        if self.schedule.recrawl:  # if nothing is ever fetched again, due times are not needed
            inlinks = dict(zip(ids, self.urls.count_inlinks(np.array(ids, np.uint32)).tolist(), strict=True))
            due_s = self.refresher.schedule(answers, rows, inlinks)
            relinked = find_relinked(answers, rows, self.urls, self.store)
        pairs = [(self.hosts[result.task.host].id, result) for result in answers]
        with_content = {result.task.id for result in answers if result.content is not None}
        self.store.save_pages(list(self.schedule.build_rows(pairs, rows, due_s)), with_content)
        self.refresher.on_new_links(relinked, now_s)
        self.refresher.on_signals(collect_signals(answers, self.urls), now_s)
        self.store.add_unlisted_links(collect_unlisted(answers, rows, self.host_table.paused))
        joined = self.copies.save(answers)
        self.shard.pass_canonicals(answers)
        gone = [result.task for result in answers if result.content is None and result.task.copy]
        self.copies.on_gone([task.id for task in gone])
        self.urls.requeue(self.copies.list_skipped([task.url for task in gone]), LAST_FRONT)
        for result in answers:
            canonical = result.content.canonical if result.content else ""
            named = self.normalize_url(canonical) if canonical else None
            likeness = self.copies.measure_likeness(named, result.content) if named and result.content else None
            brought = build_yield(result, joined.get(result.task.id), named, likeness)
            self.trap_filter.on_result(result.task.id, brought)

    # time passed

    def assign_work(self, now_s: float, until_s: float, room: dict[int, int]) -> tuple[list[Assignment], list[str]]:
        """Assign fetch tasks to fetchers with free capacity, and list hosts that need a DNS lookup.

        Leases end at wall time ``until_s``. Each host gets one turn, no matter how many URLs must be checked.
        """
        orders, lookups = self.host_table.build_changes(now_s, room), list[str]()
        self.refresher.add_spent(others=self.parts.assign(orders, lookups, now_s, room))
        seen: list[HostState] = []
        while not self._is_full() and any(free > 0 for free in room.values()):
            host = self.host_table.pop_due(now_s)
            if host is None:
                break
            seen.append(host)
            order = self._serve_host(host, now_s, until_s, room)
            if order is not None:
                orders.append(order)
                room[order.worker] -= len(order.batch.tasks)
        lookups += [host.name for host in seen if host.resolving]
        for host in seen:
            self._held_back.try_some(host, can_try=not self._is_full())
            self.host_table.enqueue(host)
        if not self.pages_out:
            self._held_back.try_quiet_hosts(can_try=not self._is_full())
        substitutes, self.selector.substitutes = self.selector.substitutes, []
        self.admit_links([((one.url,), one) for one in substitutes], now_s)
        return orders, lookups

    def next_s(self) -> float | None:
        """Return when ``assign_work`` may next have work; None if only an event can change that."""
        return None if self._is_full() else self.host_table.next_s()

    def _serve_host(self, host: HostState, now_s: float, until_s: float, room: dict[int, int]) -> Assignment | None:
        if self.host_table.due_s(host) > now_s or self.host_table.changes_hands(host):
            return None
        if not host.robots_tasks and not self.selector.can_select(host, now_s):
            return None
        if not self.host_table.resolve_address(host, now_s):
            if not host.resolving:
                self._fail_robots(host, now_s)
                self._url_states.fail_requested(host, self.host_table.count_requested(host), now_s)
            return None
        if not self.shard.may_request(host):
            return None
        worker = self.host_table.assign_fetcher(host)
        return self._build_assignment(host, worker, now_s, until_s) if room.get(worker, 0) > 0 else None

    def _build_assignment(self, host: HostState, worker: int, now_s: float, until_s: float) -> Assignment | None:
        pages: tuple[FetchTask, ...] = ()
        if not host.robots_tasks and not host.robots_pending:
            most = self.rules.max_pages
            room = None if most is None else most - self.tally.pages - self.pages_out
            pages = self.selector.select(host, worker, now_s, until_s, room)
        self._fail_robots(host, now_s)
        files, host.robots_tasks = host.robots_tasks, []
        if files and self.host_table.budget is not None:
            self.host_table.budget.charge_robots(len(files), now_s)
        self.refresher.add_spent(others=len(files) + sum(task.copy is None for task in pages))
        host.robots_in_flight.update({task.robots_of: task for task in files if task.robots_of})
        self.pages_out += sum(task.id not in host.in_flight for task in pages)
        host.in_flight.update((task.id, task) for task in pages)
        tasks = (*files, *pages)
        return Assignment(worker, WorkBatch((self.host_table.build_settings(host, now_s),), tasks)) if tasks else None

    def _is_full(self) -> bool:
        most = self.rules.max_pages
        return most is not None and self.tally.pages + self.pages_out >= most

    def _fail_robots(self, host: HostState, now_s: float) -> None:
        """Drop robots.txt requests that cannot be sent to a host, so hosts that redirect to it do not wait for them."""
        for task in self.host_table.pop_unroutable(host):
            failure = RobotsFailure(now_s, str(host.unreachable or Failure.ADDRESS))
            if not self.shard.pass_robots(task, failure, now_s):
                self._apply_robots(task, failure)

    def wake_due_pages(self, now_s: float, most: int = 1000) -> int:
        """Requeue failed URLs that are due, and known pages due for a refresh at the current price; return how many."""
        self.spending.save_periodically(now_s)
        self._robots_review.step()
        failed = self._url_states.wake_failed(now_s, most)
        self.host_table.wake(one.host for one in failed)
        if not self.rules.recrawl:
            return len(failed)
        self.refresher.step(now_s)
        due, worth = self.refresher.get_due(now_s, most)
        woken = set(self.urls.requeue([one.id for one in due], priority=1).tolist())
        refreshes = len(woken & worth.keys())
        self.refresher.add_spent(refreshes, len(woken) - refreshes)
        for one in due:
            if one.id in woken and one.id in worth:
                host = self.host_table.get(one.host)
                host.refreshes[one.id], host.worth = worth[one.id], max(host.worth, worth[one.id])
        self.host_table.wake(one.host for one in due)
        return len(failed) + len(woken)

    def on_gains(
        self, gains: Sequence[FetchGain], now_s: float, firsts: Sequence[FetchGain] = (), per_view: float | None = None
    ) -> None:
        """Pass measured search gains, and the value of a view in the same unit, to refresh, spending, first fetches."""
        self.refresher.on_gains(gains, now_s, per_view)
        self.spending.add_gains((*gains, *firsts))
        self.first_fetches.on_change_gains(gains, now_s)
        self.first_fetches.on_first_gains(firsts, now_s)

    def get_request_host(self, id_: int) -> str | None:
        """Return the host of a URL that was requested by name; None if the request has ended."""
        host = self._url_states.requested.get(id_)
        return host.name if host else None

    def apply_rules(self, rules: CrawlRules, names: Sequence[str], now_s: float) -> tuple[str, ...]:
        """Apply changed crawl rules; ``names`` are hosts that may have work. Return the hosts whose tasks to recall."""
        for name, id_ in zip(names, self.urls.intern_hosts(list(names)), strict=True):
            self.host_table.get_or_add(name, id_)
        self.host_table.apply_rules(rules)
        self.refresher.apply_rules(rules)
        self.first_fetches.apply_rules(rules)
        self.trap_filter.trust_starts(self.rules.sites)
        for host in [host for host in self.hosts.values() if host.held_back]:
            self._held_back.release(host, can_try=not self._is_full())
            self.host_table.requeue(host)
        self.add_starts(now_s)
        return tuple(
            host.name
            for host in self.hosts.values()
            if any(self.host_table.sites.find_site(task.url) is None for task in host.in_flight.values())
        )

    def get_ending(self, now_s: float, patience_s: float) -> str | None:
        """Return how the crawl ended: ``done`` (nothing left), ``stuck`` (only troubled hosts); None while it runs."""
        if self.pages_out or (not self._is_full() and self.store.count_retries().next_s <= now_s + patience_s):
            return None
        if self._is_full():
            return "done"
        return status.find_ending(self.host_table, now_s, patience_s)

    def save(self, now_s: float) -> None:
        """Save the coordinator's poll beliefs and spending, which are otherwise saved periodically."""
        self.refresher.poller.save(now_s)
        self.spending.save(now_s)
        self.selector.rendering.save()

    def start(
        self,
        names: Sequence[str],
        robots: dict[Origin, RobotsState],
        now_s: float,
        *,
        held: Sequence[tuple[str, str, int]] = (),
        clean: bool,
    ) -> None:
        """Restore hosts, robots.txt states and held-back URLs; after a crash every host first waits out its delay."""
        self.trap_filter.trust_starts(self.rules.sites)
        for name, place, count in held:
            self.host_table.get(name).held_back[place] = count
        self.robots.update(robots)
        self.host_table.restore(names, robots, now_s, clean=clean)
        for name in dict.fromkeys(name for name, _, _ in held):
            self._held_back.release(self.host_table.get(name), can_try=not self._is_full())
            self.host_table.enqueue(self.host_table.get(name))

    def on_fetcher_lost(self, worker: int, now_s: float) -> None:
        """Requeue the tasks of a fetcher that died; hosts it may have just requested wait out their delay first."""
        self.parts.on_fetcher_lost(worker)
        for host in self.host_table.take_orphans(worker, now_s):
            held, host.in_flight = host.in_flight, {}
            self.trap_filter.on_dropped(held)
            files, host.robots_in_flight = host.robots_in_flight, {}
            self.pages_out -= len(held)
            self._url_states.release(held, worker)
            if held:
                self._held_back.release(host, can_try=not self._is_full())
            host.robots_tasks += files.values()
            if held or files:
                self.store.save_hosts([host.to_row()])
