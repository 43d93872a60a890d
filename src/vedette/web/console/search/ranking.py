"""The console's Ranking page: explored pages, learning from clicks, and whether it improves results."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from vedette.errors import UsageError, VedetteError
from vedette.learn.clicks.off_policy import (
    LEARNED_ONLY,
    MIN_EFFECTIVE,
    RELEVANCE_ONLY,
    WITH_TRIALS,
    Estimate,
    OrderEstimate,
)
from vedette.learn.clicks.rollback_guard import MIN_PEOPLE, Arm
from vedette.web.commands.commands import SetMachine
from vedette.web.console.ports.monitoring import ExploredPage, Monitoring, RankingReport
from vedette.web.console.ui.layout import ConsoleShell, read_form
from vedette.web.console.ui.scales import format_percent
from vedette.web.console.ui.tables import Column, Table, find_csv
from vedette.web.formatting import sentence
from vedette.web.ports import SearchService

LEARN_SETTING = "serve.learn"
PROMOTION_SETTING = "serve.promotion"
_LEARN_CHOICES: Mapping[str, str | None] = {"on": "true", "off": "false", "configured": None}
PROMOTION_DESCRIPTIONS: Mapping[str, str] = {
    "prospect": "those where one more view would teach the most; recommended",
    "selective": "pages that no one has seen, all with the same probability",
    "relaxed-selective": "pages that hardly anyone has seen, all with the same probability",
}
ORDER_LABELS: Mapping[str, str] = {
    RELEVANCE_ONLY: "Relevance alone",
    LEARNED_ONLY: "Learning without trials",
    WITH_TRIALS: "Learning with trials",
}
# How many views are informative, and how much better or worse than average is worth mentioning.
MIN_LOOKS = 5.0
BETTER, WORSE = 1.2, 0.8


def describe_outcome(page: ExploredPage, general: float) -> str:
    """Describe the outcome of exploring a page in search results.

    >>> describe_outcome(ExploredPage("u", 0.0, 9, 5, 8.0, 12.0, 0.5), 0.2)
    'liked'
    >>> describe_outcome(ExploredPage("u", 0.0, 9, 0, 0.0, 1.0, 0.2), 0.2)
    'too few views yet'
    """
    if page.looks < MIN_LOOKS or general <= 0:
        return "too few views yet"
    ratio = page.expected / general
    return "liked" if ratio >= BETTER else "not liked" if ratio <= WORSE else "average"


def format_interval(arm: Arm) -> str:
    """Format the quality per click of a ranking arm with its 95% interval; a dash without data.

    >>> format_interval(Arm(50, 90, 0.62, 0.05)), format_interval(Arm(0, 0, 0.0, math.inf))
    ('0.62 (0.57 to 0.67)', '—')
    """
    if not arm.clicks:
        return "\N{EM DASH}"
    if not math.isfinite(arm.half_width):
        return f"{arm.quality:.2f}"
    low, high = max(arm.quality - arm.half_width, 0.0), min(arm.quality + arm.half_width, 1.0)
    return f"{arm.quality:.2f} ({low:.2f} to {high:.2f})"


def describe_verdict(report: RankingReport) -> str:
    """Describe whether learned ranking beats plain ranking, no more certain than the data are."""
    if not report.is_enough or not math.isfinite(report.difference_give_or_take):
        fewest = min(report.learned.people, report.plain.people)
        return f"Too early to say: each group needs clicks from {MIN_PEOPLE} visitors; the smaller one has {fewest}."
    low, high = (report.difference + sign * report.difference_give_or_take for sign in (-1, 1))
    ends = f"the difference is {low:+.2f} to {high:+.2f} (95% confidence interval)"
    if low > 0:
        return f"Clicks are worth more with learning: {ends}."
    if high < 0:
        return f"Clicks are worth less with learning: {ends}. The guard turns it off once that is certain."
    return f"No significant difference so far: {ends}."


def format_estimate(found: Estimate) -> str:
    """Format the off-policy estimate of successful searches for a ranking order, or why there is none yet.

    >>> format_estimate(Estimate(0.41, 0.36, 0.46, 230.0, ""))
    '41% (36% to 46%)'
    >>> format_estimate(Estimate(0.41, 0.0, 0.9, 12.0, "not enough data"))
    'not enough data'
    """
    if found.caveat:
        return found.caveat
    low, high = max(found.low, 0.0), min(found.high, 1.0)
    return f"{format_percent(found.value)} ({format_percent(low)} to {format_percent(high)})"


def describe_orders(orders: tuple[OrderEstimate, ...]) -> str:
    """Describe how alternative ranking orders compare, claiming only what separate intervals show."""
    by_name = {order.name: order for order in orders}
    ours, others = by_name.get(WITH_TRIALS), [order for order in orders if order.name != WITH_TRIALS]
    if ours is None or ours.robust.caveat or all(order.robust.caveat for order in others):
        most = max((order.robust.effective for order in others), default=0.0)
        needed = f"a ranking needs {MIN_EFFECTIVE:.0f} visitors"
        return f"Not enough data: {needed}, and the most so far is {most:.0f}."
    return " ".join(_compare_order(ours.robust, order) for order in others if not order.robust.caveat)


def _compare_order(ours: Estimate, other: OrderEstimate) -> str:
    name = ORDER_LABELS[other.name].lower()
    if other.robust.high < ours.low:
        return f"With {name}, fewer searches would have succeeded."
    if other.robust.low > ours.high:
        return f"With {name}, more searches would have succeeded."
    return f"No significant difference from {name} so far."


class ExploredLine(NamedTuple):
    """A row of the Ranking page's table: an explored page and its outcome in words."""

    page: ExploredPage
    fate: str


_EXPLORED_TABLE: Table[ExploredLine] = Table(
    (
        Column("page", "Page", lambda row: row.page.url),
        Column("since", "First trial", lambda row: row.page.first_s, is_number=True),
        Column("shown", "Shown on trial", lambda row: row.page.shown, is_number=True),
        Column("clicks", "Clicked", lambda row: row.page.clicks, is_number=True),
        Column("looks", "Views (estimated)", lambda row: round(row.page.looks, 1), is_number=True),
        Column("likes", "Likes (estimated)", lambda row: round(row.page.likes, 1), is_number=True),
        Column("expected", "Like rate", lambda row: round(row.page.expected, 4), is_number=True),
        Column("fate", "Outcome", lambda row: row.fate),
    ),
    default_sort="-shown",
    prefix="promoted",
    page_size=20,
)


@dataclass(frozen=True, slots=True)
class RankingPage:
    """The console's Ranking page, and the POST handler that switches learning from clicks and trials."""

    shell: ConsoleShell
    search: SearchService
    monitoring: Monitoring

    def set_learning(self, request: Request) -> Response:
        """Switch learned ranking, or choose which results are tried; on failure show the page with the reason."""
        form = read_form(request)
        try:
            if "promotion" in form:
                rule = None if form["promotion"] == "configured" else form["promotion"]
                return self.shell.run_command(request, SetMachine({PROMOTION_SETTING: rule}), "/console/ranking")
            value = _LEARN_CHOICES.get(form.get("learn", ""), "")
            if value == "":
                raise UsageError("choose whether ranking should learn from clicks")
            return self.shell.run_command(request, SetMachine({LEARN_SETTING: value}), "/console/ranking")
        except VedetteError as error:
            return self.show(request, sentence(str(error)))

    def show(self, request: Request, problem: str = "") -> Response:
        """Show the state of ranking and exploration, or export the table of explored pages as CSV."""
        load: Callable[[], RankingReport | None] = getattr(self.search, "ranking", lambda: None)
        found = load()
        report = found or RankingReport()
        machine = self.monitoring.get_runtime_settings()
        lines = [ExploredLine(page, describe_outcome(page, report.general)) for page in report.promoted]
        if file := find_csv(request, (_EXPLORED_TABLE, lines, "tried-pages")):
            return file
        return self.shell.render_page(
            "ranking.html",
            request,
            here="ranking",
            title="Ranking",
            status=422 if problem else 200,
            problem=problem,
            is_on=machine.learn,
            is_chosen=LEARN_SETTING in machine.chosen,
            promotion=machine.promotion,
            meaning=machine.meaning,
            is_promotion_chosen=PROMOTION_SETTING in machine.chosen,
            promotions=[(name, name, words) for name, words in PROMOTION_DESCRIPTIONS.items()],
            report=report,
            has_report=found is not None,
            is_guarded=report.guard.is_active(self.shell.now_s()),
            verdict=describe_verdict(report),
            arms=[("With learning", report.learned), ("Without", report.plain)],
            seen=_EXPLORED_TABLE.paginate(request, lines),
            give_or_take=format_interval,
            orders=[(ORDER_LABELS.get(order.name, order.name), order) for order in report.orders],
            orders_verdict=describe_orders(report.orders),
            estimated=format_estimate,
            taken_off=[(round(looks), why) for why, looks in report.taken_off if round(looks)],
            fewest=int(MIN_EFFECTIVE),
        )
