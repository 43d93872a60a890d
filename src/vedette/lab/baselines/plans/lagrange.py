"""A million pages: prices for each day's looks, each page the plan that is cheapest at them, and a certified gap.

At prices w, page r follows the plan m with the least costs[m, r] + T_r (w . looks of m). Whatever the prices, the sum
of these less w . budgets is a bound that no plans within the budgets can undercut; the best prices make it highest.
Plans at those prices meet the budgets nearly; a few pages, those that lose least, are changed until they meet them.
What that costs more than the bound is the gap, and the truth lies within it.

Reference: B. Brewington, *Optimal observation with WWW applications*, 1999, section 2.3.3 (the problem; its methods do
not reach this far); M. Held, R. Karp, *The traveling-salesman problem and minimum spanning trees*, 1970 (such bounds).
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from vedette.lab.baselines.plans.ascent import Point, highest
from vedette.lab.baselines.plans.repair import repaired
from vedette.policy import Floats, Ints
from vedette.refresh.outlook import looks_of

__all__ = ["Certified", "certified_plans"]

# Pages at a time, so that all of their plans fit into a processor's cache.
CHUNK = 4_096
# Prices are first sought for so many pages, which is quick, and then for all.
SAMPLE = 20_000
SAMPLE_ROUNDS, ROUNDS = 120, 12
# Of all pages the bound need not be higher than this part of it: a thousandth of the gap that is asked for.
TOLERANCE = 1e-6


class Certified(NamedTuple):
    """Plans, what they cost, what no plans can undercut, and the price of a look on each day per unit of its cost."""

    plans: Ints
    cost: float
    bound: float
    prices: Floats

    @property
    def gap(self) -> float:
        """By which part of the bound the plans may cost too much."""
        return (self.cost - self.bound) / self.bound if self.bound > 0 else max(self.cost - self.bound, 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """Costs with a row per plan and a column per page, what a look at each page takes, and the daily budgets."""

    costs: Floats
    look_cost: Floats
    budgets: Floats

    @property
    def days(self) -> int:
        """How many."""
        return len(self.budgets)

    def bound_at(self, prices: Floats) -> Point:
        """The bound at some prices, and how it grows with each: by what the cheapest plans spend over the budget."""
        value, spent = 0.0, np.zeros(self.days)
        looks = looks_of(self.days)
        for start in range(0, len(self.look_cost), CHUNK):
            plans, least = self._cheapest(prices, start)
            value += float(least.sum())
            spent += np.bincount(plans, self.look_cost[start : start + CHUNK], 2**self.days) @ looks
        return Point(prices, value - float(prices @ self.budgets), spent - self.budgets)

    def fenced_at(self, prices: Floats) -> Point:
        """The same, with a slope back to prices that are not negative: of others the bound would be none."""
        inside = self.bound_at(prices)
        fence = float(self.budgets.max(initial=0.0)) + 1.0
        value = inside.value + fence * float(np.minimum(prices, 0.0).sum())
        return Point(prices, value, inside.slope + fence * (prices < 0))

    def plans_at(self, prices: Floats) -> Ints:
        """The cheapest plan of each page."""
        starts = range(0, len(self.look_cost), CHUNK)
        parts = [self._cheapest(prices, start)[0] for start in starts]
        return np.concatenate([np.zeros(0, np.int64), *parts])

    def sample(self, pages: int) -> "Problem":
        """So many pages, evenly spread over all, with their share of the budgets."""
        every = max(len(self.look_cost) // pages, 1)
        some = self.look_cost[::every].copy()
        share = some.sum() / self.look_cost.sum()
        return Problem(np.ascontiguousarray(self.costs[:, ::every]), some, self.budgets * share)

    def _cheapest(self, prices: Floats, start: int) -> tuple[Ints, Floats]:
        look_cost = self.look_cost[start : start + CHUNK]
        costs = self.costs[:, start : start + CHUNK]
        least, plans = costs[0].copy(), np.zeros(len(look_cost), np.int64)
        for plan, price in enumerate((looks_of(self.days) @ prices).tolist()):
            cost = costs[plan] + price * look_cost
            better = cost < least
            np.copyto(least, cost, where=better)
            np.copyto(plans, plan, where=better)
        return plans, least


def certified_plans(costs: Floats, budgets: Floats, look_cost: Floats | None = None) -> Certified:
    """Plans within daily budgets, and how far from the best they can be at most.

    ``look_cost`` is what a look at each page takes of a day's budget, 1 where it is not given.

    >>> table_1 = np.array([[1.80, 1.61], [0.25, 0.05], [0.85, 0.80], [0.0, 0.0]])
    >>> found = certified_plans(table_1, np.ones(2))
    >>> found.plans.tolist(), round(found.cost, 2), found.bound <= found.cost
    ([2, 1], 0.9, True)
    """
    pages = costs.shape[1]
    taken = np.ones(pages) if look_cost is None else look_cost
    assert len(costs) == 2 ** len(budgets), "a row for each plan"
    problem = Problem(costs, taken, np.asarray(budgets, np.float64))
    best = _best_prices(problem)
    plans = repaired(costs, taken, problem.budgets, problem.plans_at(best.at), best.at)
    return Certified(plans, float(costs[plans, np.arange(pages)].sum()), best.value, best.at)


def _best_prices(problem: Problem) -> Point:
    none = np.zeros(problem.days)
    few = problem if len(problem.look_cost) <= SAMPLE else problem.sample(SAMPLE)
    best = highest(few.fenced_at, none, SAMPLE_ROUNDS)
    if few is not problem:
        best = highest(problem.fenced_at, best.at, ROUNDS, TOLERANCE)
    return problem.bound_at(np.maximum(best.at, 0.0))
