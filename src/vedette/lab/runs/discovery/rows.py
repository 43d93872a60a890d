"""A run of discovery in numbers, as Thompson23 reports them: after a week of warm-up, regret from the first hour on.

The warm-up is a week, or a seventh of a span shorter than seven weeks, as theirs was. *New* are targets that could
first be seen after it. Overhead and hours to discovery speak of that time, too. Their regret is cumulative over the
whole span (section 3.3), and so is ``regret``; ``regret_steady`` is what was found of the new ones against what the
bound found of them.

A row tells of the whole span. Of a longer one there are rows of its weeks, too (``part``): what was new in each, and
what the looks of that time brought. Intervals over them say how much depends on the time.
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from vedette.errors import UsageError
from vedette.lab.bounds.polls import BOUNDS
from vedette.lab.core.experiment import Cell, Measurements, Metric, Span
from vedette.lab.core.registry import DEFAULT, LIVE_POLICIES, find_policy, load_policies
from vedette.lab.core.spans import resolve_span
from vedette.lab.metrics.discovery import coverage, htd_p90, htd_p90_found, overhead, overhead_mean, regret
from vedette.lab.runs.discovery.run import Chooser, Outcome, create_chooser, run_discovery
from vedette.lab.worlds.frontpages.arrays import Frontpages
from vedette.policy import Floats, Ints
from vedette.timeutil import WEEK_S

METRIC_NAMES = ("coverage", "overhead", "overhead_mean", "htd_p90", "htd_p90_found", "regret", "fetches")
OWN_METRICS: Mapping[str, Metric] = {
    "regret_steady": Metric("regret of what is new after the warm-up", "share", False),
    "found": Metric("targets found in all, those of the warm-up too", "pages", True),
    "new": Metric("targets that could first be seen after the warm-up", "pages"),
    "failed": Metric("looks that failed, since the recording has no such page then", "share"),
}
_REFERENCE_BOUND = "bound-myopic"
_SNAPSHOTS_PER_WEEK = 168
_MIN_WEEKS = 4


class _Period(NamedTuple):
    """The snapshots that are run through, and those that are measured."""

    span: range
    measured: range

    def split_weeks(self) -> list["_Period"]:
        """Periods of the same run, each with a week of what is measured; none where there are few."""
        weeks = len(self.measured) // _SNAPSHOTS_PER_WEEK
        cuts = np.linspace(self.measured.start, self.measured.stop, weeks + 1).astype(int).tolist()
        return [_Period(self.span, range(*ends)) for ends in pairwise(cuts)] if weeks >= _MIN_WEEKS else []


# What the yardstick found, for as long as the world is in memory: cells of one world and budget share it.
_reference_cache: WeakKeyDictionary[Frontpages, dict[tuple[int, range], Outcome]] = WeakKeyDictionary()


def list_policy_names() -> tuple[str, ...]:
    """Whoever can be run: what runs live, the policies of the discover stage, then the bounds."""
    live = (DEFAULT,) if "discover" in LIVE_POLICIES else ()
    return (*live, *load_policies("discover"), *BOUNDS)


def build_row(world: Frontpages, cell: Cell) -> Measurements:
    """One run of a cell's policy at its budget, in numbers."""
    return build_rows(world, cell)[0]


def build_rows(world: Frontpages, cell: Cell) -> list[Measurements]:
    """The same, and then the parts of a long run."""
    k = parse_poll_budget(cell)
    period = _find_period(world, cell.span)
    best = _run_reference(world, k, period.span)
    outcome = best if cell.policy == _REFERENCE_BOUND else _run_policy(world, cell.policy, k, cell.seed, period.span)
    whole = _compute_run_metrics(outcome, best) | _compute_metrics(world, period, outcome, best)
    parts = enumerate(period.split_weeks())
    return [whole, *({"part": float(number), **_compute_metrics(world, part, outcome, best)} for number, part in parts)]


def build_priced_row(world: Frontpages, cell: Cell, chooser: Chooser, most: int) -> Measurements:
    """The run of somebody who makes as many looks as are worth it, at most so many at a time, in numbers.

    There is no regret among them: bounds have a constant number of looks.
    """
    period = _find_period(world, cell.span)
    outcome = run_discovery(world, chooser, most, period.span)
    told = _compute_run_metrics(outcome, outcome) | _compute_metrics(world, period, outcome, outcome)
    looks = outcome.polls[period.measured.start - period.span.start :].sum() / max(len(period.measured), 1)
    return {name: value for name, value in told.items() if not name.startswith("regret")} | {"looks": float(looks)}


def parse_poll_budget(cell: Cell) -> int:
    """The budget of a cell, which must be a whole number."""
    if cell.budget < 1 or cell.budget != int(cell.budget):
        raise UsageError(f"a budget of {cell.experiment} is a whole number of looks a snapshot, from 1 on")
    return int(cell.budget)


def _find_period(world: Frontpages, span: Span) -> _Period:
    begin_s, end_s = resolve_span(span, float(world.times[0]), float(world.times[-1]) + 1.0)
    warm_s = begin_s + min(WEEK_S, (end_s - begin_s) / 7)
    begin, measured, end = np.searchsorted(world.times, [begin_s, warm_s, end_s]).tolist()
    return _Period(range(begin, end), range(measured, end))


def _run_reference(world: Frontpages, k: int, span: range) -> Outcome:
    known = _reference_cache.setdefault(world, {})
    if (k, span) not in known:
        known[k, span] = _run_policy(world, _REFERENCE_BOUND, k, 0, span)
    return known[k, span]


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
    """What is told of a whole run, from its first hour on."""
    return {
        "regret": regret(_count_found(outcome.found_at), _count_found(best.found_at)),
        "fetches": float(outcome.polls.sum()),
        "found": float(_count_found(outcome.found_at)),
        "failed": outcome.failed / max(float(outcome.polls.sum()), 1.0),
    }


def _count_found(found_at: Ints) -> int:
    return int(np.count_nonzero(found_at >= 0))


def _snapshot_times(world: Frontpages) -> Floats:
    """The times of the snapshots and of one more, a usual step later, at which what was there to the end is gone."""
    step_s = float(np.median(np.diff(world.times))) if world.snapshots > 1 else 0.0
    return np.append(world.times, world.times[-1] + step_s).astype(np.float64)
