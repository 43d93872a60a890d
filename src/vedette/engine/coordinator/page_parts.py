"""Page parts in the coordinator: requests that pages make while a fetcher renders them.

A part is requested like a page: its host must be allowed, its address must pass the guard, its robots.txt must allow
it, its host must be past its delay, and the budget pays for it. Disallowed parts are refused at once, and the page
continues without them.
"""

from vedette.discover.urls.normalize import resolve
from vedette.engine.coordinator.hosts import HostTable
from vedette.engine.coordinator.robots_cache import TOP_PRIORITY, build_robots_task
from vedette.engine.coordinator.shard import WHOLE_WEB, Shard
from vedette.engine.coordinator.state import Assignment, CrawlCounts, HostState
from vedette.engine.messages import (
    FetchReport,
    FetchResult,
    FetchSuccess,
    FetchTask,
    PagePart,
    PartReply,
    PartRequest,
    WorkBatch,
)
from vedette.engine.search.hidden import is_in_domains
from vedette.fetch.robots import state as robots_state
from vedette.model import Site, origin_of

MAX_WAITING = 1_000
MAX_REDIRECTS = 5


class PagePartQueue:
    """Queue of requests that rendered pages make, until they are assigned or refused; ``replies`` go to fetchers."""

    def __init__(self, hosts: HostTable, shard: Shard = WHOLE_WEB) -> None:
        self._hosts, self._shard = hosts, shard
        self._waiting: list[FetchTask] = []
        self.replies: list[tuple[int, PartReply]] = []

    def request(self, request: PartRequest) -> None:
        """Queue a request of a page, or refuse it where its site does not allow its host."""
        url, site = resolve(request.url, request.part.page), self._hosts.sites.find_site(request.part.page)
        if url is None or site is None or len(self._waiting) >= MAX_WAITING or not self._is_allowed(url, request, site):
            self._refuse(request.part)
            return
        host = self._hosts.get(origin_of(url).host)
        self._waiting.append(FetchTask(0, host.name, url, "part", TOP_PRIORITY, part_of=request.part))

    def _is_allowed(self, url: str, request: PartRequest, site: Site) -> bool:
        """Check whether a page may load a URL: from its own origin, from a crawled site, or from a listed host.

        Hosts of other shards are requested by their owners alone.
        """
        origin = origin_of(url)
        if not self._shard.owns(url) or is_in_domains(origin.host, self._hosts.rules.blocked):
            return False
        if origin == origin_of(request.part.page):
            return True
        # On other hosts only web server ports: a script must not probe other services.
        is_listed = self._hosts.sites.find_site(url) is not None or origin.host in site.render_from
        return is_listed and origin.port == (443 if origin.scheme == "https" else 80)

    def assign(self, orders: list[Assignment], lookups: list[str], now_s: float, room: dict[int, int]) -> int:
        """Add the requests of rendered pages that may be sent to ``orders``; return how many.

        Hosts that need a DNS lookup are added to ``lookups``.
        """
        waiting, self._waiting = self._waiting, []
        before = len(orders)
        for task in waiting:
            host = self._hosts.get(task.host)
            verdict = self._judge(host, task, now_s, lookups)
            if verdict is False:
                self._refuse(task.part_of)
            elif verdict is None or room.get(worker := self._hosts.assign_fetcher(host), 0) <= 0:
                self._waiting.append(task)
            else:
                orders.append(self._give_out(host, task, worker, now_s))
                room[worker] -= 1
        return len(orders) - before

    def _judge(self, host: HostState, task: FetchTask, now_s: float, lookups: list[str]) -> bool | None:
        """Judge whether a part may be requested now; None while its address, its robots.txt or its turn is awaited."""
        if host.unreachable is not None or host.failure_streak or self._hosts.opens_at_s(host, now_s) > now_s:
            return False
        if self._check_robots(host, task, now_s) is False:
            return False
        if host.resolving:
            return None
        if not self._hosts.resolve_address(host, now_s):
            lookups += [host.name] if host.resolving else []
            return None if host.resolving else False
        verdict = self._check_robots(host, task, now_s)
        return None if verdict and not self._shard.may_request(host) else verdict

    def _check_robots(self, host: HostState, task: FetchTask, now_s: float) -> bool | None:
        """Check a part against the robots.txt of its origin; request the file if it is unknown."""
        site = self._hosts.sites.find_site(task.url)
        if site is not None and site.ignore_robots:
            return True
        origin = origin_of(task.url)
        verdict = robots_state.check_url(self._hosts.robots.get(origin), task.url, now_s)
        if not isinstance(verdict, robots_state.RobotsNeeded):
            return isinstance(verdict, robots_state.UrlAllowed)
        if origin not in host.robots_pending:
            host.robots_pending[origin] = None
            host.robots_tasks.append(build_robots_task(origin, self._hosts.robots.get(origin)))
            self._hosts.add_origin(host, origin)
        return None

    def _give_out(self, host: HostState, task: FetchTask, worker: int, now_s: float) -> Assignment:
        assert task.part_of is not None
        if self._hosts.budget is not None:
            self._hosts.budget.charge_robots(1, now_s)
        host.parts_in_flight[task.part_of] = task
        return Assignment(worker, WorkBatch((self._hosts.build_settings(host, now_s),), (task,)))

    def take_results(self, report: FetchReport, fetcher: int, tally: CrawlCounts) -> FetchReport:
        """Take the parts out of a fetch report and forward them; return the rest.

        A redirected part is followed; one that was given back unsent is refused.
        """
        results = [result for result in report.results if result.task.part_of is not None]
        returned = [task for task in report.returned if task.part_of is not None]
        if not results and not returned:
            return report
        tally.requests += len(results)
        for result in results:
            if self._close(result.task):
                self._on_result(result, fetcher)
        for task in returned:
            if self._close(task):
                self._refuse(task.part_of)
        pages = tuple(result for result in report.results if result.task.part_of is None)
        return report._replace(results=pages, returned=tuple(task for task in report.returned if not task.part_of))

    def _on_result(self, result: FetchResult, fetcher: int) -> None:
        part = result.task.part_of
        assert part is not None
        if isinstance(result, FetchSuccess) and result.location is not None and part.hops < MAX_REDIRECTS:
            self.request(PartRequest(result.location, part._replace(hops=part.hops + 1)))
        elif not isinstance(result, FetchSuccess):
            self._refuse(part)
        elif part.worker != fetcher:
            kind, control = result.header("content-type"), result.header("cache-control")
            self.replies.append((part.worker, PartReply(part.number, result.status, kind, control, result.part_body)))

    def on_fetcher_lost(self, fetcher: int) -> None:
        """Drop the parts that a lost fetcher requested, and refuse those it was fetching for others."""
        self._waiting = [task for task in self._waiting if task.part_of and task.part_of.worker != fetcher]
        self.replies = [reply for reply in self.replies if reply[0] != fetcher]
        for host in [host for host in self._hosts.by_name.values() if host.parts_in_flight]:
            if host.worker == fetcher:
                for part in list(host.parts_in_flight):
                    del host.parts_in_flight[part]
                    if part.worker != fetcher:
                        self._refuse(part)

    def _close(self, task: FetchTask) -> bool:
        host = self._hosts.get(task.host)
        had = task.part_of is not None and host.parts_in_flight.pop(task.part_of, None) is not None
        self._hosts.enqueue(host)
        return had

    def _refuse(self, part: PagePart | None) -> None:
        if part is not None:
            self.replies.append((part.worker, PartReply(part.number)))
