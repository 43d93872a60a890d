"""Exact two-day refresh plans as a min-cost flow (Figure 2).

For each number k of pages that are fetched on both days, the numbers of pages under the other plans follow from the
budgets, and the rest is a transport problem from pages to four plans, whose solutions are integral. From one k to the
next a solution is repaired, not rebuilt: a page moves from OX to OO and one from XO to XX, each by a cheapest path. The
cost is convex in k, so the search ends when it starts to rise.
"""

from collections.abc import Iterator
from itertools import pairwise, permutations

import numpy as np

from vedette.policy import Floats, Ints

XX, OX, XO, OO = range(4)
# Each plan, and all its subplans.
_PARTS = ((XX,), (XX, OX), (XX, XO), (XX, OX, XO, OO))
# A smaller rise is rounding.
_ROUNDING = 1e-12


def best_two_days(costs: Floats, budgets: tuple[int, int]) -> Ints:
    """Find the best two-day plan of each page by min-cost flow, for costs by plan and page, and daily budgets.

    >>> table_1 = np.array([[1.80, 1.61], [0.25, 0.05], [0.85, 0.80], [0.0, 0.0]])
    >>> best_two_days(table_1, (1, 1)).tolist()
    [2, 1]
    """
    # A harmful fetch may be left out: a plan counts as its best subplan, and budgets are always spent.
    parts = np.array([np.array(part)[costs[list(part)].argmin(axis=0)] for part in _PARTS])
    cheapest = np.take_along_axis(costs, parts, axis=0)
    pages = costs.shape[1]
    first, second = (min(budget, pages) for budget in budgets)
    best: Ints = parts[_cheapest_flow(cheapest, first, second), np.arange(pages)]
    return best


def cost_of(costs: Floats, plans: Ints) -> float:
    """Sum the costs of all pages under their two-day plans."""
    return float(costs[plans, np.arange(len(plans))].sum())


def _cheapest_flow(costs: Floats, first: int, second: int) -> Ints:
    best, best_cost = None, np.inf
    for plans in _flows(costs, first, second):
        cost = cost_of(costs, plans)
        if best is not None and cost > best_cost + _ROUNDING:
            break
        best, best_cost = plans.copy(), min(cost, best_cost)
    assert best is not None, "some number of pages can be looked at twice"
    return best


def _flows(costs: Floats, first: int, second: int) -> Iterator[Ints]:
    """Yield the best two-day plans for each number of pages under OO, from the smallest on; one array, updated."""
    pages = costs.shape[1]
    plans = np.full(pages, XX)
    twice = max(first + second - pages, 0)
    for to, count in ((OO, twice), (OX, first - twice), (XO, second - twice)):
        for _ in range(count):
            _move(costs, plans, XX, to)
    yield plans
    for _ in range(min(first, second) - twice):
        _move(costs, plans, OX, OO)
        _move(costs, plans, XO, XX)
        yield plans


def _move(costs: Floats, plans: Ints, start: int, end: int) -> None:
    """Move one page from a two-day plan to another, by the cheapest chain of pages that change plans."""
    price, mover = _cheapest_moves(costs, plans)
    way = min(_PATHS[start, end], key=lambda way: sum(price[step] for step in pairwise(way)))
    movers = [(mover[step], step[1]) for step in pairwise(way)]
    for page, plan in movers:
        plans[page] = plan


def _cheapest_moves(costs: Floats, plans: Ints) -> tuple[Floats, Ints]:
    """Find the cheapest page to move from each two-day plan to each other, and the cost of the move."""
    price, mover = np.full((4, 4), np.inf), np.full((4, 4), -1)
    for start in range(4):
        pages = np.flatnonzero(plans == start)
        if len(pages):
            rise = costs[:, pages] - costs[start, pages]
            at = rise.argmin(axis=1)
            price[start], mover[start] = rise[np.arange(4), at], pages[at]
    return price, mover


def _list_paths(start: int, end: int) -> list[tuple[int, ...]]:
    """List all paths between two plans of the flow that visit none twice."""
    between = [plan for plan in range(4) if plan not in {start, end}]
    return [(start, *over, end) for many in range(3) for over in permutations(between, many)]


_PATHS = {(start, end): _list_paths(start, end) for start, end in permutations(range(4), 2)}
