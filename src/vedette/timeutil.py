"""When was that? The dates of sitemaps and feeds, as Unix seconds.

Sitemaps and Atom use the W3C's profile of ISO 8601, in which a year or a month alone is a date too and means its first
moment. RSS uses RFC 822. A date is a stranger's text: an unreadable one is None. One without a zone is taken as UTC.
"""

import re
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_tz

MINUTE_S, HOUR_S, DAY_S, WEEK_S = 60.0, 3_600.0, 86_400.0, 604_800.0

# Three families are in use: RFC 822 and its heirs (``25 Jun 2010 15:00:00 PST``), RFC 850 and asctime, and ISO 8601. A
# date is a stranger's text, so an unreadable one is None, never an error. Two-digit years follow RFC 2822, which needs
# no clock: up to 49 lies in this century. A date without a zone is taken as UTC.


_MAX_LENGTH = 80
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
# The names of RFC 822, section 5.1; other names stand for more than one zone.
_ZONE_HOURS = {"est": -5, "edt": -4, "cst": -6, "cdt": -5, "mst": -7, "mdt": -6, "pst": -8, "pdt": -7}

_WEEKDAY = r"(?:[a-z]{3,9},?\s+)?"
_TIME = r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:\.\d{1,9})?)?"
_ZONE = r"(?P<zone>z|[a-z]{2,4}|(?P<sign>[+-])(?P<zone_hour>\d{2}):?(?P<zone_minute>\d{2})?)"
_CLOCK = rf"{_TIME}(?:\s*{_ZONE})?"
_DAY_FIRST = r"(?P<day>\d{1,2})[\s-](?P<month>[a-z]{3})[a-z]{0,6}[\s-](?P<year>\d{4}|\d{2})"
_MONTH_FIRST = r"(?P<month>[a-z]{3})\s+(?P<day>\d{1,2})"
_NUMBERS = r"(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})"
_FORMS = tuple(
    re.compile(form, re.ASCII | re.IGNORECASE)
    for form in (
        rf"{_WEEKDAY}{_DAY_FIRST}(?:\s+{_CLOCK})?",
        rf"{_WEEKDAY}{_MONTH_FIRST}\s+{_CLOCK}\s+(?P<year>\d{{4}})",
        rf"{_NUMBERS}(?:(?:t|\s+){_CLOCK})?",
    )
)


def parse_http_date(text: str) -> float | None:
    """Unix seconds of a date as people and servers write it, or None.

    >>> parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT") == parse_http_date("1994-11-06T09:49:37+01:00")
    True
    """
    trimmed = text.strip()
    if len(trimmed) > _MAX_LENGTH:
        return None
    found = next((match for form in _FORMS if (match := form.fullmatch(trimmed))), None)
    return None if found is None else _parts_to_seconds(found.groupdict(default=""))


def _parts_to_seconds(parts: dict[str, str]) -> float | None:
    month = _parse_month(parts["month"])
    clock = [int(parts[unit] or 0) for unit in ("hour", "minute", "second")]
    try:
        # A leap second is legal in a header; datetime knows none.
        moment = datetime(
            _parse_year(parts["year"]), month, int(parts["day"]), clock[0], clock[1], min(clock[2], 59), tzinfo=UTC
        )
        return (moment - _parse_offset(parts)).timestamp()
    except (ValueError, OverflowError):
        return None


def _parse_month(written: str) -> int:
    if written.isdigit():
        return int(written)
    lowered = written.lower()
    return _MONTHS.index(lowered) + 1 if lowered in _MONTHS else 0


def _parse_year(written: str) -> int:
    year = int(written)
    if len(written) == 4:
        return year
    return year + (2000 if year < 50 else 1900)


def _parse_offset(parts: dict[str, str]) -> timedelta:
    if not parts["sign"]:
        return timedelta(hours=_ZONE_HOURS.get(parts["zone"].lower(), 0))
    size = timedelta(hours=int(parts["zone_hour"]), minutes=int(parts["zone_minute"] or 0))
    return -size if parts["sign"] == "-" else size


_MAX_FEED_DATE = 64
_W3C = re.compile(
    r"""(?P<year>\d{4}) (?: -?(?P<month>\d{2}) (?: -?(?P<day>\d{2})
        (?: (?:t|\s+) (?P<hour>\d{1,2}) :? (?P<minute>\d{2}) (?: :?(?P<second>\d{2}) (?:[.,]\d+)? )?
            \s* (?: z | utc | gmt | (?P<sign>[+-]) (?P<zone_hour>\d{2}) :? (?P<zone_minute>\d{2})? )?
        )? )? )?""",
    re.ASCII | re.IGNORECASE | re.VERBOSE,
)


def parse_feed_date(text: str) -> float | None:
    """Unix seconds of a date as sitemaps and feeds write it, or None.

    >>> parse_feed_date("1970-01-02"), parse_feed_date("Fri, 02 Jan 1970 01:00:00 +0100"), parse_feed_date("yesterday")
    (86400.0, 86400.0, None)
    """
    trimmed = text.strip()
    if len(trimmed) > _MAX_FEED_DATE:
        return None
    found = _W3C.fullmatch(trimmed)
    try:
        return _parse_w3c(found) if found else _parse_rfc_822(trimmed)
    except (ValueError, OverflowError, IndexError, TypeError):  # the library's reader trips over odd words
        return None


def _parse_w3c(found: re.Match[str]) -> float:
    part = {unit: int(digits) for unit, digits in found.groupdict("0").items() if unit != "sign"}
    clock = (part["hour"], part["minute"], part["second"])
    zone = timedelta(hours=part["zone_hour"], minutes=part["zone_minute"])
    ahead = -zone if found["sign"] == "-" else zone
    return _to_seconds((part["year"], part["month"] or 1, part["day"] or 1), clock, ahead)


def _parse_rfc_822(text: str) -> float | None:
    parts = parsedate_tz(text)
    if parts is None:
        return None
    year, month, day, hour, minute, second = parts[:6]
    return _to_seconds((year, month, day), (hour, minute, second), timedelta(seconds=parts[9] or 0))


def _to_seconds(date: tuple[int, int, int], clock: tuple[int, int, int], ahead: timedelta) -> float:
    hour, minute, second = clock
    second = min(second, 59)  # a leap second is legal; datetime knows none
    return (datetime(*date, hour, minute, second, tzinfo=UTC) - ahead).timestamp()
