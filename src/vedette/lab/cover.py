"""How few old pages lead to all new ones? The greedy cover, and how much what pages lead to overlaps.

What leads to what is said by ``arrivals``. Whoever fetches old pages ``O`` and so finds the new pages ``N(O)`` has an
overhead of ``|O| / |N(O)|``. GREEDY takes, again and again, the old page that covers most of what is not covered yet.
It knows everything, so it is a bound: with ``k`` pages it finds at least 1 - 1/e of what any ``k`` pages find.

What a page covers is kept as a number with a bit for each new page: pages of one site share their navigation, so a few
hundred distinct numbers stand for thousands of pages.

Reference: Pandey08, sections 3.2 and 3.5. Its "while |C| <= k" takes k + 1 pages; here they are k.
"""

import heapq
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

__all__ = ["Cover", "greedy", "overlaps"]


class Cover(NamedTuple):
    """The chosen rows in their order, and how much each added; the gains never rise."""

    rows: tuple[int, ...]
    gains: tuple[int, ...]

    def found_by(self, most: int) -> int:
        """How many new pages the first ``most`` picks find: the k-budgeted cover."""
        return sum(self.gains[:most])

    def size_for(self, share: float) -> int:
        """How many picks it takes to find this share of all that can be found: the rho-partial cover.

        >>> Cover((4, 2, 7), (6, 3, 1)).size_for(0.9), Cover((4, 2, 7), (6, 3, 1)).size_for(0.91)
        (2, 3)
        """
        wanted = share * sum(self.gains) - 1e-9  # 0.7 of ten is seven, whatever the rounding says
        return int(np.searchsorted(np.cumsum(self.gains), wanted)) + 1 if self.gains and wanted > 0 else 0


def greedy(sets: Sequence[int], *, most: int | None = None) -> Cover:
    """GREEDY over sets of bits, until all is covered or ``most`` rows are taken; of equals the first row is taken.

    What a row adds can only fall, so a row is weighed again only when it is at the top of the heap.

    >>> greedy([0b0011, 0b1110, 0b1000])
    Cover(rows=(1, 0), gains=(3, 1))
    """
    heap = [(-bits.bit_count(), row) for row, bits in enumerate(sets) if bits]
    heapq.heapify(heap)
    missing = -1  # all ones
    rows: list[int] = []
    gains: list[int] = []
    while heap and (most is None or len(rows) < most):
        claimed, row = heap[0]
        gain = (sets[row] & missing).bit_count()
        if not gain:
            heapq.heappop(heap)
        elif gain < -claimed:
            heapq.heapreplace(heap, (-gain, row))
        else:
            heapq.heappop(heap)
            missing &= ~sets[row]
            rows.append(row)
            gains.append(gain)
    return Cover(tuple(rows), tuple(gains))


def overlaps(sets: Sequence[int]) -> Iterator[tuple[float, int]]:
    """The Jaccard coefficients of all pairs of sets that share something, each with the number of such pairs.

    >>> sorted(overlaps([0b011, 0b011, 0b110, 0b1000]))
    [(0.3333333333333333, 2), (1.0, 1)]
    """
    counts = Counter(bits for bits in sets if bits)
    for count in counts.values():
        if count > 1:
            yield 1.0, count * (count - 1) // 2
    for (one, ones), (other, others) in combinations(counts.items(), 2):
        common = (one & other).bit_count()
        if common:
            yield common / (one | other).bit_count(), ones * others
