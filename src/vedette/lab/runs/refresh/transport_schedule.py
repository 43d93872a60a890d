"""Transport schedule of fetches over weeks: how often to refresh each page, and in which weeks, evenly spaced.

In Pandey08 (4.7.1) a rule says how often each page should be fetched, and the transportation algorithm of Wolf02 says
when. There are two steps:

1. ``allocate_fetches``: how often. A page of weight w that changes at a rate L (per week) and is fetched x times at
   even distances in W weeks, with a current copy at the start, is fresh for (x + 1) / (L W) (1 - exp(-L W / (x + 1)))
   of the time. The increments decrease with x, so taking the largest ones first, over all pages, is optimal for any
   number of fetches. Fetches left over when no increment gains anything are spread evenly.
2. ``schedule_fetches``: when. The j-th of x fetches is ideally made at j (W + 1) / (x + 1), and has a cost that grows
with the square of the distance. Weeks are filled one after the other with the earliest ideal times. For costs of this
   kind (convex in the distance) that order is the cheapest of all transports. A page is not fetched twice in a week;
   then the next one in line moves up, and the page goes first a week later, which is no longer certain to be the
   cheapest. Of 1 500 random small cases (up to 5 pages, 8 weeks) it was in all but one.

Weeks are numbered from 1; W of them are given.
"""

import numpy as np

from vedette.policy import Floats, Ints


def allocate_fetches(rate: Floats, weight: Floats, weeks: int, room: int) -> Ints:
    """Allocate the number of refreshes of each page over all weeks, ``room`` fetches per week.

    >>> allocate_fetches(np.array([0.1, 0.1, 50.0]), np.array([1.0, 3.0, 1.0]), weeks=4, room=1).tolist()
    [1, 3, 0]
    """
    steps = np.diff(_expected_freshness(rate, np.arange(weeks + 1.0)[:, None], weeks), axis=0) * weight
    # Increments of a page come in order even if rounding makes two of them equal or swaps them.
    steps = np.minimum.accumulate(np.maximum(steps, 0.0), axis=0)
    best = np.argsort(-steps, axis=None, kind="stable")[: room * weeks]
    return np.bincount(best % len(rate), minlength=len(rate))


def _expected_freshness(rate: Floats, fetches: Floats, weeks: int) -> Floats:
    """Compute the expected freshness of a page, as a share of the time; 1 if it does not change."""
    changes = np.maximum(rate * weeks / (fetches + 1), 1e-12)
    fresh: Floats = -np.expm1(-changes) / changes
    return fresh


def schedule_fetches(fetches: Ints, weeks: int, room: int) -> list[Ints]:
    """Schedule the allocated refreshes: the pages to fetch in each week, ascending.

    >>> [pages.tolist() for pages in schedule_fetches(np.array([3, 1, 2]), weeks=3, room=2)]
    [[0, 2], [0, 1], [0, 2]]
    """
    waiting = np.repeat(np.arange(len(fetches)), fetches)
    waiting = waiting[np.lexsort((waiting, _ideal_weeks(fetches, weeks)))]
    plan: list[Ints] = []
    for left in range(weeks, 0, -1):
        due = _find_mandatory(waiting, left)
        firsts = np.sort(np.unique(waiting, return_index=True)[1])
        # A page with as many fetches to go as there are weeks left has to be fetched now.
        order = np.argsort(~np.isin(waiting[firsts], due), kind="stable")
        chosen = firsts[order][:room]
        plan.append(np.sort(waiting[chosen]))
        waiting = np.delete(waiting, chosen)
    return plan


def transport_cost(plan: list[Ints], fetches: Ints) -> float:
    """Compute the transport cost of a schedule: squared distances in weeks between actual and ideal fetches."""
    weeks = np.repeat(np.arange(1, len(plan) + 1), [len(pages) for pages in plan])
    pages = np.concatenate(plan)
    actual = weeks[np.lexsort((weeks, pages))]
    return float(((actual - _ideal_weeks(fetches, len(plan))) ** 2).sum())


def _ideal_weeks(fetches: Ints, weeks: int) -> Floats:
    """Return the ideal week of each scheduled fetch: page by page, in order of time."""
    pages = np.repeat(np.arange(len(fetches)), fetches)
    number = np.arange(1, len(pages) + 1) - (np.cumsum(fetches) - fetches)[pages]
    best: Floats = number * (weeks + 1) / (fetches[pages] + 1)
    return best


def _find_mandatory(waiting: Ints, left: int) -> Ints:
    pages, counts = np.unique(waiting, return_counts=True)
    return pages[counts >= left]
