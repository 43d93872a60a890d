"""Plans of n days: their costs, the paper's example, exact optima computed in two ways, and a certified gap."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.lab.baselines.plans.small_sets import any_set, chain_set, least_cost

from vedette.lab.baselines.models.age_chain import AgeChain, compute_outlook, memoryless_chain
from vedette.lab.baselines.plans.exact import best_plans
from vedette.lab.baselines.plans.lagrange import budget_used, solve_certified
from vedette.lab.baselines.plans.two_days import best_two_days, cost_of
from vedette.policy import Floats, Ints, rng_for
from vedette.refresh.outlook import Outlook, plan_costs

numbers = st.integers(0, 2**32)
MakesSet = Callable[[int, int, int], Floats]


def table_1() -> Floats:
    """Pages A and B of the paper, with their probabilities."""
    unseen = np.array([[0.85, 0.80], [0.95, 0.81]])
    seen = np.zeros((2, 2, 2))
    seen[0, 1] = 0.25, 0.05
    return plan_costs(Outlook(unseen, seen))


def test_table_1_of_the_print() -> None:
    """With one poll a day: AB 1.05, BA 0.90, AA 1.61, BB 1.80."""
    costs = table_1()
    never, first, second, both = range(4)
    sequences = {"AB": [first, second], "BA": [second, first], "AA": [both, never], "BB": [never, both]}
    found = {name: round(cost_of(costs, np.array(plans)), 2) for name, plans in sequences.items()}
    assert found == {"AB": 1.05, "BA": 0.90, "AA": 1.61, "BB": 1.80}


def test_the_one_day_rule_starts_with_a_and_the_two_day_rule_with_b() -> None:
    """The page that most likely changed today is not the best for both days."""
    today = plan_costs(Outlook(np.array([[0.85, 0.80]]), np.zeros((1, 1, 2))))
    assert best_plans(today, (1,)).tolist() == [0b1, 0b0]
    for plans in (best_two_days(table_1(), (1, 1)), best_plans(table_1(), (1, 1))):
        assert plans.tolist() == [0b10, 0b01]  # A on the second day, B on the first


@given(st.lists(st.floats(0, 1), min_size=1, max_size=5), st.integers(0, 6), st.integers(1, 6))
def test_the_costs_of_the_print_are_those_of_the_outlook(resets: list[float], age: int, steps: int) -> None:
    """C_XX = 2 C_XO + P(i + k, i), and eq. 30 for C_OX: two ways to the same numbers."""
    chain = AgeChain(np.array(resets))
    by_outlook = plan_costs(compute_outlook(chain, np.array([age]), np.array([steps]), 2))[:, 0]
    xo = float(chain.change_chance(age, steps))
    first_change = float(chain.survival(age, steps)) * chain.resets[min(age + steps, chain.last_age)]
    ages = np.linalg.matrix_power(chain.matrix(), steps)[min(age, chain.last_age)]
    assert by_outlook == pytest.approx([2 * xo + first_change, float(ages @ chain.resets), xo, 0.0])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=5), st.integers(0, 6), st.integers(1, 6), st.integers(1, 5))
def test_a_look_more_never_costs_more(resets: list[float], age: int, steps: int, days: int) -> None:
    """A fetch never reduces knowledge, so spending a whole budget never hurts."""
    costs = plan_costs(compute_outlook(AgeChain(np.array(resets)), np.array([age]), np.array([steps]), days))[:, 0]
    for plan in range(2**days):
        assert all(costs[plan | 1 << day] <= costs[plan] + 1e-9 for day in range(days))


def test_a_discount_makes_later_days_count_less() -> None:
    """The day after tomorrow counts for the square of the factor."""
    outlook = compute_outlook(memoryless_chain(1.0, 0), np.array([0]), np.array([1]), 3)
    assert plan_costs(outlook, 0.5)[:, 0].tolist() == [1.75, 0.75, 1.25, 0.25, 1.5, 0.5, 1.0, 0.0]


def within(plans: Ints, budgets: Floats, taken: Floats) -> bool:
    """Check whether plans stay within the budgets."""
    return bool((budget_used(plans, taken, len(budgets)) <= budgets + 1e-9).all())


@pytest.mark.parametrize("make", [chain_set, any_set])
@settings(max_examples=20)
@given(number=numbers, days=st.integers(1, 3), pages=st.integers(1, 3), data=st.data())
def test_the_exact_solver_finds_the_best_of_all(
    make: MakesSet, number: int, days: int, pages: int, data: st.DataObject
) -> None:
    """It matches the best of all combinations of plans, with polls that cost 1 or 2."""
    costs = make(number, days, pages)
    budgets = tuple(data.draw(st.lists(st.integers(0, 3), min_size=days, max_size=days)))
    taken = data.draw(st.lists(st.integers(1, 2), min_size=pages, max_size=pages))
    plans = best_plans(costs, budgets, np.array(taken))
    assert within(plans, np.array(budgets, float), np.array(taken, float))
    assert cost_of(costs, plans) == pytest.approx(least_cost(costs, budgets, taken))


@pytest.mark.parametrize("make", [chain_set, any_set])
@settings(max_examples=40)
@given(number=numbers, pages=st.integers(1, 14), first=st.integers(0, 16), second=st.integers(0, 16))
def test_the_flow_is_exact_for_two_days(make: MakesSet, number: int, pages: int, first: int, second: int) -> None:
    """Figure 2 matches the exact solver, even if budgets differ or exceed the pages, or if polls do harm."""
    costs = make(number, 2, pages)
    plans = best_two_days(costs, (first, second))
    assert within(plans, np.array([first, second], float), np.ones(pages))
    assert cost_of(costs, plans) == pytest.approx(cost_of(costs, best_plans(costs, (first, second))))


@pytest.mark.parametrize("make", [chain_set, any_set])
@settings(max_examples=30)
@given(number=numbers, days=st.integers(2, 4), pages=st.integers(1, 9), data=st.data())
def test_the_truth_lies_within_the_certified_gap(
    make: MakesSet, number: int, days: int, pages: int, data: st.DataObject
) -> None:
    """The bound is never above the optimum; the plans are valid and never below it."""
    costs = make(number, days, pages)
    budgets = tuple(data.draw(st.lists(st.integers(0, 3), min_size=days, max_size=days)))
    found = solve_certified(costs, np.array(budgets, float))
    best = cost_of(costs, best_plans(costs, budgets))
    assert within(found.plans, np.array(budgets, float), np.ones(pages))
    assert found.bound <= best + 1e-9
    assert best <= found.cost + 1e-9
    assert found.cost == pytest.approx(cost_of(costs, found.plans))
    assert (found.prices >= 0).all()


@pytest.mark.parametrize("equal", [True, False])
def test_many_pages_have_a_small_gap(equal: bool) -> None:  # noqa: FBT001 - a case of the test
    """With 30,000 pages, the gap is far below a thousandth, because a budget cuts through few of them."""
    rng = rng_for(1, "test/plans/many")
    pages, days = 30_000, 4
    chains = [memoryless_chain(reset, 0) for reset in (rng.random(100) ** 3).tolist()]
    columns = [compute_outlook(chain, np.zeros(300, int), rng.integers(1, 30, 300), days) for chain in chains]
    costs = np.hstack([plan_costs(outlook, 0.9) for outlook in columns])
    taken = np.ones(pages) if equal else rng.lognormal(0, 0.7, pages)
    budgets = np.array([0.02, 0.1, 0.3, 0.05]) * taken.sum()
    found = solve_certified(costs, budgets, taken)
    assert within(found.plans, budgets, taken)
    assert 0 <= found.gap < 1e-4


def test_no_pages_need_no_plans() -> None:
    """Without pages, there are no plans and no costs."""
    assert solve_certified(np.zeros((4, 0)), np.ones(2)).plans.tolist() == []
    assert best_plans(np.zeros((4, 0)), (1, 1)).tolist() == []
    assert best_two_days(np.zeros((4, 0)), (1, 1)).tolist() == []
