"""Gains of fetches in search quality (Delta-Q_A) and views of pages, tracked while a world is refreshed.

Both are what a crawler could measure: they come from its own copies and from searches; nothing is used of a page but
its fetched content. The rank of every copy in every list is stored. A fetch moves its page in some lists, and those
between its old and its new rank by one: only lists that have the page are updated.

With the page at rank r1 before and r2 after, infinity if it is not listed, a query with frequency f gains

    f [ (I(r2) - I(r1)) s2 + sum over those that it passes of (I(rank after) - I(rank before)) score ]

which is the closed form with exact ranks.
"""

from typing import NamedTuple

import numpy as np

from vedette.attention import visibility
from vedette.lab.quality.corpus import ShingleDistance, concat_ranges
from vedette.lab.quality.workload import QuerySet, Workload, rank_results
from vedette.lab.worlds.history import Bools, History
from vedette.policy import Floats, Ints

UNRANKED = 1 << 40  # a rank that no list has


class _ListSlots(NamedTuple):
    """Slots of some result lists, one list after the other, with the number of each slot's list."""

    slot: Ints
    row: Ints


class GainTracker:
    """Tracker of the search-quality gains (Delta-Q_A) of a refresh run's copies; ties are broken older first.

    ``add_copies`` adds first copies, without a counted gain; ``replace_copies`` adds those that replace others.
    """

    def __init__(self, history: History, workload: Workload) -> None:
        self._workload = workload
        self._pages = history.pages
        self._copy = np.full(history.pages, -1, np.int64)
        self._score = np.zeros(len(workload.slot_page))
        # 0 if a slot is not listed; undefined for lists marked as stale.
        self._rank = np.zeros(len(workload.slot_page), np.int64)
        self._stale = np.zeros(workload.queries, bool)
        self._views: Floats | None = None
        self._per_view = 0.0

    def add_copies(self, pages: Ints, versions: Ints) -> None:
        """Add first copies of these pages to the result lists, below 0 for none, without counting a gain."""
        workload = self._workload
        old, new = workload.find_matches(self._copy[pages]), workload.find_matches(versions)
        self._score[workload.match_slot[old]] = 0.0
        self._score[workload.match_slot[new]] = workload.match_score[new]
        self._stale[workload.slot_query[workload.match_slot[np.append(old, new)]]] = True
        self._copy[pages], self._views = versions, None

    def replace_copies(self, pages: Ints, before: Ints, after: Ints) -> Floats:
        """Replace copies one by one and return the search-quality gain of each fetch (Delta-Q_A).

        ``before`` and ``after`` are versions, below 0 for none: a page that died is removed from all lists.
        """
        other = self._copy[pages] != before
        self.add_copies(pages[other], before[other])
        gains = np.zeros(len(pages))
        for row in np.flatnonzero(before != after).tolist():
            gains[row] = self._replace_copy(int(pages[row]), int(after[row]))
        return gains

    def compute_views(self) -> Floats:
        """Return how often each page is viewed, as a share of all views: sum_q f_q I(rank)."""
        if self._views is None:
            self._rerank(np.flatnonzero(self._stale))
            listed = np.flatnonzero(self._rank)
            seen = visibility(self._rank[listed]) * self._workload.frequency[self._workload.slot_query[listed]]
            views = np.bincount(self._workload.slot_page[listed], seen, self._pages).astype(np.float64)
            self._views = views / max(float(views.sum()), np.finfo(np.float64).tiny)
            self._per_view = float((seen * self._score[listed]).sum())
        return self._views.copy()

    def compute_per_view(self) -> float:
        """Return the total value of all views by the scores of the copies: the gain of a whole share of views."""
        self.compute_views()
        return self._per_view

    def _rerank(self, queries: Ints) -> None:
        """Recompute the ranks of whole result lists of these queries."""
        workload = self._workload
        self._rank[concat_ranges(workload.slot_start[queries], workload.slot_start[queries + 1])] = 0
        lists = rank_results(workload, self._score, queries)
        self._rank[lists.slot] = lists.rank
        self._stale[queries] = False

    def _replace_copy(self, page: int, version: int) -> float:
        """Replace one copy, update the ranks, and return its search-quality gain."""
        slots, scores = self._find_changed_slots(page, version)
        self._copy[page] = version
        if not len(slots):
            return 0.0
        queries = self._workload.slot_query[slots]
        self._rerank(np.unique(queries[self._stale[queries]]))
        total = float((self._workload.frequency[queries] * self._apply_scores(slots, scores)).sum())
        self._views = None
        return total

    def _find_changed_slots(self, page: int, version: int) -> tuple[Ints, Floats]:
        """Find the slots of a page whose score differs in this version, ascending, with the new scores."""
        workload = self._workload
        old, new = workload.find_matches(self._copy[[page]]), workload.find_matches(np.array([version]))
        slots = np.union1d(workload.match_slot[old], workload.match_slot[new])
        scores = np.zeros(len(slots))
        scores[np.searchsorted(slots, workload.match_slot[new])] = workload.match_score[new]
        moving = scores != self._score[slots]
        return slots[moving], scores[moving]

    def _apply_scores(self, slots: Ints, scores: Floats) -> Floats:
        """Apply new scores to slots, one in each list, and return each list's gain."""
        lists = self._build_lists(slots)
        r1 = self._rank[slots]
        r2 = self._rank_scores(lists, slots, scores)
        passed = self._find_passed(lists, slots, r1, r2)
        by = np.where(_is_rise(r1, r2), 1, -1)[passed.row]
        rank = self._rank[passed.slot]
        pushed = (visibility(rank + by) - visibility(rank)) * self._score[passed.slot]
        self._rank[passed.slot] = rank + by
        self._rank[slots], self._score[slots] = r2, scores
        own = (_slot_visibility(r2) - _slot_visibility(r1)) * scores
        return own + np.bincount(passed.row, pushed, len(slots))

    def _build_lists(self, slots: Ints) -> _ListSlots:
        queries = self._workload.slot_query[slots]
        starts, ends = self._workload.slot_start[queries], self._workload.slot_start[queries + 1]
        return _ListSlots(concat_ranges(starts, ends), np.repeat(np.arange(len(slots)), ends - starts))

    def _rank_scores(self, lists: _ListSlots, slots: Ints, scores: Floats) -> Ints:
        """Compute the rank that a score would have in each list, without the slot's old score; 0 if it has none."""
        theirs, mine = self._score[lists.slot], scores[lists.row]
        ahead = (theirs > mine) | ((theirs == mine) & (lists.slot < slots[lists.row]))
        ahead &= lists.slot != slots[lists.row]
        counted = np.bincount(lists.row[ahead], minlength=len(slots))
        return np.where(scores > 0, counted + 1, 0)

    def _find_passed(self, lists: _ListSlots, slots: Ints, r1: Ints, r2: Ints) -> _ListSlots:
        """Find the slots in each list that a moving slot passes: those ranked between its old and new rank."""
        first, last = np.where(r1 > 0, r1, UNRANKED), np.where(r2 > 0, r2, UNRANKED)
        # A slot that rises to r2 pushes down those from r2 on; one that falls to r2 lets those up to r2 rise.
        up = _is_rise(r1, r2)
        low, high = np.where(up, last, first + 1), np.where(up, first - 1, last)
        rank = self._rank[lists.slot]
        inside = (rank >= low[lists.row]) & (rank <= high[lists.row]) & (lists.slot != slots[lists.row])
        return _ListSlots(lists.slot[inside], lists.row[inside])


def _is_rise(r1: Ints, r2: Ints) -> Bools:
    """Check whether a move in a result list is toward the front, where rank 0 is after all."""
    up: Bools = (r2 > 0) & ((r1 == 0) | (r2 < r1))
    return up


def _slot_visibility(rank: Ints) -> Floats:
    return np.where(rank > 0, visibility(np.maximum(rank, 1)), 0.0)


# A policy declares the columns of ``Known`` it needs (``wants``). All are computed from copies and queries, none from
# future content: see ``GainTracker`` and ``ShingleDistance``.


class CopyMeasures:
    """Measures of copies (gain, views, share of text) that a refresh policy wants, fetch by fetch."""

    def __init__(self, history: History, asking: QuerySet, wants: frozenset[str]) -> None:
        self._wants = wants
        self._gains = GainTracker(history, asking.workload)
        self._shares = ShingleDistance(history)

    def add_copies(self, pages: Ints, versions: Ints) -> dict[str, Floats]:
        """Add first copies and return their measures: how often they are viewed."""
        self._gains.add_copies(pages, versions)
        return self._view_columns(pages)

    def replace_copies(self, pages: Ints, before: Ints, after: Ints) -> dict[str, Floats]:
        """Replace copies and return the measures of these fetches, such as their gain."""
        columns: dict[str, Floats] = {}
        gain = self._gains.replace_copies(pages, before, after)
        if "gain" in self._wants:
            columns["gain"] = gain
        if "share" in self._wants:
            columns["share"] = self._shares.compute(before, after)
        return columns | self._view_columns(pages)

    def compute_per_view(self) -> float:
        """Return the value of a view of any copy, in the unit of gains."""
        return self._gains.compute_per_view()

    def _view_columns(self, pages: Ints) -> dict[str, Floats]:
        return {"views": np.asarray(self._gains.compute_views()[pages])} if "views" in self._wants else {}


def create_measures(policy: object, history: History, asking: QuerySet | None) -> CopyMeasures | None:
    """Create the copy measures that a refresh policy needs; None if it needs none, or there are no queries."""
    wants: frozenset[str] = getattr(policy, "wants", frozenset())
    return CopyMeasures(history, asking, wants) if wants and asking is not None else None
