"""Our own solvers of plans, compared with HiGHS."""

import os

import numpy as np
import pytest
from bench.plans import solve_plans, solve_relaxed_cost
from tests.lab.baselines.plans.small_sets import any_set, chain_set

from vedette.lab.baselines.plans.exact import best_plans
from vedette.lab.baselines.plans.lagrange import solve_certified
from vedette.lab.baselines.plans.two_days import best_two_days, cost_of
from vedette.policy import rng_for

pytest.importorskip("scipy", reason="the witness is part of the extra lab")
SETS = 1_000 if os.environ.get("VEDETTE_PROVE") == "1" else 60


def test_small_sets_have_one_optimum() -> None:
    """HiGHS, the exact solver and, for two days, the flow agree; the price bound equals that of the relaxation."""
    for number in range(SETS):
        days, pages = 2 + number % 3, 1 + number % 11
        costs = (chain_set if number % 2 else any_set)(number, days, pages)
        budgets = tuple(rng_for(number, "test/budgets").integers(0, 4, days).tolist())
        limits = np.array(budgets, float)
        solved = solve_plans(costs, limits).cost
        assert cost_of(costs, best_plans(costs, budgets)) == pytest.approx(solved, abs=1e-6)
        if days == 2:
            assert cost_of(costs, best_two_days(costs, (budgets[0], budgets[1]))) == pytest.approx(solved, abs=1e-6)
        bound = solve_certified(costs, limits).bound
        assert bound == pytest.approx(solve_relaxed_cost(costs, limits), abs=1e-6)
        assert bound <= solved + 1e-6


def test_from_three_days_on_the_relaxation_is_not_whole() -> None:
    """The paper hopes for a flow for n days, but some sets of three days cost more than their relaxation."""
    differing = 0
    for number in range(40):
        costs, limits = any_set(number, 3, 6), np.array([2.0, 2.0, 2.0])
        differing += solve_plans(costs, limits).cost > solve_relaxed_cost(costs, limits) + 1e-6
    assert differing > 0
