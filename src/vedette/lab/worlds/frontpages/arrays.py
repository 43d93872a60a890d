"""Recorded front pages: which source page showed which target, from when to when, about every hour for a year.

It is the world of discovery: the sources are known and fixed, targets appear on them and go again, and the question is
which sources to look at. A policy never sees it; it is told what its looks brought.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from vedette.policy import Ints, rng_for

__all__ = ["Frontpages", "Looks", "Seen", "altered_after"]

Bools = npt.NDArray[np.bool_]

# Snapshots to a block of the shelf. Links live ten snapshots in the median: smaller blocks repeat rows, larger ones
# make every look wade through links of other hours.
_BLOCK = 32


class Looks(NamedTuple):
    """What looks at some sources brought, a row each: whether it answered, and ``target[start[i]:start[i + 1]]``."""

    ok: Bools
    start: Ints
    target: Ints

    @property
    def row(self) -> Ints:
        """The look that brought each target."""
        return np.repeat(np.arange(len(self.ok)), np.diff(self.start))


class Seen(NamedTuple):
    """When each target could be seen in a span: snapshots ``first`` to ``gone`` (exclusive); both -1 where never."""

    first: Ints
    gone: Ints


class _Shelf(NamedTuple):
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
    _shelf: _Shelf = field(init=False, repr=False)
    _views: dict[str, "Frontpages"] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_shelf", _shelved(self))

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
        cell = snapshot // _BLOCK * self.sources + source
        return self._shown(int(self._shelf.slot[cell]), int(self._shelf.slot[cell + 1]), snapshot)[1]

    def shown(self, snapshot: int) -> tuple[Ints, Ints]:
        """All that could be seen at a snapshot: pairs of source and target, by source."""
        cell = snapshot // _BLOCK * self.sources
        source, target = self._shown(int(self._shelf.slot[cell]), int(self._shelf.slot[cell + self.sources]), snapshot)
        there = self.ok[snapshot][source]
        return source[there], target[there]

    def look(self, sources: Ints, snapshot: int) -> Looks:
        """What looks at these sources bring at a snapshot."""
        each = [self.links(int(source), snapshot) for source in sources]
        start = np.zeros(len(each) + 1, np.int64)
        np.cumsum([len(one) for one in each], out=start[1:])
        return Looks(self.ok[snapshot, sources], start, np.concatenate([np.zeros(0, np.int64), *each]))

    def seen(self, begin: int = 0, end: int | None = None) -> Seen:
        """When each target could first and last be seen by anybody who looked at everything in a span."""
        end = self.snapshots if end is None else end
        first, gone = _visible(self, begin, end)
        there = first < gone
        earliest = np.full(self.targets, end, np.int64)
        latest = np.full(self.targets, -1, np.int64)
        np.minimum.at(earliest, self.target[there], first[there])
        np.maximum.at(latest, self.target[there], gone[there])
        return Seen(np.where(latest < 0, -1, earliest), latest)

    def host_view(self, host: str) -> "Frontpages":
        """The world of one host alone: its sources and what they showed, numbered anew; the same object every time."""
        if host not in self._views:
            self._views[host] = self._viewed(host)
        return self._views[host]

    def _viewed(self, host: str) -> "Frontpages":
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

    def _shown(self, begin: int, end: int, snapshot: int) -> tuple[Ints, Ints]:
        shelf = self._shelf
        there = (shelf.start[begin:end] <= snapshot) & (snapshot < shelf.stop[begin:end])
        return shelf.source[begin:end][there], shelf.target[begin:end][there]


def _shelved(world: Frontpages) -> _Shelf:
    first, last = world.start // _BLOCK, (world.stop - 1) // _BLOCK
    blocks = last - first + 1
    row = np.repeat(np.arange(len(blocks)), blocks)
    nth = np.arange(len(row)) - np.repeat(np.cumsum(blocks) - blocks, blocks)
    cell = (first[row] + nth) * world.sources + world.source[row]
    order = np.lexsort((world.target[row], cell))
    row = row[order]
    cells = (world.snapshots // _BLOCK + 1) * world.sources
    slot = np.searchsorted(cell[order], np.arange(cells + 1))
    return _Shelf(slot, world.source[row], world.target[row], world.start[row], world.stop[row])


def _visible(world: Frontpages, begin: int, end: int) -> tuple[Ints, Ints]:
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


def altered_after(world: Frontpages, index: int, seed: int) -> Frontpages:
    """A world with the same past and another future, for those who must prove that they do not know it.

    From snapshot ``index`` on, every source shows what another one would have shown, half of what comes up then is
    gone, and targets that were never seen before are others.
    """
    rng = rng_for(seed, "lab/frontpages/altered")
    moved = _other_place(world.sources, rng)
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


def _other_place(count: int, rng: np.random.Generator) -> Ints:
    """A place for each of ``count`` that is another's: a ring in random order, everybody moves up by one."""
    ring = rng.permutation(count)
    moved = np.empty(count, np.int64)
    moved[ring] = np.roll(ring, 1)
    return moved
