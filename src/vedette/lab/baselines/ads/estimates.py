"""How much less the ads of an advertiser count as its budget for the day is spent.

Pandey08 (section 6.6.3) prints the discount as 1 - exp(-d'/d), with d' of a budget d left. That is the discount
1 - exp(x - 1) of Mehta, Saberi, Vazirani and Vazirani, x being the share that is spent, by other letters: so there is
one function. Whoever has no budget has all of it left, and counts 1 - 1/e, like anyone at the start of a day; without
that, an advertiser would be preferred for having set no limit.
"""

import numpy as np

from vedette.policy import Floats

__all__ = ["left_share", "msvv_discount"]


def left_share(remaining: Floats, budget: Floats) -> Floats:
    """The share of each budget that is left; 1 where there is none.

    >>> left_share(np.array([5.0, np.inf]), np.array([20.0, np.inf])).tolist()
    [0.25, 1.0]
    """
    limited = np.isfinite(budget) & (budget > 0)
    return np.divide(remaining, budget, out=np.ones(np.shape(budget)), where=limited)


def msvv_discount(remaining: Floats, budget: Floats) -> Floats:
    """The factor by which a bid counts: 1 - 1/e with all of a budget left, 0 with nothing.

    >>> msvv_discount(np.array([10.0, 5.0, 0.0, np.inf]), np.array([10.0, 10.0, 10.0, np.inf])).round(3).tolist()
    [0.632, 0.393, 0.0, 0.632]
    """
    return -np.expm1(-left_share(remaining, budget))
