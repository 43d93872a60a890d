"""Storage of ads: campaigns, ledger and commands, of a data folder or of a cluster."""

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple, Protocol

from vedette.adapters.ads.campaign_store import AdRow, AdvertiserRow, CampaignRow, CampaignStore
from vedette.adapters.ads.ledger_reader import LedgerReader
from vedette.adapters.ads.ledger_store import Ledger, LedgerStore
from vedette.adapters.crawl_store.data_folder import read_state
from vedette.adapters.crawl_store.search_store import UserKeyRow
from vedette.adapters.crawl_store.store import CrawlStore
from vedette.runtime.commands.operator import send_command
from vedette.runtime.commands.setting_commands import load_overrides
from vedette.serve.ads.catalog import RunningAd
from vedette.serve.ads.ledger import PayerBudget
from vedette.serve.ads.matching import MatchType
from vedette.web.commands.ads_commands import AdCommand
from vedette.web.commands.ads_text import check_landing_url
from vedette.web.commands.commands import CommandResult

POLICY_SETTING = "serve.sponsored_policy"


class AdMarket(NamedTuple):
    """The stored advertisers, campaigns and ads, and which of them run on a day.

    ``policy`` is the one that the operator has chosen at runtime, empty for the configured one.
    """

    advertisers: Mapping[str, AdvertiserRow]
    campaigns: Mapping[str, CampaignRow]
    ads: Mapping[int, AdRow]
    policy: str = ""

    def list_running(self, day: date) -> list[RunningAd]:
        """List the ads that may be shown on a day."""
        return [
            _build_running(ad)
            for ad in self.ads.values()
            if ad.standing == "approved"
            and ad.campaign in self.campaigns
            and self.campaigns[ad.campaign].runs_on(day)
            # It was validated strictly when submitted; no one pays for what a bug of ours let through.
            and not check_landing_url(ad.url)
        ]

    def get_budgets(self) -> dict[str, PayerBudget]:
        """Return the daily budgets of each campaign: its own, and its advertiser's."""
        return {name: self._get_budget(row) for name, row in self.campaigns.items()}

    def _get_budget(self, row: CampaignRow) -> PayerBudget:
        owner = self.advertisers.get(row.advertiser)
        return PayerBudget(row.daily_budget, row.advertiser, owner.daily_budget if owner else None)


class AdStorage(Protocol):
    """Where ads are stored; ``reader`` reads their ledger."""

    @property
    def reader(self) -> LedgerReader:
        """The reader of the ledger."""

    def open_ledger(self) -> Ledger:
        """Open the ledger for writing."""

    def load_market(self) -> AdMarket:
        """Load the advertisers, campaigns and ads."""

    def list_advertisers(self) -> list[AdvertiserRow]:
        """List the advertisers alone: a request with an advertiser's key needs no more."""

    def list_keys(self) -> list[UserKeyRow]:
        """List the user keys, with which advertisers read their reports."""

    def run_command(self, command: AdCommand, by: str, id_: str) -> CommandResult:
        """Execute a command on ads, once per ``id_``."""


class FolderAdStorage:
    """The ``AdStorage`` of one data folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.reader = LedgerReader(folder)

    def open_ledger(self) -> LedgerStore:
        """Open the ledger of the folder."""
        return LedgerStore(self._folder)

    def load_market(self) -> AdMarket:
        """Load the advertisers, campaigns and ads of the folder."""
        with read_state(self._folder) as db:
            return read_market(CampaignStore(db), load_overrides(CrawlStore(db)).get(POLICY_SETTING, ""))

    def list_advertisers(self) -> list[AdvertiserRow]:
        """List the advertisers of the folder."""
        with read_state(self._folder) as db:
            return CampaignStore(db).list_advertisers()

    def list_keys(self) -> list[UserKeyRow]:
        """List the user keys of the folder."""
        with read_state(self._folder) as db:
            return CrawlStore(db).list_user_keys()

    def run_command(self, command: AdCommand, by: str, id_: str) -> CommandResult:
        """Have the coordinator of the folder execute a command."""
        return send_command(self._folder, command, by, id_)


def read_market(store: CampaignStore, policy: str) -> AdMarket:
    """Read the advertisers, campaigns and ads of a store."""
    return AdMarket(
        {row.name: row for row in store.list_advertisers()},
        {row.name: row for row in store.list_campaigns()},
        {ad.id: ad for ad in store.list_ads()},
        policy,
    )


def _build_running(ad: AdRow) -> RunningAd:
    targets = tuple((MatchType(way), phrase, int(Decimal(bid or ad.bid) * 100)) for way, phrase, bid in ad.targets)
    return RunningAd(ad.id, ad.campaign, targets, ad.negatives)
