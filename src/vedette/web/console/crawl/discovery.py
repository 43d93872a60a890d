"""The console's page on finding new pages: how soon they are found, which sources name them, which looks are wasted."""

from dataclasses import dataclass
from typing import Any, Final

from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from vedette.web.console.crawl.births import by_delay, medians, said_of, spread_of
from vedette.web.console.crawl.refresh_counts import Counts, counts_of, step_of
from vedette.web.console.explain.page import explained_at
from vedette.web.console.explain.refresh_text import per_cent
from vedette.web.console.ports.discovery_ports import Discovery, FoundPage, SourceLine
from vedette.web.console.ports.monitoring import Watch
from vedette.web.console.ui.charts import FEWEST, Line, Other, Point, bars, line_chart
from vedette.web.console.ui.layout import Shell
from vedette.web.console.ui.scales import said
from vedette.web.console.ui.tables import Column, Table, csv_answer
from vedette.web.console.ui.time_series import Over, over_of, ways
from vedette.web.formatting import THIN, stamp

__all__ = ["a_day", "discovering_routes"]

HERE: Final = "/console/discovery"
LOOKS: Final = ("looks", "looks_wasted_share")

SOURCES: Table[SourceLine] = Table(
    (
        Column("source", "Source", lambda row: row.url),
        Column("rate", "New links a day", lambda row: row.rate_d, is_number=True),
        Column("looks", "Looks", lambda row: row.looks, is_number=True),
        Column("found", "Found", lambda row: row.found, is_number=True),
        Column("wasted", "In vain", lambda row: row.wasted, is_number=True),
        Column("due", "Next look", lambda row: row.due_s, is_number=True),
        Column("why", "Why then", lambda row: row.why),
    ),
    by="-rate",
    key="sources",
)


def a_day(rate_d: float) -> str:
    """A rate in a table, with two digits that count.

    >>> a_day(0.0347), a_day(12.3), a_day(0.0), a_day(4.0)
    ('0.035', '12', '0', '4')
    """
    return said(rate_d, "n") if rate_d >= 0.001 else "0"


def between(row: SourceLine) -> str:
    """The ends of what its rate may be.

    >>> between(SourceLine("", 2.0, 1.0, 4.0, 0.0, 0, 0, 0, None, ""))
    '1 to 4'
    """
    return f"{a_day(row.low_d)} to {a_day(row.high_d)}"


def discovering_routes(shell: Shell, watch: Watch) -> list[Route]:
    """The page; its tables and charts are files, too."""
    return [Route("/discovery", _Discovering(shell, watch).shown)]


@dataclass(frozen=True, slots=True)
class _Discovering:
    """The handler, with what it needs."""

    shell: Shell
    watch: Watch

    async def shown(self, request: Request) -> Response:
        """How it goes over the time that was chosen."""
        found, over = await run_in_threadpool(self.watch.discovery), over_of(request)
        file = await run_in_threadpool(self._file, request, found, over)
        if file is not None:
            return file
        told = await run_in_threadpool(self._told, found, over)
        told |= {"seen": SOURCES.seen(request, found.sources), "ways": ways(request)}
        return self.shell.page("discovery.html", request, here="discovery", title="New pages", **told)

    def _file(self, request: Request, found: Discovery, over: Over) -> Response | None:
        """The table or chart that is asked for as a file; None where none is."""
        if SOURCES.wants_csv(request):
            return SOURCES.csv(request, found.sources, "sources")
        asked, now_s = request.query_params.get("csv"), self.shell.now_s()
        if asked == "births":
            rows = by_delay(_lately(found, over, now_s))
            return csv_answer("births", ["found after its birth", "pages"], rows)
        if asked == "delays":
            points = _delays(found, over, now_s)
            return csv_answer("delays", ["when", "median s from birth"], [(stamp(at_s), each) for at_s, each in points])
        if asked == "looks":
            return _looks_file(counts_of(self.watch, over, now_s, LOOKS), over)
        return None

    def _told(self, found: Discovery, over: Over) -> dict[str, Any]:
        now_s = self.shell.now_s()
        pages = _lately(found, over, now_s)
        spread, counts = spread_of(pages), counts_of(self.watch, over, now_s, LOOKS)
        return {
            "found": found,
            "crawl": self.watch.crawl(),
            "over": over,
            "pages": pages,
            "spread": spread,
            "about_dates": said_of(spread),
            "bars": bars(by_delay(pages), "n", ("Found after its birth", "Pages")) if pages else Markup(),
            "counts": counts,
            "charts": _charts(found, counts, over, now_s),
            "here_address": HERE,
            "explained_at": explained_at,
            "a_day": a_day,
            "between": between,
            "per_cent": per_cent,
            "said": said,
        }


def _charts(found: Discovery, counts: Counts, over: Over, now_s: float) -> list[Markup]:
    """Delays where there are enough for a line, and looks with those of them that were in vain."""
    words, other = step_of(over)[1], Other("of these found nothing new", counts.wasted)
    looks = _line(("looks", f"Looks at sources {words}", "n"), counts.all, over, now_s, other)
    delays = _delays(found, over, now_s)
    if len(delays) < FEWEST:
        return [looks]
    return [_line(("delays", "Median from birth to discovery", "s"), delays, over, now_s), looks]


def _lately(found: Discovery, over: Over, now_s: float) -> list[FoundPage]:
    return [page for page in found.pages if page.found_s >= now_s - over.span_s]


def _delays(found: Discovery, over: Over, now_s: float) -> list[Point]:
    return medians(found.pages, now_s - over.span_s, now_s, step_of(over)[0])


def _line(
    what: tuple[str, str, str], points: list[Point], over: Over, now_s: float, other: Other | None = None
) -> Markup:
    """A chart of amounts in stretches of time."""
    name, title, unit = what
    begun_s = points[0][0] if points else now_s - over.span_s
    csv = f"{HERE}?csv={name}&over={over.name}"
    return line_chart(Line(name, title, title, unit, points, min(begun_s, now_s - 1.0), now_s, csv, other))


def _looks_file(counts: Counts, over: Over) -> Response:
    pairs = zip(counts.all, counts.wasted, strict=True)
    rows = [(stamp(at_s), round(count, 1), round(wasted, 1)) for (at_s, count), (_, wasted) in pairs]
    return csv_answer("looks", ["when", f"looks {step_of(over)[1]}".replace(THIN, " "), "found nothing new"], rows)
