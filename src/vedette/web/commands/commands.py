"""An operator's commands as values: the same for console, API and command line, and for undoing a command.

A command contains everything needed to execute it (``runtime.commands``). It is stored as JSON with the action that it
undoes, including those on ads. Secrets are never in a command: a site names their location, and for keys and tokens
there are only digests.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Literal, NamedTuple, get_args

import msgspec

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
    "synonym": '"{query}" and "{value}" are synonyms',
    "block": "pages of {value} are neither shown nor fetched",
    "raise": "pages of {value} rank higher",
    "lower": "pages of {value} rank lower",
    "conceal": "{value} is not shown",
}


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule for search results, which commands add or remove.

    For one query: a synonym, or a URL that it always or never shows. For all queries (``query`` is empty): a domain
    that is blocked, raised or lowered, or a URL that is hidden; with a final ``*`` all URLs with that prefix.
    """

    kind: RuleKind
    query: str
    value: str

    def __str__(self) -> str:
        return _RULE_TEXTS[self.kind].format(query=self.query, value=self.value)


@dataclass(frozen=True, slots=True)
class AddSite:
    """A command that adds a new site. ``asked_s`` is when its host was last fetched from, for a preview."""

    site: Site
    paused: bool = False
    asked_s: float | None = None


@dataclass(frozen=True, slots=True)
class SetSite:
    """A command that changes settings of a site: ``model.Site`` fields with new values, and as they were typed."""

    start: str
    changes: Mapping[str, object]
    typed: str


@dataclass(frozen=True, slots=True)
class SetMachine:
    """A command that changes settings of the machine, by name and as typed; None means the configured value."""

    changes: Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class PauseSite:
    """A command that pauses the crawl of a site, or resumes it."""

    start: str
    paused: bool


@dataclass(frozen=True, slots=True)
class RemoveSite:
    """A command that removes a site from the crawl; its pages stay unless they should be removed as well."""

    start: str
    with_pages: bool = False


@dataclass(frozen=True, slots=True)
class ImportSites:
    """A command that imports exported sites: known ones get these settings, the others are added."""

    sites: tuple[tuple[Site, bool], ...]


@dataclass(frozen=True, slots=True)
class CreateKey:
    """A command that creates a key under a name that no valid key has."""

    row: UserKeyRow


@dataclass(frozen=True, slots=True)
class RevokeKey:
    """A command that revokes a key; it is invalid from then on."""

    name: str


@dataclass(frozen=True, slots=True)
class RestoreKey:
    """A command that restores a revoked key."""

    name: str


@dataclass(frozen=True, slots=True)
class AddRules:
    """A command that adds rules for search results."""

    rules: tuple[Rule, ...]


@dataclass(frozen=True, slots=True)
class RemoveRules:
    """A command that removes rules for search results."""

    rules: tuple[Rule, ...]


@dataclass(frozen=True, slots=True)
class Dismiss:
    """A command that dismisses an unlisted host that pages link to, so that it is no longer suggested as a site."""

    host: str


@dataclass(frozen=True, slots=True)
class Offer:
    """A command that lets a dismissed host be suggested as a site again."""

    host: str


@dataclass(frozen=True, slots=True)
class AddAlert:
    """A command that adds an alert on new pages, under a name that no alert has."""

    watch: AlertRow


@dataclass(frozen=True, slots=True)
class RemoveAlert:
    """A command that removes an alert on new pages."""

    name: str


@dataclass(frozen=True, slots=True)
class FetchNow:
    """A command that fetches URLs next, as soon as their hosts may be requested."""

    urls: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RetryFailed:
    """A command that retries failed URLs now: one of them, those of a site by its start, or all (empty).

    ``why`` is the reason why they failed; empty for any.
    """

    target: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class AddObserver:
    """A command that enrols a remote observer; it gets the credentials of ``secret_sites``, by their start.

    If ``is_auto``, it also gets hosts that no one assigned, if they are faster from there.
    """

    name: str
    secret_sites: tuple[str, ...] = ()
    is_auto: bool = False


@dataclass(frozen=True, slots=True)
class RevokeObserver:
    """A command that revokes a remote observer; home fetches from its hosts again."""

    name: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class AssignHosts:
    """A command that assigns hosts to a remote observer, or to home (empty)."""

    hosts: tuple[str, ...]
    observer: str


@dataclass(frozen=True, slots=True)
class ReplaceToken:
    """A command that replaces the operator's token by one with this digest, and signs everyone out."""

    digest: str


@dataclass(frozen=True, slots=True)
class LogSignIn:
    """A command that logs a sign-in to the console."""


@dataclass(frozen=True, slots=True)
class Undo:
    """A command that undoes an action, by its number in the log of actions."""

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
    | RetryFailed
    | AddObserver
    | RevokeObserver
    | AssignHosts
    | ReplaceToken
    | LogSignIn
    | Undo
)


class CommandResult(NamedTuple):
    """The result of a command: one line without a period, and its number in the log of actions (0: not logged)."""

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
    "create_key": CreateKey,
    "revoke_key": RevokeKey,
    "restore_key": RestoreKey,
    "add_rules": AddRules,
    "remove_rules": RemoveRules,
    "dismiss": Dismiss,
    "offer": Offer,
    "add_watch": AddAlert,
    "remove_watch": RemoveAlert,
    "fetch_now": FetchNow,
    "retry_failed": RetryFailed,
    "add_observer": AddObserver,
    "revoke_observer": RevokeObserver,
    "assign_hosts": AssignHosts,
    "replace_token": ReplaceToken,
    "log_sign_in": LogSignIn,
    "undo": Undo,
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
    """Convert a command to JSON, to be sent to the coordinator, or stored in the log as the undo of another.

    >>> command_to_json(PauseSite("https://example.org/", paused=True))
    {'order': 'pause_site', 'start': 'https://example.org/', 'paused': True}
    """
    return {"order": _COMMAND_NAMES[type(command)], **asdict(command)}


def command_from_json(stored: object) -> Command | ads.AdCommand:
    """Convert JSON back to a command, each field by its type; invalid JSON means a damaged store.

    >>> command_from_json({"order": "add_rules", "rules": [{"kind": "block", "query": "", "value": "example.org"}]})
    AddRules(rules=(Rule(kind='block', query='', value='example.org'),))
    """
    try:
        fields: dict[str, Any] = dict(stored)  # type: ignore[call-overload]  # whatever it is, it is tried
        command: Command | ads.AdCommand = msgspec.convert(fields, _COMMAND_TYPES[fields.pop("order")])
        if isinstance(command, SetSite):
            command = replace(command, changes=_lists_to_tuples(command.changes))
    except (TypeError, ValueError, LookupError, AttributeError) as error:
        raise StoreCorrupt(f"cannot read an action in the log ({error}): restore the state from a backup") from error
    return command


def _lists_to_tuples(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in fields.items()}
