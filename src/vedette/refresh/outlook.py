"""What a plan of n days costs a page: the expected number of days on which it is out of date, later days discounted."""

from typing import NamedTuple

import numpy as np

from vedette.policy import Floats, Ints
from vedette.refresh.models.age_chain import AgeChain


class Outlook(NamedTuple):
    """How probably pages are out of date at the end of coming days.

    ``unseen[t]`` is on day t where no plan looks until then, ``seen[s, t]`` on day t where the last look was on day s,
    before t; a row for each, a column for each page. What is learned by looking is unknown when plans are made, so
    ``seen`` is an expectation over what may be found, whatever looks were before it.
    """

    unseen: Floats
    seen: Floats

    @property
    def days(self) -> int:
        """How far ahead it goes."""
        return len(self.unseen)


def compute_outlook(chain: AgeChain, age: Ints, steps: Ints, days: int) -> Outlook:
    """Of pages of one chain that were seen at an age, so many steps before the end of day 0 (eq. 26, 27, 30).

    Of eq. 30 the k-th power is right, as it speaks of the distribution of ages; its column 1 is the reset column.
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
    """Of pages without memory, each with a probability of change of its own."""
    unseen = np.array([1 - (1 - reset) ** (steps + day) for day in range(days)])
    seen = np.zeros((days, days, len(reset)))
    for day in range(days):
        for later in range(day + 1, days):
            seen[day, later] = 1 - (1 - reset) ** (later - day)
    return Outlook(unseen, seen)


def plan_matrix(days: int) -> Ints:
    """A row for each plan, a column for each day: 1 where it looks.

    >>> plan_matrix(2).tolist()
    [[0, 0], [1, 0], [0, 1], [1, 1]]
    """
    looks: Ints = (np.arange(2**days)[:, None] >> np.arange(days)) & 1
    return looks


def plan_costs(outlook: Outlook, discount: float = 1.0) -> Floats:
    """A row for each plan, a column for each page; a day on which a page is looked at costs nothing.

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
    """A plan as the print writes it: O for a look, X for none.

    >>> format_plan(2, days=3)
    'XOX'
    """
    return "".join("O" if plan >> day & 1 else "X" for day in range(days))
