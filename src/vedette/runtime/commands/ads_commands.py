"""What is ordered of the market: advertisers, campaigns and ads come, change and go. Each tells what takes it back."""

import difflib
from collections.abc import Callable, Iterable, Mapping

from vedette.adapters.ads.campaign_store import AdRow, AdStore, AdvertiserRow, CampaignRow
from vedette.adapters.crawl_store.data_folder import State
from vedette.errors import UsageError
from vedette.web.commands.ads_commands import (
    AdCommand,
    PauseCampaign,
    RemoveAdvertiser,
    RemoveCampaign,
    ReviewAd,
    SaveAd,
    SaveAdvertiser,
    SaveCampaign,
)

# Of all that are not revoked: a server holds them in memory.
MAX_ADS = 10_000
MAX_CAMPAIGNS = 1000

Applied = tuple[str, tuple[AdCommand, ...]]


def execute_ad_command(order: AdCommand, state: State, now_s: float) -> Applied:
    """Write it into the state; what was done, in one line, and the orders that take it back."""
    return _AdCommands(state, now_s).execute(order)


class _AdCommands:
    """The market at one moment."""

    def __init__(self, state: State, now_s: float) -> None:
        self._state, self._now_s = state, now_s
        self._store = AdStore(state.db)
        self._advertisers = {row.name: row for row in self._store.list_advertisers()}
        self._campaigns = {row.name: row for row in self._store.list_campaigns()}
        self._ads = {row.id: row for row in self._store.list_ads()}

    def execute(self, order: AdCommand) -> Applied:
        ways: Mapping[type[AdCommand], Callable[..., Applied]] = {
            SaveAdvertiser: self._save_advertiser,
            RemoveAdvertiser: self._drop_advertiser,
            SaveCampaign: self._save_campaign,
            RemoveCampaign: self._drop_campaign,
            PauseCampaign: self._pause_campaign,
            SaveAd: self._save_ad,
            ReviewAd: self._review_ad,
        }
        return ways[type(order)](order)

    def _save_advertiser(self, order: SaveAdvertiser) -> Applied:
        row, before = order.advertiser, self._advertisers.get(order.advertiser.name)
        digest = self._find_key_digest(row.key) if row.key else ""
        kept = AdvertiserRow(row.name, row.key, digest, before.added_s if before else self._now_s)
        self._store.save_advertiser(kept)
        if before is not None:
            return f'changed the key of the advertiser "{row.name}"', (SaveAdvertiser(before),)
        return f'added the advertiser "{row.name}"', (RemoveAdvertiser(row.name),)

    def _find_key_digest(self, name: str) -> str:
        """Of a key that is good now; who has its secret sees the reports."""
        keys = {key.name: key.digest for key in self._state.store.list_user_keys() if key.revoked_s is None}
        if name not in keys:
            raise UsageError(f'there is no key "{name}": "vedette keys create {name}" makes one')
        return keys[name]

    def _drop_advertiser(self, order: RemoveAdvertiser) -> Applied:
        before = self._get_advertiser(order.name)
        if any(row.advertiser == order.name for row in self._campaigns.values()):
            raise UsageError(f'"{order.name}" has campaigns: remove them first')
        self._store.delete_advertiser(order.name)
        return f'removed the advertiser "{order.name}"', (SaveAdvertiser(before),)

    def _save_campaign(self, order: SaveCampaign) -> Applied:
        row, before = order.campaign, self._campaigns.get(order.campaign.name)
        self._get_advertiser(row.advertiser)
        if before is None:
            if len(self._campaigns) >= MAX_CAMPAIGNS:
                raise UsageError(f"there are {MAX_CAMPAIGNS} campaigns, which is as many as can be: remove one first")
            self._store.save_campaign(row._replace(added_s=self._now_s))
            return f'added the campaign "{row.name}"', (RemoveCampaign(row.name),)
        if before.advertiser != row.advertiser:
            raise UsageError(f'the campaign "{row.name}" is another advertiser\'s: take another name')
        self._store.save_campaign(row._replace(added_s=before.added_s))
        return f'changed the campaign "{row.name}"', (SaveCampaign(before),)

    def _drop_campaign(self, order: RemoveCampaign) -> Applied:
        before = self._get_campaign(order.name)
        if any(ad.campaign == order.name and ad.standing != "revoked" for ad in self._ads.values()):
            raise UsageError(f'the campaign "{order.name}" has ads: revoke them first')
        self._store.delete_campaign(order.name)
        return f'removed the campaign "{order.name}"', (SaveCampaign(before),)

    def _pause_campaign(self, order: PauseCampaign) -> Applied:
        before = self._get_campaign(order.name)
        if before.paused is order.paused:
            raise UsageError(f'the campaign "{order.name}" is {"paused already" if before.paused else "not paused"}')
        self._store.save_campaign(before._replace(paused=order.paused))
        done = "paused" if order.paused else "resumed"
        return f'{done} the campaign "{order.name}"', (PauseCampaign(order.name, paused=before.paused),)

    def _save_ad(self, order: SaveAd) -> Applied:
        ad = order.ad
        self._get_campaign(ad.campaign)
        if not ad.id:
            if sum(each.standing != "revoked" for each in self._ads.values()) >= MAX_ADS:
                raise UsageError(f"there are {MAX_ADS} ads, which is as many as can be: revoke one first")
            number = self._store.save_ad(ad._replace(standing="submitted", added_s=self._now_s))
            return f"submitted {_describe_ad(number, ad)}", (ReviewAd(number, "revoked"),)
        before = self._get_ad(ad.id)
        if before.campaign != ad.campaign:
            raise UsageError(f"the ad {ad.id} belongs to another campaign: submit a new one")
        self._store.save_ad(ad._replace(standing="submitted", added_s=before.added_s))
        # What was approved once may be shown again as it was.
        again = () if before.standing == "submitted" else (ReviewAd(ad.id, before.standing),)
        return f"edited {_describe_ad(ad.id, ad)}; it waits to be approved", (SaveAd(before), *again)

    def _review_ad(self, order: ReviewAd) -> Applied:
        before = self._get_ad(order.ad_id)
        if before.standing == order.standing:
            raise UsageError(f"the ad {order.ad_id} is {before.standing} already")
        if order.standing != "revoked":
            self._get_campaign(before.campaign)
        self._store.save_ad(before._replace(standing=order.standing))
        done = {"approved": "approved", "revoked": "revoked", "submitted": "took back the word on"}[order.standing]
        return f"{done} {_describe_ad(order.ad_id, before)}", (ReviewAd(order.ad_id, before.standing),)

    def _get_advertiser(self, name: str) -> AdvertiserRow:
        if name not in self._advertisers:
            raise UsageError(f'there is no advertiser "{name}"; {_suggest(name, self._advertisers)}')
        return self._advertisers[name]

    def _get_campaign(self, name: str) -> CampaignRow:
        if name not in self._campaigns:
            raise UsageError(f'there is no campaign "{name}"; {_suggest(name, self._campaigns)}')
        return self._campaigns[name]

    def _get_ad(self, number: int) -> AdRow:
        if number not in self._ads:
            raise UsageError(f'there is no ad {number}; "vedette sponsor list" shows them')
        return self._ads[number]


def _describe_ad(number: int, ad: AdRow) -> str:
    return f'the ad {number}, "{ad.title}"'


def _suggest(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, known, 1, cutoff=0.75)
    return f'did you mean "{near[0]}"?' if near else '"vedette sponsor list" shows them'
