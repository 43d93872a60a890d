"""MIX and BMIX: upper confidence bounds on click-through rates, times bids; and BMIX with its published refinements."""

from dataclasses import dataclass
from typing import ClassVar

from vedette.serve.ads.count_scores import CountScore, mix_bonus, tuned_bonus


@dataclass(frozen=True, slots=True)
class Mix(CountScore):
    """MIX: priority (c + sqrt(2 ln n_j / n_ij)) b, infinite for an ad that was never shown.

    n_j counts the queries of the phrase and is carried over the days with n_ij. It makes at most
    8 ln N b^2 / gap^2 + 1 + pi^2 / 3 mistakes with each ad in N queries, on average (theorem 4).

    Useful if there is no budget and rates are large. Not useful if rates are a few percent: the bonus is on the scale
    from 0 to 1, and outweighs the rate for thousands of showings.

    Reference: Pandey08, section 6.5 and appendix 9.4.
    """

    name: str = "mix"

    bonus = staticmethod(mix_bonus)


@dataclass(frozen=True, slots=True)
class Bmix(Mix):
    """BMIX: the priority of MIX; an ad takes part while its advertiser has at least the bid left.

    MIX counts by ad, so it continues when an ad drops out, and nothing is restarted. It earns at least half of the
    optimum, less O(ln N). The ad statistics decide which ads can pay, so here it equals MIX.

    Useful as the published policy with a guarantee. Not useful with rates of a few percent, like MIX.

    Reference: Pandey08, section 6.6.3.
    """

    name: str = "bmix"


@dataclass(frozen=True, slots=True)
class BmixE(CountScore):
    """BMIX-E: the bonus is sqrt(ln n_j / n_ij min(1/4, c (1 - c) + sqrt(2 ln n_j / n_ij))).

    Useful as the best of its family if budgets are loose. Not useful with few queries per ad: the inner root is again
    on the scale from 0 to 1.

    Reference: Pandey08, section 6.6.3.
    """

    name: str = "bmix-e"

    bonus = staticmethod(tuned_bonus)


@dataclass(frozen=True, slots=True)
class BmixT(Mix):
    """BMIX-T: the bid is multiplied by 1 - exp(-d'/d), where d' of the budget d is left.

    Without a budget the factor is 1 - 1/e (see ``msvv_discount``).

    Useful if budgets are small and rates known to be large. Not useful with a bonus that outweighs the rate: it then
    spares the ads that happened to be clicked.

    Reference: Pandey08, section 6.6.3.
    """

    name: str = "bmix-t"
    discounted: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class BmixEt(BmixE):
    """BMIX-ET: the bonus of BMIX-E, the discount of BMIX-T.

    Useful if budgets are tight. Not useful if they are loose: it gives up revenue for what is never short.

    Reference: Pandey08, section 6.6.3.
    """

    name: str = "bmix-et"
    discounted: ClassVar[bool] = True
