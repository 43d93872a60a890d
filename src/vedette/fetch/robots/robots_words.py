"""What is known of a robots.txt, as a sentence for people and as plain values for a store.

The stored form has the raw file instead of its rules, so that a newer reading, or another agent, sees the same bytes.
"""

from collections.abc import Mapping
from typing import TypedDict, TypeVar

from vedette.errors import StoreCorrupt
from vedette.fetch.robots.robots_record import RobotsCopy, RobotsState, Standing
from vedette.fetch.robots.rules import read

__all__ = ["StoredCopy", "StoredState", "explain", "from_json", "to_json"]

Kind = TypeVar("Kind")

_UNITS = ((86_400, "day"), (3600, "hour"), (60, "minute"))


class StoredCopy(TypedDict):
    """A copy as JSON values; ``body`` has one character per byte (Latin-1), so it stays readable."""

    body: str
    read_s: float
    lifetime_s: float
    etag: str
    last_modified: str


class StoredState(TypedDict):
    """A state as JSON values."""

    standing: str
    until_s: float
    why: str
    failures: int
    last_good: StoredCopy | None


def explain(state: RobotsState, now_s: float) -> str:
    """One sentence on where an origin stands.

    >>> explain(RobotsState(Standing.UNAVAILABLE, 7200.0, "status 404"), now_s=0.0)
    'There is no robots.txt (status 404): everything is allowed for another 2 hours.'
    """
    if state.standing is Standing.UNKNOWN:
        return "robots.txt has not been read yet" + (f" ({state.why})." if state.why else ".")
    if now_s >= state.until_s:
        return f"robots.txt is to be asked for before any page: {_past(state)} {_span(now_s - state.until_s)} ago."
    if state.standing is Standing.WAITING:
        return _waiting(state, now_s)
    held = f"for another {_span(state.until_s - now_s)}."
    if state.standing is Standing.UNAVAILABLE:
        return f"There is no robots.txt ({state.why}): everything is allowed {held}"
    return f"robots.txt {_copy(state, now_s)} and holds {held}"


def to_json(state: RobotsState) -> StoredState:
    """The state as values that JSON can write."""
    return {
        "standing": state.standing.value,
        "until_s": state.until_s,
        "why": state.why,
        "failures": state.failures,
        "last_good": None if state.last_good is None else _copy_to_json(state.last_good),
    }


def from_json(stored: Mapping[str, object], user_agent: str) -> RobotsState:
    """The state that ``to_json`` wrote, with its file read again for this agent."""
    try:
        last_good = stored["last_good"]
        return RobotsState(
            standing=Standing(_of(stored, "standing", str)),
            until_s=_seconds(stored, "until_s"),
            why=_of(stored, "why", str),
            failures=_of(stored, "failures", int),
            last_good=None if last_good is None else _copy_from_json(_of(stored, "last_good", dict), user_agent),
        )
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise StoreCorrupt(f"the stored state of a robots.txt cannot be read ({error}); restore a backup") from error


def _copy_to_json(copy: RobotsCopy) -> StoredCopy:
    return {
        "body": copy.body.decode("latin-1"),
        "read_s": copy.read_s,
        "lifetime_s": copy.lifetime_s,
        "etag": copy.etag,
        "last_modified": copy.last_modified,
    }


def _copy_from_json(stored: Mapping[str, object], user_agent: str) -> RobotsCopy:
    body = _of(stored, "body", str).encode("latin-1")
    return RobotsCopy(
        body=body,
        rules=read(body, user_agent),
        read_s=_seconds(stored, "read_s"),
        lifetime_s=_seconds(stored, "lifetime_s"),
        etag=_of(stored, "etag", str),
        last_modified=_of(stored, "last_modified", str),
    )


def _of(stored: Mapping[str, object], key: str, kind: type[Kind]) -> Kind:
    value = stored[key]
    if not isinstance(value, kind):
        raise TypeError(f"{key} is not of type {kind.__name__}")
    return value


def _seconds(stored: Mapping[str, object], key: str) -> float:
    value = stored[key]
    # JSON writers may drop the fraction of a whole number.
    return float(value) if isinstance(value, int) else _of(stored, key, float)


def _past(state: RobotsState) -> str:
    if state.standing is Standing.WAITING:
        return f"the wait after a failure ({state.why}) ended"
    return "what was known ran out"


def _waiting(state: RobotsState, now_s: float) -> str:
    times = "once" if state.failures == 1 else f"{state.failures} times in a row"
    kept = f"; the last good copy {_copy(state, now_s)}" if state.last_good else ""
    return f"No page is asked for during {_span(state.until_s - now_s)}: robots.txt failed {times} ({state.why}){kept}."


def _copy(state: RobotsState, now_s: float) -> str:
    if state.last_good is None:
        return "was never read"
    count = len(state.last_good.rules.rules)
    return f"was read {_span(now_s - state.last_good.read_s)} ago, has {count} rule{'s'[: count != 1]} for us"


def _span(seconds: float) -> str:
    """A length of time in its largest unit, rounded down; under a minute in seconds."""
    size_s, unit = next(((size, unit) for size, unit in _UNITS if seconds >= size), (1, "second"))
    count = max(int(seconds // size_s), 0)
    return f"{count} {unit}{'s'[: count != 1]}"
