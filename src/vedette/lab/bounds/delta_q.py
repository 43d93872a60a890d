"""``bound-delta-q``: fetch what does most for those who search, if it were known what every page says now.

At each decision it takes, one after the other, the page whose fetch brings the largest change in quality (eq. 4.6 of
Pandey08), exactly: by the ranks of copies and what all pages say at that moment. A fetch that it has taken counts for
the next. Where the budget reaches for all pages that anybody's results depend on, it takes them all.

It is greedy and myopic, and no optimum: it sees the present and nothing of the future, so it fetches a page that is to
change again in an hour; and it does not see that two fetches may bring much which alone bring nothing. What brings
nothing is not fetched: the budget is kept for the next wave. So its copies of pages that no query finds grow old, and
its freshness says little.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from vedette.attention import visibility
from vedette.index.quality.curves import ScoreCurve, exact_curve, histogram_curve, query_gain
from vedette.lab.quality.corpus import concat_ranges
from vedette.lab.quality.quality import ScoredVersions, ideal_quality, query_utilities
from vedette.lab.quality.workload import ResultLists, TieBreak, Workload, compute_slot_scores, rank_results
from vedette.lab.worlds.history import Bools, History
from vedette.policy import Floats, Ints

__all__ = [
    "ScoreCurve",
    "compute_slot_gains",
    "delta_q_a",
    "delta_q_exact",
    "exact_curve",
    "histogram_curve",
    "query_gain",
]

# ``delta_q_exact`` is eq. 4.6: the quality with the page's live version in place of its copy, less the quality without.
# It needs to know what every page says now, so it is for bounds and for judging estimates. It can be negative: a page
# that rises may push down another one whose copy is old and which deserves better.
# ``delta_q_a`` is what a crawler can measure when it has just fetched the page: it believes the scores of all other
# copies. It adds up what ``vedette.index.quality.curves`` says of each query that the page answers or answered. The
# indexer does the same for whole batches, with curves of all pages (``vedette.index.quality.gains``); here the other
# pages have one of their own for every query, which is slow and has nothing in it that could be out of date.
# With exact ranks the sum is never negative: a page is overtaken by none but better ones.


# ``quality_change.delta_q_exact`` asks for one page and works its queries out twice. Here each list of results is
# worked out once. A page that goes from rank r1 to rank r2 moves those between by one rank, and each of them is worth
# what it says *now*, W: (I(r2) - I(r1)) W[p] - sum_{j=r2}^{r1-1} (I(j) - I(j+1)) W(j)     where it rises (I(r2) -
# I(r1)) W[p] + sum_{j=r1+1}^{r2} (I(j-1) - I(j)) W(j)     where it falls with j the ranks of the list as it stands.
# Sums up to each rank give these sums for any r1 and r2.


def compute_slot_gains(
    workload: Workload, local: Floats, live: Floats, queries: Ints, ties: TieBreak = TieBreak.OLDER_FIRST
) -> tuple[Ints, Floats]:
    """The slots of some queries that a fetch of their page would fill otherwise, and what the query then brings more.

    ``local`` and ``live`` are scores in slots: those of copies, and those of what pages say now.
    """
    lists = rank_results(workload, local, queries, ties)
    moves = _find_moves(workload, lists, local, live, queries, ties)
    own = live[moves.slot] * (visibility(moves.r2) - moves.listed * visibility(moves.r1))
    return moves.slot, own + _gain_of_others(lists, live, moves)


class _Moves(NamedTuple):
    """A slot, whether it is listed, where in all lists its own begins, and its ranks: now, and once it is fetched.

    What is not listed has the rank behind the last.
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
    # A page does not stand in its own way.
    own_ahead = listed & (local[slot] > live[slot])
    ahead = _count_ahead(lists, local, slot, row, live, ties) - own_ahead
    return _Moves(slot, listed, begin, np.where(listed, rank_of[slot], end - begin + 1), ahead - begin + 1)


def _count_ahead(lists: ResultLists, local: Floats, slot: Ints, row: Ints, live: Floats, ties: TieBreak) -> Ints:
    """How much of all lists comes before each of these slots, if it stood where its live score puts it."""
    slots, rows = np.concatenate((lists.slot, slot)), np.concatenate((lists.row, row))
    scores = np.concatenate((local[lists.slot], live[slot]))
    order = np.lexsort((slots if ties is TieBreak.OLDER_FIRST else -slots, -scores, rows))
    ahead = np.zeros(len(order), np.int64)
    ahead[order] = np.cumsum(order < len(lists.slot))
    return ahead[len(lists.slot) :]


def _gain_of_others(lists: ResultLists, live: Floats, moves: _Moves) -> Floats:
    """What those bring more or less that each move passes by."""
    true, rank = live[lists.slot], lists.rank
    sinking = _prefix_sums(true * (visibility(rank) - visibility(rank + 1)))
    rising = _prefix_sums(true * (visibility(np.maximum(rank - 1, 1)) - visibility(rank)))
    up = moves.r2 <= moves.r1
    first = moves.begin + np.where(up, moves.r2 - 1, moves.r1)
    last = moves.begin + np.where(up, moves.r1 - 1, moves.r2)
    return np.where(up, sinking[first] - sinking[last], rising[last] - rising[first])


def _prefix_sums(values: Floats) -> Floats:
    """The sum of all values before each place, and of all."""
    return np.append(0.0, np.cumsum(values))


CurveFactory = Callable[[Floats], ScoreCurve]


def delta_q_exact(
    page: int,
    local: Ints,
    live: Ints,
    workload: Workload,
    ties: TieBreak = TieBreak.OLDER_FIRST,
    best: float | None = None,
) -> float:
    """Eq. 4.6: how much quality (as a share of the ideal) a fetch of the page would bring now.

    ``best`` is the ideal where it is known already; a page that has died is taken out of the repository.
    """
    best = ideal_quality(live, workload) if best is None else best
    after = local.copy()
    after[page] = live[page]
    queries = np.unique(workload.slot_query[_find_slots(workload, np.array([local[page], live[page]]))])
    true = compute_slot_scores(workload, live)
    gain = query_utilities(workload, compute_slot_scores(workload, after), true, ties, queries)
    gain -= query_utilities(workload, compute_slot_scores(workload, local), true, ties, queries)
    return float((workload.frequency[queries] * gain).sum()) / best if best else 0.0


def delta_q_a(
    page: int,
    version: int,
    local: Ints,
    workload: Workload,
    ties: TieBreak = TieBreak.OLDER_FIRST,
    curves: CurveFactory | None = None,
) -> float:
    """What a fetch of the page brought that found this version, by the closed form; not as a share of the ideal.

    The workload is one of single words (``query_files.split_into_terms``). Without ``curves`` ranks are exact; with
    ``histogram_curve`` they are those of the thesis.
    """
    before, fetched = compute_slot_scores(workload, local), local.copy()
    fetched[page] = version
    after = compute_slot_scores(workload, fetched)
    total = 0.0
    for slot in np.unique(_find_slots(workload, np.array([local[page], version]))).tolist():
        query = workload.slot_query[slot]
        begin, end = workload.slot_start[query : query + 2].tolist()
        others, at = np.delete(before[begin:end], slot - begin), slot - begin
        s1, s2 = float(before[slot]), float(after[slot])
        if curves is None:
            curve, ranks = exact_curve(others[others > 0]), [_rank_score(others, at, score, ties) for score in (s1, s2)]
        else:
            curve = curves(others[others > 0])
            ranks = [curve.find_rank(score) for score in (s1, s2)]
        total += float(workload.frequency[query]) * query_gain(curve, ranks[0], ranks[1], s2)
    return total


def _rank_score(others: Floats, at: int, score: float, ties: TieBreak) -> float:
    """The rank of a page that stands at a place among others, in the order of pages."""
    if score <= 0:
        return np.inf
    equal = others[:at] if ties is TieBreak.OLDER_FIRST else others[at:]
    return 1.0 + float((others > score).sum() + (equal == score).sum())


def _find_slots(workload: Workload, versions: Ints) -> Ints:
    """The slots that any of these versions fills."""
    held = versions[versions >= 0]
    slots: Ints = workload.match_slot[concat_ranges(workload.match_start[held], workload.match_start[held + 1])]
    return slots


# Below this part of what all queries together count, a gain is an error of rounding.
MIN_GAIN_SHARE = 1e-12


class BoundDeltaQ:
    """Chooses by the versions that are live at the moment of the choice.

    Only queries that something touched since the last choice are worked out again.
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
        """The pages to fetch now, ascending."""
        if not most:
            return np.zeros(0, np.int64)
        self._update_side(self._local, copies)
        self._update_live(now_s)
        outdated = np.unique(self._workload.slot_page[self._local.scores != self._live.scores])
        return outdated if len(outdated) <= most else self._choose_best(most)

    def _update_live(self, now_s: float) -> None:
        turns = int(np.searchsorted(self._event_times_s, now_s, side="right"))
        # Most hours nothing happens anywhere, and then nobody needs to be asked what it says.
        if turns != self._event_count:
            self._event_count = turns
            self._update_side(self._live, self._history.version_at(np.arange(self._history.pages), now_s))

    def _update_side(self, side: ScoredVersions, versions: Ints) -> None:
        pages = np.flatnonzero(side.versions != versions)
        self._stale[side.update(pages, versions[pages])] = True

    def _choose_best(self, most: int) -> Ints:
        """One after the other, each as if it had been fetched when the next is looked for."""
        taken: list[int] = []
        while len(taken) < most:
            self._recompute_gains()
            worth = np.bincount(self._workload.slot_page, self._gain, self._history.pages)
            page = int(worth.argmax())
            if worth[page] <= self._least:
                break
            taken.append(page)
            self._stale[self._local.update(np.array([page]), self._live.versions[[page]])] = True
        return np.sort(np.array(taken, np.int64))

    def _recompute_gains(self) -> None:
        workload, queries = self._workload, np.flatnonzero(self._stale)
        self._gain[concat_ranges(workload.slot_start[queries], workload.slot_start[queries + 1])] = 0.0
        slots, gains = compute_slot_gains(workload, self._local.scores, self._live.scores, queries)
        self._gain[slots] = workload.frequency[workload.slot_query[slots]] * gains
        self._stale[queries] = False
