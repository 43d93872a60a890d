"""Group means of gains: of pages that share a folder, a branch, or a word in their URL or anchors.

    mean(key) = (sum of gains + k prior) / (number of pages + k)

is shrunk towards the mean of all pages, since few pages say little. A training page must not be part of the mean that
is learned from. Leaving it out is not enough either, since the mean without it would then reveal its own gain. So
training pages are divided into folds, and get the means of the other folds (``compute_out_of_fold``).
"""

from dataclasses import dataclass

import numpy as np

from vedette.policy import Floats, Ints

PRIOR_PAGES = 4.0
FOLDS = 5


@dataclass(frozen=True, slots=True)
class PooledMeans:
    """Group means of gains, shrunk to the mean of all: sums and counts by key, ascending; ``prior`` is that mean.

    >>> means = pool_means(np.array([5, 5, 9]), np.array([1.0, 3.0, 8.0]))
    >>> means.lookup(np.array([5, 7])).round(2).tolist()
    [3.33, 4.0]
    """

    key: Ints
    total: Floats
    times: Floats
    prior: float = 0.0

    def lookup(self, keys: Ints) -> Floats:
        """Look up the shrunk group mean of each key."""
        if not len(self.key):
            return np.full(len(keys), self.prior)
        at = np.minimum(np.searchsorted(self.key, keys), len(self.key) - 1)
        is_known = self.key[at] == keys
        total, times = np.where(is_known, self.total[at], 0.0), np.where(is_known, self.times[at], 0.0)
        return np.asarray((total + PRIOR_PAGES * self.prior) / (times + PRIOR_PAGES))

    @property
    def size_bytes(self) -> int:
        """The memory that the group means take."""
        return self.key.nbytes + self.total.nbytes + self.times.nbytes


def pool_means(keys: Ints, gains: Floats) -> PooledMeans:
    """Pool the gains of pages into group means, a row per page and key."""
    key, at = np.unique(keys, return_inverse=True)
    prior = float(gains.mean()) if len(gains) else 0.0
    total = np.bincount(at, gains, len(key)).astype(np.float64)
    return PooledMeans(key, total, np.bincount(at, minlength=len(key)).astype(np.float64), prior)


def compute_out_of_fold(keys: Ints, gains: Floats, fold: Ints) -> Floats:
    """Compute for each page the group mean of its key over the other folds.

    >>> compute_out_of_fold(np.array([5, 5]), np.array([1.0, 3.0]), np.array([0, 1])).tolist()
    [3.0, 1.0]
    """
    means = np.zeros(len(keys))
    for each in range(FOLDS):
        inside = fold == each
        means[inside] = pool_means(keys[~inside], gains[~inside]).lookup(keys[inside])
    return means
