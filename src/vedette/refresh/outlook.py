"""Outlook of n-day refresh plans: the expected days on which a page is out of date, later days discounted."""

from typing import NamedTuple

import numpy as np

from vedette.policy import Floats, Ints
from vedette.refresh.models.age_chain import AgeChain


class Outlook(NamedTuple):
    """The probability that pages are out of date at the end of each coming day, with and without a fetch.

    ``unseen[t]`` is for day t if no plan fetches until then, ``seen[s, t]`` for day t if the last fetch was on day s,
    before t; a row for each, a column for each page. The result of a fetch is unknown when plans are made, so ``seen``
    is an expectation over what may be found, whatever fetches came before it.
    """

    unseen: Floats
    seen: Floats

    @property
    def days(self) -> int:
        """The number of days that the outlook covers."""
        return len(self.unseen)


def compute_outlook(chain: AgeChain, age: Ints, steps: Ints, days: int) -> Outlook:
    """Compute the outlook of pages of one age chain, seen at an age ``steps`` before the end of day 0.

    Equations 26, 27 and 30 of Brewington.

    In eq. 30 the k-th power is right, as it applies to the distribution of ages; its column 1 is the reset column.
    """
    unseen = np.array([chain.change_chance(age, steps + day) for day in range(days)])
    seen = np.zeros((days, days, len(age)))
    ages = np.arange(chain.last_age + 1)
    gaps = np.array([chain.change_chance(ages, gap) for gap in range(days)])
    for at in np.unique(steps).tolist():
        rows = np.flatnonzero(steps == at)
        reached = np.linalg.matrix_power(chain.matrix(), at)[np.minimum(age[rows], chain.last_age)]
        for day in range(days):
            seen[day, day + 1 :, rows] = reached @ gaps[1 : days - day].T
            reached = reached @ chain.matrix()
    return Outlook(unseen, seen)


def memoryless_outlook(reset: Floats, steps: Ints, days: int) -> Outlook:
    """Compute the outlook of memoryless pages, each with its own change probability per step."""
    unseen = np.array([1 - (1 - reset) ** (steps + day) for day in range(days)])
    seen = np.zeros((days, days, len(reset)))
    for day in range(days):
        for later in range(day + 1, days):
            seen[day, later] = 1 - (1 - reset) ** (later - day)
    return Outlook(unseen, seen)


def plan_matrix(days: int) -> Ints:
    """Return all refresh plans of ``days`` days as a matrix: a row per plan, a column per day, 1 for a fetch.

    >>> plan_matrix(2).tolist()
    [[0, 0], [1, 0], [0, 1], [1, 1]]
    """
    looks: Ints = (np.arange(2**days)[:, None] >> np.arange(days)) & 1
    return looks


def plan_costs(outlook: Outlook, discount: float = 1.0) -> Floats:
    """Compute the discounted staleness cost of each refresh plan (row) for each page (column).

    A day on which a page is fetched costs nothing.

    >>> table = Outlook(np.array([[0.85, 0.80], [0.95, 0.81]]), np.array([[[0, 0], [0.25, 0.05]], np.zeros((2, 2))]))
    >>> plan_costs(table)[:, 0].round(2).tolist()
    [1.8, 0.25, 0.85, 0.0]
    """
    costs = np.zeros((2**outlook.days, outlook.unseen.shape[1]))
    for plan, looks in enumerate(plan_matrix(outlook.days).tolist()):
        last = -1
        for day, look in enumerate(looks):
            if look:
                last = day
            else:
                stale = outlook.unseen[day] if last < 0 else outlook.seen[last, day]
                costs[plan] += discount**day * stale
    return costs


def format_plan(plan: int, days: int) -> str:
    """Format a refresh plan as Brewington prints it: O for a fetch, X for none.

    >>> format_plan(2, days=3)
    'XOX'
    """
    return "".join("O" if plan >> day & 1 else "X" for day in range(days))
