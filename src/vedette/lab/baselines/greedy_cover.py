"""Greedy set cover: repeatedly take the set that covers most of what is not covered yet.

With ``k`` sets it covers at least 1 - 1/e of what any ``k`` sets cover. A set is an integer with a bit for each
element: pages of one site share their navigation, so a few hundred distinct integers represent thousands of pages.

Reference: Pandey08, section 3.5.2. Its "while |C| <= k" takes k + 1 pages; here they are k.
"""

import heapq
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Cover(NamedTuple):
    """A greedy cover: the chosen rows in order, and how much each added; the gains never rise."""

    rows: tuple[int, ...]
    gains: tuple[int, ...]

    def count_found(self, most: int) -> int:
        """Count the new pages that the first ``most`` picks of the greedy cover find: the k-budgeted cover."""
        return sum(self.gains[:most])

    def find_size(self, share: float) -> int:
        """Count the picks of the greedy cover that find this share of all that can be found: the rho-partial cover.

        >>> Cover((4, 2, 7), (6, 3, 1)).find_size(0.9), Cover((4, 2, 7), (6, 3, 1)).find_size(0.91)
        (2, 3)
        """
        wanted = share * sum(self.gains) - 1e-9  # 0.7 of ten is seven, whatever the rounding says
        return int(np.searchsorted(np.cumsum(self.gains), wanted)) + 1 if self.gains and wanted > 0 else 0


def compute_greedy_cover(sets: Sequence[int], *, most: int | None = None) -> Cover:
    """Compute the greedy cover of bit sets, until all is covered or ``most`` rows are taken; ties go to the first row.

    A row's gain can only decrease, so a row is evaluated again only when it is at the top of the heap.

    >>> compute_greedy_cover([0b0011, 0b1110, 0b1000])
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
