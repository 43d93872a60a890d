"""Sketches, neediness and means, each compared with its definition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.frontier.impact.estimator import Quadratic, fit_weights
from vedette.frontier.impact.group_means import FOLDS, compute_out_of_fold, pool_means
from vedette.frontier.impact.query_need import Improvability, needy
from vedette.frontier.impact.sketches import Sketches

SCORES = st.sampled_from([0.0, 1.0, 2.0, 3.0])


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 6), SCORES), max_size=30))
def test_sketches_keep_the_best(report: list[tuple[int, int, float]]) -> None:
    """In any order of scores, the first places have the best of each page's latest scores."""
    sketches = Sketches.empty(3, first=2, spare=9)
    last: dict[tuple[int, int], float] = {}
    for query, page, score in report:
        sketches = sketches.put(np.array([query]), np.array([page]), np.array([score]))
        last[query, page] = score
    for query in range(3):
        best = sorted((-score, page) for (of, page), score in last.items() if of == query and score > 0)
        assert [page for page in sketches.page[query].tolist() if page >= 0] == [page for _, page in best]
        assert sketches.get_thresholds()[query] == (-best[1][0] if len(best) > 1 else 0.0)


def test_a_page_is_not_in_its_own_way() -> None:
    """For a page in a top place, the threshold is the score after it; for others, that of the last top place."""
    sketches = Sketches.empty(1, first=1, spare=2).put(np.zeros(2, int), np.array([7, 8]), np.array([5.0, 4.0]))
    assert sketches.get_thresholds_without(np.zeros(2, int), np.array([7, 9])).tolist() == [4.0, 5.0]


def test_improvability_falls_as_it_was_seen_to() -> None:
    """A log-linear relation is recovered; buckets that never improved have no logarithm and are left out."""
    scores = np.linspace(0.0, 0.9, 400)
    rates = Improvability().add_cycle(scores, np.where(scores < 0.8, np.exp(1.0 - 3.0 * scores), 0.0))
    level, slope = rates.fit_line()
    assert level == pytest.approx(1.0, abs=0.05)
    assert slope == pytest.approx(-3.0, abs=0.1)


@pytest.mark.parametrize("improved", [[], [0.0, 0.0], [2.0]])
def test_improvability_of_little_is_the_same_for_all(improved: list[float]) -> None:
    """Without data, without improvement, or with a single bucket, all queries are equally improvable."""
    rates = Improvability().add_cycle(np.full(len(improved), 0.3), np.array(improved))
    assert np.ptp(rates.predict(np.array([0.0, 0.5, 1.0]))) == 0


def test_old_cycles_fade() -> None:
    """Recent cycles count more than old ones."""
    rates = Improvability().add_cycle(np.array([0.5]), np.array([8.0]))
    for _ in range(30):
        rates = rates.add_cycle(np.array([0.5]), np.array([1.0]))
    assert rates.predict(np.array([0.5]))[0] == pytest.approx(1.0, abs=0.05)


def test_at_least_one_query_is_needy() -> None:
    """A tiny share selects one query, and a share of 1 selects all."""
    frequency = np.array([1.0, 3.0, 2.0])
    assert needy(frequency, np.ones(3), 1e-9).tolist() == [1]
    assert needy(frequency, np.ones(3), 1.0).tolist() == [0, 1, 2]


@given(st.lists(st.floats(-5, 5), min_size=6, max_size=20), st.integers(0, 19))
def test_no_page_meets_itself_in_a_mean(gains: list[float], row: int) -> None:
    """A page's own gain is excluded from the mean that describes it."""
    row %= len(gains)
    keys, fold = np.arange(len(gains)) % 3, np.arange(len(gains)) % FOLDS
    before = compute_out_of_fold(keys, np.array(gains), fold)[row]
    other = np.array(gains)
    other[row] += 100.0
    assert compute_out_of_fold(keys, other, fold)[row] == before


def test_a_mean_of_few_leans_on_all() -> None:
    """A folder with one good page is rated above an unknown one and below one with many."""
    means = pool_means(np.array([1] * 20 + [2] + [3] * 20), np.array([10.0] * 21 + [0.0] * 20))
    many, one, unknown, bad = means.lookup(np.array([1, 2, 9, 3])).tolist()
    assert many > one > unknown > bad


@given(st.lists(st.tuples(st.floats(0, 9), st.floats(0, 9), st.floats(0, 9)), min_size=1, max_size=20))
def test_no_other_weights_fit_better(rows: list[tuple[float, float, float]]) -> None:
    """Weights are at least 0, and no pair on a grid fits the gains of pages better."""
    one, other, received = np.array(rows).T
    best = fit_weights(one, other, received)
    error = ((best[0] * one + best[1] * other - received) ** 2).sum()
    assert min(best) >= 0
    grid = (((a * one + b * other - received) ** 2).sum() for a in np.linspace(0, 3, 7) for b in np.linspace(0, 3, 7))
    assert all(error <= each + 1e-6 * (1 + each) for each in grid)


def test_a_fit_never_promises_less_than_nothing() -> None:
    """A falling line is cut at 0, and extrapolated as a constant."""
    fit = Quadratic.fit(np.arange(10.0), np.array([9.0, 6, 4, 2, 1, 0, 0, 0, 0, 0]))
    assert (fit.predict(np.linspace(-5, 50, 30)) >= 0).all()
    assert fit.predict(np.array([50.0])) == fit.predict(np.array([9.0]))
