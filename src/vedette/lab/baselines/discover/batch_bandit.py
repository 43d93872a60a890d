"""A bandit over sources, played k at a time, whose rounds are the new pages themselves."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from vedette.discover.polling.sources import Sources, latest_yields, room_for
from vedette.policy import Floats, Picks

__all__ = ["BatchBandit", "Played"]


class Played(NamedTuple):
    """How many new pages came up while each place was looked at, how many of them it showed, and how many in all."""

    rounds: Floats
    covered: Floats
    arrived: float


@dataclass(frozen=True, slots=True)
class BatchBandit:
    """Every new page is a round, and every source an arm, which pays where the source shows the page.

        index = covered / rounds + sqrt(2 log(arrived) / rounds);  the k highest, those never played first

    New pages come in batches, one a step; those that nobody found are not known, so a step has as many rounds as its
    looks found pages together. A step that found none is one round, or sources that bring nothing would never count as
    played, and be taken for ever. It converges to the k sources of the largest (aggregated) outdegree, which in
    Pandey08 does as well as what minds overlap. Equals, and sources without a round, go by staleness.

    Useful where full crawls cost too much to learn from. Not useful where sources show the same: outdegree adds up what
    a union would not.

    Reference: Pandey08, section 7.1; UCB1 of Auer02, which it names as one that can be used.

    >>> from vedette.policy import rng_for
    >>> from vedette.discover.polling.sources import Brought, LookBook
    >>> book, both, start = LookBook(np.zeros(2, np.int64)), np.ones(2, bool), np.array([0, 0, 9])
    >>> came = Brought(np.array([0, 1]), both, start, np.arange(9), np.ones(9, bool))
    >>> policy = BatchBandit()
    >>> state = policy.observe(policy.start(None), book.enter(came, 60.0), 60.0)
    >>> policy.choose(state, book.options(), k=1, now=90.0, rng=rng_for(1, "discover")).rows.tolist()
    [1]
    """

    name: str = "batch-bandit"

    def start(self, config: None) -> Played:  # noqa: ARG002 - the shape that all policies of its kind have
        """Nothing arrived yet."""
        return Played(np.zeros(0), np.zeros(0), 0.0)

    def observe(self, state: Played, batch: Sources, now: float) -> Played:  # noqa: ARG002 - rounds are its time
        """As many rounds for each source looked at as pages were found, at least one, and those that it showed."""
        rounds, covered = room_for(state.rounds, batch.place), room_for(state.covered, batch.place)
        arrived = max(float(len(np.unique(batch.shown[batch.shown_new]))), 1.0)
        rounds[batch.place] += arrived
        covered[batch.place] += latest_yields(batch)
        return Played(rounds, covered, state.arrived + arrived)

    def choose(self, state: Played, options: Sources, k: int, now: float, rng: np.random.Generator) -> Picks:  # noqa: ARG002 - nothing is drawn
        """The k highest indices; nothing is drawn."""
        rows = np.lexsort((options.place, options.last_look_s, -_index(state, options)))[:k].astype(np.int64)
        return Picks(rows, np.ones(len(rows)))

    def reason(self, state: Played, batch: Sources, row: int, now: float) -> str:  # noqa: ARG002 - rounds are its time
        """The index, and whether anything is known."""
        index = _index(state, batch)[row]
        return f"batch-bandit: index {index:.3f}" if np.isfinite(index) else "batch-bandit: never played"


def _index(state: Played, options: Sources) -> Floats:
    rounds, covered = (room_for(rows, options.place)[options.place] for rows in (state.rounds, state.covered))
    some = np.maximum(rounds, 1.0)
    bonus = np.sqrt(2 * np.log(max(state.arrived, 1.0)) / some)
    return np.where(rounds > 0, covered / some + bonus, np.inf)
