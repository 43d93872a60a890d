"""Small sets of pages, each with its own chain, and the cost of every possible plan."""

from itertools import product

import numpy as np

from vedette.lab.baselines.models.age_chain import AgeChain, compute_outlook
from vedette.policy import Floats, rng_for
from vedette.refresh.outlook import plan_costs, plan_matrix


def chain_set(number: int, days: int, pages: int, discount: float = 1.0) -> Floats:
    """Return the costs of pages with random chains, ages and last polls."""
    rng = rng_for(number, "test/plans")
    columns = [
        plan_costs(
            compute_outlook(AgeChain(rng.random(5) ** 2), rng.integers(0, 5, 1), rng.integers(1, 6, 1), days), discount
        )
        for _ in range(pages)
    ]
    return np.hstack(columns)


def any_set(number: int, days: int, pages: int) -> Floats:
    """Return costs that do not follow from a chain; polls may even do harm."""
    return rng_for(number, "test/plans/any").random((2**days, pages))


def least_cost(costs: Floats, budgets: tuple[int, ...], taken: list[int]) -> float:
    """Return the cost of the best combination of plans within the budgets."""
    looks = plan_matrix(len(budgets))
    best = np.inf
    for plans in product(range(len(costs)), repeat=costs.shape[1]):
        spent = sum(looks[plan] * taken[page] for page, plan in enumerate(plans))
        if np.all(spent <= np.array(budgets)):
            best = min(best, sum(costs[plan, page] for page, plan in enumerate(plans)))
    return float(best)
