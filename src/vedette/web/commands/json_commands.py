"""Commands as JSON: each has a msgspec struct of its fields, which gives its schema and parses its body.

Fields and limits are declared once; ``parse_struct`` refuses what does not fit and names the field. What a schema
cannot express (valid sites, rules and URLs, the owner of a campaign) is checked by the function beside the struct.
Settings of sites are written as in the files of ``vedette sites export``.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeVar

from msgspec import UNSET, Meta, Struct, UnsetType, field

from vedette.adapters.ads.campaign_store import AdRow, AdTarget, AdvertiserRow, CampaignRow
from vedette.config.site_settings import parse_settings, site_of_text
from vedette.discover.urls.scope import read_site
from vedette.errors import UsageError
from vedette.web.api.parameters import ParameterError, parse_struct
from vedette.web.api.schema import JsonSchema, build_components
from vedette.web.commands import ads_text
from vedette.web.commands.ads_commands import (
    AdCommand,
    PauseCampaign,
    RemoveCampaign,
    ReviewAd,
    SaveAd,
    SaveAdvertiser,
    SaveCampaign,
)
from vedette.web.commands.alert_text import parse_alert, parse_name, parse_place, parse_query_text, parse_webhook
from vedette.web.commands.commands import (
    QUERY_RULE_KINDS,
    AddAlert,
    AddRules,
    AddSite,
    Command,
    Dismiss,
    FetchNow,
    PauseSite,
    RemoveAlert,
    RemoveRules,
    RemoveSite,
    RetryFailed,
    Rule,
    RuleKind,
    SetSite,
    Undo,
)
from vedette.web.commands.rule_text import parse_rule, parse_web_url
from vedette.web.formatting import sentence

MAX_TEXT_LENGTH = 2000
MAX_URLS = 100
MAX_ACTION = 2**53 - 1
MAX_AD_NUMBER = 10**9

T = TypeVar("T")
_NOT_BLANK = r"\S"

Text = Annotated[str, Meta(min_length=1, max_length=MAX_TEXT_LENGTH, pattern=_NOT_BLANK)]
OptionalText = Annotated[str, Meta(max_length=MAX_TEXT_LENGTH)]
Settings = Annotated[
    dict[str, Any],
    Meta(
        description='An object of settings by name, such as {"delay": "5s", "exclude": ["/drafts/*"]}, written as in '
        "the files of vedette sites export."
    ),
]


class _Body(Struct, forbid_unknown_fields=True):
    """The fields of a JSON command besides its name. Texts lose surrounding blanks."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            if isinstance(value := getattr(self, name), str):
                setattr(self, name, value.strip())


class _Site(_Body):
    site: Annotated[Text, Meta(description="Start URL of the site, or its host.")]


class _NewSite(_Site):
    settings: Settings = field(default_factory=dict)
    paused: bool = False


class _ChangedSite(_Site):
    settings: Annotated[Settings, Meta(min_length=1)]


class _RemovedSite(_Site):
    with_pages: bool = False


class _Rule(_Body):
    kind: RuleKind
    value: Text
    query: OptionalText = ""


class _Urls(_Body):
    urls: Annotated[list[Text], Meta(min_length=1, max_length=MAX_URLS, description=f"A list of 1 to {MAX_URLS} URLs.")]


class _Retry(_Body):
    target: Annotated[OptionalText, Meta(description="Start URL of a site, or a URL; empty for all failed URLs.")] = ""


class _Host(_Body):
    host: Text


class _AlertName(_Body):
    name: Annotated[Text, Meta(description="Up to 64 letters, digits and -._ ; part of its feed URL.")]


class _Alert(_AlertName):
    place: Annotated[
        OptionalText, Meta(description="A host, or a path on one; * for everywhere. Either place or query is required.")
    ] = ""
    query: Annotated[OptionalText, Meta(description="Only new pages that match this query.")] = ""
    webhook: Annotated[
        OptionalText,
        Meta(description="A URL that receives a signed message for each new page; the console shows the secret."),
    ] = ""


class _Action(_Body):
    action: Annotated[int, Meta(ge=1, le=MAX_ACTION, description="The number of an action in the log.")]


def _add_site(body: _NewSite) -> Command:
    start, settings = _parse_site(body), _check_settings(body.settings)
    with _errors_in("settings"):
        return AddSite(site_of_text(start, settings), paused=body.paused)


def _set_site(body: _ChangedSite) -> Command:
    start, settings = _parse_site(body), _check_settings(body.settings)
    with _errors_in("settings"):
        site_of_text(start, settings)  # with the start, so that conflicting settings are found as well
        return SetSite(start, parse_settings(settings), " ".join(settings))


def _fetch(body: _Urls) -> Command:
    with _errors_in("urls"):
        return FetchNow(tuple(dict.fromkeys(parse_web_url(url.strip()) for url in body.urls)))


def _dismiss(body: _Host) -> Command:
    with _errors_in("host"):
        return Dismiss(parse_rule("block", "", body.host).value)  # a host, as in rules


def _add_alert(body: _Alert) -> Command:
    """Build the command that adds an alert on public pages.

    Keys may not choose a webhook for private pages.
    """
    parsers = {"name": parse_name, "place": parse_place, "query": parse_query_text, "webhook": parse_webhook}
    for name, parse in parsers.items():
        with _errors_in(name):
            parse(getattr(body, name))
    with _errors_in("place"):
        return AddAlert(parse_alert(body.name, body.place, body.query, body.webhook))


def _remove_alert(body: _AlertName) -> Command:
    with _errors_in("name"):
        return RemoveAlert(parse_name(body.name))


def _parse_site(body: _Site) -> str:
    with _errors_in("site"):
        return read_site(body.site).start


def _check_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """Refuse the setting ``secrets`` in the site settings of a JSON command.

    A key must not make the crawler send this machine's secrets to a host chosen by its holder.
    """
    if "secrets" in settings:
        raise ParameterError(
            "settings", "Credentials can be set only in the console or on the command line, not with a key."
        )
    return settings


def _parse_rule(body: _Rule) -> Rule:
    if not body.query and body.kind in QUERY_RULE_KINDS:
        raise ParameterError("query", f"query must be a string of 1 to {MAX_TEXT_LENGTH} characters.")
    if body.query and body.kind not in QUERY_RULE_KINDS:
        raise ParameterError("query", f"{body.kind} rules apply to all queries: omit query.")
    with _errors_in("value"):
        return parse_rule(body.kind, body.query, body.value)


@contextmanager
def _errors_in(name: str) -> Iterator[None]:
    """Raise a ``UsageError`` in the block as a ``ParameterError`` of this JSON command's field."""
    try:
        yield
    except UsageError as error:
        raise ParameterError(name, sentence(str(error))) from None


# The commands of an operator by name: their fields, and the function that builds them.
_COMMANDS: Final[Mapping[str, tuple[type[_Body], Callable[[Any], Command]]]] = {
    "add_site": (_NewSite, _add_site),
    "set_site": (_ChangedSite, _set_site),
    "pause_site": (_Site, lambda body: PauseSite(_parse_site(body), paused=True)),
    "resume_site": (_Site, lambda body: PauseSite(_parse_site(body), paused=False)),
    "remove_site": (_RemovedSite, lambda body: RemoveSite(_parse_site(body), with_pages=body.with_pages)),
    "add_rule": (_Rule, lambda body: AddRules((_parse_rule(body),))),
    "remove_rule": (_Rule, lambda body: RemoveRules((_parse_rule(body),))),
    "fetch": (_Urls, _fetch),
    "retry": (_Retry, lambda body: RetryFailed(body.target)),
    "dismiss": (_Host, _dismiss),
    "add_watch": (_Alert, _add_alert),
    "remove_watch": (_AlertName, _remove_alert),
    "undo": (_Action, lambda body: Undo(body.action)),
}


def parse_command(body: object) -> Command:
    """Parse a JSON object into an operator's command; raise ``ParameterError`` if it is invalid.

    >>> parse_command({"order": "pause_site", "site": "example.org"})
    PauseSite(start='https://example.org/', paused=True)
    """
    if not isinstance(body, dict):
        raise ParameterError("", 'Send a JSON object, such as {"order": "pause_site", "site": "example.org"}.')
    kind, build = _COMMANDS[_parse_order(body, _COMMANDS)]
    return build(parse_struct(kind, body, "order"))


def _parse_order(body: Mapping[str, object], names: Iterable[str]) -> str:
    name, orders = body.get("order"), tuple(names)
    if not isinstance(name, str) or name not in orders:
        raise ParameterError("order", f"order must be one of {', '.join(orders)}.")
    return name


# Commands of an advertiser, who may change their own ads and never approve anything, or of an operator. An edit names
# what changes; the rest of the ad stays. Either way the ad then waits for approval.


class Holdings(NamedTuple):
    """What a key may change; ``advertiser`` is empty for an operator, the only one who may change ``advertisers``."""

    advertiser: str
    campaigns: Mapping[str, CampaignRow] = MappingProxyType({})
    ads: Mapping[int, AdRow] = MappingProxyType({})
    advertisers: Mapping[str, AdvertiserRow] = MappingProxyType({})


_MONEY: Final = "Money as text, such as 2.50, so that it stays exact."
Name = Annotated[str, Meta(min_length=1, max_length=64, pattern=_NOT_BLANK)]
Budget = Annotated[Text, Meta(description=f"Maximum spend per day. {_MONEY}")]
Bid = Annotated[Text, Meta(description=f"Maximum price per click. {_MONEY}")]
Day = Annotated[
    OptionalText, Meta(description="A date in the operator's time zone, such as 2026-01-31; empty for no limit.")
]
Title = Annotated[str, Meta(min_length=1, max_length=ads_text.MAX_TITLE, pattern=_NOT_BLANK)]
AdText = Annotated[str, Meta(min_length=1, max_length=ads_text.MAX_TEXT, pattern=_NOT_BLANK)]
LandingUrl = Annotated[str, Meta(min_length=1, max_length=ads_text.MAX_URL, pattern=_NOT_BLANK)]
Phrase = Annotated[str, Meta(min_length=1, max_length=ads_text.MAX_PHRASE, pattern=_NOT_BLANK)]


class Target(_Body):
    """A phrase for which an ad is shown, and how a query has to match it."""

    way: Literal["exact", "phrase", "broad"]
    phrase: Phrase
    bid: Annotated[OptionalText, Meta(description=f"Maximum price per click for this phrase. {_MONEY}")] = ""


Targets = Annotated[
    list[Target],
    Meta(
        min_length=1,
        max_length=ads_text.MAX_PHRASES,
        description='A list such as [{"way": "broad", "phrase": "red shoes"}]; a way is exact, phrase or broad; '
        "a phrase may have a bid of its own.",
    ),
]
Negatives = Annotated[
    list[Phrase],
    Meta(
        max_length=ads_text.MAX_PHRASES,
        description='A list of texts, such as ["free"], that keep the ad from being shown.',
    ),
]


class _Campaign(_Body):
    campaign: Name


class _KeptCampaign(_Campaign):
    advertiser: Name | UnsetType = UNSET
    budget: Budget | UnsetType = UNSET
    starts: Day | UnsetType = UNSET
    ends: Day | UnsetType = UNSET


class _NewAd(_Campaign):
    title: Title
    text: AdText
    url: LandingUrl
    bid: Bid
    phrases: Targets
    negatives: Negatives = field(default_factory=list)


class _Ad(_Body):
    ad: Annotated[int, Meta(ge=1, le=MAX_AD_NUMBER, description="The number of an ad.")]


class _EditedAd(_Ad):
    title: Title | UnsetType = UNSET
    text: AdText | UnsetType = UNSET
    url: LandingUrl | UnsetType = UNSET
    bid: Bid | UnsetType = UNSET
    phrases: Targets | UnsetType = UNSET
    negatives: Negatives | UnsetType = UNSET


class _Advertiser(_Body):
    advertiser: Name
    key: Annotated[str, Meta(max_length=100, description="The name of a key; empty for none.")] | UnsetType = UNSET
    budget: (
        Annotated[
            OptionalText, Meta(description=f"Maximum spend per day for all campaigns; empty for no limit. {_MONEY}")
        ]
        | UnsetType
    ) = UNSET


def _keep_campaign(body: _KeptCampaign, held: Holdings) -> AdCommand:
    """Build the command that saves a new or changed campaign; fields left out of a change keep their values."""
    new = CampaignRow(body.campaign.lower(), held.advertiser, "")
    before = held.campaigns.get(new.name, new)
    whose = _get_given(body.advertiser, before.advertiser)
    if held.advertiser and whose != held.advertiser:
        raise ParameterError("advertiser", "This key can only manage its own advertiser's campaigns.")
    budget = _get_given(body.budget, before.budget)
    if not budget:
        raise ParameterError("budget", "Set budget to the maximum spend per day, such as 2.50.")
    starts, ends = _get_given(body.starts, before.starts), _get_given(body.ends, before.ends)
    with _errors_in("campaign"):
        row = ads_text.parse_campaign(new.name, whose, budget, starts, ends)
    return SaveCampaign(row._replace(paused=before.paused))


def _submit_ad(body: _NewAd, held: Holdings) -> AdCommand:
    campaign, targets = _find_campaign(body, held), _to_rows(body.phrases)
    with _errors_in("ad"):
        return SaveAd(ads_text.parse_ad(campaign, body.title, body.text, body.url, body.bid, targets, body.negatives))


def _edit_ad(body: _EditedAd, held: Holdings) -> AdCommand:
    before = held.ads[_find_ad(body, held)]
    if all(getattr(body, name) is UNSET for name in body.__struct_fields__ if name != "ad"):
        raise ParameterError("ad", "Set at least one field to change, such as title, bid or phrases.")
    title, text = _get_given(body.title, before.title), _get_given(body.text, before.text)
    url, bid = _get_given(body.url, before.url), _get_given(body.bid, before.bid)
    targets = before.targets if isinstance(body.phrases, UnsetType) else _to_rows(body.phrases)
    negatives = before.negatives if isinstance(body.negatives, UnsetType) else body.negatives
    with _errors_in("ad"):
        return SaveAd(ads_text.parse_ad(before.campaign, title, text, url, bid, targets, negatives, before.id))


def _keep_advertiser(body: _Advertiser, held: Holdings) -> AdCommand:
    """Build the command that saves a new or changed advertiser; fields left out of a change keep their values."""
    with _errors_in("advertiser"):
        before = held.advertisers.get(body.advertiser.strip().lower(), AdvertiserRow(body.advertiser))
        key, budget = _get_given(body.key, before.key), _get_given(body.budget, before.budget)
        return SaveAdvertiser(ads_text.parse_advertiser(body.advertiser, key, budget))


def _find_campaign(body: _Campaign, held: Holdings) -> str:
    if body.campaign.lower() not in held.campaigns:
        raise ParameterError("campaign", f"Unknown campaign; {_list_known(held.campaigns)}")
    return body.campaign.lower()


def _find_ad(body: _Ad, held: Holdings) -> int:
    if body.ad not in held.ads:
        raise ParameterError("ad", f"Unknown ad; {_list_known(map(str, held.ads))}")
    return body.ad


def _list_known(names: Iterable[str]) -> str:
    some = list(names)[:20]
    return f"choose from {', '.join(some)}." if some else "there are none yet."


def _to_rows(targets: Iterable[Target]) -> tuple[AdTarget, ...]:
    return tuple(AdTarget(each.way, each.phrase, each.bid) for each in targets)


def _get_given(given: T | UnsetType, usual: T) -> T:
    return usual if isinstance(given, UnsetType) else given


_AD_COMMANDS: Final[Mapping[str, tuple[type[_Body], Callable[[Any, Holdings], AdCommand]]]] = {
    "keep_campaign": (_KeptCampaign, _keep_campaign),
    "pause_campaign": (_Campaign, lambda body, held: PauseCampaign(_find_campaign(body, held), paused=True)),
    "resume_campaign": (_Campaign, lambda body, held: PauseCampaign(_find_campaign(body, held), paused=False)),
    "remove_campaign": (_Campaign, lambda body, held: RemoveCampaign(_find_campaign(body, held))),
    "submit_ad": (_NewAd, _submit_ad),
    "edit_ad": (_EditedAd, _edit_ad),
    "revoke_ad": (_Ad, lambda body, held: ReviewAd(_find_ad(body, held), "revoked")),
    "approve_ad": (_Ad, lambda body, held: ReviewAd(_find_ad(body, held), "approved")),
    "keep_advertiser": (_Advertiser, _keep_advertiser),
}
ADMIN_COMMANDS: Final = ("approve_ad", "keep_advertiser")


def parse_ad_command(body: object, held: Holdings) -> AdCommand:
    """Parse a JSON object into a command on ads; raise ``ParameterError`` if it is invalid or not the key's own.

    >>> nobody = Holdings("")
    >>> parse_ad_command({"order": "keep_advertiser", "advertiser": "ann"}, nobody).advertiser.name
    'ann'
    """
    if not isinstance(body, dict):
        raise ParameterError("", 'Send a JSON object, such as {"order": "revoke_ad", "ad": 3}.')
    if held.advertiser and body.get("order") in ADMIN_COMMANDS:
        raise ParameterError("order", "Only the operator can approve ads or change advertisers.")
    names = (name for name in _AD_COMMANDS if not held.advertiser or name not in ADMIN_COMMANDS)
    kind, build = _AD_COMMANDS[_parse_order(body, names)]
    return build(parse_struct(kind, body, "order"), held)


def command_schemas() -> JsonSchema:
    """Return the JSON schemas of operators' and advertisers' commands, for the OpenAPI description."""
    tables = {"Order": _COMMANDS, "AdOrder": _AD_COMMANDS}
    bodies = {
        name: {"oneOf": [_body_schema(order, kind) for order, (kind, _) in table.items()]}
        for name, table in tables.items()
    }
    return {**bodies, **build_components(Target)}


def _body_schema(order: str, kind: type[_Body]) -> JsonSchema:
    schema = build_components(kind)[kind.__name__]
    properties = {"order": {"const": order}, **schema["properties"]}
    required = ["order", *schema["required"]]
    return {"type": "object", "required": required, "properties": properties, "additionalProperties": False}
