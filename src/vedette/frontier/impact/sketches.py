"""Sketches of queries: the best results with their scores, which an unseen page must beat (Impact08, 3.2).

A sketch stores a few more than the K results that people see. A removed result leaves a gap that later ones fill, so
the first K stay exact until more were removed than were stored beyond K.
"""

from dataclasses import dataclass, replace

import numpy as np

from vedette.policy import Floats, Ints

TOP_K = 10  # the results that count: the paper's K
SPARE_RESULTS = 10
NO_PAGE = -1


@dataclass(frozen=True, slots=True)
class Sketches:
    """Sketches of queries, a row each: scores, best first (0 after the last), and pages.

    >>> sketches = Sketches.empty(1).put(np.array([0, 0]), np.array([7, 8]), np.array([0.5, 0.9]))
    >>> sketches.page[0, :3].tolist(), sketches.get_thresholds().tolist()
    ([8, 7, -1], [0.0])
    """

    score: Floats
    page: Ints
    top_k: int = TOP_K

    @classmethod
    def empty(cls, queries: int, first: int = TOP_K, spare: int = SPARE_RESULTS) -> "Sketches":
        """Create sketches of queries that have no results yet."""
        shape = (queries, first + spare)
        return cls(np.zeros(shape), np.full(shape, NO_PAGE, np.int64), first)

    @property
    def size_bytes(self) -> int:
        """The memory that the sketches take."""
        return self.score.nbytes + self.page.nbytes

    def put(self, query: Ints, page: Ints, score: Floats) -> "Sketches":
        """Put pages with their scores into the sketches of queries; a score of 0 removes a page."""
        touched = np.unique(query)
        width = self.score.shape[1]
        own = np.repeat(touched, width)
        queries = np.concatenate((own, query))
        pages = np.concatenate((self.page[touched].reshape(-1), page))
        scores = np.concatenate((self.score[touched].reshape(-1), score))
        # Of two entries for one page the later one wins.
        age = np.arange(len(queries))
        order = np.lexsort((-age, pages, queries))
        newest = np.append(True, (np.diff(queries[order]) != 0) | (np.diff(pages[order]) != 0))[: len(order)]
        rows = order[newest]
        rows = rows[(pages[rows] != NO_PAGE) & (scores[rows] > 0)]
        return self._rebuild(touched, queries[rows], pages[rows], scores[rows])

    def _rebuild(self, touched: Ints, query: Ints, page: Ints, score: Floats) -> "Sketches":
        order = np.lexsort((page, -score, query))
        query, page, score = query[order], page[order], score[order]
        place = np.arange(len(query)) - np.searchsorted(query, query)
        fits = place < self.score.shape[1]
        scores, pages = self.score.copy(), self.page.copy()
        scores[touched], pages[touched] = 0.0, NO_PAGE
        scores[query[fits], place[fits]], pages[query[fits], place[fits]] = score[fits], page[fits]
        return replace(self, score=scores, page=pages)

    def select(self, queries: Ints) -> "Sketches":
        """Return the sketches of only these queries, renumbered."""
        return replace(self, score=self.score[queries], page=self.page[queries])

    def get_thresholds(self) -> Floats:
        """Return the score to beat to be in the first K of each query's sketch; 0 if there are fewer."""
        return np.asarray(self.score[:, self.top_k - 1])

    def get_thresholds_without(self, query: Ints, page: Ints) -> Floats:
        """Return the score to beat in each query's sketch for pages that are in it, leaving out each page itself."""
        inside = (self.page[query, : self.top_k] == page[:, None]).any(axis=1)
        return np.where(
            inside, self.score[query, min(self.top_k, self.score.shape[1] - 1)], self.get_thresholds()[query]
        )

    def compute_means(self) -> Floats:
        """Compute the mean score of the first K in each query's sketch, for improvability; missing ones are 0."""
        return np.asarray(self.score[:, : self.top_k].mean(axis=1))
