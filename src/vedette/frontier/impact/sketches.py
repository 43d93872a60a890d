"""The best results of each query, with their scores: whom an unseen page would have to pass (Impact08, section 3.2).

A sketch keeps some more than the K results that people see. What is taken out leaves a gap that those behind close, so
the first K stay exact until more was taken out than was kept beyond K; then the query is *short*, and whoever has the
index is to be asked again (``short``). Nothing is ever worked out for all queries because of one page.
"""

from dataclasses import dataclass, replace

import numpy as np

from vedette.policy import Floats, Ints

TOP_K = 10  # the results that count: the paper's K
SPARE_RESULTS = 10
NO_PAGE = -1


@dataclass(frozen=True, slots=True)
class Sketches:
    """A row a query: scores, best first (0 behind the last), and whose they are. ``removed``: left since it was whole.

    >>> sketches = Sketches.empty(1).put(np.array([0, 0]), np.array([7, 8]), np.array([0.5, 0.9]))
    >>> sketches.page[0, :3].tolist(), sketches.get_thresholds().tolist()
    ([8, 7, -1], [0.0])
    """

    score: Floats
    page: Ints
    removed: Ints
    top_k: int = TOP_K

    @classmethod
    def empty(cls, queries: int, first: int = TOP_K, spare: int = SPARE_RESULTS) -> "Sketches":
        """Sketches of queries that nothing answers yet."""
        shape = (queries, first + spare)
        return cls(np.zeros(shape), np.full(shape, NO_PAGE, np.int64), np.zeros(queries, np.int64), first)

    @property
    def size_bytes(self) -> int:
        """How much memory they take."""
        return self.score.nbytes + self.page.nbytes + self.removed.nbytes

    def put(self, query: Ints, page: Ints, score: Floats) -> "Sketches":
        """With these pages at these scores, whatever they had before; a score of 0 takes a page out."""
        touched = np.unique(query)
        width = self.score.shape[1]
        own = np.repeat(touched, width)
        queries = np.concatenate((own, query))
        pages = np.concatenate((self.page[touched].reshape(-1), page))
        scores = np.concatenate((self.score[touched].reshape(-1), score))
        # Of two entries for one page the later one holds.
        age = np.arange(len(queries))
        order = np.lexsort((-age, pages, queries))
        newest = np.append(True, (np.diff(queries[order]) != 0) | (np.diff(pages[order]) != 0))[: len(order)]
        kept = order[newest]
        kept = kept[(pages[kept] != NO_PAGE) & (scores[kept] > 0)]
        made = self._rebuild(touched, queries[kept], pages[kept], scores[kept])
        gone = (self.score[touched] > 0).sum(axis=1) - (made.score[touched] > 0).sum(axis=1)
        lost = self.removed.copy()
        lost[touched] += np.maximum(gone, 0)
        return replace(made, removed=lost)

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
        """Only these queries, numbered anew."""
        return replace(self, score=self.score[queries], page=self.page[queries], removed=self.removed[queries])

    def remove_page(self, page: int) -> "Sketches":
        """With a page taken out of all."""
        query = np.flatnonzero((self.page == page).any(axis=1))
        return self.put(query, np.full(len(query), page), np.zeros(len(query)))

    def find_short(self) -> Ints:
        """The queries whose first K are not certain any more, since more left than was kept beyond them."""
        return np.flatnonzero(self.removed > self.score.shape[1] - self.top_k)

    def get_thresholds(self) -> Floats:
        """The score that has to be passed to be among the first K; 0 where there are fewer."""
        return np.asarray(self.score[:, self.top_k - 1])

    def get_thresholds_without(self, query: Ints, page: Ints) -> Floats:
        """The same for pages that may stand there themselves: each is left out of its own way."""
        inside = (self.page[query, : self.top_k] == page[:, None]).any(axis=1)
        return np.where(
            inside, self.score[query, min(self.top_k, self.score.shape[1] - 1)], self.get_thresholds()[query]
        )

    def compute_means(self) -> Floats:
        """The average score of the first K, from which improvability is told; missing results count as 0."""
        return np.asarray(self.score[:, : self.top_k].mean(axis=1))
