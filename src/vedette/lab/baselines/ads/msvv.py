"""GREEDY that spares who has little left."""

from dataclasses import dataclass

from vedette.lab.baselines.ads.estimates import click_rates, msvv_discount
from vedette.policy import Floats
from vedette.serve.ads.by_score import AdPriors, ScorePolicy
from vedette.serve.ads.candidates import AdCandidates


@dataclass(frozen=True, slots=True)
class Msvv(ScorePolicy):
    """MSVV: the largest c b (1 - exp(x - 1)), x being the share of the budget that is spent.

    With known rates and bids that are small beside budgets it earns at least 1 - 1/e of what could be earned, whatever
    comes (cell II).

    Useful where rates are known. Not useful to find them out: it tries each ad once, like GREEDY.

    Reference: A. Mehta, A. Saberi, U. Vazirani, V. Vazirani, *AdWords and Generalized Online Matching*, 2005; Pandey08,
    figure 6.2.
    """

    name: str = "msvv"

    def score(self, told: AdPriors, options: AdCandidates) -> Floats:  # noqa: ARG002 - counts are enough
        """Expected revenue with the discounted bid."""
        counted = msvv_discount(options.remaining, options.budget) * options.bid
        return click_rates(options) * counted
