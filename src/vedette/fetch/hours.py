"""When a site may be asked at all: the operator's crawl hours, such as ``22:00-06:00``, in UTC.

Several spans are separated by commas. A span that ends before it begins goes over midnight; one that ends when it
begins is the whole day.
"""

import re

from vedette.errors import ConfigError

__all__ = ["next_open_s", "read_hours"]

DAY_S = 86_400
_SPAN = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)\s*-\s*([01]?\d|2[0-3]|24):([0-5]\d)", re.ASCII)

Spans = tuple[tuple[int, int], ...]


def read_hours(text: str) -> Spans:
    """Spans of a day in seconds from midnight; none where the text is empty.

    >>> read_hours("22:00-06:00, 12:30-13:00")
    ((79200, 21600), (45000, 46800))
    """
    found = [_SPAN.fullmatch(part.strip()) for part in text.split(",")] if text.strip() else []
    if any(span is None for span in found):
        raise ConfigError(
            f'hours "{text[:60]}": write spans in UTC, such as "22:00-06:00" or "00:00-05:00, 12:00-13:00"'
        )
    return tuple(
        ((int(span[1]) * 60 + int(span[2])) * 60, (int(span[3]) * 60 + int(span[4])) * 60 % DAY_S)
        for span in found
        if span is not None
    )


def next_open_s(spans: Spans, now_s: float) -> float:
    """The first time from now on at which the site may be asked: now itself within its hours, or without any.

    >>> next_open_s(read_hours("22:00-06:00"), 12 * 3600.0) / 3600
    22.0
    """
    if not spans:
        return now_s
    return min(_open_s(begin, end, now_s) for begin, end in spans)


def _open_s(begin: int, end: int, now_s: float) -> float:
    at = now_s % DAY_S
    inside = begin == end or (begin <= at < end if begin < end else at >= begin or at < end)
    return now_s if inside else now_s + (begin - at) % DAY_S
