"""Kinds of configuration values: durations, sizes, counts, rates, texts, networks, amounts of money, time zones."""

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar
from zoneinfo import ZoneInfo

from vedette.errors import ConfigError
from vedette.suggest import did_you_mean

_WORDS = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Switch:
    """The kind of true or false settings; on a command line the value comes as a word.

    >>> Switch().read("false"), Switch().read(True), Switch().write(False)
    (False, True, 'false')
    """

    def read(self, value: object) -> bool:
        """Check a switch in the configuration file, and return it as a bool."""
        if isinstance(value, bool):
            return value
        if isinstance(value, str) and value in _WORDS:
            return _WORDS[value]
        raise ConfigError("expected true or false")

    def write(self, value: bool) -> str:  # noqa: FBT001 - what is written is the value itself
        """Return a switch as the configuration file writes it."""
        return "true" if value else "false"


Value = TypeVar("Value")

# Both from the largest unit to the smallest: a value is written in the first that gives a whole number.
_SECONDS = {"d": Decimal(86400), "h": Decimal(3600), "min": Decimal(60), "s": Decimal(1), "ms": Decimal("0.001")}
_BYTES = {
    "GiB": Decimal(2**30),
    "GB": Decimal(10**9),
    "MiB": Decimal(2**20),
    "MB": Decimal(10**6),
    "KiB": Decimal(2**10),
    "kB": Decimal(10**3),
    "B": Decimal(1),
}
_AMOUNT = re.compile(r"(-?[0-9]{1,18}(?:\.[0-9]{1,30})?) ?([A-Za-z]{1,3})")
_BARE = re.compile(r"[0-9]{1,18}(?:\.[0-9]{1,30})?")
_RATE = re.compile(r"([0-9]{1,9})/(s|min|h|d)")


class ValueType(Protocol[Value]):
    """A kind of configuration value: parses, checks and formats it; its ``ConfigError`` says what to write."""

    def read(self, value: object) -> Value:
        """Check a configuration value from the file, and return it converted."""

    def write(self, value: Value) -> str:
        """Return a configuration value as the file writes it."""


@dataclass(frozen=True, slots=True)
class Duration:
    """The kind of settings that are a duration with its unit."""

    at_least_s: float = 0
    at_most_s: float = 36500 * 86400.0

    def read(self, value: object) -> float:
        """Check a duration in the configuration file, and return its seconds."""
        seconds = float(_parse_amount(value, _SECONDS, "a duration", "s"))
        if not self.at_least_s <= seconds <= self.at_most_s:
            raise _out_of_range(format_duration(self.at_least_s), format_duration(self.at_most_s))
        return seconds

    def write(self, value: float) -> str:
        """Return a duration as the configuration file writes it."""
        return format_value(format_duration(value))


@dataclass(frozen=True, slots=True)
class Size:
    """The kind of settings that are a size in bytes with its unit."""

    at_least_bytes: int = 0
    at_most_bytes: int = 10**15

    def read(self, value: object) -> int:
        """Check a size in the configuration file, and return its bytes."""
        size = _parse_amount(value, _BYTES, "a size", "B")
        if not self.at_least_bytes <= size <= self.at_most_bytes:
            raise _out_of_range(format_size(self.at_least_bytes), format_size(self.at_most_bytes))
        if size != int(size):
            raise ConfigError("expected a whole number of bytes")
        return int(size)

    def write(self, value: int) -> str:
        """Return a size as the configuration file writes it."""
        return format_value(format_size(value))


@dataclass(frozen=True, slots=True)
class Count:
    """The kind of settings that are a whole number."""

    at_least: int
    at_most: int

    def read(self, value: object) -> int:
        """Check a whole number in the configuration file, and return it."""
        if not isinstance(value, int) or isinstance(value, bool):
            raise ConfigError(f"expected a whole number from {self.at_least} to {self.at_most}")
        if not self.at_least <= value <= self.at_most:
            raise _out_of_range(str(self.at_least), str(self.at_most))
        return value

    def write(self, value: int) -> str:
        """Return a whole number as the configuration file writes it."""
        return str(value)


@dataclass(frozen=True, slots=True)
class Text:
    """The kind of settings that are a text matching a pattern; empty means not set."""

    shape: re.Pattern[str]
    advice: str

    def read(self, value: object) -> str:
        """Check a text in the configuration file against its pattern, and return it."""
        if isinstance(value, str) and (not value or self.shape.fullmatch(value)):
            return value
        raise ConfigError(self.advice)

    def write(self, value: str) -> str:
        """Return a text as the configuration file writes it."""
        return format_value(value)


@dataclass(frozen=True, slots=True)
class OneOf:
    """The kind of settings that are one of several words."""

    words: tuple[str, ...]

    def read(self, value: object) -> str:
        """Check that a configuration value is one of the allowed words, and return it."""
        if isinstance(value, str) and value in self.words:
            return value
        raise ConfigError(f"expected one of {', '.join(format_value(word) for word in self.words)}")

    def write(self, value: str) -> str:
        """Return an allowed word as the configuration file writes it."""
        return format_value(value)


@dataclass(frozen=True, slots=True)
class PolicyName:
    """The kind of settings that name a policy: one of a few documented ones, or any of ``all_names``."""

    named: tuple[str, ...]
    all_names: tuple[str, ...]

    def read(self, value: object) -> str:
        """Check that a configuration value names a policy, and return it."""
        if isinstance(value, str) and value in self.all_names:
            return value
        named = ", ".join(format_value(word) for word in self.named)
        meant = did_you_mean(str(value), self.all_names, "the documentation lists more, for research")
        raise ConfigError(f"expected one of {named}; {meant}")

    def write(self, value: str) -> str:
        """Return the name of a policy as the configuration file writes it."""
        return format_value(value)


@dataclass(frozen=True, slots=True)
class Folder:
    """The kind of settings that are the path of a folder."""

    def read(self, value: object) -> Path:
        """Check a folder's path in the configuration file, and return it."""
        if isinstance(value, str) and value and value.isprintable():
            return Path(value)
        raise ConfigError('expected the path to a folder, such as "vedette-data"')

    def write(self, value: Path) -> str:
        """Return a folder's path as the configuration file writes it."""
        return format_value(str(value))


@dataclass(frozen=True, slots=True)
class Texts:
    """The kind of settings that are a list of texts, each matching a pattern."""

    shape: re.Pattern[str]
    advice: str

    def read(self, value: object) -> tuple[str, ...]:
        """Check a list of texts in the configuration file, and return it."""
        if isinstance(value, list) and all(isinstance(each, str) and self.shape.fullmatch(each) for each in value):
            return tuple(value)
        raise ConfigError(self.advice)

    def write(self, value: tuple[str, ...]) -> str:
        """Return a list of texts as the configuration file writes it."""
        return f"[{', '.join(map(format_value, value))}]"


@dataclass(frozen=True, slots=True)
class Networks(Texts):
    """The kind of settings that are a list of IP addresses or networks."""

    def read(self, value: object) -> tuple[str, ...]:
        """Check a list of IP networks in the configuration file, and return it."""
        texts = Texts.read(self, value)
        try:
            for each in texts:
                ipaddress.ip_network(each)
        except ValueError:
            raise ConfigError(self.advice) from None
        return texts


class Rate(NamedTuple):
    """A rate limit setting: a number of requests per some seconds; 0 requests mean no limit."""

    requests: int
    per_s: float


@dataclass(frozen=True, slots=True)
class RateKind:
    """The kind of settings that are a rate limit, such as ``120/min``; ``0`` means no limit."""

    def read(self, value: object) -> Rate:
        """Check a rate limit in the configuration file, and return it."""
        if value in (0, "0") and not isinstance(value, bool):
            return Rate(0, 1.0)
        rate = _RATE.fullmatch(value) if isinstance(value, str) else None
        if rate is None:
            raise ConfigError(
                'expected a number of requests and a unit of time, such as "120/min" (s, min, h, d), or "0"'
            )
        return Rate(int(rate[1]), float(_SECONDS[rate[2]])) if int(rate[1]) else Rate(0, 1.0)

    def write(self, value: Rate) -> str:
        """Return a rate limit as the configuration file writes it."""
        return format_value(format_rate(value))


def parse_duration(text: str) -> float:
    """Parse a duration setting with its unit into seconds.

    >>> parse_duration("1.5h"), parse_duration("250ms")
    (5400.0, 0.25)
    """
    return read_value(format_value(text), Duration(), text)


def parse_size(text: str) -> int:
    """Parse a size setting with its unit into bytes.

    >>> parse_size("10MiB"), parse_size("10MB")
    (10485760, 10000000)
    """
    return read_value(format_value(text), Size(), text)


def parse_rate(text: str) -> Rate:
    """Parse a rate limit setting into requests per some seconds.

    >>> parse_rate("120/min"), parse_rate("0").requests
    (Rate(requests=120, per_s=60.0), 0)
    """
    return read_value(format_value(text), RateKind(), text)


def format_duration(seconds: float) -> str:
    """Format a duration setting in the shortest way that ``parse_duration`` reads back exactly.

    >>> format_duration(5400), format_duration(0.25), format_duration(0)
    ('90min', '250ms', '0s')
    """
    exact = Decimal(repr(float(seconds))).normalize()
    return _format_exact(exact, _SECONDS) or f"{exact:f}s"


def format_size(size_bytes: int) -> str:
    """Format a size setting in the shortest way that ``parse_size`` reads back exactly.

    >>> format_size(10485760), format_size(1500)
    ('10MiB', '1500B')
    """
    return _format_exact(Decimal(size_bytes), _BYTES) or f"{size_bytes}B"


def format_rate(rate: Rate) -> str:
    """Format a rate limit setting in the shortest way that ``parse_rate`` reads back exactly.

    >>> format_rate(Rate(10, 1.0)), format_rate(Rate(0, 1.0))
    ('10/s', '0')
    """
    units = {float(seconds): unit for unit, seconds in _SECONDS.items()}
    return f"{rate.requests}/{units[rate.per_s]}" if rate.requests else "0"


def _format_exact(exact: Decimal, scales: Mapping[str, Decimal]) -> str | None:
    for unit, scale in scales.items():
        count = int(exact / scale)
        if count and count * scale == exact:
            return f"{count}{unit}"
    return None


def read_value(label: str, kind: ValueType[Value], value: object) -> Value:
    """Read a configuration value by its kind; error messages begin with ``label``."""
    try:
        return kind.read(value)
    except ConfigError as error:
        raise ConfigError(f"{label}: {error}") from None


def _parse_amount(value: object, scales: Mapping[str, Decimal], what: str, unit: str) -> Decimal:
    amount = _AMOUNT.fullmatch(value) if isinstance(value, str) else None
    if amount is None or amount[2] not in scales:
        number = format_value(value).strip('"')
        example = f"{number if _BARE.fullmatch(number) else 30}{unit}"
        raise ConfigError(f'expected {what} with a unit, such as "{example}" ({", ".join(reversed(list(scales)))})')
    return Decimal(amount[1]) * scales[amount[2]]


def _out_of_range(at_least: str, at_most: str) -> ConfigError:
    return ConfigError(f"expected a value from {at_least} to {at_most}")


def format_value(value: object) -> str:
    """Format a configuration value for an error message, roughly as in the file, on one line."""
    if isinstance(value, str):
        return f'"{format_line(value)}"'
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict | list) or (isinstance(value, int) and abs(value) >= 10**18):
        return "…"
    return str(value)


def format_line(text: str) -> str:
    """Shorten a text to one line for a configuration error message."""
    return f"{text[:100]!r}"[1:-1] + ("…" if len(text) > 100 else "")


_AMOUNT_KINDS = re.compile(r"[0-9]{1,6}\.[0-9]{2}")
_ZONE = re.compile(r"[A-Za-z][A-Za-z0-9_+-]{0,30}(?:/[A-Za-z0-9_+-]{1,30}){0,2}")


@dataclass(frozen=True, slots=True)
class Amount:
    """The kind of settings that are an amount of money with its cents, stored as text so that it stays exact."""

    def read(self, value: object) -> str:
        """Check an amount of money in the configuration file, and return it with its cents."""
        if isinstance(value, str) and _AMOUNT_KINDS.fullmatch(value) and value.strip("0") != ".":
            return value
        raise ConfigError('expected an amount with cents, as a string, such as "0.05"')

    def write(self, value: str) -> str:
        """Return an amount of money as the configuration file writes it."""
        return format_value(value)


@dataclass(frozen=True, slots=True)
class Zone:
    """The kind of settings that are the name of a time zone."""

    def read(self, value: object) -> str:
        """Check that this machine has the time zone in the configuration file, and return its name."""
        try:
            if isinstance(value, str) and _ZONE.fullmatch(value):
                return ZoneInfo(value).key
        except (LookupError, OSError, ValueError):
            pass
        raise ConfigError('expected a time zone name, such as "Europe/Berlin" or "UTC"')

    def write(self, value: str) -> str:
        """Return a time zone's name as the configuration file writes it."""
        return format_value(value)
