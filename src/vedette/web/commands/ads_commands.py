"""What may be ordered of the market, as values: the same for console and command line, and for undoing it."""

from dataclasses import asdict, dataclass
from typing import Any

from vedette.adapters.ads.campaign_store import AdRow, AdStatus, AdvertiserRow, CampaignRow
from vedette.errors import StoreCorrupt


@dataclass(frozen=True, slots=True)
class KeepAdvertiser:
    """Somebody may have campaigns; or one who may has another key."""

    advertiser: AdvertiserRow


@dataclass(frozen=True, slots=True)
class DropAdvertiser:
    """And no more; he has no campaign then."""

    name: str


@dataclass(frozen=True, slots=True)
class KeepCampaign:
    """A campaign, new or with another budget or other days."""

    campaign: CampaignRow


@dataclass(frozen=True, slots=True)
class DropCampaign:
    """It is gone; all its ads are revoked then."""

    name: str


@dataclass(frozen=True, slots=True)
class PauseCampaign:
    """None of its ads is shown until it goes on; or it does."""

    name: str
    paused: bool


@dataclass(frozen=True, slots=True)
class KeepAd:
    """An ad is submitted, new (number 0) or edited; either way it waits to be approved."""

    ad: AdRow


@dataclass(frozen=True, slots=True)
class JudgeAd:
    """An ad is approved, revoked, or waits again."""

    ad_id: int
    standing: AdStatus


AdCommand = KeepAdvertiser | DropAdvertiser | KeepCampaign | DropCampaign | PauseCampaign | KeepAd | JudgeAd

# By the names under which they are stored; these stay, whatever the classes are called.
_COMMAND_TYPES: dict[str, type[Any]] = {
    "keep_advertiser": KeepAdvertiser,
    "drop_advertiser": DropAdvertiser,
    "keep_campaign": KeepCampaign,
    "drop_campaign": DropCampaign,
    "pause_campaign": PauseCampaign,
    "keep_ad": KeepAd,
    "judge_ad": JudgeAd,
}
_COMMAND_NAMES = {kind: name for name, kind in _COMMAND_TYPES.items()}


def is_ad_command(told: object) -> bool:
    """Whether what was kept is an order of the market."""
    return isinstance(told, dict) and told.get("order") in _COMMAND_TYPES


def ad_command_to_json(order: AdCommand) -> dict[str, object]:
    """An order that may undo another, to be kept.

    >>> ad_command_to_json(PauseCampaign("spring", paused=True))
    {'order': 'pause_campaign', 'name': 'spring', 'paused': True}
    """
    return {"order": _COMMAND_NAMES[type(order)], **asdict(order)}


def ad_command_from_json(told: object) -> AdCommand:
    """The order that was kept; what makes no sense is damage.

    >>> ad_command_from_json({"order": "judge_ad", "ad_id": 3, "standing": "approved"})
    JudgeAd(ad_id=3, standing='approved')
    """
    try:
        fields: dict[str, Any] = dict(told)  # type: ignore[call-overload]  # whatever it is, it is tried
        kind = _COMMAND_TYPES[fields.pop("order")]
        if "advertiser" in fields:
            fields["advertiser"] = AdvertiserRow(*fields["advertiser"])
        if "campaign" in fields:
            fields["campaign"] = CampaignRow(*fields["campaign"])
        if "ad" in fields:
            fields["ad"] = _ad_row_from_json(fields["ad"])
        order: AdCommand = kind(**fields)
    except (TypeError, ValueError, LookupError, AttributeError) as error:
        raise StoreCorrupt(f"an action is kept in a row that cannot be read ({error}): restore the state") from error
    return order


def _ad_row_from_json(values: list[Any]) -> AdRow:
    row = AdRow(*values)
    targets = tuple((way, phrase) for way, phrase in row.targets)
    return row._replace(targets=targets, negatives=tuple(row.negatives))
