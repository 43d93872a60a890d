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

from vedette.adapters.crawl_store.url_list import UrlKind
from vedette.model import Failure
from vedette.web.console.admin.storage import storage_routes
from vedette.web.console.crawl.budget import budget_page_routes
from vedette.web.console.crawl.discovery import discovery_routes
from vedette.web.console.crawl.refresh import refresh_routes
from vedette.web.console.crawl.url_list import build_pages_url
from vedette.web.console.ports.monitoring import CrawlStatus, HostLine, Monitoring
from vedette.web.console.search.queries import searches_routes
from vedette.web.console.ui.charts import render_bar_table
from vedette.web.console.ui.layout import ConsoleShell
from vedette.web.console.ui.scales import format_value
from vedette.web.console.ui.tables import Column, Table
from vedette.web.console.ui.time_series import (
    CHART_POINTS,
    TimeRange,
    build_range_links,
    describe_trend,
    parse_time_range,
    render_series,
    series_route,
)
from vedette.web.formatting import counted, host_name, sentence
from vedette.web.ports import SearchService

LATEST_ACTIONS = 5
UNINDEXED_WARNING = 1000  # some always wait for a second
HOSTS_SHOWN = 3
MAX_REASON_LENGTH = 100
LIVE_INTERVAL_S = 2.0
LIVE_EVENTS = 60  # then the browser asks again
EVENT_STREAM_TYPE = "text/event-stream"
MAX_STREAMS = 100
OVERVIEW_CHARTS = ("pages", "coverage", "checked_in_time", "median_age_s")
QUEUE_CHARTS = ("waiting", "fetches_per_s")
_HOST_TABLE: Table[HostLine] = Table(
    (
        Column("host", "Host", lambda row: row.name),
        Column("waiting", "URLs waiting", lambda row: row.waiting, is_number=True),
        Column("why", "What it waits for", lambda row: row.trouble or row.why),
        Column("ready", "May be asked", lambda row: row.ready_s, is_number=True),
    ),
    page_size=20,
)


class HealthWarning(NamedTuple):
    """Something that is not as it should be, and what to do about it."""

    what: str
    do: str
    address: str = ""
    link: str = ""


def monitoring_routes(shell: ConsoleShell, watch: Monitoring, search: SearchService) -> list[Route]:
    """The pages that show and change nothing."""
    pages = _MonitoringPages(shell, watch, search)
    streams = LiveStreams(watch)
    return [
        Route("/", pages.show_overview),
        Route("/queue", pages.show_queue),
        Route("/live", streams.stream),
        series_route(shell, watch),
        *refresh_routes(shell, watch),
        *discovery_routes(shell, watch),
        *budget_page_routes(shell, watch),
        *searches_routes(shell, watch),
        *storage_routes(shell, watch),
    ]


def find_warnings(crawl: CrawlStatus, behind: str) -> list[HealthWarning]:
    """What the operator should know, the gravest first; ``behind`` is why the index is incomplete."""
    found = []
    if crawl.is_busy:
        what = "The keeper had no time to answer: it is starting, ending or very busy."
        found.append(HealthWarning(what, "Its numbers are the last known. Load the page again."))
    elif not crawl.is_running:
        found.append(HealthWarning("Nothing is being crawled: no keeper answers.", 'Start it with "vedette up".'))
    if crawl.trouble:
        found.append(HealthWarning(sentence(crawl.trouble), "See what takes room.", "/console/storage", "Storage"))
    if behind or crawl.unindexed >= UNINDEXED_WARNING:
        why = behind or f"{counted(crawl.unindexed, 'page')} wait for the index"
        found.append(HealthWarning(f"What can be found is incomplete: {why}.", "It catches up by itself."))
    if crawl.failures.get(Failure.ADDRESS):
        what = "Some hosts lie at addresses that may not be asked, so nothing of them is fetched."
        cure = "Public ones need a contact (crawl.contact), private ones leave in the settings of their site."
        found.append(HealthWarning(what, cure, "/console/sites?sort=-error", "Sites"))
    if crawl.in_trouble:
        found.append(_build_host_warning(crawl))
    return found


def _build_host_warning(crawl: CrawlStatus) -> HealthWarning:
    named = [
        f"{host_name(host)} ({why[:MAX_REASON_LENGTH]})" for host, why in list(crawl.in_trouble.items())[:HOSTS_SHOWN]
    ]
    rest = len(crawl.in_trouble) - len(named)
    more = f" and {counted(rest, 'more host')}" if rest else ""
    is_one = len(crawl.in_trouble) == 1
    answer = "does not answer" if is_one else "do not answer"
    what = f"{counted(len(crawl.in_trouble), 'host')} {answer} well: {', '.join(named)}{more}."
    return HealthWarning(
        what, f"{'It is' if is_one else 'They are'} asked again later and later.", "/console/queue?sort=why", "Queue"
    )


class _OverviewData(NamedTuple):
    crawl: CrawlStatus
    latest: dict[str, float]
    trend: str
    charts: list[Markup]


@dataclass(frozen=True, slots=True)
class _MonitoringPages:
    """The handlers, with what they need."""

    shell: ConsoleShell
    monitoring: Monitoring
    search: SearchService

    async def show_overview(self, request: Request) -> Response:
        """How it all stands."""
        seen = await run_in_threadpool(self._load_overview, parse_time_range(request))
        private = tuple(site.start for site in self.search.list_sites() if site.secrets)  # the operator may see all
        told: dict[str, Any] = {
            "crawl": seen.crawl,
            "latest": seen.latest,
            "trend": seen.trend,
            "charts": seen.charts,
            "pages": self.search.get_overview(private).pages,
            "troubles": find_warnings(seen.crawl, self.search.get_incomplete_reason()),
            "actions": self.shell.admin.list_actions(LATEST_ACTIONS),
            "ways": build_range_links(request),
            "said": format_value,
        }
        return self.shell.render_page("overview.html", request, here="overview", title="Overview", **told)

    def _load_overview(self, over: TimeRange) -> _OverviewData:
        now_s = self.shell.now_s()
        changed = describe_trend(self.monitoring.load_series("pages", now_s - over.span_s, CHART_POINTS), "n", over)
        charts = [render_series(self.monitoring, name, over, now_s) for name in OVERVIEW_CHARTS]
        return _OverviewData(
            self.monitoring.get_crawl_status(), dict(self.monitoring.get_latest_values()), changed, charts
        )

    async def show_queue(self, request: Request) -> Response:
        """What waits, and why."""
        hosts = await run_in_threadpool(self.monitoring.list_hosts)
        if _HOST_TABLE.wants_csv(request):
            return _HOST_TABLE.csv_response(request, hosts.rows, "hosts")
        crawl = await run_in_threadpool(self.monitoring.get_crawl_status)
        charts = await run_in_threadpool(self._queue_charts, parse_time_range(request))
        told: dict[str, Any] = {
            "crawl": crawl,
            "hosts": hosts,
            "seen": _HOST_TABLE.paginate(request, hosts.rows),
            "charts": charts,
            "ways": build_range_links(request),
            "live": _format_live(crawl),
            "waits": render_bar_table(_sort_counts(crawl.waiting_why), "n", ("What hosts wait for", "Hosts")),
            "mishaps": _render_errors(crawl),
        }
        return self.shell.render_page("queue.html", request, here="queue", title="Queue", **told)

    def _queue_charts(self, over: TimeRange) -> list[Markup]:
        return [render_series(self.monitoring, name, over, self.shell.now_s()) for name in QUEUE_CHARTS]


class LiveStreams:
    """Numbers that move, sent to open pages every few seconds."""

    def __init__(self, watch: Monitoring) -> None:
        self._watch = watch
        self._open = 0

    async def stream(self, request: Request) -> Response:
        """A stream of server-sent events; without script the page is loaded again instead."""
        if request.method == "HEAD":  # there is nothing to wait for
            return Response(media_type=EVENT_STREAM_TYPE)
        if self._open >= MAX_STREAMS:
            return Response(status_code=503, headers={"retry-after": "60"})
        return StreamingResponse(self._generate_events(request.state.is_in), media_type=EVENT_STREAM_TYPE)

    async def _generate_events(self, is_in: Callable[[], bool]) -> AsyncIterator[str]:
        """Until whoever looks has signed out, or has looked for so long that the guard should look again who it is."""
        self._open += 1
        try:
            for _ in range(LIVE_EVENTS):
                if not is_in():
                    return
                crawl = await run_in_threadpool(self._watch.get_crawl_status)
                yield f"data: {json.dumps(_format_live(crawl))}\n\n"
                await asyncio.sleep(LIVE_INTERVAL_S)
        finally:
            self._open -= 1


def _format_live(crawl: CrawlStatus) -> dict[str, str]:
    """The numbers that move, as they are shown."""
    return {
        "waiting": format_value(crawl.waiting, "n"),
        "out": format_value(crawl.out, "n"),
        "hosts": format_value(crawl.hosts, "n"),
        "rate": "\N{EM DASH}" if crawl.pages_per_s is None else format_value(crawl.pages_per_s, "1/s"),
        "state": "too busy to answer" if crawl.is_busy else "being crawled" if crawl.is_running else "not running",
    }


def _render_errors(crawl: CrawlStatus) -> list[Markup]:
    """What went wrong since the start, by kind."""
    errors = {status: times for status, times in crawl.statuses.items() if status[:1] in {"4", "5"}}
    groups: tuple[tuple[Mapping[str, int], str, UrlKind], ...] = (
        (errors, "Answers that are errors", "errors"),
        (crawl.failures, "Requests without an answer", "failed"),
        (crawl.refusals, "URLs that are not fetched", "refused"),
    )
    return [
        render_bar_table(_sort_counts(counts), "n", (words, "Times"), partial(build_pages_url, kind))
        for counts, words, kind in groups
        if counts
    ]


def _sort_counts(counts: object) -> list[tuple[str, float]]:
    assert isinstance(counts, dict)
    return sorted(((str(words), float(times)) for words, times in counts.items()), key=lambda row: (-row[1], row[0]))
