"""Freshness of copies: small histories calculated by hand, and the definition evaluated at each moment."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.lab.exact_freshness import Copies, initial_copies, measure_freshness
from tests.lab.histories import Life, small_history

from vedette.lab.worlds.history import History

DAY_S = 86_400.0


def copies(*taken: tuple[int, float]) -> Copies:
    """Return copies of pages on days."""
    pages, days = zip(*taken, strict=True) if taken else ((), ())
    return Copies(np.array(pages, np.int64), np.array(days, np.float64) * DAY_S)


def page(*says: tuple[float, str], died: float = np.inf) -> Life:
    """Return a page whose text changes on these days."""
    return Life([(day * DAY_S, text) for day, text in says], died * DAY_S)


def test_one_page_by_hand() -> None:
    """Copied on day 0, it changes on day 2 and is fetched on day 6; nothing happens until day 8.

    Of 8 days it is current on 0-2 and 6-8: a half. Its age grows from 0 to 4 days in 4 days: 8 day-days over 8 days.
    """
    history = small_history([page((0, "a"), (2, "b"))])
    report = measure_freshness(history, copies((0, 0)), copies((0, 6)), 0, 8 * DAY_S)
    assert report == pytest.approx((0.5, 1.0, 1.0, 1))


def test_second_change_does_not_make_a_copy_younger() -> None:
    """Out of date since day 1, changed again on day 3, looked at until day 4: age 3 at the end, 4.5 / 4 on average."""
    history = small_history([page((0, "a"), (1, "b"), (3, "c"))])
    report = measure_freshness(history, copies((0, 0)), copies(), 0, 4 * DAY_S)
    assert report == pytest.approx((0.25, 4.5 / 4, 0, 0))


def test_a_change_that_is_taken_back_makes_a_copy_current_again() -> None:
    """From day 1 to day 2 the page differs from its copy, then it is the same again: stale for one day of four."""
    history = small_history([page((0, "a"), (1, "b"), (2, "a"))])
    report = measure_freshness(history, copies((0, 0)), copies((0, 3)), 0, 4 * DAY_S)
    assert report == pytest.approx((0.75, 0.5 / 4, 0, 1))


def test_shares_are_taken_at_each_moment() -> None:
    """Page 0 is stale from the start and dies on day 1; page 1 is known and current from day 0 to day 3.

    The share is a half on the first day and 1 on two more: 5/6. By page and day it would be 3 of 4.
    """
    history = small_history([page((0, "a"), (0.5, "b"), died=2), page((1, "c"))])
    report = measure_freshness(history, copies((0, 0), (1, 1)), copies(), DAY_S, 4 * DAY_S)
    assert report.freshness == pytest.approx((0.5 + 1 + 1) / 3)
    assert report.age_days == pytest.approx((0.5 + 1.5) / 2 / 2 / 3)


def test_what_is_not_known_does_not_count() -> None:
    """The page lives from day 0 and is first fetched on day 2; a first fetch has nothing to compare with."""
    history = small_history([page((0, "a"), (3, "b"))])
    report = measure_freshness(history, copies(), copies((0, 2)), 0, 4 * DAY_S)
    assert report == pytest.approx((0.5, 0.25, 0, 1))
    assert measure_freshness(history, copies(), copies(), 0, 4 * DAY_S) == (1, 0, 0, 0)


def test_the_dead_are_found_dead_once() -> None:
    """Of three fetches, the first finds the page unchanged, the second finds it gone, the third nothing new."""
    history = small_history([page((0, "a"), died=2)])
    report = measure_freshness(history, copies((0, 0)), copies((0, 1), (0, 3), (0, 4)), 0, 5 * DAY_S)
    assert report == pytest.approx((1, 0, 1 / 3, 3))


def test_a_fetch_at_the_moment_of_a_change_sees_it() -> None:
    """The change on day 1 is fetched on day 1: the copy is never out of date."""
    history = small_history([page((0, "a"), (1, "b"))])
    assert measure_freshness(history, copies((0, 0)), copies((0, 1)), 0, 2 * DAY_S) == pytest.approx((1, 0, 1, 1))


def test_a_repository_to_begin_with() -> None:
    """Pages that exist at the start are given, others at birth, except those that had died or appear too late."""
    lives = [page((0, "a")), page((0, "b"), died=1), page((3, "c")), page((9, "d"))]
    report = initial_copies(small_history(lives), 2 * DAY_S, 5 * DAY_S)
    assert (report.pages.tolist(), (report.at_s / DAY_S).tolist()) == ([0, 2], [2, 3])


DAYS = st.integers(0, 8).map(float)
PASTS = st.lists(
    st.builds(
        lambda changes, texts, lived: page(*zip(sorted(changes), texts, strict=False), died=max(changes) + lived),
        st.sets(DAYS, min_size=1, max_size=4),
        st.lists(st.sampled_from("abc"), min_size=4, max_size=4),
        st.integers(1, 9).map(float),
    ),
    min_size=1,
    max_size=3,
)
TAKEN = st.lists(st.tuples(st.integers(0, 2), DAYS), max_size=6)


def at_moments(history: History, taken: list[tuple[int, float]], end_day: int) -> tuple[float, float]:
    """Compute freshness and age at noon of every day: everything happens at midnight, and age grows linearly."""
    shares, ages = [], []
    for day in np.arange(0.5, end_day):
        known = [
            stale_days(history, one, [at for page, at in taken if page == one and at <= day], float(day))
            for one in history.live_pages_at(day * DAY_S).tolist()
        ]
        counted = [age for age in known if age is not None]
        if counted:
            shares.append(np.mean([age == 0 for age in counted]))
            ages.append(np.mean(counted))
    return (float(np.mean(shares)), float(np.mean(ages))) if shares else (1.0, 0.0)


def stale_days(history: History, one: int, taken: list[float], day: float) -> float | None:
    """Return for how many days a page's copy has been outdated; None without a copy."""
    held = [int(history.version_at(np.array([one]), at * DAY_S)[0]) for at in sorted(taken)]
    if not held or held[-1] < 0:
        return None
    copy = history.digest[held[-1]]
    since = day
    for earlier in np.arange(day, max(taken), -1.0):
        version = int(history.version_at(np.array([one]), earlier * DAY_S)[0])
        if history.digest[version] == copy:
            break
        since = earlier - 0.5
    return float(day - since)


@given(PASTS, TAKEN, st.integers(1, 9))
def test_integrals_are_what_looking_all_the_time_would_show(
    lives: list[Life], taken: list[tuple[int, float]], end_day: int
) -> None:
    """If pages change at midnight, sampling every noon gives both averages exactly."""
    history = small_history(lives)
    taken = [one for one in taken if one[0] < len(lives)]
    report = measure_freshness(history, copies(), copies(*taken), 0, end_day * DAY_S)
    assert (report.freshness, report.age_days) == pytest.approx(at_moments(history, taken, end_day), abs=1e-9)
    assert report.fetches == len(taken)


@given(PASTS, TAKEN)
def test_given_copies_differ_from_fetches_only_in_what_they_cost(
    lives: list[Life], taken: list[tuple[int, float]]
) -> None:
    """The same copies, given or fetched, give the same freshness and age; given ones are not fetches."""
    history = small_history(lives)
    same = copies(*(one for one in taken if one[0] < len(lives)))
    given_ = measure_freshness(history, same, copies(), 0, 9 * DAY_S)
    fetched = measure_freshness(history, copies(), same, 0, 9 * DAY_S)
    assert (given_.freshness, given_.age_days) == (fetched.freshness, fetched.age_days)
    assert (given_.fetches, given_.changed_per_fetch) == (0, 0)
