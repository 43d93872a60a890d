"""BMIX that spares who has little left."""

from dataclasses import dataclass

from vedette.lab.baselines.ads.estimates import click_rates, mix_bonus, msvv_discount
from vedette.policy import Floats
from vedette.serve.ads.by_score import AdPriors, ScorePolicy
from vedette.serve.ads.candidates import AdCandidates


@dataclass(frozen=True, slots=True)
class BmixT(ScorePolicy):
    """BMIX-T: the bid counts times 1 - exp(-d'/d), where d' of the budget d is left.

    Without a budget the factor is 1 - 1/e (see ``discount``).

    Useful where budgets are small and rates known to be large. Not useful with a bonus that outweighs the rate: it then
    spares whoever happened to be clicked.

    Reference: Pandey08, section 6.6.3.
    """

    name: str = "bmix-t"

    def score(self, told: AdPriors, options: AdCandidates) -> Floats:  # noqa: ARG002 - counts are enough
        """The priority of BMIX with the discounted bid."""
        counted = msvv_discount(options.remaining, options.budget) * options.bid
        return (click_rates(options) + mix_bonus(options)) * counted
