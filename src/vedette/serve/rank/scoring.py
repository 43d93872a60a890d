"""Linear ranking scores: weighted sums of features, so that every point of a score can be explained."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from vedette.policy import Floats

# Those of words were fitted to known items of three real sites (``bench/known_item.py``, pages other than those it
# measures): a logistic model of which candidate is the page that is looked for, then single weights up and down as long
# as the mean reciprocal rank rose, none of them below zero, so that every match speaks for a page; rounded at the end.
# Many features that help alone add nothing beside the others, and have no weight.
# Those below the line are judgement: no known item tells whether a page is fresh or its site important. They settle
# what words leave open, and a home page goes first when the query is the name of its site.


# What ranked, as written down with each search; another number for other weights.
POLICY = "linear/1"

WEIGHTS: Mapping[str, float] = MappingProxyType(
    {
        "title_exact": 3.5,
        "title_is": 2.0,
        "title_phrase": 3.5,
        "headings_phrase": 1.2,
        "headings_pairs": 1.2,
        "anchors_exact": 0.5,
        "anchors_pairs": 0.8,
        "url_bm25": 2.3,
        "body_has": 3.0,
        "body_phrase": 0.3,
        "body_pairs": 0.4,
        "body_bm25": 0.3,
        "body_near": 0.3,
        "body_early": 1.0,
        "anywhere": 6.0,
        "outside": 0.7,
        # ---
        "home": 10.0,
        "fresh": 3.0,
        "importance": 0.2,
        "host_importance": 0.1,
        "popularity": 1.0,
        "shallow": 0.2,
        "spam": -2.0,
        "favoured": 4.0,
    }
)


class LinearScores(NamedTuple):
    """The linear score of each page, and each feature's contribution: a row per page, a column per feature."""

    scores: Floats
    contributions: Floats


def score_features(features: Floats, keys: Sequence[str], weights: Mapping[str, float]) -> LinearScores:
    """Compute linear ranking scores: weights times features; a feature without a weight adds nothing.

    >>> score_features(np.array([[1.0, 0.5]]), ("title", "spam"), {"title": 2.0, "spam": -1.0}).scores.tolist()
    [1.5]
    """
    contributions = features * np.array([weights.get(key, 0.0) for key in keys])
    return LinearScores(contributions.sum(axis=1), contributions)
