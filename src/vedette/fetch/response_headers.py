"""Parse response headers that hold times: Cache-Control's max-age and Retry-After, in seconds."""

import re

from vedette.model import Headers
from vedette.timeutil import parse_date

# The lookbehind keeps other directives out that end alike.
_MAX_AGE = re.compile(r"(?<![\w-])max-age\s{0,8}=\s{0,8}\"?(\d+)", re.ASCII | re.IGNORECASE)
_COUNT = re.compile(r"\s*(\d+)\s*", re.ASCII)


def parse_max_age_s(headers: Headers) -> float | None:
    """Parse the max-age of the Cache-Control response headers; the smallest where several disagree.

    s-maxage speaks to shared caches, which a crawler is not.

    >>> parse_max_age_s((("cache-control", "s-maxage=5, max-age=600"),))
    600.0
    """
    values = (value for name, value in headers if name == "cache-control")
    return min((float(found) for value in values for found in _MAX_AGE.findall(value)), default=None)


def parse_retry_after_s(headers: Headers, now_s: float) -> float:
    """Parse the Retry-After response header into seconds from now; 0 where it does not say.

    >>> parse_retry_after_s((("retry-after", "120"),), now_s=0.0)
    120.0
    """
    value = next((value for name, value in headers if name == "retry-after"), "")
    count = _COUNT.fullmatch(value)
    if count:
        return float(count[1])
    date_s = parse_date(value)
    return 0.0 if date_s is None else max(date_s - now_s, 0.0)
