"""May this origin be asked for a page? What its robots.txt answered, and for how long that holds.

One state per origin, moved by events, and nothing is ever allowed before it is known:

    what came                                      what follows
    2xx                                            the file's rules hold for its lifetime
    304                                            the copy at hand holds again
    4xx except 429; too many redirects             everything is allowed for a lifetime (RFC 9309, 2.3.1.3)
    5xx, 429, no answer, anything else             no page until it answers; asked again after a growing wait

A lifetime is the max-age of Cache-Control, at least ten minutes, at most and by default the 24 hours of RFC 9309,
2.4. When it ends, robots.txt is asked for before any further page. More than five redirects, or an answer that is
still a redirect, count as "no such file", as RFC 9309, 2.3.1.2 leaves us free to do. While an origin waits, the last
good copy is kept for people to read and for a conditional request, never to decide by.

That robots.txt itself may be fetched is for the caller to know.
"""

from dataclasses import replace

from vedette.fetch.response_headers import max_age_s, retry_after_s
from vedette.fetch.robots.robots_record import (
    UNKNOWN,
    Allowed,
    Ask,
    Disallowed,
    RobotsAnswered,
    RobotsCopy,
    RobotsSilent,
    RobotsState,
    RobotsVerdict,
    Standing,
    Wait,
)
from vedette.fetch.robots.robots_words import StoredState, explain, from_json, to_json
from vedette.fetch.robots.rules import clip, read
from vedette.model import Headers

__all__ = [
    "UNKNOWN",
    "Allowed",
    "Ask",
    "Disallowed",
    "RobotsAnswered",
    "RobotsCopy",
    "RobotsSilent",
    "RobotsState",
    "RobotsVerdict",
    "Standing",
    "StoredState",
    "Wait",
    "conditional_headers",
    "explain",
    "from_json",
    "observe",
    "to_json",
    "verdict",
]

_MINUTE_S = 60.0
_HOUR_S = 60 * _MINUTE_S
_DAY_S = 24 * _HOUR_S

REDIRECTS_MAX = 5
LIFETIME_LEAST_S = 10 * _MINUTE_S
LIFETIME_MOST_S = _DAY_S
WAIT_FIRST_S = _MINUTE_S
WAIT_MOST_S = _HOUR_S
RETRY_AFTER_MOST_S = _DAY_S
# Nothing is ever set this far ahead: a time beyond it means that the clock was put back since.
_HORIZON_S = 2 * _DAY_S
_DOUBLINGS_MOST = 16
_WHY_MOST = 200
_VALIDATOR_MOST = 1024


def observe(
    state: RobotsState, event: RobotsAnswered | RobotsSilent, user_agent: str, most_s: float = LIFETIME_MOST_S
) -> RobotsState:
    """The state after robots.txt was asked for; ``most_s`` is the longest lifetime that the operator lets it have."""
    known = _observed(state, event, user_agent)
    if known.standing is Standing.WAITING:
        return known
    return replace(known, until_s=min(known.until_s, event.now_s + most_s))


def _observed(state: RobotsState, event: RobotsAnswered | RobotsSilent, user_agent: str) -> RobotsState:
    if isinstance(event, RobotsSilent):
        return _waiting(state, event.now_s, event.why)
    if event.redirects > REDIRECTS_MAX:
        return _unavailable(event, f"more than {REDIRECTS_MAX} redirects")
    if 200 <= event.status <= 299:
        return _read(event, user_agent)
    if event.status == 304:
        return _unchanged(state, event)
    if event.status != 429 and 300 <= event.status <= 499:
        return _unavailable(event, f"status {event.status}")
    return _waiting(state, event.now_s, f"status {event.status}", retry_after_s(event.headers, event.now_s))


def verdict(state: RobotsState, url: str, now_s: float) -> RobotsVerdict:
    """Whether a page of this origin may be asked for now."""
    if state.standing is Standing.UNKNOWN:
        return Ask()
    if not 0 < state.until_s - now_s <= _HORIZON_S:
        return Ask(min(state.until_s, now_s))
    if state.standing is Standing.WAITING:
        return Wait(state.until_s, state.why)
    found = state.rules.verdict(url)
    return Allowed(found.line) if found.allowed else Disallowed(found.line or "")


def conditional_headers(state: RobotsState) -> Headers:
    """The request headers that ask for robots.txt only if it changed since the last good copy."""
    if state.last_good is None:
        return ()
    pairs = (("if-none-match", state.last_good.etag), ("if-modified-since", state.last_good.last_modified))
    return tuple((name, value) for name, value in pairs if value)


def _read(event: RobotsAnswered, user_agent: str) -> RobotsState:
    body = clip(event.body)
    lifetime_s = _lifetime_s(event.headers)
    copy = RobotsCopy(
        body=body,
        rules=read(body, user_agent),
        read_s=event.now_s,
        lifetime_s=lifetime_s,
        etag=_validator(event.headers, "etag"),
        last_modified=_validator(event.headers, "last-modified"),
    )
    return RobotsState(Standing.READ, event.now_s + lifetime_s, last_good=copy)


def _unchanged(state: RobotsState, event: RobotsAnswered) -> RobotsState:
    if state.last_good is not None:
        lifetime_s = _lifetime_s(event.headers, state.last_good.lifetime_s)
        copy = replace(state.last_good, read_s=event.now_s, lifetime_s=lifetime_s)
        return RobotsState(Standing.READ, event.now_s + lifetime_s, last_good=copy)
    why = "status 304 to a request without conditions"
    if state.failures:
        return _waiting(state, event.now_s, why)
    # Once it may be a mistake of a cache on the way, so it is asked again at once; after that the origin waits.
    return RobotsState(Standing.UNKNOWN, why=why, failures=1)


def _unavailable(event: RobotsAnswered, why: str) -> RobotsState:
    return RobotsState(Standing.UNAVAILABLE, event.now_s + _lifetime_s(event.headers), why)


def _waiting(state: RobotsState, now_s: float, why: str, asked_wait_s: float = 0.0) -> RobotsState:
    failures = state.failures + 1
    own_wait_s = min(WAIT_FIRST_S * 2.0 ** min(failures - 1, _DOUBLINGS_MOST), WAIT_MOST_S)
    wait_s = max(own_wait_s, min(asked_wait_s, RETRY_AFTER_MOST_S))
    return RobotsState(Standing.WAITING, now_s + wait_s, why[:_WHY_MOST], failures, state.last_good)


def _lifetime_s(headers: Headers, otherwise_s: float = LIFETIME_MOST_S) -> float:
    told_s = max_age_s(headers)
    return otherwise_s if told_s is None else min(max(told_s, LIFETIME_LEAST_S), LIFETIME_MOST_S)


def _validator(headers: Headers, name: str) -> str:
    """A header value that can be sent back as it is, else nothing."""
    value = next((value for key, value in headers if key == name), "").strip()
    return value if len(value) <= _VALIDATOR_MOST and value.isascii() and value.isprintable() else ""
