"""Selective promotion ranking: pages that no one has seen get some positions, the rest goes by popularity."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from vedette.lab.baselines.bases import RandomizedRanking
from vedette.lab.baselines.ranking.popularity import score_popularity
from vedette.policy import Floats, Stateless
from vedette.serve.rank.explore.candidates import Candidates
from vedette.serve.rank.explore.randomized_lists import PoolMerge, best_first


def build_merge(popular: Floats, pooled: npt.NDArray[np.bool_], first: int, degree: float) -> PoolMerge:
    """Build the merge of the promoted pool with all other pages, most popular first."""
    order = best_first(popular)
    return PoolMerge(order[~pooled[order]], np.flatnonzero(pooled).astype(np.int64), first, degree)


@dataclass(frozen=True, slots=True)
class Selective(Stateless, RandomizedRanking):
    """Selective promotion, exactly as Pandey08 has it: the pool is the pages with an awareness of zero.

    Each list keeps its first ``first - 1`` positions (k) and gives every further one to the pool with ``degree`` (r).
    The defaults are the recommended recipe, r = .1 and k = 1.

    Useful as the rival that a learning policy has to beat. Not useful if one view says little: a good page that its
    first viewer did not like is never promoted again.

    Reference: Pandey08, section 5.5; recommendation in 5.7.4.
    """

    first: int = 1
    degree: float = 0.1
    older_first: bool = False
    name: str = "selective"
    most_aware: float = 0.0

    def plan(self, state: tuple[()], batch: Candidates, now: float) -> PoolMerge:
        """Plan a selective promotion list: the popularity order, the promoted pool of unseen pages, and the coin."""
        popular = score_popularity(batch, older_first=self.older_first)
        return build_merge(popular, batch.aware <= self.most_aware, self.first, self.degree)

    def reason(self, state: tuple[()], batch: Candidates, row: int, now: float) -> str:
        """Describe whether selective promotion promotes a page as unseen."""
        if batch.aware[row] <= 0:
            return "selective: no one has seen it, so it gets a chance"
        return f"selective: liked by {batch.likes[row]:.0f} of {batch.aware[row]:.0f} who saw it"


@dataclass(frozen=True, slots=True)
class RelaxedSelective(Selective):
    """Selective promotion with a larger pool of pages that few people have seen, which Pandey08 left for later.

    Reference: Pandey08, section 5.7.2.
    """

    name: str = "relaxed-selective"
    most_aware: float = 3.0

    def reason(self, state: tuple[()], batch: Candidates, row: int, now: float) -> str:
        """Describe whether relaxed selective promotion promotes a page as little seen."""
        if batch.aware[row] <= self.most_aware:
            return f"relaxed-selective: only {batch.aware[row]:.0f} people have seen it, so it gets a chance"
        return f"relaxed-selective: liked by {batch.likes[row]:.0f} of {batch.aware[row]:.0f} who saw it"
