"""Answer scores: which queries a page answers, and how well, by the scores that search gains are measured with.

    score(q, p) = sum over the words of q of idf(word) text_score(word, p),   0 where p has not all of them

A query is matched by its rarest word first, so that most pages are ruled out by one lookup.
"""

from typing import NamedTuple

import numpy as np

from vedette.frontier.impact.matching import QuerySet
from vedette.frontier.impact.url_features import concatenate_ranges
from vedette.index.quality.gains import concatenate_words
from vedette.index.quality.watched_terms import NO_WORDS, TrackedTerms, score_pages
from vedette.index.query.retrieval import ForwardTokens
from vedette.policy import Floats, Ints


class QueryMatches(NamedTuple):
    """Matches of queries in a batch of pages: page ``row`` answers ``query`` with ``score``."""

    row: Ints
    query: Ints
    score: Floats


class QueryScorer:
    """Score a set of queries against pages, by answer score.

    >>> from vedette.text import hash_words
    >>> words = hash_words(b"low tide moon tide")
    >>> asked = QueryScorer(QuerySet(words[:3], np.array([0, 2, 3]), np.ones(2), np.array([1.0, 2.0, 2.0])))
    >>> pages = ForwardTokens(words[[0, 1, 3, 2, 0]], np.array([[0, 0, 0, 0, 3], [0, 0, 0, 0, 2]]))
    >>> found = asked.score(pages)
    >>> found.row.tolist(), found.query.tolist(), found.score.round(2).tolist()
    ([0, 1], [0, 1], [2.28, 1.35])
    """

    def __init__(self, wanted: QuerySet) -> None:
        self._queries = len(wanted)
        terms, at = np.unique(wanted.words, return_inverse=True)
        self._watched = TrackedTerms(terms, np.zeros(len(terms)))
        query = np.repeat(np.arange(self._queries), np.diff(wanted.start))
        # A word that a query repeats counts once.
        _, once = np.unique(query * max(len(terms), 1) + at, return_index=True)
        self._term, self._telling = at[once], wanted.idf[once]
        self._start = np.searchsorted(query[once], np.arange(self._queries + 1))
        self._build_gates(query[once])

    def _build_gates(self, query: Ints) -> None:
        order = np.lexsort((-self._telling, query))
        some = np.flatnonzero(np.diff(self._start))
        gate = self._term[order[self._start[some]]]
        by_gate = np.argsort(gate, kind="stable")
        self._gated = some[by_gate]
        self._gate_start = np.searchsorted(gate[by_gate], np.arange(len(self._watched) + 1))

    def score(self, pages: ForwardTokens) -> QueryMatches:
        """Return which of these pages answer which queries, with their answer scores."""
        answers = score_pages(self._watched, concatenate_words([NO_WORDS] * len(pages.lengths)), pages)
        width = max(len(self._watched), 1)
        keys = answers.page * width + answers.term
        starts, ends = self._gate_start[answers.term], self._gate_start[answers.term + 1]
        row, query = np.repeat(answers.page, ends - starts), self._gated[concatenate_ranges(starts, ends)]
        begins, stops = self._start[query], self._start[query + 1]
        at, pair = concatenate_ranges(begins, stops), np.repeat(np.arange(len(row)), stops - begins)
        wanted = row[pair] * width + self._term[at]
        place = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
        has = keys[place] == wanted if len(keys) else np.zeros(0, np.bool_)
        scores = np.where(has, answers.after[place] * self._telling[at], 0.0) if len(keys) else np.zeros(0)
        whole = np.bincount(pair, ~has, len(row)) == 0
        score = np.bincount(pair, scores, len(row)).astype(np.float64)
        return QueryMatches(row[whole], query[whole], score[whole])
