"""The smallest possible forest, grown in a few lines: for tests that need trees and not a library."""

import numpy as np

from vedette.frontier.impact.forest import Forest, summarize_leaves
from vedette.policy import Floats


def stump(rows: Floats, targets: Floats, seed: int) -> Forest:
    """One cut, at the middle of the column that goes most with the targets; the seed makes no difference."""
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
