"""The console's pages on what happens: the overview and the queue, with numbers that move."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from vedette.adapters.crawl_store.url_list import Kind
from vedette.model import Failure
from vedette.web.console.admin.storage import storing_routes
from vedette.web.console.crawl.budget import budgeting_routes
from vedette.web.console.crawl.discovery import discovering_routes
from vedette.web.console.crawl.refresh import refreshing_routes
from vedette.web.console.crawl.url_list import listed_at
from vedette.web.console.ports.monitoring import Crawl, HostLine, Watch
from vedette.web.console.search.queries import asking_routes
from vedette.web.console.ui.charts import bars
from vedette.web.console.ui.layout import Shell
from vedette.web.console.ui.scales import said
from vedette.web.console.ui.tables import Column, Table
from vedette.web.console.ui.time_series import POINTS, Over, chart, over_of, series_route, trend, ways
from vedette.web.formatting import counted, host_name, sentence
from vedette.web.ports import Search

__all__ = ["Streams", "Trouble", "troubles", "watching_routes"]

LATEST_ACTIONS = 5
MANY_UNINDEXED = 1000  # some always wait for a second
HOSTS_NAMED = 3
LONGEST_REASON = 100
LIVE_EVERY_S = 2.0
LIVE_TIMES = 60  # then the browser asks again
STREAM = "text/event-stream"
MOST_STREAMS = 100
OVERVIEW_CHARTS = ("pages", "coverage", "checked_in_time", "median_age_s")
QUEUE_CHARTS = ("waiting", "fetches_per_s")
_HOSTS: Table[HostLine] = Table(
    (
        Column("host", "Host", lambda row: row.name),
        Column("waiting", "URLs waiting", lambda row: row.waiting, is_number=True),
        Column("why", "What it waits for", lambda row: row.trouble or row.why),
        Column("ready", "May be asked", lambda row: row.ready_s, is_number=True),
    ),
    rows=20,
)


class Trouble(NamedTuple):
    """Something that is not as it should be, and what to do about it."""

    what: str
    do: str
    address: str = ""
    link: str = ""


def watching_routes(shell: Shell, watch: Watch, search: Search) -> list[Route]:
    """The pages that show and change nothing."""
    pages = _Pages(shell, watch, search)
    streams = Streams(watch)
    return [
        Route("/", pages.overview),
        Route("/queue", pages.queue),
        Route("/live", streams.live),
        series_route(shell, watch),
        *refreshing_routes(shell, watch),
        *discovering_routes(shell, watch),
        *budgeting_routes(shell, watch),
        *asking_routes(shell, watch),
        *storing_routes(shell, watch),
    ]


def troubles(crawl: Crawl, behind: str) -> list[Trouble]:
    """What the operator should know, the gravest first; ``behind`` is why the index is incomplete."""
    found = []
    if crawl.is_busy:
        what = "The keeper had no time to answer: it is starting, ending or very busy."
        found.append(Trouble(what, "Its numbers are the last known. Load the page again."))
    elif not crawl.is_running:
        found.append(Trouble("Nothing is being crawled: no keeper answers.", 'Start it with "vedette up".'))
    if crawl.trouble:
        found.append(Trouble(sentence(crawl.trouble), "See what takes room.", "/console/storage", "Storage"))
    if behind or crawl.unindexed >= MANY_UNINDEXED:
        why = behind or f"{counted(crawl.unindexed, 'page')} wait for the index"
        found.append(Trouble(f"What can be found is incomplete: {why}.", "It catches up by itself."))
    if crawl.failures.get(Failure.ADDRESS):
        what = "Some hosts lie at addresses that may not be asked, so nothing of them is fetched."
        cure = "Public ones need a contact (crawl.contact), private ones leave in the settings of their site."
        found.append(Trouble(what, cure, "/console/sites?sort=-error", "Sites"))
    if crawl.in_trouble:
        found.append(_hosts_in_trouble(crawl))
    return found


def _hosts_in_trouble(crawl: Crawl) -> Trouble:
    named = [
        f"{host_name(host)} ({why[:LONGEST_REASON]})" for host, why in list(crawl.in_trouble.items())[:HOSTS_NAMED]
    ]
    rest = len(crawl.in_trouble) - len(named)
    more = f" and {counted(rest, 'more host')}" if rest else ""
    is_one = len(crawl.in_trouble) == 1
    answer = "does not answer" if is_one else "do not answer"
    what = f"{counted(len(crawl.in_trouble), 'host')} {answer} well: {', '.join(named)}{more}."
    return Trouble(
        what, f"{'It is' if is_one else 'They are'} asked again later and later.", "/console/queue?sort=why", "Queue"
    )


class _Overview(NamedTuple):
    crawl: Crawl
    latest: dict[str, float]
    trend: str
    charts: list[Markup]


@dataclass(frozen=True, slots=True)
class _Pages:
    """The handlers, with what they need."""

    shell: Shell
    watch: Watch
    search: Search

    async def overview(self, request: Request) -> Response:
        """How it all stands."""
        seen = await run_in_threadpool(self._overview, over_of(request))
        private = tuple(site.start for site in self.search.sites() if site.secrets)  # the operator may see all
        told: dict[str, Any] = {
            "crawl": seen.crawl,
            "latest": seen.latest,
            "trend": seen.trend,
            "charts": seen.charts,
            "pages": self.search.overview(private).pages,
            "troubles": troubles(seen.crawl, self.search.is_behind()),
            "actions": self.shell.operator.actions(LATEST_ACTIONS),
            "ways": ways(request),
            "said": said,
        }
        return self.shell.page("overview.html", request, here="overview", title="Overview", **told)

    def _overview(self, over: Over) -> _Overview:
        now_s = self.shell.now_s()
        changed = trend(self.watch.points("pages", now_s - over.span_s, POINTS), "n", over)
        charts = [chart(self.watch, name, over, now_s) for name in OVERVIEW_CHARTS]
        return _Overview(self.watch.crawl(), dict(self.watch.latest()), changed, charts)

    async def queue(self, request: Request) -> Response:
        """What waits, and why."""
        hosts = await run_in_threadpool(self.watch.hosts)
        if _HOSTS.wants_csv(request):
            return _HOSTS.csv(request, hosts.rows, "hosts")
        crawl = await run_in_threadpool(self.watch.crawl)
        charts = await run_in_threadpool(self._queue_charts, over_of(request))
        told: dict[str, Any] = {
            "crawl": crawl,
            "hosts": hosts,
            "seen": _HOSTS.seen(request, hosts.rows),
            "charts": charts,
            "ways": ways(request),
            "live": _live(crawl),
            "waits": bars(_largest(crawl.waiting_why), "n", ("What hosts wait for", "Hosts")),
            "mishaps": _mishaps(crawl),
        }
        return self.shell.page("queue.html", request, here="queue", title="Queue", **told)

    def _queue_charts(self, over: Over) -> list[Markup]:
        return [chart(self.watch, name, over, self.shell.now_s()) for name in QUEUE_CHARTS]


class Streams:
    """Numbers that move, sent to open pages every few seconds."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._open = 0

    async def live(self, request: Request) -> Response:
        """A stream of server-sent events; without script the page is loaded again instead."""
        if request.method == "HEAD":  # there is nothing to wait for
            return Response(media_type=STREAM)
        if self._open >= MOST_STREAMS:
            return Response(status_code=503, headers={"retry-after": "60"})
        return StreamingResponse(self._events(request.state.is_in), media_type=STREAM)

    async def _events(self, is_in: Callable[[], bool]) -> AsyncIterator[str]:
        """Until whoever looks has signed out, or has looked for so long that the guard should look again who it is."""
        self._open += 1
        try:
            for _ in range(LIVE_TIMES):
                if not is_in():
                    return
                crawl = await run_in_threadpool(self._watch.crawl)
                yield f"data: {json.dumps(_live(crawl))}\n\n"
                await asyncio.sleep(LIVE_EVERY_S)
        finally:
            self._open -= 1


def _live(crawl: Crawl) -> dict[str, str]:
    """The numbers that move, as they are shown."""
    return {
        "waiting": said(crawl.waiting, "n"),
        "out": said(crawl.out, "n"),
        "hosts": said(crawl.hosts, "n"),
        "rate": "\N{EM DASH}" if crawl.pages_per_s is None else said(crawl.pages_per_s, "1/s"),
        "state": "too busy to answer" if crawl.is_busy else "being crawled" if crawl.is_running else "not running",
    }


def _mishaps(crawl: Crawl) -> list[Markup]:
    """What went wrong since the start, by kind."""
    errors = {status: times for status, times in crawl.statuses.items() if status[:1] in {"4", "5"}}
    groups: tuple[tuple[Mapping[str, int], str, Kind], ...] = (
        (errors, "Answers that are errors", "errors"),
        (crawl.failures, "Requests without an answer", "failed"),
        (crawl.refusals, "URLs that are not fetched", "refused"),
    )
    return [
        bars(_largest(counts), "n", (words, "Times"), partial(listed_at, kind))
        for counts, words, kind in groups
        if counts
    ]


def _largest(counts: object) -> list[tuple[str, float]]:
    assert isinstance(counts, dict)
    return sorted(((str(words), float(times)) for words, times in counts.items()), key=lambda row: (-row[1], row[0]))
