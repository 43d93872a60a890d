"""Build the score curve of every watched query: collect scores page by page in bins, reduce to a few points.

A result list may have a million pages, so scores are not stored: each query has a row of bins, with the number of
scores in each and their sum. Scores within one bin are treated as equal. Queries with few results mostly have one per
bin, and are exact.

Two scorings are collected together, as in Pandey08 (4.7.1): by the score of search, and by importance,
which is the same for all queries that a page answers; there it was the number of links to a page.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from vedette.index.quality.curves import BUCKETS, POINTS, ScoreCurve
from vedette.index.quality.watched_queries import QueryScores, WatchedQueries, round_scores
from vedette.policy import Floats, Ints

BINS, LINK_BINS = 256, 64


class QueryCurves(NamedTuple):
    """Curves to measure gains with: a ``text`` and a ``links`` column and an ``idf`` per watched query."""

    watched: WatchedQueries
    idf: Floats
    text: ScoreCurve
    links: ScoreCurve

    @property
    def weight(self) -> Floats:
        """Return how much a gain for each query counts: how often it is searched, times the idf of its words."""
        return self.watched.frequency * self.idf

    def select(self, queries: Ints) -> "QueryCurves":
        """Select the curves of some watched queries, in ascending order."""
        text, links = self.text.select(queries), self.links.select(queries)
        return QueryCurves(self.watched.select(queries), self.idf[queries], text, links)


class _Bins:
    """Histogram bins of scores between 0 and 1, one row per watched query."""

    def __init__(self, queries: int, bins: int) -> None:
        self._bins = bins
        self._times = np.zeros((queries, bins), np.int32)
        self._sums = np.zeros((queries, bins))

    def add(self, queries: Ints, scores: Floats) -> None:
        """Add one result's score to the bins of each of these queries."""
        bins = queries * self._bins + np.clip((scores * self._bins).astype(np.int64), 0, self._bins - 1)
        np.add.at(self._times.reshape(-1), bins, 1)
        np.add.at(self._sums.reshape(-1), bins, scores)

    @property
    def results(self) -> Ints:
        """Count the results of each watched query."""
        return np.asarray(self._times.sum(axis=1, dtype=np.int64))

    def to_curves(self) -> ScoreCurve:
        """Convert the bins to one score curve per query, as ``curves.histogram_curve`` does."""
        counts, edges = self.results, _compute_edges(self.results)
        reached = np.stack([self._sum_best(edge) for edge in edges.T], axis=1)
        starts = np.column_stack((np.zeros(len(counts), np.int64), edges[:, :-1]))
        means = np.diff(reached, axis=1, prepend=0.0) / np.maximum(edges - starts, 1)
        return _build_points(counts, (starts + 1 + edges) // 2, means, edges > starts)

    def _sum_best(self, many: Ints) -> Floats:
        """Sum the ``many`` best scores of each watched query."""
        times, sums = self._times[:, ::-1], self._sums[:, ::-1]
        before = np.cumsum(times, axis=1) - times
        part = np.clip(many[:, None] - before, 0, times) / np.maximum(times, 1)
        return np.asarray((part * sums).sum(axis=1))


class QueryCurveBuilder:
    """Collect the scores of pages for watched queries; ``build`` then returns the query curves."""

    def __init__(self, watched: WatchedQueries) -> None:
        self._watched = watched
        self._text, self._links = _Bins(len(watched), BINS), _Bins(len(watched), LINK_BINS)

    def add(self, answers: QueryScores, importance: Floats) -> None:
        """Add the scores of some pages, with the importance of each page."""
        self._text.add(answers.query, answers.score)
        self._links.add(answers.query, score_importance(importance)[answers.page])

    def build(self, pages: int) -> QueryCurves:
        """Build the query curves from the scores collected over ``pages`` pages.

        A single word counts by its rarity among them; for several words the idf is known in advance.
        """
        rare, is_word = compute_term_idf(self._text.results, pages), np.diff(self._watched.start) == 1
        idf = np.where(is_word, rare, self._watched.telling)
        return QueryCurves(self._watched, idf, self._text.to_curves(), self._links.to_curves())


def score_importance(importance: Floats) -> Floats:
    """Score pages by importance, always above 0: a page with the query's words is listed even if nothing links to it.

    >>> score_importance(np.array([0.0, 1.0])).tolist()
    [0.015625, 1.0]
    """
    return round_scores((1.0 + importance * (LINK_BINS - 1)) / LINK_BINS)


def compute_term_idf(df: Ints, pages: int) -> Floats:
    """Compute the idf of words from their document frequency: ``features.compute_idf`` for many."""
    return np.asarray(np.log1p((np.maximum(pages, df) - df + 0.5) / (df + 0.5)))


def _compute_edges(counts: Ints) -> Ints:
    """Compute the ends of the rank buckets of a query curve; few results get a bucket each."""
    powers = np.round(counts[:, None] ** (np.arange(1, BUCKETS + 1) / BUCKETS)).astype(np.int64)
    single = np.minimum(np.arange(1, BUCKETS + 1), counts[:, None])
    return np.where(counts[:, None] > BUCKETS, powers, single)


def _build_points(counts: Ints, middles: Ints, means: Floats, real: npt.NDArray[np.bool_]) -> ScoreCurve:
    """Build the points of the query curves: bucket means at bucket middles, plus the first rank and the end."""
    end = (counts + 1).astype(np.float64)
    ranks = np.column_stack((np.where(real, middles, end[:, None]), end, end))
    scores = np.column_stack((np.where(real, means, 0.0), np.zeros((len(counts), 2))))
    late = np.flatnonzero(ranks[:, 0] > 1)
    steeper = (scores[late, 0] - scores[late, 1]) / np.maximum(ranks[late, 1] - ranks[late, 0], 1.0)
    top = scores[late, 0] + steeper * (ranks[late, 0] - 1)
    ranks[late, 1:], scores[late, 1:] = ranks[late, : POINTS - 1].copy(), scores[late, : POINTS - 1].copy()
    ranks[late, 0], scores[late, 0] = 1.0, top
    return ScoreCurve(np.ascontiguousarray(ranks.T), np.ascontiguousarray(scores.T))
