"""Slot allocation for unproven results: rank by worth, but give trials no more views than they can use."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from vedette.attention import visibility
from vedette.policy import Floats, Ints
from vedette.serve.rank.explore.randomized_lists import TiedOrder, best_first, group_ties

FIRST_PAGE = 10
# Beyond this many positions any order will do; this many are allocated one by one.
DEPTH, MAX_SLOTS = 1000, 100
# In a large tie, chance gives some rows two views and many none before anything is learned about either. So a large tie
# gets a fraction of the views it can use at a time: it waits a little, and fewer views are lost.
MANY_EQUALS, CROWD_VIEW_SHARE = 10, 0.3
Bools = npt.NDArray[np.bool_]


class TrialSlots(NamedTuple):
    """The positions open to unproven results: none before ``first``, and at most ``most`` of the first ten.

    ``views`` are those of all results until the order changes. No unproven result gets a position with more views than
    are informative: the rest would be lost.
    """

    first: int = 1
    most: int = FIRST_PAGE
    views: float = 0.0

    def views_by_place(self, length: int) -> Floats:
        """Return the views of each position that is allocated one by one."""
        shares, total = _shares(length)
        return np.asarray(self.views * shares / max(total, 1.0))


@lru_cache(maxsize=256)  # result lists have few different lengths
def _shares(length: int) -> tuple[Floats, float]:
    """Return the visibility of each position that is allocated one by one, and of all together."""
    shares = visibility(np.arange(1, length + 1))
    return shares[:MAX_SLOTS].copy(), float(shares.sum())


def allocate_slots(worth: Floats, is_unproven: Bools, wanted: Floats, seats: TrialSlots) -> TiedOrder:
    """Allocate slots by worth, as far as they are open; ``wanted`` are the views that each row can use.

    >>> worth, young = np.array([5.0, 4.0, 3.0, 2.0]), np.array([True, False, True, False])
    >>> allocate_slots(worth, young, np.ones(4), TrialSlots(first=2)).rows_in_order().tolist()
    [1, 0, 2, 3]
    """
    top, rest = _split_top(worth)
    top = top[best_first(worth[top])]
    level = worth.copy()
    level[rest] = worth.min(initial=0.0) - 1.0
    order = group_ties(np.append(top, rest), level)
    views = seats.views_by_place(len(worth))
    young = is_unproven[order.rows]
    if not young.any() or _is_open_to_all(seats, views, float(wanted.min())):
        return order
    return _move_blocks(order, young, wanted, seats, views)


def _is_open_to_all(seats: TrialSlots, views: Floats, least: float) -> bool:
    return seats.first <= 1 and seats.most >= FIRST_PAGE and bool(views[0] <= least)


def _move_blocks(order: TiedOrder, young: Bools, wanted: Floats, seats: TrialSlots, views: Floats) -> TiedOrder:
    """Move blocks of ties to other positions: each position goes to the first block allowed there."""
    begins, sizes = np.unique(order.begin, return_counts=True)
    unproven = young[begins]
    each = wanted[order.rows[begins]] * np.where(sizes >= MANY_EQUALS, CROWD_VIEW_SHARE, 1.0)
    use = np.where(unproven, sizes * each, np.inf)
    taken = _fill_slots(sizes.tolist(), unproven.tolist(), use.tolist(), seats, views.tolist())
    left = sizes - np.bincount(np.array(taken, np.int64), minlength=len(sizes))
    by_place = np.append(np.array(taken, np.int64), np.repeat(np.arange(len(sizes)), left))
    return TiedOrder(order.rows, begins[by_place], sizes[by_place])


def _fill_slots(
    sizes: list[int], unproven: list[bool], use: list[float], seats: TrialSlots, views: list[float]
) -> list[int]:
    """Assign a block to each of the first positions."""
    taken: list[int] = []
    waiting = list(range(min(len(sizes), 2 * MAX_SLOTS)))
    chances = 0
    for place, seen in enumerate(views):
        closed = place < seats.first - 1 or (place < FIRST_PAGE and chances >= seats.most)
        sitting = next((b for b in waiting if not unproven[b] or (not closed and use[b] >= seen)), waiting[0])
        taken.append(sitting)
        chances += unproven[sitting]
        sizes[sitting] -= 1
        use[sitting] -= seen
        if not sizes[sitting]:
            waiting.remove(sitting)
            if not waiting:
                break
    return taken


def _split_top(worth: Floats) -> tuple[Ints, Ints]:
    """Split off the rows that need sorting from the rest, which avoids a long sort."""
    if len(worth) <= DEPTH:
        return np.arange(len(worth)), np.zeros(0, np.int64)
    least = np.partition(worth, len(worth) - DEPTH)[len(worth) - DEPTH]
    return np.flatnonzero(worth >= least).astype(np.int64), np.flatnonzero(worth < least).astype(np.int64)
