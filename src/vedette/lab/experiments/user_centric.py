"""How many fetches does it take to serve those who search as well? Figures 4.3 and 4.4 of Pandey08, on recorded webs.

The web is seen once a week by those of its pages that stay (``lab.weekly``): in the span that is asked for, else in the
48 weeks in which they change most. A budget is fetches a week. All copies are current in week 0; the quality is that of
eq. 4.5, exactly, after each week's fetches, averaged. ``scoring`` is 0 for text (TF-IDF), 1 for links to a page.

In hindsight, as the thesis has it, with parameters that are fitted to all weeks:

- ``sbr``: rates of changes of more than tau of a text (shingles), weights 1; ``ebr``: rates of all changes, weights
  d(p) sum_q f_q I(rank), d(p) the share of changes of at least tau. How often each page is fetched is the best for its
  rate and weight, when is a transport problem (``lab.transport_schedule``). Each has its best tau of .1, .2 ... 1 in
  ``quality``; the thesis leaves 0 out, where every change counts: ``quality_tau0``, and ``fetches_ratio_tau0``.
- ``user-centric``: the pages with the largest mean gain a week times weeks since the last fetch, gains by Delta-Q_A.
- ``uniform``: in turn. ``bound-delta-q``: sees what every fetch would bring now (``bounds.delta_q``).

Online, where nothing is known but what their own fetches told, ``online-`` and the name of a refresh policy: the same
policies that run elsewhere, at a price that is found each week so that the budget is spent.

``fetches_ratio`` is how many times as many fetches as ``user-centric`` (or ``online-user-centric``) it takes for the
same quality: B over the B at which that one reaches it, between runs of it at multiples of B; ``beyond`` says where no
run reaches so low or so high, and the ratio is only a bound.

Whether gains can be foreseen (Figure 4.3) is in the rows of ``user-centric``: the gain a week of each page in the first
half of the weeks against that in the second, pages with none in both left out (``spearman_all`` has them, too); and
``bin`` rows, tenths of these pages by the first half, with the mean of both halves, the mean of them all being 1.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from vedette.errors import UsageError
from vedette.lab.bounds.delta_q import BoundDeltaQ
from vedette.lab.core.experiment import Cell, Experiment, Measured, Metric, Span
from vedette.lab.core.registry import policy_named
from vedette.lab.core.spans import span_s
from vedette.lab.experiments.importance import spearman
from vedette.lab.quality.corpus import ShingleShares
from vedette.lab.quality.workload import Workload, asking_of
from vedette.lab.runs.refresh.transport_schedule import laid_out, shares_of
from vedette.lab.runs.refresh.weekly import (
    WEEK_S,
    AsPlanned,
    ByPriority,
    Chooser,
    Fits,
    Learning,
    Weekly,
    busiest_s,
    by_links,
    fits_of,
    mean_quality,
    weekly_web,
)
from vedette.lab.worlds.catalog import open_history
from vedette.lab.worlds.history import Bools
from vedette.policy import Floats, Ints

__all__ = ["EXPERIMENT", "Ratio", "Setting", "chooser_of", "foreseen_rows", "quality_at", "ratio_at"]

ONLINE = "online-"
OURS = "user-centric"
TAUS = tuple(round(0.1 * step, 1) for step in range(1, 11))
MULTIPLES = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 0.7, 1.0, 1.4, 2.0)
BINS = 10
OWN: Mapping[str, Metric] = {
    "tau": Metric("the threshold that served best"),
    "quality_tau0": Metric("the quality where every change counts (tau 0)", "share", True),
    "fetches_ratio": Metric("fetches for this quality, as a multiple of those that user-centric needs", "", False),
    "beyond": Metric("1 where that is no more than a bound: fewer fetches were not tried, or more"),
    "fetches_ratio_tau0": Metric("the same where every change counts (tau 0)", "", False),
    "beyond_tau0": Metric("1 where that is no more than a bound"),
    "pages": Metric("pages that stay"),
    "weeks": Metric("weeks in which they are refreshed"),
    "changes": Metric("weeks and pages in which a page changed"),
    "spearman": Metric("rank correlation of a page's gains in both halves of the weeks"),
    "spearman_all": Metric("the same with pages that have gains in neither half"),
    "apart": Metric("median factor between both, of pages with gains in both"),
    "one_half": Metric("share of pages with gains in one half only", "share"),
    "foreseen": Metric("pages with gains in either half"),
    "first_half": Metric("gain in the first half, the mean of all pages being 1"),
    "second_half": Metric("gain in the second half, the mean of all pages being 1"),
}


class Setting(NamedTuple):
    """A weekly web and what is asked of it, with one way of scoring."""

    weekly: Weekly
    workload: Workload
    fits: Fits
    shares: ShingleShares


def quality_at(setting: Setting, policy: str, budget: float, tau: float = 0.0) -> float:
    """The quality that a policy reaches with so many fetches a week."""
    chooser = chooser_of(setting, policy, max(1, int(budget)), tau)
    return mean_quality(setting.weekly, setting.workload, chooser)


def chooser_of(setting: Setting, policy: str, room: int, tau: float = 0.0) -> Chooser:
    """Who chooses, by name."""
    weekly, fits = setting.weekly, setting.fits
    if policy.startswith(ONLINE):
        named = policy_named("refresh", policy.removeprefix(ONLINE))
        return Learning(named, weekly, setting.workload, setting.shares, room)
    match policy:
        case "sbr":
            return _planned(weekly, _rates(fits.share > tau), np.ones(weekly.pages), room)
        case "ebr":
            changes, large = weekly.changed.sum(axis=0), (weekly.changed & (fits.share >= tau)).sum(axis=0)
            return _planned(weekly, _rates(weekly.changed), fits.views * large / np.maximum(changes, 1), room)
        case "user-centric":
            return ByPriority(fits.gain.mean(axis=0), room)
        case "uniform":
            return ByPriority(np.ones(weekly.pages), room)
        case _:
            return _Bound(setting, room)


def _rates(changed: Bools) -> Floats:
    """Changes a week, out of weeks with a change and weeks without (Cho and Garcia-Molina's estimate)."""
    weeks, changes = len(changed), changed.sum(axis=0)
    rates: Floats = -np.log((weeks - changes + 0.5) / (weeks + 0.5))
    return rates


def _planned(weekly: Weekly, rates: Floats, weights: Floats, room: int) -> AsPlanned:
    room = min(room, weekly.pages)
    return AsPlanned(laid_out(shares_of(rates, weights, weekly.weeks, room), weekly.weeks, room))


class _Bound:
    """What brings most now, as it truly is."""

    def __init__(self, setting: Setting, room: int) -> None:
        self._bound, self._room = BoundDeltaQ(setting.weekly.web, setting.workload), room
        self._begin_s = setting.weekly.web.begin_s

    def chosen(self, week: int, copies: Ints, fetched: Ints) -> Ints:
        """Those of the week."""
        del fetched
        return self._bound.chosen(copies, self._begin_s + week * WEEK_S, self._room)

    def saw(self, week: int, pages: Ints, before: Ints, after: Ints) -> None:
        """It sees without being told."""


class Ratio(NamedTuple):
    """How many times as many fetches; ``beyond`` where that is no more than a bound."""

    times: float
    beyond: bool


def ratio_at(budgets: Floats, qualities: Floats, budget: float, quality: float) -> Ratio:
    """How many times as many fetches a budget is as those with which another reaches the same quality.

    Between the budgets at which the other was run its quality is taken to grow evenly with the logarithm; the smallest
    of those with the same quality counts. What lies outside counts as the first or the last of them.

    >>> ratio_at(np.array([10.0, 20.0, 40.0]), np.array([0.8, 0.9, 0.95]), budget=40.0, quality=0.5)
    Ratio(times=4.0, beyond=True)
    """
    rising, first = np.unique(np.maximum.accumulate(qualities), return_index=True)
    times = budget / np.exp(np.interp(quality, rising, np.log(budgets[first])))
    return Ratio(round(float(times), 9), bool(quality < rising[0] or quality > rising[-1]))


def foreseen_rows(gain: Floats) -> Iterator[dict[str, float]]:
    """Gains by week and page: how both halves of the weeks agree (Figure 4.3)."""
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
def _settings(world: str, span: Span, seed: int) -> tuple[Setting, ...]:
    history = open_history(world)
    weekly = weekly_web(history, *(span_s(span, history.begin_s, history.end_s) if any(span) else busiest_s(history)))
    asking = asking_of(weekly.web, weekly.web.begin_s, weekly.web.end_s, seed)
    if asking is None:
        raise UsageError(f"{world}: no query finds any of its texts; put it to a world git:PATH or live:FOLDER")
    shares = ShingleShares(weekly.web)
    workloads = (asking.workload, by_links(asking.workload, weekly.links))
    return tuple(Setting(weekly, one, fits_of(weekly, one, shares), shares) for one in workloads)


@lru_cache(maxsize=256)
def _ours_at(place: tuple[str, Span, int], scoring: int, policy: str, budget: int) -> float:
    """The quality of the policy that others are compared with; cells of one process share it."""
    return quality_at(_settings(*place)[scoring], policy, budget)


def _numbers(cell: Cell, setting: Setting, scoring: int) -> dict[str, float]:
    ours = f"{ONLINE}{OURS}" if cell.policy.startswith(ONLINE) else OURS
    budgets = np.unique(np.maximum(1, np.round(np.array(MULTIPLES) * cell.budget)))
    place = (cell.world, cell.span, cell.seed)
    qualities = np.array([_ours_at(place, scoring, ours, int(budget)) for budget in budgets])

    def told(quality: float, of: str = "") -> dict[str, float]:
        ratio = ratio_at(budgets, qualities, cell.budget, quality)
        return {f"quality{of}": quality, f"fetches_ratio{of}": ratio.times, f"beyond{of}": float(ratio.beyond)}

    found = quality_at(setting, cell.policy, cell.budget)
    if cell.policy not in ("sbr", "ebr"):
        return told(found)
    best, tau = max((quality_at(setting, cell.policy, cell.budget, tau), -tau) for tau in TAUS)
    return {**told(best), "tau": -tau, **told(found, "_tau0")}


def _rows(cell: Cell, setting: Setting, scoring: int) -> Iterator[Measured]:
    at = {"scoring": float(scoring)}
    weekly = setting.weekly
    size = {"pages": weekly.pages, "weeks": weekly.weeks, "changes": int(weekly.changed.sum())}
    foreseen = list(foreseen_rows(setting.fits.gain)) if cell.policy == OURS else [{}]
    yield {**at, **_numbers(cell, setting, scoring), **size, **foreseen[0]}
    yield from ({**at, **row} for row in foreseen[1:])


class UserCentric:
    """The experiment."""

    name = "user-centric"
    about = "How many fetches a week does it take to serve those who search as well?"
    worlds = ("git", "live")  # made histories have no texts
    own = OWN
    metrics = ("quality", *OWN)
    policies = (
        *("user-centric", "sbr", "ebr", "uniform", "bound-delta-q"),
        *(f"{ONLINE}{name}" for name in ("user-centric", "sbr", "ebr", "freshness", "lambdacrawl")),
    )
    budgets = (2.0, 5.0, 10.0, 20.0, 40.0, 80.0)
    of_texts: tuple[str, ...] = ()
    figures = (("quality", "budget"), ("fetches_ratio", "budget"), ("second_half", "bin"))

    def run(self, cell: Cell) -> list[Measured]:
        """A row for each way of scoring, and how gains can be foreseen."""
        settings = _settings(cell.world, cell.span, cell.seed)
        return [row for number, setting in enumerate(settings) for row in _rows(cell, setting, number)]


EXPERIMENT: Experiment = UserCentric()
