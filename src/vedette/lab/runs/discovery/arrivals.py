"""New pages between two snapshots of a web, and the old pages that lead to them (cover sets).

At a snapshot, *old* pages are those of earlier snapshots, and *new* ones those that are there for the first time. An
old page ``x`` *covers* a new page ``y`` if a path leads from ``x`` to ``y`` through new pages only: they must be
fetched anyway, so following them costs nothing. New pages that no old one covers are *orphans*. Fetching old pages
``O`` that lead to the new pages ``N(O)`` has an overhead of ``|O| / |N(O)|``. GREEDY (``lab.baselines.greedy_cover``)
knows where every page leads, so it is a bound.

Reference: Pandey08, sections 3.2 (the bipartite graph H_t) and 3.5.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from vedette.lab.core.extras import import_extra
from vedette.lab.worlds.history import PAGE, History
from vedette.policy import Floats, Ints
from vedette.timeutil import DAY_S, HOUR_S, WEEK_S


def jaccard_overlaps(sets: Sequence[int]) -> Iterator[tuple[float, int]]:
    """Yield the Jaccard coefficients of all pairs of cover sets that are not empty, each with its number of pairs.

    >>> sorted(jaccard_overlaps([0b011, 0b011, 0b110, 0b1000]))
    [(0.0, 1), (0.0, 2), (0.3333333333333333, 2), (1.0, 1)]
    """
    counts = Counter(bits for bits in sets if bits)
    for count in counts.values():
        if count > 1:
            yield 1.0, count * (count - 1) // 2
    for (one, ones), (other, others) in combinations(counts.items(), 2):
        yield (one & other).bit_count() / (one | other).bit_count(), ones * others


Bools = npt.NDArray[np.bool_]

# Seconds to the next snapshot.
INTERVALS_S = {"weekly": WEEK_S, "daily": DAY_S, "monthly": 30 * DAY_S, "hourly": HOUR_S}


class Interval(NamedTuple):
    """The interval from one snapshot of a web to the next."""

    before_s: float
    now_s: float


def split_intervals(begin_s: float, end_s: float, every_s: float) -> list[Interval]:
    """Split a time span into whole intervals between snapshots; a rest at the end is left out.

    >>> split_intervals(0.0, 25.0, 10.0)
    [Interval(before_s=0.0, now_s=10.0), Interval(before_s=10.0, now_s=20.0)]
    """
    count = int((end_s - begin_s) // every_s)
    return [Interval(begin_s + number * every_s, begin_s + (number + 1) * every_s) for number in range(count)]


class Arrivals(NamedTuple):
    """Arrivals at a snapshot: the new pages, and the links to them from old pages and from new ones (by position)."""

    new: Ints
    old_source: Ints
    old_target: Ints  # a position in ``new``
    new_source: Ints  # positions in ``new``, both
    new_target: Ints


@dataclass(frozen=True, slots=True)
class Backlinks:
    """Index of the versions that link to each page, so that finding arrivals costs as much as new pages have links.

    Only pages count: a sitemap or feed that lists everything is no page.
    """

    history: History
    version: Ints
    start: Ints
    until_s: Floats
    first_s: Floats  # when a page's URL first existed: a page that comes back is not new

    @classmethod
    def from_history(cls, history: History) -> "Backlinks":
        """Build the backlink index of a history: its links by target."""
        order = np.argsort(history.link_to, kind="stable")
        owner = np.repeat(np.arange(len(history.version_page)), np.diff(history.link_start))
        start = np.searchsorted(history.link_to[order], np.arange(history.pages + 1))
        return cls(history, owner[order], start, history.version_end_s, _compute_first_births(history))

    def find_arrivals(self, step: Interval) -> Arrivals:
        """Find the pages that arrived in an interval, and the links that lead to them at its end."""
        history = self.history
        first = (step.before_s < self.first_s) & (self.first_s <= step.now_s) & (step.now_s < history.died_s)
        new = np.flatnonzero(first & (history.born_s <= step.now_s) & (history.kind == PAGE))
        source, target = self._find_current_links(new, step.now_s)
        place = np.full(history.pages, -1, np.int64)
        place[new] = np.arange(len(new))
        old, other = place[source] < 0, place[source] >= 0
        return Arrivals(new, source[old], target[old], place[source[other]], target[other])

    def _find_current_links(self, pages: Ints, now_s: float) -> tuple[Ints, Ints]:
        """Find the links to these pages at a time: the source page, and the position of the target among them."""
        counts = self.start[pages + 1] - self.start[pages]
        target = np.repeat(np.arange(len(pages)), counts)
        within = np.arange(len(target)) - np.repeat(np.cumsum(counts) - counts, counts)
        version = self.version[np.repeat(self.start[pages], counts) + within]
        source = self.history.version_page[version]
        present = (self.history.version_at_s[version] <= now_s) & (now_s < self.until_s[version])
        present &= self.history.kind[source] == PAGE
        return source[present], target[present]


def _compute_first_births(history: History) -> Floats:
    first: dict[str, float] = {}
    for url, born_s in zip(history.urls, history.born_s.tolist(), strict=True):
        first.setdefault(url, born_s)  # pages are numbered by birth
    return np.array([first[url] for url in history.urls], np.float64)


def number_hosts(history: History) -> Ints:
    """Number each page's host in order of appearance; cover sets use only links within a host.

    A history's sites may be finer: folders of one host, whose navigation leads from each to all others.
    """
    numbers: dict[str, int] = {}
    hosts = (url.partition("//")[2].partition("/")[0] for url in history.urls)
    return np.fromiter((numbers.setdefault(host, len(numbers)) for host in hosts), np.int64, history.pages)


class CoverSets(NamedTuple):
    """Cover sets of a group: for each old page that covers anything, a bit set of the new items it leads to.

    ``item_count`` is the number of items, ``orphans`` the number that no old page covers, ``direct`` the number that an
    old page itself links to.
    """

    group: int
    old_pages: Ints
    cover_bits: tuple[int, ...]
    item_count: int
    orphans: int
    direct: int


def compute_cover_sets(arrivals: Arrivals, things: Ints, group: Ints) -> list[CoverSets]:
    """Compute the cover sets of the old pages of each group in which anything is new.

    ``things`` is what each new page counts for: the number of an item within its group, or -1 for nothing (it may still
    lead to others). ``group`` is that of each page of the history; links between groups are left out.
    """
    of_new = group[arrivals.new]
    inner = of_new[arrivals.new_source] == of_new[arrivals.new_target]
    outer = group[arrivals.old_source] == of_new[arrivals.old_target]
    component, covers = _compute_closure(things, arrivals.new_source[inner], arrivals.new_target[inner])
    source, target = arrivals.old_source[outer], arrivals.old_target[outer]
    sets = _union_bits(source, component[target], covers)
    linked = np.zeros(len(things), bool)
    linked[target] = True
    by_group = _split_by_group(group, sets)
    order = np.argsort(of_new, kind="stable")
    cuts = np.flatnonzero(np.diff(of_new[order])) + 1
    found = (
        _build_cover_sets(int(of_new[places[0]]), by_group, things[places], linked[places])
        for places in np.split(order, cuts)
        if len(places)
    )
    return [reach for reach in found if reach.item_count]


def _build_cover_sets(group: int, by_group: dict[int, dict[int, int]], things: Ints, linked: Bools) -> CoverSets:
    sets = by_group.get(group, {})
    counted = things >= 0
    wanted, direct = len(np.unique(things[counted])), len(np.unique(things[counted & linked]))
    covered = 0
    for bits in sets.values():
        covered |= bits
    pages = np.fromiter(sets, np.int64, len(sets))
    return CoverSets(group, pages, tuple(sets.values()), wanted, wanted - covered.bit_count(), direct)


def _union_bits(source: Ints, component: Ints, covers: list[int]) -> dict[int, int]:
    """Unite the bit sets that each source page covers, sources in order; drop those that cover nothing."""
    sets: dict[int, int] = {}
    pairs = np.unique(source * max(len(covers), 1) + component)
    for page, one in zip(*(part.tolist() for part in np.divmod(pairs, max(len(covers), 1))), strict=True):
        if covers[one]:
            sets[page] = sets.get(page, 0) | covers[one]
    return sets


def _split_by_group(group: Ints, sets: dict[int, int]) -> dict[int, dict[int, int]]:
    found: dict[int, dict[int, int]] = {}
    for page, bits in sets.items():
        found.setdefault(int(group[page]), {})[page] = bits
    return found


def _compute_closure(things: Ints, source: Ints, target: Ints) -> tuple[Ints, list[int]]:
    """Compute the component of each new page, and the items that each component covers directly or by links."""
    sparse, csgraph = import_extra("paths over new pages are found with", "scipy.sparse", "scipy.sparse.csgraph")
    links = sparse.coo_array((np.ones(len(source)), (source, target)), shape=(len(things), len(things)))
    count, component = csgraph.connected_components(links, connection="strong") if len(things) else (0, things)
    covers = [0] * count
    for place in np.flatnonzero(things >= 0).tolist():
        covers[component[place]] |= 1 << int(things[place])
    pairs = np.unique(component[source] * max(count, 1) + component[target])
    edges = list(zip(*(part.tolist() for part in np.divmod(pairs, max(count, 1))), strict=True))
    # scipy numbers components so that links lead to lower numbers, and then one pass is enough. This is not guaranteed,
    # so passes continue until nothing changes.
    changed = True
    while changed:
        changed = False
        for one, other in edges:
            if covers[other] & ~covers[one]:
                covers[one] |= covers[other]
                changed = True
    return component, covers
