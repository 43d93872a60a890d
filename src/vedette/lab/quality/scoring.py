"""Scoring functions of Pandey08 (4.7.1): TF-IDF, in-links, and the boolean one of its first example.

A version that lacks a word of the query has score 0 and is not in the list (4.2.1); the code that finds matches ensures
it (``vedette.lab.quality.workload``). Versions scored here have all words, and a score above 0.

The score of a page depends on its own content and on fixed numbers, as the thesis requires: the rarity of words (idf)
and the number of links to a page are taken from the web at one moment, chosen by the caller, usually the beginning. So
a score contains nothing from later.
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from vedette.lab.quality.corpus import Corpus, concat_ranges
from vedette.lab.worlds.history import History
from vedette.policy import Floats, Ints
from vedette.text import WordHashes


class QueryMatches(NamedTuple):
    """Matches of a query to score: versions with all of its words, and the count of each word (one row per word)."""

    terms: WordHashes
    versions: Ints
    pages: Ints
    times: Ints
    lengths: Ints


class Scoring(Protocol):
    """A scoring function for search results, for measuring search quality."""

    def scores(self, found: QueryMatches) -> Floats:
        """Return the score of each version that matches a query; above 0."""


class BooleanScoring:
    """Boolean scoring: 1 for every version that has all words, as in the example of section 4.1."""

    def scores(self, found: QueryMatches) -> Floats:
        """Return the boolean score, 1, of each version that matches a query."""
        return np.ones(len(found.versions))


@dataclass(frozen=True, slots=True)
class TfIdfScoring:
    """TF-IDF scoring as in Lucene: ``sum_t sqrt(tf) idf^2 / (sqrt(words of the version) sqrt(sum_t idf^2))``.

    ``idf = 1 + ln(n / (1 + df))``, where ``df[i]`` of ``n`` reference contents have the word ``terms[i]``. Two things
    differ from Lucene: lengths are exact (there they are compressed to a byte), and a word that a query repeats counts
    once. Its factor for partial matches is 1, as all words match.
    """

    terms: WordHashes
    df: Ints
    n: int

    def scores(self, found: QueryMatches) -> Floats:
        """Return the TF-IDF score of each version that matches a query."""
        squared = self.idf(found.terms) ** 2
        scores: Floats = (np.sqrt(found.times) * squared[:, None]).sum(axis=0)
        scores /= np.sqrt(found.lengths * squared.sum())
        return scores

    def idf(self, terms: WordHashes) -> Floats:
        """Return the inverse document frequency of words: the rarer, the higher; never less than 0.3.

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
    """In-link scoring: the number of links to the page plus one, so that unlinked pages are listed, too.

    The thesis took these counts from a search engine; here they come from the web's own links (``count_in_links``).
    """

    count: Ints

    def scores(self, found: QueryMatches) -> Floats:
        """Return the in-link score of each version that matches a query."""
        return self.count[found.pages].astype(np.float64) + 1.0


def build_tfidf(corpus: Corpus, versions: Ints) -> TfIdfScoring:
    """Build TF-IDF scoring with word frequencies of these versions; below 0 means pages without one."""
    rows = corpus.row_of[versions[versions >= 0]]
    terms, df = np.unique(corpus.term[concat_ranges(corpus.start[rows], corpus.start[rows + 1])], return_counts=True)
    return TfIdfScoring(terms, df, len(rows))


def count_in_links(history: History, versions: Ints) -> Ints:
    """Count how many of these versions link to each page of the history; below 0 means pages without one."""
    held = versions[versions >= 0]
    links = concat_ranges(history.link_start[held], history.link_start[held + 1])
    return np.bincount(history.link_to[links], minlength=history.pages)
