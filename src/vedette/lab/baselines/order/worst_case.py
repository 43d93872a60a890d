"""Worst-case impact order: the minimum gain of fetching an unseen page (Impact08, section 4.1)."""

from dataclasses import dataclass

import numpy as np

from vedette.frontier.impact.estimator import ImpactModel
from vedette.frontier.impact.url_features import complete_batch
from vedette.frontier.unseen import UnseenUrls
from vedette.lab.baselines.bases import ImpactOrder
from vedette.lab.baselines.order.expected_impact import list_queries
from vedette.policy import Floats, Ints, rng_for


@dataclass(frozen=True, slots=True)
class WorstCase(ImpactOrder):
    """Fetch in the order of the minimum gain of a page: sum_q f(q) V(worst rank of the page for q).

    In the worst case of fetching one page it scores as low as possible and all others as high as possible. The worst
    case of two pages is not the sum of theirs, and choosing the best set is NP-hard (theorem 1): each is considered
    alone.

    Useful to see what caution costs: only pages that cannot fail count. Not useful to order most pages, as nearly all
    are worth 0.

    Reference: Impact08, section 4.1.

    >>> from vedette.policy import rng_for
    >>> batch = UnseenUrls(depth=np.zeros(2, int), found=np.arange(2), inlinks=np.array([1, 9]))
    >>> policy = WorstCase()
    >>> policy.worth(policy.start(None), batch, now=0.0, rng=rng_for(1, "order")).tolist()
    [0.0, 0.0]
    """

    name: str = "worst-case"

    def worth(self, state: ImpactModel, batch: UnseenUrls, now: float, rng: np.random.Generator) -> Floats:
        """Return the least impact of unseen URLs, each fetched alone, summed over queries."""
        worth = np.zeros(len(batch))
        for query in list_queries(state, complete_batch(batch)):
            low, high = query.points.min(axis=1), query.points.max(axis=1)
            ranks = compute_worst_ranks(query.crawled, low, high)
            worth[query.rows] += query.frequency * query.seen(ranks) * (low > 0)
        return worth

    def reason(self, state: ImpactModel, batch: UnseenUrls, row: int, now: float) -> str:
        """Describe the minimum gain of an unseen URL."""
        return f"impact of {self.worth(state, batch, now, rng_for(0, self.name))[row]:.3g} at least"


def compute_worst_ranks(crawled: Floats, low: Floats, high: Floats) -> Ints:
    """Compute the worst rank of each unseen page fetched alone: it scores ``low``, all others ``high``; ties are lost.

    >>> compute_worst_ranks(np.array([5.0]), np.array([3.0, 6.0]), np.array([6.0, 7.0])).tolist()
    [3, 2]
    """
    ahead = len(crawled) - np.searchsorted(np.sort(crawled), low)
    # Its own highest score is among those that reach its lowest: the rank counts from 1.
    return np.asarray(ahead + len(high) - np.searchsorted(np.sort(high), low), np.int64)
