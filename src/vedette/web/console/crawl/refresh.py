"""The console's Refresh page: how current pages are, what refreshing costs, whether forecasts are right."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from vedette.web.console.crawl.forecast import (
    CALIBRATION_TABLE,
    build_calibration_rows,
    describe_calibration,
    render_reliability_diagram,
)
from vedette.web.console.ports.monitoring import DuePage, Monitoring, RefreshStatus, RuntimeSettings
from vedette.web.console.ui.binned_counts import (
    BinnedCounts,
    get_bin_size,
    load_counts,
    render_binned_chart,
    sum_by_bin,
)
from vedette.web.console.ui.charts import Point
from vedette.web.console.ui.forms import FormValues, Problems, group_policies
from vedette.web.console.ui.layout import ConsoleShell
from vedette.web.console.ui.scales import format_interval
from vedette.web.console.ui.tables import Column, Table, csv_response, find_csv
from vedette.web.console.ui.time_series import TimeRange, build_range_links, parse_time_range, render_series
from vedette.web.formatting import stamp

PAGE_URL: Final = "/console/refresh"
REFRESH_SERIES: Final = ("refreshes", "wasted_share")
CHARTS: Final = ("current_share", "checked_in_time", "wasted_share", "price")
# The fields of the form, and the settings behind them.
FIELD_SETTINGS: Final[Mapping[str, str]] = {"policy": "refresh.policy", "budget": "crawl.budget"}
# Those that most people need; the others are for comparison, and are shown under "Research".
COMMON_POLICIES: Final = ("expected-gain", "nutch", "uniform")
POLICY_DESCRIPTIONS: Final[Mapping[str, str]] = {
    "expected-gain": "when the expected gain in search quality is worth the price; recommended",
    "freshness": "when a page has probably changed, with change rates pooled by site; all pages count the same",
    "lambdacrawl": "so that missed changes cost the least and no page is neglected",
    "user-centric": "first the pages whose earlier changes helped searches the most",
    "nutch": "at an interval that shortens when a page has changed and grows when it has not",
    "stormcrawler": "at an interval that grows by 50% while a page stays the same and halves when it changes",
    "uniform": "all pages in turn, equally often",
    "proportional": "in proportion to how often pages change; a baseline that is never fresher than uniform",
    "sbr": "so that copies are up to date except for small changes of the text",
    "ebr": "so that search results do not show pages whose matching text is gone",
    "greedy-c1": "when a page is most likely to have changed, one day at a time",
    "greedy-c2": "when a page has probably been out of date the longest, one day at a time",
    "n-day": "by planning several days ahead",
}


def fill_form_values(machine: RuntimeSettings) -> dict[str, str]:
    """Return the field values of the refresh settings form as currently set: policy and budget."""
    return {"policy": machine.policy, "budget": machine.budget}


def load_gains(monitoring: Monitoring, over: TimeRange, now_s: float) -> list[Point]:
    """Load the search gains of refreshes over a time range, from the first measurement on."""
    gains, step_s = monitoring.list_gains(now_s - over.span_s), get_bin_size(over)[0]
    begun_s = max(gains[0][0] - step_s, now_s - over.span_s) if gains else now_s
    return sum_by_bin(gains, begun_s, now_s, step_s)


def describe_due(page: DuePage) -> str:
    """Describe why a page is due for a refresh then: how often it changes, or the fixed rule for it."""
    if page.rate_d is None:
        return page.rule
    return f"changes {format_interval(page.rate_d, page.rate_low_d, page.rate_high_d)}"


_DUE_TABLE: Table[DuePage] = Table(
    (
        Column("page", "Page", lambda row: row.url),
        Column("due", "Due", lambda row: row.due_s, is_number=True),
        Column("chance", "Probably changed", lambda row: row.chance, is_number=True),
        Column("worth", "Worth now", lambda row: row.worth, is_number=True),
        Column("why", "Why", describe_due),
    ),
    prefix="soon",
)


@dataclass(frozen=True, slots=True)
class RefreshPage:
    """The console's Refresh page, and the POST handler that changes the refresh policy and budget."""

    shell: ConsoleShell
    monitoring: Monitoring

    def show(self, request: Request) -> Response:
        """Show the state of refreshing, or export one of its tables or charts as CSV."""
        refresh = self.monitoring.get_refresh_status()
        return self._find_csv(request, refresh) or self._render(request, refresh)

    def change_settings(self, request: Request) -> Response:
        """Set another refresh policy or budget, or show the Refresh page again with each field's problem."""
        return self.shell.save_settings(
            request,
            FIELD_SETTINGS,
            fill_form_values(self.monitoring.get_runtime_settings()),
            PAGE_URL,
            lambda form, problems: self._render(request, self.monitoring.get_refresh_status(), form, problems),
        )

    def _find_csv(self, request: Request, refresh: RefreshStatus) -> Response | None:
        over, now_s, csv = parse_time_range(request), self.shell.now_s(), request.query_params.get("csv")
        if csv == "won":
            rows = [(stamp(at_s), won) for at_s, won in load_gains(self.monitoring, over, now_s)]
            return csv_response("quality-won", ["when", f"quality gained {get_bin_size(over)[1]}"], rows)
        if csv == "refreshes":
            return load_counts(self.monitoring, over, now_s, REFRESH_SERIES).csv_response("refreshes", over)
        calibration = build_calibration_rows(refresh.calibration)
        tables = (CALIBRATION_TABLE, calibration, "calibration"), (_DUE_TABLE, refresh.soon, "due-next")
        return find_csv(request, *tables)

    def _render(
        self,
        request: Request,
        refresh: RefreshStatus,
        typed: FormValues | None = None,
        problems: Problems | None = None,
    ) -> Response:
        over, machine = parse_time_range(request), self.monitoring.get_runtime_settings()
        counts = load_counts(self.monitoring, over, self.shell.now_s(), REFRESH_SERIES)
        return self.shell.render_page(
            "refresh.html",
            request,
            here="refresh",
            title="Refresh",
            refresh=refresh,
            crawl=self.monitoring.get_crawl_status(),
            latest=self.monitoring.get_latest_values(),
            over=over,
            ways=build_range_links(request),
            counts=counts,
            charts=self._build_charts(counts, over),
            tenths=build_calibration_rows(refresh.calibration),
            trust=describe_calibration(refresh.calibration),
            reliability=render_reliability_diagram(refresh.calibration),
            seen=_DUE_TABLE.paginate(request, refresh.soon),
            machine=machine,
            typed={**fill_form_values(machine), **(typed or {})},
            policies=group_policies(POLICY_DESCRIPTIONS, COMMON_POLICIES),
            fields=FIELD_SETTINGS,
            problems=problems or {},
            why_then=describe_due,
        )

    def _build_charts(self, counts: BinnedCounts, over: TimeRange) -> list[Markup]:
        """Draw the refresh charts, those with two lines first, side by side."""
        watch, now_s, words = self.monitoring, self.shell.now_s(), get_bin_size(over)[1]
        refreshes, won = ("refreshes", f"Refreshes {words}", "n"), ("won", f"Quality gained {words}", "gain")
        return [
            render_binned_chart(PAGE_URL, refreshes, counts.all, (over, now_s), counts.second_line),
            render_series(watch, "change_found", over, now_s, "change_expected"),
            render_binned_chart(PAGE_URL, won, load_gains(watch, over, now_s), (over, now_s)),
            *(render_series(watch, name, over, now_s) for name in CHARTS),
        ]
