"""Conditional requests: which validators (ETag, Last-Modified) a synthetic host sends, and when it replies 304.

Most hosts are honest. Some send only one validator, some none, and a few change the ETag every hour for the same text.
"""

import time
from functools import lru_cache

from vedette.lab.worlds.synthetic.sites import Validators
from vedette.lab.worlds.world import WorldRequest
from vedette.model import Headers
from vedette.timeutil import HOUR_S, parse_date

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


@lru_cache(maxsize=8192)
def format_http_date(moment_s: float) -> str:
    """Format a time as an HTTP date for Last-Modified; cached, since pages of a site share many.

    >>> format_http_date(1767571200.9)
    'Mon, 05 Jan 2026 00:00:00 GMT'
    """
    year, month, day, hour, minute, second, weekday, _, _ = time.gmtime(moment_s)
    return f"{_DAYS[weekday]}, {day:02} {_MONTHS[month - 1]} {year} {hour:02}:{minute:02}:{second:02} GMT"


def validator_headers(validators: Validators, version: str, modified_s: float | None, now_s: float) -> Headers:
    """Return the validator headers (ETag, Last-Modified) that a synthetic host sends with a version of a text."""
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
    """Check by validators whether the client has what would be sent, for a 304 reply.

    If-None-Match decides alone if it is given (RFC 9110, 13.2.2).
    """
    wanted = question.if_none_match
    if wanted is not None:
        etag = dict(stamped).get("etag")
        return etag is not None and any(part.strip().removeprefix("W/") in (etag, "*") for part in wanted.split(","))
    since = question.if_modified_since
    modified = None if since is None else dict(stamped).get("last-modified")
    if since is None or modified is None:
        return False
    return since == modified or _is_not_after(modified, since)


def _is_not_after(modified: str, since: str) -> bool:
    limit_s, modified_s = parse_date(since), parse_date(modified)
    return limit_s is not None and modified_s is not None and modified_s <= limit_s
