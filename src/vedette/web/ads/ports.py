"""The port of the ad service for console, API and command line: campaigns and ads with figures, and commands."""

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from math import sqrt
from typing import NamedTuple, Protocol

from vedette.adapters.ads.campaign_store import AdRow, AdvertiserRow, CampaignRow
from vedette.adapters.ads.ledger_reader import AdTally, RefusedClicks
from vedette.serve.ads.ledger import AdImpression, Balance
from vedette.web.commands.ads_commands import AdCommand
from vedette.web.commands.commands import CommandResult

# Reports cover this many days, including today.
REPORT_DAYS = 30
# The normal distribution has 95% within this many deviations.
_Z_95 = 1.959964


class AdStats(NamedTuple):
    """The figures of ads: impressions, charged clicks and their cost, and auctions lost by reason."""

    shown: int = 0
    clicked: int = 0
    charged: Decimal = Decimal("0.00")
    lost_budget: int = 0
    lost_rank: int = 0
    lost_reserve: int = 0

    def add_tally(self, tally: AdTally) -> "AdStats":
        """Return these ad figures plus one day's tally of an ad and a phrase."""
        return AdStats(
            self.shown + tally.shown,
            self.clicked + tally.clicked,
            self.charged + tally.charged,
            self.lost_budget + tally.lost_budget,
            self.lost_rank + tally.lost_rank,
            self.lost_reserve + tally.lost_reserve,
        )

    @property
    def rate(self) -> float | None:
        """Return the click-through rate of the ads; None before anything was shown."""
        return self.clicked / self.shown if self.shown else None

    @property
    def interval(self) -> tuple[float, float]:
        """Return the 95% confidence interval of the ads' click-through rate."""
        return compute_wilson_interval(self.clicked, self.shown)

    @property
    def average(self) -> Decimal | None:
        """Return the average cost per click of the ads."""
        return (self.charged / self.clicked).quantize(Decimal("0.01")) if self.clicked else None


def compute_wilson_interval(of: int, whole: int) -> tuple[float, float]:
    """Compute the 95% Wilson interval of a click-through rate.

    It is valid for few impressions and for rates near 0, where the normal approximation is not.

    >>> [round(each, 3) for each in compute_wilson_interval(1, 10)]
    [0.018, 0.404]
    """
    if not whole:
        return 0.0, 1.0
    share, z2 = of / whole, _Z_95**2
    middle = (share + z2 / (2 * whole)) / (1 + z2 / whole)
    half = _Z_95 / (1 + z2 / whole) * sqrt(share * (1 - share) / whole + z2 / (4 * whole * whole))
    return max(0.0, middle - half), min(1.0, middle + half)


class CampaignLine(NamedTuple):
    """A campaign in the ad reports with its figures of the last days; ``today`` is the balance of its budget.

    ``pace`` is what was charged today, divided by what a usual day's traffic until now would have spent of the budget:
    1 is even; None if there is no past day to compare with.
    """

    campaign: CampaignRow
    figures: AdStats
    today: Balance
    pace: float | None
    refused: int


class AdLine(NamedTuple):
    """An ad in the ad reports: its advertiser, whether it is shown now or why not, and its figures of the last days."""

    ad: AdRow
    advertiser: str
    state: str
    figures: AdStats


class DayLine(NamedTuple):
    """The figures of an ad for one phrase on one day, a row of the daily ad report."""

    tally: AdTally
    advertiser: str
    title: str


class TodayReport(NamedTuple):
    """The ad report on today's budgets: start of day, time now (wall time), charges in order, and the spending plan.

    ``charges`` are times, payers and amounts. ``plan`` has times with the share of a usual day's searches that has come
    by then; empty before a whole day was seen.
    """

    day: date
    began_s: float
    now_s: float
    charges: Sequence[tuple[float, str, Decimal]] = ()
    plan: Sequence[tuple[float, float]] = ()


class AdExplanation(NamedTuple):
    """Why an ad is shown for a search now or not: a reason, what would help, and the outcome of past searches."""

    ad: int
    query: str
    shown: bool
    reason: str
    advice: str
    history: str


class AdService(Protocol):
    """The ad service for the console's ads pages, the API and ``vedette sponsor``; the runtime implements it.

    Reads take a moment, and commands wait for the coordinator: call all of it in a thread.

    ``advertiser`` limits what is read to one advertiser; empty means all.
    """

    def list_advertisers(self) -> list[AdvertiserRow]:
        """Return all advertisers."""

    def list_campaigns(self, advertiser: str = "") -> list[CampaignLine]:
        """Return the campaigns with their ad figures, by name."""

    def list_ads(self, advertiser: str = "") -> list[AdLine]:
        """Return the ads with their figures, by number."""

    def load_daily_report(self, advertiser: str = "") -> list[DayLine]:
        """Return the daily ad report: figures by day, ad and phrase."""

    def load_today_report(self) -> TodayReport:
        """Return the report of today's ad spending until now."""

    def list_impressions(self, most: int) -> list[AdImpression]:
        """Return the latest ad impressions, newest first, each with score, propensity, price and reason."""

    def list_uncharged_clicks(self) -> list[RefusedClicks]:
        """Return counts of the ad clicks that were not charged, by reason."""

    def explain_ad(self, number: int, query: str, advertiser: str = "") -> AdExplanation | None:
        """Explain why an ad is shown for a query now or not; None if there is no such ad."""

    def find_advertiser(self, name: str) -> str:
        """Return the advertiser whose ad reports the key of this name may read; empty if there is none."""

    def check_landing_url(self, url: str) -> str:
        """Return why no ad may link to a URL, or an empty text if it may. Waits for name servers."""

    def run_command(self, command: AdCommand, by: str, id_: str = "") -> CommandResult:
        """Execute a command on ads, once per ``id_``.

        A ``CommandPending`` will be executed later; any other ``VedetteError`` says why it cannot be done.
        """
