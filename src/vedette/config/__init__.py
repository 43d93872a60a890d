"""``vedette.toml``: the machine's settings, read once into frozen dataclasses.

Durations and sizes are written with their unit, because a bare number is ambiguous. An unknown key is an error that
names the nearest known one, because a misspelled setting that is silently ignored costs days. Each setting is declared
once, at its field: key, kind, default and meaning. Parsing, validation, ``override`` and ``describe`` (against which
the documentation is tested) all follow from that.
"""

import difflib
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from vedette.config.kinds import (
    Count,
    Rate,
    Texts,
    ValueType,
    format_duration,
    format_line,
    format_rate,
    format_size,
    format_value,
    parse_duration,
    parse_rate,
    parse_size,
    read_value,
)
from vedette.config.sections import Crawl, Refresh, Serve, Store
from vedette.config.site_settings import SiteTable, parse_tables
from vedette.errors import ConfigError, UsageError
from vedette.suggest import did_you_mean

__all__ = [
    "Config",
    "Crawl",
    "Rate",
    "Refresh",
    "Serve",
    "Store",
    "describe",
    "format_duration",
    "format_rate",
    "format_size",
    "load",
    "override",
    "override_by_environment",
    "parse",
    "parse_duration",
    "parse_rate",
    "parse_size",
]

_INTEGER = re.compile(r"-?[0-9]{1,18}")
_TOML_PLACE = re.compile(r" \(at (?:line ([0-9]+), column [0-9]+|end of document)\)$")


@dataclass(frozen=True, slots=True)
class Config:
    """The configuration: all settings of the machine in ``vedette.toml``, by section, and its ``[[site]]`` tables."""

    crawl: Crawl = field(default_factory=Crawl)
    refresh: Refresh = field(default_factory=Refresh)
    store: Store = field(default_factory=Store)
    serve: Serve = field(default_factory=Serve)
    sites: tuple[SiteTable, ...] = ()


@dataclass(frozen=True, slots=True)
class _Setting:
    section: str
    field: str
    kind: ValueType[Any]
    default: object
    meaning: str


_SECTIONS = {"crawl": Crawl, "refresh": Refresh, "store": Store, "serve": Serve}
_SETTINGS = {
    f"{section}.{each.metadata['key']}": _Setting(
        section, each.name, each.metadata["kind"], each.default, each.metadata["meaning"]
    )
    for section, settings in _SECTIONS.items()
    for each in fields(settings)
}


def _to_variable(name: str) -> str:
    return f"{ENVIRONMENT_PREFIX}{name.replace('.', '_').upper()}"


ENVIRONMENT_PREFIX = "VEDETTE_"
_VARIABLES = {_to_variable(name): name for name in _SETTINGS}
# Variables that are no settings: of the lab, of tests and of the decision log.
_OTHER_VARIABLES = ("CACHE", "DATA", "DECISIONS", "HISTORIES", "PROVE")
_SERVICE_LINK = re.compile(r"_(SERVICE_HOST|SERVICE_PORT|PORT)(_[0-9A-Z_]*)?$")  # Kubernetes names services so


def load(path: Path | None) -> Config:
    """Load the configuration from a ``vedette.toml`` file, or the defaults if there is no path."""
    if path is None:
        return Config()
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file; create it, or omit it to use the defaults") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot read this file ({error.strerror}); choose a readable one") from None
    except ValueError:
        raise ConfigError(f"{path}: not UTF-8 text; save it as UTF-8") from None
    return parse(text, str(path))


def parse(text: str, source: str) -> Config:
    r"""Parse the text of a ``vedette.toml`` into a configuration; unset keys keep their defaults.

    ``source`` names the text in error messages.

    >>> parse('[crawl]\ndelay = "1.5min"', "vedette.toml").crawl.delay_s
    90.0
    """
    try:
        table = _parse_toml(text)
        sites = _parse_sites(table.pop("site", []), text)
        return replace(_apply_settings(Config(), dict(_flatten(table))), sites=sites)
    except UsageError as error:
        raise ConfigError(f"{source}: {error}") from None


def override(config: Config, settings: Mapping[str, str]) -> Config:
    """Return the configuration with some settings changed, as typed on a command line: numbers are text too.

    >>> override(Config(), {"crawl.delay": "2s", "crawl.concurrency": "8"}).crawl.concurrency
    8
    """
    return _apply_settings(config, {name: _parse_typed(name, text) for name, text in settings.items()})


def override_by_environment(config: Config, environment: Mapping[str, str]) -> Config:
    """Return the configuration with settings from environment variables: ``VEDETTE_CRAWL_DELAY`` is ``crawl.delay``.

    An empty variable sets nothing. One that resembles a setting but is none is an error.

    >>> override_by_environment(Config(), {"VEDETTE_CRAWL_DELAY": "2s", "VEDETTE_PORT": "tcp://10.0.0.1:80"}).crawl.delay_s
    2.0
    """
    for variable in sorted(name for name in environment if name.startswith(ENVIRONMENT_PREFIX)):
        if variable not in _VARIABLES:
            _refuse_misspelt(variable)
        elif environment[variable]:
            try:
                config = override(config, {_VARIABLES[variable]: environment[variable]})
            except ConfigError as error:
                raise ConfigError(f"environment variable {variable}: {error}") from None
    return config


def _refuse_misspelt(variable: str) -> None:
    """Raise an error for a variable that seems to be meant as a setting; others may belong to other programs."""
    name = variable.removeprefix(ENVIRONMENT_PREFIX)
    is_of_section = name.partition("_")[0].lower() in _SECTIONS
    if name in _OTHER_VARIABLES or _SERVICE_LINK.search(variable):
        return
    keys = {each.partition(".")[2].upper(): each for each in _SETTINGS}
    near = difflib.get_close_matches(variable, _VARIABLES, 1, 0.85) or [
        _to_variable(keys[key]) for key in difflib.get_close_matches(name, keys, 1, 0.85)
    ]
    if near or is_of_section:
        names = ", ".join(each for each in _VARIABLES if each.startswith(f"{variable.rpartition('_')[0]}_"))
        advice = f"did you mean {near[0]}?" if near else f"known variables: {names or ', '.join(_VARIABLES)}"
        raise ConfigError(f"unknown environment variable {format_line(variable)}; {advice}")


def describe() -> list[tuple[str, str, str]]:
    """Return every configuration key with its section, its default as TOML writes it, and its meaning."""
    return [(name, each.kind.write(each.default), each.meaning) for name, each in _SETTINGS.items()]


def _parse_toml(text: str) -> dict[str, object]:
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ConfigError("not valid TOML: nested too deeply; use only sections with keys") from None
    except tomllib.TOMLDecodeError as error:
        reason = " ".join(str(error).split())
        place = _TOML_PLACE.search(reason)
        line = place[1] if place and place[1] else text.count("\n") + 1
        raise ConfigError(f"line {line} is not valid TOML: {_TOML_PLACE.sub('', reason)}") from None
    except ValueError:
        raise ConfigError("not valid TOML: contains an invalid number or date") from None


def _parse_sites(tables: object, text: str) -> tuple[SiteTable, ...]:
    if not isinstance(tables, list):
        raise ConfigError("site: use one [[site]] table per site, with double brackets")
    found = parse_tables(tables, text)
    twice = next((start for start, count in Counter(table.site.start for table in found).items() if count > 1), None)
    if twice is not None:
        raise ConfigError(f"{twice} has two [[site]] tables: delete one")
    return found


def _flatten(table: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    for section, values in table.items():
        if section not in _SECTIONS:
            if isinstance(values, list) and difflib.get_close_matches(section, ["site"]):
                raise ConfigError(f"unknown table [[{format_line(section)}]]; did you mean [[site]]?")
            raise _unknown_section(section) if isinstance(values, dict) else _unknown_key(section)
        if not isinstance(values, dict):
            raise ConfigError(f"{section} = {format_value(values)}: use a [{section}] section instead")
        for key, value in values.items():
            yield f"{section}.{key}", value


def _apply_settings(config: Config, settings: Mapping[str, object]) -> Config:
    for name, value in settings.items():
        if name not in _SETTINGS:
            raise _unknown_key(name)
        setting = _SETTINGS[name]
        read = read_value(f"{name} = {format_value(value)}", setting.kind, value)
        section = replace(getattr(config, setting.section), **{setting.field: read})
        config = replace(config, **{setting.section: section})
    return config


def _parse_typed(name: str, text: str) -> object:
    kind = _SETTINGS[name].kind if name in _SETTINGS else None
    if isinstance(kind, Texts):
        return [each.strip() for each in text.split(",")] if text.strip() else []
    return int(text) if isinstance(kind, Count) and _INTEGER.fullmatch(text) else text


def _unknown_section(name: str) -> ConfigError:
    sections = ", ".join(f"[{each}]" for each in _SECTIONS)
    advice = did_you_mean(name, _SECTIONS, f"known sections: {sections} and [[site]]", show="[{}]")
    return ConfigError(f"unknown section [{format_line(name)}]; {advice}")


def _unknown_key(name: str) -> ConfigError:
    """Build the error for an unknown configuration key, with the nearest key of its section or else of any.

    The section may be missing or wrong.
    """
    here = [setting for setting in _SETTINGS if setting.startswith(f"{name.partition('.')[0]}.")]
    near = _find_nearest(name, here) or _find_nearest(name, list(_SETTINGS))
    advice = f"did you mean {near}?" if near else f"known keys: {', '.join(here or _SETTINGS)}"
    return ConfigError(f"unknown key {format_line(name)}; {advice}")


def _find_nearest(name: str, names: list[str]) -> str | None:
    keys = {each.partition(".")[2]: each for each in names}
    near = difflib.get_close_matches(name[:100].rpartition(".")[2], keys, 1)
    return keys[near[0]] if near else None
