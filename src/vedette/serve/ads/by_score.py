"""Base class of ad policies that rank ads by a score of their counts: stateless, and show the highest."""

from typing import Any, NamedTuple

import numpy as np

from vedette.policy import Floats, Ints
from vedette.serve.ads.candidates import AdCandidates, RankedPicks, rank_top
from vedette.serve.ads.click_rates import FIRST_RATE, OWN_VARIANCE
from vedette.serve.ads.pacing import Traffic


class AdPriors(NamedTuple):
    """What an ad policy has computed for each ad, by its number, beyond the counts of the ad catalog.

    Its click rate is estimated as after ``clicks`` of ``views``, and its bid is multiplied by ``keep``. May be empty.
    """

    clicks: Floats
    views: Floats
    keep: Floats


NO_PRIORS = AdPriors(*np.zeros((3, 0)))
# Prior clicks of an ad; views follow from the initial rate.
UNKNOWN_AD_CLICKS = 1 / OWN_VARIANCE


def estimate_rates(told: AdPriors, ads: AdCandidates) -> tuple[Floats, Floats]:
    """Estimate the click rate of each ad in the first slot, a Gamma distribution: its mean and standard deviation."""
    clicks = look_up(told.clicks, ads.ad, UNKNOWN_AD_CLICKS)
    views = look_up(told.views, ads.ad, UNKNOWN_AD_CLICKS / FIRST_RATE)
    shape, rate = clicks + ads.clicked + ads.prior_clicked, views + ads.views + ads.prior_shown
    return shape / rate, np.sqrt(shape) / rate


def look_up(column: Floats, ad: Ints, usual: float) -> Floats:
    """Look up column values by ad; the usual value for ads added after the last update."""
    if len(column) > ad.max(initial=-1):
        return column[ad]
    known = np.append(column, usual)
    return known[np.minimum(ad, len(column))]


class ScorePolicy:
    """An ad policy whose ``score`` is computed from the batch and the priors of each ad.

    A score is computed elementwise, so it works for many phrases at once, in arrays of any shape.
    """

    __slots__ = ()
    name: str

    def score(self, told: AdPriors, options: AdCandidates) -> Floats:
        """Compute the score that ranks, and prices, each ad."""
        raise NotImplementedError

    def get_ad_priors(self, state: Any) -> AdPriors:  # noqa: ANN401 - whatever a policy remembers
        """Return the priors of each ad; empty unless an ad policy overrides this."""
        return NO_PRIORS

    def get_spend_limit(self, state: Any, now: float) -> float:  # noqa: ANN401 - as above
        """Return the share of a day's ad budget that may be charged by now; no limit unless overridden."""
        return np.inf

    def set_traffic(self, state: Any, traffic: Traffic) -> Any:  # noqa: ANN401 - as above
        """Return the state with a traffic plan built from the ledger; unchanged unless an ad policy uses one."""
        return state

    def start(self, config: None) -> Any:  # noqa: ANN401 - the shape that all policies have
        """Return the empty state of a stateless ad policy."""
        return ()

    def observe(self, state: Any, batch: AdCandidates, now: float) -> Any:  # noqa: ANN401 - as above
        """Return the state unchanged; there is nothing to learn beyond the ad counts."""
        return state

    def choose(self, state: Any, options: AdCandidates, k: int, now: float, rng: np.random.Generator) -> RankedPicks:  # noqa: ANN401 - as above
        """Choose the k ads with the highest score."""
        return rank_top(self.score(self.get_ad_priors(state), options), k, rng)

    def reason(self, state: Any, batch: AdCandidates, row: int, now: float) -> str:  # noqa: ANN401 - as above
        """Describe the components of an ad's score."""
        counted = (
            f"{batch.clicked[row]:.0f} clicks of {batch.shown[row]:.0f} showings in {batch.asked[row]:.0f} queries"
        )
        cents, budget = batch.remaining[row], batch.budget[row]
        left = f", {cents / 100:.2f} of {budget / 100:.2f} left" if np.isfinite(budget) else ""
        return f"{self.name}: {counted}, bid {batch.bid[row] / 100:.2f}{left}"
