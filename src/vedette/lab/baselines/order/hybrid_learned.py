"""Hybrid order with learned weights: queries and importance, fitted to the gains of first fetches."""

from dataclasses import dataclass

import numpy as np

from vedette.frontier.impact.estimator import ImpactModel
from vedette.frontier.impact.url_features import complete_batch
from vedette.frontier.unseen import UnseenUrls
from vedette.lab.baselines.bases import ImpactOrder
from vedette.policy import Floats


@dataclass(frozen=True, slots=True)
class HybridLearned(ImpactOrder):
    """Fetch in the order of worth = a query-based estimate + b query-independent estimate, a and b not below 0.

    The published weights fit the paper's web. Here they are fitted to the gains of crawled pages, by least squares,
    where the query-based estimate of each comes from a model that has not seen it.

    Useful instead of ``hybrid`` wherever fetches are measured. Not useful with a handful of pages.

    >>> import numpy as np
    >>> from vedette.policy import rng_for
    >>> batch = UnseenUrls(depth=np.zeros(2, int), found=np.arange(2), inlinks=np.array([1, 9]))
    >>> policy = HybridLearned()
    >>> policy.worth(policy.start(None), batch, now=0.0, rng=rng_for(1, "order")).tolist()
    [0.0, 0.0]
    """

    name: str = "hybrid-learned"

    def worth(self, state: ImpactModel, batch: UnseenUrls, now: float, rng: np.random.Generator) -> Floats:
        """Return the worth of unseen URLs: both impact estimates by the hybrid order's learned weights."""
        return state.estimate_hybrid(complete_batch(batch))

    def reason(self, state: ImpactModel, batch: UnseenUrls, row: int, now: float) -> str:
        """Describe both impact estimates of an unseen URL, and their learned hybrid weights."""
        by_queries, by_importance = state.weights
        worth = state.estimate_hybrid(complete_batch(batch))[row]
        return f"{worth:.3g}, with weights {by_queries:.2g} for queries and {by_importance:.2g} for importance"
