"""Pham with rewards between 0 and 1, as UCB1 assumes."""

from dataclasses import dataclass

from vedette.discover.policies.pham import Pham


@dataclass(frozen=True, slots=True)
class PhamScaled(Pham):
    """``pham`` with scaled rewards: the combined yield of a step divided by the largest so far.

    UCB1's bonus of sqrt(2 log(steps) / plays) assumes rewards up to 1. With them all shares are tried again and again,
    so about a fifth of the polls go to stale sources.

    Useful to see how much the published form depends on its scale. Not useful beyond that.

    Reference: Auer02 for the scale; otherwise as ``pham``.

    >>> import numpy as np
    >>> from vedette.policy import rng_for
    >>> from vedette.discover.polling.sources import PollHistory
    >>> policy, options = PhamScaled(), PollHistory(np.zeros(3, np.int64)).list_options()
    >>> policy.choose(policy.start(None), options, k=2, now=0.0, rng=rng_for(1, "discover")).rows.tolist()
    [0, 1]
    """

    name: str = "pham-scaled"
    scaled: bool = True
