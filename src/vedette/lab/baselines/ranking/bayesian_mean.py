"""By the share of those who saw a page that liked it, leaning on what pages are like in general."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from vedette.policy import Floats, Picks
from vedette.serve.rank.explore.candidates import Candidates
from vedette.serve.rank.explore.randomized_lists import Tied, tied

__all__ = ["BayesianMean", "General", "general_of", "leaning"]

# How many views the general share counts for, against a page's own.
WEIGHT = 5.0


class General(NamedTuple):
    """The likes and views of all pages; the one of each before anything was seen is a flat belief."""

    likes: float = 1.0
    aware: float = 2.0


def general_of(batch: Candidates) -> General:
    """What is known of pages in general.

    >>> from vedette.serve.rank.explore.candidates import Crowd, unknown
    >>> general_of(unknown(3, Crowd(10.0, 10.0, 100.0)))
    General(likes=1.0, aware=2.0)
    """
    return General(1.0 + float(batch.likes.sum()), 2.0 + float(batch.aware.sum()))


def leaning(state: General, batch: Candidates) -> tuple[Floats, Floats]:
    """The two counts of the Beta law that is believed of each page: likes, and views without one."""
    share = state.likes / state.aware
    return batch.likes + WEIGHT * share, np.maximum(batch.aware - batch.likes, 0.0) + WEIGHT * (1 - share)


@dataclass(frozen=True, slots=True)
class BayesianMean:
    """Order by ``(likes + 5 s) / (aware + 5)`` with s the share of likes among all views of all pages.

    Useful where every page is seen by somebody anyway. Not useful on its own where new pages are many: it learns what
    it happens to see, and looks for nothing.
    """

    name: str = "bayesian-mean"

    def start(self, config: None) -> General:  # noqa: ARG002 - the shape that all policies of its kind have
        """A flat belief."""
        return General()

    def observe(self, state: General, batch: Candidates, now: float) -> General:  # noqa: ARG002 - as above
        """What pages are like, by all that were handed in."""
        return general_of(batch) if len(batch) else state

    def plan(self, state: General, batch: Candidates, now: float) -> Tied:  # noqa: ARG002 - as above
        """The order, with lots among equals."""
        liked, not_liked = leaning(state, batch)
        return tied(batch.relevance * liked / (liked + not_liked))

    def choose(self, state: General, options: Candidates, k: int, now: float, rng: np.random.Generator) -> Picks:
        """The k best means."""
        return self.plan(state, options, now).deal(k, rng)

    def reason(self, state: General, batch: Candidates, row: int, now: float) -> str:  # noqa: ARG002 - as above
        """The mean, in words."""
        liked, not_liked = (float(part[row]) for part in leaning(state, batch))
        return f"bayesian-mean: {liked / (liked + not_liked):.1%} expected, by {batch.aware[row]:.0f} who saw it"
