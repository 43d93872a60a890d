"""Discovery over a recording: at each snapshot k sources are looked at, and what they bring is written down.

Whoever chooses is asked once a snapshot and then told what came. A policy is told that and nothing else; it starts cold
at the first snapshot of the span. What it is told is made by the same book as live.
"""

from typing import Any, NamedTuple, Protocol

import numpy as np

from vedette.discover.polling.sources import PollHistory, PollResults, Sources
from vedette.errors import UsageError
from vedette.lab.bounds.polls import BOUNDS
from vedette.lab.worlds.frontpages.arrays import Bools, Frontpages
from vedette.policy import Choice, Ints, rng_for

DiscoveryPolicy = Choice[None, Any, Sources, Sources]


class Chooser(Protocol):
    """Somebody who says where to look: a policy or a bound."""

    def choose(self, snapshot: int) -> Ints:
        """Distinct sources, at most k."""

    def observe(self, snapshot: int, brought: PollResults) -> None:
        """What came of it."""


class PolicyPoller:
    """A policy at work: it holds what the policy is told, and nothing of the world but the times and the hosts."""

    def __init__(self, policy: DiscoveryPolicy, world: Frontpages, k: int, seed: int) -> None:
        self._policy, self._k, self._seed = policy, k, seed
        self._times = world.times
        self._book = PollHistory(world.host)
        self._state = policy.start(None)

    def choose(self, snapshot: int) -> Ints:
        """What the policy picks, each decision with lots of its own."""
        rng = rng_for(self._seed, f"discover/{self._policy.name}/{snapshot}")
        now_s = float(self._times[snapshot])
        return self._policy.choose(self._state, self._book.list_options(), self._k, now_s, rng).rows

    def observe(self, snapshot: int, brought: PollResults) -> None:
        """Tell the policy."""
        now_s = float(self._times[snapshot])
        self._state = self._policy.observe(self._state, self._book.record(brought, now_s), now_s)


class Outcome(NamedTuple):
    """What a run found, over the snapshots from ``begin`` on.

    ``found_at`` is the snapshot at which each target was first found, -1 for never. ``polls`` and ``finds`` have a row
    for each snapshot and a column for each host; a target that several looks of a snapshot bring counts for the
    first of them. ``chosen`` are the sources of each snapshot, and ``failed`` how many looks brought nothing.
    """

    begin: int
    found_at: Ints
    polls: Ints
    finds: Ints
    chosen: tuple[Ints, ...]
    failed: int


def create_chooser(policy: DiscoveryPolicy | str, world: Frontpages, k: int, seed: int, span: range) -> Chooser:
    """A policy at work, or the bound of a name."""
    if not isinstance(policy, str):
        return PolicyPoller(policy, world, k, seed)
    if policy not in BOUNDS:
        raise UsageError(f'there is no bound "{policy}" of discovery; there are {", ".join(BOUNDS)}')
    return BOUNDS[policy](world, k, span.start, span.stop)


def run_discovery(world: Frontpages, chooser: Chooser, k: int, span: range) -> Outcome:
    """Run through the snapshots of a span."""
    found_at = np.full(world.targets, -1, np.int64)
    looks, finds = (np.zeros((len(span), len(world.host_names)), np.int64) for _ in range(2))
    chosen: list[Ints] = []
    failed = 0
    for step, snapshot in enumerate(span):
        sources = chooser.choose(snapshot)
        assert len(sources) <= k, "more looks than the budget allows"
        assert len(np.unique(sources)) == len(sources), "a source is looked at twice at a time"
        came = world.poll(sources, snapshot)
        new = found_at[came.target] < 0
        chooser.observe(snapshot, PollResults(sources, came.ok, came.start, came.target, new))
        fresh, credited = _credit_first_polls(came.target, came.row, new)
        found_at[fresh] = snapshot
        looks[step] = _count_by_host(world, sources)
        finds[step] = _count_by_host(world, sources[credited])
        failed += int(np.count_nonzero(~came.ok))
        chosen.append(sources)
    return Outcome(span.start, found_at, looks, finds, tuple(chosen), failed)


def _credit_first_polls(target: Ints, row: Ints, new: Bools) -> tuple[Ints, Ints]:
    """The new targets, each once, and the look that brought each first."""
    fresh, at = np.unique(target[new], return_index=True)
    return fresh, row[new][at]


def _count_by_host(world: Frontpages, sources: Ints) -> Ints:
    return np.bincount(world.host[sources], minlength=len(world.host_names))
