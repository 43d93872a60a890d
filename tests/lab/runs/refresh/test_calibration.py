"""Calibration: what each model predicts and when, what is judged, and that none can beat the truth."""

from dataclasses import replace

import numpy as np
import pytest
from tests.lab.histories import P, V, web

from vedette.errors import UsageError
from vedette.lab.core.experiment import Cell
from vedette.lab.experiments.calibration import (
    EXPERIMENT,
    MODELS,
    FetchSampling,
    Groups,
    Judgments,
    bin_reliability,
    bootstrap_score,
    brier_scores,
    build_rows,
    log_scores,
    run_calibration,
)
from vedette.lab.worlds.history import History
from vedette.policy import Floats, rng_for
from vedette.refresh.known_pages import KnownPages, Memory
from vedette.refresh.models.base import Rates

DAY_S = 86_400.0
# The mixture asks its parts, so these are all models.
COVERING = [MODELS[name] for name in ("mixture", "poisson", "replacement", "signals")]


class Truthful:
    """A model that knows each page's rate, passed as the section, which no real model can."""

    name, page_width, group_width = "truthful", 1, 1

    def __init__(self, rates: Floats) -> None:
        self._rates = rates

    def learn(self, memory: Memory, batch: KnownPages) -> Memory:
        """Learn nothing."""
        return memory.grow_for(batch)

    def chance(self, memory: Memory, batch: KnownPages, at_s: Floats) -> Floats:
        """Return the true probability."""
        del memory
        rate = self._rates[batch.section]
        return -np.expm1(-rate * (at_s - batch.last_fetch_s) / DAY_S)

    def rates(self, memory: Memory, batch: KnownPages) -> Rates:
        """Return the true rates."""
        del memory
        rate = self._rates[batch.section]
        return Rates(rate, rate, rate)


def memoryless(rates: Floats, days: int) -> History:
    """Return pages that change at these rates."""
    rng = rng_for(5, "tests/calibration")
    lives = [np.cumsum(rng.exponential(1 / rate, int(3 * rate * days) + 20)) for rate in rates]
    return web([P([V(0.0), *(V(day * DAY_S) for day in life if day < days)]) for life in lives], end_s=days * DAY_S)


def test_no_model_beats_the_truth_and_learners_beat_guessing() -> None:
    """On memoryless pages, true probabilities score best, and all models beat the share of changes alone."""
    rates = rng_for(1, "rates").gamma(0.7, 0.1, 60)
    everyone = [Truthful(rates), *MODELS.values()]
    alone = Groups(np.arange(60), np.zeros(60, np.int64))
    truth = run_calibration(memoryless(rates, 90), everyone[:1], FetchSampling(0.0, 90 * DAY_S, 12.0), alone)
    judged = run_calibration(memoryless(rates, 90), everyone[1:], FetchSampling(0.0, 90 * DAY_S, 12.0))
    best, scores = log_scores(truth).mean(), log_scores(judged).mean(axis=1)
    share = judged.changed.mean()
    assert np.array_equal(truth.page, judged.page)
    assert scores.max() < best
    assert scores.min() > share * np.log(share) + (1 - share) * np.log(1 - share)


def test_the_future_has_no_part_in_a_chance() -> None:
    """Worlds that differ after a day get the same probabilities up to that day."""
    history = memoryless(np.full(20, 0.1), 60)
    late = history.version_at_s > 40 * DAY_S
    other = replace(history, digest=np.where(late, 1, history.digest), words=np.where(late, 9, history.words))
    one, two = (run_calibration(each, COVERING, FetchSampling(0.0, 40 * DAY_S, 5.0)) for each in (history, other))
    assert np.array_equal(one.chance, two.chance)
    longer = run_calibration(other, COVERING, FetchSampling(0.0, 50 * DAY_S, 5.0))
    # A longer run warms up for longer: its first judged looks come later.
    again = one.chance.shape[1] - 5 * 2
    assert np.array_equal(longer.chance[:, :again], one.chance[:, 10:])


def test_the_first_fifth_is_for_learning_and_the_dead_are_not_judged() -> None:
    """Of ten days with one fetch each, eight or nine count; a fetch that finds a page gone does not."""
    stays = web([P([V(0.0)])], end_s=10 * DAY_S)
    assert len(run_calibration(stays, [MODELS["pooled"]], FetchSampling(0.0, 10 * DAY_S, 1.0)).page) == 9
    dies = web([P([V(0.0)], died_s=5.5 * DAY_S)], end_s=10 * DAY_S)
    assert len(run_calibration(dies, [MODELS["pooled"]], FetchSampling(0.0, 10 * DAY_S, 1.0)).page) == 4


def test_scores_are_those_of_the_books() -> None:
    """These are the squared error, and the logarithm of the probability of the outcome, limited to 1 / 10,000."""
    judged = Judgments(np.arange(3), np.array([True, False, True]), np.array([[0.8, 0.5, 0.0]]))
    assert brier_scores(judged)[0] == pytest.approx([0.04, 0.25, 1.0])
    assert log_scores(judged)[0] == pytest.approx(np.log([0.8, 0.5, 1e-4]))


def test_intervals_are_by_pages() -> None:
    """A hundred fetches of two pages are two samples: the interval ranges from one page's mean to the other's."""
    score = bootstrap_score(np.repeat([0.0, 1.0], 50), np.repeat([3, 8], 50), 1)
    assert score == (0.5, 0.0, 1.0)


def test_true_chances_lie_on_the_diagonal() -> None:
    """If outcomes are drawn with the predicted probabilities, predictions and outcomes agree in every bin."""
    rng = rng_for(2, "bins")
    chance = rng.random(40_000)
    bins = bin_reliability(chance, rng.random(40_000) < chance)
    assert len(bins) == 10
    assert all(each.changed == pytest.approx(each.chance, abs=0.03) for each in bins)


def test_rows_are_a_summary_and_its_bins() -> None:
    """The bins have all fetches, and their weighted means are those of the summary."""
    history = memoryless(np.full(20, 0.1), 100)
    first, *bins = build_rows(run_calibration(history, [MODELS["pooled"]], FetchSampling(0.0, 100 * DAY_S, 5.0)), 1)
    looks = np.array([row["looks"] for row in bins])
    assert looks.sum() == first["looks"]
    assert looks @ np.array([row["found"] for row in bins]) / looks.sum() == pytest.approx(first["found"])
    assert first["brier_low"] <= first["brier"] <= first["brier_high"]


def test_an_unknown_model_is_named() -> None:
    """The error for a policy instead of a model lists the models."""
    with pytest.raises(UsageError, match="did you mean pooled"):
        EXPERIMENT.run(Cell("calibration", "made:1", "poled", 1.0, 1))
