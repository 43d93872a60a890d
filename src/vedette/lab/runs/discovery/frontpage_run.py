"""Discovery on recorded front pages: k sources are polled at each snapshot; metrics as reported by Thompson23.

A policy chooses once per snapshot, then learns the results of its polls, and nothing else (``PollHistory``). It starts
cold at the first snapshot of the span.

The warm-up is a week, or a seventh of a span shorter than seven weeks, as in the paper. *New* are targets that could
first be seen after it. Overhead and hours to discovery cover that time, too. The paper's regret is cumulative over the
whole span (section 3.3), and so is ``regret``; ``regret_steady`` compares the new targets found with those that the
bound found. A row covers the whole span. A longer span also has rows of its weeks (``part``): the new targets of each,
and the finds of that time. Intervals over them show how much depends on the time. Rows with ``day`` are the regret
curve (figure 3 of the paper): the regret of everything found up to the end of that day.
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, NamedTuple, Protocol
from weakref import WeakKeyDictionary

import numpy as np

from vedette.discover.polling.sources import PollHistory, PollResults, Sources
from vedette.errors import UsageError
from vedette.lab.bounds.discovery import BOUNDS
from vedette.lab.core.experiment import Cell, Measurements, Metric, Span, resolve_span
from vedette.lab.core.registry import DEFAULT, LIVE_POLICIES, find_policy, load_policies
from vedette.lab.metrics.discovery import coverage, htd_p90, htd_p90_found, overhead, overhead_mean, regret
from vedette.lab.worlds.frontpages.arrays import Bools, Frontpages
from vedette.policy import Choice, Floats, Ints, rng_for
from vedette.timeutil import WEEK_S

DiscoveryPolicy = Choice[None, Any, Sources, Sources]


class Chooser(Protocol):
    """Chooser of the front-page sources to poll: a discovery policy or a bound."""

    def choose(self, snapshot: int) -> Ints:
        """Choose the front-page sources to poll at a snapshot: distinct, at most k."""

    def observe(self, snapshot: int, brought: PollResults) -> None:
        """Learn from the results of front-page polls."""


class PolicyPoller:
    """Poller that runs a discovery policy on front pages; it sees only its own polls, the times and the hosts."""

    def __init__(self, policy: DiscoveryPolicy, world: Frontpages, k: int, seed: int) -> None:
        self._policy, self._k, self._seed = policy, k, seed
        self._times = world.times
        self._book = PollHistory(world.host)
        self._state = policy.start(None)

    def choose(self, snapshot: int) -> Ints:
        """Choose the front-page sources that the policy picks; each decision has its own random stream."""
        rng = rng_for(self._seed, f"discover/{self._policy.name}/{snapshot}")
        now_s = float(self._times[snapshot])
        return self._policy.choose(self._state, self._book.list_options(), self._k, now_s, rng).rows

    def observe(self, snapshot: int, brought: PollResults) -> None:
        """Let the discovery policy learn from the results of its front-page polls."""
        now_s = float(self._times[snapshot])
        self._state = self._policy.observe(self._state, self._book.record(brought, now_s), now_s)


class Outcome(NamedTuple):
    """Outcome of a front-page discovery run, over the snapshots from ``begin`` on.

    ``found_at`` is the snapshot at which each target was first found, -1 for never. ``polls`` and ``finds`` have one
    row per snapshot and one column per host; a target that several polls of a snapshot show counts for the first of
    them. ``chosen`` are the sources of each snapshot, and ``failed`` how many polls failed.
    """

    begin: int
    found_at: Ints
    polls: Ints
    finds: Ints
    chosen: tuple[Ints, ...]
    failed: int


def create_chooser(policy: DiscoveryPolicy | str, world: Frontpages, k: int, seed: int, span: range) -> Chooser:
    """Create the front-page poller of a discovery policy, or the bound of a name."""
    if not isinstance(policy, str):
        return PolicyPoller(policy, world, k, seed)
    if policy not in BOUNDS:
        raise UsageError(f'there is no discovery bound "{policy}"; choose one of {", ".join(BOUNDS)}')
    return BOUNDS[policy](world, k, span.start, span.stop)


def run_discovery(world: Frontpages, chooser: Chooser, k: int, span: range) -> Outcome:
    """Run a chooser of discovery sources through the front-page snapshots of a span."""
    found_at = np.full(world.targets, -1, np.int64)
    looks, finds = (np.zeros((len(span), len(world.host_names)), np.int64) for _ in range(2))
    chosen: list[Ints] = []
    failed = 0
    for step, snapshot in enumerate(span):
        sources = chooser.choose(snapshot)
        assert len(sources) <= k, "more looks than the budget allows"
        assert len(np.unique(sources)) == len(sources), "a source is looked at twice at a time"
        polls = world.poll(sources, snapshot)
        new = found_at[polls.target] < 0
        chooser.observe(snapshot, PollResults(sources, polls.ok, polls.start, polls.target, new))
        fresh, credited = _credit_first_polls(polls.target, polls.row, new)
        found_at[fresh] = snapshot
        looks[step] = _count_by_host(world, sources)
        finds[step] = _count_by_host(world, sources[credited])
        failed += int(np.count_nonzero(~polls.ok))
        chosen.append(sources)
    return Outcome(span.start, found_at, looks, finds, tuple(chosen), failed)


def _credit_first_polls(target: Ints, row: Ints, new: Bools) -> tuple[Ints, Ints]:
    """Return the new targets, each once, and the front-page poll that is credited with each."""
    fresh, at = np.unique(target[new], return_index=True)
    return fresh, row[new][at]


def _count_by_host(world: Frontpages, sources: Ints) -> Ints:
    return np.bincount(world.host[sources], minlength=len(world.host_names))


METRIC_NAMES = ("coverage", "overhead", "overhead_mean", "htd_p90", "htd_p90_found", "regret", "fetches")
OWN_METRICS: Mapping[str, Metric] = {
    "regret_steady": Metric("regret over pages that are new after the warm-up", "share", False),
    "regret_so_far": Metric("regret over all pages found up to the end of a day", "share", False),
    "found": Metric("targets found in total, including the warm-up", "pages", True),
    "new": Metric("targets that could first be seen after the warm-up", "pages"),
    "failed": Metric("polls that failed, because the recording has no such page at that time", "share"),
}
_REFERENCE_BOUND = "bound-myopic"
_SNAPSHOTS_PER_DAY, _SNAPSHOTS_PER_WEEK = 24, 168
_MIN_WEEKS = 4


class _Period(NamedTuple):
    """The snapshots that a front-page run goes through, and those that are measured."""

    span: range
    measured: range

    def split_weeks(self) -> list["_Period"]:
        """Split the measured snapshots of a front-page run into weeks; none if there are few."""
        weeks = len(self.measured) // _SNAPSHOTS_PER_WEEK
        cuts = np.linspace(self.measured.start, self.measured.stop, weeks + 1).astype(int).tolist()
        return [_Period(self.span, range(*ends)) for ends in pairwise(cuts)] if weeks >= _MIN_WEEKS else []


# Finds of the bound, for as long as the world is in memory: cells of one world and budget share it.
_reference_cache: WeakKeyDictionary[Frontpages, dict[tuple[int, range], Outcome]] = WeakKeyDictionary()


def list_policy_names() -> tuple[str, ...]:
    """List the policies that can run on front pages: the live policy, the discover stage's, then the bounds."""
    live = (DEFAULT,) if "discover" in LIVE_POLICIES else ()
    return (*live, *load_policies("discover"), *BOUNDS)


def build_rows(world: Frontpages, cell: Cell) -> list[Measurements]:
    """Run a cell on front pages and return the row of the whole span, those of its weeks, and the regret by day."""
    k = parse_poll_budget(cell)
    period = _find_period(world, cell.span)
    best = _run_reference(world, k, period.span)
    outcome = best if cell.policy == _REFERENCE_BOUND else _run_policy(world, cell.policy, k, cell.seed, period.span)
    whole = _compute_run_metrics(outcome, best) | _compute_metrics(world, period, outcome, best)
    parts = enumerate(period.split_weeks())
    weeks = ({"part": float(number), **_compute_metrics(world, part, outcome, best)} for number, part in parts)
    return [whole, *weeks, *_build_regret_curve(outcome, best)]


def _build_regret_curve(outcome: Outcome, best: Outcome) -> list[Measurements]:
    """Build the rows of cumulative regret, one per day of 24 snapshots, from the bound's first find on."""
    ends = range(_SNAPSHOTS_PER_DAY, len(outcome.finds) + 1, _SNAPSHOTS_PER_DAY)
    sums = [(int(outcome.finds[:end].sum()), int(best.finds[:end].sum())) for end in ends]
    return [
        {"day": float(day), "regret_so_far": regret(found, bound)}
        for day, (found, bound) in enumerate(sums, 1)
        if bound
    ]


def build_priced_row(world: Frontpages, cell: Cell, chooser: Chooser, most: int) -> Measurements:
    """Build the row of a front-page run that polls every source worth its price, at most ``most`` at a time.

    It has no regret: bounds have a constant number of polls.
    """
    period = _find_period(world, cell.span)
    outcome = run_discovery(world, chooser, most, period.span)
    metrics = _compute_run_metrics(outcome, outcome) | _compute_metrics(world, period, outcome, outcome)
    looks = outcome.polls[period.measured.start - period.span.start :].sum() / max(len(period.measured), 1)
    return {name: value for name, value in metrics.items() if not name.startswith("regret")} | {"looks": float(looks)}


def parse_poll_budget(cell: Cell) -> int:
    """Parse a cell's budget of polls per snapshot, which must be a whole number."""
    if cell.budget < 1 or cell.budget != int(cell.budget):
        raise UsageError(f"the budget for {cell.experiment} must be a whole number of polls per snapshot, at least 1")
    return int(cell.budget)


def _find_period(world: Frontpages, span: Span) -> _Period:
    begin_s, end_s = resolve_span(span, float(world.times[0]), float(world.times[-1]) + 1.0)
    warm_s = begin_s + min(WEEK_S, (end_s - begin_s) / 7)
    begin, measured, end = np.searchsorted(world.times, [begin_s, warm_s, end_s]).tolist()
    return _Period(range(begin, end), range(measured, end))


def _run_reference(world: Frontpages, k: int, span: range) -> Outcome:
    cache = _reference_cache.setdefault(world, {})
    if (k, span) not in cache:
        cache[k, span] = _run_policy(world, _REFERENCE_BOUND, k, 0, span)
    return cache[k, span]


def _run_policy(world: Frontpages, policy: str, k: int, seed: int, span: range) -> Outcome:
    chosen = policy if policy in BOUNDS else find_policy("discover", policy)
    return run_discovery(world, create_chooser(chosen, world, k, seed, span), k, span)


def _compute_metrics(world: Frontpages, period: _Period, outcome: Outcome, best: Outcome) -> dict[str, float]:
    seen = world.compute_visibility(period.span.start, period.span.stop)
    new = np.flatnonzero((seen.first >= period.measured.start) & (seen.first < period.measured.stop))
    clock = _snapshot_times(world)
    appeared_s, gone_s = clock[seen.first[new]], clock[seen.gone[new]]
    found_s = np.where(outcome.found_at[new] >= 0, clock[outcome.found_at[new]], np.nan)
    steady = slice(period.measured.start - period.span.start, period.measured.stop - period.span.start)
    looks, finds = outcome.polls[steady], outcome.finds[steady]
    return {
        "coverage": coverage(found_s),
        "overhead": overhead(looks, finds),
        "overhead_mean": overhead_mean(looks, finds),
        "htd_p90": htd_p90(appeared_s, gone_s, found_s),
        "htd_p90_found": htd_p90_found(appeared_s, found_s),
        "regret_steady": regret(_count_found(outcome.found_at[new]), _count_found(best.found_at[new])),
        "new": float(len(new)),
    }


def _compute_run_metrics(outcome: Outcome, best: Outcome) -> dict[str, float]:
    """Compute the discovery metrics of a whole front-page run, from its first hour on."""
    return {
        "regret": regret(_count_found(outcome.found_at), _count_found(best.found_at)),
        "fetches": float(outcome.polls.sum()),
        "found": float(_count_found(outcome.found_at)),
        "failed": outcome.failed / max(float(outcome.polls.sum()), 1.0),
    }


def _count_found(found_at: Ints) -> int:
    return int(np.count_nonzero(found_at >= 0))


def _snapshot_times(world: Frontpages) -> Floats:
    """Return the times of the front-page snapshots and of one more, a usual step later, when the last targets end."""
    step_s = float(np.median(np.diff(world.times))) if world.snapshots > 1 else 0.0
    return np.append(world.times, world.times[-1] + step_s).astype(np.float64)
