"""When was that? The dates of sitemaps and feeds, as Unix seconds.

Sitemaps and Atom use the W3C's profile of ISO 8601, in which a year or a month alone is a date too and means its first
moment. RSS uses RFC 822. A date is a stranger's text: an unreadable one is None. One without a zone is taken as UTC.
"""

import re
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_tz

__all__ = ["seconds_of"]

_LONGEST = 64
_W3C = re.compile(
    r"""(?P<year>\d{4}) (?: -?(?P<month>\d{2}) (?: -?(?P<day>\d{2})
        (?: (?:t|\s+) (?P<hour>\d{1,2}) :? (?P<minute>\d{2}) (?: :?(?P<second>\d{2}) (?:[.,]\d+)? )?
            \s* (?: z | utc | gmt | (?P<sign>[+-]) (?P<zone_hour>\d{2}) :? (?P<zone_minute>\d{2})? )?
        )? )? )?""",
    re.ASCII | re.IGNORECASE | re.VERBOSE,
)


def seconds_of(text: str) -> float | None:
    """Unix seconds of a date as sitemaps and feeds write it, or None.

    >>> seconds_of("1970-01-02"), seconds_of("Fri, 02 Jan 1970 01:00:00 +0100"), seconds_of("yesterday")
    (86400.0, 86400.0, None)
    """
    trimmed = text.strip()
    if len(trimmed) > _LONGEST:
        return None
    found = _W3C.fullmatch(trimmed)
    try:
        return _w3c(found) if found else _rfc_822(trimmed)
    except (ValueError, OverflowError, IndexError, TypeError):  # the library's reader trips over odd words
        return None


def _w3c(found: re.Match[str]) -> float:
    part = {unit: int(digits) for unit, digits in found.groupdict("0").items() if unit != "sign"}
    clock = (part["hour"], part["minute"], part["second"])
    zone = timedelta(hours=part["zone_hour"], minutes=part["zone_minute"])
    ahead = -zone if found["sign"] == "-" else zone
    return _moment((part["year"], part["month"] or 1, part["day"] or 1), clock, ahead)


def _rfc_822(text: str) -> float | None:
    parts = parsedate_tz(text)
    if parts is None:
        return None
    year, month, day, hour, minute, second = parts[:6]
    return _moment((year, month, day), (hour, minute, second), timedelta(seconds=parts[9] or 0))


def _moment(date: tuple[int, int, int], clock: tuple[int, int, int], ahead: timedelta) -> float:
    hour, minute, second = clock
    second = min(second, 59)  # a leap second is legal; datetime knows none
    return (datetime(*date, hour, minute, second, tzinfo=UTC) - ahead).timestamp()
