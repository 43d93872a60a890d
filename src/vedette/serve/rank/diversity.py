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


# A copy is shown instead of the page that represents it if that matches much worse: pages that differ in numbers only
# are copies, and the query may name the number of one of them.
MIN_CANONICAL_SHARE = 0.67


def fold_copies(
    order: Ints, groups: Ints, is_canonical: npt.NDArray[np.bool_] | None = None, scores: Floats | None = None
) -> FoldedResults:
    """Fold copies: keep one result row of each group, where its first was; group 0 has no copies.

    That is its canonical row if it is among the results and scores nearly as much as the first, else the first.

    >>> fold_copies(np.array([2, 0, 1, 3]), np.array([7, 0, 7, 0]))
    FoldedResults(rows=array([2, 1, 3]), similar=array([1, 0, 0]))
    >>> fold_copies(np.array([2, 0, 1, 3]), np.array([7, 0, 7, 0]), np.array([True, False, False, False]))
    FoldedResults(rows=array([0, 1, 3]), similar=array([1, 0, 0]))
    >>> scores, is_canonical = np.array([2.0, 4.0, 7.0, 1.0]), np.array([True, False, False, False])
    >>> fold_copies(np.array([2, 1, 0, 3]), np.array([7, 0, 7, 0]), is_canonical, scores).rows
    array([2, 1, 3])
    """
    named = groups[order]
    # Pages without copies are separate groups.
    alone = -1 - np.arange(len(order), dtype=np.int64)
    _, first, counts = np.unique(np.where(named == 0, alone, named), return_index=True, return_counts=True)
    by_place = np.argsort(first)
    rows = order[first[by_place]]
    if is_canonical is not None:
        chosen = {int(groups[row]): int(row) for row in reversed(order[is_canonical[order]].tolist())}
        pairs = [(row, chosen.get(int(groups[row]), row) if groups[row] else row) for row in rows.tolist()]
        rows = np.array([row if _matches_worse(scores, other, row) else other for row, other in pairs], np.int64)
    return FoldedResults(rows, counts[by_place] - 1)


def _matches_worse(scores: Floats | None, row: int, other: int) -> bool:
    return scores is not None and scores[row] < MIN_CANONICAL_SHARE * scores[other] and scores[other] > 0


# An older release is shown if the newest matches much worse: its subject may be gone. A manual that only grew matches
# somewhat worse, since longer texts score less.
MIN_NEWEST_SHARE = 0.67


class FoldedVersions(NamedTuple):
    """Result rows that are shown, in order, and the rows of other releases folded under each, newest first."""

    rows: Ints
    others: dict[int, tuple[int, ...]]


def fold_versions(
    order: Ints, families: Ints, releases: Floats, scores: Floats, is_named: npt.NDArray[np.bool_]
) -> FoldedVersions:
    """Fold releases of one page (a family): keep one row of each, where its first was.

    That is the newest that matches nearly as well as the best, or the best of those that the query names.

    >>> releases, scores = np.array([2.0, 3.0, 4.0]), np.array([9.0, 6.5, 1.0])
    >>> families, order = np.array([7, 7, 7]), np.array([0, 1, 2])
    >>> fold_versions(order, families, releases, scores, np.zeros(3, bool))
    FoldedVersions(rows=array([1]), others={1: (2, 0)})
    >>> fold_versions(order, families, releases, scores, releases == 2.0).rows
    array([0])
    """
    members: dict[int, list[int]] = {}
    family_of = families.tolist()
    for row in order.tolist():
        members.setdefault(family_of[row] or -1 - row, []).append(row)
    rows, others = [], {}
    for family in members.values():
        chosen = family[0]
        if len(family) > 1:
            enough = MIN_NEWEST_SHARE * scores[chosen]
            named = next((row for row in family if is_named[row]), None)
            good = (row for row in family if scores[row] >= enough)
            chosen = max(good, key=lambda row: releases[row], default=chosen) if named is None else named
            rest = [row for row in family if row != chosen]
            others[chosen] = tuple(sorted(rest, key=lambda row: -releases[row]))
        rows.append(chosen)
    return FoldedVersions(np.array(rows, np.int64), others)


def join_families(families: Ints, releases: Floats, groups: Ints) -> Ints:
    """Join families whose pages are copies of each other in different releases; group 0 has no copies.

    >>> join_families(np.array([5, 6, 7]), np.array([2.0, 3.0, 3.0]), np.array([1, 1, 0])).tolist()
    [5, 5, 7]
    """
    members: dict[int, list[int]] = {}
    for row, group in enumerate(groups.tolist()):
        if group:
            members.setdefault(group, []).append(row)
    joined, numbers = families.tolist(), releases.tolist()
    for _, rows in sorted(members.items()):
        if len({numbers[row] for row in rows}) > 1 and len(same := {joined[row] for row in rows}) > 1:
            first = joined[rows[0]]
            joined = [first if family in same else family for family in joined]
    return np.array(joined, np.int64)
