"""The in-links order policy: most known in-links first; among equals, breadth first."""

from dataclasses import dataclass

import numpy as np

from vedette.frontier.unseen import UnseenUrls
from vedette.policy import Floats

# Less than the smallest step between the logarithms of two counts up to 255, where counting ends.
_TIE = 2.0**-9


@dataclass(frozen=True, slots=True)
class Inlinks:
    """Order unseen URLs by the number of in-links that are known so far.

    worth = log2(max(inlinks, 1)) + 2^-9 / (1 + depth + min(found, 2^32 - 1) / 2^32)

    The second term only breaks ties: it is smaller than the step from 254 to 255 in-links. The count grows while a URL
    waits, and so does the worth, which is computed again for every choice.

    Useful if the budget ends before the site and pages that many others link to are wanted early. Not useful at the
    very beginning, when every URL was found once, nor against pages that link to each other in order to be fetched.

    Reference: "backlink count" in J. Cho, H. Garcia-Molina, L. Page, *Efficient Crawling Through URL Ordering*,
    WWW 1998.

    >>> import numpy as np
    >>> from vedette.policy import rng_for
    >>> batch = UnseenUrls(depth=np.array([1, 5, 0]), found=np.array([7, 8, 9]), inlinks=np.array([2, 40, 2]))
    >>> policy = Inlinks()
    >>> np.argsort(-policy.worth(policy.start(None), batch, now=0.0, rng=rng_for(1, "order"))).tolist()
    [1, 2, 0]
    """

    name: str = "inlinks"

    def start(self, config: None) -> tuple[()]:
        """Return the empty state of the in-links policy: nothing is learned."""
        return ()

    def observe(self, state: tuple[()], batch: UnseenUrls, now: float) -> tuple[()]:
        """Learn nothing: the in-links that fetches bring are counted elsewhere."""
        return state

    def worth(self, state: tuple[()], batch: UnseenUrls, now: float, rng: np.random.Generator) -> Floats:
        """Return the in-links worth: larger for more in-links, then for fewer links from the start, then age."""
        nearness = _TIE / (1.0 + batch.depth + np.minimum(batch.found, 2**32 - 1) / 2.0**32)
        worth: Floats = np.log2(np.maximum(batch.inlinks, 1)) + nearness
        return worth

    def reason(self, state: tuple[()], batch: UnseenUrls, row: int, now: float) -> str:
        """Describe the number of in-links of an unseen URL in words."""
        return f"in-links first: {int(batch.inlinks[row])} known, {int(batch.depth[row])} links from a start URL"
