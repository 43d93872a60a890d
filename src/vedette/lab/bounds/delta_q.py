"""Upper bound ``bound-delta-q``: fetch the pages that improve search quality most, knowing all current content.

At each decision it takes, one after the other, the page whose fetch gives the largest change in quality (eq. 4.6 of
Pandey08), exactly: by the ranks of copies and the current content of all pages. A chosen fetch counts for the next
choice. If the budget suffices for all pages that results depend on, it takes them all.

It is greedy and myopic, and no optimum: it sees the present but not the future, so it fetches a page that will change
again in an hour; and it does not see that two fetches together may gain much although neither does alone. Fetches
without gain are not made: the budget is saved for the next wave. So its copies of pages that no query finds grow old,
and its freshness says little.
"""

from typing import NamedTuple

import numpy as np

from vedette.attention import visibility
from vedette.lab.quality.corpus import concat_ranges
from vedette.lab.quality.search_quality import ScoredVersions
from vedette.lab.quality.workload import ResultLists, TieBreak, Workload, rank_results
from vedette.lab.worlds.history import Bools, History
from vedette.policy import Floats, Ints

# Each list of results is computed once. A page that goes from rank r1 to rank r2 moves those between by one rank, and
# each of them is worth what it says *now*, W (j are the current ranks of the list):
#
#     (I(r2) - I(r1)) W[p] - sum_{j=r2}^{r1-1} (I(j) - I(j+1)) W(j)     where it rises
#     (I(r2) - I(r1)) W[p] + sum_{j=r1+1}^{r2} (I(j-1) - I(j)) W(j)     where it falls
#
# Sums up to each rank give these sums for any r1 and r2.


def compute_slot_gains(
    workload: Workload, local: Floats, live: Floats, queries: Ints, ties: TieBreak = TieBreak.OLDER_FIRST
) -> tuple[Ints, Floats]:
    """Compute, for the delta-Q bound, which slots a fetch of their page would change and how much each query gains.

    ``local`` and ``live`` are scores in slots: those of copies, and those of current pages.
    """
    lists = rank_results(workload, local, queries, ties)
    moves = _find_moves(workload, lists, local, live, queries, ties)
    own = live[moves.slot] * (visibility(moves.r2) - moves.listed * visibility(moves.r1))
    return moves.slot, own + _gain_of_others(lists, live, moves)


class _Moves(NamedTuple):
    """Moves of slots in result lists for the delta-Q bound: listed or not, start of its list, ranks before and after.

    A slot that is not listed has the rank after the last.
    """

    slot: Ints
    listed: Bools
    begin: Ints
    r1: Ints
    r2: Ints


def _find_moves(
    workload: Workload, lists: ResultLists, local: Floats, live: Floats, queries: Ints, ties: TieBreak
) -> _Moves:
    starts, ends = workload.slot_start[queries], workload.slot_start[queries + 1]
    slot, row = concat_ranges(starts, ends), np.repeat(np.arange(len(queries)), ends - starts)
    moving = local[slot] != live[slot]
    slot, row = slot[moving], row[moving]
    begin, end = np.searchsorted(lists.row, row), np.searchsorted(lists.row, row, side="right")
    rank_of = np.zeros(len(local), np.int64)
    rank_of[lists.slot] = lists.rank
    listed = local[slot] > 0
    # A page does not compete with itself.
    own_ahead = listed & (local[slot] > live[slot])
    ahead = _count_ahead(lists, local, slot, row, live, ties) - own_ahead
    return _Moves(slot, listed, begin, np.where(listed, rank_of[slot], end - begin + 1), ahead - begin + 1)


def _count_ahead(lists: ResultLists, local: Floats, slot: Ints, row: Ints, live: Floats, ties: TieBreak) -> Ints:
    """Count the listed results ahead of each slot's live score in all result lists, for the delta-Q bound."""
    slots, rows = np.concatenate((lists.slot, slot)), np.concatenate((lists.row, row))
    scores = np.concatenate((local[lists.slot], live[slot]))
    order = np.lexsort((slots if ties is TieBreak.OLDER_FIRST else -slots, -scores, rows))
    ahead = np.zeros(len(order), np.int64)
    ahead[order] = np.cumsum(order < len(lists.slot))
    return ahead[len(lists.slot) :]


def _gain_of_others(lists: ResultLists, live: Floats, moves: _Moves) -> Floats:
    """Compute the quality gain or loss of the results that each move of the delta-Q bound passes by."""
    true, rank = live[lists.slot], lists.rank
    sinking = _prefix_sums(true * (visibility(rank) - visibility(rank + 1)))
    rising = _prefix_sums(true * (visibility(np.maximum(rank - 1, 1)) - visibility(rank)))
    up = moves.r2 <= moves.r1
    first = moves.begin + np.where(up, moves.r2 - 1, moves.r1)
    last = moves.begin + np.where(up, moves.r1 - 1, moves.r2)
    return np.where(up, sinking[first] - sinking[last], rising[last] - rising[first])


def _prefix_sums(values: Floats) -> Floats:
    """Return the sum of all values before each position, and the total, for the delta-Q bound."""
    return np.append(0.0, np.cumsum(values))


# Below this fraction of the total, a gain is a rounding error.
MIN_GAIN_SHARE = 1e-12


class BoundDeltaQ:
    """The delta-Q bound: choose the pages whose fetch improves search quality most, by the versions live right now.

    Only queries that a change touched since the last choice are computed again.
    """

    def __init__(self, history: History, workload: Workload) -> None:
        self._history, self._workload = history, workload
        self._event_times_s, self._event_count = np.sort(np.append(history.version_at_s, history.died_s)), -1
        unknown = np.full(history.pages, -1)
        self._local, self._live = ScoredVersions(workload, unknown), ScoredVersions(workload, unknown)
        self._stale = np.ones(workload.queries, bool)
        self._gain = np.zeros(len(workload.slot_page))
        self._least = MIN_GAIN_SHARE * float(workload.frequency.sum())

    def choose(self, copies: Ints, now_s: float, most: int) -> Ints:
        """Choose the pages that the delta-Q bound fetches now, ascending."""
        if not most:
            return np.zeros(0, np.int64)
        self._update_side(self._local, copies)
        self._update_live(now_s)
        outdated = np.unique(self._workload.slot_page[self._local.scores != self._live.scores])
        return outdated if len(outdated) <= most else self._choose_best(most)

    def _update_live(self, now_s: float) -> None:
        turns = int(np.searchsorted(self._event_times_s, now_s, side="right"))
        # Most hours nothing happens anywhere, and then nothing needs to be computed.
        if turns != self._event_count:
            self._event_count = turns
            self._update_side(self._live, self._history.version_at(np.arange(self._history.pages), now_s))

    def _update_side(self, side: ScoredVersions, versions: Ints) -> None:
        pages = np.flatnonzero(side.versions != versions)
        self._stale[side.update(pages, versions[pages])] = True

    def _choose_best(self, most: int) -> Ints:
        """Choose pages greedily for the delta-Q bound, each as if those chosen before had been fetched."""
        chosen: list[int] = []
        while len(chosen) < most:
            self._recompute_gains()
            worth = np.bincount(self._workload.slot_page, self._gain, self._history.pages)
            page = int(worth.argmax())
            if worth[page] <= self._least:
                break
            chosen.append(page)
            self._stale[self._local.update(np.array([page]), self._live.versions[[page]])] = True
        return np.sort(np.array(chosen, np.int64))

    def _recompute_gains(self) -> None:
        workload, queries = self._workload, np.flatnonzero(self._stale)
        self._gain[concat_ranges(workload.slot_start[queries], workload.slot_start[queries + 1])] = 0.0
        slots, gains = compute_slot_gains(workload, self._local.scores, self._live.scores, queries)
        self._gain[slots] = workload.frequency[workload.slot_query[slots]] * gains
        self._stale[queries] = False
