"""Time units in seconds, and parsing of dates as headers, sitemaps and feeds write them.

Formats in use are ISO 8601 (and the W3C profile, where a year or a month alone is a date), RFC 822 and its successors,
RFC 850, asctime, and variations of all of them. A date is untrusted text: an unparsable one is None, never an error.
One without a zone is UTC.
"""

import re
from datetime import UTC, datetime, timedelta

MINUTE_S, HOUR_S, DAY_S, WEEK_S = 60.0, 3_600.0, 86_400.0, 604_800.0

_MAX_LENGTH = 80
_EARLIEST_S = datetime(1, 1, 1, tzinfo=UTC).timestamp()
_ISO = re.compile(
    r"(\d{4})(?:-?(\d{2})(?:-?(\d{2})(?:(?:t|\s+)(\d{1,2}):?(\d{2})(?::?(\d{2})(?:[.,]\d+)?)?"
    r"\s*(?:z|utc|gmt|([+-]\d{2}):?(\d{2})?|([a-z]{3}))?)?)?)?",
    re.ASCII | re.IGNORECASE,
)
_MONTH_NAMES = """
jan january januar janvier enero gennaio janeiro januari
feb february februar février fevrier febrero febbraio fevereiro februari
mar march märz maerz mars marzo março maart
apr april avril abril aprile
may mai mayo maggio maio mei
jun june juni juin junio giugno junho
jul july juli juillet julio luglio julho
aug august août aout agosto augustus
sep sept september septembre septiembre settembre setembro
oct october oktober octobre octubre ottobre outubro okt
nov november novembre noviembre novembro
dec december dezember décembre diciembre dicembre dezembro dez
"""
_MONTHS = {name: month for month, names in enumerate(_MONTH_NAMES.strip().splitlines(), 1) for name in names.split()}
# The names of RFC 822, section 5.1, and others that sites use. Some are ambiguous: then the zone that most pages come
# from is taken (CST is Chicago's, as in RFC 822, BST London's, IST India's).
_ZONES = """
-10 hst  -9 akst  -8 pst akdt  -7 mst pdt  -6 cst mdt  -5 est cdt  -4 ast edt  -3.5 nst  -3 adt brt art  -2.5 ndt
1 bst cet met mez west  2 cest mest mesz eet sast  3 eest msk  5.5 ist  8 sgt hkt awst  9 jst kst  9.5 acst  10 aest
10.5 acdt  11 aedt  12 nzst  13 nzdt
"""


def _read_zones(table: str) -> dict[str, float]:
    hours, zones = 0.0, {}
    for word in table.split():
        if word.isalpha():
            zones[word] = hours
        else:
            hours = float(word)
    return zones


_ZONE_HOURS = _read_zones(_ZONES)
_OFFSET = r"(?:gmt|utc)?[+-][0-9]{2}:?(?:[0-9]{2})?|[a-z]{1,5}"
_CLOCK = (
    r"(?:(?:\s*t|,?\s+(?:at\s+|-\s+)?)(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})"
    r"(?::(?P<second>[0-9]{2})(?:[.,][0-9]+)?)?"
    rf"(?:\s*(?P<half>[ap])\.?m\.?)?(?:\s*(?P<zone>{_OFFSET})(?:\s*\([^()]*\))?)?)?"
)
_WEEKDAY = r"(?:[^\W\d_]{2,10}\.?(?:,\s*|\s+))?"
_OF = r"[\s-]+(?:de\s+)?"
_NAME = r"(?P<month>[^\W\d_]{3,10})\.?"
_FORMS = tuple(
    re.compile(form + _CLOCK, re.IGNORECASE)
    for form in (
        rf"{_WEEKDAY}(?P<day>[0-9]{{1,2}})(?:st|nd|rd|th|\.)?{_OF}{_NAME},?{_OF}(?P<year>[0-9]{{4}}|[0-9]{{2}})",
        rf"{_WEEKDAY}{_NAME}\s+(?P<day>[0-9]{{1,2}})(?:st|nd|rd|th)?,?\s+(?P<year>[0-9]{{4}})",
        r"(?P<year>[0-9]{4})([-/.])(?P<month>[0-9]{1,2}|[a-z]{3})\2(?P<day>[0-9]{1,2})",
        r"(?P<day>[0-9]{1,2})\.\s?(?P<month>[0-9]{1,2})\.\s?(?P<year>[0-9]{4})",
        r"(?P<day>1[3-9]|2[0-9]|3[01])/(?P<month>[0-9]{1,2})/(?P<year>[0-9]{4})",
        r"(?P<month>[0-9]{1,2})/(?P<day>1[3-9]|2[0-9]|3[01])/(?P<year>[0-9]{4})",
    )
)


def parse_date(text: str, *, partial: bool = False) -> float | None:
    """Parse a date in any common format to Unix seconds, or None.

    With ``partial`` a year or a month means its first moment.

    >>> parse_date("Sun, 06 Nov 1994 08:49:37 GMT") == parse_date("1994-11-06T09:49:37+01:00")
    True
    >>> parse_date("1970-01"), parse_date("1970-01", partial=True), parse_date("yesterday")
    (None, 0.0, None)
    """
    trimmed = text.strip()
    if len(trimmed) > _MAX_LENGTH:
        return None
    try:
        found = _ISO.fullmatch(trimmed)
        seconds = _parse_iso(found, partial=partial) if found else _parse_rfc_822(trimmed)
    except (ValueError, OverflowError, IndexError, TypeError):  # the library's parser fails on odd words
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
    """Parse a date of RFC 822, 850 or asctime as sites write it: with commas, long names and nonstandard zones."""
    seconds = parse_written_date(text)
    if seconds is not None or not text.isascii():
        return seconds
    from email.utils import parsedate_tz  # takes longer to import than most commands run, and few dates need it

    parts = parsedate_tz(text) or parsedate_tz(f"{text} 00:00:00 GMT")
    return _to_seconds(*parts[:6], timedelta(seconds=parts[9] or 0)) if parts else None


def parse_written_date(text: str) -> float | None:
    """Parse a date that names its day, as people write it, to Unix seconds, or None.

    ``03/04/2026`` is ambiguous, a day in March or in April, so it is rejected.

    >>> parse_written_date("Tuesday, November 17, 2026 - 11:30 CET") == parse_written_date("17 nov. 2026 10:30")
    True
    """
    for form in _FORMS:
        found = form.fullmatch(text)
        if found:
            try:
                return _build_datetime(found.groupdict(default="")).timestamp()
            except (ValueError, OverflowError):
                return None
    return None


def _build_datetime(parts: dict[str, str]) -> datetime:
    month = parts["month"]
    return datetime(
        _parse_year(parts["year"]),
        int(month) if month.isdecimal() else _MONTHS.get(month.lower(), 0),
        int(parts["day"]),
        _parse_hour(parts),
        int(parts["minute"] or 0),
        min(int(parts["second"] or 0), 59),  # a leap second is valid, but datetime has none
        tzinfo=UTC,
    ) - _parse_offset(parts["zone"].lower())


def _parse_year(written: str) -> int:
    """Parse the year of a date; two digits as RFC 2822 reads them, which needs no clock."""
    year = int(written)
    return year if len(written) == 4 else year + (2000 if year < 50 else 1900)


def _parse_hour(parts: dict[str, str]) -> int:
    hour = int(parts["hour"] or 0)
    if not parts["half"]:
        return hour
    return hour % 12 + (12 if parts["half"].lower() == "p" else 0)


def _parse_offset(zone: str) -> timedelta:
    """Parse the time zone of a date into its offset from UTC; an unknown name is taken as UTC."""
    sign = max(zone.find("+"), zone.find("-"))
    if sign < 0:
        return timedelta(hours=_ZONE_HOURS.get(zone, 0))
    digits = zone[sign + 1 :].replace(":", "").ljust(4, "0")
    size = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return -size if zone[sign] == "-" else size


def _to_seconds(year: int, month: int, day: int, hour: int, minute: int, second: int, ahead: timedelta) -> float:
    # A leap second is valid, but datetime has none.
    return (datetime(year, month, day, hour, minute, min(second, 59), tzinfo=UTC) - ahead).timestamp()
