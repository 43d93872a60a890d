"""Scores of published ad policies by counts: click rates, exploration bonuses, and the discount of a spent budget.

Pandey08 (section 6.6.3) has the discount 1 - exp(-d'/d), with d' of a budget d left. That is the discount 1 - exp(x -
1) of Mehta, Saberi, Vazirani and Vazirani, with x the share that is spent: so there is one function. An advertiser
without a budget has all of it left, and counts 1 - 1/e, like any at the start of a day; otherwise an advertiser would
be preferred for having set no limit.
"""

from typing import ClassVar

import numpy as np

from vedette.policy import Floats
from vedette.serve.ads.by_score import AdPriors, ScorePolicy
from vedette.serve.ads.candidates import AdCandidates

# Without a prior the rate is clicks by showings, and an ad that was never shown counts as infinitely good, with random
# ties. A Beta prior counts as earlier clicks and showings: it is in both the rate and the bonus, and nothing is
# infinite.


def count_showings(options: AdCandidates) -> Floats:
    """Count the showings of ads, including those of the prior."""
    return options.shown + options.prior_shown


def click_rates(options: AdCandidates) -> Floats:
    """Estimate ad click rates as clicks by showings; infinite with neither a showing nor a prior."""
    times = count_showings(options)
    # A tiny number instead of 0 to avoid division by zero: corrected below.
    found: Floats = (options.clicked + options.prior_clicked) / np.maximum(times, 1e-300)
    found[times <= 0] = np.inf
    return found


def mix_bonus(options: AdCandidates, rate: Floats) -> Floats:  # noqa: ARG001 - the shape that bonuses have
    """Compute the exploration bonus of MIX: sqrt(2 ln n_j / n_ij); infinite if an ad was never shown."""
    return np.sqrt(2.0 * _log_ratio(options))


def tuned_bonus(options: AdCandidates, rate: Floats) -> Floats:
    """Compute the exploration bonus of BMIX-E: sqrt(ln n_j / n_ij min(1/4, V)), V = c (1 - c) + sqrt(2 ln n_j / n_ij).

    Section 6.6.3 calls it an exploitation factor, but it is the exploration factor.
    """
    logs = _log_ratio(options)
    # If nothing was shown the rate is infinite, and so is the bonus, whatever the minimum.
    known = np.minimum(rate, 1.0)
    return np.sqrt(logs * np.minimum(0.25, known * (1.0 - known) + np.sqrt(2.0 * logs)))


def _log_ratio(options: AdCandidates) -> Floats:
    times = count_showings(options)
    found: Floats = np.log(np.maximum(options.asked, 1.0)) / np.maximum(times, 1e-300)
    found[times <= 0] = np.inf
    return found


def left_share(remaining: Floats, budget: Floats) -> Floats:
    """Return the share of each advertiser's budget that is left; 1 without a budget.

    >>> left_share(np.array([5.0, np.inf]), np.array([20.0, np.inf])).tolist()
    [0.25, 1.0]
    """
    limited = np.isfinite(budget) & (budget > 0)
    return np.divide(remaining, budget, out=np.ones(np.shape(budget)), where=limited)


def msvv_discount(remaining: Floats, budget: Floats) -> Floats:
    """Compute the MSVV discount of a bid: 1 - 1/e with all of the budget left, 0 with nothing.

    >>> msvv_discount(np.array([10.0, 5.0, 0.0, np.inf]), np.array([10.0, 10.0, 10.0, np.inf])).round(3).tolist()
    [0.632, 0.393, 0.0, 0.632]
    """
    return -np.expm1(-left_share(remaining, budget))


class CountScore(ScorePolicy):
    """Base class of ad policies that score by counts: (click rate + bonus) bid, with the budget discount if set."""

    __slots__ = ()
    discounted: ClassVar[bool] = False

    @staticmethod
    def bonus(options: AdCandidates, rate: Floats) -> Floats:  # noqa: ARG004 - the shape that bonuses have
        """Return the exploration bonus that an ad policy adds to each click rate; none by default."""
        return np.zeros_like(rate)

    def score(self, told: AdPriors, options: AdCandidates) -> Floats:
        """Return the priority of each ad by counts: (click rate + bonus) bid, perhaps discounted."""
        rate = click_rates(options)
        factor = msvv_discount(options.remaining, options.budget) if self.discounted else 1.0
        return (rate + self.bonus(options, rate)) * (factor * options.bid)
