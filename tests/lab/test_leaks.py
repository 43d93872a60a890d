"""A policy that looks ahead is caught, and one that does not is not."""

from collections.abc import Callable

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.lab.leaks import LoggedDecision, find_first_leak

from vedette.policy import Floats, rng_for

STEPS = 12


def altered(world: Floats, at: float, seed: int) -> Floats:
    """Return the same numbers before ``at``, and others from then on."""
    other = world.copy()
    other[int(at) :] = rng_for(seed, "future").random(STEPS - int(at))
    return other


def playing(chosen: Callable[[Floats, int], float]) -> Callable[[Floats], list[LoggedDecision]]:
    """Run a policy that decides once per step."""
    return lambda world: [LoggedDecision(step, [chosen(world, step)]) for step in range(STEPS)]


def honest(world: Floats, step: int) -> float:
    """Decide by the past."""
    return float(world[:step].sum())


def cheat(world: Floats, step: int) -> float:
    """Decide by the future."""
    return float(world[min(step + 1, STEPS - 1)])


WORLD = rng_for(1, "past").random(STEPS)


@given(st.integers(1, STEPS - 1))
def test_an_honest_policy_has_no_leak(at: int) -> None:
    """Decisions based on the past are the same for any future."""
    assert find_first_leak(playing(honest), WORLD, altered, at) is None


@given(st.integers(1, STEPS - 1))
def test_a_policy_that_looks_one_step_ahead_is_caught_at_that_step(at: int) -> None:
    """The first decision that depends on the altered part is the one just before."""
    assert find_first_leak(playing(cheat), WORLD, altered, at) == at - 1


def test_a_policy_that_knows_how_it_ends_is_caught_at_once() -> None:
    """Looking at the last number shows in the very first decision."""
    assert find_first_leak(playing(lambda world, _: float(world[-1])), WORLD, altered, 6) == 0


def test_a_run_that_decides_less_often_in_another_future_is_caught() -> None:
    """A missing decision, or one at another time, is a different decision."""

    def lazy(world: Floats) -> list[LoggedDecision]:
        return [LoggedDecision(step, []) for step in range(STEPS) if step != 2 or world[-1] == WORLD[-1]]

    def late(world: Floats) -> list[LoggedDecision]:
        return [LoggedDecision(step + float(world[-1]) / 1e6, [0.0]) for step in range(STEPS)]

    assert find_first_leak(lazy, WORLD, altered, 6) == 2
    assert find_first_leak(late, WORLD, altered, 6) == 0


def test_what_is_decided_from_then_on_may_differ() -> None:
    """A decision at the moment of the change already sees the change."""
    present = playing(lambda world, step: float(world[step]))
    assert find_first_leak(present, WORLD, altered, 6) is None


def test_numbers_that_are_none_are_equal_to_themselves() -> None:
    """A policy that says "never" with NaN is not considered cheating."""
    assert find_first_leak(lambda _: [LoggedDecision(0, [np.nan, np.inf])], WORLD, altered, 6) is None
