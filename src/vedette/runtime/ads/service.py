"""Ad service: stored campaigns, ads and their statistics, for the console, API and command line."""

import time
from collections.abc import Callable
from datetime import date, datetime, timedelta
from datetime import time as clock
from typing import NamedTuple

from vedette.adapters.ads.campaign_store import AdRow, AdvertiserRow, CampaignRow
from vedette.adapters.ads.ledger_reader import RefusedClicks
from vedette.adapters.net.dns import resolve_host
from vedette.fetch.address_guard import is_public
from vedette.model import Failure, origin_of
from vedette.policy import rng_for
from vedette.runtime.ads.selection import AdSettings
from vedette.runtime.ads.storage import AdStorage
from vedette.serve.ads.learning import estimate_day_share, to_local_s
from vedette.serve.ads.ledger import AdImpression, Balance, budget_lines
from vedette.serve.ads.selection import AdSelection, moment_of
from vedette.timeutil import HOUR_S
from vedette.web.ads.explanation import AdSituation, explain_ad
from vedette.web.ads.ports import REPORT_DAYS, AdExplanation, AdLine, AdStats, CampaignLine, DayLine, TodayReport
from vedette.web.commands.ads_commands import AdCommand
from vedette.web.commands.ads_text import check_landing_url
from vedette.web.commands.commands import CommandResult


class _Campaigns(NamedTuple):
    """Snapshot of the campaigns and ads of one advertiser or of all."""

    campaigns: dict[str, CampaignRow]
    ads: list[AdRow]


class LiveAdService:
    """A ``web.ads.ports.AdService`` over stored ads; it reads while others write."""

    def __init__(self, storage: AdStorage, settings: AdSettings, wall: Callable[[], float] = time.time) -> None:
        self._storage, self._settings, self._zone, self._wall = storage, settings, settings.zone, wall
        self._reader = storage.reader

    def list_advertisers(self) -> list[AdvertiserRow]:
        """List the stored advertisers, for the ad service."""
        return self._storage.list_advertisers()

    def list_campaigns(self, advertiser: str = "") -> list[CampaignLine]:
        """List ad campaigns with their spending, and how evenly they spend over the day."""
        found, today = self._load_campaigns(advertiser), self._get_today()
        figures = dict.fromkeys(found.campaigns, AdStats())
        for tally in self._reader.read_tallies(self._get_first_day()):
            if tally.payer in figures:
                figures[tally.payer] = figures[tally.payer].add_tally(tally)
        refused = self._reader.read_refused_clicks(self._get_first_day())
        balances, hours = self._reader.read_balances(today), self._reader.read_hourly_queries(self._get_first_day())
        share = estimate_day_share(hours, to_local_s(self._get_local_time()))
        return [
            CampaignLine(
                row,
                figures[name],
                balance := balances.get(name, Balance()),
                float(balance.charged / row.daily_budget) / share if share else None,
                sum(one.times for one in refused if one.payer == name),
            )
            for name, row in found.campaigns.items()
        ]

    def list_ads(self, advertiser: str = "") -> list[AdLine]:
        """List ads with their state and statistics, for the ad service."""
        found, today = self._load_campaigns(advertiser), self._get_today()
        figures = {ad.id: AdStats() for ad in found.ads}
        for tally in self._reader.read_tallies(self._get_first_day()):
            if tally.ad in figures:
                figures[tally.ad] = figures[tally.ad].add_tally(tally)
        return [
            AdLine(
                ad,
                found.campaigns[ad.campaign].advertiser if ad.campaign in found.campaigns else "",
                _describe_state(ad, found.campaigns.get(ad.campaign), today),
                figures[ad.id],
            )
            for ad in found.ads
        ]

    def load_daily_report(self, advertiser: str = "") -> list[DayLine]:
        """Load the ad report by day, ad and phrase, of ads that still exist."""
        found = self._load_campaigns(advertiser)
        ads = {ad.id: ad for ad in found.ads}
        return [
            DayLine(tally, owner.advertiser, ads[tally.ad].title)
            for tally in self._reader.read_tallies(self._get_first_day())
            if tally.ad in ads and (owner := found.campaigns.get(tally.payer))
        ]

    def load_today_report(self) -> TodayReport:
        """Load today's ad report hour by hour, in the operator's time zone, even if a day has 23 or 25 hours."""
        local = self._get_local_time()
        began = datetime.combine(local.date(), clock.min, self._zone)
        hours = self._reader.read_hourly_queries(self._get_first_day())
        marks = [began.timestamp() + HOUR_S * hour for hour in range(26)]
        marks = [*(at_s for at_s in marks if at_s < local.timestamp()), local.timestamp()]
        shares = [
            (at_s, estimate_day_share(hours, to_local_s(datetime.fromtimestamp(at_s, self._zone)))) for at_s in marks
        ]
        plan = [(at_s, share) for at_s, share in shares if share is not None]
        charges = self._reader.read_charges(local.date(), began.timestamp())
        return TodayReport(local.date(), began.timestamp(), local.timestamp(), charges, plan)

    def list_impressions(self, most: int) -> list[AdImpression]:
        """List the latest ad impressions from the ledger, for the ad service."""
        return self._reader.read_latest(most)

    def list_uncharged_clicks(self) -> list[RefusedClicks]:
        """List the ad clicks of the last days that were not charged."""
        return self._reader.read_refused_clicks(self._get_first_day())

    def explain_ad(self, number: int, query: str, advertiser: str = "") -> AdExplanation | None:
        """Explain why an ad is shown for a query now or not, by the selection of the server; nothing is recorded."""
        line = next((line for line in self.list_ads(advertiser) if line.ad.id == number), None)
        if line is None:
            return None
        campaign = next((one for one in self.list_campaigns() if one.campaign.name == line.ad.campaign), None)
        now, market = moment_of(self._get_local_time()), self._storage.load_market()
        terms = self._settings.terms
        policy = self._settings.create_policy(market.policy)
        selection = AdSelection(self._reader, policy, terms, rng_for(0, "serve/sponsor/explain"))
        selection.set_market(market.list_running(now.day), market.get_budgets())
        selection.refresh(now)
        situation = AdSituation(line, campaign, selection.explain(number, query, now), terms.reserve)
        if budget := market.get_budgets().get(line.ad.campaign):
            lines = budget_lines(budget, line.ad.campaign, self._reader.read_balances(now.day))
            left = [each.left for each in lines]
            situation = situation._replace(left=min(left), by_advertiser=left[-1] < left[0])
        return explain_ad(query, situation)

    def find_advertiser(self, name: str) -> str:
        """Find the advertiser of a user key by name and secret; a key recreated under its name is another."""
        keys = {key.name: key.digest for key in self._storage.list_keys() if key.revoked_s is None}
        return next(
            (
                row.name
                for row in self.list_advertisers()
                if row.key and row.key == name and keys.get(name) == row.digest
            ),
            "",
        )

    def check_landing_url(self, url: str) -> str:
        """Return why an ad's landing URL is refused: by its spelling, then by its current DNS addresses."""
        if why := check_landing_url(url):
            return why
        host = origin_of(url).host
        found = resolve_host(host)
        if found.failure is Failure.NAME:
            return f"{host}: {found.failure}"
        private = next((address for address in found.addresses if not is_public(address)), "")
        return f"{host} is at {private}, a private address: an ad must link to a public one" if private else ""

    def run_command(self, command: AdCommand, by: str, id_: str = "") -> CommandResult:
        """Run an ad command, once per ``id_``."""
        return self._storage.run_command(command, by, id_)

    def _load_campaigns(self, advertiser: str) -> _Campaigns:
        market = self._storage.load_market()
        mine = {name: row for name, row in market.campaigns.items() if advertiser in {"", row.advertiser}}
        return _Campaigns(mine, [ad for ad in market.ads.values() if not advertiser or ad.campaign in mine])

    def _get_local_time(self) -> datetime:
        return datetime.fromtimestamp(self._wall(), self._zone)

    def _get_today(self) -> date:
        return self._get_local_time().date()

    def _get_first_day(self) -> date:
        return self._get_today() - timedelta(days=REPORT_DAYS - 1)


def _describe_state(ad: AdRow, campaign: CampaignRow | None, today: date) -> str:
    """Describe in a few words whether an ad is shown, for the ad service."""
    if ad.standing != "approved":
        return "waits to be approved" if ad.standing == "submitted" else "revoked"
    if campaign is None:
        return "its campaign is gone"
    if campaign.paused:
        return "its campaign is paused"
    return "shown" if campaign.runs_on(today) else "not on these days"
