"""Predict how well an unseen page will answer a query: the scorer S' of Impact08 (section 3.2), without content.

It is learned from crawled pages: their features before the fetch, and their scores after it. Two forests are grown,
each from every other page, so that training pages get an honest prediction too (by the forest that has not seen them);
for others both count. Leaves store distributions: see ``forest``.
"""

from typing import NamedTuple

import numpy as np

from vedette.frontier.impact.forest import Forest, Grower
from vedette.frontier.impact.matching import Pairs, QuerySet
from vedette.frontier.impact.sketches import Sketches
from vedette.frontier.impact.url_features import DescribedUrls, TrainingPages
from vedette.policy import Floats, Ints

MIN_ROWS = 40  # rows to learn from


class ForestPair(NamedTuple):
    """Two forests that score unseen pages, by the half of pages that each has *not* seen."""

    even: Forest
    odd: Forest

    def predict_means(self, rows: Floats, half: Ints | None = None) -> Floats:
        """Predict scores with the forest pair; ``half`` gives the half of each row that was trained on."""
        return _combine(self.even.predict_means(rows), self.odd.predict_means(rows), half)

    def predict_both(self, rows: Floats, bar: Floats, half: Ints | None = None) -> tuple[Floats, Floats]:
        """Predict scores, and the probability to be above each bar, in one descent of the forest pair's trees."""
        even, odd = self.even.find_leaves(rows), self.odd.find_leaves(rows)
        means = _combine(self.even.average_leaves(even), self.odd.average_leaves(odd), half)
        return means, _combine(self.even.share_above(even, bar), self.odd.share_above(odd, bar), half)


def _combine(even: Floats, odd: Floats, half: Ints | None) -> Floats:
    return np.asarray((even + odd) / 2 if half is None else np.where(half == 0, even, odd))


def grow_forest_pair(rows: Floats, targets: Floats, half: Ints, grow: Grower, seed: int) -> ForestPair | None:
    """Grow the two forests of the scorer; None if there is too little training data."""
    sides = [np.flatnonzero(half == 1 - side) for side in (0, 1)]
    if min(map(len, sides)) < MIN_ROWS:
        return None
    even, odd = (grow(rows[side], targets[side], seed + number) for number, side in enumerate(sides))
    return ForestPair(even, odd)


def build_pair_columns(pairs: Pairs, batch: DescribedUrls, wanted: QuerySet, sketches: Sketches, bar: Floats) -> Floats:
    """Build the scorer's features of unseen URL and query pairs, one row per pair."""
    words = np.diff(wanted.start)
    idf_sums = np.add.reduceat(np.append(wanted.idf, 0.0), wanted.start[:-1]) * (words > 0)
    query, row = pairs.query, pairs.row
    columns = (
        *(pairs.share, pairs.in_url, pairs.in_anchors, pairs.longest_ngram, np.log1p(pairs.links)),
        *(words[query], idf_sums[query], bar, sketches.compute_means()[query]),
        *(np.log1p(np.maximum(batch.inlinks[row], 0)), batch.importance[row], batch.depth[row]),
    )
    return np.column_stack([np.asarray(column, np.float64) for column in columns])


def lookup_true_scores(pairs: Pairs, brought: TrainingPages, queries: int) -> Floats:
    """Look up how crawled pages really scored for their query, to train the scorer; 0 if words are missing."""
    keys = brought.found_row * queries + brought.found_query
    order = np.argsort(keys, kind="stable")
    wanted = pairs.row * queries + pairs.query
    if not len(keys):
        return np.zeros(len(wanted))
    at = order[np.minimum(np.searchsorted(keys[order], wanted), len(keys) - 1)]
    return np.where(keys[at] == wanted, brought.found_score[at], 0.0)
