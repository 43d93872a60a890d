"""Linear ranking scores: weighted sums of features, so that every point of a score can be explained."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from vedette.policy import Floats

# Word weights were fitted to known items of three real sites (``bench/known_item.py``, pages other than those it
# measures): a logistic model that predicts the wanted page among candidates, then single weights up and down as long as
# the mean reciprocal rank rose, none of them below zero, so that every match counts in favor of a page; rounded at the
# end. Many features that help alone add nothing besides the others, and have no weight. Those below the line are
# judgment calls: no known item shows whether a page is fresh or its site important. They decide what words leave open,
# and a home page goes first when the query is the name of its site.


# The ranking version recorded with each search; changes with the weights.
POLICY = "linear/2"

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


# Questions of many words: fitted to judged collections (``make bench-relevance``) together with the long known items,
# no weight below zero. No collection is evaluated with weights from its own judgments: see the bench.
QUESTION_WEIGHTS: Mapping[str, float] = MappingProxyType(
    {key: WEIGHTS[key] for key in ("home", "fresh", "importance", "host_importance", "popularity", "shallow", "spam")}
    | {
        "favoured": WEIGHTS["favoured"],
        "title_bm25": 1.4,
        "headings_bm25": 0.8,
        "url_bm25": 1.0,
        "body_bm25": 3.7,
        "title_coverage": 0.6,
        "headings_coverage": 0.3,
        "url_coverage": 1.0,
        "title_phrase": 2.1,
        "headings_phrase": 2.4,
        "body_phrase": 0.8,
        "title_pairs": 0.4,
        "headings_pairs": 0.2,
        "body_pairs": 1.1,
        "title_exact": 1.4,
        "title_is": 2.3,
        "body_early": 0.7,
        "anywhere": 2.2,
        "outside": 2.9,
    }
)
# Up to this many words a query names a page; from this many on it is a question; in between it is interpolated.
NAME_WORDS, QUESTION_WORDS = 4, 8


def blend_weights(words: int) -> Mapping[str, float]:
    """Return the weights for a query of this many words.

    >>> blend_weights(2) == WEIGHTS, blend_weights(12) == QUESTION_WEIGHTS
    (True, True)
    """
    share = min(max((words - NAME_WORDS) / (QUESTION_WORDS - NAME_WORDS), 0.0), 1.0)
    if share in {0.0, 1.0}:
        return QUESTION_WEIGHTS if share else WEIGHTS
    keys = dict.fromkeys((*WEIGHTS, *QUESTION_WEIGHTS))
    return {key: (1 - share) * WEIGHTS.get(key, 0.0) + share * QUESTION_WEIGHTS.get(key, 0.0) for key in keys}


class LinearScores(NamedTuple):
    """The linear score of each page, and each feature's contribution: one row per page, one column per feature."""

    scores: Floats
    contributions: Floats


def score_features(features: Floats, keys: Sequence[str], weights: Mapping[str, float]) -> LinearScores:
    """Compute linear ranking scores: weights times features; a feature without a weight adds nothing.

    >>> score_features(np.array([[1.0, 0.5]]), ("title", "spam"), {"title": 2.0, "spam": -1.0}).scores.tolist()
    [1.5]
    """
    contributions = features * np.array([weights.get(key, 0.0) for key in keys])
    return LinearScores(contributions.sum(axis=1), contributions)
