"""Gamma distributed change rates: pages differ by a Gamma prior, fitted to groups of pages (empirical Bayes).

A page's rate is drawn from Gamma(shape, shape / mean) of its group; c changes in T days make it Gamma(shape + c, shape
/ mean + T), and the probability of a change in t days is one minus the mean of e^(-rate t):

    1 - (T' / (T' + t))^(shape + c)      T' = shape / mean + T

For a group four sums are stored, over pages i: of c_i, T_i, c_i (c_i - 1), and T_i^2. The mean is that of the sums,
shrunk to the parent group. As E[c (c - 1)] = T^2 mean^2 (1 + 1 / shape), the other two give the shape: how similar the
pages of the group are.

If pages change faster than they are fetched, little of their time counts (see ``expected_time``), so slow pages weigh
more: the mean is too low, and pages seem more alike than they are. On memoryless pages a fit in which each counts once
(EM on beliefs) is correct, and scores better. On three recorded sites it scored worse, in earlier years as in later
ones; perhaps because pages change together and do not keep their rates, so that their own fetches say less than
independent ones would. If you fix the one, measure the other.
"""

from typing import NamedTuple

import numpy as np

from vedette.policy import Floats
from vedette.refresh.known_pages import Bools, KnownPages
from vedette.refresh.models.base import Belief, Rates
from vedette.refresh.models.rows import group_levels, group_rows

# Changes and time per page; the four sums per group.
PAGE_WIDTH, GROUP_WIDTH = 2, 4
# How many changes of its own outweigh the parent group, and how many pairs of changes for the shape.
_CHANGES, _PAIRS = 3.0, 10.0
_SHAPES = (0.1, 10.0)
_FIRST_SHAPE = 0.5
_Z_90 = 1.6449


class Gamma(NamedTuple):
    """Gamma distribution of each page's change rate, with mean ``shape / time``."""

    shape: Floats
    time: Floats

    @property
    def mean(self) -> Floats:
        """The expected change rate of the Gamma distribution."""
        mean: Floats = self.shape / self.time
        return mean

    def update(self, changes: Floats, time: Floats) -> "Gamma":
        """Return the posterior Gamma distribution after ``changes`` changes in a time."""
        return Gamma(self.shape + changes, self.time + time)

    def chance(self, wait: Floats) -> Floats:
        """Return the probability of a change within a wait, averaged over the Gamma distribution of rates.

        >>> Gamma(np.ones(1), np.ones(1)).chance(np.array([1.0])).tolist()
        [0.5]
        """
        chance: Floats = -np.expm1(-self.shape * np.log1p(wait / self.time))
        return chance

    def belief(self, wait: Floats, speed: Floats | float = 1.0) -> Belief:
        """Return the belief after a wait, with this many units of time per day.

        >>> [part.tolist() for part in Gamma(np.full(1, 2.0), np.ones(1)).belief(np.array([1.0]), 0.5)]
        [[1.3862943611198906], [0.5]]
        """
        return Belief(self.shape * np.log1p(wait / self.time), self.shape / (self.time + wait) * speed)

    def rates(self) -> Rates:
        """Return the mean and 90% interval of Gamma rates, by normal cube roots (Wilson, Hilferty)."""
        return Rates(self.mean, self.quantile(-_Z_90), self.quantile(_Z_90))

    def quantile(self, z: float) -> Floats:
        """Return the Gamma rate at z standard deviations of the normal that approximates its cube root."""
        root = 1 - 1 / (9 * self.shape) + z / (3 * np.sqrt(self.shape))
        quantile: Floats = self.mean * np.maximum(root, 0.0) ** 3
        return quantile


def expected_time(rate: Floats, gap: Floats, changed: Bools) -> Floats:
    """Return how long a page was exposed to its first change: the whole gap, or the expected part of it.

    The time of the change within the gap is unobserved; on average it is ``1 / rate - gap / (e^(rate gap) - 1)``.
    Counting the whole gap would limit every rate to one change per fetch.

    >>> rates, gaps = np.array([1e-9, 10.0, 1.0]), np.array([2.0, 100.0, 2.0])
    >>> expected_time(rates, gaps, np.array([True, True, False])).round(3).tolist()
    [1.0, 0.1, 2.0]
    """
    turns = np.maximum(rate * gap, 1e-6)
    # As a share of the gap; for few turns the difference of two large numbers is computed from its series.
    share = np.where(turns < 1e-2, 0.5 - turns / 12, 1 / turns - 1 / np.expm1(np.minimum(turns, 500.0)))
    exposed: Floats = gap * np.where(changed, share, 1.0)
    return exposed


def add_observations(rows: Floats, time: Floats, changed: Bools, seen: Bools) -> Floats:
    """Add a fetch with or without a change to each page's Gamma row; unobserved pages stay the same."""
    after: Floats = rows + np.column_stack([seen & changed, np.where(seen, time, 0.0)])
    return after


def subtract_sums(before: Floats, after: Floats) -> Floats:
    """Compute the increase of a group's four sums as pages' rows change."""
    return _compute_sums(after) - _compute_sums(before)


def _compute_sums(rows: Floats) -> Floats:
    changes, time = rows[:, 0], rows[:, 1]
    return np.stack([changes, time, changes * (changes - 1), time**2], axis=1)


def pooled_prior(sums: Floats, batch: KnownPages, first_mean: float) -> Gamma:
    """Return the Gamma prior of each page's rate from its groups; ``first_mean`` if they have no data."""
    mean = np.full(len(batch), first_mean)
    pairs = np.full(len(batch), 1 + 1 / _FIRST_SHAPE)
    for numbers, apart in group_levels(batch):
        changes, time, own_pairs, squares = group_rows(sums, numbers).T
        mean = np.where(apart, (changes + _CHANGES) / (time + _CHANGES / mean), mean)
        shown = (np.maximum(own_pairs, 0.0) + _PAIRS * pairs) / (mean**2 * squares + _PAIRS)
        pairs = np.where(apart, shown, pairs)
    low, high = _SHAPES
    shape = np.clip(1 / np.maximum(pairs - 1, 1 / high), low, high)
    return Gamma(shape, shape / mean)
