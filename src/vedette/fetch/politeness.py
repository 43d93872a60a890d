"""Politeness: how long to wait after a response before requesting a host or its address again, and crawl hours.

The delay runs from the end of the previous response. A host waits for the longer of the operator's delay and its
robots.txt crawl-delay; optionally also for a multiple of its response time, since a slow server is a busy one. After
429, 503 or no response it waits at least for a back-off that doubles with each repetition, and for Retry-After, up to a
day. An address waits for the smaller ``address_delay`` whichever of its hosts was requested. A response that was too
large or broken did arrive: it is no failure.

A URL that could not be fetched after a few attempts is retried after an hour, then after three, and so on up to a week.
It is given up only after four weeks without a response.
"""

import re
from dataclasses import dataclass
from math import inf

from vedette.errors import ConfigError
from vedette.fetch.response_headers import parse_retry_after_s
from vedette.model import Failure, FetchOutcome, FetchResponse

# Several spans are separated by commas. A span that ends before it begins crosses midnight; one that ends when it
# begins is the whole day.


DAY_S = 86_400
_SPAN = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)\s*-\s*([01]?\d|2[0-3]|24):([0-5]\d)", re.ASCII)

Spans = tuple[tuple[int, int], ...]


def parse_hours(text: str) -> Spans:
    """Parse the hours of the day in which a site may be crawled, as spans in seconds; none for an empty text.

    >>> parse_hours("22:00-06:00, 12:30-13:00")
    ((79200, 21600), (45000, 46800))
    """
    found = [_SPAN.fullmatch(part.strip()) for part in text.split(",")] if text.strip() else []
    if any(span is None for span in found):
        raise ConfigError(
            f'hours "{text[:60]}": expected UTC time ranges, such as "22:00-06:00" or "00:00-05:00, 12:00-13:00"'
        )
    return tuple(
        ((int(span[1]) * 60 + int(span[2])) * 60, (int(span[3]) * 60 + int(span[4])) * 60 % DAY_S)
        for span in found
        if span is not None
    )


def find_next_open_s(spans: Spans, now_s: float) -> float:
    """Return the next time within a site's crawl hours: now itself if they are open, or without any.

    >>> find_next_open_s(parse_hours("22:00-06:00"), 12 * 3600.0) / 3600
    22.0
    """
    if not spans:
        return now_s
    return min(_find_open_s(begin, end, now_s) for begin, end in spans)


def _find_open_s(begin: int, end: int, now_s: float) -> float:
    at = now_s % DAY_S
    inside = begin == end or (begin <= at < end if begin < end else at >= begin or at < end)
    return now_s if inside else now_s + (begin - at) % DAY_S


FIRST_BACKOFF_S = 30.0
MAX_BACKOFF_S = 3600.0
MAX_RETRY_AFTER_S = 86_400.0
FIRST_RETRY_S = 3600.0
MAX_RETRY_S = 7 * 86_400.0
GIVE_UP_AFTER_S = 28 * 86_400.0


@dataclass(frozen=True, slots=True)
class FailureStreak:
    """The failure streak of a host: how many responses in a row said "too many requests" or did not arrive."""

    count: int = 0


NO_FAILURES = FailureStreak()


@dataclass(frozen=True, slots=True)
class HostDelay:
    """The politeness delay after a request: next allowed time of host and address, the streak, and the reason."""

    host_ready_s: float
    address_ready_s: float
    failure_streak: FailureStreak
    why: str


def compute_delay(
    outcome: FetchOutcome,
    strain: FailureStreak,
    *,
    delay_s: float,
    crawl_delay_s: float | None,
    address_delay_s: float,
    latency_factor: float = 0.0,
    speed: float = 1.0,
) -> HostDelay:
    """Compute the politeness delay of a host and its address after a response, or the lack of one.

    When world time runs faster than wall time (``speed`` to 1), latency still counts in wall seconds: otherwise every
    response of a fast synthetic web would seem slow.
    """
    gap_s, why = max((delay_s, "delay"), (crawl_delay_s or 0.0, "crawl-delay of its robots.txt"))
    if isinstance(outcome, FetchResponse):
        has_failed = outcome.status in {429, 503}
    else:
        has_failed = outcome.failure not in _ANSWERED
    strain = FailureStreak(strain.count + 1) if has_failed else NO_FAILURES
    if not strain.count:
        slow_s = latency_factor * (outcome.ended_s - outcome.started_s) / speed
        gap_s, why = max((gap_s, why), (slow_s, "its last response was slow"))
    else:
        asked_s = parse_retry_after_s(outcome.headers, outcome.ended_s) if isinstance(outcome, FetchResponse) else 0.0
        back_off_s = min(FIRST_BACKOFF_S * 2 ** min(strain.count - 1, 16), MAX_BACKOFF_S)
        asked_s = min(asked_s, MAX_RETRY_AFTER_S)
        gap_s, why = max((gap_s, why), (back_off_s, _describe_failure(outcome)), (asked_s, "Retry-After"))
    return HostDelay(outcome.ended_s + gap_s, outcome.ended_s + address_delay_s, strain, why)


def compute_retry_s(rounds: int, since_s: float, now_s: float) -> float:
    """Return when to retry a URL that has failed in this many rounds since a time; infinity for never.

    >>> [compute_retry_s(rounds, since_s=0.0, now_s=0.0) / 3600 for rounds in (1, 2, 3, 4, 9)]
    [1.0, 3.0, 9.0, 27.0, 168.0]
    >>> compute_retry_s(9, since_s=0.0, now_s=29 * 86_400.0)
    inf
    """
    if now_s - since_s > GIVE_UP_AFTER_S:
        return inf
    return now_s + min(FIRST_RETRY_S * 3.0 ** min(rounds - 1, 16), MAX_RETRY_S)


# A response did arrive, and says nothing about how much load the host can take.
_ANSWERED = frozenset({Failure.TOO_LARGE, Failure.HEADER, Failure.CODING})


def _describe_failure(outcome: FetchOutcome) -> str:
    return f"status {outcome.status}" if isinstance(outcome, FetchResponse) else str(outcome.failure)
