"""Click models recover the parameters of simulated logs."""

import numpy as np
import pytest

from vedette.lab.visitors.recorded_clicks import draw_cascade_clicks, draw_position_clicks, examination_probabilities
from vedette.learn.clicks.examination import CascadeModel, ClickLog, PositionModel, fit_cascade, fit_position
from vedette.policy import rng_for

RESULTS = 60
SEARCHES = 6_000


def draw_lists() -> np.ndarray:
    """Return lists of ten of sixty results, in random order, so that position and result can be separated."""
    rng = rng_for(1, "test/shown")
    return np.array([rng.permutation(RESULTS)[:10] for _ in range(SEARCHES)])


def attractions() -> np.ndarray:
    """Return the attractiveness of results."""
    return rng_for(2, "test/attraction").uniform(0.05, 0.7, RESULTS)


def test_the_position_model_finds_places_and_attraction() -> None:
    """Fitted to simulated clicks, the model approximately recovers the users' behavior."""
    truth = PositionModel(1.0 / np.arange(1.0, 11.0) ** 0.7, attractions())
    result = draw_lists()
    log = ClickLog(result, draw_position_clicks(truth, result, rng_for(3, "test")), RESULTS)
    found = fit_position(log, np.full(RESULTS, 0.3))
    assert np.abs(found.examined - truth.examined).max() < 0.08
    assert np.corrcoef(found.attraction, truth.attraction)[0, 1] > 0.95


def test_the_dbn_finds_contentment_and_perseverance() -> None:
    """Fitted to users who read from the top, it approximately recovers when they stop."""
    truth = CascadeModel(attractions(), 0.6, 0.85)
    result = draw_lists()
    log = ClickLog(result, draw_cascade_clicks(truth, result, rng_for(4, "test")), RESULTS)
    found = fit_cascade(log, np.full(RESULTS, 0.3))
    assert found.satisfaction == pytest.approx(0.6, abs=0.06)
    assert found.perseverance == pytest.approx(0.85, abs=0.05)
    assert np.corrcoef(found.attraction, truth.attraction)[0, 1] > 0.95


def test_the_right_model_explains_new_clicks_best() -> None:
    """For held-out clicks of users who follow the DBN, its likelihood is higher than that of the position model."""
    truth = CascadeModel(attractions(), 0.9, 0.95)
    result = draw_lists()
    clicked = draw_cascade_clicks(truth, result, rng_for(5, "test"))
    train, test = (ClickLog(result[part], clicked[part], RESULTS) for part in (slice(0, 3000), slice(3000, None)))
    prior = np.full(RESULTS, 0.3)
    assert fit_cascade(train, prior).log_likelihood(test) > fit_position(train, prior).log_likelihood(test)


def test_the_likelihood_of_a_cascade_sums_to_one() -> None:
    """The probabilities of all click patterns on three results sum to 1."""
    model = CascadeModel(np.array([0.2, 0.5, 0.7]), 0.4, 0.8)
    ways = np.array(np.meshgrid(*[[False, True]] * 3)).reshape(3, -1).T
    log = ClickLog(np.tile(np.arange(3), (8, 1)), ways, 3)
    assert np.exp(model.log_likelihoods(log)).sum() == pytest.approx(1.0, abs=1e-6)


def test_readers_look_less_the_further_down() -> None:
    """In both models, the probability of examination decreases along a list."""
    result = np.arange(10)[None, :]
    for model in (
        PositionModel(1.0 / np.arange(1.0, 11.0), np.full(10, 0.5)),
        CascadeModel(np.full(10, 0.5), 0.5, 0.9),
    ):
        assert np.all(np.diff(examination_probabilities(model, result)[0]) < 0)
