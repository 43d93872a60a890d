"""Refresh experiment: how current are copies under a budget of fetches per day? Rules: ``lab.runs.refresh.run``.

``default`` is what runs live for all pages but sources: ``expected-gain``. Decisions are made four times a day. The
first fifth of the time is for learning, and not measured; the rest is measured in twenty equal parts. If the world has
waves (more than 20 pages changed at once), the policy also runs on the same world without them: ``freshness_calm`` and
so on. ``bound-known`` knows each page's change rate in hindsight. ``bound-delta-q`` knows every page's current content,
and fetches what helps search most.

If pages have texts, the quality of the repository is measured, too: eq. 4.5 at the end of each day, averaged
(``lab.quality.search_quality``), for the queries and frequencies of ``lab.quality.workload``. ``queries_from`` says
which: 0, the TREC Million Query file with frequencies by Zipf's law; 1, drawn from the world's own pages.
"""

from collections.abc import Mapping

import numpy as np

from vedette.errors import UsageError
from vedette.lab.bounds.delta_q import BoundDeltaQ
from vedette.lab.bounds.known_rates import build_bound_known
from vedette.lab.core.experiment import Cell, Experiment, Measurements, Metric, resolve_span
from vedette.lab.core.registry import find_policy
from vedette.lab.quality.corpus import HistoryCache
from vedette.lab.quality.search_quality import QualityMonitor
from vedette.lab.quality.workload import QuerySet, load_query_set
from vedette.lab.runs.refresh.agents import RandomRefresh
from vedette.lab.runs.refresh.gains import create_measures
from vedette.lab.runs.refresh.run import RefreshGame, RefreshOutcome, RefreshSetup, run_refresh
from vedette.lab.worlds.catalog import open_history
from vedette.lab.worlds.history import History
from vedette.lab.worlds.history_views import has_waves, remove_waves
from vedette.refresh.policies.uniform import Uniform
from vedette.timeutil import DAY_S, HOUR_S

OWN_METRICS: Mapping[str, Metric] = {
    "freshness_calm": Metric("freshness, ignoring changes by waves", "share", True),
    "age_calm": Metric("age, ignoring changes by waves", "d", False),
    "quality_calm": Metric("quality, ignoring changes by waves", "share", True),
    "quality_said": Metric("quality as the crawler itself estimates it, without knowing the truth", "share"),
    "quality_error": Metric("mean distance of that estimate from the quality at the end of each day", "share", False),
    "fetches_a_day": Metric("fetches made per day"),
    "queries": Metric("queries used to measure the quality"),
    "queries_from": Metric("0: the TREC Million Query file, by Zipf's law; 1: drawn from the world's own pages"),
}


WARM_UP = 0.2
PERIODS = 20
STEP_S = 6 * HOUR_S


def build_setup(policy: str, history: History, game: RefreshGame, asking: QuerySet | None = None) -> RefreshSetup:
    """Build the setup of a refresh policy by its name; a plug-in is named ``package.module:Name``."""
    match policy:
        case "random":
            pages = len(history.live_pages_at(game.begin_s))
            return RefreshSetup(RandomRefresh(mean_s=max(pages, 1) / game.budget * DAY_S))
        case "bound-known":
            return RefreshSetup(build_bound_known(history, game.begin_s, game.end_s, game.budget))
        case "bound-delta-q":
            return RefreshSetup(Uniform(), oracle=_build_delta_q_bound(history, asking))
        case _:
            named = find_policy("refresh", policy)
            return RefreshSetup(named, measures=create_measures(named, history, asking))


def _build_delta_q_bound(history: History, asking: QuerySet | None) -> BoundDeltaQ:
    if asking is None:
        raise UsageError(
            f"bound-delta-q needs page text that queries match, but {history.name} has none; "
            "use git:PATH or live:FOLDER as the world, or remove bound-delta-q from --policies"
        )
    return BoundDeltaQ(history, asking.workload)


def build_rows(history: History, policy: str, game: RefreshGame, asking: QuerySet | None) -> list[Measurements]:
    """Run a refresh policy and return its metrics, part by part; without queries there is no quality."""
    plan = build_setup(policy, history, game, asking)
    days = (game.end_s - game.measured_s) / game.parts / DAY_S
    if asking is None:
        return [_compute_metrics(part, days) for part in run_refresh(history, plan, game).parts]
    watch = QualityMonitor(history, asking.workload, game.begin_s, game.end_s, game.measured_s)
    outcome = run_refresh(history, plan, game, watch.on_batch)
    metrics = {"queries": float(asking.workload.queries), "queries_from": float(asking.source)}
    qualities = watch.compute_means(game.parts)
    rows: list[Measurements] = [
        _compute_metrics(part, days) | {"quality": quality} | metrics
        for part, quality in zip(outcome.parts, qualities, strict=True)
    ]
    if len(outcome.estimates) != len(watch.shares):
        return rows
    estimates, errors = np.array(outcome.estimates), np.abs(np.subtract(outcome.estimates, watch.shares))
    means = zip(*(map(np.mean, np.array_split(each, game.parts)) for each in (estimates, errors)), strict=True)
    return [
        {**row, "quality_said": float(mean), "quality_error": float(error)}
        for row, (mean, error) in zip(rows, means, strict=True)
    ]


# Built once: texts stay in memory.
_calm_worlds: HistoryCache[History] = HistoryCache(size=1)


def build_calm_rows(history: History, policy: str, game: RefreshGame) -> list[Measurements]:
    """Run a refresh policy in the same world without waves and return its metrics; empty rows if it has none."""
    if not has_waves(history):
        return [{}] * game.parts
    calm = _calm_worlds.get(history, None, lambda: remove_waves(history))
    rows = build_rows(calm, policy, game, load_query_set(calm, game.begin_s, game.end_s, game.seed))
    return [{f"{name}_calm": row[name] for name in ("freshness", "age", "quality") if name in row} for row in rows]


def _compute_metrics(outcome: RefreshOutcome, days: float) -> dict[str, float]:
    return {
        "freshness": outcome.freshness,
        "age": outcome.age_d,
        "changed_per_fetch": outcome.changed / outcome.fetches if outcome.fetches else float("nan"),
        "fetches_a_day": outcome.fetches / days,
    }


class Refresh(Experiment):
    """The refresh experiment; budgets are fetches per day, and a row is a part of the time."""

    name = "refresh"
    about = "How fresh are copies with a budget of fetches per day?"
    worlds = ("git", "made", "live")
    own = OWN_METRICS
    metrics = ("freshness", "age", "quality", "changed_per_fetch", *OWN_METRICS)
    policies = (
        *(
            "default",
            "uniform",
            "proportional",
            "nutch",
            "stormcrawler",
            "freshness",
            "lambdacrawl",
            "sbr",
            "ebr",
            "user-centric",
        ),
        *("greedy-c1", "greedy-c2", "n-day", "fixed", "random", "bound-known", "bound-delta-q"),
    )
    budgets = (50.0, 200.0, 1000.0)
    of_texts = ("bound-delta-q",)

    def run(self, cell: Cell) -> list[Measurements]:
        """Run the refresh experiment on a cell: a row for each part of the time."""
        history = open_history(cell.world)
        begin_s, end_s = resolve_span(cell.span, history.begin_s, history.end_s)
        game = RefreshGame(begin_s, end_s, cell.budget, step_s=STEP_S, seed=cell.seed, warm_up=WARM_UP, parts=PERIODS)
        rows = build_rows(history, cell.policy, game, load_query_set(history, begin_s, end_s, cell.seed))
        calm = build_calm_rows(history, cell.policy, game)
        return [{"part": float(part), **row, **still} for part, (row, still) in enumerate(zip(rows, calm, strict=True))]


EXPERIMENT = Refresh()
