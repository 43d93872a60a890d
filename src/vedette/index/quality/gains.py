"""What fetches brought to the quality of search, measured while pages are indexed: Delta-Q_A of Pandey08 (4.6).

When the words of a page change, so do its scores for watched words, and thereby its rank in their lists. What that is
worth follows from the curve of each word (``index.curves``), weighed by how often and how tellingly the word is asked
for. Only words whose rank moves are worked out; a batch of pages is measured at once.

A page that is in the index was counted when curves were made, so it is taken out of its own way (``within``); one that
comes first is not there yet, and one that goes away ends at rank infinity. Between two makings curves are a little
out of date, which is why a gain may be a little below 0; with exact curves it never is.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from vedette.attention import visibility
from vedette.index.quality.curves import ScoreCurve, find_ranks, query_gains
from vedette.index.quality.term_curves import TermCurves, score_importance
from vedette.index.quality.watched_terms import NO_WORDS, PageWords, TermScores, score_pages
from vedette.index.query.retrieval import ForwardTokens
from vedette.policy import Floats, Ints

Bools = npt.NDArray[np.bool_]


class PageChange(NamedTuple):
    """The words of a page before a fetch and after it, and how important it is; ``NO_WORDS`` where it was not there."""

    before: PageWords
    after: PageWords
    importance: float = 0.5


class MeasuredGains(NamedTuple):
    """For each change: its gain by text and by importance, and how often the page is shown now, of one search.

    ``by_word`` is what pages that were there before brought to each watched word, for each time that it is asked.
    """

    gain: Floats
    by_links: Floats
    views: Floats
    by_word: Floats


def is_unchanged(before: PageWords, after: PageWords) -> bool:
    """Whether nothing has changed that could be measured."""
    # Bytes are compared in a fifth of the time that arrays take, which matters for so many small ones.
    return before[1] == after[1] and before[0].tobytes() == after[0].tobytes()


def measure_gains(curves: TermCurves, changes: Sequence[PageChange], counts: Bools | None = None) -> MeasuredGains:
    """What each of the changes brought, as if it were the only one; ``counts`` says which words views are told of."""
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
    """What each of some pages of the index brings now: the gain of its first fetch, were it the last to come.

    All of them were counted when curves were made, so each is taken out of its own way.
    """
    count = len(pages.lengths)
    answers = score_pages(curves.tracked, concatenate_words([NO_WORDS] * count), pages)
    each = curves.text.select(answers.term)
    r2 = np.maximum(find_ranks(each, answers.after) - 1.0, 1.0)
    gains = query_gains(ScoreCurve(each.ranks - 1.0, each.scores), np.full(len(r2), np.inf), r2, answers.after)
    weight = curves.tracked.frequency * curves.idf
    return _sum_by_page(answers, weight[answers.term] * gains, count)


def estimate_term_gains(curves: TermCurves, score: float) -> Floats:
    """What a page would bring for each watched word that it answers with this score, were it the next to come."""
    scores = np.full(len(curves.tracked), score)
    gains = query_gains(curves.text, np.full(len(scores), np.inf), find_ranks(curves.text, scores), scores)
    return np.asarray(curves.tracked.frequency * curves.idf * gains)


def _sum_by_page(answers: TermScores, values: Floats, pages: int) -> Floats:
    """What each page has in all."""
    return np.asarray(np.bincount(answers.page, values, pages), np.float64)


def _compute_rank_gains(curves: ScoreCurve, answers: TermScores, within: Bools) -> tuple[Floats, Floats]:
    """The rank of each row after the change, and what the change is worth where the rank moved.

    Most words of a page have the score that they had, so what concerns the old one is worked out for the others only.
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
    """The rows in which a word came or went; a word that stays has the score that it had."""
    rows = np.flatnonzero((answers.before > 0) != (answers.after > 0))
    score = importance[answers.page[rows]]
    before, after = (np.where(each[rows] > 0, score, 0.0) for each in (answers.before, answers.after))
    return TermScores(answers.page[rows], answers.term[rows], before, after)


def concatenate_words(words: Sequence[PageWords]) -> ForwardTokens:
    """The words of pages behind one another."""
    if not words:
        return ForwardTokens(np.zeros(0, np.uint32), np.zeros((0, len(NO_WORDS[1])), np.int64))
    return ForwardTokens(np.concatenate([each[0] for each in words]), np.array([each[1] for each in words], np.int64))
