"""Ad selection for the search results of a data folder: chosen by the configured policy, charged in the ledger.

``serve.ads.selection`` decides; here it gets the campaigns of ``state.db``, the ledger, the clock and visitors. Each
server process selects independently from the counts of all, reloaded every second; the ledger decides what it may
promise. If anything fails here, the search continues without ads.
"""

import secrets
import sys
import time
from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple
from zoneinfo import ZoneInfo

from vedette.adapters.ads.campaign_store import AdRow, AdvertiserRow, CampaignRow, CampaignStore
from vedette.adapters.ads.ledger_reader import LedgerReader
from vedette.adapters.ads.ledger_store import LedgerStore
from vedette.adapters.crawl_store.data_folder import read_state
from vedette.config import Serve
from vedette.errors import StoreError
from vedette.policy import rng_for
from vedette.serve.ads.by_score import ScorePolicy
from vedette.serve.ads.catalog import RunningAd
from vedette.serve.ads.click_validity import ClickRejection
from vedette.serve.ads.ledger import AdImpression, PayerBudget
from vedette.serve.ads.live_policies import create_ad_policy
from vedette.serve.ads.matching import MatchType
from vedette.serve.ads.selection import AdSelection, AdTerms, Moment, moment_of
from vedette.web.commands.ads_text import check_landing_url
from vedette.web.public.ads import ClickOutcome, ShownAd
from vedette.web.public.visits import Visitor, hash_visitor

REFRESH_EVERY_S = 1.0
_UNAVAILABLE = "the ads are not available right now"


class AdSettings(NamedTuple):
    """The operator's settings of ads: terms, the policy that chooses, and the time zone of days."""

    terms: AdTerms
    policy: ScorePolicy
    zone: ZoneInfo


def build_settings(serve: Serve) -> AdSettings:
    """Build the settings of ad selection from the configuration."""
    policy = create_ad_policy(serve.sponsored_policy, serve.sponsored_exploration / 100)
    return AdSettings(
        AdTerms(serve.sponsored_slots, Decimal(serve.sponsored_reserve)), policy, ZoneInfo(serve.time_zone)
    )


class AdMarket(NamedTuple):
    """Advertisers, campaigns and ads of a data folder, and which of them run on a day."""

    advertisers: Mapping[str, AdvertiserRow]
    campaigns: Mapping[str, CampaignRow]
    ads: Mapping[int, AdRow]

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


def load_market(folder: Path) -> AdMarket:
    """Load the advertisers, campaigns and ads of a data folder."""
    with read_state(folder) as db:
        store = CampaignStore(db)
        return AdMarket(
            {row.name: row for row in store.list_advertisers()},
            {row.name: row for row in store.list_campaigns()},
            {ad.id: ad for ad in store.list_ads()},
        )


class FolderAdServer:
    """A ``web.public.ads.AdServer`` over one data folder: selects ads and charges clicks.

    ``seed`` is for draws between equal ads; random unless a test sets it.
    """

    def __init__(
        self,
        folder: Path,
        settings: AdSettings,
        salt: Callable[[str], bytes],
        wall: Callable[[], float] = time.time,
        seed: int | None = None,
    ) -> None:
        self._folder, self._zone, self._salt, self._wall = folder, settings.zone, salt, wall
        self._store: LedgerStore | None = None
        self._market = AdMarket({}, {}, {})
        rng = rng_for(secrets.randbits(63) if seed is None else seed, "serve/sponsor")
        self._selection = AdSelection(LedgerReader(folder), settings.policy, settings.terms, rng)
        self._refreshed_s = float("-inf")
        self._trouble = ""

    # the port

    def choose_ads(self, query: str, visit: Visitor) -> tuple[ShownAd, ...]:
        """Choose the ads for a search query and record their impressions; none for bots."""
        if visit.filter_reason or not query:
            return ()
        try:
            found = self._choose_ads(query, visit)
        except (StoreError, OSError) as error:
            self._report_trouble(str(error))
            return ()
        self._report_trouble("")
        return found

    def charge_click(self, showing: str, visit: Visitor) -> ClickOutcome:
        """Charge an ad click in the ledger and return its target URL.

        It is charged at once or not at all; the user is redirected either way, unless the ad was revoked.
        """
        try:
            return self._record_click(showing, visit)
        except (StoreError, OSError) as error:
            self._report_trouble(str(error))
            return ClickOutcome(refusal=_UNAVAILABLE)

    def count_forged_click(self) -> None:
        """Count an ad click with a forged token, so that the operator sees it."""
        try:
            self._open_ledger().count_refused_click(self._get_moment().day, ClickRejection.FORGED.value)
        except (StoreError, OSError) as error:
            self._report_trouble(str(error))

    def _choose_ads(self, query: str, visit: Visitor) -> tuple[ShownAd, ...]:
        now = self._get_moment()
        self._refresh(now)
        shown = self._selection.show(
            query, self._hash_address(visit, now), now, self._open_ledger(), lambda: secrets.token_hex(16)
        )
        return tuple(self._build_ad(showing) for showing in shown)

    def _build_ad(self, showing: AdImpression) -> ShownAd:
        ad = self._market.ads[showing.ad]
        return ShownAd(showing.token, showing.at_s, ad.title, ad.text, ad.url, showing.phrase)

    def _record_click(self, token: str, visit: Visitor) -> ClickOutcome:
        now = self._get_moment()
        self._refresh(now)
        ledger = self._open_ledger()
        showing = ledger.find_impression(token)
        if showing is None:
            return ClickOutcome(refusal=ClickRejection.FORGED.value)
        visitor = self._hash_address(visit, now)
        clicked = self._selection.click(showing, visitor, now, ledger, is_bot=bool(visit.filter_reason))
        why = clicked.objection.value if clicked.objection else ""
        ad = self._market.ads.get(showing.ad)
        if ad and self._selection.is_running(showing.ad, showing.phrase):
            return ClickOutcome(ad.url, why)
        # A click on a revoked ad is reported as such, whatever else is wrong with it.
        return ClickOutcome(refusal=(check_landing_url(ad.url) if ad else "") or ClickRejection.OFF_TARGET.value)

    def _refresh(self, now: Moment) -> None:
        """Reload running ads and ledger counts for ad selection, at most once a second; revoked ads drop out."""
        if 0 <= now.at_s - self._refreshed_s < REFRESH_EVERY_S:
            return
        self._market = load_market(self._folder)
        self._selection.set_market(self._market.list_running(now.day), self._market.get_budgets())
        self._selection.refresh(now)
        self._refreshed_s = now.at_s

    def _hash_address(self, visit: Visitor, now: Moment) -> str:
        """Return the visitor hash of an address alone: a browser's name can be forged."""
        return hash_visitor(Visitor(visit.address), self._salt(time.strftime("%Y-%m-%d", time.gmtime(now.at_s))))

    def _open_ledger(self) -> LedgerStore:
        if self._store is None:
            self._store = LedgerStore(self._folder)
        return self._store

    def _get_moment(self) -> Moment:
        return moment_of(datetime.fromtimestamp(self._wall(), self._zone))

    def _report_trouble(self, trouble: str) -> None:
        """Report a problem of ad selection on stderr, once until it is resolved."""
        if trouble and trouble != self._trouble:
            sys.stderr.write(f"vedette: no sponsored results for now: {trouble}\n")
            sys.stderr.flush()
        self._trouble = trouble


def _build_running(ad: AdRow) -> RunningAd:
    targets = tuple((MatchType(way), phrase, int(Decimal(bid or ad.bid) * 100)) for way, phrase, bid in ad.targets)
    return RunningAd(ad.id, ad.campaign, targets, ad.negatives)
