"""Whether a query needs fresh pages depends on its words and on the dates of matches."""

from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.serve.rank.scoring import score_fresh_intent, score_freshness

NOW_S = datetime(2026, 6, 1, tzinfo=UTC).timestamp()
DAY_S = 86_400.0
NO_DATES = np.array([])


@pytest.mark.parametrize("query", ["kafka news", "latest kafka", "kafka 2026", "today"])
def test_words_that_want_news(query: str) -> None:
    """Some words always ask for fresh pages, including the current year."""
    assert score_fresh_intent(query.split(), NO_DATES, NOW_S) == 1.0


def test_words_that_hint_at_it() -> None:
    """A release may be an old one, and last year may be meant: these count half."""
    assert 0 < score_fresh_intent(["kafka", "release"], NO_DATES, NOW_S) < 1
    assert 0 < score_fresh_intent(["kafka", "2025"], NO_DATES, NOW_S) < 1


def test_other_words_do_not() -> None:
    """Most queries do not need fresh pages, and neither do years long past."""
    assert score_fresh_intent(["consumer", "lag", "2019"], NO_DATES, NOW_S) == 0.0
    assert score_fresh_intent(["choosing", "a", "name", "for", "a", "new", "project"], NO_DATES, NOW_S) == 0.0


def test_dates_bunched_of_late() -> None:
    """If nearly all matches are from recent weeks, something is happening; evenly spread dates mean nothing."""
    lately = NOW_S - DAY_S * np.arange(20, dtype=np.float64)
    evenly = NOW_S - 50 * DAY_S * np.arange(20, dtype=np.float64)
    assert score_fresh_intent(["flood"], lately, NOW_S) > 0.9
    assert score_fresh_intent(["flood"], evenly, NOW_S) == 0.0
    assert score_fresh_intent(["flood"], lately[:3], NOW_S) == 0.0, "three pages are no bunch"


def test_unknown_dates_say_nothing() -> None:
    """Pages without a date, or with a future one, neither count nor are fresh."""
    unknown = np.full(30, np.nan)
    assert score_fresh_intent(["flood"], unknown, NOW_S) == 0.0
    assert not score_freshness(unknown, NOW_S).any()
    assert not score_freshness(np.array([NOW_S + 400 * DAY_S]), NOW_S).any()


def test_freshness_fades() -> None:
    """The older, the less fresh."""
    fresh = score_freshness(NOW_S - DAY_S * np.array([0.0, 1, 30, 365, 9000]), NOW_S).tolist()
    assert fresh[0] == 1.0
    assert fresh == sorted(fresh, reverse=True)
    assert fresh[-1] > 0


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True)), st.floats(-1e12, 1e12))
def test_any_dates(dates: list[float], now_s: float) -> None:
    """For any dates, both values are between 0 and 1."""
    assert 0 <= score_fresh_intent(["x"], np.array(dates), now_s) <= 1
    fresh = score_freshness(np.array(dates), now_s)
    assert ((fresh >= 0) & (fresh <= 1)).all()
