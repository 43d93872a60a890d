"""Bayesian mean: the share of likes of a page, shrunk towards that of all pages."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from vedette.lab.baselines.bases import RandomizedRanking
from vedette.policy import Floats
from vedette.serve.rank.explore.candidates import Candidates
from vedette.serve.rank.explore.randomized_lists import TiedOrder, rank_with_ties

# How many views the general share counts for, against a page's own.
WEIGHT = 5.0


class GlobalCounts(NamedTuple):
    """The likes and views of all pages; the one of each before anything was seen is a flat belief."""

    likes: float = 1.0
    aware: float = 2.0


def count_all(batch: Candidates) -> GlobalCounts:
    """What is known of pages in general.

    >>> from vedette.serve.rank.explore.candidates import UserPopulation, unseen_candidates
    >>> count_all(unseen_candidates(3, UserPopulation(10.0, 10.0, 100.0)))
    GlobalCounts(likes=1.0, aware=2.0)
    """
    return GlobalCounts(1.0 + float(batch.likes.sum()), 2.0 + float(batch.aware.sum()))


def beta_counts(state: GlobalCounts, batch: Candidates) -> tuple[Floats, Floats]:
    """The two counts of the Beta law that is believed of each page: likes, and views without one."""
    share = state.likes / state.aware
    return batch.likes + WEIGHT * share, np.maximum(batch.aware - batch.likes, 0.0) + WEIGHT * (1 - share)


@dataclass(frozen=True, slots=True)
class BayesianMean(RandomizedRanking):
    """Order by ``(likes + 5 s) / (aware + 5)`` with s the share of likes among all views of all pages.

    Useful where every page is seen by somebody anyway. Not useful on its own where new pages are many: it learns what
    it happens to see, and looks for nothing.
    """

    name: str = "bayesian-mean"

    def start(self, config: None) -> GlobalCounts:
        """A flat belief."""
        return GlobalCounts()

    def observe(self, state: GlobalCounts, batch: Candidates, now: float) -> GlobalCounts:
        """What pages are like, by all that were handed in."""
        return count_all(batch) if len(batch) else state

    def plan(self, state: GlobalCounts, batch: Candidates, now: float) -> TiedOrder:
        """The order, with lots among equals."""
        liked, not_liked = beta_counts(state, batch)
        return rank_with_ties(batch.relevance * liked / (liked + not_liked))

    def reason(self, state: GlobalCounts, batch: Candidates, row: int, now: float) -> str:
        """The mean, in words."""
        liked, not_liked = (float(part[row]) for part in beta_counts(state, batch))
        return f"bayesian-mean: {liked / (liked + not_liked):.1%} expected, by {batch.aware[row]:.0f} who saw it"
