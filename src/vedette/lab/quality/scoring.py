"""Scoring functions of Pandey08 (4.7.1): TF-IDF, in-links, and the boolean one of its first example.

A version that lacks a word of the query has score 0 and is not in the list (4.2.1); whoever finds the matches sees to
that (``vedette.lab.quality.workload``). What is scored here has all words, and its score is above 0.

The score of a page depends on its own content and on numbers that stay fixed, as the thesis asks: how rare words are
(idf) and how many links lead to a page are read off the web as it was at one moment, which the caller chooses, usually
the beginning. So nothing of what comes later is in a score.
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from vedette.lab.quality.corpus import Corpus, concat_ranges
from vedette.lab.worlds.history import History
from vedette.policy import Floats, Ints
from vedette.text import WordHashes


class QueryMatches(NamedTuple):
    """What a query found: versions that have all of its words, and how often each has each (a row a word)."""

    terms: WordHashes
    versions: Ints
    pages: Ints
    times: Ints
    lengths: Ints


class Scoring(Protocol):
    """A scoring function."""

    def scores(self, found: QueryMatches) -> Floats:
        """The score of each version found; above 0."""


class BooleanScoring:
    """1 for whatever has all words: the scoring function of the example in section 4.1."""

    def scores(self, found: QueryMatches) -> Floats:
        """The score of each version found."""
        return np.ones(len(found.versions))


@dataclass(frozen=True, slots=True)
class TfIdfScoring:
    """TF-IDF as Lucene had it: ``sum_t sqrt(tf) idf^2 / (sqrt(words of the version) sqrt(sum_t idf^2))``.

    ``idf = 1 + ln(n / (1 + df))``, where ``df[i]`` of ``n`` reference contents have the word ``terms[i]``. Two things
    differ from Lucene: lengths are exact (there they are squeezed into a byte), and a word that a query repeats counts
    once. Its factor for partial matches is 1, as all words are there.
    """

    terms: WordHashes
    df: Ints
    n: int

    def scores(self, found: QueryMatches) -> Floats:
        """The score of each version found."""
        squared = self.idf(found.terms) ** 2
        scores: Floats = (np.sqrt(found.times) * squared[:, None]).sum(axis=0)
        scores /= np.sqrt(found.lengths * squared.sum())
        return scores

    def idf(self, terms: WordHashes) -> Floats:
        """How much a word says: the rarer, the more; never less than 0.3.

        >>> TfIdfScoring(np.array([7], np.uint32), np.array([9]), 10).idf(np.array([7, 8], np.uint32)).round(2).tolist()
        [1.0, 3.3]
        """
        if not self.n:
            return np.ones(len(terms))
        at = np.minimum(np.searchsorted(self.terms, terms), max(len(self.terms) - 1, 0))
        df = np.where(self.terms[at] == terms, self.df[at], 0) if len(self.terms) else np.zeros(len(terms))
        return np.asarray(1.0 + np.log(self.n / (1.0 + df)))


@dataclass(frozen=True, slots=True)
class InLinkScoring:
    """How many links lead to the page, and one more: whatever has all words is in the list, also if nobody links to it.

    The thesis asked an engine for these counts; here they come from the links of the web itself (``count_in_links``).
    """

    count: Ints

    def scores(self, found: QueryMatches) -> Floats:
        """The score of each version found."""
        return self.count[found.pages].astype(np.float64) + 1.0


def build_tfidf(corpus: Corpus, versions: Ints) -> TfIdfScoring:
    """TF-IDF with words as rare as they are in these versions; numbers below 0 stand for pages without one."""
    rows = corpus.row_of[versions[versions >= 0]]
    terms, df = np.unique(corpus.term[concat_ranges(corpus.start[rows], corpus.start[rows + 1])], return_counts=True)
    return TfIdfScoring(terms, df, len(rows))


def count_in_links(history: History, versions: Ints) -> Ints:
    """How many of these versions lead to each page of the history; numbers below 0 stand for pages without one."""
    held = versions[versions >= 0]
    links = concat_ranges(history.link_start[held], history.link_start[held + 1])
    return np.bincount(history.link_to[links], minlength=history.pages)
