"""The console's Searches page: which queries people search for, and which find nothing."""

from dataclasses import dataclass
from urllib.parse import urlencode

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from vedette.adapters.event_store.reader import QueryCount, Totals
from vedette.web.console.ports.monitoring import Monitoring
from vedette.web.console.ui.charts import render_bar_table
from vedette.web.console.ui.layout import ConsoleShell
from vedette.web.console.ui.scales import format_value
from vedette.web.console.ui.tables import Column, Table, find_csv
from vedette.web.console.ui.time_series import build_range_links, parse_time_range, render_series

CHARTS = ("searches_per_h", "empty_share", "click_share")
_COLUMNS = (
    Column[QueryCount]("query", "Query", lambda row: row.query),
    Column[QueryCount]("searches", "Searches", lambda row: row.searches, is_number=True),
    Column[QueryCount]("visitors", "Visitors", lambda row: row.visitors, is_number=True),
    Column[QueryCount]("empty", "Without results", lambda row: row.empty, is_number=True),
    Column[QueryCount]("clicks", "Clicks", lambda row: row.clicks, is_number=True),
    Column[QueryCount]("last", "Last searched", lambda row: row.last_s, is_number=True),
)
_TOP_QUERIES = Table(_COLUMNS, default_sort="-searches", prefix="top", page_size=20)
_EMPTY_QUERIES = Table(
    (_COLUMNS[0], _COLUMNS[3], _COLUMNS[1], _COLUMNS[5]), default_sort="-empty", prefix="empty", page_size=20
)


@dataclass(frozen=True, slots=True)
class SearchesPage:
    """The console's Searches page on recorded queries."""

    shell: ConsoleShell
    monitoring: Monitoring

    def show(self, request: Request) -> Response:
        """Show the queries that were searched for over the chosen time range."""
        over, now_s = parse_time_range(request), self.shell.now_s()
        stats = self.monitoring.get_search_stats(over.span_s)
        tables = (_TOP_QUERIES, stats.top, "searches"), (_EMPTY_QUERIES, stats.without_result, "without-result")
        if file := find_csv(request, *tables):
            return file
        return self.shell.render_page(
            "searches.html",
            request,
            here="searches",
            title="Searches",
            searched=stats,
            over=over,
            is_kept=self.monitoring.is_recording(),
            charts=[render_series(self.monitoring, name, over, now_s) for name in CHARTS],
            ways=build_range_links(request),
            top=_TOP_QUERIES.paginate(request, stats.top),
            empty=_EMPTY_QUERIES.paginate(request, stats.without_result),
            left_out=_render_filtered(stats.totals),
            share=_format_share,
            search_address=lambda query: f"/search?{urlencode({'q': query}, errors='replace')}",
            synonym_address=_build_synonym_url,
        )


def _render_filtered(totals: Totals) -> Markup:
    rows = sorted(totals.filtered.items(), key=lambda row: (-row[1], row[0]))
    return (
        render_bar_table([(why, float(times)) for why, times in rows], "n", ("Reason", "Count")) if rows else Markup()
    )


def _format_share(part: int, whole: int) -> str:
    return format_value(part / whole, "share") if whole else "\N{EM DASH}"


def _build_synonym_url(query: str) -> str:
    return f"/console/results?{urlencode({'kind': 'synonym', 'query': query}, errors='replace')}"
