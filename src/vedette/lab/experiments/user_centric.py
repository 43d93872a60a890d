"""User-centric refresh experiment: how many fetches for the same search quality? Figures 4.3 and 4.4 of Pandey08.

The web is seen once a week, with the pages that stay (``lab.runs.refresh.weekly``): in the given span, or in the 48
weeks in which they change most. A budget is fetches per week. All copies are current in week 0; the quality is that of
eq. 4.5, exactly, after each week's fetches, averaged. ``scoring`` is 0 for text (TF-IDF), 1 for links to a page.

In hindsight, as in the thesis, with parameters fitted to all weeks:

- ``sbr``: rates of changes of more than tau of a text (shingles), weights 1; ``ebr``: rates of all changes, weights
  d(p) sum_q f_q I(rank), d(p) the share of changes of at least tau. The number of fetches of each page is optimal for
  its rate and weight; their timing is a transport problem (``transport_schedule``). Each has its best tau of .1, .2 ...
  1 in ``quality``; the thesis omits 0, where every change counts: ``quality_tau0``, and ``fetches_ratio_tau0``.
- ``user-centric``: the pages with the largest mean gain a week times weeks since the last fetch, gains by Delta-Q_A.
- ``uniform``: in turn. ``bound-delta-q``: sees the current gain of every fetch (``bounds.delta_q``).

Online, knowing only what their own fetches showed, ``online-`` and the name of a refresh policy: the same
policies that run elsewhere, at a price that is found each week so that the budget is spent.

``fetches_ratio`` is how many times as many fetches as ``user-centric`` (or ``online-user-centric``) it takes for the
same quality: B over the B at which that one reaches it, interpolated between runs at multiples of B; ``beyond`` says
that no run reaches so low or so high, and the ratio is only a bound.

Whether gains are predictable (Figure 4.3) is in the rows of ``user-centric``: the weekly gain of a page in the first
half of the weeks against that in the second, without pages that have none in both (``spearman_all`` includes them); and
``bin`` rows, tenths of these pages by the first half, with the mean of both halves, normalized to an overall mean of 1.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from vedette.errors import UsageError
from vedette.lab.bounds.delta_q import BoundDeltaQ
from vedette.lab.core.experiment import Cell, Experiment, Measurements, Metric, Span, resolve_span
from vedette.lab.core.registry import find_policy
from vedette.lab.core.statistics import spearman
from vedette.lab.quality.corpus import ShingleDistance
from vedette.lab.quality.workload import Workload, load_query_set
from vedette.lab.runs.refresh.transport_schedule import allocate_fetches, schedule_fetches
from vedette.lab.runs.refresh.weekly import (
    Chooser,
    PageStatistics,
    PlannedChooser,
    PolicyChooser,
    PriorityChooser,
    WeeklyWeb,
    build_weekly_web,
    find_busiest_span,
    fit_pages,
    run_weekly,
    score_by_links,
)
from vedette.lab.worlds.catalog import open_history
from vedette.lab.worlds.history import Bools
from vedette.policy import Floats, Ints
from vedette.timeutil import WEEK_S

ONLINE_PREFIX = "online-"
REFERENCE_POLICY = "user-centric"
TAUS = tuple(round(0.1 * step, 1) for step in range(1, 11))
BUDGET_MULTIPLES = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 0.7, 1.0, 1.4, 2.0)
BINS = 10
OWN_METRICS: Mapping[str, Metric] = {
    "tau": Metric("the best threshold"),
    "quality_tau0": Metric("the quality where every change counts (tau 0)", "share", True),
    "fetches_ratio": Metric("fetches for this quality, as a multiple of those that user-centric needs", "", False),
    "beyond": Metric("1 if that is only a bound, because fewer or more fetches were not tried"),
    "fetches_ratio_tau0": Metric("the same where every change counts (tau 0)", "", False),
    "beyond_tau0": Metric("1 if that is only a bound"),
    "pages": Metric("pages that exist the whole time"),
    "weeks": Metric("weeks in which they are refreshed"),
    "changes": Metric("weeks and pages in which a page changed"),
    "spearman": Metric("rank correlation of a page's gains in both halves of the weeks"),
    "spearman_all": Metric("the same with pages that have gains in neither half"),
    "apart": Metric("median factor between both, of pages with gains in both"),
    "one_half": Metric("share of pages with gains in one half only", "share"),
    "foreseen": Metric("pages with gains in either half"),
    "first_half": Metric("gain in the first half, relative to the mean of all pages"),
    "second_half": Metric("gain in the second half, relative to the mean of all pages"),
}


class WeeklySetting(NamedTuple):
    """Setting of the user-centric experiment: a weekly web and its queries, with one way of scoring."""

    weekly: WeeklyWeb
    workload: Workload
    statistics: PageStatistics
    shares: ShingleDistance


def measure_quality(setting: WeeklySetting, policy: str, budget: float, tau: float = 0.0) -> float:
    """Measure the search quality that a weekly refresh policy reaches with a budget of fetches per week."""
    chooser = create_chooser(setting, policy, max(1, int(budget)), tau)
    return run_weekly(setting.weekly, setting.workload, chooser)


def create_chooser(setting: WeeklySetting, policy: str, room: int, tau: float = 0.0) -> Chooser:
    """Create the weekly refresh chooser of a user-centric experiment's policy by its name."""
    weekly, fits = setting.weekly, setting.statistics
    if policy.startswith(ONLINE_PREFIX):
        named = find_policy("refresh", policy.removeprefix(ONLINE_PREFIX))
        return PolicyChooser(named, weekly, setting.workload, setting.shares, room)
    match policy:
        case "sbr":
            return _plan_fetches(weekly, _estimate_rates(fits.share > tau), np.ones(weekly.pages), room)
        case "ebr":
            changes, large = weekly.changed.sum(axis=0), (weekly.changed & (fits.share >= tau)).sum(axis=0)
            return _plan_fetches(
                weekly, _estimate_rates(weekly.changed), fits.views * large / np.maximum(changes, 1), room
            )
        case "user-centric":
            return PriorityChooser(fits.gain.mean(axis=0), room)
        case "uniform":
            return PriorityChooser(np.ones(weekly.pages), room)
        case _:
            return _BoundChooser(setting, room)


def _estimate_rates(changed: Bools) -> Floats:
    """Estimate changes per week from weeks with and without a change (Cho and Garcia-Molina's estimate)."""
    weeks, changes = len(changed), changed.sum(axis=0)
    rates: Floats = -np.log((weeks - changes + 0.5) / (weeks + 0.5))
    return rates


def _plan_fetches(weekly: WeeklyWeb, rates: Floats, weights: Floats, room: int) -> PlannedChooser:
    room = min(room, weekly.pages)
    return PlannedChooser(schedule_fetches(allocate_fetches(rates, weights, weekly.weeks, room), weekly.weeks, room))


class _BoundChooser:
    """Weekly refresh chooser of ``bound-delta-q``: the largest current gains, by the true state of the web."""

    def __init__(self, setting: WeeklySetting, room: int) -> None:
        self._bound, self._room = BoundDeltaQ(setting.weekly.web, setting.workload), room
        self._begin_s = setting.weekly.web.begin_s

    def choose(self, week: int, copies: Ints, fetched: Ints) -> Ints:
        """Choose the pages that the delta-Q bound refreshes in this week."""
        del fetched
        return self._bound.choose(copies, self._begin_s + week * WEEK_S, self._room)

    def observe(self, week: int, pages: Ints, before: Ints, after: Ints) -> None:
        """Ignore weekly refreshes: the bound sees the web itself."""


class FetchRatio(NamedTuple):
    """Ratio of fetches for the same quality; ``is_bound`` if it is only a bound."""

    times: float
    is_bound: bool


def compute_ratio(budgets: Floats, qualities: Floats, budget: float, quality: float) -> FetchRatio:
    """Compute the ratio of a budget to the one another policy needs for the same search quality.

    Between its budgets the other policy's quality is interpolated linearly in the logarithm; of several with the same
    quality the smallest counts. Outside, the first or the last of them is used.

    >>> compute_ratio(np.array([10.0, 20.0, 40.0]), np.array([0.8, 0.9, 0.95]), budget=40.0, quality=0.5)
    FetchRatio(times=4.0, is_bound=True)
    """
    rising, first = np.unique(np.maximum.accumulate(qualities), return_index=True)
    times = budget / np.exp(np.interp(quality, rising, np.log(budgets[first])))
    return FetchRatio(round(float(times), 9), bool(quality < rising[0] or quality > rising[-1]))


def build_predictability_rows(gain: Floats) -> Iterator[dict[str, float]]:
    """Build the predictability rows (Figure 4.3): how weekly gains of pages agree between both halves of the weeks."""
    half = len(gain) // 2
    halves = gain[:half].mean(axis=0), gain[half:].mean(axis=0)
    some = (halves[0] > 0) | (halves[1] > 0)
    first, second = (part[some] for part in halves)
    both = (first > 0) & (second > 0)
    yield {
        "spearman": spearman(first, second) if some.any() else np.nan,
        "spearman_all": spearman(*halves),
        "apart": float(np.exp(np.median(np.abs(np.log(first[both] / second[both]))))) if both.any() else np.nan,
        "one_half": float((~both).mean()) if len(both) else np.nan,
        "foreseen": float(len(first)),
    }
    order = np.argsort(first, kind="stable")
    for number, pages in enumerate(np.array_split(order, BINS)):
        if len(pages):
            means = [float(part[pages].mean() / max(part.mean(), 1e-300)) for part in (first, second)]
            yield {"bin": float(number), "first_half": means[0], "second_half": means[1]}


@lru_cache(maxsize=8)
def _load_settings(world: str, span: Span, seed: int) -> tuple[WeeklySetting, ...]:
    history = open_history(world)
    weekly = build_weekly_web(
        history, *(resolve_span(span, history.begin_s, history.end_s) if any(span) else find_busiest_span(history))
    )
    asking = load_query_set(weekly.web, weekly.web.begin_s, weekly.web.end_s, seed)
    if asking is None:
        raise UsageError(f"{world}: no query matches any of its texts; use git:PATH or live:FOLDER as the world")
    shares = ShingleDistance(weekly.web)
    workloads = (asking.workload, score_by_links(asking.workload, weekly.links))
    return tuple(WeeklySetting(weekly, one, fit_pages(weekly, one, shares), shares) for one in workloads)


@lru_cache(maxsize=256)
def _reference_quality(place: tuple[str, Span, int], scoring: int, policy: str, budget: int) -> float:
    """Return the quality of the reference policy that others are compared with, cached within a process."""
    return measure_quality(_load_settings(*place)[scoring], policy, budget)


def _compute_metrics(cell: Cell, setting: WeeklySetting, scoring: int) -> dict[str, float]:
    ours = f"{ONLINE_PREFIX}{REFERENCE_POLICY}" if cell.policy.startswith(ONLINE_PREFIX) else REFERENCE_POLICY
    budgets = np.unique(np.maximum(1, np.round(np.array(BUDGET_MULTIPLES) * cell.budget)))
    place = (cell.world, cell.span, cell.seed)
    qualities = np.array([_reference_quality(place, scoring, ours, int(budget)) for budget in budgets])

    def to_row(quality: float, of: str = "") -> dict[str, float]:
        ratio = compute_ratio(budgets, qualities, cell.budget, quality)
        return {f"quality{of}": quality, f"fetches_ratio{of}": ratio.times, f"beyond{of}": float(ratio.is_bound)}

    found = measure_quality(setting, cell.policy, cell.budget)
    if cell.policy not in ("sbr", "ebr"):
        return to_row(found)
    best, tau = max((measure_quality(setting, cell.policy, cell.budget, tau), -tau) for tau in TAUS)
    return {**to_row(best), "tau": -tau, **to_row(found, "_tau0")}


def _iter_rows(cell: Cell, setting: WeeklySetting, scoring: int) -> Iterator[Measurements]:
    at = {"scoring": float(scoring)}
    weekly = setting.weekly
    size = {"pages": weekly.pages, "weeks": weekly.weeks, "changes": int(weekly.changed.sum())}
    foreseen = list(build_predictability_rows(setting.statistics.gain)) if cell.policy == REFERENCE_POLICY else [{}]
    yield {**at, **_compute_metrics(cell, setting, scoring), **size, **foreseen[0]}
    yield from ({**at, **row} for row in foreseen[1:])


class UserCentric(Experiment):
    """The user-centric refresh experiment."""

    name = "user-centric"
    about = "How many fetches per week does the same search quality take?"
    worlds = ("git", "live")  # made histories have no texts
    own = OWN_METRICS
    metrics = ("quality", *OWN_METRICS)
    policies = (
        *("user-centric", "sbr", "ebr", "uniform", "bound-delta-q"),
        *(f"{ONLINE_PREFIX}{name}" for name in ("user-centric", "sbr", "ebr", "freshness", "lambdacrawl")),
    )
    budgets = (2.0, 5.0, 10.0, 20.0, 40.0, 80.0)
    figures = (("quality", "budget"), ("fetches_ratio", "budget"), ("second_half", "bin"))

    def run(self, cell: Cell) -> list[Measurements]:
        """Run the user-centric experiment: one row per scoring function, and how predictable gains are."""
        settings = _load_settings(cell.world, cell.span, cell.seed)
        return [row for number, setting in enumerate(settings) for row in _iter_rows(cell, setting, number)]


EXPERIMENT = UserCentric()
