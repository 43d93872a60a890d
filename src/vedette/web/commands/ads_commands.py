"""What may be ordered of the market, as values: the same for console and command line, and for undoing it."""

from dataclasses import dataclass

from vedette.adapters.ads.campaign_store import AdRow, AdStatus, AdvertiserRow, CampaignRow


@dataclass(frozen=True, slots=True)
class SaveAdvertiser:
    """Somebody may have campaigns; or one who may has another key."""

    advertiser: AdvertiserRow


@dataclass(frozen=True, slots=True)
class RemoveAdvertiser:
    """And no more; he has no campaign then."""

    name: str


@dataclass(frozen=True, slots=True)
class SaveCampaign:
    """A campaign, new or with another budget or other days."""

    campaign: CampaignRow


@dataclass(frozen=True, slots=True)
class RemoveCampaign:
    """It is gone; all its ads are revoked then."""

    name: str


@dataclass(frozen=True, slots=True)
class PauseCampaign:
    """None of its ads is shown until it goes on; or it does."""

    name: str
    paused: bool


@dataclass(frozen=True, slots=True)
class SaveAd:
    """An ad is submitted, new (number 0) or edited; either way it waits to be approved."""

    ad: AdRow


@dataclass(frozen=True, slots=True)
class ReviewAd:
    """An ad is approved, revoked, or waits again."""

    ad_id: int
    standing: AdStatus


AdCommand = SaveAdvertiser | RemoveAdvertiser | SaveCampaign | RemoveCampaign | PauseCampaign | SaveAd | ReviewAd
