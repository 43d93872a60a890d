"""Time series on the console's pages: time ranges, charts, CSV files and trends."""

from dataclasses import dataclass
from statistics import median
from typing import NamedTuple
from urllib.parse import urlencode

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from vedette.adapters.event_store.time_series import SERIES
from vedette.timeutil import DAY_S
from vedette.web.auth.access import get_path
from vedette.web.console.ports.monitoring import Monitoring
from vedette.web.console.ui.charts import LineChart, SecondLine, render_line_chart
from vedette.web.console.ui.layout import ConsoleShell
from vedette.web.console.ui.scales import format_value
from vedette.web.console.ui.tables import csv_response
from vedette.web.formatting import stamp

CHART_POINTS = 240
MIN_SPAN_S = 60.0
MAX_CSV_ROWS = 20_000
SERIES_TITLES = {
    "pages": "Stored pages",
    "known": "Known URLs",
    "waiting": "URLs waiting",
    "coverage": "Coverage",
    "current_share": "Up to date, estimated",
    "quality": "Search quality, estimated",
    "views_current_share": "Views of current pages",
    "change_loss": "Lost by a missed change",
    "checked_in_time": "Fetched on time",
    "median_age_s": "Median page age",
    "price": "Price of a fetch",
    "refreshes": "Recent refreshes",
    "wasted_share": "Refreshes that found nothing new",
    "change_expected": "Predicted to have changed",
    "change_found": "Refreshes that found a change",
    "looks": "Recent polls",
    "looks_wasted_share": "Polls that found nothing new",
    "budget_per_s": "Fetch budget",
    "budget_spent_per_s": "Fetches",
    "budget_held_back": "Not worth the price",
    "fetches_per_s": "Requests per second",
    "archive_bytes": "Archive",
    "index_bytes": "Index",
    "state_bytes": "State",
    "record_bytes": "Search log",
    "disk_free_bytes": "Free disk space",
    "searches_per_h": "Searches per hour",
    "empty_share": "Searches without results",
    "click_share": "Searches with a click",
}


class TimeRange(NamedTuple):
    """A time range of the console's charts, which ends now."""

    name: str
    words: str
    lately: str
    span_s: float


TIME_RANGES = (
    TimeRange("hour", "1 hour", "hour", 3600.0),
    TimeRange("day", "1 day", "day", DAY_S),
    TimeRange("month", "30 days", "30 days", 30 * DAY_S),
)


class RangeLink(NamedTuple):
    """A link to the same console page with another time range."""

    words: str
    address: str
    is_here: bool


def parse_time_range(request: Request) -> TimeRange:
    """Parse the time range chosen in the request's URL; a day by default."""
    named = request.query_params.get("over", "")
    return next((over for over in TIME_RANGES if over.name == named), TIME_RANGES[1])


def build_range_links(request: Request) -> list[RangeLink]:
    """Build the links to the time ranges that the console's charts offer."""
    here = parse_time_range(request)
    return [
        RangeLink(over.words, f"{get_path(request)}?{urlencode({'over': over.name})}", over is here)
        for over in TIME_RANGES
    ]


def render_series(monitoring: Monitoring, name: str, over: TimeRange, now_s: float, other: str = "") -> Markup:
    """Draw a monitoring time series as a line chart, with a second series of the same unit if one is named."""
    words, unit = SERIES[name]
    params = {"name": name, "over": over.name, **({"other": other} if other else {})}
    since_s = now_s - over.span_s
    points = monitoring.load_series(name, since_s, CHART_POINTS)
    others = monitoring.load_series(other, since_s, CHART_POINTS) if other else []
    beside = SecondLine(SERIES_TITLES[other], others) if other else None
    begin_s, csv = _find_axis_start_s(points, over, now_s), f"/console/series.csv?{urlencode(params)}"
    return render_line_chart(LineChart(name, SERIES_TITLES[name], words, unit, points, begin_s, now_s, csv, beside))


def _find_axis_start_s(points: list[tuple[float, float]], over: TimeRange, now_s: float) -> float:
    """Return where a time series' axis starts: at its first value if that is recent, to avoid empty charts."""
    earliest_s = now_s - over.span_s
    first_s = points[0][0] if points else earliest_s
    return min(first_s, now_s - MIN_SPAN_S) if first_s > earliest_s + over.span_s / 4 else earliest_s


def describe_trend(points: list[tuple[float, float]], unit: str, over: TimeRange) -> str:
    """Describe how a time series changed over its time range; empty if that is unknown.

    >>> words = describe_trend([(0.0, 100.0), (86_000.0, 1300.0)], "n", TIME_RANGES[1])
    >>> words.replace("\N{NARROW NO-BREAK SPACE}", " ")
    '1 200 more in the last day'
    """
    if len(points) < 2:
        return ""
    (first_s, first), (last_s, last) = points[0], points[-1]
    # A number may be younger than the time range.
    since = f"in the last {over.lately}" if last_s - first_s > 0.9 * over.span_s else "since measuring began"
    if format_value(last - first, unit) == format_value(0.0, unit):
        return f"no change {since}"
    return f"{format_value(abs(last - first), unit)} {'more' if last > first else 'less'} {since}"


def compute_daily_growth(points: list[tuple[float, float]]) -> float | None:
    """Compute the growth a day of a time series; None if it spans less than a day.

    The median of the slopes between all pairs (Theil, Sen), so that one cleanup does not hide the growth.

    >>> compute_daily_growth([(0.0, 10.0), (86_400.0, 20.0), (172_800.0, 30.0)])
    10.0
    """
    if len(points) < 2 or points[-1][0] - points[0][0] < DAY_S:
        return None
    pairs = [(one, other) for place, one in enumerate(points) for other in points[place + 1 :] if other[0] > one[0]]
    return median((other[1] - one[1]) / (other[0] - one[0]) for one, other in pairs) * DAY_S


@dataclass(frozen=True, slots=True)
class SeriesExport:
    """CSV export of any monitoring time series."""

    shell: ConsoleShell
    monitoring: Monitoring

    def show(self, request: Request) -> Response:
        """Export a time series as CSV, with an optional second one; cells without a measurement are empty."""
        names = [request.query_params.get(key, "") for key in ("name", "other")]
        if names[0] not in SERIES or (names[1] and names[1] not in SERIES):
            return self.shell.not_found_page(request, message="There is no time series with this name.")
        names = [name for name in names if name]
        since_s = self.shell.now_s() - parse_time_range(request).span_s
        points, *others = (self.monitoring.load_series(name, since_s, MAX_CSV_ROWS) for name in names)
        beside = [dict(each) for each in others]
        rows = [(stamp(at_s), value, *(each.get(at_s) for each in beside)) for at_s, value in points]
        return csv_response(names[0], ["when", *(f"{name} ({SERIES[name].unit})" for name in names)], rows)
