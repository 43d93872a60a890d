"""The ad service that console, API and command line call: campaigns and ads with their figures, and commands."""

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from math import sqrt
from typing import NamedTuple, Protocol

from vedette.adapters.ads.campaign_store import AdRow, AdvertiserRow, CampaignRow
from vedette.adapters.ads.ledger_reader import AdTally, RefusedClicks
from vedette.adapters.ads.ledger_store import AdImpression
from vedette.serve.ads.ledger import Balance
from vedette.web.commands.ads_commands import AdCommand
from vedette.web.commands.commands import CommandResult

# Reports are of so many days, today among them.
REPORT_DAYS = 30
# The normal distribution has 95 % within so many deviations.
_Z_95 = 1.959964


class AdStats(NamedTuple):
    """What became of ads: showings, charged clicks, what they cost, and what else they lost to what."""

    shown: int = 0
    clicked: int = 0
    charged: Decimal = Decimal("0.00")
    lost_budget: int = 0
    lost_rank: int = 0
    lost_reserve: int = 0

    def add_tally(self, tally: AdTally) -> "AdStats":
        """With a day of one ad and phrase more."""
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
        """Clicks by showings; None before anything was shown."""
        return self.clicked / self.shown if self.shown else None

    @property
    def interval(self) -> tuple[float, float]:
        """Where the rate lies, with 95 % confidence."""
        return compute_wilson_interval(self.clicked, self.shown)

    @property
    def average(self) -> Decimal | None:
        """What a click cost on average."""
        return (self.charged / self.clicked).quantize(Decimal("0.01")) if self.clicked else None


def compute_wilson_interval(of: int, whole: int) -> tuple[float, float]:
    """Wilson's interval of a share, 95 %: it is right for few and for shares near 0, where a plain one is not.

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
    """A campaign with the figures of the last days. ``today`` is where its budget stands.

    ``pace`` is what was charged today by what a usual day's traffic until now would have spent of the budget: 1 is
    even; None where no past day says what is usual.
    """

    campaign: CampaignRow
    figures: AdStats
    today: Balance
    pace: float | None
    refused: int


class AdLine(NamedTuple):
    """An ad with whose it is, whether it is shown now or why not, and the figures of the last days."""

    ad: AdRow
    advertiser: str
    state: str
    figures: AdStats


class DayLine(NamedTuple):
    """What an ad did on one day for one phrase, for reports."""

    tally: AdTally
    advertiser: str
    title: str


class TodayReport(NamedTuple):
    """A day until now: when it began and what time it is (wall time), charges in order, and the plan for it.

    ``charges`` are moments, payers and amounts. ``plan`` has moments with the share of a usual day's searches that has
    come by then; empty before a whole day was seen.
    """

    day: date
    began_s: float
    now_s: float
    charges: Sequence[tuple[float, str, Decimal]] = ()
    plan: Sequence[tuple[float, float]] = ()


class AdService(Protocol):
    """The market. Reading takes a moment, and orders wait for the keeper: call all of it in a thread.

    ``advertiser`` limits what is read to one; empty is all.
    """

    def list_advertisers(self) -> list[AdvertiserRow]:
        """All of them."""

    def list_campaigns(self, advertiser: str = "") -> list[CampaignLine]:
        """By name."""

    def list_ads(self, advertiser: str = "") -> list[AdLine]:
        """By number."""

    def load_daily_report(self, advertiser: str = "") -> list[DayLine]:
        """Day by day."""

    def load_today_report(self) -> TodayReport:
        """What today's budgets were spent on until now."""

    def list_impressions(self, most: int) -> list[AdImpression]:
        """What was shown, the last first, each with score, propensity, price and reason."""

    def list_uncharged_clicks(self) -> list[RefusedClicks]:
        """Clicks that cost nothing, with reasons."""

    def find_advertiser(self, name: str) -> str:
        """Whose reports the key of this name opens; empty for nobody's."""

    def check_landing_url(self, url: str) -> str:
        """Why no ad may lead to a URL; empty where it may. Waits for name servers."""

    def run_command(self, order: AdCommand, by: str) -> CommandResult:
        """Have an order carried out. A ``VedetteError`` says in words why it cannot be; nothing has changed then."""
