"""GREEDY: the ads of the highest expected revenue now; and MSVV, which spares advertisers with little budget left."""

from dataclasses import dataclass
from typing import ClassVar

from vedette.serve.ads.count_scores import CountScore


@dataclass(frozen=True, slots=True)
class Greedy(CountScore):
    """GREEDY: show the ads with the largest c b, where c is clicks by showings and b the bid.

    An ad that was never shown comes first, so each is shown once; after that nothing is explored. With known rates and
    no budgets it is optimal, with budgets it earns at least half of the optimum (cells I to IV).

    Useful as the rival of every exploring policy. Not useful with rates of a few percent: most ads are given up after
    one showing without a click.

    Reference: Pandey08, sections 6.1 and 6.7.
    """

    name: str = "greedy"


@dataclass(frozen=True, slots=True)
class Msvv(CountScore):
    """MSVV: the largest c b (1 - exp(x - 1)), where x is the share of the budget that is spent.

    With known rates and bids that are small relative to budgets it earns at least 1 - 1/e of the optimum, whatever
    queries come (cell II).

    Useful if rates are known. Not useful to learn them: it tries each ad once, like GREEDY.

    Reference: A. Mehta, A. Saberi, U. Vazirani, V. Vazirani, *AdWords and Generalized Online Matching*, 2005; Pandey08,
    figure 6.2.
    """

    name: str = "msvv"
    discounted: ClassVar[bool] = True
