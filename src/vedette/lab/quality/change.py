"""What fetching a page anew does to the quality of a repository: exactly, and by the closed form of Pandey08, 4.6.1.

``delta_q_exact`` is eq. 4.6: the quality with the page's live version in place of its copy, less the quality without.
It needs to know what every page says now, so it is for bounds and for judging estimates. It can be negative: a page
that rises may push down another one whose copy is old and which deserves better.

``delta_q_a`` is what a crawler can measure when it has just fetched the page: it believes the scores of all other
copies. It adds up what ``vedette.index.quality.curves`` says of each query that the page answers or answered. The indexer does
the same for whole batches, with curves of all pages (``vedette.index.quality.gains``); here the other pages have one of their
own for every query, which is slow and has nothing in it that could be out of date.

With exact ranks the sum is never negative: a page is overtaken by none but better ones.
"""

from collections.abc import Callable

import numpy as np

from vedette.index.quality.curves import Curve, exact_curve, histogram_curve, query_gain
from vedette.lab.quality.corpus import ranges
from vedette.lab.quality.quality import ideal, usefulness
from vedette.lab.quality.workload_part import Ties, Workload, slot_scores
from vedette.policy import Floats, Ints

__all__ = ["Curve", "delta_q_a", "delta_q_exact", "exact_curve", "histogram_curve", "query_gain"]

Curves = Callable[[Floats], Curve]


def delta_q_exact(
    page: int, local: Ints, live: Ints, workload: Workload, ties: Ties = Ties.OLDER_FIRST, best: float | None = None
) -> float:
    """Eq. 4.6: how much quality (as a share of the ideal) a fetch of the page would bring now.

    ``best`` is the ideal where it is known already; a page that has died is taken out of the repository.
    """
    best = ideal(live, workload) if best is None else best
    after = local.copy()
    after[page] = live[page]
    queries = np.unique(workload.slot_query[_slots(workload, np.array([local[page], live[page]]))])
    true = slot_scores(workload, live)
    gain = usefulness(workload, slot_scores(workload, after), true, ties, queries)
    gain -= usefulness(workload, slot_scores(workload, local), true, ties, queries)
    return float((workload.frequency[queries] * gain).sum()) / best if best else 0.0


def delta_q_a(
    page: int,
    version: int,
    local: Ints,
    workload: Workload,
    ties: Ties = Ties.OLDER_FIRST,
    curves: Curves | None = None,
) -> float:
    """What a fetch of the page brought that found this version, by the closed form; not as a share of the ideal.

    The workload is one of single words (``query_files.single_terms``). Without ``curves`` ranks are exact; with
    ``histogram_curve`` they are those of the thesis.
    """
    before, fetched = slot_scores(workload, local), local.copy()
    fetched[page] = version
    after = slot_scores(workload, fetched)
    total = 0.0
    for slot in np.unique(_slots(workload, np.array([local[page], version]))).tolist():
        query = workload.slot_query[slot]
        begin, end = workload.slot_start[query : query + 2].tolist()
        others, at = np.delete(before[begin:end], slot - begin), slot - begin
        s1, s2 = float(before[slot]), float(after[slot])
        if curves is None:
            curve, ranks = exact_curve(others[others > 0]), [_rank(others, at, score, ties) for score in (s1, s2)]
        else:
            curve = curves(others[others > 0])
            ranks = [curve.rank(score) for score in (s1, s2)]
        total += float(workload.frequency[query]) * query_gain(curve, ranks[0], ranks[1], s2)
    return total


def _rank(others: Floats, at: int, score: float, ties: Ties) -> float:
    """The rank of a page that stands at a place among others, in the order of pages."""
    if score <= 0:
        return np.inf
    equal = others[:at] if ties is Ties.OLDER_FIRST else others[at:]
    return 1.0 + float((others > score).sum() + (equal == score).sum())


def _slots(workload: Workload, versions: Ints) -> Ints:
    """The slots that any of these versions fills."""
    held = versions[versions >= 0]
    slots: Ints = workload.match_slot[ranges(workload.match_start[held], workload.match_start[held + 1])]
    return slots
