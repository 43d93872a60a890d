"""A site's settings as people write them: ``key=value`` on a command line, ``[[site]]`` tables in TOML.

Each key is declared once; options, ``set``, ``export`` and ``import`` follow from it. An unknown key is an error that
names the nearest known one. Only values that differ from the default are written.
"""

import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, get_args

from vedette.config.kinds import format_duration, format_size, parse_duration, parse_size
from vedette.discover.push.promises import MAX_PROMISES
from vedette.discover.urls.scope import read_site
from vedette.engine.scheduling.fetch_cost import parse_busy_hours
from vedette.errors import ConfigError, UsageError
from vedette.fetch.politeness import parse_hours
from vedette.model import Overrule, RenderMode, Site
from vedette.suggest import did_you_mean

OWNERSHIP_PHRASE = "I-OWN-THIS-SITE"
_SECRETS = re.compile(r"env:[A-Za-z_][A-Za-z0-9_]*|file:[^\x00-\x1f\x7f]+")
_SWITCHES = {"yes": True, "true": True, "no": False, "false": False}
_READER = re.compile(r"[^\x00-\x1f\x7f-\x9f]{1,200}")
_PERCENT = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,3})?)%", re.ASCII)
_PLACE = re.compile(r"(?:https?://|/)[^\s\x00-\x1f\x7f-\x9f]{0,2000}")
MAX_SITEMAPS = 100
_HOST = re.compile(r"(?=.{1,253}\Z)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*", re.ASCII | re.IGNORECASE)
_MAX_BYTES = 1 << 24
_TABLE_HEAD = re.compile(r"""^[ \t]*\[\[[ \t]*["']?site["']?[ \t]*\]\]""", re.MULTILINE)
_NOT_SETTINGS = ("start", "paused")


class _TablePlace(NamedTuple):
    """The position of a ``[[site]]`` table in a text, for error messages."""

    text: str
    begin: int
    end: int
    name: str

    @contextmanager
    def explain(self, key: str) -> Iterator[None]:
        """Let an error about a key of the table name the line of the key, else of the table."""
        try:
            yield
        except UsageError as error:
            head = re.compile(rf"""^[ \t]*["']?{re.escape(key)}["']?[ \t]*=""", re.MULTILINE)
            match = head.search(self.text, self.begin, self.end)
            line = self.text.count("\n", 0, match.start() if match else self.begin) + 1
            raise UsageError(f"line {line}, {self.name}: {error}") from None


class SiteTable(NamedTuple):
    """A ``[[site]]`` table: the site, whether it is paused, and the keys that the table has."""

    site: Site
    paused: bool
    keys: tuple[str, ...]

    def find_changes(self, before: Site) -> dict[str, object]:
        """Return the ``Site`` fields that the table sets to another value than they have now."""
        names = [_find_key(key).field for key in self.keys if key not in _NOT_SETTINGS]
        values = {name: getattr(self.site, name) for name in names}
        return {name: value for name, value in values.items() if value != getattr(before, name)}


def _parse_text(value: object) -> str:
    if not isinstance(value, str):
        raise ConfigError("expected a string in quotes")
    return value


def _parse_texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(each, str) and each for each in value):
        raise ConfigError('expected a list of strings, such as ["/docs/*"]')
    return tuple(value)


def _parse_switch(value: object) -> bool:
    found = _SWITCHES.get(value.lower()) if isinstance(value, str) else value
    if not isinstance(found, bool):
        raise ConfigError("expected yes or no" if isinstance(value, str) else "expected true or false")
    return found


def _parse_delay(value: object) -> float:
    return parse_duration(str(value))  # for a bare number it says that the unit is missing


def _parse_hours(value: object) -> str:
    parse_hours(_parse_text(value))
    return _parse_text(value)


def _parse_busy_hours(value: object) -> str:
    parse_busy_hours(_parse_text(value))
    return _parse_text(value)


def _parse_rate(value: object) -> float:
    size = parse_size(_parse_text(value))
    if size < 1:
        raise ConfigError("expected a size above 0, such as 100kB")
    return float(size)


def _parse_share(value: object) -> float:
    """Parse the ``share`` setting of a site: ``20%``, or 0.2 as a TOML number."""
    percent = _PERCENT.fullmatch(value) if isinstance(value, str) else None
    share = float(percent[1]) / 100 if percent else value
    if not isinstance(share, int | float) or isinstance(share, bool) or not 0.00001 <= share <= 1:
        raise ConfigError("expected a share of the fetch budget from 0.001% to 100%, such as 20%")
    return round(float(share), 5)


def _format_percent(share: float) -> str:
    return f"{round(share * 100, 3):g}%"


def _parse_owned(value: object) -> bool:
    if value == OWNERSHIP_PHRASE:
        return True
    if value in {"no", "false"} or value is False:
        return False
    raise ConfigError(f"robots.txt is ignored only if you confirm that you own the site: use {OWNERSHIP_PHRASE}")


def _parse_secrets(value: object) -> str:
    if not _SECRETS.fullmatch(_parse_text(value)):
        # The input may be the secret itself, so it is not repeated.
        raise ConfigError("expected env:NAME or file:PATH")
    return _parse_text(value)


def _parse_overrules(value: object) -> tuple[str, ...]:
    """Parse the ``overrule`` setting of a site: unique names in a fixed order; text has commas or is ``none``."""
    names = [name.strip() for name in value.split(",")] if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ConfigError('expected names, such as ["trap", "spam"]')
    if names in (["none"], [""]):
        return ()
    order = get_args(Overrule)
    return tuple(sorted(dict.fromkeys(names), key=lambda name: order.index(name) if name in order else -1))


def _parse_readers(value: object) -> tuple[str, ...]:
    """Parse the ``readers`` setting of a private site: names of keys or proxy users; a text has commas."""
    names = value.split(",") if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ConfigError('expected names, such as ["alice", "wiki"]')
    names = [name.strip() for name in names]
    if not all(_READER.fullmatch(name) for name in names):
        raise ConfigError("expected comma-separated key or user names, or * for any signed-in user")
    return tuple(dict.fromkeys(names))


def _parse_promises(value: object) -> tuple[str, ...]:
    """Parse the ``promise`` setting of a site: sources with their poll interval, such as ``/news=15min``.

    They are stored as seconds and URL.
    """
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise ConfigError('expected paths or URLs with intervals, such as ["/news=15min"]')
    if len(texts) > MAX_PROMISES:
        raise ConfigError(f"a site can have at most {MAX_PROMISES} promises")
    return tuple(dict.fromkeys(_parse_promise(text) for text in texts))


def _parse_promise(text: str) -> str:
    place, _, interval = text.strip().rpartition("=")
    if not _PLACE.fullmatch(place):
        raise ConfigError("expected a path or URL and an interval, such as /news=15min")
    seconds = parse_duration(interval)
    if seconds < 1:
        raise ConfigError("expected an interval of at least 1s")
    return f"{seconds:g} {place}" if float(f"{seconds:g}") == seconds else f"{seconds!r} {place}"


def _parse_sitemaps(value: object) -> tuple[str, ...]:
    """Parse the ``sitemap`` setting of a site: URLs of sitemaps, such as ``/news-sitemap.xml``."""
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(text, str) and _PLACE.fullmatch(text) for text in texts):
        raise ConfigError("expected the URL or path of a sitemap, such as /news-sitemap.xml")
    if len(texts) > MAX_SITEMAPS:
        raise ConfigError(f"a site can have at most {MAX_SITEMAPS} sitemaps; a sitemap index can list the others")
    return tuple(dict.fromkeys(texts))


def _format_promises(promises: Sequence[str]) -> list[str]:
    parts = (text.partition(" ") for text in promises)
    return [f"{place}={format_duration(float(seconds))}" for seconds, _, place in parts]


def _parse_render(value: object) -> str:
    if value not in get_args(RenderMode):
        raise ConfigError("expected auto, always or never")
    return str(value)


def _parse_hosts(value: object) -> tuple[str, ...]:
    """Parse the ``render_from`` setting of a site: host names; a text has commas."""
    names = value.split(",") if isinstance(value, str) else value
    if not isinstance(names, list) or not all(
        isinstance(name, str) and _HOST.fullmatch(name.strip()) for name in names
    ):
        raise ConfigError("expected comma-separated host names, such as cdn.example.org")
    return tuple(dict.fromkeys(name.strip().lower() for name in names))


def _identity(value: object) -> object:
    return value


@dataclass(frozen=True, slots=True)
class _Key:
    """A key of a site's settings: the ``Site`` field that it sets, and how it is read from and written to TOML."""

    field: str
    read: Callable[[object], object]
    write: Callable[[Any], object] = _identity


_KEYS = {
    "scope": _Key("scope", _parse_text),
    "include": _Key("include", _parse_texts, list),
    "exclude": _Key("exclude", _parse_texts, list),
    "sort_parameters": _Key("sort_parameters", _parse_switch),
    "drop_parameters": _Key("drop_parameters", _parse_texts, list),
    "delay": _Key("delay_s", _parse_delay, format_duration),
    "hours": _Key("hours", _parse_hours),
    "busy_hours": _Key("busy_hours", _parse_busy_hours),
    "bytes_per_s": _Key("bytes_per_s", _parse_rate, lambda rate: format_size(int(rate))),
    "ignore_robots": _Key("ignore_robots", _parse_owned, lambda owned: OWNERSHIP_PHRASE if owned else False),
    "allow_private": _Key("allow_private", _parse_switch),
    "secrets": _Key("secrets", _parse_secrets),
    "change": _Key("change", _parse_text),
    "overrule": _Key("overrule", _parse_overrules, list),
    "readers": _Key("readers", _parse_readers, list),
    "share": _Key("share", _parse_share, _format_percent),
    "promise": _Key("promise", _parse_promises, _format_promises),
    "sitemap": _Key("sitemap", _parse_sitemaps, list),
    "render": _Key("render", _parse_render),
    "render_from": _Key("render_from", _parse_hosts, list),
}
# For these, each word on a command line adds one.
_MANY = (_parse_texts, _parse_promises, _parse_sitemaps)


def site_of_text(text: str, settings: Mapping[str, object]) -> Site:
    """Build a site from the typed URL and its settings by key, as in TOML."""
    fields: Any = parse_settings(settings)
    return validate_site(replace(read_site(text), **fields))


def parse_settings(settings: Mapping[str, object]) -> dict[str, object]:
    """Parse a site's settings, by key as in TOML, into ``Site`` fields with their new values.

    >>> parse_settings({"delay": "5s"})
    {'delay_s': 5.0}
    """
    return {_find_key(key).field: _parse_value(key, value) for key, value in settings.items()}


def validate_site(site: Site) -> Site:
    """Check that a site's settings for scope, patterns and overruled judgments are valid; return the site."""
    read_site(
        site.start,
        scope=site.scope,
        include=site.include,
        exclude=site.exclude,
        change=site.change,
        overrule=site.overrule,
    )
    return site


def parse_changes(words: Sequence[str]) -> dict[str, object]:
    """Parse ``key=value`` words that change a site's settings into ``Site`` fields; no value means the default.

    >>> parse_changes(["delay=5s", "include=/a/*", "include=/b/*", "hours="])
    {'delay_s': 5.0, 'include': ('/a/*', '/b/*'), 'hours': ''}
    """
    changes: dict[str, object] = {}
    for word in words:
        name, sign, text = word.partition("=")
        key = _find_key(name)
        if not sign:
            raise UsageError(f"{word}: use {name}=VALUE, or {name}= to restore the default")
        if not text:
            changes[key.field] = getattr(Site(""), key.field)
        elif key.read in _MANY:
            before: Any = changes.get(key.field, ())
            added: Any = _parse_value(name, [text])
            changes[key.field] = (*before, *added)
        else:
            changes[key.field] = _parse_value(name, text)
    return changes


def describe_settings(site: Site) -> str:
    """Describe on one line which settings of a site differ from their defaults.

    >>> describe_settings(Site("https://example.org/", delay_s=2.0, exclude=("*.zip$",)))
    'scope host, exclude *.zip$, delay 2s'
    """
    parts = [f"{name} {_format_plain(value)}" for name, value in _list_differences(site)]
    return ", ".join(parts if site.scope != "host" else ["scope host", *parts])


def format_sites(sites: Iterable[tuple[Site, bool]]) -> str:
    r"""Format sites with their settings as ``[[site]]`` tables in TOML, each with whether it is paused.

    >>> print(format_sites([(Site("https://example.org/", delay_s=2.0), True)]))
    [[site]]
    start = "https://example.org/"
    delay = "2s"
    paused = true
    <BLANKLINE>
    """
    return "\n".join("\n".join(["[[site]]", *_format_table(site, paused), ""]) for site, paused in sites)


def parse_sites(text: str, source: str) -> tuple[tuple[Site, bool], ...]:
    """Parse ``[[site]]`` tables in TOML into sites, each with whether it is paused.

    A ``UsageError`` names the line and what to write.
    """
    if len(text) > _MAX_BYTES:
        raise UsageError(f"{source}: too large for a list of sites (the maximum is {format_size(_MAX_BYTES)})")
    try:
        tables = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())[:200]
        raise UsageError(f"{source}: not valid TOML: {reason}") from None
    unknown = next((key for key in tables if key != "site"), None)
    sites = tables.get("site", [])
    if unknown is not None or not isinstance(sites, list):
        raise UsageError(f'{source}: "{unknown or "site"}" is not a list of sites: use one [[site]] table per site')
    try:
        return tuple((table.site, table.paused) for table in parse_tables(sites, text))
    except UsageError as error:
        raise UsageError(f"{source}, {error}") from None


def parse_tables(tables: Sequence[object], text: str) -> tuple[SiteTable, ...]:
    """Parse the ``[[site]]`` tables of a TOML text; a ``UsageError`` begins with the line."""
    heads = [match.start() for match in _TABLE_HEAD.finditer(text)]
    if len(heads) != len(tables):  # written as one list of inline tables
        heads = [max(text.find("site"), 0)] * len(tables)
    places = zip(heads, [*heads[1:], len(text)], strict=False)
    return tuple(
        _parse_table(table, _TablePlace(text, begin, max(begin, end), f"site {number}"))
        for number, (table, (begin, end)) in enumerate(zip(tables, places, strict=True), 1)
    )


def _parse_table(table: object, place: _TablePlace) -> SiteTable:
    if not isinstance(table, dict) or not isinstance(table.get("start"), str):
        with place.explain("start"):
            raise UsageError('start is missing: add start = "https://example.org/"')
    place = place._replace(name=f"{place.name} ({table['start'][:100]})")
    settings = {key: value for key, value in table.items() if key not in _NOT_SETTINGS}
    for key, value in settings.items():
        with place.explain(key):
            _parse_value(key, value)
    with place.explain("paused"):
        paused = _parse_switch(table.get("paused", False))
    with place.explain("start"):
        return SiteTable(site_of_text(table["start"], settings), paused, tuple(table))


def _find_key(name: str) -> _Key:
    if name not in _KEYS:
        advice = did_you_mean(name[:40], _KEYS, f"known settings: {', '.join(_KEYS)}")
        raise UsageError(f'unknown setting "{name[:40]}"; {advice}')
    return _KEYS[name]


def _parse_value(name: str, value: object) -> object:
    try:
        return _find_key(name).read(value)
    except ConfigError as error:
        raise UsageError(f"{name}: {error}") from None


def _list_differences(site: Site) -> Iterator[tuple[str, object]]:
    plain = Site("")
    for name, key in _KEYS.items():
        value = getattr(site, key.field)
        if value != getattr(plain, key.field):
            yield name, key.write(value)


def _format_table(site: Site, paused: bool) -> Iterator[str]:  # noqa: FBT001 - a column of the table
    yield f"start = {_format_toml(site.start)}"
    for name, value in _list_differences(site):
        yield f"{name} = {_format_toml(value)}"
    if paused:
        yield "paused = true"


def _format_toml(value: object) -> str:
    """Format a site setting's value as TOML.

    JSON's spelling of texts, lists and booleans is TOML's too, except for one control character.
    """
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _format_plain(value: object) -> str:
    return " ".join(value) if isinstance(value, list) else str(value)
