"""Fetches over weeks: their number by the largest steps, their time by the cheapest transport, in small cases."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.lab.runs.refresh.transport_schedule import allocate_fetches, schedule_fetches, transport_cost
from vedette.policy import rng_for


def test_even_fetches_are_laid_out_evenly() -> None:
    """Two pages take turns: each in every other week, and every week is full."""
    assert [week.tolist() for week in schedule_fetches(np.array([2, 2]), weeks=4, room=1)] == [[0], [1], [0], [1]]


@given(seed=st.integers(0, 2**32), weeks=st.integers(1, 8), pages=st.integers(1, 8), room=st.integers(1, 8))
def test_every_week_is_full_and_every_page_has_its_share(seed: int, weeks: int, pages: int, room: int) -> None:
    """Each week has exactly this many fetches, no page twice, and each page gets its share."""
    room = min(room, pages)
    rng = rng_for(seed, "tests/transport")
    fetches = allocate_fetches(rng.gamma(0.5, 1.0, pages), rng.random(pages), weeks, room)
    plan = schedule_fetches(fetches, weeks, room)
    assert [len(np.unique(week)) for week in plan] == [room] * weeks
    assert np.bincount(np.concatenate(plan), minlength=pages).tolist() == fetches.tolist()


@given(seed=st.integers(0, 2**32), weeks=st.integers(2, 5), pages=st.integers(2, 4))
def test_the_largest_steps_are_the_best_shares(seed: int, weeks: int, pages: int) -> None:
    """No other allocation of the same number of fetches has higher weighted freshness."""
    rng = rng_for(seed, "tests/shares")
    rates, weights = rng.gamma(0.5, 1.0, pages) + 0.01, rng.random(pages) + 0.1

    def fresh(fetches: tuple[int, ...]) -> float:
        changes = rates * weeks / (np.array(fetches) + 1)
        return float((weights * (1 - np.exp(-changes)) / changes).sum())

    every = [one for one in product(range(weeks + 1), repeat=pages) if sum(one) == weeks]
    assert fresh(tuple(allocate_fetches(rates, weights, weeks, room=1).tolist())) == pytest.approx(
        max(map(fresh, every))
    )


def cheapest(fetches: np.ndarray, weeks: int, room: int) -> float:
    """Return the cost of the best schedule that fills every week."""
    choices = list(combinations(range(len(fetches)), room))
    plans = ([np.array(week) for week in plan] for plan in product(choices, repeat=weeks))
    right = [
        plan for plan in plans if np.array_equal(np.bincount(np.concatenate(plan), minlength=len(fetches)), fetches)
    ]
    return min(transport_cost(plan, fetches) for plan in right)


@pytest.mark.parametrize("seed", range(40))
def test_the_schedule_is_the_cheapest(seed: int) -> None:
    """It is compared with all schedules of three to four pages in four weeks."""
    rng = rng_for(seed, "tests/cheapest")
    pages, room = int(rng.integers(3, 5)), int(rng.integers(1, 3))
    fetches = allocate_fetches(rng.gamma(0.5, 1.0, pages), rng.random(pages), 4, room)
    assert transport_cost(schedule_fetches(fetches, 4, room), fetches) == pytest.approx(cheapest(fetches, 4, room))
