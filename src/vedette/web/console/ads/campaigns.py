"""The console's Sponsored page: ad campaigns and their spending, ads to review, and why each ad was shown.

Its charts are at the end: daily impressions, clicks, spending and losses, and the pace of today's budget.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from typing import Final

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from vedette.adapters.ads.campaign_store import AdStatus
from vedette.adapters.ads.ledger_reader import RefusedClicks
from vedette.errors import VedetteError
from vedette.serve.ads.ledger import AdImpression
from vedette.timeutil import DAY_S
from vedette.web.ads.ports import AdLine, AdService, AdStats, CampaignLine, DayLine, TodayReport
from vedette.web.ads.report import REPORT_TABLE
from vedette.web.commands.ads_commands import AdCommand, PauseCampaign, ReviewAd
from vedette.web.console.ads.forms import MAX_AD_DIGITS, PAGE_URL
from vedette.web.console.ports.monitoring import Monitoring
from vedette.web.console.ui.charts import LineChart, Point, SecondLine, render_line_chart
from vedette.web.console.ui.forms import FormValues, Problems, group_policies, parse_number
from vedette.web.console.ui.layout import ConsoleShell, add_done_parameter, identify_command, read_form
from vedette.web.console.ui.tables import Column, Table, find_csv
from vedette.web.formatting import sentence

MAX_IMPRESSIONS: Final = 500
MAX_QUERY_LENGTH: Final = 500
FIELD_SETTINGS: Final[Mapping[str, str]] = {"policy": "serve.sponsored_policy"}
COMMON_POLICIES: Final = ("paced", "believed", "bmix-e")
POLICY_DESCRIPTIONS: Final[Mapping[str, str]] = {
    "paced": "by estimated click rate and bid, with budgets spread over the day; recommended",
    "believed": "the same without pauses: budgets may be spent by noon",
    "bmix-e": "the best of the published policies",
    "research:greedy": "by bid and observed click rate, without exploration",
    "research:msvv": "the same, with lower bids for campaigns that have little budget left",
    "research:mix": "by bid and an upper bound of the click rate",
    "research:bmix": "the same, while the budget covers the bid",
    "research:bmix-t": "bmix, with lower bids for campaigns that have little budget left",
    "research:bmix-et": "bmix-e, with lower bids for campaigns that have little budget left",
    "research:linear": "by click rates that are linear in features of the ad",
    "research:two-level": "by campaign first, then by ad",
}
_VERDICTS: Final[dict[str, AdStatus]] = {"approve": "approved", "revoke": "revoked"}


def describe_outcome(one: AdImpression) -> str:
    """Describe the outcome of an ad impression: open, clicked and charged, not charged, or not clicked."""
    if one.closed in {"refused", "refunded"}:
        return f"clicked, not charged: {one.said}"
    return {"": "open: a click would be charged", "charged": "clicked and charged"}.get(one.closed, "not clicked")


CAMPAIGN_TABLE: Final = Table[CampaignLine](
    (
        Column("name", "Campaign", lambda line: line.campaign.name),
        Column("advertiser", "Advertiser", lambda line: line.campaign.advertiser),
        Column("today", "Spent today", lambda line: float(line.today.charged), is_number=True),
        Column("budget", "Daily budget", lambda line: float(line.campaign.daily_budget), is_number=True),
        Column("pace", "Pace", lambda line: line.pace, is_number=True),
        Column("shown", "Impressions", lambda line: line.figures.shown, is_number=True),
        Column("clicks", "Clicks", lambda line: line.figures.clicked, is_number=True),
        Column("ctr", "CTR", lambda line: line.figures.rate, is_number=True),
        Column("spend", "Spend", lambda line: float(line.figures.charged), is_number=True),
        Column("average", "Cost per click", lambda line: _to_float(line.figures.average), is_number=True),
        Column("lost-budget", "Lost to budget", lambda line: line.figures.lost_budget, is_number=True),
        Column("lost-rank", "Lost to rank", lambda line: line.figures.lost_rank, is_number=True),
        Column("lost-reserve", "Lost to reserve", lambda line: line.figures.lost_reserve, is_number=True),
        Column("uncharged", "Uncharged clicks", lambda line: line.refused, is_number=True),
    ),
    default_sort="name",
)
AD_TABLE: Final = Table[AdLine](
    (
        Column("ad", "Ad", lambda line: line.ad.id, is_number=True),
        Column("title", "Title", lambda line: line.ad.title),
        Column("campaign", "Campaign", lambda line: line.ad.campaign),
        Column("state", "State", lambda line: line.state),
        Column("bid", "Bid", lambda line: float(line.ad.bid), is_number=True),
        Column("shown", "Impressions", lambda line: line.figures.shown, is_number=True),
        Column("ctr", "CTR", lambda line: line.figures.rate, is_number=True),
    ),
    default_sort="-ad",
    prefix="ads",
)
IMPRESSION_TABLE: Final = Table[AdImpression](
    (
        Column("at", "Shown", lambda one: one.at_s, is_number=True),
        Column("ad", "Ad", lambda one: one.ad, is_number=True),
        Column("phrase", "Phrase", lambda one: one.phrase),
        Column("slot", "Position", lambda one: one.slot + 1, is_number=True),
        Column("price", "Click price", lambda one: float(one.price), is_number=True),
        Column("score", "Score", lambda one: one.score, is_number=True),
        Column("propensity", "Propensity", lambda one: one.propensity, is_number=True),
        Column("became", "Outcome", describe_outcome),
        Column("reason", "Reason", lambda one: one.reason),
    ),
    default_sort="-at",
    prefix="shown",
    page_size=20,
)


@dataclass(frozen=True, slots=True)
class AdsPage:
    """The console's page on ad campaigns, and the POST handlers that review an ad and pause a campaign."""

    shell: ConsoleShell
    ads: AdService
    monitoring: Monitoring
    wall_clock: Callable[[], float]

    def change_settings(self, request: Request) -> Response:
        """Set another ad policy, or show the page again with the problem."""
        return self.shell.save_settings(
            request,
            FIELD_SETTINGS,
            {"policy": self.monitoring.get_runtime_settings().ads},
            PAGE_URL,
            lambda form, problems: self._render(request, problems, form),
        )

    def show(self, request: Request) -> Response:
        """Show ad campaigns, ads, impressions and charts, or export one of these tables as CSV."""
        return self._render(request)

    def explain_ad(self, request: Request) -> Response:
        """Show why an ad is shown for a search or not."""
        number = parse_number(request.query_params.get("ad", ""), MAX_AD_DIGITS)
        query = request.query_params.get("q", "").strip()[:MAX_QUERY_LENGTH]
        ads = [line for line in self.ads.list_ads() if line.ad.standing != "revoked" or line.ad.id == number]
        chosen = next((line for line in ads if line.ad.id == number), None)
        if chosen and not query:
            query = chosen.ad.targets[0].phrase
        return self.shell.render_page(
            "sponsored_why.html",
            request,
            here="sponsored",
            title="Why is an ad not shown?",
            ads=[(str(line.ad.id), f"{line.ad.id}, {line.ad.title}") for line in ads],
            chosen=str(number or ""),
            query=query,
            explanation=self.ads.explain_ad(chosen.ad.id, query) if chosen else None,
            problems={},
        )

    def review_ad(self, request: Request) -> Response:
        """Approve or revoke an ad that waits for review in the console."""
        form = read_form(request)
        number, standing = parse_number(form.get("ad", ""), MAX_AD_DIGITS), _VERDICTS.get(form.get("verdict", ""))
        if standing is None or number is None:
            return self._render(request, {"form": "Choose an ad, and whether to approve or revoke it."})
        return self._run_command(request, ReviewAd(number, standing))

    def pause_campaign(self, request: Request) -> Response:
        """Pause or resume an ad campaign."""
        form = read_form(request)
        command = PauseCampaign(form.get("name", "")[:100], paused=form.get("paused") == "yes")
        return self._run_command(request, command)

    def _run_command(self, request: Request, command: AdCommand) -> Response:
        try:
            done = self.ads.run_command(command, self.shell.describe_actor(request), identify_command(request, command))
        except VedetteError as error:
            return self._render(request, {"form": sentence(str(error))})
        return RedirectResponse(add_done_parameter(PAGE_URL, done.action), 303)

    def _render(self, request: Request, problems: Problems | None = None, typed: FormValues | None = None) -> Response:
        campaigns, ads = self.ads.list_campaigns(), self.ads.list_ads()
        showings, refused = self.ads.list_impressions(MAX_IMPRESSIONS), self.ads.list_uncharged_clicks()
        days, today = self.ads.load_daily_report(), self.ads.load_today_report()
        tables = (
            (CAMPAIGN_TABLE, campaigns, "campaigns"),
            (AD_TABLE, ads, "ads"),
            (IMPRESSION_TABLE, showings, "showings"),
            (REPORT_TABLE, days, "sponsored"),
        )
        if file := find_csv(request, *tables):
            return file
        # Charts show one campaign, or all together.
        chosen = request.query_params.get("campaign", "")
        charted = [line for line in campaigns if line.campaign.name == chosen] or campaigns
        machine = self.monitoring.get_runtime_settings()
        return self.shell.render_page(
            "sponsored.html",
            request,
            here="sponsored",
            title="Sponsored",
            campaigns=campaigns,
            seen=CAMPAIGN_TABLE.paginate(request, campaigns),
            ads=ads,
            seen_ads=AD_TABLE.paginate(request, ads),
            showings=showings,
            seen_showings=IMPRESSION_TABLE.paginate(request, showings),
            refused=refused,
            charts=build_charts(days, refused, today, charted) if campaigns else (),
            chosen=chosen if charted is not campaigns else "",
            zone_day=today.day,
            waiting=sum(line.ad.standing == "submitted" for line in ads),
            spent_today=sum((line.today.charged for line in campaigns), Decimal("0.00")),
            report=f"{PAGE_URL}?csv={REPORT_TABLE.prefix}",
            became=describe_outcome,
            wall_s=self.wall_clock(),
            machine=machine,
            typed={"policy": machine.ads, **(typed or {})},
            policies=group_policies(POLICY_DESCRIPTIONS, COMMON_POLICIES),
            fields=FIELD_SETTINGS,
            problems=problems or {},
        )


def _to_float(amount: Decimal | None) -> float | None:
    return None if amount is None else float(amount)


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
        chart.render("ctr", "CTR with 95% confidence interval", rates, "share", band=band),
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
