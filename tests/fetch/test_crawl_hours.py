"""The hours in which a site may be crawled."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.errors import ConfigError
from vedette.fetch.politeness import find_next_open_s, parse_hours

HOUR_S = 3600.0
DAY_S = 24 * HOUR_S
MIDNIGHT_S = 1_767_571_200.0  # 2026-01-05 00:00 UTC


@pytest.mark.parametrize(
    ("hours", "now_h", "open_h"),
    [
        ("22:00-06:00", 23, 23),
        ("22:00-06:00", 5.99, 5.99),
        ("22:00-06:00", 6, 22),
        ("09:30-12:00", 8, 9.5),
        ("09:30-12:00", 12, 33.5),
        ("01:00-02:00,03:00-04:00", 2.5, 3),
        ("00:00-24:00", 17, 17),
        ("", 3, 3),
    ],
)
def test_the_next_time_within_the_hours(hours: str, now_h: float, open_h: float) -> None:
    """Within a span, the next time is now; otherwise it is the nearest start, today or tomorrow."""
    assert find_next_open_s(parse_hours(hours), MIDNIGHT_S + now_h * HOUR_S) == MIDNIGHT_S + open_h * HOUR_S


@pytest.mark.parametrize("hours", ["8-9", "25:00-26:00", "nightly", "08:00", "08:00-09:61", "08:00-09:00;"])
def test_what_is_no_span_is_told(hours: str) -> None:
    """The error shows how spans are written."""
    with pytest.raises(ConfigError, match="22:00-06:00"):
        parse_hours(hours)


@given(
    st.lists(st.tuples(*[st.integers(0, 23), st.integers(0, 59)] * 2), min_size=1, max_size=4),
    st.integers(0, 4_000_000_000),
)
def test_what_opens_is_open(spans: list[tuple[int, int, int, int]], now_s: int) -> None:
    """The result is never in the past, less than a day ahead, and within the hours."""
    hours = parse_hours(",".join(f"{a:02}:{b:02}-{c:02}:{d:02}" for a, b, c, d in spans))
    open_s = find_next_open_s(hours, now_s)
    assert now_s <= open_s < now_s + DAY_S
    assert find_next_open_s(hours, open_s) == open_s
