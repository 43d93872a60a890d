"""Random polls of discovery sources: any sources, each as likely as the others."""

from dataclasses import dataclass

import numpy as np

from vedette.discover.polling.sources import Sources
from vedette.policy import Picks, Stateless


@dataclass(frozen=True, slots=True)
class Random(Stateless):
    """Poll k discovery sources drawn without replacement, uniformly.

        propensity = k / n    the probability that a source is among the k

    Useful as the baseline that any policy has to beat, and for unbiased data about what other policies would have
    found: no source is ever left out. Not useful for finding much: it polls dead sources as often as busy ones.

    Reference: simple random sampling without replacement.

    >>> from vedette.policy import rng_for
    >>> from vedette.discover.polling.sources import PollHistory
    >>> policy, options = Random(), PollHistory(np.zeros(4, np.int64)).list_options()
    >>> picks = policy.choose((), options, k=2, now=0.0, rng=rng_for(1, "discover"))
    >>> picks.rows.tolist(), picks.propensities.tolist()
    ([3, 0], [0.5, 0.5])
    """

    name: str = "random"

    def choose(self, state: tuple[()], options: Sources, k: int, now: float, rng: np.random.Generator) -> Picks:
        """Choose up to k discovery sources to poll at random."""
        count = min(k, len(options))
        rows = rng.permutation(len(options))[:count].astype(np.int64)
        return Picks(rows, np.full(count, count / max(len(options), 1)))

    def reason(self, state: tuple[()], batch: Sources, row: int, now: float) -> str:
        """Describe that a discovery source was chosen by a random draw alone."""
        return f"random: each of {len(batch)} sources is as likely as the others"
