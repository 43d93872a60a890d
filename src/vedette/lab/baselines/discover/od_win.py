"""OD-WIN: poll the pages that led to most new pages, over all full crawls so far."""

from dataclasses import dataclass

import numpy as np

from vedette.discover.polling.sources import Sources, grow_rows
from vedette.lab.baselines.full_crawl import compute_shares, count_new, lookup_values, pick_best
from vedette.policy import Floats, Picks


@dataclass(frozen=True, slots=True)
class OdWin:
    """OD-WIN: poll the k pages of the largest outdegree to new pages, as a weighted mean over past full crawls.

        p_i = sum over crawls of alpha^(crawls since) |N(i)| / N  /  sum of alpha^(crawls since);  the k largest

    alpha = 1 weighs all crawls alike, as Pandey08 settles on. The divisor is the same for all pages, so it is left out.
    A page that never led to anything new is not polled, so there may be fewer than k picks. Given every cycle, this is
    their OD-ALL, whose picks without a budget are all that history can find.

    Useful if full crawls are made anyway, and little should be fetched in between. Not useful without them: it stays
    with what it polled first. It picks pages of one site that all lead to the same pages.

    Reference: Pandey08, sections 3.6.1 and 3.6.4.

    >>> from vedette.policy import rng_for
    >>> from vedette.discover.polling.sources import PollResults, PollHistory
    >>> book, all_three, start = PollHistory(np.zeros(3, np.int64)), np.ones(3, bool), np.array([0, 0, 2, 3])
    >>> came = PollResults(np.arange(3), all_three, start, np.array([0, 1, 1]), np.ones(3, bool))
    >>> policy = OdWin()
    >>> state = policy.observe(policy.start(None), book.record(came, 60.0), 60.0)
    >>> policy.choose(state, book.list_options(), k=3, now=90.0, rng=rng_for(1, "discover")).rows.tolist()
    [1, 2]
    """

    name: str = "od-win"
    alpha: float = 1.0

    def start(self, config: None) -> Floats:
        """Return the empty outdegree shares of OD-WIN, before any full crawl."""
        return np.zeros(0)

    def observe(self, state: Floats, batch: Sources, now: float) -> Floats:
        """Add the outdegree shares of a full crawl to OD-WIN's state; a crawl without new pages has none."""
        if not count_new(batch):
            return state
        led = self.alpha * grow_rows(state, batch.place)
        led[batch.place] += compute_shares(batch)
        return led

    def choose(self, state: Floats, options: Sources, k: int, now: float, rng: np.random.Generator) -> Picks:
        """Choose the k pages with the largest OD-WIN outdegree; nothing is drawn."""
        return pick_best(options, lookup_values(state, options.place), k, is_informed=len(state) > 0)

    def reason(self, state: Floats, batch: Sources, row: int, now: float) -> str:
        """Describe the share of new pages that a page led to, as OD-WIN counts it."""
        led = lookup_values(state, batch.place)[row]
        return f"{self.name}: led to {led:.2f} times all that was new at a full crawl"
