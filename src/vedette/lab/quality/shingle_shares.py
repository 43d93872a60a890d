"""How much of a text differs between two versions of a page: the part of their shingles that only one of them has.

Pandey08 (4.7.1) asks of a change whether this part is above a threshold. Here it is exact: 1 - |A and B| / |A or B|
over the different shingles of both (``parse.shingles``). Where one of the versions is none, everything differs.
"""

from collections import OrderedDict

import numpy as np

from vedette.lab.worlds.history import History
from vedette.parse.similarity.shingles import Words, shingles
from vedette.policy import Floats, Ints

__all__ = ["ShingleShares", "differing"]

TEXTS_KEPT = 2_000


class ShingleShares:
    """Of the versions of a history; what was asked once is remembered, by what the versions say."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._sets: OrderedDict[int, Words] = OrderedDict()
        self._shares: dict[tuple[int, int], float] = {}

    def between(self, before: Ints, after: Ints) -> Floats:
        """The part that differs, for each pair of versions; below 0 stands for none."""
        pairs = zip(before.tolist(), after.tolist(), strict=True)
        return np.array([self._share(one, other) for one, other in pairs], np.float64)

    def _share(self, one: int, other: int) -> float:
        if one < 0 or other < 0:
            return 1.0
        key = (int(self._history.digest[one]), int(self._history.digest[other]))
        if key[0] == key[1]:
            return 0.0
        if key not in self._shares:
            self._shares[key] = differing(self._of(one), self._of(other))
        return self._shares[key]

    def _of(self, version: int) -> Words:
        key = int(self._history.digest[version])
        if key not in self._sets:
            self._sets[key] = np.unique(shingles(self._history.texts.text(version)))
            if len(self._sets) > TEXTS_KEPT:
                self._sets.popitem(last=False)
        self._sets.move_to_end(key)
        return self._sets[key]


def differing(one: Words, other: Words) -> float:
    """The part of different numbers that only one of two ascending arrays has; nothing differs where both are empty.

    >>> differing(np.array([1, 2, 3], np.uint64), np.array([2, 3, 4], np.uint64))
    0.5
    """
    shared = len(np.intersect1d(one, other, assume_unique=True))
    every = len(one) + len(other) - shared
    return 1 - shared / every if every else 0.0
