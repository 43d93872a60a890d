"""Diversity of search results: fold copies of one page under the best one, and limit results per site."""

from collections import Counter
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from vedette.policy import Floats, Ints

FIRST = 10
SHARE = 3
MIN_SITES = 5
MOVED_NOTE = "moved down: more results of this site above"


class SpreadResults(NamedTuple):
    """Result rows reordered for site diversity, and those that moved down."""

    rows: Ints
    moved: frozenset[int]


def spread_sites(rows: Ints, hosts: Ints) -> SpreadResults:
    """Limit each site to three of the first ten results; ``hosts`` is by row.

    With few sites there is no choice, and the order stays.
    """
    if len(np.unique(hosts[rows])) < MIN_SITES:
        return SpreadResults(rows, frozenset())
    shown: Counter[int] = Counter()
    first: list[int] = []
    held: list[int] = []
    rest = rows.tolist()
    for at, row in enumerate(rest):
        if len(first) == FIRST:
            return SpreadResults(np.array(first + held + rest[at:], np.int64), frozenset(held))
        host = int(hosts[row])
        (held if shown[host] >= SHARE else first).append(row)
        shown[host] += 1
    return SpreadResults(np.array(first + held, np.int64), frozenset(held))


class FoldedResults(NamedTuple):
    """Result rows that are shown, in order, and how many copies are folded under each."""

    rows: Ints
    similar: Ints

    def count_by_row(self) -> dict[int, int]:
        """Return how many results are folded under each row that is shown."""
        return dict(zip(self.rows.tolist(), self.similar.tolist(), strict=True))


def fold_copies(order: Ints, groups: Ints, is_canonical: npt.NDArray[np.bool_] | None = None) -> FoldedResults:
    """Fold copies: keep one result row of each group, where its first was; group 0 has no copies.

    That is its canonical row if it is among the results, else the first.

    >>> fold_copies(np.array([2, 0, 1, 3]), np.array([7, 0, 7, 0]))
    FoldedResults(rows=array([2, 1, 3]), similar=array([1, 0, 0]))
    >>> fold_copies(np.array([2, 0, 1, 3]), np.array([7, 0, 7, 0]), np.array([True, False, False, False]))
    FoldedResults(rows=array([0, 1, 3]), similar=array([1, 0, 0]))
    """
    named = groups[order]
    # Pages without copies are separate groups.
    alone = -1 - np.arange(len(order), dtype=np.int64)
    _, first, counts = np.unique(np.where(named == 0, alone, named), return_index=True, return_counts=True)
    by_place = np.argsort(first)
    rows = order[first[by_place]]
    if is_canonical is not None:
        chosen = {int(groups[row]): int(row) for row in reversed(order[is_canonical[order]].tolist())}
        rows = np.array([chosen.get(int(groups[row]), row) if groups[row] else row for row in rows.tolist()], np.int64)
    return FoldedResults(rows, counts[by_place] - 1)


# An older release is shown if the newest matches far worse: its subject may be gone.
MIN_NEWEST_SHARE = 0.6


def find_newest(order: Ints, families: Ints, releases: Floats, scores: Floats) -> npt.NDArray[np.bool_]:
    """Find which result of each family (one page of several releases) is the newest that matches about as well.

    >>> releases, scores = np.array([2.0, 3.0, 4.0]), np.array([9.0, 8.0, 1.0])
    >>> find_newest(np.array([0, 1, 2]), np.array([7, 7, 7]), releases, scores)
    array([False,  True, False])
    """
    best: dict[int, float] = {}
    newest: dict[int, int] = {}
    for row in order.tolist():
        family = int(families[row])
        if scores[row] >= MIN_NEWEST_SHARE * best.setdefault(family, float(scores[row])):
            chosen = newest.setdefault(family, row)
            newest[family] = row if releases[row] > releases[chosen] else chosen
    marks = np.zeros(len(families), np.bool_)
    marks[list(newest.values())] = True
    return marks
