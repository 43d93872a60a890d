"""Upper bounds of discovery (``bound-myopic``, ``bound-greedy``): oracles that know what every poll would find.

Neither is the optimum, which is out of reach (maximum cover is NP-hard); both repeatedly take what adds most.
``bound-myopic`` does so hour by hour, as the oracle of Thompson23 (section 3.2.1), and is the reference for regret: it
never lets a poll wait for a better hour, so a policy may beat it. ``bound-greedy`` is GREEDY of Pandey08 (section
3.5.2) over all polls of all hours at once, at most k in an hour: its "while |C| <= k" would take k + 1.
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from vedette.discover.polling.sources import PollResults
from vedette.lab.baselines.greedy_cover import compute_greedy_cover
from vedette.lab.worlds.frontpages.arrays import Frontpages
from vedette.policy import Ints


class MyopicBound:
    """Myopic discovery bound: at each snapshot the k sources with most targets not found yet, by greedy cover.

    It spends its whole budget, as a crawler does: if fewer than k find anything, others fill up.
    """

    def __init__(self, world: Frontpages, k: int, begin: int, end: int) -> None:
        del begin, end  # it does not look ahead
        self._world, self._k = world, k
        self._found: npt.NDArray[np.bool_] = np.zeros(world.targets, bool)

    def choose(self, snapshot: int) -> Ints:
        """Choose the sources that the myopic discovery bound polls at a snapshot, in the order of the greedy cover."""
        source, target = self._world.visible_links(snapshot)
        missing = ~self._found[target]
        rows = compute_greedy_cover(
            _to_bitsets(source[missing], target[missing], self._world.sources), most=self._k
        ).rows
        order = dict.fromkeys((*rows, *range(self._world.sources)))
        return np.array(list(order)[: self._k], np.int64)

    def observe(self, snapshot: int, brought: PollResults) -> None:
        """Mark the targets that the myopic discovery bound found, so that they do not count again."""
        del snapshot
        self._found[brought.target] = True


def _to_bitsets(source: Ints, target: Ints, sources: int) -> list[int]:
    """Convert the targets that each source shows to bit sets, for the discovery bounds."""
    sets = [0] * sources
    bits = np.unique(target, return_inverse=True)[1]
    for row, bit in zip(source.tolist(), bits.tolist(), strict=True):
        sets[row] |= 1 << bit
    return sets


class GreedyBound:
    """Greedy discovery bound: plan the polls of a whole span, always the one that adds most uncovered targets.

    At most k at a snapshot; of equals the earliest. It stops when all is found, so it may spend less than its budget.
    """

    def __init__(self, world: Frontpages, k: int, begin: int, end: int) -> None:
        self._plan = _GreedyPlanner(world, k, begin, end).build_plan()

    def choose(self, snapshot: int) -> Ints:
        """Return the sources that the greedy discovery bound planned to poll at this snapshot."""
        return np.array(self._plan.get(snapshot, []), np.int64)

    def observe(self, snapshot: int, brought: PollResults) -> None:
        """Ignore poll results: the greedy discovery bound knew them all in advance."""


class _GreedyPlanner:
    """Planner of the greedy discovery bound; ``gain[source, snapshot]`` is what a poll would still add, and only falls.

    Keeping all gains exact costs one step for each row of each target once, when the target is covered; finding the
    largest costs one pass for each level. So a year of a million possible polls takes seconds.
    """

    def __init__(self, world: Frontpages, k: int, begin: int, end: int) -> None:
        self._world = world
        self._missing: npt.NDArray[np.bool_] = np.ones(world.targets, bool)
        self._room: Ints = np.zeros(world.snapshots, np.int64)
        self._room[begin:end] = k
        self._gain = _count_links(world)
        self._by_target = np.argsort(world.target, kind="stable")
        self._first_row = np.searchsorted(world.target[self._by_target], np.arange(world.targets + 1))

    def build_plan(self) -> Mapping[int, list[int]]:
        """Build the polling plan of the greedy discovery bound: the sources to poll, by snapshot."""
        looks: dict[int, list[int]] = {}
        for level in range(int(self._gain.max(initial=0)), 0, -1):
            snapshots, sources = np.nonzero((self._gain == level).T & (self._room > 0)[:, None])
            for snapshot, source in zip(snapshots.tolist(), sources.tolist(), strict=True):
                if self._room[snapshot] > 0 and self._gain[source, snapshot] == level:
                    self._take_poll(source, snapshot)
                    looks.setdefault(snapshot, []).append(source)
        return looks

    def _take_poll(self, source: int, snapshot: int) -> None:
        self._room[snapshot] -= 1
        shown = self._world.links(source, snapshot)
        covered = shown[self._missing[shown]]
        self._missing[covered] = False
        for target in covered.tolist():
            self._cover_target(target)

    def _cover_target(self, target: int) -> None:
        """Mark a target as covered: no poll of the greedy discovery bound gains from it any more."""
        world = self._world
        for row in self._by_target[self._first_row[target] : self._first_row[target + 1]].tolist():
            self._gain[world.source[row], world.start[row] : world.stop[row]] -= 1


def _count_links(world: Frontpages) -> npt.NDArray[np.int32]:
    """Count the targets that a poll of each source at each snapshot shows; far below 0 if the poll would fail."""
    steps = np.zeros((world.sources, world.snapshots + 1), np.int32)
    np.add.at(steps, (world.source, world.start), 1)
    np.subtract.at(steps, (world.source, world.stop), 1)
    shown = np.cumsum(steps, axis=1, dtype=np.int32)[:, :-1]
    return np.where(world.ok.T, shown, np.int32(-1)).astype(np.int32)


BOUNDS: Mapping[str, type[MyopicBound | GreedyBound]] = {"bound-myopic": MyopicBound, "bound-greedy": GreedyBound}
