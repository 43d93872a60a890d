"""Commands on ads as values: the same for console, API and command line, and for undoing a command."""

from dataclasses import dataclass

from vedette.adapters.ads.campaign_store import AdRow, AdStatus, AdvertiserRow, CampaignRow


@dataclass(frozen=True, slots=True)
class SaveAdvertiser:
    """A command that adds an advertiser, or gives one another key."""

    advertiser: AdvertiserRow


@dataclass(frozen=True, slots=True)
class RemoveAdvertiser:
    """A command that removes an advertiser who has no campaign."""

    name: str


@dataclass(frozen=True, slots=True)
class SaveCampaign:
    """A command that creates a campaign, or changes its budget or days."""

    campaign: CampaignRow


@dataclass(frozen=True, slots=True)
class RemoveCampaign:
    """A command that removes a campaign, all of whose ads are revoked."""

    name: str


@dataclass(frozen=True, slots=True)
class PauseCampaign:
    """A command that pauses a campaign, so that none of its ads are shown, or resumes it."""

    name: str
    paused: bool


@dataclass(frozen=True, slots=True)
class SaveAd:
    """A command that submits an ad, new (number 0) or edited; either way it waits for approval."""

    ad: AdRow


@dataclass(frozen=True, slots=True)
class ReviewAd:
    """A command that approves or revokes an ad, or makes it wait for review again."""

    ad_id: int
    standing: AdStatus


AdCommand = SaveAdvertiser | RemoveAdvertiser | SaveCampaign | RemoveCampaign | PauseCampaign | SaveAd | ReviewAd
