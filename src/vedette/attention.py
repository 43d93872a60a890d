"""Attention model: the probability that users view a search result, by its rank in the list.

Pandey08 (eq. 4.2) has ``I(r) = c r^-3/2``. The constant cancels in shares, so it is 1 here: the first result is always
viewed. A result that is not in the list has rank infinity, and is never viewed.

Impact08 (section 5) uses a step instead: the first K results are viewed, the others are not.
"""

from collections.abc import Callable
from functools import cache

import numpy as np

from vedette.policy import Floats, Ints

Visibility = Callable[[Floats | Ints], Floats]
EXACT_RANKS = 10_000


def visibility(ranks: Floats | Ints) -> Floats:
    """Return the probability that the result at each rank is viewed (attention model of Pandey08).

    >>> visibility(np.array([1, 2, 4, np.inf])).round(3).tolist()
    [1.0, 0.354, 0.125, 0.0]
    """
    seen: Floats = 1.0 / (ranks * np.sqrt(ranks))
    return seen


def step_visibility(count: int) -> Visibility:
    """Build the step attention model: always viewed among the first ``count`` ranks, never after.

    >>> step_visibility(2)(np.array([1, 2, 3])).tolist()
    [1.0, 1.0, 0.0]
    """

    def step(ranks: Floats | Ints) -> Floats:
        return np.where(ranks <= count, 1.0, 0.0)

    return step


def visibility_sum(first: Floats | Ints, last: Floats | Ints) -> Floats:
    """Sum the visibilities of all ranks from ``first`` to ``last``, inclusive; 0 if last < first.

    Up to rank 10 000 the sum is exact. Beyond, it is ``2 (1/sqrt(i - 1/2) - 1/sqrt(j + 1/2))``, the integral over the
    cells around the ranks; the limits printed in section 4.6.1 (``i`` and ``j - 1``) leave out whole terms.

    >>> visibility_sum(np.array([1, 2, 3]), np.array([2, np.inf, 1])).round(4).tolist()
    [1.3536, 1.6124, 0.0]
    """
    first, last = np.asarray(first, np.float64), np.asarray(last, np.float64)
    last = np.maximum(last, first - 1)
    near = _build_prefix_sums()[np.minimum(last, EXACT_RANKS).astype(np.int64)]
    near = near - _build_prefix_sums()[np.minimum(first - 1, EXACT_RANKS).astype(np.int64)]
    beyond = np.maximum(first, EXACT_RANKS + 1)
    far = 2.0 * (1.0 / np.sqrt(beyond - 0.5) - 1.0 / np.sqrt(np.maximum(last, EXACT_RANKS) + 0.5))
    return np.asarray(near + np.maximum(far, 0.0))


@cache
def _build_prefix_sums() -> Floats:
    """Build the prefix sums of the visibilities of the first ranks."""
    return np.append(0.0, np.cumsum(visibility(np.arange(1, EXACT_RANKS + 1))))
