"""Upper bound ``bound-lp`` on ad revenue: a linear program, with rates and all queries of a day known in advance.

    max sum x_ijs b_ij c_ij f_s   over showings x of ad (i, j) in slot s, at most the queries of phrase j in each slot,
    at most one slot a query for each ad, and for each advertiser i  sum x_ijs b_ij c_ij f_s <= budget_i

Whatever a policy does, its average showings obey these limits, so nothing earns more on average. It is a fluid: it may
show half an ad and spend the last cent of each budget, which no policy can. An ad that bids more than its advertiser's
budget can never be shown and is left out.
"""

from collections.abc import Sequence

import numpy as np

from vedette.lab.core.extras import import_extra
from vedette.lab.worlds.ads_market import AdMarketDay
from vedette.policy import Floats, Ints


def solve_days(days: Sequence[AdMarketDay], slots: int, factors: Floats) -> Floats:
    """Compute the linear-programming bound on ad revenue of each day."""
    found = []
    for day in days:
        offers = day.offers
        searches = np.bincount(day.query, minlength=int(offers.phrase.max()) + 1).astype(np.float64)
        value = offers.bid * day.rate
        can = offers.bid <= day.budget[offers.advertiser]
        found.append(
            solve_lp_revenue(
                value[can], offers.phrase[can], offers.advertiser[can], searches, day.budget, factors[:slots]
            )
        )
    return np.array(found)


def solve_lp_revenue(
    value: Floats, phrase: Ints, advertiser: Ints, searches: Floats, budget: Floats, factors: Floats
) -> float:
    """Solve the linear program of the ad revenue bound, for ads worth ``value`` per showing in the first slot."""
    optimize, sparse = import_extra("bound-lp is found with", "scipy.optimize", "scipy.sparse")
    ads, slots = len(value), len(factors)
    if not ads:
        return 0.0
    variable = np.arange(ads * slots).reshape(ads, slots)
    worth = value[:, None] * factors
    ones = np.ones(ads * slots)
    by_slot = sparse.coo_array(
        (ones, ((phrase[:, None] * slots + np.arange(slots)).ravel(), variable.ravel())),
        shape=(len(searches) * slots, ads * slots),
    )
    by_ad = sparse.coo_array((ones, (np.repeat(np.arange(ads), slots), variable.ravel())), shape=(ads, ads * slots))
    by_payer = sparse.coo_array(
        (worth.ravel(), (np.repeat(advertiser, slots), variable.ravel())), shape=(len(budget), ads * slots)
    )
    limited = np.flatnonzero(np.isfinite(budget))
    limits = np.concatenate([np.repeat(searches, slots), searches[phrase], budget[limited]])
    rows = sparse.vstack([by_slot, by_ad, by_payer.tocsr()[limited]])
    solved = optimize.linprog(-worth.ravel(), A_ub=rows, b_ub=limits, bounds=(0, None), method="highs")
    assert solved.status == 0, f"a market has a best plan: {solved.message}"
    return float(-solved.fun)
