"""The smallest possible forest, for tests that need trees but not a library."""

import numpy as np

from vedette.frontier.impact.forest import Forest, summarize_leaves
from vedette.policy import Floats


def stump(rows: Floats, targets: Floats, seed: int) -> Forest:
    """Return one cut, at the middle of the column that correlates most with the targets.

    The seed makes no difference.
    """
    del seed
    centred = rows - rows.mean(axis=0)
    with_targets = np.abs(centred.T @ (targets - targets.mean())) / np.maximum(np.sqrt((centred**2).sum(axis=0)), 1e-9)
    feature = int(np.argmax(with_targets))
    middle = float((rows[:, feature].min() + rows[:, feature].max()) / 2)
    leaf = np.where(rows[:, feature] <= middle, 1, 2)
    values, mean = summarize_leaves(leaf, targets, 3)
    return Forest(
        root=np.array([0]),
        feature=np.array([feature, 0, 0]),
        threshold=np.array([middle, 0.0, 0.0]),
        left=np.array([1, 1, 2]),
        right=np.array([2, 1, 2]),
        values=values,
        mean=mean,
        depth=1,
    )
