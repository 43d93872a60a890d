"""BMIX-T: BMIX that spares advertisers with little budget left."""

from dataclasses import dataclass
from typing import ClassVar

from vedette.lab.baselines.ads.mix import Mix


@dataclass(frozen=True, slots=True)
class BmixT(Mix):
    """BMIX-T: the bid counts times 1 - exp(-d'/d), where d' of the budget d is left.

    Without a budget the factor is 1 - 1/e (see ``msvv_discount``).

    Useful where budgets are small and rates known to be large. Not useful with a bonus that outweighs the rate: it then
    spares the ads that happened to be clicked.

    Reference: Pandey08, section 6.6.3.
    """

    name: str = "bmix-t"
    discounted: ClassVar[bool] = True
