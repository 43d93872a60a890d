"""The console's New pages page: discovery delay, the sources of new pages, and wasted polls."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median, quantiles
from typing import Final, NamedTuple

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from vedette.timeutil import DAY_S, HOUR_S, MINUTE_S
from vedette.web.console.ports.monitoring import FoundPage, Monitoring, RuntimeSettings, SourceLine
from vedette.web.console.ui.binned_counts import BinnedCounts, get_bin_size, load_counts, render_binned_chart
from vedette.web.console.ui.charts import MIN_POINTS, Point, render_bar_table
from vedette.web.console.ui.forms import FormValues, Problems, group_policies
from vedette.web.console.ui.layout import ConsoleShell
from vedette.web.console.ui.scales import format_value
from vedette.web.console.ui.tables import Column, Table, csv_response, find_csv
from vedette.web.console.ui.time_series import TimeRange, build_range_links, parse_time_range
from vedette.web.formatting import THIN, stamp

# A publication time is the date that a page states, or the feed or sitemap that listed it. Others are unknown, and a
# date without a time of day says nothing about minutes: such pages are counted, but left out of all delays.
_DELAY_BINS = (
    (MINUTE_S, f"within 1{THIN}min"),
    (5 * MINUTE_S, f"1 to 5{THIN}min"),
    (15 * MINUTE_S, f"5 to 15{THIN}min"),
    (HOUR_S, f"15 to 60{THIN}min"),
    (6 * HOUR_S, f"1 to 6{THIN}hours"),
    (DAY_S, f"6 to 24{THIN}hours"),
)
MORE_THAN_A_DAY = "more than a day"
DATE_ONLY, NO_DATE = "date only, no time", "no date"


class DelaySummary(NamedTuple):
    """Summary of discovery delays: pages found, pages with a known publication time, median and quartiles.

    Median and quartiles are None if no publication time is known.
    """

    pages: int
    known: int
    by_day: int
    low_s: float | None = None
    median_s: float | None = None
    high_s: float | None = None

    @property
    def undated(self) -> int:
        """Return how many newly discovered pages state no date."""
        return self.pages - self.known - self.by_day


def compute_delay(page: FoundPage) -> float | None:
    """Compute a new page's discovery delay, from publication until it was found; None if not known to the minute.

    >>> [compute_delay(FoundPage(90_090.0, born_s)) for born_s in (90_000.0, 86_400.0, None)]
    [90.0, None, None]
    """
    return None if page.born_s is None or _is_date_only(page.born_s) else max(page.found_s - page.born_s, 0.0)


def _is_date_only(born_s: float) -> bool:
    """Check whether a page's publication date lacks a time of day; exact midnight counts as that."""
    return born_s % DAY_S == 0


def compute_delays(pages: Sequence[FoundPage]) -> list[float]:
    """Return the known discovery delays of new pages, sorted."""
    return sorted(delay for page in pages if (delay := compute_delay(page)) is not None)


def summarize_delays(pages: Sequence[FoundPage]) -> DelaySummary:
    """Summarize discovery delays: median, quartiles, and how many pages are undated.

    >>> spread = summarize_delays([FoundPage(100.0 + each, 100.0) for each in (60, 120, 600)] + [FoundPage(7.0)])
    >>> spread.median_s, spread.low_s, spread.high_s, spread.undated
    (120.0, 90.0, 360.0, 1)
    """
    delays = compute_delays(pages)
    by_day = sum(page.born_s is not None and _is_date_only(page.born_s) for page in pages)
    if not delays:
        return DelaySummary(len(pages), 0, by_day)
    low_s, median_s, high_s = quantiles(delays, n=4, method="inclusive") if len(delays) > 1 else delays * 3
    return DelaySummary(len(pages), len(delays), by_day, low_s, median_s, high_s)


def count_by_delay(pages: Sequence[FoundPage]) -> list[tuple[str, float]]:
    """Count newly discovered pages by discovery delay, with pages of unknown publication time last.

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
    """Compute the median discovery delay per time bin; empty bins are left out."""
    found: dict[int, list[float]] = {}
    for page in pages:
        delay_s = compute_delay(page)
        if delay_s is not None and since_s <= page.found_s <= now_s:
            found.setdefault(int((now_s - page.found_s) / step_s), []).append(delay_s)
    return [(now_s - back * step_s, median(found[back])) for back in sorted(found, reverse=True)]


def describe_dates(spread: DelaySummary) -> str:
    """Describe how many newly discovered pages state their publication time, and why not all do.

    >>> describe_dates(DelaySummary(5, 2, 1)), describe_dates(DelaySummary(1, 1, 0, 1.0, 1.0, 1.0))
    ('2 of 5 new pages state their publication time; 1 has only a date, 2 have no date.', '')
    """
    if spread.known == spread.pages:
        return ""
    rest = ((spread.by_day, "only a date"), (spread.undated, "no date"))
    reasons = ", ".join(f"{count} {'has' if count == 1 else 'have'} {words}" for count, words in rest if count)
    pages = "1 new page" if spread.pages == 1 else f"{spread.pages} new pages"
    return (
        f"{spread.known} of {pages} {'states its' if spread.known == 1 else 'state their'} publication time; {reasons}."
    )


PAGE_URL: Final = "/console/discovery"
POLL_SERIES: Final = ("looks", "looks_wasted_share")
FIELD_SETTINGS: Final[Mapping[str, str]] = {"policy": "crawl.discovery_policy"}
COMMON_POLICIES: Final = ("accrual", "thompson", "round-robin")
# The name of each setting is that of its policy, with a prefix for research.
POLICY_DESCRIPTIONS: Final[Mapping[str, str]] = {
    "accrual": "those where waiting longer would cost most; recommended",
    "thompson": "by Thompson sampling of their expected yields; the best of the published policies",
    "round-robin": "all in turn, equally often",
    "research:batch-bandit": "by upper confidence bounds, in batches",
    "research:pham": "mostly by predicted yield, the rest by time since the last poll",
    "research:pham-scaled": "the same, with yields scaled by the largest yield of any poll",
    "research:random": "at random: a baseline",
}

SOURCE_TABLE: Table[SourceLine] = Table(
    (
        Column("source", "Source", lambda row: row.url),
        Column("rate", "New links per day", lambda row: row.rate_d, is_number=True),
        Column("looks", "Polls", lambda row: row.looks, is_number=True),
        Column("found", "New links", lambda row: row.found, is_number=True),
        Column("wasted", "Wasted", lambda row: row.wasted, is_number=True),
        Column("due", "Next poll", lambda row: row.due_s, is_number=True),
        Column("why", "Why", lambda row: row.why),
    ),
    default_sort="-rate",
    prefix="sources",
)


def format_daily_rate(rate_d: float) -> str:
    """Format a discovery source's daily rate of new links with two significant digits.

    >>> format_daily_rate(0.0347), format_daily_rate(12.3), format_daily_rate(0.0), format_daily_rate(4.0)
    ('0.035', '12', '0', '4')
    """
    return format_value(rate_d, "n") if rate_d >= 0.001 else "0"


def format_rate_interval(row: SourceLine) -> str:
    """Format the interval of a discovery source's daily rate of new links.

    >>> format_rate_interval(SourceLine("", 2.0, 1.0, 4.0, 0.0, 0, 0, 0, None, ""))
    '1 to 4'
    """
    return f"{format_daily_rate(row.low_d)} to {format_daily_rate(row.high_d)}"


def fill_form_values(machine: RuntimeSettings) -> dict[str, str]:
    """Return the field values of the discovery settings form as currently set."""
    return {"policy": machine.discovery}


@dataclass(frozen=True, slots=True)
class DiscoveryPage:
    """The console's page on discovery (New pages), and the POST handler that changes the discovery policy."""

    shell: ConsoleShell
    monitoring: Monitoring

    def change_settings(self, request: Request) -> Response:
        """Set another discovery policy, or show the page again with the problem."""
        return self.shell.save_settings(
            request,
            FIELD_SETTINGS,
            fill_form_values(self.monitoring.get_runtime_settings()),
            PAGE_URL,
            lambda form, problems: self.show(request, form, problems),
        )

    def show(self, request: Request, typed: FormValues | None = None, problems: Problems | None = None) -> Response:
        """Show the state of discovery over the chosen time range, or export a table or chart as CSV."""
        found, over, now_s = self.monitoring.get_discovery_report(), parse_time_range(request), self.shell.now_s()
        pages = [page for page in found.pages if page.found_s >= now_s - over.span_s]
        delays = compute_medians(found.pages, now_s - over.span_s, now_s, get_bin_size(over)[0])
        counts = load_counts(self.monitoring, over, now_s, POLL_SERIES)
        csv = request.query_params.get("csv")
        if csv == "births":
            return csv_response("births", ["discovery delay", "pages"], count_by_delay(pages))
        if csv == "delays":
            rows = [(stamp(at_s), delay_s) for at_s, delay_s in delays]
            return csv_response("delays", ["when", "median discovery delay, s"], rows)
        if csv == "looks":
            return counts.csv_response("polls", over)
        if file := find_csv(request, (SOURCE_TABLE, found.sources, "sources")):
            return file
        spread, machine = summarize_delays(pages), self.monitoring.get_runtime_settings()
        bars = render_bar_table(count_by_delay(pages), "n", ("Time since publication", "Pages"))
        return self.shell.render_page(
            "discovery.html",
            request,
            here="discovery",
            title="New pages",
            found=found,
            crawl=self.monitoring.get_crawl_status(),
            over=over,
            ways=build_range_links(request),
            seen=SOURCE_TABLE.paginate(request, found.sources),
            pages=pages,
            spread=spread,
            about_dates=describe_dates(spread),
            bars=bars if pages else Markup(),
            counts=counts,
            charts=_build_charts(delays, counts, over, now_s),
            here_address=PAGE_URL,
            a_day=format_daily_rate,
            between=format_rate_interval,
            machine=machine,
            typed={**fill_form_values(machine), **(typed or {})},
            policies=group_policies(POLICY_DESCRIPTIONS, COMMON_POLICIES),
            fields=FIELD_SETTINGS,
            problems=problems or {},
        )


def _build_charts(delays: list[Point], counts: BinnedCounts, over: TimeRange, now_s: float) -> list[Markup]:
    """Draw the discovery charts: median delay if there is enough data, and polls with the wasted ones."""
    what = ("looks", f"Polls {get_bin_size(over)[1]}", "n")
    looks = render_binned_chart(PAGE_URL, what, counts.all, (over, now_s), counts.second_line)
    if len(delays) < MIN_POINTS:
        return [looks]
    return [
        render_binned_chart(PAGE_URL, ("delays", "Median discovery delay", "s"), delays, (over, now_s)),
        looks,
    ]
