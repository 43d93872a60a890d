"""Linear bandit: click rates as a linear function of features, with a bonus for their uncertainty."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from vedette.policy import Floats
from vedette.serve.ads.by_score import NO_PRIORS, AdPriors, ScorePolicy, look_up
from vedette.serve.ads.candidates import AdCandidates
from vedette.serve.ads.click_rates import FIRST_RATE

# The weight of the prior that features say nothing, in showings; and the lowest assumed rate.
GUESS_VIEWS = 50.0
MIN_RATE = 1e-4


class LinearMemory(NamedTuple):
    """Click rates that the linear ad bandit predicts for each ad, as clicks of a number of showings."""

    ads: AdPriors


@dataclass(frozen=True, slots=True)
class LinearRates(ScorePolicy):
    """Feature-linear: (theta x + exploration sqrt(r x' inv(A) x)) bid, A = prior + sum of views x x', r its mean rate.

    x has a 1 for the phrase, the advertiser and the cluster of an ad, and one for all ads; theta is the ridge
    regression of clicks by showings on it. Two ads with the same features have the same rate, however often each was
    clicked: what is learned from one applies to the other.

    Useful for: ads that come and go while their features stay. Not useful for: ads that differ from others of their
    phrase and advertiser, since it cannot distinguish them; thousands of phrases, as it solves a system of that size.

    Reference: Li, Chu, Langford and Schapire 2010 (linear bandits).
    """

    name: str = "linear"
    exploration: float = 1.0

    def start(self, config: None) -> LinearMemory:
        """Return the empty memory of the linear ad bandit."""
        return LinearMemory(NO_PRIORS)

    def observe(self, state: LinearMemory, batch: AdCandidates, now: float) -> LinearMemory:
        """Fit the linear ad bandit's ridge regression again to the statistics of all ads."""
        if not len(batch):
            return state
        x = _build_features(batch)
        rate = (batch.clicked.sum() + FIRST_RATE * GUESS_VIEWS) / (batch.views.sum() + GUESS_VIEWS)
        inverse = np.linalg.inv((x.T * batch.views) @ x + GUESS_VIEWS * np.eye(x.shape[1]))
        # The regression learns how a rate differs from that of all ads: so an unknown feature adds nothing.
        theta = inverse @ (x.T @ (batch.clicked - rate * batch.views))
        mean = np.maximum(rate + x @ theta, MIN_RATE)
        # As many showings as would leave a rate as uncertain as the features do.
        views = 1 / np.maximum(np.einsum("ij,jk,ik->i", x, inverse, x), 1e-12)
        size = int(batch.ad.max()) + 1
        told = AdPriors(np.full(size, FIRST_RATE), np.ones(size), np.ones(size))
        told.clicks[batch.ad], told.views[batch.ad] = mean * views, views
        return LinearMemory(told)

    def get_ad_priors(self, state: LinearMemory) -> AdPriors:
        """Return the linear ad bandit's predicted click rates as priors of each ad."""
        return state.ads

    def score(self, told: AdPriors, options: AdCandidates) -> Floats:
        """Score ads by the linear bandit: the upper bound of the predicted click rate, times the bid."""
        clicks, views = (
            look_up(column, options.ad, usual) for column, usual in ((told.clicks, FIRST_RATE), (told.views, 1.0))
        )
        # An existing prior counts as showings of the ad itself.
        clicks, views = clicks + options.prior_clicked, views + options.prior_shown
        mean = clicks / views
        return (mean + self.exploration * np.sqrt(mean / views)) * options.bid


def _build_features(ads: AdCandidates) -> Floats:
    """Build the linear ad bandit's features: a 1 for all ads, for the phrase, the advertiser and the cluster."""
    blocks = [np.ones((len(ads), 1))]
    for number in (ads.phrase, ads.advertiser, ads.cluster):
        kinds, of = np.unique(number, return_inverse=True)
        blocks.append(np.eye(len(kinds))[of])
    return np.concatenate(blocks, axis=1)
