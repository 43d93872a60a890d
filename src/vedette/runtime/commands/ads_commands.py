"""Execute commands on ads: advertisers, campaigns and ads; each returns the commands that undo it."""

from collections.abc import Callable, Iterable, Mapping

from vedette.adapters.ads.campaign_store import AdRow, AdvertiserRow, CampaignRow, CampaignStore
from vedette.adapters.crawl_store.data_folder import State
from vedette.adapters.crawl_store.search_store import UserKeyRow
from vedette.errors import UsageError
from vedette.suggest import did_you_mean
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


def execute_ad_command(command: AdCommand, state: State, now_s: float) -> Applied:
    """Execute a command on ads in the state; return what was done, and the commands that undo it."""
    return AdCommands(CampaignStore(state.db), state.store.list_user_keys, now_s).execute(command)


class AdCommands:
    """Executor of ad commands on the stored advertisers, campaigns and ads."""

    def __init__(self, store: CampaignStore, list_keys: Callable[[], list[UserKeyRow]], now_s: float) -> None:
        self._store, self._list_keys, self._now_s = store, list_keys, now_s
        self._advertisers = {row.name: row for row in self._store.list_advertisers()}
        self._campaigns = {row.name: row for row in self._store.list_campaigns()}
        self._ads = {row.id: row for row in self._store.list_ads()}

    def execute(self, command: AdCommand) -> Applied:
        """Execute a command; return what was done, and the commands that undo it."""
        ways: Mapping[type[AdCommand], Callable[..., Applied]] = {
            SaveAdvertiser: self._save_advertiser,
            RemoveAdvertiser: self._drop_advertiser,
            SaveCampaign: self._save_campaign,
            RemoveCampaign: self._drop_campaign,
            PauseCampaign: self._pause_campaign,
            SaveAd: self._save_ad,
            ReviewAd: self._review_ad,
        }
        return ways[type(command)](command)

    def _save_advertiser(self, command: SaveAdvertiser) -> Applied:
        row, before = command.advertiser, self._advertisers.get(command.advertiser.name)
        digest = self._find_key_digest(row.key) if row.key else ""
        updated = row._replace(digest=digest, added_s=before.added_s if before else self._now_s)
        self._store.save_advertiser(updated)
        if before is not None:
            return f'changed the advertiser "{row.name}"', (SaveAdvertiser(before),)
        return f'added the advertiser "{row.name}"', (RemoveAdvertiser(row.name),)

    def _find_key_digest(self, name: str) -> str:
        """Return the digest of an advertiser's API key that is not revoked; its secret gives access to ad reports."""
        keys = {key.name: key.digest for key in self._list_keys() if key.revoked_s is None}
        if name not in keys:
            raise UsageError(f'there is no key "{name}"; create it with "vedette keys create {name}"')
        return keys[name]

    def _drop_advertiser(self, command: RemoveAdvertiser) -> Applied:
        before = self._get_advertiser(command.name)
        if any(row.advertiser == command.name for row in self._campaigns.values()):
            raise UsageError(f'"{command.name}" has campaigns: remove them first')
        self._store.delete_advertiser(command.name)
        return f'removed the advertiser "{command.name}"', (SaveAdvertiser(before),)

    def _save_campaign(self, command: SaveCampaign) -> Applied:
        row, before = command.campaign, self._campaigns.get(command.campaign.name)
        self._get_advertiser(row.advertiser)
        if before is None:
            if len(self._campaigns) >= MAX_CAMPAIGNS:
                raise UsageError(f"there are already {MAX_CAMPAIGNS} campaigns, the maximum: remove one first")
            self._store.save_campaign(row._replace(added_s=self._now_s))
            return f'added the campaign "{row.name}"', (RemoveCampaign(row.name),)
        if before.advertiser != row.advertiser:
            raise UsageError(f'the campaign "{row.name}" belongs to another advertiser: choose another name')
        self._store.save_campaign(row._replace(added_s=before.added_s))
        return f'changed the campaign "{row.name}"', (SaveCampaign(before),)

    def _drop_campaign(self, command: RemoveCampaign) -> Applied:
        before = self._get_campaign(command.name)
        if any(ad.campaign == command.name and ad.standing != "revoked" for ad in self._ads.values()):
            raise UsageError(f'the campaign "{command.name}" has ads: revoke them first')
        self._store.delete_campaign(command.name)
        return f'removed the campaign "{command.name}"', (SaveCampaign(before),)

    def _pause_campaign(self, command: PauseCampaign) -> Applied:
        before = self._get_campaign(command.name)
        if before.paused is command.paused:
            raise UsageError(f'the campaign "{command.name}" is {"already paused" if before.paused else "not paused"}')
        self._store.save_campaign(before._replace(paused=command.paused))
        done = "paused" if command.paused else "resumed"
        return f'{done} the campaign "{command.name}"', (PauseCampaign(command.name, paused=before.paused),)

    def _save_ad(self, command: SaveAd) -> Applied:
        ad = command.ad
        self._get_campaign(ad.campaign)
        if not ad.id:
            if sum(each.standing != "revoked" for each in self._ads.values()) >= MAX_ADS:
                raise UsageError(f"there are already {MAX_ADS} ads, the maximum: revoke one first")
            number = self._store.save_ad(ad._replace(standing="submitted", added_s=self._now_s))
            return f"submitted {_describe_ad(number, ad)}", (ReviewAd(number, "revoked"),)
        before = self._get_ad(ad.id)
        if before.campaign != ad.campaign:
            raise UsageError(f"ad {ad.id} belongs to another campaign: submit a new ad")
        self._store.save_ad(ad._replace(standing="submitted", added_s=before.added_s))
        # An ad that was approved once may be shown again unchanged.
        again = () if before.standing == "submitted" else (ReviewAd(ad.id, before.standing),)
        return f"edited {_describe_ad(ad.id, ad)}; it needs approval again", (SaveAd(before), *again)

    def _review_ad(self, command: ReviewAd) -> Applied:
        before = self._get_ad(command.ad_id)
        if before.standing == command.standing:
            raise UsageError(f"ad {command.ad_id} is already {before.standing}")
        if command.standing != "revoked":
            self._get_campaign(before.campaign)
        self._store.save_ad(before._replace(standing=command.standing))
        done = {"approved": "approved", "revoked": "revoked", "submitted": "withdrew the review of"}[command.standing]
        return f"{done} {_describe_ad(command.ad_id, before)}", (ReviewAd(command.ad_id, before.standing),)

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
            raise UsageError(f'there is no ad {number}; for a list, run "vedette sponsor list"')
        return self._ads[number]


def _describe_ad(number: int, ad: AdRow) -> str:
    return f'the ad {number}, "{ad.title}"'


def _suggest(name: str, names: Iterable[str]) -> str:
    return did_you_mean(name, names, 'for a list, run "vedette sponsor list"', show='"{}"', cutoff=0.75)
