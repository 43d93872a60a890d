"""Two-level bandit: first a cluster of ads by their joint earnings, then an ad in it."""

from dataclasses import dataclass, replace

import numpy as np

from vedette.policy import Floats, Ints
from vedette.serve.ads.by_score import AdPriors
from vedette.serve.ads.candidates import AdCandidates
from vedette.serve.ads.policies.bmix import BmixE


@dataclass(frozen=True, slots=True)
class TwoLevel(BmixE):
    """Two levels for clustered ads: each cluster of a phrase is an arm, and so is each ad within it.

    A cluster's counts are those of its ads together, its bid that of its best; clusters and ads are both scored as in
    BMIX-E. An ad's score is its cluster's priority, times its own as a share of the best in the cluster: so the first
    slot goes to the best ad of the best cluster.

    Useful if ads of one cluster have similar rates and there are many: the cluster is learned sooner than its ads. Not
    useful if clusters say nothing: the best ad may be in a poor one.

    Reference: Pandey08, section 6.8.4.
    """

    name: str = "two-level"

    def score(self, told: AdPriors, options: AdCandidates) -> Floats:
        """Score ads by the two-level bandit: their cluster's priority, divided among its ads."""
        kinds, of = np.unique(options.cluster, return_inverse=True)
        cluster, ad = (BmixE.score(self, told, rows) for rows in (_merge_clusters(options, of, len(kinds)), options))
        best = _max_by_cluster(ad, of, len(kinds))[of]
        with np.errstate(invalid="ignore", divide="ignore"):
            share = np.where(best > 0, ad / best, 1.0)
        # An ad that was never shown comes first in its cluster, and the others wait for it.
        share[np.isinf(ad)] = 1.0
        return cluster[of] * share


def _merge_clusters(options: AdCandidates, of: Ints, kinds: int) -> AdCandidates:
    """Merge the ads of each cluster into one candidate of the two-level bandit; unused columns are unchanged."""
    return replace(
        options,
        shown=_sum_by_cluster(options.shown, of, kinds),
        clicked=_sum_by_cluster(options.clicked, of, kinds),
        prior_clicked=_sum_by_cluster(options.prior_clicked, of, kinds),
        prior_shown=_sum_by_cluster(options.prior_shown, of, kinds),
        bid=_max_by_cluster(options.bid, of, kinds),
        asked=_max_by_cluster(options.asked, of, kinds),
    )


def _sum_by_cluster(values: Floats, of: Ints, kinds: int) -> Floats:
    return np.bincount(of, values, kinds).astype(np.float64)


def _max_by_cluster(values: Floats, of: Ints, kinds: int) -> Floats:
    found = np.zeros(kinds)
    np.maximum.at(found, of, values)
    return found
