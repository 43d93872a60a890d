"""Orders as programs send them: an object of JSON each, read strictly; every refusal names the field and what is right.

Settings of sites are written as in the files that ``vedette sites export`` writes.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

from vedette.adapters.ads.campaign_store import AdRow, CampaignRow
from vedette.config.site_settings import changes_of_settings, site_of_text
from vedette.discover.urls.scope import read_site
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
from vedette.web.commands.alert_text import read_name, read_place, read_query_text, read_webhook, watch_of
from vedette.web.commands.commands import (
    KINDS,
    PER_QUERY,
    AddRules,
    AddSite,
    AddWatch,
    Dismiss,
    FetchNow,
    Order,
    PauseSite,
    RemoveRules,
    RemoveSite,
    RemoveWatch,
    Rule,
    SetSite,
    Undo,
)
from vedette.web.commands.rule_text import rule_of, web_url
from vedette.web.formatting import sentence

__all__ = [
    "FIELDS",
    "LONGEST_TEXT",
    "MARKET_FIELDS",
    "MOST_ACTION",
    "MOST_URLS",
    "OF_OPERATOR",
    "Held",
    "read_market_order",
    "read_order",
]

# Whoever sends one is an advertiser, who may order of what is his and never approve anything, or has an operator's key.
# An edit names what changes; the rest of the ad stays as it is. Either way the ad then waits to be approved.


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


MOST_URLS = 100
MOST_ACTION = 2**53 - 1


def read_order(told: object) -> Order:
    """The order that an object is; raises ``WrongParameter`` for what is none.

    >>> read_order({"order": "pause_site", "site": "example.org"})
    PauseSite(start='https://example.org/', paused=True)
    """
    if not isinstance(told, dict):
        raise WrongParameter("", 'Send an object as JSON, such as {"order": "pause_site", "site": "example.org"}.')
    name = told.get("order")
    if not isinstance(name, str) or name not in _READ_JSON_COMMANDS:
        raise WrongParameter("order", f"order is one of {', '.join(_READ_JSON_COMMANDS)}.")
    fields = {key: value for key, value in told.items() if key != "order"}
    for key in fields:
        if key not in FIELDS[name]:
            raise unknown(key, ("order", *FIELDS[name]))
    return _READ_JSON_COMMANDS[name](fields)


def _add_site(fields: Fields) -> Order:
    site = _meant_json_commands("settings", lambda: site_of_text(_site(fields), _settings(fields)))
    return AddSite(site, paused=_switch(fields, "paused"))


def _set_site(fields: Fields) -> Order:
    settings = _settings(fields)
    if not settings:
        raise WrongParameter("settings", 'Name in settings what is to change, such as {"delay": "5s"}.')
    start = _site(fields)
    # Read once with the start, so that what cannot be meant together is found as well.
    _meant_json_commands("settings", lambda: site_of_text(start, settings))
    return SetSite(start, _meant_json_commands("settings", lambda: changes_of_settings(settings)), " ".join(settings))


def _remove_site(fields: Fields) -> Order:
    return RemoveSite(_site(fields), with_pages=_switch(fields, "with_pages"))


def _rule(fields: Fields) -> Rule:
    kind = fields.get("kind")
    if kind not in KINDS:
        raise WrongParameter("kind", f"kind is one of {', '.join(KINDS)}.")
    query = _text_json_commands(fields, "query", needed=kind in PER_QUERY)
    if query and kind not in PER_QUERY:
        raise WrongParameter("query", f"A rule of kind {kind} holds for all queries: leave query out.")
    value = _text_json_commands(fields, "value")
    return _meant_json_commands("value", lambda: rule_of(kind, query, value))


def _fetch(fields: Fields) -> Order:
    urls = fields.get("urls")
    if not isinstance(urls, list) or not 1 <= len(urls) <= MOST_URLS:
        raise WrongParameter("urls", f"urls is a list of 1 to {MOST_URLS} URLs.")
    texts = [_text_json_commands({"urls": url}, "urls") for url in urls]
    pages = [_meant_json_commands("urls", partial(web_url, text)) for text in texts]
    return FetchNow(tuple(dict.fromkeys(pages)))


def _dismiss(fields: Fields) -> Order:
    host = _text_json_commands(fields, "host")
    return Dismiss(_meant_json_commands("host", lambda: rule_of("block", "", host).value))  # a host, as rules know it


def _add_watch(fields: Fields) -> Order:
    """A watch of public pages: whose private ones go to a webhook is not for keys to say."""
    typed = {
        name: _text_json_commands(fields, name, needed=name == "name") for name in ("name", "place", "query", "webhook")
    }
    readers = {"name": read_name, "place": read_place, "query": read_query_text, "webhook": read_webhook}
    for name, read in readers.items():
        _meant_json_commands(name, lambda read=read, name=name: read(typed[name]))  # type: ignore[misc]  # the defaults bind them
    return AddWatch(_meant_json_commands("place", lambda: watch_of(**typed)))


def _undo(fields: Fields) -> Order:
    action = fields.get("action")
    if isinstance(action, float) and action.is_integer():
        action = int(action)
    if not isinstance(action, int) or isinstance(action, bool) or not 1 <= action <= MOST_ACTION:
        raise WrongParameter("action", "action is the number of an action in the log.")
    return Undo(action)


def _site(fields: Fields) -> str:
    return _meant_json_commands("site", lambda: read_site(_text_json_commands(fields, "site"))).start


def _settings(fields: Fields) -> dict[str, object]:
    """By name. A key must not point the crawler at secrets of this machine, to be sent to a host of its holder's."""
    settings = fields.get("settings", {})
    if isinstance(settings, dict) and "secrets" in settings:
        raise WrongParameter("settings", "Credentials are named in the console or on the command line, not by keys.")
    if not isinstance(settings, dict):
        raise WrongParameter("settings", 'settings is an object, such as {"delay": "5s", "exclude": ["/drafts/*"]}.')
    return settings


def _text_json_commands(fields: Fields, name: str, *, needed: bool = True) -> str:
    text = fields.get(name, "")
    if not isinstance(text, str) or len(text) > LONGEST_TEXT or (needed and not text.strip()):
        raise WrongParameter(name, f"{name} is a text of 1 to {LONGEST_TEXT} characters.")
    return text.strip()


def _switch(fields: Fields, name: str) -> bool:
    value = fields.get(name, False)
    if not isinstance(value, bool):
        raise WrongParameter(name, f"{name} is true or false.")
    return value


def _meant_json_commands(name: str, read: Callable[[], T]) -> T:
    """What was read; an error of it is one of this field."""
    try:
        return read()
    except UsageError as error:
        raise WrongParameter(name, sentence(str(error))) from None


_READ_JSON_COMMANDS: Mapping[str, Callable[[Fields], Order]] = {
    "add_site": _add_site,
    "set_site": _set_site,
    "pause_site": lambda fields: PauseSite(_site(fields), paused=True),
    "resume_site": lambda fields: PauseSite(_site(fields), paused=False),
    "remove_site": _remove_site,
    "add_rule": lambda fields: AddRules((_rule(fields),)),
    "remove_rule": lambda fields: RemoveRules((_rule(fields),)),
    "fetch": _fetch,
    "dismiss": _dismiss,
    "add_watch": _add_watch,
    "remove_watch": lambda fields: RemoveWatch(
        _meant_json_commands("name", lambda: read_name(_text_json_commands(fields, "name")))
    ),
    "undo": _undo,
}
# The fields of each order besides its name; those in brackets of the description may be left out.
FIELDS: Mapping[str, tuple[str, ...]] = {
    "add_site": ("site", "settings", "paused"),
    "set_site": ("site", "settings"),
    "pause_site": ("site",),
    "resume_site": ("site",),
    "remove_site": ("site", "with_pages"),
    "add_rule": ("kind", "query", "value"),
    "remove_rule": ("kind", "query", "value"),
    "fetch": ("urls",),
    "dismiss": ("host",),
    "add_watch": ("name", "place", "query", "webhook"),
    "remove_watch": ("name",),
    "undo": ("action",),
}
