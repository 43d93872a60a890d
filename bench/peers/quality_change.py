"""Change in search quality by one fetch (Delta-Q): exactly, and by the closed form of Pandey08, 4.6.1.

``delta_q_exact`` is eq. 4.6: the quality with the page's live version in place of its copy, less the quality without.
It needs to know what every page says now, so it is for judging estimates. It can be negative: a page that rises may
push down another one whose copy is old and which deserves better.

``delta_q_a`` is what a crawler can measure when it has just fetched the page: it uses the scores of all other copies.
It adds up the values of ``vedette.index.quality.curves`` for each query that the page answers or answered. The indexer
does the same for whole batches, with curves of all pages (``vedette.index.quality.gains``); here the other pages have a
separate one for every query, which is slow and cannot be out of date.

With exact ranks the sum is never negative: a page is overtaken by none but better ones.
"""

from collections.abc import Callable

import numpy as np

from vedette.index.quality.curves import ScoreCurve, exact_curve, query_gain
from vedette.lab.quality.search_quality import ideal_quality, query_utilities
from vedette.lab.quality.workload import TieBreak, Workload, compute_slot_scores
from vedette.policy import Floats, Ints

CurveFactory = Callable[[Floats], ScoreCurve]


def delta_q_exact(
    page: int,
    local: Ints,
    live: Ints,
    workload: Workload,
    ties: TieBreak = TieBreak.OLDER_FIRST,
    best: float | None = None,
) -> float:
    """Eq. 4.6: the quality gain (as a share of the ideal) of fetching the page now.

    ``best`` is the ideal if already known; a page that has died is removed from the repository.
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
    """The gain of the fetch that found this version, by the closed form; not as a share of the ideal.

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
    """The rank of a page at a position among others, in the order of pages."""
    if score <= 0:
        return np.inf
    equal = others[:at] if ties is TieBreak.OLDER_FIRST else others[at:]
    return 1.0 + float((others > score).sum() + (equal == score).sum())


def _find_slots(workload: Workload, versions: Ints) -> Ints:
    """Return the slots that any of these versions fills."""
    slots: Ints = workload.match_slot[workload.find_matches(versions)]
    return slots
