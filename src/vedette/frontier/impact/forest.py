"""Predict impact with a forest of regression trees in plain arrays: a distribution, not only a mean.

A leaf stores several equally likely numbers: quantiles of its training values. A forest predicts the mixture of its
trees' leaves. ``extra_trees`` grows them; the function that grows a forest is passed in as a ``Grower``, so that
experiments can replace it.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from vedette.policy import Floats, Ints

QUANTILES = 8
CHECK_EVERY = 4  # steps down the trees between two checks for finished rows
Floats32 = npt.NDArray[np.float32]


class Forest(NamedTuple):
    """A forest of regression trees: the nodes of all trees, one after the other; a tree begins at ``root``.

    A row goes ``left`` if its ``feature`` is at most the ``threshold``, else ``right``; in a leaf both are the node
    itself. ``values`` has the quantiles of each leaf, ``mean`` its average.
    """

    root: Ints
    feature: Ints
    threshold: Floats
    left: Ints
    right: Ints
    values: Floats32
    mean: Floats
    depth: int

    def find_leaves(self, rows: Floats) -> Ints:
        """Find the leaf of each row in each tree of the forest (one column per tree)."""
        flat, child = np.ascontiguousarray(rows).reshape(-1), np.column_stack((self.right, self.left)).reshape(-1)
        reached = np.tile(self.root, len(rows))
        going, node = np.arange(len(reached)), reached.copy()
        begin = np.repeat(np.arange(len(rows)) * rows.shape[1], len(self.root))
        for step in range(self.depth):
            goes_left = flat.take(begin + self.feature.take(node)) <= self.threshold.take(node)
            node = child.take(2 * node + goes_left)
            # Most rows arrive long before the deepest does; checking pays off only occasionally.
            if step % CHECK_EVERY == CHECK_EVERY - 1:
                reached[going] = node
                on = np.flatnonzero(self.left.take(node) != node)
                going, node, begin = going[on], node[on], begin[on]
        reached[going] = node
        return reached.reshape(len(rows), len(self.root))

    def predict_means(self, rows: Floats) -> Floats:
        """Predict the mean of each row by the forest."""
        return self.average_leaves(self.find_leaves(rows))

    def average_leaves(self, leaves: Ints) -> Floats:
        """Average the means of the forest's leaves that each row fell into."""
        return np.asarray(self.mean.take(leaves).mean(axis=1))

    def predict_points(self, rows: Floats) -> Floats:
        """Predict equally likely values for each row by the forest, ascending."""
        every = self.values[self.find_leaves(rows)].reshape(len(rows), -1)
        return np.sort(every.astype(np.float64), axis=1)

    def share_above(self, leaves: Ints, bar: Floats) -> Floats:
        """Compute the share of the leaves' values above each row's bar, for rows that fell into these leaves."""
        return np.asarray((self.values[leaves] > bar[:, None, None]).mean(axis=(1, 2)))

    @property
    def size_bytes(self) -> int:
        """The memory that the forest takes."""
        return sum(column.nbytes for column in self if isinstance(column, np.ndarray))


# Grows a forest from rows of features and their outcomes; the number is a seed.
Grower = Callable[[Floats, Floats, int], Forest]


def summarize_leaves(leaf: Ints, targets: Floats, nodes: int) -> tuple[Floats32, Floats]:
    """Summarize the values in each leaf of one regression tree as quantiles and mean; 0 for empty nodes.

    >>> values, mean = summarize_leaves(np.array([1, 1, 2]), np.array([0.0, 1.0, 5.0]), 3)
    >>> values[1].tolist(), mean.tolist()
    ([0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0], [0.0, 0.5, 5.0])
    """
    order = np.lexsort((targets, leaf))
    start = np.searchsorted(leaf[order], np.arange(nodes + 1))
    count = np.diff(start)
    place = (np.arange(QUANTILES) + 0.5) / QUANTILES
    at = start[:-1, None] + np.floor(place[None, :] * count[:, None]).astype(np.int64)
    values = np.where(count[:, None] > 0, targets[order][np.minimum(at, max(len(targets) - 1, 0))], 0.0)
    mean = np.bincount(leaf, targets, nodes) / np.maximum(count, 1)
    return values.astype(np.float32), np.asarray(mean, np.float64)
