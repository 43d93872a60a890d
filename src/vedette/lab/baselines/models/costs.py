"""Fetches that differ in cost: which page to check first for changes, and how no page is forgotten.

To find a changed page as soon as possible, pages are checked in falling order of P / T: the chance that a page has
changed over the time that a check takes. Where a change is worth B, it is B P / T.

That alone forgets pages for ever: one that takes long, or seems never to change, stays behind others all its life. The
print argues that probabilities come to 1, where chance decides among equals (2.3.2), but they only tend to it. So a
page that has waited for a bound goes before all others. Then no page is forgotten, which can be shown: of those that
have waited that long, the longest wait goes first; a checked page waits from 0 again and cannot come before the others
again. So in a set of d pages none waits for more than ``bound`` + d turns, whatever the chances and costs are.

Reference: B. Brewington, *Optimal observation with WWW applications*, 1999, sections 2.3.1, 2.3.2 and 2.4.
"""

from dataclasses import dataclass

import numpy as np

from vedette.policy import Floats, Ints
from vedette.refresh.models.age_chain import AgeChain


def best_order(chance: Floats, time: Floats, benefit: Floats | None = None) -> Ints:
    """Return the best order to check pages of unequal cost: by falling P / T, or B P / T (eq. 36 and 38); ties by row.

    >>> best_order(np.array([0.9, 0.5, 0.45]), np.array([3.0, 1.0, 0.5])).tolist()
    [2, 1, 0]
    """
    rate = chance * (1.0 if benefit is None else benefit) / time
    return np.argsort(-rate, kind="stable")


def expected_search_time(order: Ints, chance: Floats, time: Floats, benefit: Floats | None = None) -> float:
    """Compute the expected time, checking pages in this order, until a change is found or all are checked.

    t = T1 + (1 - P1) [T2 + (1 - P2) [ … ]]. Eq. 35 and 37 multiply T1 by P1, as if a check in vain took no time; by
    them P / T would not be the best order. With benefits it is the time to a unit of benefit: T / B replaces T.

    >>> expected_search_time(np.array([0, 1]), np.array([0.5, 1.0]), np.array([2.0, 4.0]))
    4.0
    """
    takes = time if benefit is None else time / benefit
    still_looking = np.append(1.0, np.cumprod(1 - chance[order])[:-1])
    return float(still_looking[: len(order)] @ takes[order])


def with_floor(chain: AgeChain, least: float) -> AgeChain:
    """Return the age chain with a least chance of change at every age, so that no page is forgotten."""
    return AgeChain(np.maximum(chain.resets, least))


@dataclass(frozen=True, slots=True)
class TurnLimits:
    """Limits of a turn of checks: the budget, and after how many turns of waiting a page goes before all others."""

    budget: float
    bound: int


def choose_pages(worth: Floats, cost: Floats, waited: Ints, turn: TurnLimits, rng: np.random.Generator) -> Ints:
    """Choose the pages to check in this turn, in order: those that waited too long, then by worth over cost.

    ``worth`` is the chance of a change (C1), or the expected days out of date (C2); ties are broken at random. Checks
    are made until the next would not be within the budget. The first is always made: a page that costs more than a
    turn's budget would never be checked otherwise.

    >>> from vedette.policy import rng_for
    >>> worth, cost, waited = np.array([0.9, 0.2, 0.1]), np.ones(3), np.array([1, 4, 30])
    >>> choose_pages(worth, cost, waited, TurnLimits(budget=2, bound=30), rng_for(1, "refresh")).tolist()
    [2, 0]
    """
    overdue = np.where(waited >= turn.bound, waited, 0)
    order = np.lexsort([rng.random(len(cost)), -worth / cost, -overdue])
    within = int(np.searchsorted(np.cumsum(cost[order]), turn.budget, side="right"))
    return order[: max(within, 1)]
