"""Outlook of n-day refresh plans: the expected days on which a page is out of date, later days discounted."""

from typing import NamedTuple

import numpy as np

from vedette.policy import Floats, Ints


class Outlook(NamedTuple):
    """The probability that pages are out of date at the end of each coming day, with and without a fetch.

    ``unseen[t]`` is for day t if no plan fetches until then, ``seen[s, t]`` for day t if the last fetch was on day s,
    before t; one row each, one column per page. The result of a fetch is unknown when plans are made, so ``seen`` is an
    expectation over possible results, whatever fetches came before it.
    """

    unseen: Floats
    seen: Floats

    @property
    def days(self) -> int:
        """The number of days that the outlook covers."""
        return len(self.unseen)


def plan_matrix(days: int) -> Ints:
    """Return all refresh plans of ``days`` days as a matrix: one row per plan, one column per day, 1 for a fetch.

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
