"""The page of sponsored results: campaigns and what they spend, ads that wait for a word, and why each was shown."""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from vedette.adapters.ads.campaign_store import AdStatus
from vedette.adapters.ads.ledger_store import AdImpression
from vedette.errors import VedetteError
from vedette.web.ads.ports import AdLine, AdService, CampaignLine
from vedette.web.ads.report import REPORT_TABLE
from vedette.web.commands.ads_commands import AdCommand, PauseCampaign, ReviewAd
from vedette.web.console.ads.charts import build_charts
from vedette.web.console.ads.forms import ad_form_routes
from vedette.web.console.ui.layout import ConsoleShell, add_done_parameter
from vedette.web.console.ui.tables import Column, Table
from vedette.web.formatting import sentence

PAGE_URL: Final = "/console/sponsored"
MAX_IMPRESSIONS: Final = 500
_MAX_DIGITS: Final = 9
_VERDICTS: Final[dict[str, AdStatus]] = {"approve": "approved", "revoke": "revoked"}


def describe_outcome(one: AdImpression) -> str:
    """What became of a showing, in words."""
    if one.closed == "refused":
        return f"clicked, not charged: {one.said}"
    return {"": "open: a click would be charged", "charged": "clicked and charged"}.get(one.closed, "not clicked")


CAMPAIGN_TABLE: Final = Table[CampaignLine](
    (
        Column("name", "Campaign", lambda line: line.campaign.name),
        Column("advertiser", "Advertiser", lambda line: line.campaign.advertiser),
        Column("today", "Spent today", lambda line: float(line.today.charged), is_number=True),
        Column("budget", "Budget a day", lambda line: float(line.campaign.daily_budget), is_number=True),
        Column("pace", "Pace", lambda line: line.pace, is_number=True),
        Column("shown", "Impressions", lambda line: line.figures.shown, is_number=True),
        Column("clicks", "Clicks", lambda line: line.figures.clicked, is_number=True),
        Column("ctr", "CTR", lambda line: line.figures.rate, is_number=True),
        Column("spend", "Spend", lambda line: float(line.figures.charged), is_number=True),
        Column("average", "A click", lambda line: _to_float(line.figures.average), is_number=True),
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
        Column("phrase", "For", lambda one: one.phrase),
        Column("slot", "Place", lambda one: one.slot + 1, is_number=True),
        Column("price", "Price of a click", lambda one: float(one.price), is_number=True),
        Column("score", "Score", lambda one: one.score, is_number=True),
        Column("propensity", "Propensity", lambda one: one.propensity, is_number=True),
        Column("became", "What became of it", describe_outcome),
        Column("reason", "Why it was chosen", lambda one: one.reason),
    ),
    default_sort="-at",
    prefix="shown",
    page_size=20,
)


def ad_routes(shell: ConsoleShell, desk: AdService, wall: Callable[[], float]) -> list[Route]:
    """The page, and the posts that change something."""
    pages = _AdPages(shell, desk, wall)
    return [
        Route("/sponsored", pages.show),
        Route("/sponsored/judge", pages.review_ad, methods=["POST"]),
        Route("/sponsored/pause", pages.pause_campaign, methods=["POST"]),
        *ad_form_routes(shell, desk),
    ]


@dataclass(frozen=True, slots=True)
class _AdPages:
    """The handlers, with what they all need."""

    shell: ConsoleShell
    ads: AdService
    wall_clock: Callable[[], float]

    async def show(self, request: Request) -> Response:
        """All of it, or one of its tables to take away."""
        if CAMPAIGN_TABLE.wants_csv(request):
            return CAMPAIGN_TABLE.csv_response(request, await run_in_threadpool(self.ads.list_campaigns), "campaigns")
        if AD_TABLE.wants_csv(request):
            return AD_TABLE.csv_response(request, await run_in_threadpool(self.ads.list_ads), "ads")
        if IMPRESSION_TABLE.wants_csv(request):
            return IMPRESSION_TABLE.csv_response(
                request, await run_in_threadpool(self.ads.list_impressions, MAX_IMPRESSIONS), "showings"
            )
        if REPORT_TABLE.wants_csv(request):
            return REPORT_TABLE.csv_response(request, await run_in_threadpool(self.ads.load_daily_report), "sponsored")
        return await self._render(request)

    async def review_ad(self, request: Request) -> Response:
        """An ad is approved or revoked."""
        form = await self.shell.read_form(request)
        number, standing = form.get("ad", ""), _VERDICTS.get(form.get("verdict", ""))
        if standing is None or not (number.isascii() and number.isdigit() and len(number) <= _MAX_DIGITS):
            return await self._render(request, "This names no ad, or no verdict on it.")
        return await self._run_command(request, ReviewAd(int(number), standing))

    async def pause_campaign(self, request: Request) -> Response:
        """A campaign rests, or goes on."""
        form = await self.shell.read_form(request)
        order = PauseCampaign(form.get("name", "")[:100], paused=form.get("paused") == "yes")
        return await self._run_command(request, order)

    async def _run_command(self, request: Request, order: AdCommand) -> Response:
        try:
            done = await run_in_threadpool(self.ads.run_command, order, self.shell.describe_actor(request))
        except VedetteError as error:
            return await self._render(request, sentence(str(error)))
        return RedirectResponse(add_done_parameter(PAGE_URL, done.action), 303)

    async def _render(self, request: Request, wrong: str = "") -> Response:
        campaigns = await run_in_threadpool(self.ads.list_campaigns)
        ads = await run_in_threadpool(self.ads.list_ads)
        showings = await run_in_threadpool(self.ads.list_impressions, MAX_IMPRESSIONS)
        refused = await run_in_threadpool(self.ads.list_uncharged_clicks)
        # Charts are of one campaign, or of all together.
        chosen = request.query_params.get("campaign", "")
        charted = [line for line in campaigns if line.campaign.name == chosen] or campaigns
        days, today = (
            await run_in_threadpool(self.ads.load_daily_report),
            await run_in_threadpool(self.ads.load_today_report),
        )
        told = {
            "campaigns": campaigns,
            "seen": CAMPAIGN_TABLE.paginate(request, campaigns),
            "ads": ads,
            "seen_ads": AD_TABLE.paginate(request, ads),
            "seen_showings": IMPRESSION_TABLE.paginate(request, showings),
            "showings": showings,
            "refused": refused,
            "charts": build_charts(days, refused, today, charted) if campaigns else (),
            "chosen": chosen if charted is not campaigns else "",
            "zone_day": today.day,
            "waiting": sum(line.ad.standing == "submitted" for line in ads),
            "spent_today": sum((line.today.charged for line in campaigns), Decimal("0.00")),
            "report": f"{PAGE_URL}?csv={REPORT_TABLE.prefix}",
            "became": describe_outcome,
            "wall_s": self.wall_clock(),
            "problems": {"form": wrong} if wrong else {},
        }
        status = 422 if wrong else 200
        return self.shell.render_page(
            "sponsored.html", request, here="sponsored", title="Sponsored", status=status, **told
        )


def _to_float(amount: Decimal | None) -> float | None:
    return None if amount is None else float(amount)
