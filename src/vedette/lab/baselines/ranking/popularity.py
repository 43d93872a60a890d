"""Popularity ranking: most liked pages first, which excludes new pages."""

from dataclasses import dataclass

import numpy as np

from vedette.lab.baselines.bases import RandomizedRanking
from vedette.policy import Floats, Stateless
from vedette.serve.rank.explore.candidates import Candidates
from vedette.serve.rank.explore.randomized_lists import TiedOrder, rank_with_ties


def score_popularity(batch: Candidates, *, older_first: bool = False) -> Floats:
    """Score pages by popularity: relevance times the share of users who like them (Pandey08, eq. 5.1, as measurable).

    If older pages come first among equals, as in the joke study (5.10), it is a rank number in that order.
    """
    liked = batch.relevance * batch.likes / max(batch.crowd.people, 1.0)
    if not older_first:
        return liked
    order = np.lexsort((-batch.age_days, -liked))
    place = np.zeros(len(order))
    place[order] = np.arange(len(order), 0, -1)
    return place


@dataclass(frozen=True, slots=True)
class Popularity(Stateless, RandomizedRanking):
    """Nonrandomized ranking by popularity, with ties in random order or the older first.

    Useful as the yardstick of Pandey08, and if pages live long and are seen by many. Not useful if good pages appear
    every day: no one sees them, so no one likes them, so no one sees them.

    Reference: Pandey08, section 5.4.1.

    >>> from vedette.serve.rank.explore.candidates import UserPopulation
    >>> batch = Candidates(np.ones(2), np.array([1.0, 4.0]), *(np.full(2, 5.0),) * 3, UserPopulation(10.0, 10.0, 100.0))
    >>> Popularity().choose((), batch, k=2, now=0.0, rng=np.random.default_rng(1)).rows.tolist()
    [1, 0]
    """

    older_first: bool = False
    name: str = "popularity"

    def plan(self, state: tuple[()], batch: Candidates, now: float) -> TiedOrder:
        """Plan the ranking by popularity, with ties in random order."""
        return rank_with_ties(score_popularity(batch, older_first=self.older_first))

    def reason(self, state: tuple[()], batch: Candidates, row: int, now: float) -> str:
        """Describe the popularity of a page by its likes."""
        return f"popularity: liked by {batch.likes[row]:.0f} of {batch.crowd.people:.0f}"
