"""Query-independent order: by the impact that pages of the same importance had (Impact08, section 5.4)."""

from dataclasses import dataclass

import numpy as np

from vedette.frontier.impact.estimator import ImpactModel, ImpactSettings, create_model
from vedette.frontier.impact.url_features import complete_batch
from vedette.frontier.unseen import UnseenUrls
from vedette.lab.baselines.bases import ImpactOrder
from vedette.policy import Floats


@dataclass(frozen=True, slots=True)
class QueryIndependent(ImpactOrder):
    """Fetch in the order of the impact that pages of this importance had: worth = a + b x + c x^2, fitted to fetches.

    Useful if queries are unknown, and as one half of ``hybrid``. Not useful for pages that many search for and few link
    to. Before anything was fetched all are worth the same.

    >>> import numpy as np
    >>> from vedette.policy import rng_for
    >>> batch = UnseenUrls(depth=np.zeros(2, int), found=np.arange(2), inlinks=np.array([1, 9]))
    >>> policy = QueryIndependent()
    >>> policy.worth(policy.start(None), batch, now=0.0, rng=rng_for(1, "order")).tolist()
    [0.0, 0.0]
    """

    name: str = "query-independent"

    def start(self, config: ImpactSettings | None) -> ImpactModel:
        """Return a query-independent impact model that has seen no fetch."""
        return create_model(None)

    def worth(self, state: ImpactModel, batch: UnseenUrls, now: float, rng: np.random.Generator) -> Floats:
        """Return the worth of unseen URLs: the usual impact of pages of their importance, whatever the queries."""
        return state.estimate_by_importance(complete_batch(batch))

    def reason(self, state: ImpactModel, batch: UnseenUrls, row: int, now: float) -> str:
        """Describe the importance of an unseen URL and the query-independent impact that follows."""
        full = complete_batch(batch)
        usual = state.estimate_by_importance(full)[row]
        return f"by importance alone: {full.importance[row]:.3g} usually brings {usual:.3g}"
