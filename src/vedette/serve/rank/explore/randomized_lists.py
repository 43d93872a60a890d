"""Randomized result lists: distributions over lists with exact propensities.

A plan is made once from the current data; a new list is drawn from it for each person (``draw``). In the lab only one
position of each list is viewed, and ``draw_at_ranks`` returns the row at that position, for many independent lists at
once.
"""

from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from vedette.policy import Floats, Ints, Picks


class RandomizedList(Protocol):
    """Protocol of a randomized list: a probability distribution over result lists."""

    def draw(self, k: int, rng: np.random.Generator) -> Picks:
        """Draw the first k rows of one list; the propensity is the probability of a row at its position."""

    def draw_at_ranks(self, ranks: Ints, rng: np.random.Generator) -> Ints:
        """Draw the row at each rank (from 1), each from an independent randomized list."""


class TiedOrder(NamedTuple):
    """A ranking with ties: rows in blocks of equals in random order, and the block of each position.

    ``begin`` and ``size`` are those of the block, by position. Usually the positions of a block are adjacent.
    """

    rows: Ints
    begin: Ints
    size: Ints

    def draw(self, k: int, rng: np.random.Generator) -> Picks:
        """Draw a list with each block of ties shuffled.

        >>> rank_with_ties(np.array([1.0, 3.0, 3.0])).draw(3, np.random.default_rng(1)).propensities.tolist()
        [0.5, 0.5, 1.0]
        """
        shuffled = np.lexsort((rng.random(len(self.rows)), np.sort(self.begin)))
        return Picks(self.rows_in_order(shuffled)[:k], 1.0 / self.size[:k])

    def rows_in_order(self, shuffled: npt.NDArray[np.intp] | None = None) -> Ints:
        """Return the rows in order, with the members of each block filling its positions in turn."""
        rows = np.zeros(len(self.rows), np.int64)
        rows[np.argsort(self.begin, kind="stable")] = self.rows if shuffled is None else self.rows[shuffled]
        return rows

    def draw_at_ranks(self, ranks: Ints, rng: np.random.Generator) -> Ints:
        """Draw a random member of the block at each rank."""
        places = ranks - 1
        return self.rows[self.begin[places] + (rng.random(len(ranks)) * self.size[places]).astype(np.int64)]


def rank_with_ties(scores: Floats) -> TiedOrder:
    """Rank rows by score, largest first, with random order among ties."""
    return group_ties(best_first(scores), scores)


def group_ties(rows: npt.NDArray[np.int64] | npt.NDArray[np.intp], scores: Floats) -> TiedOrder:
    """Group already ordered rows into blocks of ties; neighbors of equal score form a block."""
    edges = np.flatnonzero(np.diff(scores[rows]) != 0.0) + 1
    begins = np.append(0, edges)[: len(rows)].astype(np.int64)
    sizes = np.diff(np.append(begins, len(rows)))
    return TiedOrder(rows.astype(np.int64), np.repeat(begins, sizes), np.repeat(sizes, sizes))


def best_first(scores: Floats) -> Ints:
    """Sort rows by score, largest first; equal scores keep their order.

    >>> best_first(np.array([1.0, 3.0, 3.0])).tolist()
    [1, 2, 0]
    """
    return np.argsort(-scores, kind="stable").astype(np.int64)


class PoolMerge(NamedTuple):
    """The randomized merge of Pandey08, section 5.5: an ordered list, a shuffled pool, and a coin per position.

    The first ``first - 1`` positions belong to the ordered list. At each further position a coin takes the next of the
    pool with probability ``degree``, else the next of the ordered list; when one is used up, the other continues.
    """

    ordered: Ints
    pool: Ints
    first: int
    degree: float

    def draw(self, k: int, rng: np.random.Generator) -> Picks:
        """Draw one merged list, coin by coin."""
        length = min(k, len(self.ordered) + len(self.pool))
        pool = rng.permutation(self.pool)
        coins = rng.random(length) < self.degree
        chances = self._taken_chances(length)
        rows, propensities = np.zeros(length, np.int64), np.zeros(length)
        taken = 0
        for place in range(length):
            promoted = self._is_promoted(place, taken, coin=bool(coins[place]))
            rows[place] = pool[taken] if promoted else self.ordered[place - taken]
            propensities[place] = self._propensity(place, taken, chances[place], promoted=promoted)
            taken += promoted
        return Picks(rows, propensities)

    def draw_at_ranks(self, ranks: Ints, rng: np.random.Generator) -> Ints:
        """Draw the row at each rank; the number of pool rows before it is binomial until one list is used up."""
        head = min(self.first - 1, len(self.ordered))
        flips = np.maximum(ranks - 1 - head, 0)
        left = len(self.ordered) - head
        taken = np.clip(rng.binomial(flips, self.degree), flips - left, np.minimum(flips, len(self.pool)))
        coin = rng.random(len(ranks)) < self.degree
        promoted = (ranks > head) & np.where(flips - taken >= left, True, coin & (taken < len(self.pool)))
        lot = (rng.random(len(ranks)) * len(self.pool)).astype(np.int64)
        places = np.minimum(ranks - 1 - taken, max(len(self.ordered) - 1, 0))
        return np.where(promoted, _take_rows(self.pool, lot), _take_rows(self.ordered, places))

    def _is_promoted(self, place: int, taken: int, *, coin: bool) -> bool:
        if place - taken >= len(self.ordered):
            return True
        return coin and place >= self.first - 1 and taken < len(self.pool)

    def _promotion_chance(self, place: int, taken: int) -> float:
        """Return the probability that a position goes to the pool, once ``taken`` of its rows were used."""
        never, always = (self._is_promoted(place, taken, coin=coin) for coin in (False, True))
        return self.degree * always + (1 - self.degree) * never

    def _taken_chances(self, length: int) -> Floats:
        """Return, for each position, the distribution of how many pool rows come before it."""
        chances = np.zeros((length + 1, length + 2))
        chances[0, 0] = 1.0
        for place in range(length):
            for taken in range(place + 1):
                if chances[place, taken]:
                    up = self._promotion_chance(place, taken)
                    chances[place + 1, taken + 1] += chances[place, taken] * up
                    chances[place + 1, taken] += chances[place, taken] * (1 - up)
        return chances

    def _propensity(self, place: int, taken: int, chances: Floats, *, promoted: bool) -> float:
        """Return the probability of this row at this position: a pool row by any count, a list row by one."""
        if not promoted:
            return float(chances[taken]) * (1 - self._promotion_chance(place, taken))
        ways = sum(float(chances[count]) * self._promotion_chance(place, count) for count in range(place + 1))
        return ways / len(self.pool)


def _take_rows(rows: Ints, places: Ints) -> Ints:
    """Take the rows at positions; an empty list gives zeros, which are never used."""
    return rows[places] if len(rows) else np.zeros(len(places), np.int64)
