"""How near to the best are plans of five days for a million pages, how long do they take, and are small ones exact?

First small sets of pages, drawn at random, for two, three and four days: our own exact solver, the flow for two days
and HiGHS must find plans of the same cost, and the certified bound must lie below. Without scipy this is left out.
Then a million pages, half without memory and half with age chains: equal costs and unequal ones, at several budgets.
Times are CPU seconds; memory is the peak of the process. The benchmark fails if two exact solvers differ,
or if a gap is a thousandth or more. The last line is one JSON object.

    python bench/plans.py [--pages N] [--days N] [--sets N] [--budgets PART_OF_PAGES_A_DAY ...]
"""

import argparse
import json
import resource
import sys
from importlib.util import find_spec
from time import process_time
from typing import Any, NamedTuple

import numpy as np

from vedette.lab.baselines.models.age_chain import AgeChain, compute_outlook
from vedette.lab.baselines.plans.exact import best_plans
from vedette.lab.baselines.plans.lagrange import solve_certified
from vedette.lab.baselines.plans.two_days import best_two_days, cost_of
from vedette.lab.core.extras import import_extra
from vedette.policy import Floats, Ints, rng_for
from vedette.refresh.outlook import plan_costs, plan_matrix

WIDEST_GAP = 1e-3
DISCOUNT = 0.95
CHAINS, LAST_AGE = 200, 30
SAME = 1e-6


class Solution(NamedTuple):
    """The plan of each page, and their total cost."""

    plans: Ints
    cost: float


def solve_plans(costs: Floats, budgets: Floats, look_cost: Floats | None = None) -> Solution:
    """The cheapest plans within daily budgets, to the solver's tolerance; costs as ``refresh.plans`` has them."""
    found = _solve(costs, budgets, look_cost, whole=True)
    plans: Ints = found.x.reshape(costs.shape).argmax(axis=0)
    return Solution(plans, float(costs[plans, np.arange(len(plans))].sum()))


def solve_relaxed_cost(costs: Floats, budgets: Floats, look_cost: Floats | None = None) -> float:
    """The least cost where a page may follow parts of several plans; for three days and more it can be too low."""
    return float(_solve(costs, budgets, look_cost, whole=False).fun)


def _solve(costs: Floats, budgets: Floats, look_cost: Floats | None, *, whole: bool) -> Any:  # noqa: ANN401 - the solver's own kind
    optimize, sparse = import_extra("exact plans are found with", "scipy.optimize", "scipy.sparse")

    plans, pages = costs.shape
    days = len(budgets)
    taken = np.ones(pages) if look_cost is None else look_cost
    each_has_one = sparse.kron(np.ones((1, plans)), sparse.eye_array(pages))
    spent = sparse.kron(plan_matrix(days).T.astype(np.float64), taken[None, :])
    found = optimize.milp(
        costs.ravel(),
        integrality=np.full(costs.size, int(whole)),
        bounds=optimize.Bounds(0, 1),
        constraints=[
            optimize.LinearConstraint(each_has_one, np.ones(pages), np.ones(pages)),
            optimize.LinearConstraint(spent, np.full(days, -np.inf), budgets),
        ],
        options={"mip_rel_gap": 0.0},
    )
    assert found.success, found.message
    return found


class Line(NamedTuple):
    """A row of the table."""

    budget: float
    costs: str
    seconds: float
    gap: float
    gap_of_saved: float

    def __str__(self) -> str:
        return f"{self.budget:>8.0%} {self.costs:>9} {self.seconds:>9.1f} {self.gap:>12.2e} {self.gap_of_saved:>14.2e}"


def small_set(number: int) -> tuple[Floats, tuple[int, ...]]:
    """Up to twelve pages with chains of their own, and the budgets of two, three or four days."""
    rng = rng_for(number, "bench/plans/small")
    days, pages = 2 + number % 3, int(rng.integers(1, 13))
    columns = [
        plan_costs(
            compute_outlook(AgeChain(rng.random(5) ** 2), rng.integers(0, 5, 1), rng.integers(1, 6, 1), days), 0.9
        )
        for _ in range(pages)
    ]
    return np.hstack(columns), tuple(rng.integers(0, 4, days).tolist())


def wrong_sets(sets: int) -> int:
    """How many small sets have two optima, or a bound above the optimum."""
    wrong = 0
    for number in range(sets):
        costs, budgets = small_set(number)
        limits = np.array(budgets, np.float64)
        solved, ours = solve_plans(costs, limits).cost, cost_of(costs, best_plans(costs, budgets))
        found = [ours, solve_certified(costs, limits).bound]
        if len(budgets) == 2:
            found.append(cost_of(costs, best_two_days(costs, (budgets[0], budgets[1]))))
        wrong += not (found[1] <= solved + SAME and all(abs(each - solved) <= SAME for each in (found[0], *found[2:])))
    return wrong


def table(pages: int, days: int) -> Floats:
    """What every plan costs each of many pages; a row for each plan, which is what takes the memory."""
    rng = rng_for(1, "bench/plans/large")
    steps, ages = rng.geometric(0.1, pages), np.arange(LAST_AGE + 1)
    level = np.minimum(rng.lognormal(-3, 1.5, CHAINS), 0.99)
    parts = []
    for number, rows in enumerate(np.array_split(np.arange(pages), CHAINS)):
        # Half of the chains have no memory; in the others a change becomes likelier with age.
        growth = 1.0 if number % 2 else 1 - np.exp(-(1 + ages) / 7)
        chain = AgeChain(np.broadcast_to(level[number] * growth, len(ages)).copy())
        seen_for = np.minimum(steps[rows], LAST_AGE)
        age = rng.integers(0, LAST_AGE + 1, len(rows))
        parts.append(plan_costs(compute_outlook(chain, age, seen_for, days), DISCOUNT))
    return np.hstack(parts)


def measured(costs: Floats, budget: float, look_cost: Floats | None, days: int) -> Line:
    """One run: plans within a daily budget that is a part of what looking at all pages takes."""
    everything = costs.shape[1] if look_cost is None else float(look_cost.sum())
    started = process_time()
    found = solve_certified(costs, np.full(days, budget * everything), look_cost)
    seconds = process_time() - started
    saved = float(costs[0].sum()) - found.cost
    name = "equal" if look_cost is None else "unequal"
    return Line(budget, name, seconds, found.gap, (found.cost - found.bound) / saved)


def main() -> int:
    """Small sets, then the large one."""
    asked = _asked()
    sets, wrong = (asked.sets if find_spec("scipy") else 0), 0
    if sets:
        started = process_time()
        wrong = wrong_sets(sets)
        print(f"{sets:,} small sets against HiGHS: {wrong} differ, {process_time() - started:.0f} s")
    else:
        print("small sets: left out, as scipy is not here")
    started = process_time()
    costs = table(asked.pages, asked.days)
    made_s = process_time() - started
    print(f"{asked.pages:,} pages, {asked.days} days: a table of {len(costs)} plans in {made_s:.1f} s")
    print(f"{'budget':>8} {'costs':>9} {'seconds':>9} {'gap':>12} {'gap of saved':>14}")
    look_cost = rng_for(1, "bench/plans/costs").lognormal(0, 0.7, asked.pages)
    lines = []
    for budget in asked.budgets:
        for taken in (None, look_cost):
            lines.append(measured(costs, budget, taken, asked.days))
            print(lines[-1], flush=True)
    told = {
        "pages": asked.pages,
        "days": asked.days,
        "gap": max(line.gap for line in lines),
        "gap_of_saved": max(line.gap_of_saved for line in lines),
        "seconds": round(max(line.seconds for line in lines), 1),
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "small_sets": sets,
        "small_sets_wrong": wrong,
    }
    print(json.dumps(told))
    return int(wrong > 0 or told["gap"] >= WIDEST_GAP)


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pages", type=int, default=1_000_000)
    parser.add_argument("--days", type=int, default=5)
    parser.add_argument("--sets", type=int, default=1_000)
    parser.add_argument("--budgets", type=float, nargs="+", default=[0.03, 0.1, 0.3])
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
