"""Statistics of full crawls: which share of all new pages each source leads to, and which lead to the same pages.

The policies of Pandey08 (section 3.6) learn from full crawls: one batch has for every known page the new pages it leads
to. A crawl without new pages says nothing about shares, and changes nothing.
"""

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from vedette.discover.polling.sources import Sources, get_latest_yields, grow_rows
from vedette.policy import Floats, Ints, Picks

# Pairs are compared among at most this many distinct sets, the largest; all others represent only themselves.
MAX_SETS = 2_000


def count_new(batch: Sources) -> int:
    """Count the distinct new targets of a full crawl."""
    return len(np.unique(batch.shown[batch.shown_new]))


def compute_shares(batch: Sources) -> Floats:
    """Compute the share of a full crawl's new targets that each row leads to (p_i of section 3.6.1); 0 without any."""
    return get_latest_yields(batch) / max(count_new(batch), 1)


def build_new_sets(batch: Sources) -> list[int]:
    """Build a bit set of the new targets that each row of a full crawl leads to."""
    row = np.repeat(np.arange(len(batch)), np.diff(batch.shown_start))[batch.shown_new]
    bits = np.unique(batch.shown[batch.shown_new], return_inverse=True)[1]
    sets = [0] * len(batch)
    for place, bit in zip(row.tolist(), bits.tolist(), strict=True):
        sets[place] |= 1 << bit
    return sets


def cluster_sets(sets: Sequence[int], likeness: float) -> list[int]:
    """Cluster the bit sets of a full crawl by single linkage; return each one's number, -1 for empty sets.

    Two sets are alike if their Jaccard coefficient is at least ``likeness``.

    >>> cluster_sets([0b0011, 0b0111, 0b1000, 0], 0.6)
    [0, 0, 1, -1]
    """
    distinct = [bits for bits in dict.fromkeys(sets) if bits]
    head = dict(zip(distinct, distinct, strict=True))
    largest = sorted(distinct, key=int.bit_count, reverse=True)[:MAX_SETS]
    for one, other in combinations(largest, 2):
        if (one & other).bit_count() >= likeness * (one | other).bit_count():
            head[_find_root(head, one)] = _find_root(head, other)
    numbers: dict[int, int] = {}
    return [numbers.setdefault(_find_root(head, bits), len(numbers)) if bits else -1 for bits in sets]


def _find_root(head: dict[int, int], bits: int) -> int:
    while head[bits] != bits:
        head[bits] = head[head[bits]]
        bits = head[bits]
    return bits


def lookup_values(rows: Floats, place: Ints) -> Floats:
    """Look up the stored values of these positions from full crawls; 0 if there is none."""
    return grow_rows(rows, place)[place]


def pick_best(options: Sources, worth: Floats, k: int, *, is_informed: bool) -> Picks:
    """Pick the k rows of the largest worth above 0 after full crawls; ties go by position.

    Before anything new was seen (``is_informed`` is False) take the stalest: without a full crawl there must be a first
    poll.
    """
    order = np.lexsort((options.place, -worth if is_informed else options.last_poll_s))
    rows = order[: min(k, np.count_nonzero(worth)) if is_informed else k].astype(np.int64)
    return Picks(rows, np.ones(len(rows)))
