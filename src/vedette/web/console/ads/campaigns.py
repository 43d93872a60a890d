"""The page of sponsored results: campaigns and what they spend, ads that wait for a word, and why each was shown."""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from vedette.adapters.ads.campaign_store import Standing
from vedette.adapters.ads.ledger_store import Showing
from vedette.errors import VedetteError
from vedette.web.ads.ports import AdLine, CampaignLine, MarketDesk
from vedette.web.ads.report import REPORT
from vedette.web.commands.ads_commands import JudgeAd, MarketOrder, PauseCampaign
from vedette.web.console.ads.charts import charts_of
from vedette.web.console.ads.forms import sponsor_form_routes
from vedette.web.console.ui.layout import Shell, with_done
from vedette.web.console.ui.tables import Column, Table
from vedette.web.formatting import sentence

__all__ = ["sponsoring_routes"]

HERE: Final = "/console/sponsored"
MOST_SHOWINGS: Final = 500
_MOST_DIGITS: Final = 9
_VERDICTS: Final[dict[str, Standing]] = {"approve": "approved", "revoke": "revoked"}


def became(one: Showing) -> str:
    """What became of a showing, in words."""
    if one.closed == "refused":
        return f"clicked, not charged: {one.said}"
    return {"": "open: a click would be charged", "charged": "clicked and charged"}.get(one.closed, "not clicked")


CAMPAIGNS: Final = Table[CampaignLine](
    (
        Column("name", "Campaign", lambda line: line.campaign.name),
        Column("advertiser", "Advertiser", lambda line: line.campaign.advertiser),
        Column("today", "Spent today", lambda line: float(line.today.charged), is_number=True),
        Column("budget", "Budget a day", lambda line: float(line.campaign.most), is_number=True),
        Column("pace", "Pace", lambda line: line.pace, is_number=True),
        Column("shown", "Impressions", lambda line: line.figures.shown, is_number=True),
        Column("clicks", "Clicks", lambda line: line.figures.clicked, is_number=True),
        Column("ctr", "CTR", lambda line: line.figures.rate, is_number=True),
        Column("spend", "Spend", lambda line: float(line.figures.charged), is_number=True),
        Column("average", "A click", lambda line: _float(line.figures.average), is_number=True),
        Column("lost-budget", "Lost to budget", lambda line: line.figures.lost_budget, is_number=True),
        Column("lost-rank", "Lost to rank", lambda line: line.figures.lost_rank, is_number=True),
        Column("lost-reserve", "Lost to reserve", lambda line: line.figures.lost_reserve, is_number=True),
        Column("uncharged", "Uncharged clicks", lambda line: line.refused, is_number=True),
    ),
    by="name",
)
ADS: Final = Table[AdLine](
    (
        Column("ad", "Ad", lambda line: line.ad.id, is_number=True),
        Column("title", "Title", lambda line: line.ad.title),
        Column("campaign", "Campaign", lambda line: line.ad.campaign),
        Column("state", "State", lambda line: line.state),
        Column("bid", "Bid", lambda line: float(line.ad.bid), is_number=True),
        Column("shown", "Impressions", lambda line: line.figures.shown, is_number=True),
        Column("ctr", "CTR", lambda line: line.figures.rate, is_number=True),
    ),
    by="-ad",
    key="ads",
)
SHOWINGS: Final = Table[Showing](
    (
        Column("at", "Shown", lambda one: one.at_s, is_number=True),
        Column("ad", "Ad", lambda one: one.ad, is_number=True),
        Column("phrase", "For", lambda one: one.phrase),
        Column("slot", "Place", lambda one: one.slot + 1, is_number=True),
        Column("price", "Price of a click", lambda one: float(one.price), is_number=True),
        Column("score", "Score", lambda one: one.score, is_number=True),
        Column("propensity", "Propensity", lambda one: one.propensity, is_number=True),
        Column("became", "What became of it", became),
        Column("reason", "Why it was chosen", lambda one: one.reason),
    ),
    by="-at",
    key="shown",
    rows=20,
)


def sponsoring_routes(shell: Shell, desk: MarketDesk, wall: Callable[[], float]) -> list[Route]:
    """The page, and the posts that change something."""
    pages = _Sponsoring(shell, desk, wall)
    return [
        Route("/sponsored", pages.shown),
        Route("/sponsored/judge", pages.judged, methods=["POST"]),
        Route("/sponsored/pause", pages.paused, methods=["POST"]),
        *sponsor_form_routes(shell, desk),
    ]


@dataclass(frozen=True, slots=True)
class _Sponsoring:
    """The handlers, with what they all need."""

    shell: Shell
    desk: MarketDesk
    wall: Callable[[], float]

    async def shown(self, request: Request) -> Response:
        """All of it, or one of its tables to take away."""
        if CAMPAIGNS.wants_csv(request):
            return CAMPAIGNS.csv(request, await run_in_threadpool(self.desk.campaigns), "campaigns")
        if ADS.wants_csv(request):
            return ADS.csv(request, await run_in_threadpool(self.desk.ads), "ads")
        if SHOWINGS.wants_csv(request):
            return SHOWINGS.csv(request, await run_in_threadpool(self.desk.showings, MOST_SHOWINGS), "showings")
        if REPORT.wants_csv(request):
            return REPORT.csv(request, await run_in_threadpool(self.desk.days), "sponsored")
        return await self._page(request)

    async def judged(self, request: Request) -> Response:
        """An ad is approved or revoked."""
        form = await self.shell.form(request)
        number, standing = form.get("ad", ""), _VERDICTS.get(form.get("verdict", ""))
        if standing is None or not (number.isascii() and number.isdigit() and len(number) <= _MOST_DIGITS):
            return await self._page(request, "This names no ad, or no verdict on it.")
        return await self._ordered(request, JudgeAd(int(number), standing))

    async def paused(self, request: Request) -> Response:
        """A campaign rests, or goes on."""
        form = await self.shell.form(request)
        order = PauseCampaign(form.get("name", "")[:100], paused=form.get("paused") == "yes")
        return await self._ordered(request, order)

    async def _ordered(self, request: Request, order: MarketOrder) -> Response:
        try:
            done = await run_in_threadpool(self.desk.order, order, self.shell.by(request))
        except VedetteError as error:
            return await self._page(request, sentence(str(error)))
        return RedirectResponse(with_done(HERE, done.action), 303)

    async def _page(self, request: Request, wrong: str = "") -> Response:
        campaigns = await run_in_threadpool(self.desk.campaigns)
        ads = await run_in_threadpool(self.desk.ads)
        showings = await run_in_threadpool(self.desk.showings, MOST_SHOWINGS)
        refused = await run_in_threadpool(self.desk.refused)
        # Charts are of one campaign, or of all together.
        chosen = request.query_params.get("campaign", "")
        charted = [line for line in campaigns if line.campaign.name == chosen] or campaigns
        days, today = await run_in_threadpool(self.desk.days), await run_in_threadpool(self.desk.today)
        told = {
            "campaigns": campaigns,
            "seen": CAMPAIGNS.seen(request, campaigns),
            "ads": ads,
            "seen_ads": ADS.seen(request, ads),
            "seen_showings": SHOWINGS.seen(request, showings),
            "showings": showings,
            "refused": refused,
            "charts": charts_of(days, refused, today, charted) if campaigns else (),
            "chosen": chosen if charted is not campaigns else "",
            "zone_day": today.day,
            "waiting": sum(line.ad.standing == "submitted" for line in ads),
            "spent_today": sum((line.today.charged for line in campaigns), Decimal("0.00")),
            "report": f"{HERE}?csv={REPORT.key}",
            "became": became,
            "wall_s": self.wall(),
            "problems": {"form": wrong} if wrong else {},
        }
        status = 422 if wrong else 200
        return self.shell.page("sponsored.html", request, here="sponsored", title="Sponsored", status=status, **told)


def _float(amount: Decimal | None) -> float | None:
    return None if amount is None else float(amount)
