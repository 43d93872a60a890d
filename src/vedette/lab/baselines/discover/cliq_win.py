"""CLIQ-WIN: one page for each cluster with the same new links, then every page that ever led to anything."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from vedette.discover.polling.sources import Sources, grow_rows
from vedette.lab.baselines.full_crawl import (
    build_new_sets,
    cluster_sets,
    compute_shares,
    count_new,
    lookup_values,
    pick_best,
)
from vedette.policy import Floats, Picks


class ClusterState(NamedTuple):
    """State of CLIQ: each place's cluster at the latest full crawl (from 1; 0: none), its share, and all its shares."""

    cluster: Floats
    share: Floats
    share_sum: Floats
    crawls: float


@dataclass(frozen=True, slots=True)
class CliqWin:
    """CLIQ: pages that led to nearly the same new pages make a cluster, which its best page represents.

        p_i = |N(i)| / N;   q of a cluster = its largest p_i;   poll the pages of the k largest q

    Clusters are those of the latest full crawl: single linkage at a Jaccard coefficient of ``likeness`` or more. The
    paper has eps_b = .8, so 1 - eps_b = .2 (``cliq-win-strict`` has .8). Every page that ever led to anything new is
    also a separate cluster, with its mean p_i over all crawls (3.6.4): without a limit this polls what OD-WIN polls, as
    in table 3.2. A page that represents two clusters is polled once, with the larger q. Clusters are sorted by q; the
    paper says p.

    Useful if pages of a site lead to the same pages, as those with a common navigation do. Not useful without full
    crawls.

    Reference: Pandey08, sections 3.6.2 and 3.6.4.

    >>> from vedette.policy import rng_for
    >>> from vedette.discover.polling.sources import PollResults, PollHistory
    >>> book, all_three, start = PollHistory(np.zeros(3, np.int64)), np.ones(3, bool), np.array([0, 1, 3, 4])
    >>> came = PollResults(np.arange(3), all_three, start, np.array([0, 0, 1, 2]), np.ones(4, bool))
    >>> policy = CliqWin()
    >>> state = policy.observe(policy.start(None), book.record(came, 60.0), 60.0)
    >>> policy.choose(state, book.list_options(), k=3, now=90.0, rng=rng_for(1, "discover")).rows.tolist()
    [1, 0, 2]
    """

    name: str = "cliq-win"
    likeness: float = 0.2
    remembers: bool = True

    def start(self, config: None) -> ClusterState:
        """Return the empty cluster state of CLIQ, before any full crawl."""
        return ClusterState(np.zeros(0), np.zeros(0), np.zeros(0), 0.0)

    def observe(self, state: ClusterState, batch: Sources, now: float) -> ClusterState:
        """Cluster pages again by a full crawl and add their CLIQ shares; a crawl without new pages changes nothing."""
        if not count_new(batch):
            return state
        led = grow_rows(state.share_sum, batch.place)
        cluster, share = np.zeros(len(led)), np.zeros(len(led))
        cluster[batch.place] = np.array(cluster_sets(build_new_sets(batch), self.likeness)) + 1.0
        share[batch.place] = compute_shares(batch)
        return ClusterState(cluster, share, led + share, state.crawls + 1)

    def choose(self, state: ClusterState, options: Sources, k: int, now: float, rng: np.random.Generator) -> Picks:
        """Choose the best page of each of the k best CLIQ clusters to poll; nothing is drawn."""
        return pick_best(options, self._compute_worth(state, options), k, is_informed=state.crawls > 0)

    def reason(self, state: ClusterState, batch: Sources, row: int, now: float) -> str:
        """Describe whether a page represents a CLIQ cluster, and the cluster's share."""
        worth = self._compute_worth(state, batch)[row]
        return (
            f"{self.name}: leads to {worth:.0%} of what is new" if worth else f"{self.name}: another leads to as much"
        )

    def _compute_worth(self, state: ClusterState, options: Sources) -> Floats:
        """Compute the CLIQ worth of pages: the larger q of the clusters that each represents, 0 if there is none."""
        cluster, share, led = (
            lookup_values(rows, options.place) for rows in (state.cluster, state.share, state.share_sum)
        )
        order = np.lexsort((options.place, -share))
        heads = order[np.unique(cluster[order], return_index=True)[1]]
        worth: Floats = led / max(state.crawls, 1.0) * self.remembers
        standing = heads[cluster[heads] > 0]
        worth[standing] = np.maximum(worth[standing], share[standing])
        return worth
