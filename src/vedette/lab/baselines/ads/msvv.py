"""MSVV: GREEDY that spares advertisers with little budget left."""

from dataclasses import dataclass
from typing import ClassVar

from vedette.lab.baselines.bases import CountScore


@dataclass(frozen=True, slots=True)
class Msvv(CountScore):
    """MSVV: the largest c b (1 - exp(x - 1)), x being the share of the budget that is spent.

    With known rates and bids that are small beside budgets it earns at least 1 - 1/e of what could be earned, whatever
    comes (cell II).

    Useful where rates are known. Not useful to find them out: it tries each ad once, like GREEDY.

    Reference: A. Mehta, A. Saberi, U. Vazirani, V. Vazirani, *AdWords and Generalized Online Matching*, 2005; Pandey08,
    figure 6.2.
    """

    name: str = "msvv"
    discounted: ClassVar[bool] = True
