"""What fetching pages is worth to those who search, after Impact08, section 3.

The impact of a page is how often people would see it: ``I(p) = sum_q f(q) V(R(p, q))``, with its rank among *all*
pages, crawled or not. The impact of a set of pages is the sum of theirs.

Before a page is fetched its score is not known, but perhaps between what it lies: the *worst case* of fetching a set is
in ``vedette.lab.metrics.worst_case``, and what is expected in ``expected`` beside it.
"""

import numpy as np

from vedette.attention import Visibility, among_first
from vedette.lab.metrics.worst_case import Bounds as Sketch
from vedette.lab.metrics.worst_case import worst_case_impact
from vedette.lab.quality.workload_part import Ties, Workload, result_lists, slot_scores
from vedette.policy import Floats, Ints

__all__ = ["Sketch", "impact_of", "page_impacts", "worst_case_impact"]

VIEWED = 10  # the paper's K


def page_impacts(
    versions: Ints, workload: Workload, seen: Visibility | None = None, ties: Ties = Ties.OLDER_FIRST
) -> Floats:
    """The impact of each page when pages have these versions; viewed are the first ten, or whoever ``seen`` says."""
    seen = among_first(VIEWED) if seen is None else seen
    lists = result_lists(workload, slot_scores(workload, versions), np.arange(workload.queries), ties)
    weights = workload.frequency[lists.row] * seen(lists.rank)
    impacts: Floats = np.bincount(workload.slot_page[lists.slot], weights, len(versions)).astype(np.float64)
    return impacts


def impact_of(fetched: Ints, impacts: Floats) -> float:
    """The impact of the pages that were fetched, each counted once however often it was."""
    return float(impacts[np.unique(fetched)].sum())
