"""Charts for ad campaigns: daily impressions, clicks, spending and losses, and the pace of today's budget."""

from collections.abc import Sequence
from datetime import date, timedelta
from decimal import Decimal

from markupsafe import Markup

from vedette.adapters.ads.ledger_reader import RefusedClicks
from vedette.timeutil import DAY_S
from vedette.web.ads.ports import AdStats, CampaignLine, DayLine, TodayReport
from vedette.web.console.ui.charts import LineChart, Point, SecondLine, render_line_chart

# Minimum number of days in a chart.
MIN_DAYS = 7
# Number of steps for today's chart.
STEPS_PER_DAY = 96
_EMPTY_HINT = "There is one data point per day."


def sum_by_day(days: Sequence[DayLine], today: date, campaigns: Sequence[str]) -> dict[date, AdStats]:
    """Sum the ad statistics of the given campaigns by day, with empty statistics for days without any.

    >>> list(sum_by_day([], date(2026, 5, 9), ()))[0], len(sum_by_day([], date(2026, 5, 9), ()))
    (datetime.date(2026, 5, 3), 7)
    """
    own = [line.tally for line in days if line.tally.payer in campaigns]
    first = min((date.fromisoformat(tally.day) for tally in own), default=today)
    first = min(first, today - timedelta(days=MIN_DAYS - 1))
    found = {first + timedelta(days=past): AdStats() for past in range((today - first).days + 1)}
    for tally in own:
        day = date.fromisoformat(tally.day)
        if day in found:
            found[day] = found[day].add_tally(tally)
    return found


def build_charts(
    days: Sequence[DayLine], refused: Sequence[RefusedClicks], today: TodayReport, lines: Sequence[CampaignLine]
) -> list[Markup]:
    """Draw all charts of the console's ads page for the given campaigns together."""
    names = [line.campaign.name for line in lines]
    found = sum_by_day(days, today.day, names)
    chart = _DailyCharts(found, today)
    budget = sum((line.campaign.daily_budget for line in lines if line.campaign.runs_on(today.day)), Decimal("0.00"))
    limit = ("budget" if len(lines) == 1 else "all budgets", dict.fromkeys(found, float(budget)))
    uncharged = ("not charged", _count_uncharged(refused, found, names))
    rates = {day: stats.rate for day, stats in found.items() if stats.rate is not None}
    band = {day: found[day].interval for day in rates}
    average = {day: float(stats.average) for day, stats in found.items() if stats.average is not None}
    return [
        chart.render("shown", "Impressions", _get_values(found, "shown")),
        chart.render("clicked", "Clicks", _get_values(found, "clicked"), other=uncharged),
        chart.render("ctr", "CTR with 95 % confidence interval", rates, "share", band=band),
        chart.render("spend", "Spend per day", _get_values(found, "charged"), "money", limit if budget else None),
        _render_pace(today, names, budget),
        chart.render("average", "Average cost per click", average, "money"),
        *(
            chart.render(f"lost-{to}", f"Lost to {to}", _get_values(found, f"lost_{to}"))
            for to in ("budget", "rank", "reserve")
        ),
    ]


def _get_values(days: dict[date, AdStats], name: str) -> dict[date, float]:
    return {day: float(getattr(stats, name)) for day, stats in days.items()}


class _DailyCharts:
    """Builder of ad charts over the same days; a day's point is at its start, and today's at the end."""

    def __init__(self, days: Sequence[date] | dict[date, AdStats], today: TodayReport) -> None:
        self._today, self._first = today, min(days)

    def render(
        self,
        name: str,
        title: str,
        values: dict[date, float],
        unit: str = "n",
        other: tuple[str, dict[date, float]] | None = None,
        band: dict[date, tuple[float, float]] | None = None,
    ) -> Markup:
        return render_line_chart(
            LineChart(
                name,
                title,
                f"{title}, daily",
                unit,
                self._to_points(values),
                self._get_day_start_s(self._first),
                self._today.began_s,
                second=SecondLine(other[0], self._to_points(other[1])) if other else None,
                band=[(self._get_day_start_s(day), *ends) for day, ends in (band or {}).items()],
                empty_hint=_EMPTY_HINT,
            )
        )

    def _to_points(self, values: dict[date, float]) -> list[Point]:
        return [(self._get_day_start_s(day), value) for day, value in values.items()]

    def _get_day_start_s(self, day: date) -> float:
        return self._today.began_s - DAY_S * (self._today.day - day).days


def _render_pace(today: TodayReport, names: Sequence[str], budget: Decimal) -> Markup:
    """Draw the pace of today's ad budget: spent so far, compared with a usual day."""
    own = [(at_s, amount) for at_s, payer, amount in today.charges if payer in names]
    step_s = (today.now_s - today.began_s) / STEPS_PER_DAY
    marks = [today.began_s + step_s * step for step in range(STEPS_PER_DAY + 1)]
    spent = [(mark_s, float(sum(amount for at_s, amount in own if at_s <= mark_s))) for mark_s in marks]
    plan = [(at_s, share * float(budget)) for at_s, share in today.plan]
    line = LineChart(
        "pace",
        "Spent today",
        "Spent since midnight",
        "money",
        spent,
        today.began_s,
        today.now_s,
        second=SecondLine("on a typical day", plan) if plan and budget else None,
        empty_hint=_EMPTY_HINT,
    )
    return render_line_chart(line)


def _count_uncharged(
    refused: Sequence[RefusedClicks], days: dict[date, AdStats], names: Sequence[str]
) -> dict[date, float]:
    found = dict.fromkeys(days, 0.0)
    for one in refused:
        day = date.fromisoformat(one.day)
        if one.payer in names and day in found:
            found[day] += one.times
    return found
