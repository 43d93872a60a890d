"""Corpus of a history: word counts of every version as arrays, and shingle distances between texts.

Words are those of ``vedette.text``, by their numbers. Equal contents (by digest) are read once: a *row* is a content,
and ``row_of`` maps versions to rows. Reading the texts takes most of the time, so the latest corpora stay in memory.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from vedette.lab.worlds.history import History
from vedette.parse.similarity.shingles import WideHashes, shingle_text
from vedette.policy import Floats, Ints
from vedette.text import WordHashes, hash_words, normalize_words

# Pandey08 (4.7.1) compares this share with a threshold. Here it is exact: 1 - |A and B| / |A or B| over the different
# shingles of both (``parse.similarity.shingles``). If one of the versions is missing, everything differs.


TEXTS_KEPT = 2_000


class ShingleDistance:
    """Shingle distances between versions of a history, cached by the versions' contents."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._sets: OrderedDict[int, WideHashes] = OrderedDict()
        self._shares: dict[tuple[int, int], float] = {}

    def compute(self, before: Ints, after: Ints) -> Floats:
        """Compute the shingle distance of each pair of versions; below 0 means no version."""
        pairs = zip(before.tolist(), after.tolist(), strict=True)
        return np.array([self._compute_pair(one, other) for one, other in pairs], np.float64)

    def _compute_pair(self, one: int, other: int) -> float:
        if one < 0 or other < 0:
            return 1.0
        key = (int(self._history.digest[one]), int(self._history.digest[other]))
        if key[0] == key[1]:
            return 0.0
        if key not in self._shares:
            self._shares[key] = jaccard_distance(self._load_shingles(one), self._load_shingles(other))
        return self._shares[key]

    def _load_shingles(self, version: int) -> WideHashes:
        key = int(self._history.digest[version])
        if key not in self._sets:
            self._sets[key] = np.unique(shingle_text(self._history.texts.text(version)))
            if len(self._sets) > TEXTS_KEPT:
                self._sets.popitem(last=False)
        self._sets.move_to_end(key)
        return self._sets[key]


def jaccard_distance(one: WideHashes, other: WideHashes) -> float:
    """Compute the Jaccard distance of two ascending arrays of shingles; 0 if both are empty.

    >>> jaccard_distance(np.array([1, 2, 3], np.uint64), np.array([2, 3, 4], np.uint64))
    0.5
    """
    shared = len(np.intersect1d(one, other, assume_unique=True))
    every = len(one) + len(other) - shared
    return 1 - shared / every if every else 0.0


@dataclass(frozen=True, slots=True)
class Corpus:
    """Words of a history's contents: row ``r`` has ``term[start[r]:start[r + 1]]``, ascending, with their ``count``.

    ``length`` counts all words of a row, including those left out because no query has them. ``page_of`` is the page of
    each version.
    """

    row_of: Ints
    page_of: Ints
    start: Ints
    term: WordHashes
    count: WordHashes
    length: Ints

    @property
    def rows(self) -> int:
        """Return the number of distinct contents in the corpus."""
        return len(self.length)


Value = TypeVar("Value")


class HistoryCache(Generic[Value]):
    """Cache of the latest values built for histories, which compare by identity, so ``lru_cache`` will not do."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._entries: list[tuple[History, Hashable, Value]] = []

    def get(self, history: History, key: Hashable, build: Callable[[], Value]) -> Value:
        """Return the cached value of a history and a key; build it if it is missing."""
        for held, held_key, value in self._entries:
            if held is history and held_key == key:
                return value
        built = build()
        self._entries[:] = [(history, key, built), *self._entries[: self._size - 1]]
        return built


_corpora: HistoryCache[Corpus] = HistoryCache(size=2)


def load_corpus(history: History, only: WordHashes | None = None) -> Corpus:
    """Load the corpus of a history, built once; ``only`` lists the words to keep, if not all are needed."""
    wanted = None if only is None else np.unique(only)
    key = None if wanted is None else wanted.tobytes()
    return _corpora.get(history, key, lambda: _build_corpus(history, wanted))


def concat_ranges(starts: Ints, ends: Ints) -> Ints:
    """Concatenate the ranges of numbers from each start to its end (exclusive), for corpus rows.

    >>> concat_ranges(np.array([3, 9, 5]), np.array([5, 9, 8])).tolist()
    [3, 4, 5, 6, 7]
    """
    sizes = ends - starts
    before = np.cumsum(sizes) - sizes
    numbers: Ints = np.arange(sizes.sum()) + np.repeat(starts - before, sizes)
    return numbers


def _build_corpus(history: History, wanted: WordHashes | None) -> Corpus:
    _, first, row_of = np.unique(history.digest, return_index=True, return_inverse=True)
    # Rows in the order of their first versions, since neighboring texts are read together.
    order = np.argsort(first, kind="stable")
    row_of = np.argsort(order, kind="stable")[row_of]
    terms, counts = [np.zeros(0, np.uint32)], [np.zeros(0, np.uint32)]
    length = np.zeros(len(first), np.int64)
    for row, version in enumerate(first[order].tolist()):
        numbers = hash_words(normalize_words(history.texts.text(version)))
        length[row] = len(numbers)
        term, count = np.unique(_filter_terms(numbers, wanted), return_counts=True)
        terms.append(term)
        counts.append(count.astype(np.uint32))
    start = np.cumsum([len(term) for term in terms], dtype=np.int64)
    return Corpus(row_of, history.version_page, start, np.concatenate(terms), np.concatenate(counts), length)


def _filter_terms(numbers: WordHashes, wanted: WordHashes | None) -> WordHashes:
    if wanted is None:
        return numbers
    if not len(wanted):
        return numbers[:0]
    at = np.searchsorted(wanted, numbers)
    selected: WordHashes = numbers[wanted[np.minimum(at, len(wanted) - 1)] == numbers]
    return selected
