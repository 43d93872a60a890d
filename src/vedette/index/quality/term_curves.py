"""Score and rank for every watched word: gathered page by page into bins, and turned into curves of a few points.

A list of results may have a million pages, so scores are not kept: each word has a row of bins, with how many scores
fell into each and their sum. What lies in one bin is taken for even. Words with few results mostly have one to a bin,
and are exact.

Two ways to score are gathered together, as in Pandey08 (4.7.1): by text (``select_tracked_terms``), and by importance,
which is the same for all words that a page has; there it was the number of links to a page.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from vedette.index.quality.curves import BUCKETS, POINTS, ScoreCurve
from vedette.index.quality.watched_terms import TermScores, TrackedTerms, round_scores
from vedette.policy import Floats, Ints

BINS = 64


class TermCurves(NamedTuple):
    """All that gains are measured with: a column of ``text`` and ``links``, and an ``idf``, for each watched word."""

    tracked: TrackedTerms
    idf: Floats
    text: ScoreCurve
    links: ScoreCurve

    def select(self, words: Ints) -> "TermCurves":
        """Only these of the watched words, ascending."""
        watched = TrackedTerms(self.tracked.numbers[words], self.tracked.frequency[words])
        return TermCurves(watched, self.idf[words], self.text.select(words), self.links.select(words))


class _Bins:
    """Bins of scores between 0 and 1, a row for each word."""

    def __init__(self, words: int) -> None:
        self._times = np.zeros((words, BINS), np.int32)
        self._sums = np.zeros((words, BINS))

    def add(self, words: Ints, scores: Floats) -> None:
        """One more result for each of these."""
        bins = words * BINS + np.clip((scores * BINS).astype(np.int64), 0, BINS - 1)
        np.add.at(self._times.reshape(-1), bins, 1)
        np.add.at(self._sums.reshape(-1), bins, scores)

    @property
    def results(self) -> Ints:
        """How many there are for each word."""
        return np.asarray(self._times.sum(axis=1, dtype=np.int64))

    def to_curves(self) -> ScoreCurve:
        """The curve of ``to_curves.histogram_curve`` for each word."""
        counts, edges = self.results, _compute_edges(self.results)
        reached = np.stack([self._sum_best(edge) for edge in edges.T], axis=1)
        starts = np.column_stack((np.zeros(len(counts), np.int64), edges[:, :-1]))
        means = np.diff(reached, axis=1, prepend=0.0) / np.maximum(edges - starts, 1)
        return _build_points(counts, (starts + 1 + edges) // 2, means, edges > starts)

    def _sum_best(self, many: Ints) -> Floats:
        """The sum of so many of the best scores of each word."""
        times, sums = self._times[:, ::-1], self._sums[:, ::-1]
        before = np.cumsum(times, axis=1) - times
        part = np.clip(many[:, None] - before, 0, times) / np.maximum(times, 1)
        return np.asarray((part * sums).sum(axis=1))


class TermCurveBuilder:
    """Gathers what pages answer; then ``build`` has the outcome."""

    def __init__(self, watched: TrackedTerms) -> None:
        self._watched = watched
        self._text, self._links = _Bins(len(watched)), _Bins(len(watched))

    def add(self, answers: TermScores, importance: Floats) -> None:
        """Some pages with how important each is."""
        self._text.add(answers.term, answers.after)
        self._links.add(answers.term, score_importance(importance)[answers.page])

    def build(self, pages: int) -> TermCurves:
        """What was gathered of so many pages."""
        idf = compute_term_idf(self._text.results, pages)
        return TermCurves(self._watched, idf, self._text.to_curves(), self._links.to_curves())


def score_importance(importance: Floats) -> Floats:
    """A score above 0 for each page: whatever has the word is in the list, also if nobody links to it.

    >>> score_importance(np.array([0.0, 1.0])).tolist()
    [0.015625, 1.0]
    """
    return round_scores((1.0 + importance * (BINS - 1)) / BINS)


def compute_term_idf(df: Ints, pages: int) -> Floats:
    """How telling words are that so many of the pages have: ``features.compute_idf`` for many."""
    return np.asarray(np.log1p((np.maximum(pages, df) - df + 0.5) / (df + 0.5)))


def _compute_edges(counts: Ints) -> Ints:
    """Where the ranges of ranks end; few results have a range each."""
    powers = np.round(counts[:, None] ** (np.arange(1, BUCKETS + 1) / BUCKETS)).astype(np.int64)
    single = np.minimum(np.arange(1, BUCKETS + 1), counts[:, None])
    return np.where(counts[:, None] > BUCKETS, powers, single)


def _build_points(counts: Ints, middles: Ints, means: Floats, real: npt.NDArray[np.bool_]) -> ScoreCurve:
    """Means at the middles of their ranges, between the first rank and the end: as many points for each word."""
    end = (counts + 1).astype(np.float64)
    ranks = np.column_stack((np.where(real, middles, end[:, None]), end, end))
    scores = np.column_stack((np.where(real, means, 0.0), np.zeros((len(counts), 2))))
    late = np.flatnonzero(ranks[:, 0] > 1)
    steeper = (scores[late, 0] - scores[late, 1]) / np.maximum(ranks[late, 1] - ranks[late, 0], 1.0)
    top = scores[late, 0] + steeper * (ranks[late, 0] - 1)
    ranks[late, 1:], scores[late, 1:] = ranks[late, : POINTS - 1].copy(), scores[late, : POINTS - 1].copy()
    ranks[late, 0], scores[late, 0] = 1.0, top
    return ScoreCurve(np.ascontiguousarray(ranks.T), np.ascontiguousarray(scores.T))
