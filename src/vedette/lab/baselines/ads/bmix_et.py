"""BMIX with both: the smaller bonus, and sparing who has little left."""

from dataclasses import dataclass

from vedette.lab.baselines.ads.estimates import click_rates, msvv_discount, tuned_bonus
from vedette.policy import Floats
from vedette.serve.ads.by_score import AdPriors, ScorePolicy
from vedette.serve.ads.candidates import AdCandidates


@dataclass(frozen=True, slots=True)
class BmixEt(ScorePolicy):
    """BMIX-ET: the bonus of BMIX-E, the discount of BMIX-T.

    Useful where budgets are tight. Not useful where they are loose: it gives up revenue for what is never short.

    Reference: Pandey08, section 6.6.3.
    """

    name: str = "bmix-et"

    def score(self, told: AdPriors, options: AdCandidates) -> Floats:  # noqa: ARG002 - counts are enough
        """The priority of BMIX-E with the discounted bid."""
        rate, counted = click_rates(options), msvv_discount(options.remaining, options.budget) * options.bid
        return (rate + tuned_bonus(options, rate)) * counted
