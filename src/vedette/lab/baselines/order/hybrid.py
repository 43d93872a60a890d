"""Hybrid order: queries and importance, nine parts to one, as published (Impact08, section 5.4)."""

from dataclasses import dataclass

import numpy as np

from vedette.frontier.impact.estimator import ImpactModel
from vedette.frontier.impact.url_features import complete_batch
from vedette.frontier.unseen import UnseenUrls
from vedette.lab.baselines.bases import ImpactOrder
from vedette.policy import Floats

BY_QUERIES, BY_IMPORTANCE = 0.9, 0.1


@dataclass(frozen=True, slots=True)
class Hybrid(ImpactOrder):
    """Fetch in the order of worth = .9 query-based estimate + .1 query-independent estimate, both in units of impact.

    Useful if both are informative. Not useful if the weights do not fit: see ``hybrid-learned``, and ``impact``.

    >>> import numpy as np
    >>> from vedette.policy import rng_for
    >>> batch = UnseenUrls(depth=np.zeros(2, int), found=np.arange(2), inlinks=np.array([1, 9]))
    >>> policy = Hybrid()
    >>> policy.worth(policy.start(None), batch, now=0.0, rng=rng_for(1, "order")).tolist()
    [0.0, 0.0]
    """

    name: str = "hybrid"

    def worth(self, state: ImpactModel, batch: UnseenUrls, now: float, rng: np.random.Generator) -> Floats:
        """Return the worth of unseen URLs: the hybrid order's weighted average of both impact estimates."""
        full = complete_batch(batch)
        return BY_QUERIES * state.estimate_by_queries(full) + BY_IMPORTANCE * state.estimate_by_importance(full)

    def reason(self, state: ImpactModel, batch: UnseenUrls, row: int, now: float) -> str:
        """Describe both impact estimates of an unseen URL in the hybrid order."""
        full = complete_batch(batch)
        by_queries, usual = state.estimate_by_queries(full)[row], state.estimate_by_importance(full)[row]
        return f"by queries {by_queries:.3g}, by importance {usual:.3g}, nine parts to one"
