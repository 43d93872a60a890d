"""Orders as programs send them: an object of JSON each, read strictly; every refusal names the field and what is right.

Settings of sites are written as in the files that ``vedette sites export`` writes.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

from vedette.adapters.ads.campaign_store import AdRow, CampaignRow
from vedette.config.site_settings import parse_settings, site_of_text
from vedette.discover.urls.scope import read_site
from vedette.errors import UsageError
from vedette.serve.ads.matching import MatchType
from vedette.web.api.parameters import ParameterError, build_unknown_error
from vedette.web.commands.ads_commands import (
    AdCommand,
    DropCampaign,
    JudgeAd,
    KeepAd,
    KeepAdvertiser,
    KeepCampaign,
    PauseCampaign,
)
from vedette.web.commands.ads_text import parse_ad, parse_advertiser, parse_campaign
from vedette.web.commands.alert_text import parse_alert, parse_name, parse_place, parse_query_text, parse_webhook
from vedette.web.commands.commands import (
    QUERY_RULE_KINDS,
    RULE_KINDS,
    AddRules,
    AddSite,
    AddWatch,
    Command,
    Dismiss,
    FetchNow,
    PauseSite,
    RemoveRules,
    RemoveSite,
    RemoveWatch,
    Rule,
    SetSite,
    Undo,
)
from vedette.web.commands.rule_text import parse_rule, parse_web_url
from vedette.web.formatting import sentence

# Whoever sends one is an advertiser, who may order of what is his and never approve anything, or has an operator's key.
# An edit names what changes; the rest of the ad stays as it is. Either way the ad then waits to be approved.


MAX_TEXT_LENGTH = 2000
MAX_AD_NUMBER = 10**9

Fields = Mapping[str, Any]
T = TypeVar("T")


class Holdings(NamedTuple):
    """What whoever orders may order of: campaigns by name, ads by number. ``advertiser`` is empty for an operator."""

    advertiser: str
    campaigns: Mapping[str, CampaignRow]
    ads: Mapping[int, AdRow]


_AD_FIELDS: Final = ("campaign", "title", "text", "url", "bid", "phrases", "negatives")
# The fields of each order besides its name.
MARKET_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "keep_campaign": ("campaign", "advertiser", "budget", "starts", "ends"),
    "pause_campaign": ("campaign",),
    "resume_campaign": ("campaign",),
    "remove_campaign": ("campaign",),
    "submit_ad": _AD_FIELDS,
    "edit_ad": ("ad", *_AD_FIELDS[1:]),
    "revoke_ad": ("ad",),
    "approve_ad": ("ad",),
    "keep_advertiser": ("advertiser", "key"),
}
ADMIN_COMMANDS: Final = frozenset({"approve_ad", "keep_advertiser"})


def parse_ad_command(told: object, held: Holdings) -> AdCommand:
    """The order that an object is; raises ``ParameterError`` for what is none, and for what is somebody else's.

    >>> nobody = Holdings("", {}, {})
    >>> parse_ad_command({"order": "keep_advertiser", "advertiser": "ann"}, nobody).advertiser.name
    'ann'
    """
    names = tuple(name for name in MARKET_FIELDS if not held.advertiser or name not in ADMIN_COMMANDS)
    if not isinstance(told, dict):
        raise ParameterError("", 'Send an object as JSON, such as {"order": "revoke_ad", "ad": 3}.')
    name = told.get("order")
    if name in ADMIN_COMMANDS and held.advertiser:
        raise ParameterError("order", "This is for the operator to say: ads wait until he approves them.")
    if not isinstance(name, str) or name not in names:
        raise ParameterError("order", f"order is one of {', '.join(names)}.")
    known = MARKET_FIELDS[name]
    fields = {key: value for key, value in told.items() if key != "order"}
    for key in fields:
        if key not in known:
            raise build_unknown_error(key, ("order", *known))
    return _READ[name](fields, held)


def _parse_keep_campaign(fields: Fields, held: Holdings) -> AdCommand:
    """New, or changed: what is not named of a campaign that there is stays as it is."""
    name = _text(fields, "campaign").lower()
    before = held.campaigns.get(name)
    whose = _text(fields, "advertiser", before.advertiser if before else held.advertiser)
    if held.advertiser and whose != held.advertiser:
        raise ParameterError("advertiser", "This key orders of its own advertiser's campaigns only.")
    budget = _text(fields, "budget", before.budget if before else None)
    days = [_text(fields, day, getattr(before, day) if before else "") for day in ("starts", "ends")]
    row = _meant("campaign", lambda: parse_campaign(name, whose, budget, *days))
    return KeepCampaign(row._replace(paused=before.paused if before else False))


def _parse_submit_ad(fields: Fields, held: Holdings) -> AdCommand:
    campaign = _parse_campaign(fields, held)
    title, text, url, bid = (_text(fields, name) for name in ("title", "text", "url", "bid"))
    targets, negatives = _parse_phrases(fields), _parse_negatives(fields)
    return KeepAd(_meant("ad", lambda: parse_ad(campaign, title, text, url, bid, targets, negatives)))


def _parse_edit_ad(fields: Fields, held: Holdings) -> AdCommand:
    before = held.ads[_parse_ad_number(fields, held)]
    if len(fields) == 1:
        raise ParameterError("ad", "Name what changes, such as title, bid or phrases.")
    title, text, url, bid = (_text(fields, name, getattr(before, name)) for name in ("title", "text", "url", "bid"))
    targets = _parse_phrases(fields) if "phrases" in fields else before.targets
    negatives = _parse_negatives(fields) if "negatives" in fields else before.negatives
    return KeepAd(_meant("ad", lambda: parse_ad(before.campaign, title, text, url, bid, targets, negatives, before.id)))


def _parse_keep_advertiser(fields: Fields, _: Holdings) -> AdCommand:
    name, key = _text(fields, "advertiser"), _text(fields, "key", "")
    return KeepAdvertiser(_meant("advertiser", lambda: parse_advertiser(name, key)))


def _parse_campaign(fields: Fields, held: Holdings) -> str:
    name = _text(fields, "campaign").lower()
    if name not in held.campaigns:
        raise ParameterError("campaign", f"There is no such campaign; {_list_known(held.campaigns)}")
    return name


def _parse_ad_number(fields: Fields, held: Holdings) -> int:
    number = fields.get("ad")
    if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number <= MAX_AD_NUMBER:
        raise ParameterError("ad", "ad is the number of an ad.")
    if number not in held.ads:
        raise ParameterError("ad", f"There is no such ad; {_list_known(map(str, held.ads))}")
    return number


def _list_known(names: Iterable[str]) -> str:
    some = list(names)[:20]
    return f"there are {', '.join(some)}." if some else "there is none yet."


def _parse_phrases(fields: Fields) -> Sequence[tuple[str, str]]:
    words = 'phrases is a list such as [{"way": "broad", "phrase": "red shoes"}]; a way is exact, phrase or broad.'
    listed, ways = fields.get("phrases"), [way.value for way in MatchType]
    if not isinstance(listed, list):
        raise ParameterError("phrases", words)
    pairs = []
    for each in listed:
        if not isinstance(each, dict) or set(each) != {"way", "phrase"} or each["way"] not in ways:
            raise ParameterError("phrases", words)
        pairs.append((str(each["way"]), _text(each, "phrase")))
    return pairs


def _parse_negatives(fields: Fields) -> Sequence[str]:
    listed = fields.get("negatives", [])
    if not isinstance(listed, list):
        raise ParameterError("negatives", 'negatives is a list of texts, such as ["free"].')
    return [_text({"negatives": each}, "negatives") for each in listed]


def _text(fields: Fields, name: str, usual: str | None = None) -> str:
    """A text; with a usual one it may be left out."""
    text = fields.get(name, usual)
    if not isinstance(text, str) or len(text) > MAX_TEXT_LENGTH or (usual is None and not text.strip()):
        raise ParameterError(name, f"{name} is a text of 1 to {MAX_TEXT_LENGTH} characters.")
    return text.strip()


def _meant(name: str, read: Callable[[], T]) -> T:
    try:
        return read()
    except UsageError as error:
        raise ParameterError(name, sentence(str(error))) from None


_READ: Mapping[str, Callable[[Fields, Holdings], AdCommand]] = {
    "keep_campaign": _parse_keep_campaign,
    "pause_campaign": lambda fields, held: PauseCampaign(_parse_campaign(fields, held), paused=True),
    "resume_campaign": lambda fields, held: PauseCampaign(_parse_campaign(fields, held), paused=False),
    "remove_campaign": lambda fields, held: DropCampaign(_parse_campaign(fields, held)),
    "submit_ad": _parse_submit_ad,
    "edit_ad": _parse_edit_ad,
    "revoke_ad": lambda fields, held: JudgeAd(_parse_ad_number(fields, held), "revoked"),
    "approve_ad": lambda fields, held: JudgeAd(_parse_ad_number(fields, held), "approved"),
    "keep_advertiser": _parse_keep_advertiser,
}


MAX_URLS = 100
MAX_ACTION = 2**53 - 1


def parse_command(told: object) -> Command:
    """The order that an object is; raises ``ParameterError`` for what is none.

    >>> parse_command({"order": "pause_site", "site": "example.org"})
    PauseSite(start='https://example.org/', paused=True)
    """
    if not isinstance(told, dict):
        raise ParameterError("", 'Send an object as JSON, such as {"order": "pause_site", "site": "example.org"}.')
    name = told.get("order")
    if not isinstance(name, str) or name not in _READ_JSON_COMMANDS:
        raise ParameterError("order", f"order is one of {', '.join(_READ_JSON_COMMANDS)}.")
    fields = {key: value for key, value in told.items() if key != "order"}
    for key in fields:
        if key not in FIELDS[name]:
            raise build_unknown_error(key, ("order", *FIELDS[name]))
    return _READ_JSON_COMMANDS[name](fields)


def _parse_add_site(fields: Fields) -> Command:
    site = _meant_json_commands("settings", lambda: site_of_text(_parse_site(fields), _parse_settings(fields)))
    return AddSite(site, paused=_parse_flag(fields, "paused"))


def _parse_set_site(fields: Fields) -> Command:
    settings = _parse_settings(fields)
    if not settings:
        raise ParameterError("settings", 'Name in settings what is to change, such as {"delay": "5s"}.')
    start = _parse_site(fields)
    # Read once with the start, so that what cannot be meant together is found as well.
    _meant_json_commands("settings", lambda: site_of_text(start, settings))
    return SetSite(start, _meant_json_commands("settings", lambda: parse_settings(settings)), " ".join(settings))


def _parse_remove_site(fields: Fields) -> Command:
    return RemoveSite(_parse_site(fields), with_pages=_parse_flag(fields, "with_pages"))


def _parse_rule(fields: Fields) -> Rule:
    kind = fields.get("kind")
    if kind not in RULE_KINDS:
        raise ParameterError("kind", f"kind is one of {', '.join(RULE_KINDS)}.")
    query = _text_json_commands(fields, "query", needed=kind in QUERY_RULE_KINDS)
    if query and kind not in QUERY_RULE_KINDS:
        raise ParameterError("query", f"A rule of kind {kind} holds for all queries: leave query out.")
    value = _text_json_commands(fields, "value")
    return _meant_json_commands("value", lambda: parse_rule(kind, query, value))


def _parse_fetch(fields: Fields) -> Command:
    urls = fields.get("urls")
    if not isinstance(urls, list) or not 1 <= len(urls) <= MAX_URLS:
        raise ParameterError("urls", f"urls is a list of 1 to {MAX_URLS} URLs.")
    texts = [_text_json_commands({"urls": url}, "urls") for url in urls]
    pages = [_meant_json_commands("urls", partial(parse_web_url, text)) for text in texts]
    return FetchNow(tuple(dict.fromkeys(pages)))


def _parse_dismiss(fields: Fields) -> Command:
    host = _text_json_commands(fields, "host")
    return Dismiss(
        _meant_json_commands("host", lambda: parse_rule("block", "", host).value)
    )  # a host, as rules know it


def _parse_add_alert(fields: Fields) -> Command:
    """A watch of public pages: whose private ones go to a webhook is not for keys to say."""
    typed = {
        name: _text_json_commands(fields, name, needed=name == "name") for name in ("name", "place", "query", "webhook")
    }
    readers = {"name": parse_name, "place": parse_place, "query": parse_query_text, "webhook": parse_webhook}
    for name, read in readers.items():
        _meant_json_commands(name, lambda read=read, name=name: read(typed[name]))  # type: ignore[misc]  # the defaults bind them
    return AddWatch(_meant_json_commands("place", lambda: parse_alert(**typed)))


def _parse_undo(fields: Fields) -> Command:
    action = fields.get("action")
    if isinstance(action, float) and action.is_integer():
        action = int(action)
    if not isinstance(action, int) or isinstance(action, bool) or not 1 <= action <= MAX_ACTION:
        raise ParameterError("action", "action is the number of an action in the log.")
    return Undo(action)


def _parse_site(fields: Fields) -> str:
    return _meant_json_commands("site", lambda: read_site(_text_json_commands(fields, "site"))).start


def _parse_settings(fields: Fields) -> dict[str, object]:
    """By name. A key must not point the crawler at secrets of this machine, to be sent to a host of its holder's."""
    settings = fields.get("settings", {})
    if isinstance(settings, dict) and "secrets" in settings:
        raise ParameterError("settings", "Credentials are named in the console or on the command line, not by keys.")
    if not isinstance(settings, dict):
        raise ParameterError("settings", 'settings is an object, such as {"delay": "5s", "exclude": ["/drafts/*"]}.')
    return settings


def _text_json_commands(fields: Fields, name: str, *, needed: bool = True) -> str:
    text = fields.get(name, "")
    if not isinstance(text, str) or len(text) > MAX_TEXT_LENGTH or (needed and not text.strip()):
        raise ParameterError(name, f"{name} is a text of 1 to {MAX_TEXT_LENGTH} characters.")
    return text.strip()


def _parse_flag(fields: Fields, name: str) -> bool:
    value = fields.get(name, False)
    if not isinstance(value, bool):
        raise ParameterError(name, f"{name} is true or false.")
    return value


def _meant_json_commands(name: str, read: Callable[[], T]) -> T:
    """What was read; an error of it is one of this field."""
    try:
        return read()
    except UsageError as error:
        raise ParameterError(name, sentence(str(error))) from None


_READ_JSON_COMMANDS: Mapping[str, Callable[[Fields], Command]] = {
    "add_site": _parse_add_site,
    "set_site": _parse_set_site,
    "pause_site": lambda fields: PauseSite(_parse_site(fields), paused=True),
    "resume_site": lambda fields: PauseSite(_parse_site(fields), paused=False),
    "remove_site": _parse_remove_site,
    "add_rule": lambda fields: AddRules((_parse_rule(fields),)),
    "remove_rule": lambda fields: RemoveRules((_parse_rule(fields),)),
    "fetch": _parse_fetch,
    "dismiss": _parse_dismiss,
    "add_watch": _parse_add_alert,
    "remove_watch": lambda fields: RemoveWatch(
        _meant_json_commands("name", lambda: parse_name(_text_json_commands(fields, "name")))
    ),
    "undo": _parse_undo,
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
