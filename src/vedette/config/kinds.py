"""Kinds of values that sponsored results need: an amount of money and a time zone."""

import re
from dataclasses import dataclass
from zoneinfo import ZoneInfo

from vedette.config.kinds_part import written
from vedette.errors import ConfigError

__all__ = ["Amount", "Zone"]

_AMOUNT = re.compile(r"[0-9]{1,6}\.[0-9]{2}")
_ZONE = re.compile(r"[A-Za-z][A-Za-z0-9_+-]{0,30}(?:/[A-Za-z0-9_+-]{1,30}){0,2}")


@dataclass(frozen=True, slots=True)
class Amount:
    """An amount of money with its cents, as text, so that it stays exact."""

    def read(self, value: object) -> str:
        """What the file has, checked."""
        if isinstance(value, str) and _AMOUNT.fullmatch(value) and value.strip("0") != ".":
            return value
        raise ConfigError('write an amount with its cents, as text, such as "0.05"')

    def write(self, value: str) -> str:
        """As the file would have it."""
        return written(value)


@dataclass(frozen=True, slots=True)
class Zone:
    """A time zone by its name."""

    def read(self, value: object) -> str:
        """What the file has, if this machine knows it."""
        try:
            if isinstance(value, str) and _ZONE.fullmatch(value):
                return ZoneInfo(value).key
        except (LookupError, OSError, ValueError):
            pass
        raise ConfigError('write the name of a time zone, such as "Europe/Berlin" or "UTC"')

    def write(self, value: str) -> str:
        """As the file would have it."""
        return written(value)
