"""Recorded front pages: which source page showed which target, from when to when, about every hour for a year.

It is the world of discovery: the sources are known and fixed, targets appear on them and go again, and the question is
which sources to look at. A policy never sees it; it is told what its looks brought.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from vedette.policy import Ints, rng_for

Bools = npt.NDArray[np.bool_]

# Snapshots to a block of the shelf. Links live ten snapshots in the median: smaller blocks repeat rows, larger ones
# make every look wade through links of other hours.
_SNAPSHOTS_PER_BLOCK = 32


class PollResults(NamedTuple):
    """What looks at some sources brought, a row each: whether it answered, and ``target[start[i]:start[i + 1]]``."""

    ok: Bools
    start: Ints
    target: Ints

    @property
    def row(self) -> Ints:
        """The look that brought each target."""
        return np.repeat(np.arange(len(self.ok)), np.diff(self.start))


class TargetVisibility(NamedTuple):
    """When each target could be seen in a span: snapshots ``first`` to ``gone`` (exclusive); both -1 where never."""

    first: Ints
    gone: Ints


class _BlockIndex(NamedTuple):
    """Rows by block of snapshots, then by source, so that a look reads one short slice; long rows stand in several."""

    slot: Ints
    source: Ints
    target: Ints
    start: Ints
    stop: Ints


@dataclass(frozen=True, eq=False)
class Frontpages:
    """Row ``i``: source ``source[i]`` showed target ``target[i]`` from snapshot ``start[i]`` until before ``stop[i]``.

    ``times`` are the unix seconds of the snapshots. ``ok[snapshot, source]`` says whether the recording has that page
    at that time; where it has not, a look fails and brings nothing, whatever was shown before and after. ``host`` is
    the number of each source's host.
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
        """How many there are."""
        return len(self.times)

    @property
    def sources(self) -> int:
        """How many there are."""
        return len(self.host)

    def links(self, source: int, snapshot: int) -> Ints:
        """The targets that a source showed at a snapshot; none where the recording failed."""
        if not self.ok[snapshot, source]:
            return np.zeros(0, np.int64)
        cell = snapshot // _SNAPSHOTS_PER_BLOCK * self.sources + source
        return self._visible_rows(int(self._block_index.slot[cell]), int(self._block_index.slot[cell + 1]), snapshot)[1]

    def visible_links(self, snapshot: int) -> tuple[Ints, Ints]:
        """All that could be seen at a snapshot: pairs of source and target, by source."""
        cell = snapshot // _SNAPSHOTS_PER_BLOCK * self.sources
        source, target = self._visible_rows(
            int(self._block_index.slot[cell]), int(self._block_index.slot[cell + self.sources]), snapshot
        )
        there = self.ok[snapshot][source]
        return source[there], target[there]

    def poll(self, sources: Ints, snapshot: int) -> PollResults:
        """What looks at these sources bring at a snapshot."""
        each = [self.links(int(source), snapshot) for source in sources]
        start = np.zeros(len(each) + 1, np.int64)
        np.cumsum([len(one) for one in each], out=start[1:])
        return PollResults(self.ok[snapshot, sources], start, np.concatenate([np.zeros(0, np.int64), *each]))

    def compute_visibility(self, begin: int = 0, end: int | None = None) -> TargetVisibility:
        """When each target could first and last be seen by anybody who looked at everything in a span."""
        end = self.snapshots if end is None else end
        first, gone = _row_visibility(self, begin, end)
        there = first < gone
        earliest = np.full(self.targets, end, np.int64)
        latest = np.full(self.targets, -1, np.int64)
        np.minimum.at(earliest, self.target[there], first[there])
        np.maximum.at(latest, self.target[there], gone[there])
        return TargetVisibility(np.where(latest < 0, -1, earliest), latest)

    def host_view(self, host: str) -> "Frontpages":
        """The world of one host alone: its sources and what they showed, numbered anew; the same object every time."""
        if host not in self._host_views:
            self._host_views[host] = self._build_host_view(host)
        return self._host_views[host]

    def _build_host_view(self, host: str) -> "Frontpages":
        number = self.host_names.index(host)
        kept = np.flatnonzero(self.host == number)
        rows = np.flatnonzero(self.host[self.source] == number)
        known, target = np.unique(self.target[rows], return_inverse=True)
        return Frontpages(
            name=f"{self.name}/{host}",
            times=self.times,
            source=np.searchsorted(kept, self.source[rows]),
            target=target.astype(np.int64),
            start=self.start[rows],
            stop=self.stop[rows],
            ok=self.ok[:, kept],
            host=np.zeros(len(kept), np.int64),
            source_names=tuple(self.source_names[each] for each in kept),
            host_names=(host,),
            targets=len(known),
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
    """For each row, the snapshots from which and until which a look would have shown it; first >= gone: none would."""
    at = np.arange(world.snapshots)[:, None]
    next_ok = np.minimum.accumulate(np.where(world.ok, at, world.snapshots)[::-1])[::-1]
    last_ok = np.maximum.accumulate(np.where(world.ok, at, -1))
    start, stop = np.maximum(world.start, begin), np.minimum(world.stop, end)
    inside = start < stop
    first, gone = np.ones(len(start), np.int64), np.zeros(len(start), np.int64)
    first[inside] = next_ok[start[inside], world.source[inside]]
    gone[inside] = last_ok[stop[inside] - 1, world.source[inside]] + 1
    return first, gone


def alter_future(world: Frontpages, index: int, seed: int) -> Frontpages:
    """A world with the same past and another future, for those who must prove that they do not know it.

    From snapshot ``index`` on, every source shows what another one would have shown, half of what comes up then is
    gone, and targets that were never seen before are others.
    """
    rng = rng_for(seed, "lab/frontpages/altered")
    moved = _draw_cycle(world.sources, rng)
    born = np.full(world.targets, world.snapshots, np.int64)
    np.minimum.at(born, world.target, world.start)
    later = np.flatnonzero(born >= index)
    renamed = np.arange(world.targets)
    renamed[later] = rng.permutation(later)
    past = np.flatnonzero(world.start < index)
    future = np.flatnonzero((world.stop > index) & ((world.start < index) | (rng.random(len(world.start)) < 0.5)))
    ok = world.ok.copy()
    ok[index:, moved] = world.ok[index:]
    return Frontpages(
        name=world.name,
        times=world.times,
        source=np.concatenate([world.source[past], moved[world.source[future]]]),
        target=np.concatenate([world.target[past], renamed[world.target[future]]]),
        start=np.concatenate([world.start[past], np.maximum(world.start[future], index)]),
        stop=np.concatenate([np.minimum(world.stop[past], index), world.stop[future]]),
        ok=ok,
        host=world.host,
        source_names=world.source_names,
        host_names=world.host_names,
        targets=world.targets,
    )


def _draw_cycle(count: int, rng: np.random.Generator) -> Ints:
    """A place for each of ``count`` that is another's: a ring in random order, everybody moves up by one."""
    ring = rng.permutation(count)
    moved = np.empty(count, np.int64)
    moved[ring] = np.roll(ring, 1)
    return moved
