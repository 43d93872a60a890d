"""Measure the search-quality gain of page changes while they are indexed: Delta-Q_A of Pandey08 (4.6).

When the words of a page change, so do its scores for watched terms, and thereby its rank in their result lists. What
that is worth follows from the score curve of each term (``index.quality.curves``), weighted by how often the term is
searched and by its idf. Only terms whose rank moves are evaluated; a batch of pages is measured at once.

A page that is already in the index was counted when the curves were built, so it is removed from its own competition
(``within``); a new page is not there yet, and a deleted one ends at rank infinity. Between two builds the curves are
slightly out of date, which is why a gain may be slightly below 0; with exact curves it never is.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from vedette.attention import visibility
from vedette.index.quality.curves import ScoreCurve, find_ranks, query_gains, sum_views
from vedette.index.quality.term_curves import TermCurves, score_importance
from vedette.index.quality.watched_terms import NO_WORDS, PageWords, TermScores, score_pages
from vedette.index.query.retrieval import ForwardTokens
from vedette.policy import Floats, Ints

Bools = npt.NDArray[np.bool_]


class PageChange(NamedTuple):
    """The words of a page before and after a fetch, with its importance; ``NO_WORDS`` if not indexed."""

    before: PageWords
    after: PageWords
    importance: float = 0.5


class MeasuredGains(NamedTuple):
    """The measured gain of each page change, by text and by importance, and the page's views per search.

    ``by_word`` is the gain that previously indexed pages brought to each watched term, per search for it.
    """

    gain: Floats
    by_links: Floats
    views: Floats
    by_word: Floats


def is_unchanged(before: PageWords, after: PageWords) -> bool:
    """Check whether a page's words are unchanged, so that there is no gain to measure."""
    # Bytes are compared in a fifth of the time that arrays take, which matters for so many small ones.
    return before[1] == after[1] and before[0].tobytes() == after[0].tobytes()


def measure_gains(curves: TermCurves, changes: Sequence[PageChange], counts: Bools | None = None) -> MeasuredGains:
    """Measure the search-quality gain of each page change as if it were the only one.

    ``counts`` selects the watched terms that count toward views.
    """
    answers = score_pages(
        curves.tracked,
        concatenate_words([one.before for one in changes]),
        concatenate_words([one.after for one in changes]),
    )
    pages = len(changes)
    known = np.array([len(one.before[0]) > 0 for one in changes], np.bool_)
    weight = curves.tracked.frequency * curves.idf
    ranked, gains = _compute_rank_gains(curves.text, answers, known[answers.page])
    gain = _sum_by_page(answers, weight[answers.term] * gains, pages)
    by_word = np.bincount(answers.term, gains * known[answers.page], len(weight)).astype(np.float64)
    asked = curves.tracked.frequency if counts is None else curves.tracked.frequency * counts
    views = _sum_by_page(answers, asked[answers.term] * visibility(ranked), pages)
    importance = score_importance(np.array([one.importance for one in changes], np.float64))
    moved = _score_by_importance(answers, importance)
    _, gains = _compute_rank_gains(curves.links, moved, known[moved.page])
    return MeasuredGains(gain, _sum_by_page(moved, weight[moved.term] * gains, pages), views, by_word)


def measure_current_gains(curves: TermCurves, pages: ForwardTokens) -> Floats:
    """Measure the gain that each indexed page brings now: the gain of its first fetch, if it came last.

    All of them were counted when the curves were built, so each is removed from its own competition.
    """
    count = len(pages.lengths)
    answers = score_pages(curves.tracked, concatenate_words([NO_WORDS] * count), pages)
    each = curves.text.select(answers.term)
    r2 = np.maximum(find_ranks(each, answers.after) - 1.0, 1.0)
    gains = query_gains(ScoreCurve(each.ranks - 1.0, each.scores), np.full(len(r2), np.inf), r2, answers.after)
    weight = curves.tracked.frequency * curves.idf
    return _sum_by_page(answers, weight[answers.term] * gains, count)


def measure_view_gain(curves: TermCurves) -> float:
    """Measure what a view of any result brings, in the unit of gains; 0 where nothing is searched for."""
    views, scores = sum_views(curves.text)
    frequency = curves.tracked.frequency
    return float((frequency * curves.idf * scores).sum() / max(float((frequency * views).sum()), 1e-300))


def estimate_term_gains(curves: TermCurves, score: float) -> Floats:
    """Estimate the gain of a new page for each watched term that it would answer with this score."""
    scores = np.full(len(curves.tracked), score)
    gains = query_gains(curves.text, np.full(len(scores), np.inf), find_ranks(curves.text, scores), scores)
    return np.asarray(curves.tracked.frequency * curves.idf * gains)


def _sum_by_page(answers: TermScores, values: Floats, pages: int) -> Floats:
    """Sum the gains of all watched terms by page."""
    return np.asarray(np.bincount(answers.page, values, pages), np.float64)


def _compute_rank_gains(curves: ScoreCurve, answers: TermScores, within: Bools) -> tuple[Floats, Floats]:
    """Compute each row's rank after the page change, and the gain where the rank moved.

    Most words of a page keep their score, so the old rank is computed only for the others.
    """
    each = curves.select(answers.term)
    listed = within & (answers.before > 0)
    r2 = np.maximum(find_ranks(each, answers.after) - (listed & (answers.after <= answers.before)), 1.0)
    gains = np.zeros(len(r2))
    other: Ints = np.flatnonzero(answers.before != answers.after)
    r1 = np.maximum(find_ranks(each.select(other), answers.before[other]) - listed[other], 1.0)
    is_moved = r1 != r2[other]
    moves = other[is_moved]
    gains[moves] = query_gains(each.select(moves), r1[is_moved], r2[moves], answers.after[moves], listed[moves])
    return r2, gains


def _score_by_importance(answers: TermScores, importance: Floats) -> TermScores:
    """Score by page importance the rows in which a term appeared or disappeared; others keep their score."""
    rows = np.flatnonzero((answers.before > 0) != (answers.after > 0))
    score = importance[answers.page[rows]]
    before, after = (np.where(each[rows] > 0, score, 0.0) for each in (answers.before, answers.after))
    return TermScores(answers.page[rows], answers.term[rows], before, after)


def concatenate_words(words: Sequence[PageWords]) -> ForwardTokens:
    """Concatenate the words of several pages into one ``ForwardTokens``."""
    if not words:
        return ForwardTokens(np.zeros(0, np.uint32), np.zeros((0, len(NO_WORDS[1])), np.int64))
    return ForwardTokens(np.concatenate([each[0] for each in words]), np.array([each[1] for each in words], np.int64))
