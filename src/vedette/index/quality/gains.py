"""Measure the search-quality gain of page changes while they are indexed: Delta-Q_A of Pandey08 (4.6).

When the words of a page change, so do its scores for watched queries, and its rank in their result lists. The value of
that follows from the score curve of each query (``index.quality.curves``), weighted by how often it is searched and by
the idf of its words. Only queries in which the rank moves are evaluated; a batch of pages is measured at once. Scores
are those of search itself (``engine.search.answer_scores``).

A page already in the index was counted when the curves were built, so it is removed from its own competition
(``within``); a new page is not there yet, and a deleted one ends at rank infinity. Between two builds the curves are
slightly out of date, so a gain may be slightly below 0; with exact curves it never is.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from vedette.attention import visibility
from vedette.index.quality.curves import ScoreCurve, find_ranks, query_gains, sum_views
from vedette.index.quality.query_curves import QueryCurves, score_importance
from vedette.index.quality.watched_queries import NO_WORDS, Bools, PageWords, QueryScores, ScoreChanges
from vedette.index.query.retrieval import ForwardTokens
from vedette.policy import Floats, Ints
from vedette.text import WordHashes


class ChangedPages(NamedTuple):
    """Pages whose change is measured: which were in the index before, and the importance of each."""

    known: Bools
    importance: Floats


class MeasuredGains(NamedTuple):
    """The measured gain of each page change, by text and by importance, and the page's views per search.

    ``by_query`` is the gain that previously indexed pages brought to each watched query, per search for it.
    """

    gain: Floats
    by_links: Floats
    views: Floats
    by_query: Floats


def is_unchanged(before: PageWords, after: PageWords) -> bool:
    """Check whether a page's words are unchanged, so that there is no gain to measure."""
    # Bytes compare five times as fast as arrays, which matters for this many small ones.
    return before[1] == after[1] and before[0].tobytes() == after[0].tobytes()


def measure_gains(
    curves: QueryCurves, scores: ScoreChanges, changed: ChangedPages, counts: Bools | None = None
) -> MeasuredGains:
    """Measure the search-quality gain of each page change as if it were the only one.

    ``counts`` selects the watched queries that count toward views.
    """
    pages, known = len(changed.known), changed.known[scores.page]
    ranked, gains = _compute_rank_gains(curves.text, scores, known)
    gain = _sum_by_page(scores.page, curves.weight[scores.query] * gains, pages)
    by_query = np.bincount(scores.query, gains * known, len(curves.watched)).astype(np.float64)
    asked = curves.watched.frequency if counts is None else curves.watched.frequency * counts
    views = _sum_by_page(scores.page, asked[scores.query] * visibility(ranked), pages)
    moved = _score_by_importance(scores, score_importance(changed.importance))
    _, gains = _compute_rank_gains(curves.links, moved, changed.known[moved.page])
    by_links = _sum_by_page(moved.page, curves.weight[moved.query] * gains, pages)
    return MeasuredGains(gain, by_links, views, by_query)


def measure_current_gains(curves: QueryCurves, scores: QueryScores, pages: int) -> Floats:
    """Measure the current gain of each indexed page: the gain of its first fetch, if it came last.

    All of them were counted when the curves were built, so each is removed from its own competition.
    """
    each = curves.text.select(scores.query)
    r2 = np.maximum(find_ranks(each, scores.score) - 1.0, 1.0)
    gains = query_gains(ScoreCurve(each.ranks - 1.0, each.scores), np.full(len(r2), np.inf), r2, scores.score)
    return _sum_by_page(scores.page, curves.weight[scores.query] * gains, pages)


def measure_view_gain(curves: QueryCurves) -> float:
    """Measure the value of a view of any result, in the unit of gains; 0 if there are no searches."""
    views, scores = sum_views(curves.text)
    return float((curves.weight * scores).sum() / max(float((curves.watched.frequency * views).sum()), 1e-300))


def estimate_word_gains(curves: QueryCurves, score: float) -> tuple[WordHashes, Floats]:
    """Estimate the gain of a new page for each word of watched queries that it answers with this score.

    A query's gain is divided over its words by their idf, with other forms at their weight.
    """
    watched = curves.watched
    scores = np.full(len(watched), score)
    gains = query_gains(curves.text, np.full(len(scores), np.inf), find_ranks(curves.text, scores), scores)
    query = np.repeat(np.arange(len(watched)), np.diff(watched.start))
    part = watched.idf / np.maximum(watched.telling, 1e-9)[query]
    worth = (curves.weight * gains)[query] * part
    numbers, at = np.unique(watched.words, return_inverse=True)
    return numbers, np.bincount(at, worth[watched.slot] * watched.weight, len(numbers)).astype(np.float64)


def _sum_by_page(page: Ints, values: Floats, pages: int) -> Floats:
    """Sum the gains of all watched queries by page."""
    return np.asarray(np.bincount(page, values, pages), np.float64)


def _compute_rank_gains(curves: ScoreCurve, scores: ScoreChanges, within: Bools) -> tuple[Floats, Floats]:
    """Compute each row's rank after the page change, and the gain if the rank moved.

    Most queries of a page keep their score, so the old rank is computed only for the others.
    """
    each = curves.select(scores.query)
    listed = within & (scores.before > 0)
    r2 = np.maximum(find_ranks(each, scores.after) - (listed & (scores.after <= scores.before)), 1.0)
    gains = np.zeros(len(r2))
    other: Ints = np.flatnonzero(scores.before != scores.after)
    r1 = np.maximum(find_ranks(each.select(other), scores.before[other]) - listed[other], 1.0)
    is_moved = r1 != r2[other]
    moves = other[is_moved]
    gains[moves] = query_gains(each.select(moves), r1[is_moved], r2[moves], scores.after[moves], listed[moves])
    return r2, gains


def _score_by_importance(scores: ScoreChanges, importance: Floats) -> ScoreChanges:
    """Score by page importance the rows in which a page appeared or disappeared; others keep their score."""
    rows = np.flatnonzero((scores.before > 0) != (scores.after > 0))
    score = importance[scores.page[rows]]
    before, after = (np.where(each[rows] > 0, score, 0.0) for each in (scores.before, scores.after))
    return ScoreChanges(scores.page[rows], scores.query[rows], before, after)


def concatenate_words(words: Sequence[PageWords]) -> ForwardTokens:
    """Concatenate the words of several pages into one ``ForwardTokens``."""
    if not words:
        return ForwardTokens(np.zeros(0, np.uint32), np.zeros((0, len(NO_WORDS[1])), np.int64))
    return ForwardTokens(np.concatenate([each[0] for each in words]), np.array([each[1] for each in words], np.int64))
