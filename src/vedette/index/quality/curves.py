"""Score curves: a query's scores by rank in a few points, and how a score change affects the query's quality.

A *curve* has scores by rank, best first, linear between a few points. With ``o(j)`` the j-th best score of the *other*
pages, a page that goes from rank r1 to r2 (infinity if its score is 0), lo and hi the smaller and the larger of both, a
query changes by (Pandey08, 4.6.1, both cases in one)

    (I(r2) - I(r1)) s2 ± sum_{j=lo}^{hi-1} (I(j) - I(j+1)) o(j),   + where the page falls, - where it rises

``query_gains`` computes that for many queries at once, each with a column of its curve's points; no step loops over
queries. ``query_gain`` is the same for one.

A curve of *all* pages contains the changing page (``within``). With it removed, every page after it moves up by one:
its own ranks are smaller by one from its old score down, and ``o(j)`` is the curve at j + 1 from its old rank on. The
rising case needs only o before the old rank, the falling one only o after it, so a curve is never rebuilt: the falling
case is the one printed in the thesis, by ranks of the old list.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from vedette.attention import visibility, visibility_sum
from vedette.policy import Floats, Ints

BUCKETS = 3  # as in the thesis
POINTS = BUCKETS + 2  # with the first rank, and the one after the last result
PLACES = 50  # views beyond these are left out of sums

Bools = npt.NDArray[np.bool_]


class ScoreCurve(NamedTuple):
    """A score curve: the scores of a query's results at some ``ranks`` (from 1), best first, linear between.

    The last score is 0, at the rank after the last result. For many queries both are tables with a column for each; one
    with fewer points than others repeats its last.
    """

    ranks: Floats
    scores: Floats

    def find_rank(self, score: float) -> float:
        """Return the rank of a score on this score curve; infinity for 0. Equal scores come first.

        >>> [exact_curve(np.array([8.0, 4.0])).find_rank(score) for score in (9.0, 8.0, 5.0, 1.0, 0.0)]
        [1.0, 2.0, 2.0, 3.0, inf]
        """
        return float(find_ranks(self.as_column, np.array([score]))[0])

    @property
    def as_column(self) -> "ScoreCurve":
        """Return this score curve as a table with one column."""
        return ScoreCurve(self.ranks[:, None], self.scores[:, None])

    def select(self, columns: Ints) -> "ScoreCurve":
        """Select some columns of a table of score curves."""
        return ScoreCurve(self.ranks.take(columns, axis=1), self.scores.take(columns, axis=1))


def exact_curve(scores: Floats) -> ScoreCurve:
    """Build the exact score curve of these scores, given in any order."""
    return ScoreCurve(np.arange(1.0, len(scores) + 2), np.append(np.sort(scores)[::-1], 0.0))


def histogram_curve(scores: Floats, buckets: int = BUCKETS) -> ScoreCurve:
    """Build a score curve from the means of a few rank buckets, which widen like n^(1/3), n^(2/3), n.

    A mean is placed at the middle of its bucket; toward the first rank, scores continue the slope between the first
    two.

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
    return ScoreCurve(ranks, means)


def find_ranks(curves: ScoreCurve, scores: Floats) -> Floats:
    """Return the rank that each score would get in its column of the score curves; infinity for 0."""
    at = np.maximum(_count_points_before(curves.scores >= scores) - 1, 0)
    behind = np.minimum(at + 1, len(curves.scores) - 1)
    above, first = _take_points(curves.scores, at), _take_points(curves.ranks, at)
    fall = above - _take_points(curves.scores, behind)
    fall[fall <= 0] = 1.0
    ranks = np.floor((_take_points(curves.ranks, behind) - first) / fall * (above - scores) + first) + 1.0
    ranks[scores > curves.scores[0]] = 1.0
    ranks[scores <= 0] = np.inf
    return np.asarray(ranks)


def _count_points_before(is_before: Bools) -> Ints:
    """Count the points of each curve column before a value; a curve of all results may have many."""
    narrow = np.int8 if len(is_before) < 1 << 7 else np.int64  # many small numbers are added eight times as fast
    return np.asarray(np.add.reduce(is_before, axis=0, dtype=narrow), np.int64)


def _take_points(table: Floats, points: Ints) -> Floats:
    """Take the value of each column of a curve table at its own point."""
    return np.asarray(table.take(points * table.shape[1] + np.arange(table.shape[1])))


def query_gain(others: ScoreCurve, r1: float, r2: float, s2: float) -> float:
    """Compute the quality gain of one query when a page with score ``s2`` moves from rank ``r1`` to ``r2``.

    Here a page goes from outside (rank infinity) to the top, ahead of one with half its score: 1 - (1 - 2^-3/2) / 2.

    >>> round(query_gain(exact_curve(np.array([0.5])), np.inf, 1.0, 1.0), 3)
    0.677
    """
    return float(query_gains(others.as_column, *(np.array([value]) for value in (r1, r2, s2)))[0])


def query_gains(curves: ScoreCurve, r1: Floats, r2: Floats, s2: Floats, within: Bools | None = None) -> Floats:
    """Compute ``query_gain`` for many queries, each with its column of curves; ranks are among others.

    ``within`` marks the queries whose curve already counts the page itself; none by default.
    """
    falls = r1 < r2
    if within is not None:
        curves = ScoreCurve(curves.ranks - (within & falls), curves.scores)
    own = (visibility(r2) - visibility(r1)) * s2
    moved = _sum_displacement(curves, np.minimum(r1, r2), np.maximum(r1, r2))
    return np.asarray(own + np.where(falls, moved, -moved))


def sum_views(curves: ScoreCurve) -> tuple[Floats, Floats]:
    """Return, for each column of score curves, the views per search, and the scores of these views.

    Only the first ranks count, which have nearly all views.

    >>> views, scores = sum_views(exact_curve(np.array([1.0, 0.5])).as_column)
    >>> views.round(3).tolist(), scores.round(3).tolist()
    ([1.354], [1.177])
    """
    views, scores = np.zeros((2, curves.ranks.shape[1]))
    for rank, seen in enumerate(visibility(np.arange(1, PLACES + 1)).tolist(), start=1):
        listed = seen * (rank < curves.ranks[-1])
        views += listed
        scores += listed * _interpolate_scores(curves, np.full(len(views), float(rank)))
    return views, scores


def _sum_displacement(others: ScoreCurve, lo: Floats, hi: Floats) -> Floats:
    """Compute sum_{j=lo}^{hi-1} (I(j) - I(j+1)) o(j) by parts; ranks after the last result add nothing."""
    ranks, scores = others
    hi = np.minimum(hi, ranks[-1])
    goes = hi > lo
    lo, hi = np.where(goes, lo, 1.0), np.where(goes, hi, 2.0)
    slopes = (scores[:-1] - scores[1:]) / np.maximum(ranks[1:] - ranks[:-1], 1.0)
    first, last = np.maximum(ranks[:-1], lo) + 1, np.minimum(ranks[1:], hi - 1)
    between = (slopes * visibility_sum(first, last)).sum(axis=0)
    ends = visibility(lo) * _interpolate_scores(others, lo) - visibility(hi) * _interpolate_scores(others, hi - 1)
    return np.where(goes, ends - between, 0.0)


def _interpolate_scores(curves: ScoreCurve, ranks: Floats) -> Floats:
    """Interpolate the score at each rank of the score curves, between the first and the last point."""
    at = np.clip(_count_points_before(curves.ranks <= ranks) - 1, 0, len(curves.ranks) - 2)
    begin, above = _take_points(curves.ranks, at), _take_points(curves.scores, at)
    width = _take_points(curves.ranks, at + 1) - begin
    share = np.clip(ranks - begin, 0.0, width) / np.maximum(width, 1.0)
    return np.asarray(above + (_take_points(curves.scores, at + 1) - above) * share)
