"""Refresh plans for a million pages by Lagrangian relaxation: a price for each day, cheapest plans, a certified gap.

At prices w, page r follows the plan m with the least costs[m, r] + T_r (w . fetches of m). Whatever the prices, the sum
of these minus w . budgets is a lower bound for all plans within the budgets; the best prices maximize it. Plans at
those prices nearly meet the budgets; a few pages, those that lose least, are changed until they do. The excess over the
bound is the gap, and the optimum is within it.

Reference: B. Brewington, *Optimal observation with WWW applications*, 1999, section 2.3.3 (the problem; its methods do
not reach this far); M. Held, R. Karp, *The traveling-salesman problem and minimum spanning trees*, 1970 (such bounds).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from vedette.policy import Floats, Ints
from vedette.refresh.outlook import plan_matrix

# Quasi-Newton steps (BFGS) with a backtracking line search: it also works where the slope jumps, as it does for a
# minimum of many straight lines. Reference: A. Lewis, M. Overton, *Nonsmooth optimization via quasi-Newton methods*,
# Mathematical Programming 141, 2013.


TRIES = 14
# The share of the predicted gain that a step must achieve, and the share of the slope it must use up.
ENOUGH_RISE, ENOUGH_SLOPE = 1e-4, 0.5
SMALL = 1e-10


class Point(NamedTuple):
    """A point of a concave function: its position, its value, and a slope with f(y) <= value + slope . (y - at)."""

    at: Floats
    value: float
    slope: Floats


def maximize(function: Callable[[Floats], Point], start: Floats, rounds: int, tolerance: float = SMALL) -> Point:
    """Maximize a concave function (the Lagrangian bound) within ``rounds`` steps; stop when gains become negligible.

    >>> tent = lambda x: Point(x, -abs(float(x[0]) - 3.0), -np.sign(x - 3.0))
    >>> maximize(tent, np.zeros(1), rounds=50).at.round(6).tolist()
    [3.0]
    """
    here = best = function(start)
    # Steps of length 1 along the first slope: prices are of that size if costs count days.
    curve: Floats = np.eye(len(here.at)) / max(float(np.linalg.norm(here.slope)), SMALL)
    for _ in range(rounds):
        way = curve @ here.slope
        if float(here.slope @ way) <= tolerance * max(abs(here.value), 1.0):
            break
        there = _line_search(function, here, way)
        best = max(best, there, key=lambda point: point.value)
        curve = _update_curvature(curve, there.at - here.at, here.slope - there.slope)
        here = there
    return best


def _line_search(function: Callable[[Floats], Point], here: Point, way: Floats) -> Point:
    low, high, step = 0.0, np.inf, 1.0
    promised = float(here.slope @ way)
    there = here
    for _ in range(TRIES):
        there = function(here.at + step * way)
        if there.value < here.value + ENOUGH_RISE * step * promised:
            high = step
        elif float(there.slope @ way) > ENOUGH_SLOPE * promised:
            low = step
        else:
            break
        step = (low + high) / 2 if high < np.inf else 2 * low
    return there


def _update_curvature(curve: Floats, moved: Floats, fallen: Floats) -> Floats:
    """Compute the BFGS update of the inverse curvature; unchanged if the slope did not fall along the step."""
    along = float(moved @ fallen)
    if along <= SMALL * float(np.linalg.norm(moved)) * float(np.linalg.norm(fallen)):
        return curve
    turn = np.eye(len(moved)) - np.outer(moved, fallen) / along
    bent: Floats = turn @ curve @ turn.T + np.outer(moved, moved) / along
    return bent


def budget_used(plans: Ints, look_cost: Floats, days: int) -> Floats:
    """Compute how much of each day's budget refresh plans use."""
    spent: Floats = np.bincount(plans, look_cost, 2**days).astype(np.float64) @ plan_matrix(days)
    return spent


def repair_plans(costs: Floats, look_cost: Floats, budgets: Floats, plans: Ints, prices: Floats) -> Ints:
    """Repair refresh plans to meet the daily budgets: remove fetches on days over budget, then fill free capacity."""
    plans = plans.copy()
    for day in range(len(budgets)):
        _remove_looks(costs, look_cost, budgets, plans, prices, day)
    for _ in range(2):
        for day in np.argsort(-prices, kind="stable").tolist():
            _add_looks(costs, look_cost, budgets, plans, day)
    return plans


def _remove_looks(costs: Floats, look_cost: Floats, budgets: Floats, plans: Ints, prices: Floats, day: int) -> None:
    """Remove a day's fetches until it is within budget; a page moves to its best subplan."""
    excess = budget_used(plans, look_cost, len(budgets))[day] - budgets[day]
    if excess <= 0:
        return
    pages = np.flatnonzero(plans >> day & 1)
    to, loss = _best_subplan(costs, look_cost, plans, prices, pages, day)
    order = np.argsort(loss / look_cost[pages], kind="stable")
    freed = np.cumsum(look_cost[pages[order]])
    gone = order[: int(np.searchsorted(freed, excess)) + 1]
    plans[pages[gone]] = to[gone]


def _best_subplan(
    costs: Floats, look_cost: Floats, plans: Ints, prices: Floats, pages: Ints, day: int
) -> tuple[Ints, Floats]:
    """Find each page's cheapest subplan without a day's fetch at the prices, and the page's loss."""
    price = plan_matrix(len(prices)) @ prices
    own = plans[pages]
    least, to = np.full(len(pages), np.inf), np.zeros(len(pages), np.int64)
    for plan in range(len(costs)):
        if not plan >> day & 1:
            cost = costs[plan, pages] + price[plan] * look_cost[pages]
            better = ((plan & ~own) == 0) & (cost < least)
            least[better], to[better] = cost[better], plan
    return to, least - costs[own, pages] - price[own] * look_cost[pages]


def _add_looks(costs: Floats, look_cost: Floats, budgets: Floats, plans: Ints, day: int) -> None:
    """Add fetches on a day, to the pages that gain most for their cost, as far as the budget allows."""
    room = budgets[day] - budget_used(plans, look_cost, len(budgets))[day]
    pages = np.flatnonzero((~(plans >> day) & 1 == 1) & (look_cost <= room))
    more = plans[pages] | (1 << day)
    gain = (costs[plans[pages], pages] - costs[more, pages]) / look_cost[pages]
    order = np.argsort(-gain, kind="stable")
    order = order[gain[order] > 0]
    fitting = int(np.searchsorted(np.cumsum(look_cost[pages[order]]), room, side="right"))
    plans[pages[order[:fitting]]] |= 1 << day


# Pages at a time, so that all of their plans fit into the CPU cache.
CHUNK = 4_096
# Prices are first optimized for this many pages, which is quick, and then for all.
SAMPLE = 20_000
SAMPLE_ROUNDS, ROUNDS = 120, 12
# For all pages the bound is optimized only up to this fraction: a thousandth of the required gap.
TOLERANCE = 1e-6


class CertifiedPlans(NamedTuple):
    """Refresh plans with their cost, the Lagrangian lower bound, and each day's price of a fetch per unit of cost."""

    plans: Ints
    cost: float
    bound: float
    prices: Floats

    @property
    def gap(self) -> float:
        """Return the certified gap: the fraction of the bound by which the refresh plans may cost too much."""
        return (self.cost - self.bound) / self.bound if self.bound > 0 else max(self.cost - self.bound, 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class PlanProblem:
    """A refresh planning problem: costs by plan and page, the cost of fetching each page, and the daily budgets."""

    costs: Floats
    look_cost: Floats
    budgets: Floats

    @property
    def days(self) -> int:
        """Return the number of days of the planning problem."""
        return len(self.budgets)

    def bound_at(self, prices: Floats) -> Point:
        """Compute the Lagrangian bound at these prices, with its slope: what the cheapest plans spend over budget."""
        value, spent = 0.0, np.zeros(self.days)
        looks = plan_matrix(self.days)
        for start in range(0, len(self.look_cost), CHUNK):
            plans, least = self._cheapest_plans(prices, start)
            value += float(least.sum())
            spent += np.bincount(plans, self.look_cost[start : start + CHUNK], 2**self.days) @ looks
        return Point(prices, value - float(prices @ self.budgets), spent - self.budgets)

    def penalized_bound_at(self, prices: Floats) -> Point:
        """Compute the Lagrangian bound with a penalty for negative prices, at which it would not be a bound."""
        inside = self.bound_at(prices)
        fence = float(self.budgets.max(initial=0.0)) + 1.0
        value = inside.value + fence * float(np.minimum(prices, 0.0).sum())
        return Point(prices, value, inside.slope + fence * (prices < 0))

    def plans_at(self, prices: Floats) -> Ints:
        """Return the cheapest plan of each page at these daily prices."""
        starts = range(0, len(self.look_cost), CHUNK)
        parts = [self._cheapest_plans(prices, start)[0] for start in starts]
        return np.concatenate([np.zeros(0, np.int64), *parts])

    def sample(self, pages: int) -> "PlanProblem":
        """Sample this many pages of the planning problem, evenly spread, with their share of the budgets."""
        every = max(len(self.look_cost) // pages, 1)
        some = self.look_cost[::every].copy()
        share = some.sum() / self.look_cost.sum()
        return PlanProblem(np.ascontiguousarray(self.costs[:, ::every]), some, self.budgets * share)

    def _cheapest_plans(self, prices: Floats, start: int) -> tuple[Ints, Floats]:
        look_cost = self.look_cost[start : start + CHUNK]
        costs = self.costs[:, start : start + CHUNK]
        least, plans = costs[0].copy(), np.zeros(len(look_cost), np.int64)
        for plan, price in enumerate((plan_matrix(self.days) @ prices).tolist()):
            cost = costs[plan] + price * look_cost
            better = cost < least
            np.copyto(least, cost, where=better)
            np.copyto(plans, plan, where=better)
        return plans, least


def solve_certified(costs: Floats, budgets: Floats, look_cost: Floats | None = None) -> CertifiedPlans:
    """Solve for refresh plans within daily budgets by Lagrangian relaxation, with a certified gap.

    ``look_cost`` is the cost of fetching each page in a day's budget, 1 by default.

    >>> table_1 = np.array([[1.80, 1.61], [0.25, 0.05], [0.85, 0.80], [0.0, 0.0]])
    >>> found = solve_certified(table_1, np.ones(2))
    >>> found.plans.tolist(), round(found.cost, 2), found.bound <= found.cost
    ([2, 1], 0.9, True)
    """
    pages = costs.shape[1]
    look_costs = np.ones(pages) if look_cost is None else look_cost
    assert len(costs) == 2 ** len(budgets), "a row for each plan"
    problem = PlanProblem(costs, look_costs, np.asarray(budgets, np.float64))
    best = _find_prices(problem)
    plans = repair_plans(costs, look_costs, problem.budgets, problem.plans_at(best.at), best.at)
    return CertifiedPlans(plans, float(costs[plans, np.arange(pages)].sum()), best.value, best.at)


def _find_prices(problem: PlanProblem) -> Point:
    none = np.zeros(problem.days)
    few = problem if len(problem.look_cost) <= SAMPLE else problem.sample(SAMPLE)
    best = maximize(few.penalized_bound_at, none, SAMPLE_ROUNDS)
    if few is not problem:
        best = maximize(problem.penalized_bound_at, best.at, ROUNDS, TOLERANCE)
    return problem.bound_at(np.maximum(best.at, 0.0))
