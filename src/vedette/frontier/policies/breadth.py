"""The breadth-first order policy: fewer links from a start URL come first; among equals, the first one found."""

from dataclasses import dataclass

import numpy as np

from vedette.frontier.unseen import UnseenUrls
from vedette.policy import Floats


@dataclass(frozen=True, slots=True)
class Breadth:
    """Order unseen URLs breadth first: by link distance from the start URLs.

    worth = -(depth + min(found, 2^32 - 1) / 2^32), so that the running number only breaks ties. A double represents
    every such sum exactly while the depth is below 2^20 and the number below 2^32.

    Useful for small sites that are fetched completely, and as the baseline of crawl ordering: pages close to the start
    tend to be important (Lecture: "basic crawler operation"). Not useful if the budget ends long before the site.

    >>> import numpy as np
    >>> from vedette.policy import rng_for
    >>> batch = UnseenUrls(depth=np.array([2, 0, 1]), found=np.array([7, 8, 9]), inlinks=np.ones(3, np.int64))
    >>> policy = Breadth()
    >>> np.argsort(-policy.worth(policy.start(None), batch, now=0.0, rng=rng_for(1, "order"))).tolist()
    [1, 2, 0]
    """

    name: str = "breadth"

    def start(self, config: None) -> tuple[()]:
        """Return the empty state of the breadth-first policy: nothing is learned."""
        return ()

    def observe(self, state: tuple[()], batch: UnseenUrls, now: float) -> tuple[()]:
        """Learn nothing: fetches do not change the breadth-first order."""
        return state

    def worth(self, state: tuple[()], batch: UnseenUrls, now: float, rng: np.random.Generator) -> Floats:
        """Return the breadth-first worth: larger for fewer links from the start, then for the earlier find."""
        worth: Floats = -(batch.depth + np.minimum(batch.found, 2**32 - 1) / 2.0**32)
        return worth

    def reason(self, state: tuple[()], batch: UnseenUrls, row: int, now: float) -> str:
        """Describe the link distance of an unseen URL in words."""
        return f"breadth first: {int(batch.depth[row])} links from a start URL"
