"""Orders as programs send them: an object of JSON each, read strictly; every refusal names the field and what is right.

Settings of sites are written as in the files that ``vedette sites export`` writes.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from vedette.config.site_settings import changes_of_settings, site_of_text
from vedette.discover.urls.scope import read_site
from vedette.errors import UsageError
from vedette.web.api.parameters import WrongParameter, unknown
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

__all__ = ["FIELDS", "LONGEST_TEXT", "MOST_ACTION", "MOST_URLS", "read_order"]

LONGEST_TEXT = 2000
MOST_URLS = 100
MOST_ACTION = 2**53 - 1

Fields = Mapping[str, Any]
T = TypeVar("T")


def read_order(told: object) -> Order:
    """The order that an object is; raises ``WrongParameter`` for what is none.

    >>> read_order({"order": "pause_site", "site": "example.org"})
    PauseSite(start='https://example.org/', paused=True)
    """
    if not isinstance(told, dict):
        raise WrongParameter("", 'Send an object as JSON, such as {"order": "pause_site", "site": "example.org"}.')
    name = told.get("order")
    if not isinstance(name, str) or name not in _READ:
        raise WrongParameter("order", f"order is one of {', '.join(_READ)}.")
    fields = {key: value for key, value in told.items() if key != "order"}
    for key in fields:
        if key not in FIELDS[name]:
            raise unknown(key, ("order", *FIELDS[name]))
    return _READ[name](fields)


def _add_site(fields: Fields) -> Order:
    site = _meant("settings", lambda: site_of_text(_site(fields), _settings(fields)))
    return AddSite(site, paused=_switch(fields, "paused"))


def _set_site(fields: Fields) -> Order:
    settings = _settings(fields)
    if not settings:
        raise WrongParameter("settings", 'Name in settings what is to change, such as {"delay": "5s"}.')
    start = _site(fields)
    # Read once with the start, so that what cannot be meant together is found as well.
    _meant("settings", lambda: site_of_text(start, settings))
    return SetSite(start, _meant("settings", lambda: changes_of_settings(settings)), " ".join(settings))


def _remove_site(fields: Fields) -> Order:
    return RemoveSite(_site(fields), with_pages=_switch(fields, "with_pages"))


def _rule(fields: Fields) -> Rule:
    kind = fields.get("kind")
    if kind not in KINDS:
        raise WrongParameter("kind", f"kind is one of {', '.join(KINDS)}.")
    query = _text(fields, "query", needed=kind in PER_QUERY)
    if query and kind not in PER_QUERY:
        raise WrongParameter("query", f"A rule of kind {kind} holds for all queries: leave query out.")
    value = _text(fields, "value")
    return _meant("value", lambda: rule_of(kind, query, value))


def _fetch(fields: Fields) -> Order:
    urls = fields.get("urls")
    if not isinstance(urls, list) or not 1 <= len(urls) <= MOST_URLS:
        raise WrongParameter("urls", f"urls is a list of 1 to {MOST_URLS} URLs.")
    texts = [_text({"urls": url}, "urls") for url in urls]
    return FetchNow(tuple(dict.fromkeys(_meant("urls", lambda text=text: web_url(text)) for text in texts)))  # type: ignore[misc]  # the default binds it


def _dismiss(fields: Fields) -> Order:
    host = _text(fields, "host")
    return Dismiss(_meant("host", lambda: rule_of("block", "", host).value))  # a host, as rules know it


def _add_watch(fields: Fields) -> Order:
    """A watch of public pages: whose private ones go to a webhook is not for keys to say."""
    typed = {name: _text(fields, name, needed=name == "name") for name in ("name", "place", "query", "webhook")}
    readers = {"name": read_name, "place": read_place, "query": read_query_text, "webhook": read_webhook}
    for name, read in readers.items():
        _meant(name, lambda read=read, name=name: read(typed[name]))  # type: ignore[misc]  # the defaults bind them
    return AddWatch(_meant("place", lambda: watch_of(**typed)))


def _undo(fields: Fields) -> Order:
    action = fields.get("action")
    if isinstance(action, float) and action.is_integer():
        action = int(action)
    if not isinstance(action, int) or isinstance(action, bool) or not 1 <= action <= MOST_ACTION:
        raise WrongParameter("action", "action is the number of an action in the log.")
    return Undo(action)


def _site(fields: Fields) -> str:
    return _meant("site", lambda: read_site(_text(fields, "site"))).start


def _settings(fields: Fields) -> dict[str, object]:
    """By name. A key must not point the crawler at secrets of this machine, to be sent to a host of its holder's."""
    settings = fields.get("settings", {})
    if isinstance(settings, dict) and "secrets" in settings:
        raise WrongParameter("settings", "Credentials are named in the console or on the command line, not by keys.")
    if not isinstance(settings, dict):
        raise WrongParameter("settings", 'settings is an object, such as {"delay": "5s", "exclude": ["/drafts/*"]}.')
    return settings


def _text(fields: Fields, name: str, *, needed: bool = True) -> str:
    text = fields.get(name, "")
    if not isinstance(text, str) or len(text) > LONGEST_TEXT or (needed and not text.strip()):
        raise WrongParameter(name, f"{name} is a text of 1 to {LONGEST_TEXT} characters.")
    return text.strip()


def _switch(fields: Fields, name: str) -> bool:
    value = fields.get(name, False)
    if not isinstance(value, bool):
        raise WrongParameter(name, f"{name} is true or false.")
    return value


def _meant(name: str, read: Callable[[], T]) -> T:
    """What was read; an error of it is one of this field."""
    try:
        return read()
    except UsageError as error:
        raise WrongParameter(name, sentence(str(error))) from None


_READ: Mapping[str, Callable[[Fields], Order]] = {
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
    "remove_watch": lambda fields: RemoveWatch(_meant("name", lambda: read_name(_text(fields, "name")))),
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
