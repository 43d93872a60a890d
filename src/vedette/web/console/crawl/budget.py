"""The console's Budget page: where the fetch budget went, at what price, and with what results."""

from dataclasses import dataclass
from statistics import fmean
from typing import Final

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from vedette.web.console.ports.monitoring import KIND_LABELS, DeferredLine, Monitoring, SpendingLine
from vedette.web.console.ui.layout import ConsoleShell
from vedette.web.console.ui.tables import Column, Table, find_csv
from vedette.web.console.ui.time_series import TimeRange, build_range_links, parse_time_range, render_series

# How many days the tables cover, by the name of the time range: they count by days.
_DAYS: Final = {"hour": 1, "day": 2, "month": 31}
_COLUMNS: Final = (
    Column[SpendingLine]("fetches", "Fetches", lambda row: row.fetches, is_number=True),
    Column[SpendingLine]("share", "Share", lambda row: row.share, is_number=True),
    Column[SpendingLine]("failed", "Failed", lambda row: row.failed, is_number=True),
    Column[SpendingLine]("changed", "New or changed", lambda row: row.changed, is_number=True),
    Column[SpendingLine]("found", "New URLs", lambda row: row.found, is_number=True),
    Column[SpendingLine]("gain", "Gain per fetch", lambda row: row.gain_per_fetch, is_number=True),
    Column[SpendingLine]("measured", "Measured", lambda row: row.measured, is_number=True),
    Column[SpendingLine]("seconds", "Connection time", lambda row: row.seconds, is_number=True),
    Column[SpendingLine]("bytes", "Downloaded", lambda row: row.bytes, is_number=True),
)
MAX_POINTS: Final = 4_000
OTHER_SITES: Final = "other sites or no site"


def label_kind(row: SpendingLine) -> str:
    """Return the label of a kind of fetch in the fetch budget tables."""
    return KIND_LABELS.get(row.name, row.name)


def label_site(row: SpendingLine) -> str:
    """Return the label of a site in the fetch budget tables."""
    return row.name or OTHER_SITES


def get_table_days(over: TimeRange) -> int:
    """Return how many days the fetch budget tables cover, including today."""
    return _DAYS[over.name]


_KIND_TABLE: Table[SpendingLine] = Table((Column("kind", "Purpose", label_kind), *_COLUMNS), prefix="kinds")
_SITE_TABLE: Table[SpendingLine] = Table(
    (
        Column("site", "Site", label_site),
        Column("part", "Reserved", lambda row: row.part, is_number=True),
        *_COLUMNS,
    ),
    prefix="sites",
    page_size=20,
)
_DEFERRED_TABLE: Table[DeferredLine] = Table(
    (
        Column("url", "URL", lambda row: row.url),
        Column("worth", "Worth", lambda row: row.worth, is_number=True),
        Column("price", "Price", lambda row: row.price, is_number=True),
    ),
    default_sort="-worth",
    prefix="held",
)


@dataclass(frozen=True, slots=True)
class BudgetPage:
    """The console's Budget page."""

    shell: ConsoleShell
    monitoring: Monitoring

    def show(self, request: Request) -> Response:
        """Show how the fetch budget was spent in the chosen time range, or export a table as CSV."""
        over = parse_time_range(request)
        report = self.monitoring.get_budget_report(get_table_days(over))
        tables = (
            (_KIND_TABLE, report.kinds, "budget-by-kind"),
            (_SITE_TABLE, report.sites, "budget-by-site"),
            (_DEFERRED_TABLE, report.held, "not-worth-the-price"),
        )
        if file := find_csv(request, *tables):
            return file
        spent = self._compute_spending_per_s(over) if report.per_s else None
        return self.shell.render_page(
            "budget.html",
            request,
            here="budget",
            title="Budget",
            report=report,
            crawl=self.monitoring.get_crawl_status(),
            over=over,
            ways=build_range_links(request),
            kinds=_KIND_TABLE.paginate(request, report.kinds),
            sites=_SITE_TABLE.paginate(request, report.sites),
            held=_DEFERRED_TABLE.paginate(request, report.held),
            spent_share=spent / report.per_s if spent is not None and report.per_s else None,
            spent_per_s=spent,
            gain=sum(line.gain for line in report.kinds),
            measured=sum(line.measured for line in report.kinds),
            charts=self._build_charts(over, has_budget=report.per_s is not None) if report.fetches else [],
            kind_words=label_kind,
            site_words=label_site,
        )

    def _compute_spending_per_s(self, over: TimeRange) -> float | None:
        """Compute the mean fetches per second compared with the budget in the chosen range; None without data."""
        since_s = self.shell.now_s() - over.span_s
        limits = self.monitoring.load_series("budget_per_s", since_s, MAX_POINTS)
        spent = self.monitoring.load_series("budget_spent_per_s", limits[0][0], MAX_POINTS) if limits else []
        return fmean(value for _, value in spent) if spent else None

    def _build_charts(self, over: TimeRange, *, has_budget: bool) -> list[Markup]:
        now_s = self.shell.now_s()
        if not has_budget:
            return [render_series(self.monitoring, "budget_spent_per_s", over, now_s)]
        return [
            render_series(self.monitoring, "budget_spent_per_s", over, now_s, "budget_per_s"),
            render_series(self.monitoring, "price", over, now_s),
            render_series(self.monitoring, "budget_held_back", over, now_s),
        ]
