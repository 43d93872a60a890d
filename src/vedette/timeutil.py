"""Time units in seconds, and parsing of dates as headers, sitemaps and feeds write them.

ISO 8601 (also the W3C's profile, in which a year or a month alone is a date), RFC 822 and its heirs, RFC 850 and
asctime are in use. A date is untrusted text: an unreadable one is None, never an error. One without a zone is UTC.
"""

import re
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_tz

MINUTE_S, HOUR_S, DAY_S, WEEK_S = 60.0, 3_600.0, 86_400.0, 604_800.0

_MAX_LENGTH = 80
_EARLIEST_S = datetime(1, 1, 1, tzinfo=UTC).timestamp()
_ISO = re.compile(
    r"(\d{4})(?:-?(\d{2})(?:-?(\d{2})(?:(?:t|\s+)(\d{1,2}):?(\d{2})(?::?(\d{2})(?:[.,]\d+)?)?"
    r"\s*(?:z|utc|gmt|([+-]\d{2}):?(\d{2})?|([a-z]{3}))?)?)?)?",
    re.ASCII | re.IGNORECASE,
)
# The names of RFC 822, section 5.1; other names stand for more than one zone.
_ZONE_HOURS = {"est": -5, "edt": -4, "cst": -6, "cdt": -5, "mst": -7, "mdt": -6, "pst": -8, "pdt": -7}


def parse_date(text: str, *, partial: bool = False) -> float | None:
    """Parse a date in any common format to Unix seconds, or None.

    With ``partial`` a year or a month means its first moment.

    >>> parse_date("Sun, 06 Nov 1994 08:49:37 GMT") == parse_date("1994-11-06T09:49:37+01:00")
    True
    >>> parse_date("1970-01"), parse_date("1970-01", partial=True), parse_date("yesterday")
    (None, 0.0, None)
    """
    trimmed = text.strip()
    if len(trimmed) > _MAX_LENGTH or not trimmed.isascii():
        return None
    try:
        found = _ISO.fullmatch(trimmed)
        seconds = _parse_iso(found, partial=partial) if found else _parse_rfc_822(trimmed)
    except (ValueError, OverflowError, IndexError, TypeError):  # the library's reader trips over odd words
        return None
    return seconds if seconds is not None and seconds >= _EARLIEST_S else None


def _parse_iso(found: re.Match[str], *, partial: bool) -> float | None:
    year, month, day, hour, minute, second, zone_hour, zone_minute, zone = found.groups("0")
    if day == "0" and not partial:
        return None
    ahead = timedelta(hours=int(zone_hour), minutes=int(zone_minute) * (-1 if zone_hour[0] == "-" else 1))
    if zone != "0":
        ahead = timedelta(hours=_ZONE_HOURS.get(zone.lower(), 0))
    return _to_seconds(int(year), int(month) or 1, int(day) or 1, int(hour), int(minute), int(second), ahead)


def _parse_rfc_822(text: str) -> float | None:
    parts = parsedate_tz(text) or parsedate_tz(f"{text} 00:00:00 GMT")
    return _to_seconds(*parts[:6], timedelta(seconds=parts[9] or 0)) if parts else None


def _to_seconds(year: int, month: int, day: int, hour: int, minute: int, second: int, ahead: timedelta) -> float:
    # A leap second is legal; datetime knows none.
    return (datetime(year, month, day, hour, minute, min(second, 59), tzinfo=UTC) - ahead).timestamp()
