"""Statistics of full crawls: which share of all new pages each source leads to, and which lead to the same.

The policies of Pandey08 (section 3.6) learn from full crawls: one batch tells of every known page which new ones it
leads to. A crawl that brought nothing new says nothing of shares, and leaves everything as it was.
"""

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from vedette.discover.polling.sources import Sources, get_latest_yields, grow_rows
from vedette.policy import Floats, Ints, Picks

# Pairs are compared among so many distinct sets at most, the largest; all others stand for themselves.
MAX_SETS = 2_000


def count_new(batch: Sources) -> int:
    """How many new targets the looks of a batch showed together."""
    return len(np.unique(batch.shown[batch.shown_new]))


def compute_shares(batch: Sources) -> Floats:
    """p_i of section 3.6.1: the share of what was new that each row leads to; 0 where nothing was."""
    return get_latest_yields(batch) / max(count_new(batch), 1)


def build_new_sets(batch: Sources) -> list[int]:
    """The new targets of each row, as a number with a bit for each."""
    row = np.repeat(np.arange(len(batch)), np.diff(batch.shown_start))[batch.shown_new]
    bits = np.unique(batch.shown[batch.shown_new], return_inverse=True)[1]
    sets = [0] * len(batch)
    for place, bit in zip(row.tolist(), bits.tolist(), strict=True):
        sets[place] |= 1 << bit
    return sets


def cluster_sets(sets: Sequence[int], likeness: float) -> list[int]:
    """The cluster of each set, numbered; -1 for empty sets. Who is like any of a cluster belongs to it.

    Two sets are alike where their Jaccard coefficient is at least ``likeness``.

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
    """What is remembered of these places; 0 where that is nothing."""
    return grow_rows(rows, place)[place]


def pick_best(options: Sources, worth: Floats, k: int, *, told: bool) -> Picks:
    """The k rows that are worth most, if anything; equals go by place.

    Who was not ``told`` of anything new yet takes the stalest: without a full crawl there must be a first look.
    """
    order = np.lexsort((options.place, -worth if told else options.last_poll_s))
    rows = order[: min(k, np.count_nonzero(worth)) if told else k].astype(np.int64)
    return Picks(rows, np.ones(len(rows)))
