"""Off-policy experiment: do estimates from a log, of what another order of results would bring, come true?

    clicks:FILE[+MODEL]

Visitors click according to a model (``position``, ``cascade`` or ``dbn``, the default) that was fitted to the later
half of a recorded log. They search as that half did, and see a randomized order: the logged one, but one search in five
has a random one of its ten results put first. The other order puts the result first that a position model, fitted to
the earlier half, finds most attractive. Its success is estimated from the log of the first order alone
(``vedette.learn.clicks.off_policy``), and then the visitors try it.

A search succeeds if one of the first three results is opened. The doubly robust estimate uses the position model of the
earlier half, so with other visitors its model is wrong. The budget is the number of searches in the log; with few of
them the estimate is "not enough data", and only that is counted.
"""

import os
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from vedette.errors import UsageError
from vedette.lab.core.experiment import Cell, Experiment, Measurements, Metric
from vedette.lab.core.registry import suggest_name
from vedette.lab.core.statistics import bootstrap_interval
from vedette.lab.visitors.recorded_clicks import (
    RESULTS_PER_PAGE,
    draw_cascade_clicks,
    draw_position_clicks,
    read_log,
    split_halves,
)
from vedette.lab.worlds.catalog import locate_world
from vedette.learn.clicks.examination import CascadeModel, ClickLog, PositionModel, fit_cascade, fit_position
from vedette.learn.clicks.impressions import Bools
from vedette.learn.clicks.off_policy import Decisions, Estimate, Interval, doubly_robust, ips, snips
from vedette.policy import Floats, Ints, rng_for

MODELS = ("dbn", "position", "cascade")
RANDOMIZED_SHARE = 0.2  # searches with a random first result
SUCCESS_PLACES = 3  # positions
TRIAL_SEARCHES = 60_000  # searches for measuring the other order
_NAME_PATTERN = re.compile(r"(.+?\.tsv)(?:\+([a-z]+))?")
ESTIMATORS: Mapping[str, Callable[[Decisions, Interval], Estimate]] = {"ips": ips, "snips": snips, "dr": doubly_robust}


class ClickScenario(NamedTuple):
    """Click scenario of the off-policy experiment: searches, simulated visitors, and the earlier half's model."""

    pair: Ints
    visitors: PositionModel | CascadeModel
    learned: PositionModel


def find_log(name: str) -> tuple[Path, str]:
    """Find a click log and the click model of its visitors, from the world's name after ``clicks:``."""
    read = _NAME_PATTERN.fullmatch(name)
    model = (read[2] or MODELS[0]) if read else ""
    if read is None or model not in MODELS:
        raise UsageError(f"clicks:{name}: use clicks:FILE.tsv or clicks:FILE.tsv+MODEL; {suggest_name(model, MODELS)}")
    data = os.environ.get("VEDETTE_DATA", "")
    for path in [Path(read[1]), *([Path(data) / "clicks" / read[1]] if data else [])]:
        if path.is_file():
            return path, model
    raise UsageError(f"clicks:{name} not found: set VEDETTE_DATA to a folder that contains clicks/{read[1]}")


def build_row(world: str, estimator: str, searches: int, seed: int) -> Measurements:
    """Build the off-policy row of one estimate from one log with this many searches, against the truth."""
    place = locate_world(world)
    scene = _load_scenario(place.path, place.part)
    found = ESTIMATORS[estimator](_simulate_log(scene, searches, seed), _bootstrap_ends)
    truth = _simulate_truth(place.path, place.part, seed)
    is_enough = not found.caveat
    return {
        "enough": float(is_enough),
        "effective": found.effective,
        "truth": truth,
        "estimate": found.value if is_enough else np.nan,
        "error": abs(found.value - truth) if is_enough else np.nan,
        "held": float(found.low <= truth <= found.high) if is_enough else np.nan,
        "width": found.high - found.low if is_enough else np.nan,
    }


@lru_cache(maxsize=3)
def _load_scenario(path: Path, model: str) -> ClickScenario:
    log = read_log(path, {})
    if len(log.query) < 2:
        raise UsageError(f"clicks:{path.name} has no searches with {RESULTS_PER_PAGE} results")
    first, second = (half.to_clicks() for half in split_halves(log))
    learned = fit_position(first, _first_place_prior(first))
    if model == "position":
        return ClickScenario(second.result, fit_position(second, _first_place_prior(second)), learned)
    visitors = fit_cascade(second, _first_place_prior(second), stops_at_click=model == "cascade")
    return ClickScenario(second.result, visitors, learned)


def _first_place_prior(log: ClickLog) -> Floats:
    """Compute the prior attraction of each result: the click rate of the first position, which all visitors see."""
    return np.full(log.results, float(log.clicked[:, 0].mean()))


def _simulate_log(scene: ClickScenario, searches: int, seed: int) -> Decisions:
    """Simulate a click log with randomized first results: the result put first, its propensity, and the outcome."""
    rng = rng_for(seed, "lab/off-policy/log")
    pair = scene.pair[rng.integers(0, len(scene.pair), searches)]
    first = np.where(rng.random(searches) < RANDOMIZED_SHARE, rng.integers(0, RESULTS_PER_PAGE, searches), 0)
    chance = RANDOMIZED_SHARE / RESULTS_PER_PAGE + np.where(first == 0, 1 - RANDOMIZED_SHARE, 0.0)
    wanted = _find_target_place(scene, pair)
    return Decisions(
        chance,
        (first == wanted).astype(np.float64),
        _draw_success(scene, _move_first(pair, first), rng),
        _expected_success(scene, _move_first(pair, first)),
        _expected_success(scene, _move_first(pair, wanted)),
    )


@lru_cache(maxsize=64)
def _simulate_truth(path: Path, model: str, seed: int) -> float:
    """Simulate the true success of the other order of results."""
    scene, rng = _load_scenario(path, model), rng_for(seed, "lab/off-policy/tried")
    pair = scene.pair[rng.integers(0, len(scene.pair), TRIAL_SEARCHES)]
    return float(_draw_success(scene, _move_first(pair, _find_target_place(scene, pair)), rng).mean())


def _find_target_place(scene: ClickScenario, pair: Ints) -> Ints:
    """Find the position of the result that the other (target) order puts first."""
    return np.asarray(scene.learned.attraction[pair].argmax(axis=1))


def _move_first(pair: Ints, place: Ints) -> Ints:
    """Move the result at a position to the front of each list; those before it move down."""
    columns = np.arange(RESULTS_PER_PAGE)
    at = np.where(columns == 0, place[:, None], columns - (columns <= place[:, None]))
    return np.take_along_axis(pair, at, axis=1)


def _draw_success(scene: ClickScenario, pair: Ints, rng: np.random.Generator) -> Floats:
    visitors = scene.visitors
    clicked: Bools = (
        draw_position_clicks(visitors, pair, rng)
        if isinstance(visitors, PositionModel)
        else draw_cascade_clicks(visitors, pair, rng)
    )
    return np.asarray(clicked[:, :SUCCESS_PLACES].any(axis=1), np.float64)


def _expected_success(scene: ClickScenario, pair: Ints) -> Floats:
    chances = scene.learned.examined * scene.learned.attraction[pair]
    return np.asarray(1 - np.prod(1 - chances[:, :SUCCESS_PLACES], axis=1))


def _bootstrap_ends(values: Floats) -> tuple[float, float]:
    found = bootstrap_interval(values)
    return found.low, found.high


OWN_METRICS: Mapping[str, Metric] = {
    "enough": Metric('share of logs with an estimate; the others have "not enough data"', "share"),
    "effective": Metric("effective sample size of an estimate"),
    "estimate": Metric("estimated share of searches that succeed with the other ranking", "share"),
    "truth": Metric("the true share", "share"),
    "error": Metric("estimate minus truth", "share", False),
    "held": Metric("share of the 95% confidence intervals that contain the truth", "share", True),
    "width": Metric("width of the interval", "share", False),
}


class OffPolicy(Experiment):
    """The off-policy experiment."""

    name = "off-policy"
    about = "Are off-policy estimates of another ranking correct? (budget: searches in the log)"
    worlds = ("clicks",)
    metrics = tuple(OWN_METRICS)
    own = OWN_METRICS
    budgets = (300.0, 3_000.0, 30_000.0)
    policies = tuple(ESTIMATORS)

    def run(self, cell: Cell) -> list[Measurements]:
        """Run the off-policy experiment on a cell: one log and one estimate."""
        if cell.policy not in ESTIMATORS:
            raise UsageError(f'there is no estimator "{cell.policy}"; choose one of {", ".join(ESTIMATORS)}')
        return [build_row(cell.world, cell.policy, int(cell.budget), cell.seed)]


EXPERIMENT = OffPolicy()
