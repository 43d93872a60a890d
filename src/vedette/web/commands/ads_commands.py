"""Commands on ads as values: the same for console, API and command line, and for undoing one."""

from dataclasses import dataclass

from vedette.adapters.ads.campaign_store import AdRow, AdStatus, AdvertiserRow, CampaignRow


@dataclass(frozen=True, slots=True)
class SaveAdvertiser:
    """Let somebody have campaigns, or give an advertiser another key."""

    advertiser: AdvertiserRow


@dataclass(frozen=True, slots=True)
class RemoveAdvertiser:
    """Remove an advertiser who has no campaign."""

    name: str


@dataclass(frozen=True, slots=True)
class SaveCampaign:
    """Create a campaign, or change its budget or days."""

    campaign: CampaignRow


@dataclass(frozen=True, slots=True)
class RemoveCampaign:
    """Remove a campaign, all of whose ads are revoked."""

    name: str


@dataclass(frozen=True, slots=True)
class PauseCampaign:
    """Show none of its ads until it is resumed; or resume it."""

    name: str
    paused: bool


@dataclass(frozen=True, slots=True)
class SaveAd:
    """Submit an ad, new (number 0) or edited; either way it waits to be approved."""

    ad: AdRow


@dataclass(frozen=True, slots=True)
class ReviewAd:
    """Approve or revoke an ad, or let it wait again."""

    ad_id: int
    standing: AdStatus


AdCommand = SaveAdvertiser | RemoveAdvertiser | SaveCampaign | RemoveCampaign | PauseCampaign | SaveAd | ReviewAd
