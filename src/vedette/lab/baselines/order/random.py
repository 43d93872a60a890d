"""Random crawl order: what every other order of first fetches has to beat."""

from dataclasses import dataclass

import numpy as np

from vedette.frontier.unseen import UnseenUrls
from vedette.policy import Floats, Stateless


@dataclass(frozen=True, slots=True)
class Random(Stateless):
    """Fetch unseen URLs in random order: worth is drawn evenly between 0 and 1.

    Useful as the yardstick of every order (Impact08, section 6.2). Not useful for anything else.

    >>> import numpy as np
    >>> from vedette.policy import rng_for
    >>> batch = UnseenUrls(depth=np.arange(3), found=np.arange(3), inlinks=np.arange(3))
    >>> len(Random().worth((), batch, now=0.0, rng=rng_for(1, "order")))
    3
    """

    name: str = "random"

    def worth(self, state: tuple[()], batch: UnseenUrls, now: float, rng: np.random.Generator) -> Floats:
        """Draw a random worth for each unseen URL."""
        return rng.random(len(batch))

    def reason(self, state: tuple[()], batch: UnseenUrls, row: int, now: float) -> str:
        """Describe that the order of unseen URLs is random."""
        return "random order"
