"""From plans that meet the budgets nearly to plans that meet them: those pages are changed that lose least by it."""

import numpy as np

from vedette.policy import Floats, Ints
from vedette.refresh.outlook import looks_of

__all__ = ["repaired", "spent_by"]


def spent_by(plans: Ints, look_cost: Floats, days: int) -> Floats:
    """What plans take of each day's budget."""
    spent: Floats = np.bincount(plans, look_cost, 2**days).astype(np.float64) @ looks_of(days)
    return spent


def repaired(costs: Floats, look_cost: Floats, budgets: Floats, plans: Ints, prices: Floats) -> Ints:
    """Plans within the budgets: first looks are taken away where a day has too many, then given where it has room."""
    plans = plans.copy()
    for day in range(len(budgets)):
        _take_away(costs, look_cost, budgets, plans, prices, day)
    for _ in range(2):
        for day in np.argsort(-prices, kind="stable").tolist():
            _give(costs, look_cost, budgets, plans, day)
    return plans


def _take_away(costs: Floats, look_cost: Floats, budgets: Floats, plans: Ints, prices: Floats, day: int) -> None:
    """Fewer looks on a day, until it is within its budget; a page goes to the best plan that is a part of its own."""
    excess = spent_by(plans, look_cost, len(budgets))[day] - budgets[day]
    if excess <= 0:
        return
    pages = np.flatnonzero(plans >> day & 1)
    to, loss = _best_part(costs, look_cost, plans, prices, pages, day)
    order = np.argsort(loss / look_cost[pages], kind="stable")
    freed = np.cumsum(look_cost[pages[order]])
    gone = order[: int(np.searchsorted(freed, excess)) + 1]
    plans[pages[gone]] = to[gone]


def _best_part(
    costs: Floats, look_cost: Floats, plans: Ints, prices: Floats, pages: Ints, day: int
) -> tuple[Ints, Floats]:
    """For each page the part of its plan without a day that costs least at the prices, and what is lost by it."""
    price = looks_of(len(prices)) @ prices
    own = plans[pages]
    least, to = np.full(len(pages), np.inf), np.zeros(len(pages), np.int64)
    for plan in range(len(costs)):
        if not plan >> day & 1:
            cost = costs[plan, pages] + price[plan] * look_cost[pages]
            better = ((plan & ~own) == 0) & (cost < least)
            least[better], to[better] = cost[better], plan
    return to, least - costs[own, pages] - price[own] * look_cost[pages]


def _give(costs: Floats, look_cost: Floats, budgets: Floats, plans: Ints, day: int) -> None:
    """More looks on a day, to those who gain most by what they take, as far as its budget goes."""
    room = budgets[day] - spent_by(plans, look_cost, len(budgets))[day]
    pages = np.flatnonzero((~(plans >> day) & 1 == 1) & (look_cost <= room))
    more = plans[pages] | (1 << day)
    gain = (costs[plans[pages], pages] - costs[more, pages]) / look_cost[pages]
    order = np.argsort(-gain, kind="stable")
    order = order[gain[order] > 0]
    fitting = int(np.searchsorted(np.cumsum(look_cost[pages[order]]), room, side="right"))
    plans[pages[order[:fitting]]] |= 1 << day
