"""Copies of one page are shown once: the best one stands for all."""

from typing import NamedTuple

import numpy as np

from vedette.policy import Ints

__all__ = ["Folded", "folded"]


class Folded(NamedTuple):
    """Rows that are shown, in order, and how many others each of them stands for."""

    rows: Ints
    similar: Ints


def folded(order: Ints, groups: Ints) -> Folded:
    """The first row of each group in an order of rows; group 0 is that of pages without copies.

    >>> folded(np.array([2, 0, 1, 3]), np.array([7, 0, 7, 0]))
    Folded(rows=array([2, 1, 3]), similar=array([1, 0, 0]))
    """
    named = groups[order]
    # Pages without copies are groups of their own.
    alone = -1 - np.arange(len(order), dtype=np.int64)
    _, first, counts = np.unique(np.where(named == 0, alone, named), return_index=True, return_counts=True)
    by_place = np.argsort(first)
    return Folded(order[first[by_place]], counts[by_place] - 1)
