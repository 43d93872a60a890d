"""Descriptions of a robots.txt state for people and for storage."""

import json

import pytest

from vedette.errors import StoreCorrupt
from vedette.fetch.robots.state import (
    UNKNOWN,
    RobotsFailure,
    RobotsResponse,
    RobotsState,
    apply_event,
    describe_state,
    state_from_json,
    state_to_json,
)

HOUR_S = 3600.0
GOOD = apply_event(UNKNOWN, RobotsResponse(0.0, 200, b"User-agent: *\nDisallow: /a\n", 0, ()), "vedette")
GONE = apply_event(UNKNOWN, RobotsResponse(0.0, 404, b"", 0, ()), "vedette")
FAILED = apply_event(UNKNOWN, RobotsFailure(0.0, "too slow"), "vedette")
FAILED_LATER = apply_event(GOOD, RobotsResponse(HOUR_S, 503, b"", 0, ()), "vedette")
KEPT_COPY = (
    "No pages are fetched for 1 minute: robots.txt failed once (status 503); "
    "the last good copy was read 1 hour ago, has 1 rule for us."
)


@pytest.mark.parametrize(
    ("state", "now_s", "sentence"),
    [
        (UNKNOWN, 0.0, "robots.txt has not been read yet."),
        (GOOD, 2 * HOUR_S, "robots.txt was read 2 hours ago, has 1 rule for us and is valid for another 22 hours."),
        (GOOD, 25 * HOUR_S, "robots.txt must be fetched before any page: the copy expired 1 hour ago."),
        (GONE, HOUR_S, "There is no robots.txt (status 404): everything is allowed for another 23 hours."),
        (FAILED, 1.0, "No pages are fetched for 59 seconds: robots.txt failed once (too slow)."),
        (
            FAILED_LATER,
            HOUR_S,
            KEPT_COPY,
        ),
        (
            FAILED,
            65.0,
            "robots.txt must be fetched before any page: the wait after a failure (too slow) ended 5 seconds ago.",
        ),
    ],
)
def test_a_state_is_told_in_one_sentence(state: RobotsState, now_s: float, sentence: str) -> None:
    """Each state says what applies, why, and for how long."""
    assert describe_state(state, now_s) == sentence


@pytest.mark.parametrize("state", [UNKNOWN, GOOD, GONE, FAILED, FAILED_LATER])
def test_a_state_survives_a_store(state: RobotsState) -> None:
    """What JSON wrote is read back as the same state, rules included."""
    assert state_from_json(json.loads(json.dumps(state_to_json(state))), "vedette") == state


def test_a_stored_file_is_read_for_the_agent_that_asks() -> None:
    """The bytes are stored, so a crawler with another name gets its own rules from the same store."""
    body = b"User-agent: other\nDisallow: /\n"
    state = apply_event(UNKNOWN, RobotsResponse(0.0, 200, body, 0, ()), "vedette")
    assert state.rules.is_allowed("https://example.org/")
    assert not state_from_json(state_to_json(state), "other").rules.is_allowed("https://example.org/")


@pytest.mark.parametrize(
    "change",
    [
        {"standing": "perhaps"},
        {"until_s": "later"},
        {"failures": None},
        {"last_good": None},
        {"last_good": 1},
        {"last_good": {}},
        {"last_good": dict(state_to_json(GOOD)["last_good"] or {}, body="\u20ac")},
    ],
)
def test_a_damaged_state_is_reported(change: dict[str, object]) -> None:
    """A stored state that contradicts itself is an error, and never allows everything."""
    with pytest.raises(StoreCorrupt):
        state_from_json({**state_to_json(GOOD), **change}, "vedette")
