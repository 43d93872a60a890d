"""What one fetch would bring, for all outdated pages at once: eq. 4.6 of Pandey08, exactly, query by query.

``quality_change.delta_q_exact`` asks for one page and works its queries out twice. Here each list of results is worked
out once. A page that goes from rank r1 to rank r2 moves those between by one rank, and each of them is worth what it
says *now*, W:

    (I(r2) - I(r1)) W[p] - sum_{j=r2}^{r1-1} (I(j) - I(j+1)) W(j)     where it rises
    (I(r2) - I(r1)) W[p] + sum_{j=r1+1}^{r2} (I(j-1) - I(j)) W(j)     where it falls

with j the ranks of the list as it stands. Sums up to each rank give these sums for any r1 and r2.
"""

from typing import NamedTuple

import numpy as np

from vedette.attention import visibility
from vedette.lab.quality.corpus import ranges
from vedette.lab.quality.workload_part import Lists, Ties, Workload, result_lists
from vedette.lab.worlds.history import Bools
from vedette.policy import Floats, Ints

__all__ = ["slot_gains"]


def slot_gains(
    workload: Workload, local: Floats, live: Floats, queries: Ints, ties: Ties = Ties.OLDER_FIRST
) -> tuple[Ints, Floats]:
    """The slots of some queries that a fetch of their page would fill otherwise, and what the query then brings more.

    ``local`` and ``live`` are scores in slots: those of copies, and those of what pages say now.
    """
    lists = result_lists(workload, local, queries, ties)
    moves = _moves(workload, lists, local, live, queries, ties)
    own = live[moves.slot] * (visibility(moves.r2) - moves.listed * visibility(moves.r1))
    return moves.slot, own + _of_others(lists, live, moves)


class _Moves(NamedTuple):
    """A slot, whether it is listed, where in all lists its own begins, and its ranks: now, and once it is fetched.

    What is not listed has the rank behind the last.
    """

    slot: Ints
    listed: Bools
    begin: Ints
    r1: Ints
    r2: Ints


def _moves(workload: Workload, lists: Lists, local: Floats, live: Floats, queries: Ints, ties: Ties) -> _Moves:
    starts, ends = workload.slot_start[queries], workload.slot_start[queries + 1]
    slot, row = ranges(starts, ends), np.repeat(np.arange(len(queries)), ends - starts)
    moving = local[slot] != live[slot]
    slot, row = slot[moving], row[moving]
    begin, end = np.searchsorted(lists.row, row), np.searchsorted(lists.row, row, side="right")
    rank_of = np.zeros(len(local), np.int64)
    rank_of[lists.slot] = lists.rank
    listed = local[slot] > 0
    # A page does not stand in its own way.
    own_ahead = listed & (local[slot] > live[slot])
    ahead = _ahead(lists, local, slot, row, live, ties) - own_ahead
    return _Moves(slot, listed, begin, np.where(listed, rank_of[slot], end - begin + 1), ahead - begin + 1)


def _ahead(lists: Lists, local: Floats, slot: Ints, row: Ints, live: Floats, ties: Ties) -> Ints:
    """How much of all lists comes before each of these slots, if it stood where its live score puts it."""
    slots, rows = np.concatenate((lists.slot, slot)), np.concatenate((lists.row, row))
    scores = np.concatenate((local[lists.slot], live[slot]))
    order = np.lexsort((slots if ties is Ties.OLDER_FIRST else -slots, -scores, rows))
    ahead = np.zeros(len(order), np.int64)
    ahead[order] = np.cumsum(order < len(lists.slot))
    return ahead[len(lists.slot) :]


def _of_others(lists: Lists, live: Floats, moves: _Moves) -> Floats:
    """What those bring more or less that each move passes by."""
    true, rank = live[lists.slot], lists.rank
    sinking = _summed(true * (visibility(rank) - visibility(rank + 1)))
    rising = _summed(true * (visibility(np.maximum(rank - 1, 1)) - visibility(rank)))
    up = moves.r2 <= moves.r1
    first = moves.begin + np.where(up, moves.r2 - 1, moves.r1)
    last = moves.begin + np.where(up, moves.r1 - 1, moves.r2)
    return np.where(up, sinking[first] - sinking[last], rising[last] - rising[first])


def _summed(values: Floats) -> Floats:
    """The sum of all values before each place, and of all."""
    return np.append(0.0, np.cumsum(values))
