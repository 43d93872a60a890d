"""Parse response headers: Cache-Control's max-age, Retry-After, and the cookies that a redirect sets."""

import re

from vedette.model import Headers, origin_of
from vedette.timeutil import parse_date

# The lookbehind excludes other directives with the same ending.
_MAX_AGE = re.compile(r"(?<![\w-])max-age\s{0,8}=\s{0,8}\"?(\d+)", re.ASCII | re.IGNORECASE)
_COOKIE_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}")
_COOKIE_VALUE = re.compile(r"[\t !-:<-~]{0,4096}")
_MAX_COOKIES, _MAX_COOKIE_LENGTH = 20, 8192
_COUNT = re.compile(r"\s*(\d+)\s*", re.ASCII)


def parse_max_age_s(headers: Headers) -> float | None:
    """Parse the max-age of the Cache-Control response headers; the smallest if several disagree.

    s-maxage is for shared caches, which a crawler is not.

    >>> parse_max_age_s((("cache-control", "s-maxage=5, max-age=600"),))
    600.0
    """
    values = (value for name, value in headers if name == "cache-control")
    return min((float(found) for value in values for found in _MAX_AGE.findall(value)), default=None)


def parse_retry_after_s(headers: Headers, now_s: float) -> float:
    """Parse the Retry-After response header into seconds from now; 0 if it does not say.

    >>> parse_retry_after_s((("retry-after", "120"),), now_s=0.0)
    120.0
    """
    value = next((value for name, value in headers if name == "retry-after"), "")
    count = _COUNT.fullmatch(value)
    if count:
        return float(count[1])
    date_s = parse_date(value)
    return 0.0 if date_s is None else max(date_s - now_s, 0.0)


def merge_cookies(sent: str, headers: Headers, url: str, now_s: float) -> str:
    """Return the Cookie header for the next request of a redirect chain on the same host.

    ``sent`` is the header of this request. Paths are not compared: a chain is short, and its host set them itself.

    >>> headers = (("set-cookie", "b=2; Path=/; HttpOnly"), ("set-cookie", "a=; Max-Age=0"))
    >>> merge_cookies("a=1", headers, "http://example.org/", 0.0)
    'b=2'
    """
    jar = dict(pair.split("=", 1) for pair in sent.split("; ") if pair)
    for line in [value for name, value in headers if name == "set-cookie"][:_MAX_COOKIES]:
        pair, *rest = line.split(";")
        name, sign, value = (part.strip() for part in pair.partition("="))
        attributes = {key.strip().lower(): value.strip() for key, _, value in (part.partition("=") for part in rest)}
        if not sign or not _COOKIE_NAME.fullmatch(name) or not _COOKIE_VALUE.fullmatch(value):
            continue
        if not _is_meant_for(url, attributes):
            continue
        jar.pop(name, None)
        if not _has_expired(attributes, now_s):
            jar[name] = value
    merged = "; ".join(f"{name}={value}" for name, value in jar.items())
    return merged if len(merged) <= _MAX_COOKIE_LENGTH else sent


def _is_meant_for(url: str, attributes: dict[str, str]) -> bool:
    """Check whether a cookie may be sent back to the URL that set it: by its domain, and https if it is secure."""
    domain, host = attributes.get("domain", "").lower().removeprefix("."), origin_of(url).host
    is_own = not domain or f".{host}".endswith(f".{domain}")
    return is_own and ("secure" not in attributes or url.startswith("https:"))


def _has_expired(attributes: dict[str, str], now_s: float) -> bool:
    age = attributes.get("max-age", "")
    if age:
        return age == "0" or age.startswith("-")
    until_s = parse_date(attributes.get("expires", ""))
    return until_s is not None and until_s <= now_s
