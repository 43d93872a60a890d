"""Sketches, neediness, expected and worst-case impact, and means: each against its definition."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.lab.impact_definitions import (
    MAX_EXACT_PAGES,
    ScoreBounds,
    compute_exact_impact,
    compute_worst_case,
    estimate_impact,
    sample_impact,
)

from vedette.attention import step_visibility, visibility
from vedette.frontier.impact.estimator import Quadratic, fit_weights
from vedette.frontier.impact.group_means import FOLDS, compute_out_of_fold, pool_means
from vedette.frontier.impact.query_need import Improvability, needy
from vedette.frontier.impact.sketches import Sketches
from vedette.policy import Floats, rng_for

SCORES = st.sampled_from([0.0, 1.0, 2.0, 3.0])


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 6), SCORES), max_size=30))
def test_sketches_keep_the_best(told: list[tuple[int, int, float]]) -> None:
    """However scores come, the first ones are the best of what was last said of each page."""
    sketches = Sketches.empty(3, first=2, spare=9)
    last: dict[tuple[int, int], float] = {}
    for query, page, score in told:
        sketches = sketches.put(np.array([query]), np.array([page]), np.array([score]))
        last[query, page] = score
    for query in range(3):
        best = sorted((-score, page) for (of, page), score in last.items() if of == query and score > 0)
        assert [page for page in sketches.page[query].tolist() if page >= 0] == [page for _, page in best]
        assert sketches.get_thresholds()[query] == (-best[1][0] if len(best) > 1 else 0.0)


def test_a_sketch_that_lost_too_much_says_so() -> None:
    """Two leave of three that were kept, one beyond the first two: the second is not certain any more."""
    full = Sketches.empty(1, first=2, spare=1).put(np.zeros(3, int), np.arange(3), np.array([3.0, 2.0, 1.0]))
    assert full.remove_page(0).find_short().tolist() == []
    assert full.remove_page(0).page[0].tolist() == [1, 2, -1]
    assert full.remove_page(0).remove_page(1).find_short().tolist() == [0]


def test_a_page_is_not_in_its_own_way() -> None:
    """The bar of a page that holds a first place is the score behind it; for others it is the last first one."""
    sketches = Sketches.empty(1, first=1, spare=2).put(np.zeros(2, int), np.array([7, 8]), np.array([5.0, 4.0]))
    assert sketches.get_thresholds_without(np.zeros(2, int), np.array([7, 9])).tolist() == [4.0, 5.0]


def test_improvability_falls_as_it_was_seen_to() -> None:
    """A log-linear truth is found again; buckets that never improved have no logarithm, and are left out."""
    scores = np.linspace(0.0, 0.9, 400)
    rates = Improvability().add_cycle(scores, np.where(scores < 0.8, np.exp(1.0 - 3.0 * scores), 0.0))
    level, slope = rates.fit_line()
    assert level == pytest.approx(1.0, abs=0.05)
    assert slope == pytest.approx(-3.0, abs=0.1)


@pytest.mark.parametrize("improved", [[], [0.0, 0.0], [2.0]])
def test_improvability_of_little_is_the_same_for_all(improved: list[float]) -> None:
    """Nothing seen, nothing improved, or one bucket only: no query is preferred."""
    rates = Improvability().add_cycle(np.full(len(improved), 0.3), np.array(improved))
    assert np.ptp(rates.predict(np.array([0.0, 0.5, 1.0]))) == 0


def test_old_cycles_fade() -> None:
    """What the last cycles showed counts more than what the first did."""
    rates = Improvability().add_cycle(np.array([0.5]), np.array([8.0]))
    for _ in range(30):
        rates = rates.add_cycle(np.array([0.5]), np.array([1.0]))
    assert rates.predict(np.array([0.5]))[0] == pytest.approx(1.0, abs=0.05)


def test_at_least_one_query_is_needy() -> None:
    """A share of next to nothing is one query, a share of all is all."""
    frequency = np.array([1.0, 3.0, 2.0])
    assert needy(frequency, np.ones(3), 1e-9).tolist() == [1]
    assert needy(frequency, np.ones(3), 1.0).tolist() == [0, 1, 2]


def enumerated(crawled: Floats, values: Floats, frequency: float) -> Floats:
    """The definition: all combinations of scores, ranks by sorting, the first two results are seen."""
    impact = np.zeros(len(values))
    every = list(product(*values.tolist()))
    for scores in every:
        listed = sorted((-score, -1) for score in crawled.tolist())
        listed = sorted([*listed, *((-score, row) for row, score in enumerate(scores) if score > 0)])
        for _, row in listed[:2]:
            if row >= 0:
                impact[row] += frequency / len(every)
    return impact


@given(st.lists(SCORES, max_size=3), st.lists(st.lists(SCORES, min_size=2, max_size=2), min_size=1, max_size=5))
def test_expected_impact_is_exact(crawled: list[float], values: list[list[float]]) -> None:
    """It is the average over all that may come."""
    there, may = np.array([score for score in crawled if score > 0]), np.array(values)
    np.testing.assert_allclose(
        compute_exact_impact(there, may, 3.0, step_visibility(2)), enumerated(there, may, 3.0), atol=1e-12
    )


def test_sampling_comes_near_to_what_is_exact() -> None:
    """Forty pages with scores all over: both ways agree within the error of the draws."""
    rng = rng_for(3, "tests/impact")
    crawled, values = rng.random(15), rng.random((MAX_EXACT_PAGES, 6))
    exact = estimate_impact(crawled, values, 1.0, step_visibility(10), rng)
    sampled = sample_impact(crawled, values, 1.0, step_visibility(10), rng, draws=4000)
    assert np.abs(exact - sampled).max() < 0.05
    assert exact.sum() == pytest.approx(sampled.sum(), abs=0.15)


def test_long_lists_are_sampled_and_stay_within_reason() -> None:
    """No more than K results are seen in all, however many pages there are."""
    rng = rng_for(4, "tests/impact")
    impact = estimate_impact(np.zeros(0), rng.random((3 * MAX_EXACT_PAGES, 4)), 1.0, step_visibility(10), rng)
    assert impact.sum() == pytest.approx(10.0)


def test_the_worst_case_of_two_is_more_than_that_of_each() -> None:
    """Impact08, 4.1: nothing crawled, two with overlapping scores; f V(2) for one, f (V(1) + V(2)) for both."""
    sketch = ScoreBounds(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    second, first = visibility(np.array([2]))[0], visibility(np.array([1]))[0]
    for one in ([True, False], [False, True]):
        assert compute_worst_case(sketch, np.array(one), 5.0) == 5.0 * second
    assert compute_worst_case(sketch, np.array([True, True]), 5.0) == 5.0 * (first + second)


@given(st.lists(st.floats(-5, 5), min_size=6, max_size=20), st.integers(0, 19))
def test_no_page_meets_itself_in_a_mean(gains: list[float], row: int) -> None:
    """What a page brought itself makes no difference to the mean that it is described by."""
    row %= len(gains)
    keys, fold = np.arange(len(gains)) % 3, np.arange(len(gains)) % FOLDS
    before = compute_out_of_fold(keys, np.array(gains), fold)[row]
    other = np.array(gains)
    other[row] += 100.0
    assert compute_out_of_fold(keys, other, fold)[row] == before


def test_a_mean_of_few_leans_on_all() -> None:
    """A folder with one good page is expected to be better than an unknown one, and worse than one with many."""
    means = pool_means(np.array([1] * 20 + [2] + [3] * 20), np.array([10.0] * 21 + [0.0] * 20))
    many, one, unknown, bad = means.lookup(np.array([1, 2, 9, 3])).tolist()
    assert many > one > unknown > bad


@given(st.lists(st.tuples(st.floats(0, 9), st.floats(0, 9), st.floats(0, 9)), min_size=1, max_size=20))
def test_no_other_weights_fit_better(rows: list[tuple[float, float, float]]) -> None:
    """Weights are not below 0, and no pair of a grid comes nearer to what pages brought."""
    one, other, came = np.array(rows).T
    best = fit_weights(one, other, came)
    error = ((best[0] * one + best[1] * other - came) ** 2).sum()
    assert min(best) >= 0
    grid = (((a * one + b * other - came) ** 2).sum() for a in np.linspace(0, 3, 7) for b in np.linspace(0, 3, 7))
    assert all(error <= each + 1e-6 * (1 + each) for each in grid)


def test_a_fit_never_promises_less_than_nothing() -> None:
    """A falling line is cut at 0, and beyond what was seen it stays as at its end."""
    fit = Quadratic.fit(np.arange(10.0), np.array([9.0, 6, 4, 2, 1, 0, 0, 0, 0, 0]))
    assert (fit.predict(np.linspace(-5, 50, 30)) >= 0).all()
    assert fit.predict(np.array([50.0])) == fit.predict(np.array([9.0]))
