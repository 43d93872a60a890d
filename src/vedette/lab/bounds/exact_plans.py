"""Plans of n days by a solver of whole-number programs (HiGHS): the witness that our own solvers are held against."""

from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from vedette.errors import UsageError
from vedette.policy import Floats, Ints
from vedette.refresh.outlook import plan_matrix


class Solution(NamedTuple):
    """The plan of each page, and what they cost together."""

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
    optimize, sparse = _import_scipy()
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


def _import_scipy() -> tuple[Any, Any]:
    try:
        return import_module("scipy.optimize"), import_module("scipy.sparse")
    except ImportError as error:
        raise UsageError('exact plans are found with scipy, which is not here: pip install "vedette[lab]"') from error
