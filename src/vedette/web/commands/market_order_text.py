"""Orders of the market as programs send them: an object of JSON each, read strictly.

Whoever sends one is an advertiser, who may order of what is his and never approve anything, or has an operator's key.
An edit names what changes; the rest of the ad stays as it is. Either way the ad then waits to be approved.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from vedette.adapters.ads.campaign_store import AdRow, CampaignRow
from vedette.errors import UsageError
from vedette.serve.ads.matching import Way
from vedette.web.api.parameters import WrongParameter, unknown
from vedette.web.commands.ads_commands import (
    DropCampaign,
    JudgeAd,
    KeepAd,
    KeepAdvertiser,
    KeepCampaign,
    MarketOrder,
    PauseCampaign,
)
from vedette.web.commands.ads_text import ad_of, advertiser_of, campaign_of
from vedette.web.formatting import sentence

__all__ = ["MARKET_FIELDS", "OF_OPERATOR", "Held", "read_market_order"]

LONGEST_TEXT = 2000
MOST_NUMBER = 10**9

Fields = Mapping[str, Any]
T = TypeVar("T")


class Held(NamedTuple):
    """What whoever orders may order of: campaigns by name, ads by number. ``advertiser`` is empty for an operator."""

    advertiser: str
    campaigns: Mapping[str, CampaignRow]
    ads: Mapping[int, AdRow]


_AD: Final = ("campaign", "title", "text", "url", "bid", "phrases", "negatives")
# The fields of each order besides its name.
MARKET_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "keep_campaign": ("campaign", "advertiser", "budget", "starts", "ends"),
    "pause_campaign": ("campaign",),
    "resume_campaign": ("campaign",),
    "remove_campaign": ("campaign",),
    "submit_ad": _AD,
    "edit_ad": ("ad", *_AD[1:]),
    "revoke_ad": ("ad",),
    "approve_ad": ("ad",),
    "keep_advertiser": ("advertiser", "key"),
}
OF_OPERATOR: Final = frozenset({"approve_ad", "keep_advertiser"})


def read_market_order(told: object, held: Held) -> MarketOrder:
    """The order that an object is; raises ``WrongParameter`` for what is none, and for what is somebody else's.

    >>> nobody = Held("", {}, {})
    >>> read_market_order({"order": "keep_advertiser", "advertiser": "ann"}, nobody).advertiser.name
    'ann'
    """
    names = tuple(name for name in MARKET_FIELDS if not held.advertiser or name not in OF_OPERATOR)
    if not isinstance(told, dict):
        raise WrongParameter("", 'Send an object as JSON, such as {"order": "revoke_ad", "ad": 3}.')
    name = told.get("order")
    if name in OF_OPERATOR and held.advertiser:
        raise WrongParameter("order", "This is for the operator to say: ads wait until he approves them.")
    if not isinstance(name, str) or name not in names:
        raise WrongParameter("order", f"order is one of {', '.join(names)}.")
    known = MARKET_FIELDS[name]
    fields = {key: value for key, value in told.items() if key != "order"}
    for key in fields:
        if key not in known:
            raise unknown(key, ("order", *known))
    return _READ[name](fields, held)


def _keep_campaign(fields: Fields, held: Held) -> MarketOrder:
    """New, or changed: what is not named of a campaign that there is stays as it is."""
    name = _text(fields, "campaign").lower()
    before = held.campaigns.get(name)
    whose = _text(fields, "advertiser", before.advertiser if before else held.advertiser)
    if held.advertiser and whose != held.advertiser:
        raise WrongParameter("advertiser", "This key orders of its own advertiser's campaigns only.")
    budget = _text(fields, "budget", before.budget if before else None)
    days = [_text(fields, day, getattr(before, day) if before else "") for day in ("starts", "ends")]
    row = _meant("campaign", lambda: campaign_of(name, whose, budget, *days))
    return KeepCampaign(row._replace(paused=before.paused if before else False))


def _submit(fields: Fields, held: Held) -> MarketOrder:
    campaign = _campaign(fields, held)
    title, text, url, bid = (_text(fields, name) for name in ("title", "text", "url", "bid"))
    targets, negatives = _phrases(fields), _negatives(fields)
    return KeepAd(_meant("ad", lambda: ad_of(campaign, title, text, url, bid, targets, negatives)))


def _edit(fields: Fields, held: Held) -> MarketOrder:
    before = held.ads[_ad(fields, held)]
    if len(fields) == 1:
        raise WrongParameter("ad", "Name what changes, such as title, bid or phrases.")
    title, text, url, bid = (_text(fields, name, getattr(before, name)) for name in ("title", "text", "url", "bid"))
    targets = _phrases(fields) if "phrases" in fields else before.targets
    negatives = _negatives(fields) if "negatives" in fields else before.negatives
    return KeepAd(_meant("ad", lambda: ad_of(before.campaign, title, text, url, bid, targets, negatives, before.id)))


def _keep_advertiser(fields: Fields, _: Held) -> MarketOrder:
    name, key = _text(fields, "advertiser"), _text(fields, "key", "")
    return KeepAdvertiser(_meant("advertiser", lambda: advertiser_of(name, key)))


def _campaign(fields: Fields, held: Held) -> str:
    name = _text(fields, "campaign").lower()
    if name not in held.campaigns:
        raise WrongParameter("campaign", f"There is no such campaign; {_known(held.campaigns)}")
    return name


def _ad(fields: Fields, held: Held) -> int:
    number = fields.get("ad")
    if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number <= MOST_NUMBER:
        raise WrongParameter("ad", "ad is the number of an ad.")
    if number not in held.ads:
        raise WrongParameter("ad", f"There is no such ad; {_known(map(str, held.ads))}")
    return number


def _known(names: Iterable[str]) -> str:
    some = list(names)[:20]
    return f"there are {', '.join(some)}." if some else "there is none yet."


def _phrases(fields: Fields) -> Sequence[tuple[str, str]]:
    words = 'phrases is a list such as [{"way": "broad", "phrase": "red shoes"}]; a way is exact, phrase or broad.'
    listed, ways = fields.get("phrases"), [way.value for way in Way]
    if not isinstance(listed, list):
        raise WrongParameter("phrases", words)
    pairs = []
    for each in listed:
        if not isinstance(each, dict) or set(each) != {"way", "phrase"} or each["way"] not in ways:
            raise WrongParameter("phrases", words)
        pairs.append((str(each["way"]), _text(each, "phrase")))
    return pairs


def _negatives(fields: Fields) -> Sequence[str]:
    listed = fields.get("negatives", [])
    if not isinstance(listed, list):
        raise WrongParameter("negatives", 'negatives is a list of texts, such as ["free"].')
    return [_text({"negatives": each}, "negatives") for each in listed]


def _text(fields: Fields, name: str, usual: str | None = None) -> str:
    """A text; with a usual one it may be left out."""
    text = fields.get(name, usual)
    if not isinstance(text, str) or len(text) > LONGEST_TEXT or (usual is None and not text.strip()):
        raise WrongParameter(name, f"{name} is a text of 1 to {LONGEST_TEXT} characters.")
    return text.strip()


def _meant(name: str, read: Callable[[], T]) -> T:
    try:
        return read()
    except UsageError as error:
        raise WrongParameter(name, sentence(str(error))) from None


_READ: Mapping[str, Callable[[Fields, Held], MarketOrder]] = {
    "keep_campaign": _keep_campaign,
    "pause_campaign": lambda fields, held: PauseCampaign(_campaign(fields, held), paused=True),
    "resume_campaign": lambda fields, held: PauseCampaign(_campaign(fields, held), paused=False),
    "remove_campaign": lambda fields, held: DropCampaign(_campaign(fields, held)),
    "submit_ad": _submit,
    "edit_ad": _edit,
    "revoke_ad": lambda fields, held: JudgeAd(_ad(fields, held), "revoked"),
    "approve_ad": lambda fields, held: JudgeAd(_ad(fields, held), "approved"),
    "keep_advertiser": _keep_advertiser,
}
