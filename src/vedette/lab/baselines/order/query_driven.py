"""Query-driven order: what needy queries would show first, by URLs and anchor texts alone (Impact08, section 5)."""

from dataclasses import dataclass

import numpy as np

from vedette.frontier.impact.estimator import ImpactModel
from vedette.frontier.impact.url_features import complete_batch
from vedette.frontier.unseen import UnseenUrls
from vedette.lab.baselines.bases import ImpactOrder
from vedette.policy import Floats


@dataclass(frozen=True, slots=True)
class QueryDriven(ImpactOrder):
    """Fetch in the order of the impact that the sketches of queries predict.

    worth = sum of f(q) over the queries where the page is among the first K by its expected score, among all crawled
    and matching pages. A page matches if all n-grams of a query (n <= 3) are in its URL or in links to it (rho = 1).

    Useful for the first fetches, as it finds pages that people search for and few link to. Not useful later: for most
    pages neither URL nor links show which queries they will answer, and all of these are worth 0.

    >>> import numpy as np
    >>> from vedette.policy import rng_for
    >>> batch = UnseenUrls(depth=np.zeros(2, int), found=np.arange(2), inlinks=np.array([1, 9]))
    >>> policy = QueryDriven()
    >>> policy.worth(policy.start(None), batch, now=0.0, rng=rng_for(1, "order")).tolist()
    [0.0, 0.0]
    """

    name: str = "query-driven"

    def worth(self, state: ImpactModel, batch: UnseenUrls, now: float, rng: np.random.Generator) -> Floats:
        """Return the worth of unseen URLs: the impact that query sketches predict."""
        return state.estimate_by_queries(complete_batch(batch))

    def reason(self, state: ImpactModel, batch: UnseenUrls, row: int, now: float) -> str:
        """Describe the query-driven impact expected of an unseen URL."""
        return f"by queries: expected impact {state.estimate_by_queries(complete_batch(batch))[row]:.3g}"
