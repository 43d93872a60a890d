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
from vedette.index.quality.curves import Curve, query_gains, ranks_of
from vedette.index.quality.term_curves import TermCurves, importance_scores
from vedette.index.quality.watched_terms import NO_WORDS, Answers, Words, answers_of
from vedette.index.query.retrieval import Forward
from vedette.policy import Floats, Ints

__all__ = ["Change", "Flags", "Measured", "forward_of", "is_same", "measure", "present_gains", "term_gains"]

Flags = npt.NDArray[np.bool_]


class Change(NamedTuple):
    """The words of a page before a fetch and after it, and how important it is; ``NO_WORDS`` where it was not there."""

    before: Words
    after: Words
    importance: float = 0.5


class Measured(NamedTuple):
    """For each change: its gain by text and by importance, and how often the page is shown now, of one search.

    ``by_word`` is what pages that were there before brought to each watched word, for each time that it is asked.
    """

    gain: Floats
    by_links: Floats
    views: Floats
    by_word: Floats


def is_same(before: Words, after: Words) -> bool:
    """Whether nothing has changed that could be measured."""
    # Bytes are compared in a fifth of the time that arrays take, which matters for so many small ones.
    return before[1] == after[1] and before[0].tobytes() == after[0].tobytes()


def measure(curves: TermCurves, changes: Sequence[Change], counts: Flags | None = None) -> Measured:
    """What each of the changes brought, as if it were the only one; ``counts`` says which words views are told of."""
    answers = answers_of(
        curves.watched, forward_of([one.before for one in changes]), forward_of([one.after for one in changes])
    )
    pages = len(changes)
    known = np.array([len(one.before[0]) > 0 for one in changes], np.bool_)
    weight = curves.watched.frequency * curves.idf
    ranked, gains = _gains(curves.text, answers, known[answers.page])
    gain = _summed(answers, weight[answers.term] * gains, pages)
    by_word = np.bincount(answers.term, gains * known[answers.page], len(weight)).astype(np.float64)
    asked = curves.watched.frequency if counts is None else curves.watched.frequency * counts
    views = _summed(answers, asked[answers.term] * visibility(ranked), pages)
    importance = importance_scores(np.array([one.importance for one in changes], np.float64))
    moved = _by_importance(answers, importance)
    _, gains = _gains(curves.links, moved, known[moved.page])
    return Measured(gain, _summed(moved, weight[moved.term] * gains, pages), views, by_word)


def present_gains(curves: TermCurves, pages: Forward) -> Floats:
    """What each of some pages of the index brings now: the gain of its first fetch, were it the last to come.

    All of them were counted when curves were made, so each is taken out of its own way.
    """
    count = len(pages.lengths)
    answers = answers_of(curves.watched, forward_of([NO_WORDS] * count), pages)
    each = curves.text.some(answers.term)
    r2 = np.maximum(ranks_of(each, answers.after) - 1.0, 1.0)
    gains = query_gains(Curve(each.ranks - 1.0, each.scores), np.full(len(r2), np.inf), r2, answers.after)
    weight = curves.watched.frequency * curves.idf
    return _summed(answers, weight[answers.term] * gains, count)


def term_gains(curves: TermCurves, score: float) -> Floats:
    """What a page would bring for each watched word that it answers with this score, were it the next to come."""
    scores = np.full(len(curves.watched), score)
    gains = query_gains(curves.text, np.full(len(scores), np.inf), ranks_of(curves.text, scores), scores)
    return np.asarray(curves.watched.frequency * curves.idf * gains)


def _summed(answers: Answers, values: Floats, pages: int) -> Floats:
    """What each page has in all."""
    return np.asarray(np.bincount(answers.page, values, pages), np.float64)


def _gains(curves: Curve, answers: Answers, within: Flags) -> tuple[Floats, Floats]:
    """The rank of each row after the change, and what the change is worth where the rank moved.

    Most words of a page have the score that they had, so what concerns the old one is worked out for the others only.
    """
    each = curves.some(answers.term)
    listed = within & (answers.before > 0)
    r2 = np.maximum(ranks_of(each, answers.after) - (listed & (answers.after <= answers.before)), 1.0)
    gains = np.zeros(len(r2))
    other: Ints = np.flatnonzero(answers.before != answers.after)
    r1 = np.maximum(ranks_of(each.some(other), answers.before[other]) - listed[other], 1.0)
    is_moved = r1 != r2[other]
    moves = other[is_moved]
    gains[moves] = query_gains(each.some(moves), r1[is_moved], r2[moves], answers.after[moves], listed[moves])
    return r2, gains


def _by_importance(answers: Answers, importance: Floats) -> Answers:
    """The rows in which a word came or went; a word that stays has the score that it had."""
    rows = np.flatnonzero((answers.before > 0) != (answers.after > 0))
    score = importance[answers.page[rows]]
    before, after = (np.where(each[rows] > 0, score, 0.0) for each in (answers.before, answers.after))
    return Answers(answers.page[rows], answers.term[rows], before, after)


def forward_of(words: Sequence[Words]) -> Forward:
    """The words of pages behind one another."""
    if not words:
        return Forward(np.zeros(0, np.uint32), np.zeros((0, len(NO_WORDS[1])), np.int64))
    return Forward(np.concatenate([each[0] for each in words]), np.array([each[1] for each in words], np.int64))
