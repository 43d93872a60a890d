"""BMIX with a bonus that knows how little a small rate varies."""

from dataclasses import dataclass

from vedette.lab.baselines.ads.estimates import rates, tuned_bonus
from vedette.policy import Floats
from vedette.serve.ads.by_score import ByScore, Told
from vedette.serve.ads.candidates import Candidates

__all__ = ["BmixE"]


@dataclass(frozen=True, slots=True)
class BmixE(ByScore):
    """BMIX-E: the bonus is sqrt(ln n_j / n_ij min(1/4, c (1 - c) + sqrt(2 ln n_j / n_ij))).

    Useful as the best of its family where budgets are loose. Not useful with few queries an ad: the inner root is again
    on the scale from 0 to 1.

    Reference: Pandey08, section 6.6.3.
    """

    name: str = "bmix-e"

    def score(self, told: Told, options: Candidates) -> Floats:  # noqa: ARG002 - counts are enough
        """The printed priority."""
        rate = rates(options)
        return (rate + tuned_bonus(options, rate)) * options.bid
