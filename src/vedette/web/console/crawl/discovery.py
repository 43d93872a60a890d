"""The console's page on finding new pages: how soon they are found, which sources name them, which looks are wasted."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Final, NamedTuple

from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from vedette.timeutil import DAY_S, HOUR_S, MINUTE_S
from vedette.web.console.crawl.refresh import BinnedCounts, get_bin_size, load_counts
from vedette.web.console.explain.page import build_explain_url
from vedette.web.console.explain.refresh_text import format_percent
from vedette.web.console.ports.monitoring import DiscoveryReport, FoundPage, Monitoring, SourceLine
from vedette.web.console.ui.charts import MIN_POINTS, LineChart, Point, SecondLine, render_bar_table, render_line_chart
from vedette.web.console.ui.layout import ConsoleShell
from vedette.web.console.ui.scales import format_value
from vedette.web.console.ui.tables import Column, Table, csv_response
from vedette.web.console.ui.time_series import TimeRange, build_range_links, parse_time_range
from vedette.web.formatting import THIN, stamp

# A birth is the date that a page states, or the feed or sitemap that named it. Nobody knows others, and a date
# without a time of day says nothing of minutes: such pages are counted, and left out of all times.


_DELAY_BINS = (
    (MINUTE_S, f"within 1{THIN}min"),
    (5 * MINUTE_S, f"1 to 5{THIN}min"),
    (15 * MINUTE_S, f"5 to 15{THIN}min"),
    (HOUR_S, f"15 to 60{THIN}min"),
    (6 * HOUR_S, f"1 to 6{THIN}hours"),
    (DAY_S, f"6 to 24{THIN}hours"),
)
MORE_THAN_A_DAY = "more than a day"
DATE_ONLY, NO_DATE = "only the day is stated", "no date is stated"


class DelaySummary(NamedTuple):
    """How many pages were found, of how many the time of birth is known, and how those delays lie.

    Quarters are None where no birth is known.
    """

    pages: int
    known: int
    by_day: int
    low_s: float | None = None
    median_s: float | None = None
    high_s: float | None = None

    @property
    def undated(self) -> int:
        """Pages of which nobody states a date."""
        return self.pages - self.known - self.by_day


def compute_delay(page: FoundPage) -> float | None:
    """From its birth to its discovery; None where that is not known to the minute.

    >>> compute_delay(FoundPage(90_090.0, 90_000.0)), compute_delay(FoundPage(90_090.0, 86_400.0)), compute_delay(FoundPage(9.0))
    (90.0, None, None)
    """
    return None if page.born_s is None or _is_date_only(page.born_s) else max(page.found_s - page.born_s, 0.0)


def _is_date_only(born_s: float) -> bool:
    """Whether a date has no time of day; one born at midnight to the second is taken for such."""
    return born_s % DAY_S == 0


def compute_delays(pages: Sequence[FoundPage]) -> list[float]:
    """Those that are known, in order of size."""
    return sorted(delay for page in pages if (delay := compute_delay(page)) is not None)


def summarize_delays(pages: Sequence[FoundPage]) -> DelaySummary:
    """The middle and the quarters.

    >>> spread = summarize_delays([FoundPage(100.0 + each, 100.0) for each in (60, 120, 600)] + [FoundPage(7.0)])
    >>> spread.median_s, spread.low_s, spread.high_s, spread.undated
    (120.0, 90.0, 360.0, 1)
    """
    delays = compute_delays(pages)
    by_day = sum(page.born_s is not None and _is_date_only(page.born_s) for page in pages)
    if not delays:
        return DelaySummary(len(pages), 0, by_day)
    low_s, high_s = (_quantile(delays, part) for part in (0.25, 0.75))
    return DelaySummary(len(pages), len(delays), by_day, low_s, median(delays), high_s)


def _quantile(values: Sequence[float], part: float) -> float:
    """Of sorted values, straight between neighbours."""
    at = part * (len(values) - 1)
    below = int(at)
    above = min(below + 1, len(values) - 1)
    return values[below] + (at - below) * (values[above] - values[below])


def count_by_delay(pages: Sequence[FoundPage]) -> list[tuple[str, float]]:
    """How many pages were found how soon; those of unknown birth at the end, where there are any.

    >>> [count for _, count in count_by_delay([FoundPage(130.0, 100.0), FoundPage(1e9, 100.0), FoundPage(1.0)])]
    [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0]
    """
    counts = dict.fromkeys((*(words for _, words in _DELAY_BINS), MORE_THAN_A_DAY), 0.0)
    for delay_s in compute_delays(pages):
        counts[next((words for most_s, words in _DELAY_BINS if delay_s <= most_s), MORE_THAN_A_DAY)] += 1
    spread = summarize_delays(pages)
    unknown = {DATE_ONLY: float(spread.by_day), NO_DATE: float(spread.undated)}
    return [*counts.items(), *((words, count) for words, count in unknown.items() if count)]


def compute_medians(pages: Sequence[FoundPage], since_s: float, now_s: float, step_s: float) -> list[Point]:
    """The middle delay of the pages that were found in each stretch of time, at its end; none where none was."""
    found: dict[int, list[float]] = {}
    for page in pages:
        delay_s = compute_delay(page)
        if delay_s is not None and since_s <= page.found_s <= now_s:
            found.setdefault(int((now_s - page.found_s) / step_s), []).append(delay_s)
    return [(now_s - back * step_s, median(found[back])) for back in sorted(found, reverse=True)]


def describe_dates(spread: DelaySummary) -> str:
    """Of how many pages times are told, and why not of all.

    >>> describe_dates(DelaySummary(5, 2, 1)), describe_dates(DelaySummary(1, 1, 0, 1.0, 1.0, 1.0))
    ('Of 5 new pages 2 state when they were made, 1 only the day, 2 nothing.', '')
    """
    if spread.known == spread.pages:
        return ""
    rest = ((spread.by_day, "only the day"), (spread.undated, "nothing"))
    told = ", ".join(f"{count} {words}" for count, words in rest if count)
    pages = "1 new page" if spread.pages == 1 else f"{spread.pages} new pages"
    return f"Of {pages} {spread.known} state when they were made, {told}."


PAGE_URL: Final = "/console/discovery"
POLL_SERIES: Final = ("looks", "looks_wasted_share")

SOURCE_TABLE: Table[SourceLine] = Table(
    (
        Column("source", "Source", lambda row: row.url),
        Column("rate", "New links a day", lambda row: row.rate_d, is_number=True),
        Column("looks", "Looks", lambda row: row.looks, is_number=True),
        Column("found", "Found", lambda row: row.found, is_number=True),
        Column("wasted", "In vain", lambda row: row.wasted, is_number=True),
        Column("due", "Next look", lambda row: row.due_s, is_number=True),
        Column("why", "Why then", lambda row: row.why),
    ),
    default_sort="-rate",
    prefix="sources",
)


def format_daily_rate(rate_d: float) -> str:
    """A rate in a table, with two digits that count.

    >>> format_daily_rate(0.0347), format_daily_rate(12.3), format_daily_rate(0.0), format_daily_rate(4.0)
    ('0.035', '12', '0', '4')
    """
    return format_value(rate_d, "n") if rate_d >= 0.001 else "0"


def format_rate_interval(row: SourceLine) -> str:
    """The ends of what its rate may be.

    >>> format_rate_interval(SourceLine("", 2.0, 1.0, 4.0, 0.0, 0, 0, 0, None, ""))
    '1 to 4'
    """
    return f"{format_daily_rate(row.low_d)} to {format_daily_rate(row.high_d)}"


def discovery_routes(shell: ConsoleShell, watch: Monitoring) -> list[Route]:
    """The page; its tables and charts are files, too."""
    return [Route("/discovery", _DiscoveryPage(shell, watch).show)]


@dataclass(frozen=True, slots=True)
class _DiscoveryPage:
    """The handler, with what it needs."""

    shell: ConsoleShell
    monitoring: Monitoring

    async def show(self, request: Request) -> Response:
        """How it goes over the time that was chosen."""
        found, over = await run_in_threadpool(self.monitoring.get_discovery_report), parse_time_range(request)
        file = await run_in_threadpool(self._csv_response, request, found, over)
        if file is not None:
            return file
        told = await run_in_threadpool(self._build_context, found, over)
        told |= {"seen": SOURCE_TABLE.paginate(request, found.sources), "ways": build_range_links(request)}
        return self.shell.render_page("discovery.html", request, here="discovery", title="New pages", **told)

    def _csv_response(self, request: Request, found: DiscoveryReport, over: TimeRange) -> Response | None:
        """The table or chart that is asked for as a file; None where none is."""
        if SOURCE_TABLE.wants_csv(request):
            return SOURCE_TABLE.csv_response(request, found.sources, "sources")
        asked, now_s = request.query_params.get("csv"), self.shell.now_s()
        if asked == "births":
            rows = count_by_delay(_select_recent(found, over, now_s))
            return csv_response("births", ["found after its birth", "pages"], rows)
        if asked == "delays":
            points = _compute_medians(found, over, now_s)
            return csv_response(
                "delays", ["when", "median s from birth"], [(stamp(at_s), each) for at_s, each in points]
            )
        if asked == "looks":
            return _export_polls(load_counts(self.monitoring, over, now_s, POLL_SERIES), over)
        return None

    def _build_context(self, found: DiscoveryReport, over: TimeRange) -> dict[str, Any]:
        now_s = self.shell.now_s()
        pages = _select_recent(found, over, now_s)
        spread, counts = summarize_delays(pages), load_counts(self.monitoring, over, now_s, POLL_SERIES)
        return {
            "found": found,
            "crawl": self.monitoring.get_crawl_status(),
            "over": over,
            "pages": pages,
            "spread": spread,
            "about_dates": describe_dates(spread),
            "bars": render_bar_table(count_by_delay(pages), "n", ("Found after its birth", "Pages"))
            if pages
            else Markup(),
            "counts": counts,
            "charts": _build_charts(found, counts, over, now_s),
            "here_address": PAGE_URL,
            "explained_at": build_explain_url,
            "a_day": format_daily_rate,
            "between": format_rate_interval,
            "per_cent": format_percent,
            "said": format_value,
        }


def _build_charts(found: DiscoveryReport, counts: BinnedCounts, over: TimeRange, now_s: float) -> list[Markup]:
    """Delays where there are enough for a line, and looks with those of them that were in vain."""
    words, other = get_bin_size(over)[1], SecondLine("of these found nothing new", counts.wasted)
    looks = _build_chart(("looks", f"Looks at sources {words}", "n"), counts.all, over, now_s, other)
    delays = _compute_medians(found, over, now_s)
    if len(delays) < MIN_POINTS:
        return [looks]
    return [_build_chart(("delays", "Median from birth to discovery", "s"), delays, over, now_s), looks]


def _select_recent(found: DiscoveryReport, over: TimeRange, now_s: float) -> list[FoundPage]:
    return [page for page in found.pages if page.found_s >= now_s - over.span_s]


def _compute_medians(found: DiscoveryReport, over: TimeRange, now_s: float) -> list[Point]:
    return compute_medians(found.pages, now_s - over.span_s, now_s, get_bin_size(over)[0])


def _build_chart(
    what: tuple[str, str, str], points: list[Point], over: TimeRange, now_s: float, other: SecondLine | None = None
) -> Markup:
    """A chart of amounts in stretches of time."""
    name, title, unit = what
    begun_s = points[0][0] if points else now_s - over.span_s
    csv = f"{PAGE_URL}?csv={name}&over={over.name}"
    return render_line_chart(LineChart(name, title, title, unit, points, min(begun_s, now_s - 1.0), now_s, csv, other))


def _export_polls(counts: BinnedCounts, over: TimeRange) -> Response:
    pairs = zip(counts.all, counts.wasted, strict=True)
    rows = [(stamp(at_s), round(count, 1), round(wasted, 1)) for (at_s, count), (_, wasted) in pairs]
    return csv_response(
        "looks", ["when", f"looks {get_bin_size(over)[1]}".replace(THIN, " "), "found nothing new"], rows
    )
