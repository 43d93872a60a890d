"""What fetching a page anew does to the quality of a repository: exactly, and by the closed form of Pandey08, 4.6.1.

``delta_q_exact`` is eq. 4.6: the quality with the page's live version in place of its copy, less the quality without.
It needs to know what every page says now, so it is for bounds and for judging estimates. It can be negative: a page
that rises may push down another one whose copy is old and which deserves better.

``delta_q_a`` is what a crawler can measure when it has just fetched the page: it believes the scores of all other
copies. With ``o(j)`` the j-th best score of the *other* pages, the page going from rank r1 to r2 (infinity where its
score is 0), and lo, hi the lesser and the greater of both, a query with frequency f changes by

    f [ (I(r2) - I(r1)) s2 ± sum_{j=lo}^{hi-1} (I(j) - I(j+1)) o(j) ],   + where the page falls, - where it rises

The thesis writes the falling case by ranks of the old list, where the page itself holds a rank; counted among the
others, both cases are one. With exact ranks the sum is never negative: a page is overtaken by none but better ones.

The sum is worked out over pieces on which scores fall evenly (a *curve*), by adding up visibilities. An exact curve has
a piece for every rank; that of a histogram has a few, and little to keep in memory.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from vedette.decide import Floats, Ints
from vedette.lab.corpus import ranges
from vedette.lab.quality import ideal, usefulness
from vedette.lab.viewing import visibility, visibility_sum
from vedette.lab.workload import Ties, Workload, slot_scores

__all__ = ["Curve", "delta_q_a", "delta_q_exact", "exact_curve", "histogram_curve", "query_gain"]

BUCKETS = 3  # as in the thesis


class Curve(NamedTuple):
    """Scores by rank, best first: at ``ranks`` (whole numbers from 1) they are ``scores``, and even between.

    The last one is 0, at the rank behind the last result.
    """

    ranks: Floats
    scores: Floats

    def rank(self, score: float) -> float:
        """The rank that a score would get among these; infinity for 0. Equal ones come first.

        >>> [exact_curve(np.array([8.0, 4.0])).rank(score) for score in (9.0, 8.0, 5.0, 1.0, 0.0)]
        [1.0, 2.0, 2.0, 3.0, inf]
        """
        if score <= 0:
            return np.inf
        if score > self.scores[0]:
            return 1.0
        return float(np.floor(np.interp(-score, -self.scores, self.ranks)) + 1)


Curves = Callable[[Floats], Curve]


def exact_curve(scores: Floats) -> Curve:
    """The curve of these scores, in whatever order they come."""
    return Curve(np.arange(1.0, len(scores) + 2), np.append(np.sort(scores)[::-1], 0.0))


def histogram_curve(scores: Floats, buckets: int = BUCKETS) -> Curve:
    """The same out of mean scores of few ranges of ranks, which widen like powers: to n^(1/3), to n^(2/3), to n.

    A mean stands for the middle of its range; towards the first rank scores go on as between the first two.

    >>> histogram_curve(np.arange(27.0, 0.0, -1.0)).ranks.tolist()
    [1.0, 2.0, 6.0, 18.0, 28.0]
    """
    count = len(scores)
    if count <= buckets:
        return exact_curve(scores)
    edges = np.unique(np.round(count ** (np.arange(1, buckets + 1) / buckets)).astype(np.int64))
    starts = np.append(0, edges[:-1])
    means = np.add.reduceat(np.sort(scores)[::-1], starts) / (edges - starts)
    ranks = np.append((starts + 1 + edges) // 2, count + 1).astype(np.float64)
    means = np.append(means, 0.0)
    if ranks[0] > 1:
        steeper = (means[0] - means[1]) / (ranks[1] - ranks[0])
        ranks, means = np.append(1.0, ranks), np.append(means[0] + steeper * (ranks[0] - 1), means)
    return Curve(ranks, means)


def query_gain(others: Curve, r1: float, r2: float, s2: float) -> float:
    """What one query brings more when a page with score ``s2`` goes from rank ``r1`` to ``r2`` among others.

    Here a page goes from behind (rank infinity) to the top, before one of half its score: 1 - (1 - 2^-3/2) / 2.

    >>> round(query_gain(exact_curve(np.array([0.5])), np.inf, 1.0, 1.0), 3)
    0.677
    """
    seen = visibility(np.array([r1, r2]))
    own = float((seen[1] - seen[0]) * s2)
    moved = _moved(others, min(r1, r2), max(r1, r2))
    return own + moved if r1 < r2 else own - moved


def _moved(others: Curve, lo: float, hi: float) -> float:
    """sum_{j=lo}^{hi-1} (I(j) - I(j+1)) o(j), by parts; nothing comes from behind the last result."""
    hi = min(hi, float(others.ranks[-1]))
    if hi <= lo:
        return 0.0
    seen = visibility(np.array([lo, hi]))
    ends = np.interp([lo, hi - 1], others.ranks, others.scores)
    slopes = -np.diff(others.scores) / np.diff(others.ranks)
    first, last = np.maximum(others.ranks[:-1], lo) + 1, np.minimum(others.ranks[1:], hi - 1)
    return float(seen[0] * ends[0] - seen[1] * ends[1] - (slopes * visibility_sum(first, last)).sum())


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
