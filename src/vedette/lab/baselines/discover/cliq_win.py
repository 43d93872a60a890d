"""One page for each cluster of pages that led to the same, and every page that ever led to anything."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from vedette.discover.polling.sources import Sources, room_for
from vedette.lab.baselines.full_crawl import best_first, clusters, new_sets, news, shares, worth_at
from vedette.policy import Floats, Picks

__all__ = ["CliqWin", "Clustered"]


class Clustered(NamedTuple):
    """For each place: its cluster at the latest crawl, counted from 1 (0: none), its share then, and all its shares."""

    cluster: Floats
    share: Floats
    led: Floats
    crawls: float


@dataclass(frozen=True, slots=True)
class CliqWin:
    """CLIQ: pages that led to nearly the same new ones make a cluster, for which its best page stands.

        p_i = |N(i)| / N;   q of a cluster = its largest p_i;   look at the pages of the k largest q

    Clusters are those of the latest full crawl: single linkage at a Jaccard coefficient of ``likeness`` or more. Print
    has eps_b = .8, so 1 - eps_b = .2 (``cliq-win-strict`` has .8). Every other page that ever led to anything new is a
    cluster of its own, with its mean p_i over all crawls. Clusters are sorted by q; print says p.

    Useful where pages of a site lead to the same, as those with a common navigation do. Not useful without full crawls.

    Reference: Pandey08, sections 3.6.2 and 3.6.4.

    >>> from vedette.policy import rng_for
    >>> from vedette.discover.polling.sources import Brought, LookBook
    >>> book, all_three, start = LookBook(np.zeros(3, np.int64)), np.ones(3, bool), np.array([0, 1, 3, 4])
    >>> came = Brought(np.arange(3), all_three, start, np.array([0, 0, 1, 2]), np.ones(4, bool))
    >>> policy = CliqWin()
    >>> state = policy.observe(policy.start(None), book.enter(came, 60.0), 60.0)
    >>> policy.choose(state, book.options(), k=3, now=90.0, rng=rng_for(1, "discover")).rows.tolist()
    [1, 2]
    """

    name: str = "cliq-win"
    likeness: float = 0.2
    remembers: bool = True

    def start(self, config: None) -> Clustered:  # noqa: ARG002 - the shape that all policies of its kind have
        """No crawl was made."""
        return Clustered(np.zeros(0), np.zeros(0), np.zeros(0), 0.0)

    def observe(self, state: Clustered, batch: Sources, now: float) -> Clustered:  # noqa: ARG002 - crawls are its time
        """Cluster anew, and add the shares; a crawl without anything new changes nothing."""
        if not news(batch):
            return state
        led = room_for(state.led, batch.place)
        cluster, share = np.zeros(len(led)), np.zeros(len(led))
        cluster[batch.place] = np.array(clusters(new_sets(batch), self.likeness)) + 1.0
        share[batch.place] = shares(batch)
        return Clustered(cluster, share, led + share, state.crawls + 1)

    def choose(self, state: Clustered, options: Sources, k: int, now: float, rng: np.random.Generator) -> Picks:  # noqa: ARG002 - nothing is drawn
        """The best page of each of the k best clusters; nothing is drawn."""
        return best_first(options, self._worth(state, options), k, told=state.crawls > 0)

    def reason(self, state: Clustered, batch: Sources, row: int, now: float) -> str:  # noqa: ARG002 - crawls are its time
        """Whether it stands for a cluster, and with how much."""
        worth = self._worth(state, batch)[row]
        return (
            f"{self.name}: leads to {worth:.0%} of what is new" if worth else f"{self.name}: another leads to as much"
        )

    def _worth(self, state: Clustered, options: Sources) -> Floats:
        """The q of the pages that stand for a cluster, 0 for all others."""
        cluster, share, led = (worth_at(rows, options.place) for rows in (state.cluster, state.share, state.led))
        order = np.lexsort((options.place, -share))
        heads = order[np.unique(cluster[order], return_index=True)[1]]
        alone = led / max(state.crawls, 1.0) * self.remembers
        worth = np.where(cluster > 0, 0.0, alone)
        standing = heads[cluster[heads] > 0]
        worth[standing] = share[standing]
        return worth
