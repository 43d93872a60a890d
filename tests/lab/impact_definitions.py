"""The value of fetching pages for searchers, after Impact08, section 3.

The impact of a page is how often people would see it: ``I(p) = sum_q f(q) V(R(p, q))``, with its rank among *all*
pages, crawled or not. The impact of a set of pages is the sum of theirs.

Before a page is fetched its score is unknown, but it may be bounded: the *worst case* of fetching a set is
``compute_worst_case``.
"""

from typing import NamedTuple

import numpy as np

from vedette.attention import Visibility, step_visibility, visibility
from vedette.frontier.impact.url_features import Flags
from vedette.lab.quality.workload import TieBreak, Workload, compute_slot_scores, rank_results
from vedette.policy import Floats, Ints

# For a given set it is easy to compute: fetched pages score as low as possible, all others as high as possible, and
# ties are lost. (Every other case follows from this one by raising fetched pages and lowering others, and no rank of a
# fetched page gets worse by that.) What is hard is choosing the set: the worst case of two pages is not the sum of
# their worst cases.


class ScoreBounds(NamedTuple):
    """The known results of a query, one row per page: the bounds of its score. Equal bounds: it is crawled."""

    low: Floats
    high: Floats


def compute_worst_case(sketch: ScoreBounds, fetched: Flags, frequency: float, seen: Visibility = visibility) -> float:
    """The least that fetching these rows of a query's sketch can bring.

    One page is known to score 5, one is fetched that scores 3 to 6 and may come second:

    >>> from vedette.attention import step_visibility
    >>> sketch = ScoreBounds(np.array([5.0, 3.0]), np.array([5.0, 6.0]))
    >>> compute_worst_case(sketch, np.array([False, True]), 2.0, step_visibility(1))
    0.0
    """
    scores = np.where(fetched, sketch.low, sketch.high)
    order = np.lexsort((fetched, -scores))
    ranks = np.flatnonzero(fetched[order]) + 1
    return frequency * float(seen(ranks).sum())


TOP_RESULTS = 10  # the paper's K


def compute_page_impacts(
    versions: Ints, workload: Workload, seen: Visibility | None = None, ties: TieBreak = TieBreak.OLDER_FIRST
) -> Floats:
    """The impact of each page when pages have these versions; the first ten are viewed, or as ``seen`` says."""
    seen = step_visibility(TOP_RESULTS) if seen is None else seen
    lists = rank_results(workload, compute_slot_scores(workload, versions), np.arange(workload.queries), ties)
    weights = workload.frequency[lists.row] * seen(lists.rank)
    impacts: Floats = np.bincount(workload.slot_page[lists.slot], weights, len(versions)).astype(np.float64)
    return impacts


def sum_impact(fetched: Ints, impacts: Floats) -> float:
    """Sum the impact of the fetched pages, each counted once."""
    return float(impacts[np.unique(fetched)].sum())
