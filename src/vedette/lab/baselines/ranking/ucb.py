"""UCB1 ranking: by the upper confidence bound, which favors pages that few have seen."""

from dataclasses import dataclass

import numpy as np

from vedette.lab.baselines.bases import RandomizedRanking
from vedette.policy import Floats, Stateless
from vedette.serve.rank.explore.candidates import Candidates
from vedette.serve.rank.explore.randomized_lists import TiedOrder, rank_with_ties

# The bound of a page that no one saw: above any other, so that all of them come first, in any order.
UNSEEN = 1e6


@dataclass(frozen=True, slots=True)
class Ucb(Stateless, RandomizedRanking):
    """UCB1: order by ``likes / aware + sqrt(2 ln n / aware)`` with n all views of the batch; the unseen first.

    Useful as the textbook's rival. Not useful here: the bonus is on a scale from 0 to 1, and likes are rare, so it
    keeps exploring what is known to be poor.

    Reference: Auer, Cesa-Bianchi and Fischer, Machine Learning 47, 2002.
    """

    name: str = "ucb"

    def plan(self, state: tuple[()], batch: Candidates, now: float) -> TiedOrder:
        """Plan the ranking by UCB1's upper confidence bounds of likes."""
        return rank_with_ties(batch.relevance * _bounds(batch))

    def reason(self, state: tuple[()], batch: Candidates, row: int, now: float) -> str:
        """Describe the UCB1 upper confidence bound of a page."""
        if batch.aware[row] <= 0:
            return "ucb: no one has seen it, so its quality is unknown"
        return f"ucb: at most {_bounds(batch)[row]:.2f} is plausible, by {batch.aware[row]:.0f} who saw it"


def _bounds(batch: Candidates) -> Floats:
    aware = np.maximum(batch.aware, 1.0)
    bonus = np.sqrt(2 * np.log(max(float(batch.aware.sum()), 1.0)) / aware)
    return np.where(batch.aware > 0, batch.likes / aware + bonus, UNSEEN)
