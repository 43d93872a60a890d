"""The robots.txt state of an origin: the last response, how long it is valid, and what it allows.

One state per origin, changed by events; nothing is allowed before it is known:

    response                                       effect
    2xx                                            the file's rules apply for its lifetime
    304                                            the stored copy is valid again
    4xx except 429; too many redirects             everything is allowed for a lifetime (RFC 9309, 2.3.1.3)
    5xx, 429, no response, anything else           no page until it responds; retried after a growing delay

A lifetime is the max-age of Cache-Control, at least ten minutes, at most and by default the 24 hours of RFC 9309, 2.4.
When it ends, robots.txt is fetched before any further page. More than five redirects, or a response that is still a
redirect, count as "no such file", as RFC 9309, 2.3.1.2 permits. While an origin waits, the last good copy is kept for
display, for a conditional request and for its crawl-delay, but allows nothing.

The caller must know that robots.txt itself may be fetched.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypedDict, TypeVar

from vedette.errors import StoreCorrupt
from vedette.fetch.response_headers import parse_max_age_s, parse_retry_after_s
from vedette.fetch.robots.rules import RobotsRules, clip_lines, parse_robots
from vedette.model import Headers
from vedette.timeutil import DAY_S, HOUR_S, MINUTE_S


class RobotsStatus(StrEnum):
    """The status of an origin's robots.txt."""

    UNKNOWN = "unknown"
    READ = "read"
    UNAVAILABLE = "unavailable"
    WAITING = "waiting"


@dataclass(frozen=True, slots=True)
class RobotsResponse:
    """The last response to a robots.txt request after ``redirects`` redirects; ``body`` is decoded."""

    now_s: float
    status: int
    body: bytes
    redirects: int
    headers: Headers


@dataclass(frozen=True, slots=True)
class RobotsFailure:
    """No response to a robots.txt request: DNS, connection, or timeout."""

    now_s: float
    why: str


@dataclass(frozen=True, slots=True)
class RobotsCopy:
    """A stored robots.txt: its first 500 KiB, its rules for us, and the validators of a conditional request."""

    body: bytes
    rules: RobotsRules
    read_s: float
    lifetime_s: float
    etag: str
    last_modified: str


@dataclass(frozen=True, slots=True)
class RobotsState:
    """The robots.txt state of an origin; ``until_s`` ends a lifetime or a wait, ``failures`` counts those in a row."""

    status: RobotsStatus
    until_s: float = 0.0
    why: str = ""
    failures: int = 0
    last_good: RobotsCopy | None = None

    def __post_init__(self) -> None:
        if self.status is RobotsStatus.READ and self.last_good is None:
            raise ValueError("rules parsed from robots.txt need the file's text")

    @property
    def rules(self) -> RobotsRules:
        """The robots.txt rules that decide while the state is valid; no rules where there is no file."""
        if self.status is RobotsStatus.READ and self.last_good is not None:
            return self.last_good.rules
        return RobotsRules()

    @property
    def crawl_delay_s(self) -> float | None:
        """The crawl-delay in the valid robots.txt copy; while the file is unavailable, that in the last good one."""
        is_kept = self.status is RobotsStatus.WAITING and self.last_good is not None
        return self.last_good.rules.crawl_delay_s if is_kept and self.last_good else self.rules.crawl_delay_s

    @property
    def sitemaps(self) -> tuple[str, ...]:
        """The sitemaps that the valid robots.txt copy lists."""
        return self.rules.sitemaps

    @property
    def validators(self) -> tuple[str, str]:
        """ETag and Last-Modified of the last good robots.txt copy; empty if there is none."""
        return (self.last_good.etag, self.last_good.last_modified) if self.last_good is not None else ("", "")


@dataclass(frozen=True, slots=True)
class UrlAllowed:
    """A robots.txt verdict: the page may be fetched; ``rule`` is the line that allows it, None for none."""

    rule: str | None = None


@dataclass(frozen=True, slots=True)
class UrlDisallowed:
    """A robots.txt verdict: the page may not be fetched, by this line."""

    rule: str


@dataclass(frozen=True, slots=True)
class RobotsNeeded:
    """A robots.txt verdict: fetch robots.txt first; it became due at ``since_s``, None if it was never known."""

    since_s: float | None = None


@dataclass(frozen=True, slots=True)
class RobotsWait:
    """A robots.txt verdict: nothing may be fetched from this origin yet, robots.txt included."""

    until_s: float
    why: str


RobotsVerdict = UrlAllowed | UrlDisallowed | RobotsNeeded | RobotsWait

UNKNOWN = RobotsState(RobotsStatus.UNKNOWN)


# The stored form has the raw file instead of its rules, so that a newer parser, or another agent, sees the same bytes.


Kind = TypeVar("Kind")

_UNITS = ((86_400, "day"), (3600, "hour"), (60, "minute"))


class StoredCopy(TypedDict):
    """A robots.txt copy as JSON values; ``body`` has one character per byte (Latin-1), so it stays readable."""

    body: str
    read_s: float
    lifetime_s: float
    etag: str
    last_modified: str


class StoredState(TypedDict):
    """A robots.txt state as JSON values."""

    standing: str
    until_s: float
    why: str
    failures: int
    last_good: StoredCopy | None


def describe_state(state: RobotsState, now_s: float) -> str:
    """Describe the robots.txt state of an origin in one sentence.

    >>> describe_state(RobotsState(RobotsStatus.UNAVAILABLE, 7200.0, "status 404"), now_s=0.0)
    'There is no robots.txt (status 404): everything is allowed for another 2 hours.'
    """
    if state.status is RobotsStatus.UNKNOWN:
        return "robots.txt has not been read yet" + (f" ({state.why})." if state.why else ".")
    if now_s >= state.until_s:
        expired = f"{_describe_expiry(state)} {_format_span(now_s - state.until_s)} ago"
        return f"robots.txt must be fetched before any page: {expired}."
    if state.status is RobotsStatus.WAITING:
        return _describe_wait(state, now_s)
    held = f"for another {_format_span(state.until_s - now_s)}."
    if state.status is RobotsStatus.UNAVAILABLE:
        return f"There is no robots.txt ({state.why}): everything is allowed {held}"
    return f"robots.txt {_describe_copy(state, now_s)} and is valid {held}"


def state_to_json(state: RobotsState) -> StoredState:
    """Encode the robots.txt state of an origin as JSON values."""
    return {
        "standing": state.status.value,
        "until_s": state.until_s,
        "why": state.why,
        "failures": state.failures,
        "last_good": None if state.last_good is None else _copy_to_json(state.last_good),
    }


def state_from_json(stored: Mapping[str, object], user_agent: str) -> RobotsState:
    """Decode the robots.txt state that ``state_to_json`` wrote, and parse its file again for this agent."""
    try:
        last_good = stored["last_good"]
        return RobotsState(
            status=RobotsStatus(_get_typed(stored, "standing", str)),
            until_s=_get_seconds(stored, "until_s"),
            why=_get_typed(stored, "why", str),
            failures=_get_typed(stored, "failures", int),
            last_good=None if last_good is None else _copy_from_json(_get_typed(stored, "last_good", dict), user_agent),
        )
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise StoreCorrupt(f"the stored state of a robots.txt cannot be read ({error}): restore a backup") from error


def _copy_to_json(copy: RobotsCopy) -> StoredCopy:
    return {
        "body": copy.body.decode("latin-1"),
        "read_s": copy.read_s,
        "lifetime_s": copy.lifetime_s,
        "etag": copy.etag,
        "last_modified": copy.last_modified,
    }


def _copy_from_json(stored: Mapping[str, object], user_agent: str) -> RobotsCopy:
    body = _get_typed(stored, "body", str).encode("latin-1")
    return RobotsCopy(
        body=body,
        rules=parse_robots(body, user_agent),
        read_s=_get_seconds(stored, "read_s"),
        lifetime_s=_get_seconds(stored, "lifetime_s"),
        etag=_get_typed(stored, "etag", str),
        last_modified=_get_typed(stored, "last_modified", str),
    )


def _get_typed(stored: Mapping[str, object], key: str, kind: type[Kind]) -> Kind:
    value = stored[key]
    if not isinstance(value, kind):
        raise TypeError(f"{key} is not of type {kind.__name__}")
    return value


def _get_seconds(stored: Mapping[str, object], key: str) -> float:
    value = stored[key]
    # JSON writers may drop the fraction of a whole number.
    return float(value) if isinstance(value, int) else _get_typed(stored, key, float)


def _describe_expiry(state: RobotsState) -> str:
    if state.status is RobotsStatus.WAITING:
        return f"the wait after a failure ({state.why}) ended"
    return "the copy expired"


def _describe_wait(state: RobotsState, now_s: float) -> str:
    times = "once" if state.failures == 1 else f"{state.failures} times in a row"
    copy = f"; the last good copy {_describe_copy(state, now_s)}" if state.last_good else ""
    wait = _format_span(state.until_s - now_s)
    return f"No pages are fetched for {wait}: robots.txt failed {times} ({state.why}){copy}."


def _describe_copy(state: RobotsState, now_s: float) -> str:
    if state.last_good is None:
        return "was never read"
    count = len(state.last_good.rules.rules)
    return f"was read {_format_span(now_s - state.last_good.read_s)} ago, has {count} rule{'s'[: count != 1]} for us"


def _format_span(seconds: float) -> str:
    """Format a time span in its largest unit, rounded down, for the description of a robots.txt state."""
    size_s, unit = next(((size, unit) for size, unit in _UNITS if seconds >= size), (1, "second"))
    count = max(int(seconds // size_s), 0)
    return f"{count} {unit}{'s'[: count != 1]}"


MAX_REDIRECTS = 5
MIN_LIFETIME_S = 10 * MINUTE_S
MAX_LIFETIME_S = DAY_S
FIRST_WAIT_S = MINUTE_S
MAX_WAIT_S = HOUR_S
MAX_RETRY_AFTER_S = DAY_S
# No time is ever set this far ahead: a later one means that the clock was set back since.
_HORIZON_S = 2 * DAY_S
_MAX_DOUBLINGS = 16
_MAX_WHY_LENGTH = 200
_MAX_VALIDATOR_LENGTH = 1024


def apply_event(
    state: RobotsState, event: RobotsResponse | RobotsFailure, user_agent: str, most_s: float = MAX_LIFETIME_S
) -> RobotsState:
    """Return the robots.txt state of an origin after a response or failure; ``most_s`` bounds its lifetime."""
    new_state = _compute_next(state, event, user_agent)
    if new_state.status is RobotsStatus.WAITING:
        return new_state
    return replace(new_state, until_s=min(new_state.until_s, event.now_s + most_s))


def _compute_next(state: RobotsState, event: RobotsResponse | RobotsFailure, user_agent: str) -> RobotsState:
    if isinstance(event, RobotsFailure):
        return _on_failure(state, event.now_s, event.why)
    if event.redirects > MAX_REDIRECTS:
        return _on_missing(event, f"more than {MAX_REDIRECTS} redirects")
    if 200 <= event.status <= 299:
        return _on_success(event, user_agent)
    if event.status == 304:
        return _on_not_modified(state, event)
    if event.status != 429 and 300 <= event.status <= 499:
        return _on_missing(event, f"status {event.status}")
    return _on_failure(state, event.now_s, f"status {event.status}", parse_retry_after_s(event.headers, event.now_s))


def check_url(state: RobotsState, url: str, now_s: float) -> RobotsVerdict:
    """Check whether the robots.txt state of an origin allows a page to be fetched now."""
    if state.status is RobotsStatus.UNKNOWN:
        return RobotsNeeded()
    if not 0 < state.until_s - now_s <= _HORIZON_S:
        return RobotsNeeded(min(state.until_s, now_s))
    if state.status is RobotsStatus.WAITING:
        return RobotsWait(state.until_s, state.why)
    found = state.rules.check(url)
    return UrlAllowed(found.line) if found.allowed else UrlDisallowed(found.line or "")


def _on_success(event: RobotsResponse, user_agent: str) -> RobotsState:
    body = clip_lines(event.body)
    lifetime_s = _compute_lifetime_s(event.headers)
    copy = RobotsCopy(
        body=body,
        rules=parse_robots(body, user_agent),
        read_s=event.now_s,
        lifetime_s=lifetime_s,
        etag=_get_validator(event.headers, "etag"),
        last_modified=_get_validator(event.headers, "last-modified"),
    )
    return RobotsState(RobotsStatus.READ, event.now_s + lifetime_s, last_good=copy)


def _on_not_modified(state: RobotsState, event: RobotsResponse) -> RobotsState:
    if state.last_good is not None:
        lifetime_s = _compute_lifetime_s(event.headers, state.last_good.lifetime_s)
        copy = replace(state.last_good, read_s=event.now_s, lifetime_s=lifetime_s)
        return RobotsState(RobotsStatus.READ, event.now_s + lifetime_s, last_good=copy)
    why = "status 304 to a request without conditions"
    if state.failures:
        return _on_failure(state, event.now_s, why)
    # The first may be a mistake of a cache in between, so it is requested again at once; after that the origin waits.
    return RobotsState(RobotsStatus.UNKNOWN, why=why, failures=1)


def _on_missing(event: RobotsResponse, why: str) -> RobotsState:
    return RobotsState(RobotsStatus.UNAVAILABLE, event.now_s + _compute_lifetime_s(event.headers), why)


def _on_failure(state: RobotsState, now_s: float, why: str, asked_wait_s: float = 0.0) -> RobotsState:
    failures = state.failures + 1
    own_wait_s = min(FIRST_WAIT_S * 2.0 ** min(failures - 1, _MAX_DOUBLINGS), MAX_WAIT_S)
    wait_s = max(own_wait_s, min(asked_wait_s, MAX_RETRY_AFTER_S))
    return RobotsState(RobotsStatus.WAITING, now_s + wait_s, why[:_MAX_WHY_LENGTH], failures, state.last_good)


def _compute_lifetime_s(headers: Headers, otherwise_s: float = MAX_LIFETIME_S) -> float:
    max_age_s = parse_max_age_s(headers)
    return otherwise_s if max_age_s is None else min(max(max_age_s, MIN_LIFETIME_S), MAX_LIFETIME_S)


def _get_validator(headers: Headers, name: str) -> str:
    """Return a robots.txt response's validator header if it can be sent back unchanged, else an empty string."""
    value = next((value for key, value in headers if key == name), "").strip()
    return value if len(value) <= _MAX_VALIDATOR_LENGTH and value.isascii() and value.isprintable() else ""
