"""Scores as weighted sums, so that every point of a score can be told."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from vedette.policy import Floats

__all__ = ["Scored", "scored"]


class Scored(NamedTuple):
    """The score of each page, and what each feature added to it: a row per page, a column per feature."""

    scores: Floats
    contributions: Floats


def scored(features: Floats, keys: Sequence[str], weights: Mapping[str, float]) -> Scored:
    """Weights times features; a feature without a weight adds nothing.

    >>> scored(np.array([[1.0, 0.5]]), ("title", "spam"), {"title": 2.0, "spam": -1.0}).scores.tolist()
    [1.5]
    """
    contributions = features * np.array([weights.get(key, 0.0) for key in keys])
    return Scored(contributions.sum(axis=1), contributions)
