"""How few old pages lead to all new ones? The greedy cover, and how much what pages lead to overlaps.

What leads to what is said by ``arrivals``. Whoever fetches old pages ``O`` and so finds the new pages ``N(O)`` has an
overhead of ``|O| / |N(O)|``. GREEDY (``discover.greedy_cover``) is given what every page leads to, so it is a bound.

Reference: Pandey08, sections 3.2 and 3.5.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations

from vedette.lab.baselines.greedy_cover import Cover, greedy

__all__ = ["Cover", "greedy", "overlaps"]


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
