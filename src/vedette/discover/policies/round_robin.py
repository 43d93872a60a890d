"""Round robin over discovery sources: poll the least recently polled source first."""

from dataclasses import dataclass

import numpy as np

from vedette.discover.polling.sources import Sources
from vedette.policy import Picks, Stateless


@dataclass(frozen=True, slots=True)
class RoundRobin(Stateless):
    """Poll the k stalest sources; those never polled come first, ties go by position. A failed poll counts too.

        order = last_look, then place

    With n sources each is polled every n / k steps, so a target is missed only if it stays for less.

    Useful if sources are alike, if nothing that stays long enough may be missed, and as the baseline that an adaptive
    policy has to beat at equal budget. Not useful if few sources bring most: it polls all equally often.

    Reference: the exploring half of Pham et al. as described in Thompson23, section 2.3 ("most stale sources"), alone.

    >>> from vedette.policy import rng_for
    >>> from vedette.discover.polling.sources import PollResults, PollHistory
    >>> book, none = PollHistory(np.zeros(3, np.int64)), np.zeros(0, np.int64)
    >>> came = PollResults(np.array([0]), np.array([True]), np.array([0, 0]), none, none.astype(bool))
    >>> seen = book.record(came, 60.0)
    >>> policy = RoundRobin()
    >>> policy.choose((), book.list_options(), k=2, now=90.0, rng=rng_for(1, "discover")).rows.tolist()
    [1, 2]
    """

    name: str = "round-robin"

    def choose(self, state: tuple[()], options: Sources, k: int, now: float, rng: np.random.Generator) -> Picks:
        """Choose up to k discovery sources for round robin, stalest first; nothing is drawn."""
        rows = np.lexsort((options.place, options.last_poll_s))[:k].astype(np.int64)
        return Picks(rows, np.ones(len(rows)))

    def reason(self, state: tuple[()], batch: Sources, row: int, now: float) -> str:
        """Describe how long ago round robin polled a discovery source."""
        if np.isneginf(batch.last_poll_s[row]):
            return "round-robin: never polled"
        return f"round-robin: last polled {(now - batch.last_poll_s[row]) / 60:.0f} min ago"
