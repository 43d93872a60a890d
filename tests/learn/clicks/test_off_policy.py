"""Off-policy estimates: close to the truth if the log supports it, and "not enough data" otherwise."""

from collections.abc import Callable

import numpy as np
import pytest

from vedette.learn.clicks.off_policy import NOT_ENOUGH_DATA, Decisions, Estimate, doubly_robust, ips, snips
from vedette.policy import rng_for

Estimator = Callable[[Decisions], Estimate]
ACTIONS = 5
VALUES = np.array([0.1, 0.2, 0.3, 0.4, 0.8])


def logged(decisions: int, target: np.ndarray, model: np.ndarray, floor: float = 0.1) -> Decisions:
    """Return a log of a policy that prefers the first action, evaluated for a policy with these probabilities."""
    rng = rng_for(1, "test/off-policy")
    chances = np.full(ACTIONS, floor)
    chances[0] = 1 - floor * (ACTIONS - 1)
    taken = rng.choice(ACTIONS, decisions, p=chances)
    reward = (rng.random(decisions) < VALUES[taken]).astype(np.float64)
    return Decisions(chances[taken], target[taken], reward, model[taken], np.full(decisions, float(target @ model)))


TARGET = np.array([0.1, 0.1, 0.1, 0.1, 0.6])
TRUTH = float(TARGET @ VALUES)


@pytest.mark.parametrize("estimate", [ips, snips, doubly_robust])
@pytest.mark.parametrize("model", [VALUES, np.full(ACTIONS, 0.9)])
def test_every_estimate_holds_the_truth(estimate: Estimator, model: np.ndarray) -> None:
    """With enough decisions the interval contains the true value, even if the model is wrong."""
    found = estimate(logged(4_000, TARGET, model))
    assert found.low <= TRUTH <= found.high
    assert found.caveat == ""


def test_a_right_model_makes_the_estimate_steadier() -> None:
    """If the model is right, the doubly robust interval is narrower than that of plain weights."""
    log = logged(4_000, TARGET, VALUES)
    assert doubly_robust(log).high - doubly_robust(log).low < ips(log).high - ips(log).low


@pytest.mark.parametrize("estimate", [ips, snips, doubly_robust])
def test_few_decisions_are_no_evidence(estimate: Estimator) -> None:
    """A short log, one without overlap, and an empty one are "not enough data"."""
    never = logged(4_000, np.array([0.0, 0.0, 0.0, 0.0, 1.0]), VALUES, floor=0.1)
    unlike = never._replace(target=np.zeros(4_000))
    for log in (logged(50, TARGET, VALUES), unlike, Decisions(*(np.zeros(0),) * 5)):
        assert estimate(log).caveat == NOT_ENOUGH_DATA
