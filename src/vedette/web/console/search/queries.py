"""The console's page on what people search for, and what they do not find."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from vedette.adapters.event_store.reader import QueryCount, Totals
from vedette.web.console.ports.monitoring import Watch
from vedette.web.console.ui.charts import bars
from vedette.web.console.ui.layout import Shell
from vedette.web.console.ui.scales import said
from vedette.web.console.ui.tables import Column, Table
from vedette.web.console.ui.time_series import Over, chart, over_of, ways

__all__ = ["asking_routes"]

CHARTS = ("searches_per_h", "empty_share", "click_share")
_COLUMNS = (
    Column[QueryCount]("query", "Query", lambda row: row.query),
    Column[QueryCount]("searches", "Searches", lambda row: row.searches, is_number=True),
    Column[QueryCount]("visitors", "Visitors", lambda row: row.visitors, is_number=True),
    Column[QueryCount]("empty", "Without result", lambda row: row.empty, is_number=True),
    Column[QueryCount]("clicks", "Clicks", lambda row: row.clicks, is_number=True),
    Column[QueryCount]("last", "Last asked", lambda row: row.last_s, is_number=True),
)
_TOP = Table(_COLUMNS, by="-searches", key="top", rows=20)
_EMPTY = Table((_COLUMNS[0], _COLUMNS[3], _COLUMNS[1], _COLUMNS[5]), by="-empty", key="empty", rows=20)


def asking_routes(shell: Shell, watch: Watch) -> list[Route]:
    """The page Searches."""
    return [Route("/searches", _Page(shell, watch).shown)]


@dataclass(frozen=True, slots=True)
class _Page:
    """The handler, with what it needs."""

    shell: Shell
    watch: Watch

    async def shown(self, request: Request) -> Response:
        """What was asked over the time that was chosen."""
        over = over_of(request)
        asked = await run_in_threadpool(self.watch.searched, over.span_s)
        for table, rows, name in ((_TOP, asked.top, "searches"), (_EMPTY, asked.without_result, "without-result")):
            if table.wants_csv(request):
                return table.csv(request, rows, name)
        told: dict[str, Any] = {
            "searched": asked,
            "over": over,
            "is_kept": self.watch.keeps_searches(),
            "charts": await run_in_threadpool(self._charts, over),
            "ways": ways(request),
            "top": _TOP.seen(request, asked.top),
            "empty": _EMPTY.seen(request, asked.without_result),
            "left_out": _left_out(asked.totals),
            "share": _share,
            "search_address": lambda query: f"/search?{urlencode({'q': query}, errors='replace')}",
            "synonym_address": _synonym,
        }
        return self.shell.page("searches.html", request, here="searches", title="Searches", **told)

    def _charts(self, over: Over) -> list[Markup]:
        return [chart(self.watch, name, over, self.shell.now_s()) for name in CHARTS]


def _left_out(totals: Totals) -> Markup:
    rows = sorted(totals.doubted.items(), key=lambda row: (-row[1], row[0]))
    return bars([(why, float(times)) for why, times in rows], "n", ("Why", "Times")) if rows else Markup()


def _share(part: int, whole: int) -> str:
    return said(part / whole, "share") if whole else "\N{EM DASH}"


def _synonym(query: str) -> str:
    return f"/console/results?{urlencode({'kind': 'synonym', 'query': query}, errors='replace')}"
