"""Uniform promotion ranking: for each list, every page is in the promoted pool with probability r."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from vedette.lab.baselines.bases import RandomizedRanking
from vedette.lab.baselines.ranking.popularity import score_popularity
from vedette.policy import Ints, Picks, Stateless
from vedette.serve.rank.explore.candidates import Candidates
from vedette.serve.rank.explore.randomized_lists import PoolMerge, best_first

# Extra lists for estimating propensities: a closed form would sum over all pools.
REDEALS = 15


class ShuffledOrder(NamedTuple):
    """A popularity order from which each uniform promotion list draws its own pool; r is for the pool and the coin."""

    order: Ints
    first: int
    degree: float

    def draw(self, k: int, rng: np.random.Generator) -> Picks:
        """Draw a uniform promotion list; propensities are shares of 16 lists with the row at its position."""
        dealt = [self._draw_list(k, rng) for _ in range(1 + REDEALS)]
        return Picks(dealt[0], np.mean([rows == dealt[0] for rows in dealt], axis=0))

    def _draw_list(self, k: int, rng: np.random.Generator) -> Ints:
        pooled = rng.random(len(self.order)) < self.degree
        return PoolMerge(self.order[~pooled], self.order[pooled], self.first, self.degree).draw(k, rng).rows

    def draw_at_ranks(self, ranks: Ints, rng: np.random.Generator) -> Ints:
        """Draw the pages at these ranks of uniform promotion lists: a pooled page, or one that pooled ones shift."""
        anybody = rng.integers(0, len(self.order), len(ranks))
        if self.degree >= 1:
            return self.order[anybody]
        flips = np.maximum(ranks - self.first, 0)
        ahead = ranks - 1 - rng.binomial(flips, self.degree)
        place = ahead + rng.negative_binomial(ahead + 1, 1 - self.degree)
        promoted = (ranks >= self.first) & (rng.random(len(ranks)) < self.degree)
        return self.order[np.where(promoted | (place >= len(self.order)), anybody, place)]


@dataclass(frozen=True, slots=True)
class Uniform(Stateless, RandomizedRanking):
    """Uniform promotion: the pool of a list has every page with probability ``degree`` (r), and so does each position.

    Useful to see the effect of chance alone. Not useful otherwise: it promotes what everyone knows.

    Reference: Pandey08, section 5.5.
    """

    first: int = 1
    degree: float = 0.1
    name: str = "uniform"

    def plan(self, state: tuple[()], batch: Candidates, now: float) -> ShuffledOrder:
        """Plan a uniform promotion list from the popularity order."""
        return ShuffledOrder(best_first(score_popularity(batch)), self.first, self.degree)

    def reason(self, state: tuple[()], batch: Candidates, row: int, now: float) -> str:
        """Describe the popularity of a page and its chance of uniform promotion."""
        return f"uniform: liked by {batch.likes[row]:.0f}; any page is promoted with {self.degree:.0%}"
