"""BMIX-E: BMIX with a bonus tuned to the small variance of small rates."""

from dataclasses import dataclass

from vedette.lab.baselines.ads.estimates import tuned_bonus
from vedette.lab.baselines.bases import CountScore


@dataclass(frozen=True, slots=True)
class BmixE(CountScore):
    """BMIX-E: the bonus is sqrt(ln n_j / n_ij min(1/4, c (1 - c) + sqrt(2 ln n_j / n_ij))).

    Useful as the best of its family where budgets are loose. Not useful with few queries an ad: the inner root is again
    on the scale from 0 to 1.

    Reference: Pandey08, section 6.6.3.
    """

    name: str = "bmix-e"

    bonus = staticmethod(tuned_bonus)
