"""Recorded front pages as arrays: which source page showed which target from when to when, hourly for a year.

It is the world of discovery: the sources are known and fixed, targets appear on them and disappear, and the question is
which sources to poll. A policy never sees it, only the results of its polls.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from vedette.policy import Ints

Bools = npt.NDArray[np.bool_]

# Snapshots per block of the index. Links live ten snapshots in the median: smaller blocks repeat rows, larger ones make
# every poll scan links of other hours.
_SNAPSHOTS_PER_BLOCK = 32


class PollResults(NamedTuple):
    """Results of polls of front page sources: whether each succeeded, and ``target[start[i]:start[i + 1]]``."""

    ok: Bools
    start: Ints
    target: Ints

    @property
    def row(self) -> Ints:
        """Return the poll (row) that showed each front page target."""
        return np.repeat(np.arange(len(self.ok)), np.diff(self.start))


class TargetVisibility(NamedTuple):
    """When each front page target was visible in a span: snapshots ``first`` to ``gone`` (exclusive), -1 if never."""

    first: Ints
    gone: Ints


class _BlockIndex(NamedTuple):
    """Index of front page rows by block of snapshots, then source, so that a poll reads one short slice.

    Long rows are in several blocks.
    """

    slot: Ints
    source: Ints
    target: Ints
    start: Ints
    stop: Ints


@dataclass(frozen=True, eq=False)
class Frontpages:
    """Recorded front pages: ``source[i]`` showed ``target[i]`` from snapshot ``start[i]`` until before ``stop[i]``.

    ``times`` are the unix seconds of the snapshots. ``ok[snapshot, source]`` says whether the recording has that page
    at that time; if not, a poll fails and shows nothing, whatever was shown before and after. ``host`` is the number of
    each source's host.
    """

    name: str
    times: Ints
    source: Ints
    target: Ints
    start: Ints
    stop: Ints
    ok: Bools
    host: Ints
    source_names: tuple[str, ...]
    host_names: tuple[str, ...]
    targets: int
    _block_index: _BlockIndex = field(init=False, repr=False)
    _host_views: dict[str, "Frontpages"] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_block_index", _build_block_index(self))

    @property
    def snapshots(self) -> int:
        """Return the number of snapshots in the front page recording."""
        return len(self.times)

    @property
    def sources(self) -> int:
        """Return the number of front page sources in the recording."""
        return len(self.host)

    def links(self, source: int, snapshot: int) -> Ints:
        """Return the targets that a front page source showed at a snapshot; none if the recording failed."""
        if not self.ok[snapshot, source]:
            return np.zeros(0, np.int64)
        cell = snapshot // _SNAPSHOTS_PER_BLOCK * self.sources + source
        return self._visible_rows(int(self._block_index.slot[cell]), int(self._block_index.slot[cell + 1]), snapshot)[1]

    def visible_links(self, snapshot: int) -> tuple[Ints, Ints]:
        """Return all front page links visible at a snapshot: pairs of source and target, by source."""
        cell = snapshot // _SNAPSHOTS_PER_BLOCK * self.sources
        source, target = self._visible_rows(
            int(self._block_index.slot[cell]), int(self._block_index.slot[cell + self.sources]), snapshot
        )
        there = self.ok[snapshot][source]
        return source[there], target[there]

    def poll(self, sources: Ints, snapshot: int) -> PollResults:
        """Poll these front page sources at a snapshot."""
        each = [self.links(int(source), snapshot) for source in sources]
        start = np.zeros(len(each) + 1, np.int64)
        np.cumsum([len(one) for one in each], out=start[1:])
        return PollResults(self.ok[snapshot, sources], start, np.concatenate([np.zeros(0, np.int64), *each]))

    def compute_visibility(self, begin: int = 0, end: int | None = None) -> TargetVisibility:
        """Compute when each front page target could first and last be seen by polling every source in a span."""
        end = self.snapshots if end is None else end
        first, gone = _row_visibility(self, begin, end)
        there = first < gone
        earliest = np.full(self.targets, end, np.int64)
        latest = np.full(self.targets, -1, np.int64)
        np.minimum.at(earliest, self.target[there], first[there])
        np.maximum.at(latest, self.target[there], gone[there])
        return TargetVisibility(np.where(latest < 0, -1, earliest), latest)

    def host_view(self, host: str) -> "Frontpages":
        """Return the recorded front pages of one host only, renumbered; the same object every time."""
        if host not in self._host_views:
            self._host_views[host] = self._build_host_view(host)
        return self._host_views[host]

    def _build_host_view(self, host: str) -> "Frontpages":
        number = self.host_names.index(host)
        sources = np.flatnonzero(self.host == number)
        rows = np.flatnonzero(self.host[self.source] == number)
        targets, target = np.unique(self.target[rows], return_inverse=True)
        return Frontpages(
            name=f"{self.name}/{host}",
            times=self.times,
            source=np.searchsorted(sources, self.source[rows]),
            target=target.astype(np.int64),
            start=self.start[rows],
            stop=self.stop[rows],
            ok=self.ok[:, sources],
            host=np.zeros(len(sources), np.int64),
            source_names=tuple(self.source_names[each] for each in sources),
            host_names=(host,),
            targets=len(targets),
        )

    def _visible_rows(self, begin: int, end: int, snapshot: int) -> tuple[Ints, Ints]:
        shelf = self._block_index
        there = (shelf.start[begin:end] <= snapshot) & (snapshot < shelf.stop[begin:end])
        return shelf.source[begin:end][there], shelf.target[begin:end][there]


def _build_block_index(world: Frontpages) -> _BlockIndex:
    first, last = world.start // _SNAPSHOTS_PER_BLOCK, (world.stop - 1) // _SNAPSHOTS_PER_BLOCK
    blocks = last - first + 1
    row = np.repeat(np.arange(len(blocks)), blocks)
    nth = np.arange(len(row)) - np.repeat(np.cumsum(blocks) - blocks, blocks)
    cell = (first[row] + nth) * world.sources + world.source[row]
    order = np.lexsort((world.target[row], cell))
    row = row[order]
    cells = (world.snapshots // _SNAPSHOTS_PER_BLOCK + 1) * world.sources
    slot = np.searchsorted(cell[order], np.arange(cells + 1))
    return _BlockIndex(slot, world.source[row], world.target[row], world.start[row], world.stop[row])


def _row_visibility(world: Frontpages, begin: int, end: int) -> tuple[Ints, Ints]:
    """Return the snapshots from and until which polls could show each front page row; first >= gone if none could."""
    at = np.arange(world.snapshots)[:, None]
    next_ok = np.minimum.accumulate(np.where(world.ok, at, world.snapshots)[::-1])[::-1]
    last_ok = np.maximum.accumulate(np.where(world.ok, at, -1))
    start, stop = np.maximum(world.start, begin), np.minimum(world.stop, end)
    inside = start < stop
    first, gone = np.ones(len(start), np.int64), np.zeros(len(start), np.int64)
    first[inside] = next_ok[start[inside], world.source[inside]]
    gone[inside] = last_ok[stop[inside] - 1, world.source[inside]] + 1
    return first, gone
