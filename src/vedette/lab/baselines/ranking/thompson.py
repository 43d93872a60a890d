"""Thompson sampling for rankings: rank each page by a draw from its posterior."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from vedette.lab.baselines.bases import RandomizedRanking
from vedette.lab.baselines.ranking.bayesian_mean import GlobalCounts, beta_counts, count_all
from vedette.policy import Floats, Ints, Picks, Stateless
from vedette.serve.rank.explore.candidates import Candidates
from vedette.serve.rank.explore.randomized_lists import best_first

# Extra draws for estimating propensities: there is no closed form.
REDRAWS = 15
# Lists shared by many visitors if only positions are needed: a list of ten thousand takes a millisecond to draw.
SHARED_LISTS = 2


class ThompsonDraws(NamedTuple):
    """Beta posteriors of ranked pages, their relevance, and the factor on the spread of Thompson draws."""

    liked: Floats
    not_liked: Floats
    relevance: Floats
    spread: float

    def draw(self, k: int, rng: np.random.Generator) -> Picks:
        """Draw a Thompson list; propensities are shares of 16 lists, including this one, with the row there."""
        dealt = [self._draw_list(rng)[:k] for _ in range(1 + REDRAWS)]
        return Picks(dealt[0], np.mean([rows == dealt[0] for rows in dealt], axis=0))

    def draw_at_ranks(self, ranks: Ints, rng: np.random.Generator) -> Ints:
        """Draw the pages at these ranks of Thompson lists; visitors share a few lists."""
        lists = np.array([self._draw_list(rng) for _ in range(SHARED_LISTS)])
        return np.asarray(lists[rng.integers(0, SHARED_LISTS, len(ranks)), ranks - 1])

    def _draw_list(self, rng: np.random.Generator) -> Ints:
        mean = self.liked / (self.liked + self.not_liked)
        draws = rng.beta(self.liked, self.not_liked)
        return best_first(self.relevance * (mean + self.spread * (draws - mean)))


@dataclass(frozen=True, slots=True)
class Thompson(Stateless, RandomizedRanking):
    """Thompson sampling with a flat prior: ``draw ~ Beta(1 + likes, 1 + aware - likes)``, highest first.

    Useful as the textbook's rival. Not useful if most pages are poor: a flat prior expects each new one to please half
    of its viewers, and shows it to dozens before it learns otherwise.

    Reference: Thompson, Biometrika 25, 1933.
    """

    name: str = "thompson"

    def plan(self, state: tuple[()], batch: Candidates, now: float) -> ThompsonDraws:
        """Plan a ranking by Thompson sampling: the Beta posteriors to draw from."""
        return ThompsonDraws(1 + batch.likes, 1 + np.maximum(batch.aware - batch.likes, 0.0), batch.relevance, 1.0)

    def reason(self, state: tuple[()], batch: Candidates, row: int, now: float) -> str:
        """Describe the Beta posterior of a page's likes in Thompson sampling."""
        return f"thompson: drawn from what {batch.likes[row]:.0f} likes of {batch.aware[row]:.0f} views leave open"


@dataclass(frozen=True, slots=True)
class DampedThompson(RandomizedRanking):
    """Damped Thompson sampling: a prior from all pages (``bayesian_mean``), with draws half as far from the mean.

    Useful if views are few: it explores what is nearly as good as the best. Not useful if the best are one in
    thousands: a mean that fits the many rules them out.

    Reference: our own; the variance is a quarter of Thompson's.
    """

    name: str = "damped-thompson"

    def start(self, config: None) -> GlobalCounts:
        """Return the flat prior of damped Thompson sampling."""
        return GlobalCounts()

    def observe(self, state: GlobalCounts, batch: Candidates, now: float) -> GlobalCounts:
        """Update damped Thompson sampling's prior with the likes and views of all pages in the batch."""
        return count_all(batch) if len(batch) else state

    def plan(self, state: GlobalCounts, batch: Candidates, now: float) -> ThompsonDraws:
        """Plan a ranking by damped Thompson sampling: the Beta posteriors to draw from."""
        return ThompsonDraws(*beta_counts(state, batch), batch.relevance, 0.5)

    def reason(self, state: GlobalCounts, batch: Candidates, row: int, now: float) -> str:
        """Describe the damped posterior of a page's likes."""
        liked, not_liked = (float(part[row]) for part in beta_counts(state, batch))
        return f"damped-thompson: {liked / (liked + not_liked):.1%} expected, give or take what views leave open"
