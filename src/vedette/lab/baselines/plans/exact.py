"""Exact n-day refresh plans for few pages by dynamic programming: page after page, for every remaining budget."""

from math import prod

import numpy as np

from vedette.policy import Floats, Ints
from vedette.refresh.outlook import plan_matrix

# Pages times budgets times plans, above which it takes too long.
MAX_STEPS = 200_000_000


def best_plans(costs: Floats, budgets: tuple[int, ...], look_cost: Ints | None = None) -> Ints:
    """Find the exact best n-day plan of each page, for costs by plan and page, and daily budgets of whole numbers.

    ``look_cost`` is the cost of fetching each page in a day's budget, 1 by default. The least cost of the pages so far
    is stored for every budget that may have been spent, so the effort grows with the product of the budgets: useful for
    small sets, and to check faster methods.

    For two days a flow finds it faster (``two_days``). From three days on the linear relaxation is not always integral,
    so no flow does (the paper hopes for one).

    >>> table_1 = np.array([[1.80, 1.61], [0.25, 0.05], [0.85, 0.80], [0.0, 0.0]])
    >>> best_plans(table_1, (1, 1)).tolist()
    [2, 1]
    """
    pages = costs.shape[1]
    look_costs = np.ones(pages, np.int64) if look_cost is None else look_cost
    assert len(costs) == 2 ** len(budgets), "a row for each plan"
    assert look_costs.min(initial=1) >= 1, "a look takes something"
    assert pages * prod(budget + 1 for budget in budgets) * len(costs) <= MAX_STEPS, "too large to be exact"
    looks = plan_matrix(len(budgets))
    # least[b]: the cost of the pages so far if at most b is spent on them.
    least = np.zeros([budget + 1 for budget in budgets])
    choices = []
    for page in range(pages):
        after = np.array(
            [costs[plan, page] + _shift_budget(least, looks[plan] * look_costs[page]) for plan in range(len(costs))]
        )
        choices.append(after.argmin(axis=0))
        least = after.min(axis=0)
    return _backtrack(choices, looks, look_costs, budgets)


def _shift_budget(least: Floats, looks: Ints) -> Floats:
    """Shift the table of least costs by the budget that a plan's fetches take; infinite if it does not suffice."""
    before = np.full(least.shape, np.inf)
    remaining = [max(size - int(take), 0) for size, take in zip(least.shape, looks, strict=True)]
    to = tuple(slice(size - keep, None) for size, keep in zip(least.shape, remaining, strict=True))
    before[to] = least[tuple(slice(keep) for keep in remaining)]
    return before


def _backtrack(choices: list[Ints], looks: Ints, look_costs: Ints, budgets: tuple[int, ...]) -> Ints:
    left = np.array(budgets)
    plans = np.zeros(len(choices), np.int64)
    for page in reversed(range(len(choices))):
        plans[page] = choices[page][tuple(left)]
        left -= looks[plans[page]] * look_costs[page]
    return plans
