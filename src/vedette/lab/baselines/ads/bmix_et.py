"""BMIX-ET: the smaller bonus of BMIX-E, and the budget discount of BMIX-T."""

from dataclasses import dataclass
from typing import ClassVar

from vedette.lab.baselines.ads.bmix_e import BmixE


@dataclass(frozen=True, slots=True)
class BmixEt(BmixE):
    """BMIX-ET: the bonus of BMIX-E, the discount of BMIX-T.

    Useful where budgets are tight. Not useful where they are loose: it gives up revenue for what is never short.

    Reference: Pandey08, section 6.6.3.
    """

    name: str = "bmix-et"
    discounted: ClassVar[bool] = True
