"""Batch bandit over sources: k polls at a time, where each new page is a round."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from vedette.discover.polling.sources import Sources, get_latest_yields, grow_rows
from vedette.policy import Floats, Ints, Picks


class BanditState(NamedTuple):
    """State of the batch bandit: rounds of each source while it was polled, new pages it showed, and their total."""

    rounds: Floats
    covered: Floats
    arrived: float


@dataclass(frozen=True, slots=True)
class BatchBandit:
    """Batch bandit over discovery sources: every new page is a round, and rewards the sources that show it.

        index = covered / rounds + sqrt(2 log(arrived) / rounds);  the k highest, those never played first

    New pages come in batches, one per step; undiscovered ones are unknown, so a step has as many rounds as its polls
    found pages together. A step that found none is one round, otherwise sources without yield would never count as
    played, and be chosen forever. It converges to the k sources of the largest (aggregated) outdegree, which in
    Pandey08 does as well as rules that consider overlap. Ties, and sources without a round, go by staleness.

    Useful if full crawls cost too much to learn from. Not useful if sources show the same links: outdegree counts them
    several times.

    Reference: Pandey08, section 7.1; UCB1 of Auer02, which it suggests.

    >>> from vedette.policy import rng_for
    >>> from vedette.discover.polling.sources import PollResults, PollHistory
    >>> book, both, start = PollHistory(np.zeros(2, np.int64)), np.ones(2, bool), np.array([0, 0, 9])
    >>> came = PollResults(np.array([0, 1]), both, start, np.arange(9), np.ones(9, bool))
    >>> policy = BatchBandit()
    >>> state = policy.observe(policy.start(None), book.record(came, 60.0), 60.0)
    >>> policy.choose(state, book.list_options(), k=1, now=90.0, rng=rng_for(1, "discover")).rows.tolist()
    [1]
    """

    name: str = "batch-bandit"

    def start(self, config: None) -> BanditState:
        """Return the empty state of the batch bandit over discovery sources."""
        return BanditState(np.zeros(0), np.zeros(0), 0.0)

    def observe(self, state: BanditState, batch: Sources, now: float) -> BanditState:
        """Add a round per page found, at least one, to each polled source of the batch bandit, and what it showed."""
        rounds, covered = grow_rows(state.rounds, batch.place), grow_rows(state.covered, batch.place)
        arrived = max(float(len(np.unique(batch.shown[batch.shown_new]))), 1.0)
        rounds[batch.place] += arrived
        covered[batch.place] += get_latest_yields(batch)
        return BanditState(rounds, covered, state.arrived + arrived)

    def select(self, state: BanditState, places: Ints) -> BanditState:
        """Return the rounds of some sources, in this order; the number of arrived pages stays."""
        rounds, covered = (grow_rows(rows, places)[places] for rows in (state.rounds, state.covered))
        return BanditState(rounds, covered, state.arrived)

    def choose(self, state: BanditState, options: Sources, k: int, now: float, rng: np.random.Generator) -> Picks:
        """Choose the k discovery sources with the highest batch-bandit (UCB1) indices; nothing is drawn."""
        rows = np.lexsort((options.place, options.last_poll_s, -_compute_index(state, options)))[:k].astype(np.int64)
        return Picks(rows, np.ones(len(rows)))

    def reason(self, state: BanditState, batch: Sources, row: int, now: float) -> str:
        """Describe the batch-bandit index of a discovery source, and whether it has been polled."""
        index = _compute_index(state, batch)[row]
        return f"batch-bandit: index {index:.3f}" if np.isfinite(index) else "batch-bandit: never played"


def _compute_index(state: BanditState, options: Sources) -> Floats:
    rounds, covered = (grow_rows(rows, options.place)[options.place] for rows in (state.rounds, state.covered))
    some = np.maximum(rounds, 1.0)
    bonus = np.sqrt(2 * np.log(max(state.arrived, 1.0)) / some)
    return np.where(rounds > 0, covered / some + bonus, np.inf)
