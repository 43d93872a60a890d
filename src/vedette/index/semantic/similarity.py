"""Similarity of pages to a query in a vector space, comparable across spaces.

A page has one vector, or one per part, and its best one counts. Cosines mean different things in different spaces, so a
page's similarity is the number of standard deviations above the mean of all pages, divided by ``FULL``: 0 for an
average page, 1 for one that hardly occurs by chance.
"""

from typing import NamedTuple

import numpy as np

from vedette.index.semantic.latent_space import Vectors, normalize_rows
from vedette.policy import Floats, Ints

FULL = 8.0
# Pages below this are not candidates: in a few thousand pages, this similarity occurs by chance.
MIN_SHARE = 0.3
# How much the best pages by words count in addition to the query itself.
EXAMPLE_SHARE = 0.5


class Similarity(NamedTuple):
    """How similar pages are to a query, from 0 to 1; ids ascend. ``trust`` is its weight in ranking.

    >>> near = Similarity(np.array([3, 8]), np.array([0.1, 0.7]))
    >>> near.look_up(np.array([8, 5, 3])).tolist(), near.best(5).tolist()
    ([0.7, 0.0, 0.1], [8])
    """

    ids: Ints
    shares: Floats
    trust: float = 1.0

    def look_up(self, ids: Ints) -> Floats:
        """Return the similarity of pages times its trust, or 0 for pages without a vector."""
        if not len(self.ids):
            return np.zeros(len(ids))
        places = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
        return np.where(self.ids[places] == ids, self.trust * self.shares[places], 0.0)

    def best(self, most: int) -> Ints:
        """Return the ids of the most similar pages, best first."""
        order = np.argsort(-self.shares, kind="stable")[:most]
        return self.ids[order[self.shares[order] >= MIN_SHARE]]


class PartVectors(NamedTuple):
    """The vectors of all parts of pages: those of page ``ids[k]`` are ``rows[starts[k]:starts[k + 1]]``."""

    ids: Ints
    starts: Ints
    rows: Ints
    vectors: Vectors

    def average(self, ids: Ints, weights: Floats) -> Vectors | None:
        """Return the weighted mean of the pages' first parts; None if none of them has a vector."""
        places = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
        known = self.ids[places] == ids if len(self.ids) else np.zeros(len(ids), np.bool_)
        if not known.any():
            return None
        mean: Vectors = weights[known].astype(np.float32) @ self.vectors[self.rows[self.starts[places[known]]]]
        return mean


def measure_similarity(parts: PartVectors, query: Vectors, trust: float = 1.0) -> Similarity:
    """Measure how similar all pages are to a query's vector; none are similar if a value is not a number."""
    if not len(parts.ids) or not query.any():
        return Similarity(parts.ids[:0], np.zeros(0))
    best = compute_cosines(parts, query)
    return scale_cosines(parts.ids, best, float(best.mean()), float(best.std()), trust)


def compute_cosines(parts: PartVectors, query: Vectors) -> Floats:
    """Compute the cosine of each page's best part with a query's vector."""
    cosines = (parts.vectors @ query)[parts.rows].astype(np.float64)
    best: Floats = np.maximum.reduceat(cosines, parts.starts)
    return best


def scale_cosines(ids: Ints, cosines: Floats, mean: float, spread: float, trust: float = 1.0) -> Similarity:
    """Scale cosines to similarities by the mean and spread of all pages; none are similar if these are not numbers."""
    if not np.isfinite(spread):
        return Similarity(ids[:0], np.zeros(0))
    return Similarity(ids, np.clip((cosines - mean) / (FULL * spread or 1.0), 0.0, 1.0), trust)


def blend_query(own: Vectors | None, examples: Vectors | None, share: float = EXAMPLE_SHARE) -> Vectors | None:
    """Blend a query's own vector, if there is one, with the mean of the best pages by words; None if neither exists.

    ``share`` is the weight of these pages. This is pseudo-relevance feedback (Rocchio71): most of the best pages by
    words are relevant, so their mean describes the topic better than a few words do.


    >>> blend_query(None, np.array([0.0, 2.0], np.float32)).tolist(), blend_query(None, None)
    ([0.0, 1.0], None)
    """
    if own is None or examples is None:
        only = examples if own is None else own
        return None if only is None else _normalize(only)
    return _normalize(_normalize(own) + share * _normalize(examples))


def _normalize(vector: Vectors) -> Vectors:
    scaled: Vectors = normalize_rows(vector[None])[0]
    return scaled
