"""Conditional requests: which validators a host sends, and when it answers 304.

Most hosts are honest. Some send only one validator, some none, and a few change the ETag every hour for the same text.
"""

import re
import time
from calendar import timegm
from functools import lru_cache

from vedette.lab.worlds.synthetic.sites import Validators
from vedette.lab.worlds.world import WorldRequest
from vedette.model import Headers
from vedette.timeutil import HOUR_S

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_HTTP_DATE = re.compile(
    r"\w{3}, ([0-3][0-9]) (" + "|".join(_MONTHS) + r") ([1-9][0-9]{3}) ([0-2][0-9]):([0-5][0-9]):([0-5][0-9]) GMT"
)


@lru_cache(maxsize=8192)
def format_http_date(moment_s: float) -> str:
    """The time as HTTP writes it, to the second; pages of a site share many, so they are remembered.

    >>> format_http_date(1767571200.9)
    'Mon, 05 Jan 2026 00:00:00 GMT'
    """
    year, month, day, hour, minute, second, weekday, _, _ = time.gmtime(moment_s)
    return f"{_DAYS[weekday]}, {day:02} {_MONTHS[month - 1]} {year} {hour:02}:{minute:02}:{second:02} GMT"


def parse_http_date(text: str) -> float | None:
    """The time that an HTTP date names, or None for anything else.

    >>> parse_http_date("Mon, 05 Jan 2026 00:00:00 GMT"), parse_http_date("yesterday")
    (1767571200.0, None)
    """
    match = _HTTP_DATE.fullmatch(text)
    if match is None:
        return None
    day, month, year, hour, minute, second = match.groups()
    return float(timegm((int(year), _MONTHS.index(month) + 1, int(day), int(hour), int(minute), int(second))))


def validator_headers(validators: Validators, version: str, modified_s: float | None, now_s: float) -> Headers:
    """The validators that a host sends with a text of this version, last modified then."""
    match validators:
        case "none":
            return ()
        case "lying":
            return (("etag", f'"{version}-{int(now_s // HOUR_S):x}"'),)
        case _:
            etag: Headers = () if validators == "modified" else (("etag", f'"{version}"'),)
            if validators == "etag" or modified_s is None:
                return etag
            return (*etag, ("last-modified", format_http_date(modified_s)))


def is_not_modified(question: WorldRequest, stamped: Headers) -> bool:
    """Whether the client holds what would be sent; If-None-Match decides alone where it is given (RFC 9110, 13.2.2)."""
    wanted = question.if_none_match
    if wanted is not None:
        etag = dict(stamped).get("etag")
        return etag is not None and any(_is_etag_match(part, etag) for part in wanted.split(","))
    since = question.if_modified_since
    modified = None if since is None else dict(stamped).get("last-modified")
    if since is None or modified is None:
        return False
    return since == modified or _is_not_after(modified, since)


def _is_etag_match(part: str, etag: str) -> bool:
    return part.strip().removeprefix("W/") in (etag, "*")


def _is_not_after(modified: str, since: str) -> bool:
    limit_s, modified_s = parse_http_date(since.strip()), parse_http_date(modified)
    return limit_s is not None and modified_s is not None and modified_s <= limit_s
