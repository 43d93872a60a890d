"""Bayesian mean ranking: the share of likes of a page, shrunk toward that of all pages."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from vedette.lab.baselines.bases import RandomizedRanking
from vedette.policy import Floats
from vedette.serve.rank.explore.candidates import Candidates
from vedette.serve.rank.explore.randomized_lists import TiedOrder, rank_with_ties

# Weight of the general share, in views.
WEIGHT = 5.0


class GlobalCounts(NamedTuple):
    """Likes and views of all pages, including one of each as a flat prior, for the Bayesian mean."""

    likes: float = 1.0
    aware: float = 2.0


def count_all(batch: Candidates) -> GlobalCounts:
    """Count the likes and views of all pages, for the prior of the Bayesian mean.

    >>> from vedette.serve.rank.explore.candidates import UserPopulation, unseen_candidates
    >>> count_all(unseen_candidates(3, UserPopulation(10.0, 10.0, 100.0)))
    GlobalCounts(likes=1.0, aware=2.0)
    """
    return GlobalCounts(1.0 + float(batch.likes.sum()), 2.0 + float(batch.aware.sum()))


def beta_counts(state: GlobalCounts, batch: Candidates) -> tuple[Floats, Floats]:
    """Return the two counts of each page's Beta posterior in ranking: likes, and views without one."""
    share = state.likes / state.aware
    return batch.likes + WEIGHT * share, np.maximum(batch.aware - batch.likes, 0.0) + WEIGHT * (1 - share)


@dataclass(frozen=True, slots=True)
class BayesianMean(RandomizedRanking):
    """Rank by ``(likes + 5 s) / (aware + 5)`` with s the share of likes among all views of all pages.

    Useful if every page is seen by someone anyway. Not useful on its own with many new pages: it learns from what it
    happens to see, and does not explore.
    """

    name: str = "bayesian-mean"

    def start(self, config: None) -> GlobalCounts:
        """Return the flat prior of the Bayesian mean ranking."""
        return GlobalCounts()

    def observe(self, state: GlobalCounts, batch: Candidates, now: float) -> GlobalCounts:
        """Update the Bayesian mean ranking's prior with the likes and views of all pages in the batch."""
        return count_all(batch) if len(batch) else state

    def plan(self, state: GlobalCounts, batch: Candidates, now: float) -> TiedOrder:
        """Plan the ranking by Bayesian means, with ties in random order."""
        liked, not_liked = beta_counts(state, batch)
        return rank_with_ties(batch.relevance * liked / (liked + not_liked))

    def reason(self, state: GlobalCounts, batch: Candidates, row: int, now: float) -> str:
        """Describe the Bayesian mean of likes of a page."""
        liked, not_liked = (float(part[row]) for part in beta_counts(state, batch))
        return f"bayesian-mean: {liked / (liked + not_liked):.1%} expected, by {batch.aware[row]:.0f} who saw it"
