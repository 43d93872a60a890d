"""COV: poll the greedy cover of what was new at the latest full crawl."""

from dataclasses import dataclass

import numpy as np

from vedette.discover.polling.sources import Sources
from vedette.lab.baselines.full_crawl import build_new_sets, count_new, lookup_values, pick_best
from vedette.lab.baselines.greedy_cover import compute_greedy_cover
from vedette.policy import Ints, Picks


@dataclass(frozen=True, slots=True)
class Cov:
    """COV: poll the pages that GREEDY takes for the new pages of the latest full crawl, in its order, until the next.

    They are few, and none leads to what another leads to. The first k of them are GREEDY's cover with a budget of k.

    Useful to find part of the new pages with very few polls. Not useful to find much: once its cover is used up it has
    nothing more to propose, and covers of several crawls do not add up.

    Reference: Pandey08, section 3.6.3.

    >>> from vedette.policy import rng_for
    >>> from vedette.discover.polling.sources import PollResults, PollHistory
    >>> book, all_three, start = PollHistory(np.zeros(3, np.int64)), np.ones(3, bool), np.array([0, 2, 5, 6])
    >>> came = PollResults(np.arange(3), all_three, start, np.array([0, 1, 0, 1, 2, 3]), np.ones(6, bool))
    >>> policy = Cov()
    >>> state = policy.observe(policy.start(None), book.record(came, 60.0), 60.0)
    >>> policy.choose(state, book.list_options(), k=3, now=90.0, rng=rng_for(1, "discover")).rows.tolist()
    [1, 2]
    """

    name: str = "cov"

    def start(self, config: None) -> Ints:
        """Return the empty cover of COV, before any full crawl."""
        return np.zeros(0, np.int64)

    def observe(self, state: Ints, batch: Sources, now: float) -> Ints:
        """Compute COV's greedy cover of a full crawl, as positions; a crawl without new pages keeps the last cover."""
        return batch.place[list(compute_greedy_cover(build_new_sets(batch)).rows)] if count_new(batch) else state

    def choose(self, state: Ints, options: Sources, k: int, now: float, rng: np.random.Generator) -> Picks:
        """Choose the pages of COV's greedy cover in its order, as far as they still exist."""
        ranks = np.zeros(int(state.max(initial=-1)) + 1)
        ranks[state] = 1.0 / np.arange(1, len(state) + 1)
        return pick_best(options, lookup_values(ranks, options.place), k, is_informed=len(state) > 0)

    def reason(self, state: Ints, batch: Sources, row: int, now: float) -> str:
        """Describe whether a page is in COV's greedy cover, and where."""
        at = np.flatnonzero(state == batch.place[row])
        return f"cov: number {at[0] + 1} of {len(state)} in the last cover" if len(at) else "cov: not in the last cover"
