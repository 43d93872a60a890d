"""Extremely randomized trees: properties of their leaves, and predictions as good as a library's."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vedette.frontier.impact.extra_trees import FEATURE_SHARE, MIN_LEAF_ROWS, TREES, fit_forest
from vedette.policy import Floats, rng_for


def draw_rows(rows: int, seed: int) -> tuple[Floats, Floats]:
    """Draw rows of several kinds of features, and noisy targets that depend on some of them."""
    rng = rng_for(seed, "tests/extra-trees")
    table = rng.random((rows, 6))
    table[:, 1] = rng.integers(0, 3, rows)
    table[:, 2] = 4.0
    return table, 3 * table[:, 0] + table[:, 1] * table[:, 3] + rng.gamma(0.3, 1.0, rows)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from([0.0, 1e-9, 1.0, 1e12]), st.integers(-3, 3)), min_size=1, max_size=60),
    st.integers(0, 9),
)
def test_every_row_has_a_leaf_with_enough_company(cells: list[tuple[float, int]], seed: int) -> None:
    """Leaves have the rows that lead to them, at least the minimum number, and their mean."""
    rows = np.array([[first, second] for first, second in cells], np.float64)
    targets = rows[:, 1] ** 2 - rows[:, 0] / 1e12
    forest = fit_forest(rows, targets, seed)
    leaves = forest.find_leaves(rows)
    assert (forest.left[leaves] == leaves).all()
    assert np.unique(leaves, return_counts=True)[1].min() >= min(MIN_LEAF_ROWS, max(len(rows) // 4, 1))
    means = np.bincount(leaves[:, 0], targets) / np.maximum(np.bincount(leaves[:, 0]), 1)
    np.testing.assert_allclose(forest.mean[leaves[:, 0]], means[leaves[:, 0]], rtol=1e-9, atol=1e-9)
    assert (np.diff(forest.predict_points(rows), axis=1) >= 0).all()


def test_a_seed_decides_the_forest() -> None:
    """The same seed grows the same trees; another one grows others."""
    rows, targets = draw_rows(200, 1)
    same, again, other = (fit_forest(rows, targets, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(same.threshold, again.threshold)
    assert same.threshold.tolist() != other.threshold.tolist()


def test_they_predict_as_well_as_the_library() -> None:
    """On held-out rows, errors agree within chance, and so do the sizes of the trees."""
    ensemble = pytest.importorskip("sklearn.ensemble", reason="scikit-learn is the reference for our trees")
    errors: dict[str, list[float]] = {"ours": [], "theirs": []}
    for seed in range(3):
        rows, targets = draw_rows(1600, seed)
        ours = fit_forest(rows[:800], targets[:800], seed)
        theirs = ensemble.ExtraTreesRegressor(
            n_estimators=TREES, min_samples_leaf=MIN_LEAF_ROWS, max_features=FEATURE_SHARE, random_state=seed
        ).fit(rows[:800], targets[:800])
        for name, predicted in (("ours", ours.predict_means(rows[800:])), ("theirs", theirs.predict(rows[800:]))):
            errors[name].append(float(((predicted - targets[800:]) ** 2).mean()))
        assert len(ours.feature) == pytest.approx(sum(each.tree_.node_count for each in theirs.estimators_), rel=0.1)
    assert np.mean(errors["ours"]) == pytest.approx(np.mean(errors["theirs"]), rel=0.02)
