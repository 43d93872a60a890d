"""Latent space: page vectors learned only from the words of the crawled pages, without a model file.

Latent semantic indexing (LSI90): pages are rows of word weights tf / (tf + 1.2) · idf², scaled to length one. The space
is spanned by the leading right singular vectors of that matrix, found by a randomized range finder with power
iterations (Halko11, algorithm 4.4). Words that occur together have similar coordinates, so two pages can be close
without a common word. The idf is squared because otherwise common words would take up most of the space. The sparse
products are sums over sorted arrays, for which numpy is enough.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from vedette.index.query.retrieval import TEXT_FIELDS, ForwardTokens
from vedette.policy import Floats, Ints

DIMENSIONS = 120
OVERSAMPLING = 10
POWER_ITERATIONS = 2
# A word on only one page relates it to no other; a word on more than this share of the pages distinguishes none.
MIN_PAGES = 2
MAX_SHARE = 0.2
MAX_WORDS = 100_000
SATURATION = 1.2
CHUNK = 1 << 18  # weights that are multiplied at a time

Vectors = npt.NDArray[np.float32]
_URL = TEXT_FIELDS.index("url")


class LatentSpace(NamedTuple):
    """A learned space: its words as ascending hashes, the weight of each, and its coordinates."""

    words: npt.NDArray[np.uint32]
    weights: Floats
    axes: Vectors

    def project(self, pages: ForwardTokens) -> Vectors:
        """Project pages into the space, as vectors of length one, or zero for pages without any of its words."""
        return normalize_rows(_multiply(_weigh(_count(pages), self.words, self.weights), self.axes))


class _Sparse(NamedTuple):
    """A sparse matrix by rows: row, column and value of each entry, and the number of rows."""

    row: Ints
    column: Ints
    value: Floats
    rows: int

    def transpose(self, columns: int) -> "_Sparse":
        order = np.argsort(self.column, kind="stable")
        return _Sparse(self.column[order], self.row[order], self.value[order], columns)


def learn_space(pages: ForwardTokens, rng: np.random.Generator, dimensions: int = DIMENSIONS) -> LatentSpace | None:
    """Learn a space from the words of pages; None if they do not have enough words in common.

    >>> words = np.array([1, 2, 9, 1, 2, 3, 3, 4, 3, 4, 8], np.uint32)
    >>> pages = ForwardTokens(words, np.array([[0, 0, 0, 0, n] for n in (3, 3, 2, 3)]))
    >>> space = learn_space(pages, np.random.default_rng(1), 2)
    >>> vectors = space.project(pages)
    >>> bool(vectors[0] @ vectors[1] > 0.5 > vectors[0] @ vectors[3])
    True
    """
    counts = _count(pages)
    found, df = np.unique(counts.column, return_counts=True)
    telling = np.flatnonzero((df >= MIN_PAGES) & (df <= max(MAX_SHARE * counts.rows, MIN_PAGES)))
    telling = np.sort(telling[np.argsort(-df[telling], kind="stable")[:MAX_WORDS]])
    wanted = min(dimensions, len(telling), counts.rows)
    if not wanted:
        return None
    words, df = found[telling].astype(np.uint32), df[telling]
    weights = np.log1p((counts.rows - df + 0.5) / (df + 0.5)) ** 2
    axes = _find_axes(_weigh(counts, words, weights), len(words), wanted, rng)
    return LatentSpace(words, weights, axes)


def _find_axes(weights: _Sparse, columns: int, wanted: int, rng: np.random.Generator) -> Vectors:
    """Find the leading right singular vectors of a sparse matrix."""
    turned = weights.transpose(columns)
    size = min(wanted + OVERSAMPLING, columns, weights.rows)
    span = _multiply(weights, rng.standard_normal((columns, size), np.float32))
    for _ in range(POWER_ITERATIONS):
        span = _multiply(weights, np.linalg.qr(_multiply(turned, np.linalg.qr(span)[0]))[0])
    small = _multiply(turned, np.linalg.qr(span)[0])
    axes, _, _ = np.linalg.svd(small, full_matrices=False)
    return np.ascontiguousarray(axes[:, :wanted], np.float32)


def normalize_rows(vectors: npt.NDArray[np.floating]) -> Vectors:
    """Scale vectors to length one; zero vectors are not changed.

    >>> normalize_rows(np.array([[3.0, 4.0], [0.0, 0.0]])).round(1).tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)


def _count(pages: ForwardTokens) -> _Sparse:
    """Count the words of each page, without those of its URL."""
    fields = np.tile(np.arange(len(TEXT_FIELDS)), len(pages.lengths))
    is_kept = np.repeat(fields != _URL, pages.lengths.reshape(-1))
    page = np.repeat(np.arange(len(pages.lengths)), pages.lengths.sum(axis=1))[is_kept]
    pairs, times = np.unique(page << 32 | pages.words[is_kept].astype(np.int64), return_counts=True)
    return _Sparse(pairs >> 32, pairs & 0xFFFF_FFFF, times.astype(np.float64), len(pages.lengths))


def _weigh(counts: _Sparse, words: npt.NDArray[np.uint32], weights: Floats) -> _Sparse:
    """Weigh the words that are in a space, and scale each page's weights to length one.

    Columns are places in the space.
    """
    column = np.minimum(np.searchsorted(words, counts.column), len(words) - 1)
    known = np.flatnonzero(words[column] == counts.column)
    row, column = counts.row[known], column[known]
    tf = counts.value[known]
    value = tf / (tf + SATURATION) * weights[column]
    lengths = np.sqrt(np.bincount(row, value**2, counts.rows))
    return _Sparse(row, column, value / lengths[row], counts.rows)


def _multiply(one: _Sparse, other: Vectors) -> Vectors:
    """Multiply a sparse matrix by a dense one, in chunks of whole rows."""
    result = np.zeros((one.rows, other.shape[1]), np.float32)
    starts = np.flatnonzero(np.diff(one.row, prepend=-1))
    ends = np.append(starts[1:], len(one.row))
    cuts = [0, *np.flatnonzero(np.diff(ends // CHUNK)).tolist(), len(starts)]
    for low, high in pairwise(cuts):
        if low < high:
            first, last = int(starts[low]), int(ends[high - 1])
            parts = one.value[first:last, None].astype(np.float32) * other[one.column[first:last]]
            result[one.row[starts[low:high]]] = np.add.reduceat(parts, starts[low:high] - first, axis=0)
    return result
