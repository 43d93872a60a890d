"""The least that fetching some pages can bring, where scores are known within bounds only (Impact08, section 4.1).

For a given set it is easily worked out: what is fetched scores as low as it may, all else as high as it may, and
whoever is equal stands before it. (Every other case follows from this one by raising fetched pages and lowering
others, and no rank of a fetched page gets worse by that.) What is hard is to choose the set: the worst case of two
pages is not the sum of their worst cases.
"""

from typing import NamedTuple

import numpy as np

from vedette.attention import Visibility, visibility
from vedette.frontier.impact.url_features import Flags
from vedette.policy import Floats

__all__ = ["Bounds", "worst_case_impact"]


class Bounds(NamedTuple):
    """What is known of a query's results, a row a page: between what its score lies. Equal bounds: it is crawled."""

    low: Floats
    high: Floats


def worst_case_impact(sketch: Bounds, fetched: Flags, frequency: float, seen: Visibility = visibility) -> float:
    """The least that fetching these rows of a query's sketch can bring.

    One page is known to score 5, one is fetched that scores 3 to 6 and may come second:

    >>> from vedette.attention import among_first
    >>> sketch = Bounds(np.array([5.0, 3.0]), np.array([5.0, 6.0]))
    >>> worst_case_impact(sketch, np.array([False, True]), 2.0, among_first(1))
    0.0
    """
    scores = np.where(fetched, sketch.low, sketch.high)
    order = np.lexsort((fetched, -scores))
    ranks = np.flatnonzero(fetched[order]) + 1
    return frequency * float(seen(ranks).sum())
