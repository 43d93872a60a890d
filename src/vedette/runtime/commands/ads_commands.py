"""What is ordered of the market: advertisers, campaigns and ads come, change and go. Each tells what takes it back."""

import difflib
from collections.abc import Callable, Iterable, Mapping

from vedette.adapters.ads.campaign_store import AdRow, AdvertiserRow, CampaignRow, MarketBook
from vedette.adapters.crawl_store.data_folder import State
from vedette.errors import UsageError
from vedette.web.commands.ads_commands import (
    DropAdvertiser,
    DropCampaign,
    JudgeAd,
    KeepAd,
    KeepAdvertiser,
    KeepCampaign,
    MarketOrder,
    PauseCampaign,
)

__all__ = ["MOST_ADS", "carry_out_market"]

# Of all that are not revoked: a server holds them in memory.
MOST_ADS = 10_000
MOST_CAMPAIGNS = 1000

Came = tuple[str, tuple[MarketOrder, ...]]


def carry_out_market(order: MarketOrder, state: State, now_s: float) -> Came:
    """Write it into the state; what was done, in one line, and the orders that take it back."""
    return _Market(state, now_s).carry_out(order)


class _Market:
    """The market at one moment."""

    def __init__(self, state: State, now_s: float) -> None:
        self._state, self._now_s = state, now_s
        self._book = MarketBook(state.db)
        self._advertisers = {row.name: row for row in self._book.advertisers()}
        self._campaigns = {row.name: row for row in self._book.campaigns()}
        self._ads = {row.id: row for row in self._book.ads()}

    def carry_out(self, order: MarketOrder) -> Came:
        ways: Mapping[type[MarketOrder], Callable[..., Came]] = {
            KeepAdvertiser: self._keep_advertiser,
            DropAdvertiser: self._drop_advertiser,
            KeepCampaign: self._keep_campaign,
            DropCampaign: self._drop_campaign,
            PauseCampaign: self._pause,
            KeepAd: self._keep_ad,
            JudgeAd: self._judge,
        }
        return ways[type(order)](order)

    def _keep_advertiser(self, order: KeepAdvertiser) -> Came:
        row, before = order.advertiser, self._advertisers.get(order.advertiser.name)
        digest = self._digest(row.key) if row.key else ""
        kept = AdvertiserRow(row.name, row.key, digest, before.added_s if before else self._now_s)
        self._book.keep_advertiser(kept)
        if before is not None:
            return f'changed the key of the advertiser "{row.name}"', (KeepAdvertiser(before),)
        return f'added the advertiser "{row.name}"', (DropAdvertiser(row.name),)

    def _digest(self, name: str) -> str:
        """Of a key that is good now; who has its secret sees the reports."""
        keys = {key.name: key.digest for key in self._state.book.reader_keys() if key.revoked_s is None}
        if name not in keys:
            raise UsageError(f'there is no key "{name}": "vedette keys create {name}" makes one')
        return keys[name]

    def _drop_advertiser(self, order: DropAdvertiser) -> Came:
        before = self._advertiser(order.name)
        if any(row.advertiser == order.name for row in self._campaigns.values()):
            raise UsageError(f'"{order.name}" has campaigns: remove them first')
        self._book.drop_advertiser(order.name)
        return f'removed the advertiser "{order.name}"', (KeepAdvertiser(before),)

    def _keep_campaign(self, order: KeepCampaign) -> Came:
        row, before = order.campaign, self._campaigns.get(order.campaign.name)
        self._advertiser(row.advertiser)
        if before is None:
            if len(self._campaigns) >= MOST_CAMPAIGNS:
                raise UsageError(f"there are {MOST_CAMPAIGNS} campaigns, which is as many as can be: remove one first")
            self._book.keep_campaign(row._replace(added_s=self._now_s))
            return f'added the campaign "{row.name}"', (DropCampaign(row.name),)
        if before.advertiser != row.advertiser:
            raise UsageError(f'the campaign "{row.name}" is another advertiser\'s: take another name')
        self._book.keep_campaign(row._replace(added_s=before.added_s))
        return f'changed the campaign "{row.name}"', (KeepCampaign(before),)

    def _drop_campaign(self, order: DropCampaign) -> Came:
        before = self._campaign(order.name)
        if any(ad.campaign == order.name and ad.standing != "revoked" for ad in self._ads.values()):
            raise UsageError(f'the campaign "{order.name}" has ads: revoke them first')
        self._book.drop_campaign(order.name)
        return f'removed the campaign "{order.name}"', (KeepCampaign(before),)

    def _pause(self, order: PauseCampaign) -> Came:
        before = self._campaign(order.name)
        if before.paused is order.paused:
            raise UsageError(f'the campaign "{order.name}" is {"paused already" if before.paused else "not paused"}')
        self._book.keep_campaign(before._replace(paused=order.paused))
        done = "paused" if order.paused else "resumed"
        return f'{done} the campaign "{order.name}"', (PauseCampaign(order.name, paused=before.paused),)

    def _keep_ad(self, order: KeepAd) -> Came:
        ad = order.ad
        self._campaign(ad.campaign)
        if not ad.id:
            if sum(each.standing != "revoked" for each in self._ads.values()) >= MOST_ADS:
                raise UsageError(f"there are {MOST_ADS} ads, which is as many as can be: revoke one first")
            number = self._book.keep_ad(ad._replace(standing="submitted", added_s=self._now_s))
            return f"submitted {_named(number, ad)}", (JudgeAd(number, "revoked"),)
        before = self._ad(ad.id)
        if before.campaign != ad.campaign:
            raise UsageError(f"the ad {ad.id} belongs to another campaign: submit a new one")
        self._book.keep_ad(ad._replace(standing="submitted", added_s=before.added_s))
        # What was approved once may be shown again as it was.
        again = () if before.standing == "submitted" else (JudgeAd(ad.id, before.standing),)
        return f"edited {_named(ad.id, ad)}; it waits to be approved", (KeepAd(before), *again)

    def _judge(self, order: JudgeAd) -> Came:
        before = self._ad(order.ad_id)
        if before.standing == order.standing:
            raise UsageError(f"the ad {order.ad_id} is {before.standing} already")
        if order.standing != "revoked":
            self._campaign(before.campaign)
        self._book.keep_ad(before._replace(standing=order.standing))
        done = {"approved": "approved", "revoked": "revoked", "submitted": "took back the word on"}[order.standing]
        return f"{done} {_named(order.ad_id, before)}", (JudgeAd(order.ad_id, before.standing),)

    def _advertiser(self, name: str) -> AdvertiserRow:
        if name not in self._advertisers:
            raise UsageError(f'there is no advertiser "{name}"; {_advice(name, self._advertisers)}')
        return self._advertisers[name]

    def _campaign(self, name: str) -> CampaignRow:
        if name not in self._campaigns:
            raise UsageError(f'there is no campaign "{name}"; {_advice(name, self._campaigns)}')
        return self._campaigns[name]

    def _ad(self, number: int) -> AdRow:
        if number not in self._ads:
            raise UsageError(f'there is no ad {number}; "vedette sponsor list" shows them')
        return self._ads[number]


def _named(number: int, ad: AdRow) -> str:
    return f'the ad {number}, "{ad.title}"'


def _advice(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, known, 1, cutoff=0.75)
    return f'did you mean "{near[0]}"?' if near else '"vedette sponsor list" shows them'
