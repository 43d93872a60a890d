"""Expected and worst-case impact of unseen pages, each compared with its definition."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.lab.impact_definitions import ScoreBounds, compute_worst_case

from vedette.attention import step_visibility, visibility
from vedette.lab.baselines.order.expected_impact import MAX_EXACT_PAGES, estimate_impact, sample_impact
from vedette.lab.baselines.order.worst_case import compute_worst_ranks
from vedette.policy import Floats, rng_for

SCORES = st.sampled_from([0.0, 1.0, 2.0, 3.0])


def enumerate_scores(crawled: Floats, points: Floats) -> Floats:
    """Enumerate all combinations of scores, by definition: rank by sorting, view the first two results."""
    impact = np.zeros(len(points))
    every = list(product(*points.tolist()))
    for scores in every:
        listed = sorted((-score, -1) for score in crawled.tolist())
        listed = sorted([*listed, *((-score, row) for row, score in enumerate(scores) if score > 0)])
        for _, row in listed[:2]:
            if row >= 0:
                impact[row] += 1 / len(every)
    return impact


@given(st.lists(SCORES, max_size=3), st.lists(st.lists(SCORES, min_size=2, max_size=2), min_size=1, max_size=5))
def test_expected_impact_is_exact(crawled: list[float], points: list[list[float]]) -> None:
    """It is the average over all possible outcomes."""
    there, may = np.array([score for score in crawled if score > 0]), np.array(points)
    found = estimate_impact(there, may, step_visibility(2), rng_for(1, "test"))
    np.testing.assert_allclose(found, enumerate_scores(there, may), atol=1e-12)


def test_sampling_comes_near_to_what_is_exact() -> None:
    """With forty pages and scattered scores, both methods agree within the sampling error."""
    rng = rng_for(3, "tests/impact")
    crawled, points = rng.random(15), rng.random((MAX_EXACT_PAGES, 6))
    exact = estimate_impact(crawled, points, step_visibility(10), rng)
    sampled = sample_impact(crawled, points, step_visibility(10), rng, draws=4000)
    assert np.abs(exact - sampled).max() < 0.05
    assert exact.sum() == pytest.approx(sampled.sum(), abs=0.15)


def test_long_lists_are_sampled_and_stay_within_reason() -> None:
    """At most K results are seen, for any number of pages."""
    rng = rng_for(4, "tests/impact")
    impact = estimate_impact(np.zeros(0), rng.random((3 * MAX_EXACT_PAGES, 4)), step_visibility(10), rng)
    assert impact.sum() == pytest.approx(10.0)


BOUNDS = st.tuples(st.integers(1, 4), st.integers(0, 2)).map(lambda pair: (pair[0], pair[0] + pair[1]))


@given(st.lists(st.integers(1, 6), max_size=3), st.lists(BOUNDS, min_size=1, max_size=5))
def test_worst_ranks_are_those_of_each_page_alone(crawled: list[int], bounds: list[tuple[int, int]]) -> None:
    """The worst case of fetching one page only, by its definition; in 4.1's example that is f V(2) for either."""
    known, (low, high) = np.array(crawled, float), np.array(bounds, float).T
    ranks = compute_worst_ranks(known, low, high)
    sketch = ScoreBounds(np.append(low, known), np.append(high, known))
    for row, rank in enumerate(ranks.tolist()):
        alone = np.arange(len(sketch.low)) == row
        assert compute_worst_case(sketch, alone, 1.0) == visibility(np.array([rank]))[0]
