"""The console's Queue page: which hosts wait for what, fetch errors, and live numbers of the crawl."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from functools import partial

from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from vedette.adapters.crawl_store.url_list import UrlKind
from vedette.web.console.crawl.overview import describe_age
from vedette.web.console.crawl.url_list import build_pages_url
from vedette.web.console.ports.monitoring import CrawlStatus, HostLine, Monitoring
from vedette.web.console.ui.charts import render_bar_table
from vedette.web.console.ui.layout import ConsoleShell
from vedette.web.console.ui.scales import format_value
from vedette.web.console.ui.tables import Column, Table, find_csv
from vedette.web.console.ui.time_series import build_range_links, parse_time_range, render_series
from vedette.web.formatting import age

LIVE_INTERVAL_S = 2.0
LIVE_EVENTS = 60  # then the browser reconnects
EVENT_STREAM_TYPE = "text/event-stream"
MAX_STREAMS = 100
CHARTS = ("waiting", "fetches_per_s")
_HOST_TABLE: Table[HostLine] = Table(
    (
        Column("host", "Host", lambda row: row.name),
        Column("waiting", "URLs waiting", lambda row: row.waiting, is_number=True),
        Column("why", "Waiting for", lambda row: row.trouble or row.why),
        Column("ready", "Next request", lambda row: row.ready_s, is_number=True),
    ),
    page_size=20,
)


@dataclass(frozen=True, slots=True)
class QueuePage:
    """The console's Queue page."""

    shell: ConsoleShell
    monitoring: Monitoring

    def show(self, request: Request) -> Response:
        """Show the crawl queue: hosts with waiting URLs and what each waits for."""
        hosts = self.monitoring.list_hosts()
        if file := find_csv(request, (_HOST_TABLE, hosts.rows, "hosts")):
            return file
        over, now_s, crawl = parse_time_range(request), self.shell.now_s(), self.monitoring.get_crawl_status()
        return self.shell.render_page(
            "queue.html",
            request,
            here="queue",
            title="Queue",
            crawl=crawl,
            hosts=hosts,
            seen=_HOST_TABLE.paginate(request, hosts.rows),
            charts=[render_series(self.monitoring, name, over, now_s) for name in CHARTS],
            ways=build_range_links(request),
            live=_format_live(crawl),
            how_old=describe_age(crawl),
            waits=render_bar_table(_sort_counts(crawl.waiting_why), "n", ("Waiting for", "Hosts")),
            mishaps=_render_errors(crawl),
        )


class LiveStreams:
    """Live numbers of the crawl, streamed to open Queue pages every few seconds."""

    def __init__(self, monitoring: Monitoring) -> None:
        self._monitoring = monitoring
        self._open = 0

    async def stream(self, request: Request) -> Response:
        """Stream live crawl numbers as server-sent events; without script the page reloads instead."""
        if request.method == "HEAD":  # there is nothing to wait for
            return Response(media_type=EVENT_STREAM_TYPE)
        if self._open >= MAX_STREAMS:
            return Response(status_code=503, headers={"retry-after": "60"})
        return StreamingResponse(self._generate_events(request.state.is_in), media_type=EVENT_STREAM_TYPE)

    async def _generate_events(self, is_in: Callable[[], bool]) -> AsyncIterator[str]:
        """Yield live crawl numbers as events until sign-out, or until the session must be checked again."""
        self._open += 1
        try:
            for _ in range(LIVE_EVENTS):
                if not is_in():
                    return
                crawl = await run_in_threadpool(self._monitoring.get_crawl_status)
                yield f"data: {json.dumps(_format_live(crawl))}\n\n"
                await asyncio.sleep(LIVE_INTERVAL_S)
        finally:
            self._open -= 1


def _format_live(crawl: CrawlStatus) -> dict[str, str]:
    """Format the live numbers of the crawl as the Queue page shows them."""
    return {
        "waiting": format_value(crawl.waiting, "n"),
        "out": format_value(crawl.out, "n"),
        "hosts": format_value(crawl.hosts, "n"),
        "rate": "\N{EM DASH}" if crawl.pages_per_s is None else format_value(crawl.pages_per_s, "1/s"),
        "state": _describe_state(crawl),
    }


def _describe_state(crawl: CrawlStatus) -> str:
    if crawl.is_busy:
        return f"busy; numbers are {age(crawl.age_s, is_precise=True)} old" if crawl.is_running else "starting"
    return "running" if crawl.is_running else "not running"


def _render_errors(crawl: CrawlStatus) -> list[Markup]:
    """Draw the fetch errors since the crawl started, by kind, as bars."""
    errors = {status: times for status, times in crawl.statuses.items() if status[:1] in {"4", "5"}}
    groups: tuple[tuple[Mapping[str, int], str, UrlKind], ...] = (
        (errors, "Error responses", "errors"),
        (crawl.failures, "Requests without a response", "failed"),
        (crawl.refusals, "URLs not fetched", "refused"),
    )
    return [
        render_bar_table(_sort_counts(counts), "n", (words, "Count"), partial(build_pages_url, kind))
        for counts, words, kind in groups
        if counts
    ]


def _sort_counts(counts: Mapping[str, int]) -> list[tuple[str, float]]:
    return sorted(((str(words), float(times)) for words, times in counts.items()), key=lambda row: (-row[1], row[0]))
