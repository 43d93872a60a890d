"""Words that the best candidates share count for the others."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.index.feedback import BEST, MIN_CANDIDATES, score_feedback
from vedette.index.query.retrieval import TEXT_FIELDS, ForwardTokens

NO_WORDS = np.zeros(0, np.uint32)


def pages(bodies: Sequence[Sequence[int]]) -> ForwardTokens:
    """Return pages that only have text."""
    words = np.array([word for body in bodies for word in body], np.uint32)
    return ForwardTokens(words, np.array([[0] * (len(TEXT_FIELDS) - 1) + [len(body)] for body in bodies]))


def test_words_that_the_best_share_count() -> None:
    """A page with these words ranks above one without; the query's own words and words on all pages have no effect."""
    best = [[1, 2, 7, 100 + row] for row in range(BEST)]
    others = [[2, 7, 50], [2, 50], [1, 50]] + [[2, 60 + row] for row in range(MIN_CANDIDATES)]
    scores = score_feedback(pages([*best, *others]), np.arange(len(best + others)), np.array([1], np.uint32))
    assert scores[BEST] > scores[BEST + 1] == pytest.approx(scores[BEST + 3])
    assert scores[BEST + 2] == 0


@given(st.lists(st.lists(st.integers(0, 30), max_size=20), max_size=40))
def test_scores_are_shares(bodies: list[list[int]]) -> None:
    """For any pages, each gets a number from 0 to 1; a handful of pages is not enough to learn from."""
    lengths = np.array([len(body) for body in bodies], np.int64)
    forward = pages(bodies) if bodies else ForwardTokens(NO_WORDS, np.zeros((0, len(TEXT_FIELDS)), np.int64))
    scores = score_feedback(forward, np.argsort(-lengths), NO_WORDS)
    assert len(scores) == len(bodies)
    assert ((scores >= 0) & (scores <= 1)).all()
    assert len(bodies) >= MIN_CANDIDATES or not scores.any()
