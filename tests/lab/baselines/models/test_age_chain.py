"""The age chain: published examples, the probability of no change, and chains fitted to lifetimes and ages."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.lab.baselines.models.age_chain import (
    AgeChain,
    chain_from_ages,
    chain_from_lifetimes,
    fit_nonincreasing,
    memoryless_chain,
    periodic_chain,
)
from vedette.policy import rng_for

chances = st.one_of(st.just(0.0), st.just(1.0), st.floats(0.01, 0.99))
chains = st.lists(chances, min_size=1, max_size=6).map(lambda resets: AgeChain(np.array(resets)))
ages, steps = st.integers(0, 8), st.integers(0, 12)


def test_the_periodic_page_of_the_print() -> None:
    """Eq. 9: a page that changes every third step goes 0, 1, 2 and back."""
    assert periodic_chain(3).matrix().tolist() == [[0, 1, 0], [0, 0, 1], [1, 0, 0]]


def test_the_memoryless_page_of_the_print() -> None:
    """Eq. 10: the probability of a reset is the same at every age; pages without a reset stay at the last age."""
    assert memoryless_chain(0.3, 2).matrix() == pytest.approx(np.array([[0.3, 0.7, 0], [0.3, 0, 0.7], [0.3, 0, 0.7]]))


@given(chains, ages, steps)
def test_unchanged_is_a_product_also_beyond_the_last_age(chain: AgeChain, age: int, steps: int) -> None:
    """For any age and number of steps, including certain and impossible changes."""
    by_hand = 1.0
    for step in range(steps):
        by_hand *= 1 - chain.resets[min(age + step, chain.last_age)]
    assert chain.survival(age, steps) == pytest.approx(by_hand)


@given(chains, ages, steps)
def test_staleness_is_the_sum_of_what_each_step_may_find(chain: AgeChain, age: int, steps: int) -> None:
    """Z of eq. 15, without the division of eq. 19: a page is out of date from the step of its first change on."""
    late = sum(float(chain.change_chance(age, step)) for step in range(1, steps + 1))
    assert late == pytest.approx(float(chain.expected_staleness(age, steps)))


def test_lives_of_three_steps_are_the_periodic_page() -> None:
    """Eq. 7 is indexed by the age at reset, a step less than the life."""
    assert chain_from_lifetimes(np.array([3, 3]), 2).matrix().tolist() == periodic_chain(3).matrix().tolist()


def test_lives_whose_end_was_not_seen_count_as_watched() -> None:
    """Two lifetimes ended after one step, and two others were still running after two: one change in two at age 0."""
    chain = chain_from_lifetimes(np.array([1, 1]), 1, unended=np.array([2, 2]))
    assert chain.resets.tolist() == [0.5, 0.0]


@given(st.floats(0.05, 0.9))
def test_lives_and_ages_of_a_memoryless_page_tell_its_rate(reset: float) -> None:
    """Both ways, eq. 7 and eq. 8, lead to the same chain, including the last state."""
    lives = rng_for(1, "test/lives").geometric(reset, 20_000)
    assert chain_from_lifetimes(lives, 3).resets == pytest.approx(np.full(4, reset), abs=0.05)
    seen = np.append((1 - reset) ** np.arange(5) * reset, (1 - reset) ** 5)  # the stationary law of ages 0 to 5 or more
    assert chain_from_ages(seen).resets == pytest.approx(np.full(6, reset))


@given(st.lists(st.floats(0, 100), min_size=2, max_size=9).filter(lambda seen: sum(seen) > 0))
def test_noisy_ages_make_probabilities(seen: list[float]) -> None:
    """Counts that rise with age or are zero give no probability outside 0 to 1."""
    chain = chain_from_ages(np.array(seen))
    assert chain.last_age == len(seen) - 1


@given(st.lists(st.floats(-50, 50), max_size=12))
def test_a_falling_fit_never_rises_and_keeps_the_sum(values: list[float]) -> None:
    """Neighbors are averaged; values that already fall stay as they are."""
    fitted = fit_nonincreasing(np.array(values))
    assert (np.diff(fitted) <= 1e-9).all()
    assert fitted.sum() == pytest.approx(sum(values), abs=1e-6)
    assert fit_nonincreasing(-np.sort(np.array(values))).tolist() == (-np.sort(np.array(values))).tolist()
