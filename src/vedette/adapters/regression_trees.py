"""Regression trees: fit a random forest with scikit-learn, imported at first use, into plain arrays."""

from importlib import import_module
from typing import Any

import numpy as np

from vedette.frontier.impact.forest import Forest, summarize_leaves
from vedette.policy import Floats

TREES = 40
MIN_LEAF_ROWS = 5
MAX_ROWS = 8000  # more are thinned out evenly: time matters more than the last digit
FEATURE_SHARE = 0.5


def fit_forest(rows: Floats, targets: Floats, seed: int) -> Forest:
    """Fit extremely randomized regression trees that predict targets from rows, on one core, by seed.

    Splits are drawn at random and not optimized: with few pages, optimized splits fit noise.
    """
    every = max(-(-len(rows) // MAX_ROWS), 1)
    rows, targets = rows[::every], targets[::every]
    forest = import_module("sklearn.ensemble").ExtraTreesRegressor(
        n_estimators=TREES,
        min_samples_leaf=min(MIN_LEAF_ROWS, max(len(rows) // 4, 1)),
        max_features=FEATURE_SHARE,
        random_state=seed,
        n_jobs=1,
    )
    forest.fit(rows, targets)
    return _to_arrays(forest, rows, targets)


def _to_arrays(forest: Any, rows: Floats, targets: Floats) -> Forest:  # noqa: ANN401 - the library has no types
    narrow = rows.astype(np.float32)
    trees = [each.tree_ for each in forest.estimators_]
    sizes = [tree.node_count for tree in trees]
    root = np.append(0, np.cumsum(sizes)[:-1]).astype(np.int64)
    columns: list[tuple[Any, ...]] = []
    for tree, begin in zip(trees, root.tolist(), strict=True):
        own = np.arange(tree.node_count)
        is_leaf = tree.children_left < 0
        left, right = (np.where(is_leaf, own, each) + begin for each in (tree.children_left, tree.children_right))
        values, mean = summarize_leaves(tree.apply(narrow), targets, tree.node_count)
        columns.append((np.where(is_leaf, 0, tree.feature), tree.threshold, left, right, values, mean))
    feature, threshold, left, right, values, mean = (np.concatenate(each) for each in zip(*columns, strict=True))
    depth = max(int(tree.max_depth) for tree in trees)
    return Forest(root, feature.astype(np.int64), threshold, left, right, values, mean, depth)
