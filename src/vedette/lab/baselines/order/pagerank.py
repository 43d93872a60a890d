"""PageRank order: most important by links first, over crawled pages and the frontier."""

from dataclasses import dataclass

import numpy as np

from vedette.frontier.impact.url_features import complete_batch
from vedette.frontier.unseen import UnseenUrls
from vedette.policy import Floats, Stateless


@dataclass(frozen=True, slots=True)
class Pagerank(Stateless):
    """Fetch in the order of importance by links; worth = the batch's ``importance`` of each URL.

    The caller computes it (``index.pagerank``). If it is missing, the number of in-links is used.

    Useful if important pages are wanted early whatever people search for. Not useful within one site, where links
    reflect the menu. Reference: S. Abiteboul, M. Preda, G. Cobena, *Adaptive On-Line Page Importance Computation*, WWW
    2003.

    >>> import numpy as np
    >>> from vedette.policy import rng_for
    >>> batch = UnseenUrls(depth=np.zeros(2, int), found=np.arange(2), inlinks=np.array([1, 9]))
    >>> Pagerank().worth((), batch, now=0.0, rng=rng_for(1, "order")).round(2).tolist()
    [0.69, 2.3]
    """

    name: str = "pagerank"

    def worth(self, state: tuple[()], batch: UnseenUrls, now: float, rng: np.random.Generator) -> Floats:
        """Return the link importance (PageRank) of each unseen URL as its worth."""
        return complete_batch(batch).importance.astype(np.float64)

    def reason(self, state: tuple[()], batch: UnseenUrls, row: int, now: float) -> str:
        """Describe the link importance (PageRank) of an unseen URL."""
        return f"important pages first: importance {complete_batch(batch).importance[row]:.3g}"
