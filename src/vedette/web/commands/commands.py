"""Commands of an operator as values: the same for console, API and command line, and for undoing one.

A command says all that is needed to carry it out (``runtime.commands``). It is stored as JSON with the action that it
undoes, those on ads too. Secrets are never in a command: a site names the place where they are, and of keys and tokens
there are only digests.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, NamedTuple, get_args

from vedette.adapters.ads.campaign_store import AdRow, AdvertiserRow, CampaignRow
from vedette.adapters.crawl_store.new_page_store import AlertRow
from vedette.adapters.crawl_store.search_store import UserKeyRow
from vedette.errors import StoreCorrupt
from vedette.model import Site
from vedette.web.commands import ads_commands as ads

RuleKind = Literal["synonym", "pin", "hide", "block", "raise", "lower", "conceal"]
RULE_KINDS: tuple[RuleKind, ...] = get_args(RuleKind)
QUERY_RULE_KINDS: tuple[RuleKind, ...] = ("synonym", "pin", "hide")
_RULE_TEXTS = {
    "pin": '"{query}" shows {value}',
    "hide": '"{query}" hides {value}',
    "synonym": '"{query}" and "{value}" mean the same',
    "block": "nothing of {value} is shown or fetched",
    "raise": "pages of {value} stand higher",
    "lower": "pages of {value} stand lower",
    "conceal": "{value} is not shown",
}


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule for results.

    For one query: another word for it, or a URL that it always or never shows. For all queries (``query`` is empty): a
    domain that is blocked, raised or lowered, or a URL that is concealed; with a ``*`` at its end all that begin so.
    """

    kind: RuleKind
    query: str
    value: str

    def __str__(self) -> str:
        return _RULE_TEXTS[self.kind].format(query=self.query, value=self.value)


@dataclass(frozen=True, slots=True)
class AddSite:
    """Add a site that is not there yet. ``asked_s`` is when its host was last asked something, for a preview."""

    site: Site
    paused: bool = False
    asked_s: float | None = None


@dataclass(frozen=True, slots=True)
class SetSite:
    """Change settings of a site: fields of ``model.Site`` with their new values, and as they were typed."""

    start: str
    changes: Mapping[str, object]
    typed: str


@dataclass(frozen=True, slots=True)
class SetMachine:
    """Change settings of the machine, by name and as typed; None stands for what is configured."""

    changes: Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class PauseSite:
    """Ask nothing of a site until it is resumed; or resume it."""

    start: str
    paused: bool


@dataclass(frozen=True, slots=True)
class RemoveSite:
    """Crawl a site no longer; its pages stay unless they are to go as well."""

    start: str
    with_pages: bool = False


@dataclass(frozen=True, slots=True)
class ImportSites:
    """Import sites as they were exported: known ones get these settings, the others are added."""

    sites: tuple[tuple[Site, bool], ...]


@dataclass(frozen=True, slots=True)
class CreateKey:
    """Create a key under a name that no valid key has."""

    row: UserKeyRow


@dataclass(frozen=True, slots=True)
class RevokeKey:
    """Revoke a key: it opens nothing from now on."""

    name: str


@dataclass(frozen=True, slots=True)
class RestoreKey:
    """Let a revoked key open again what it did."""

    name: str


@dataclass(frozen=True, slots=True)
class AddRules:
    """Add rules to those that are there."""

    rules: tuple[Rule, ...]


@dataclass(frozen=True, slots=True)
class RemoveRules:
    """Remove rules."""

    rules: tuple[Rule, ...]


@dataclass(frozen=True, slots=True)
class Dismiss:
    """Do not offer a host that pages link to as a site again."""

    host: str


@dataclass(frozen=True, slots=True)
class Offer:
    """Let a dismissed host be offered again."""

    host: str


@dataclass(frozen=True, slots=True)
class AddAlert:
    """Add an alert on new pages, under a name that no alert has."""

    watch: AlertRow


@dataclass(frozen=True, slots=True)
class RemoveAlert:
    """Remove an alert."""

    name: str


@dataclass(frozen=True, slots=True)
class FetchNow:
    """Fetch URLs next, as soon as their hosts may be asked."""

    urls: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReplaceToken:
    """Replace the operator's token by one of this digest; the one before opens nothing, and all are signed out."""

    digest: str


@dataclass(frozen=True, slots=True)
class OpenSession:
    """Open a session of the console at this wall time; of its secret only the digest is kept."""

    digest: str
    wall_s: float


@dataclass(frozen=True, slots=True)
class CloseSession:
    """Close a session."""

    digest: str


@dataclass(frozen=True, slots=True)
class Undo:
    """Take an action back, by its number in the log."""

    action: int


Command = (
    AddSite
    | SetSite
    | SetMachine
    | PauseSite
    | RemoveSite
    | ImportSites
    | CreateKey
    | RevokeKey
    | RestoreKey
    | AddRules
    | RemoveRules
    | Dismiss
    | Offer
    | AddAlert
    | RemoveAlert
    | FetchNow
    | ReplaceToken
    | OpenSession
    | CloseSession
    | Undo
)


class CommandResult(NamedTuple):
    """What was done, in one line without a stop, and its number in the log of actions (0: it was not logged)."""

    words: str
    action: int


# By the names under which they are stored; these stay, whatever the classes are called.
_COMMAND_TYPES: Final[Mapping[str, type[Any]]] = {
    "add_site": AddSite,
    "set_site": SetSite,
    "set_machine": SetMachine,
    "pause_site": PauseSite,
    "remove_site": RemoveSite,
    "import_sites": ImportSites,
    "revoke_key": RevokeKey,
    "restore_key": RestoreKey,
    "add_rules": AddRules,
    "remove_rules": RemoveRules,
    "dismiss": Dismiss,
    "offer": Offer,
    "add_watch": AddAlert,
    "remove_watch": RemoveAlert,
    "keep_advertiser": ads.SaveAdvertiser,
    "drop_advertiser": ads.RemoveAdvertiser,
    "keep_campaign": ads.SaveCampaign,
    "drop_campaign": ads.RemoveCampaign,
    "pause_campaign": ads.PauseCampaign,
    "keep_ad": ads.SaveAd,
    "judge_ad": ads.ReviewAd,
}
_COMMAND_NAMES = {kind: name for name, kind in _COMMAND_TYPES.items()}


def command_to_json(command: Command | ads.AdCommand) -> dict[str, object]:
    """Return a command that may undo another, to be stored.

    >>> command_to_json(PauseSite("https://example.org/", paused=True))
    {'order': 'pause_site', 'start': 'https://example.org/', 'paused': True}
    """
    return {"order": _COMMAND_NAMES[type(command)], **asdict(command)}


def command_from_json(stored: object) -> Command | ads.AdCommand:
    """Return the command that was stored; what makes no sense is damage.

    >>> command_from_json({"order": "add_rules", "rules": [{"kind": "block", "query": "", "value": "example.org"}]})
    AddRules(rules=(Rule(kind='block', query='', value='example.org'),))
    """
    try:
        fields: dict[str, Any] = dict(stored)  # type: ignore[call-overload]  # whatever it is, it is tried
        kind = _COMMAND_TYPES[fields.pop("order")]
        parsed = {name: _FIELD_PARSERS.get(name, _keep)(value) for name, value in fields.items()}
        command: Command | ads.AdCommand = kind(**parsed)
    except (TypeError, ValueError, LookupError, AttributeError) as error:
        raise StoreCorrupt(f"an action is kept in a row that cannot be read ({error}): restore the state") from error
    return command


def _keep(value: Any) -> Any:  # noqa: ANN401 - JSON
    return value


def _lists_to_tuples(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in fields.items()}


def _site_from_json(fields: Mapping[str, Any]) -> Site:
    return Site(**_lists_to_tuples(fields))


def _ad_from_json(values: list[Any]) -> AdRow:
    row = AdRow(*values)
    targets = tuple((way, phrase) for way, phrase in row.targets)
    return row._replace(targets=targets, negatives=tuple(row.negatives))


_FIELD_PARSERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "site": _site_from_json,
    "sites": lambda sites: tuple((_site_from_json(site), bool(paused)) for site, paused in sites),
    "rules": lambda rules: tuple(Rule(**rule) for rule in rules),
    "watch": lambda row: AlertRow(*row),
    "changes": _lists_to_tuples,
    "advertiser": lambda row: AdvertiserRow(*row),
    "campaign": lambda row: CampaignRow(*row),
    "ad": _ad_from_json,
}
