"""Do estimates of what another order would have brought come true? Visitors that were fitted to a log can be asked.

    clicks:FILE[+MODEL]

Visitors click as a model says (``position``, ``cascade`` or ``dbn``, the usual one) that was fitted to the later half
of a recorded log. They search as that half did, and meet an order with lots: the shown one, but one search in five has
any of its ten results put first. The other order puts that result first which a position model, fitted to the earlier
half, finds most attractive. What that would bring is estimated from the log of the first order alone, and then it is
tried.

A search has succeeded where one of the first three results was opened. The model of the doubly robust estimate is the
position model of the earlier half, so under other visitors it is wrong.
"""

import os
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from vedette.errors import UsageError
from vedette.lab.core.experiment import Measured
from vedette.lab.core.registry import near
from vedette.lab.core.statistics import interval
from vedette.lab.visitors.click_models import clicks_by_cascade, clicks_by_position
from vedette.lab.visitors.search_log import PLACES, halves, read_log
from vedette.lab.worlds.catalog import place_of
from vedette.learn.clicks.examination import Cascade, Clicks, Position, fit_cascade, fit_position
from vedette.learn.clicks.impressions import Bools
from vedette.learn.clicks.off_policy import Decisions, Ends, Estimate, doubly_robust, ips, snips
from vedette.policy import Floats, Ints, rng_for

__all__ = ["ESTIMATORS", "log_path", "off_policy_row"]

MODELS = ("dbn", "position", "cascade")
LOTS = 0.2  # searches of which lots decide what comes first
SUCCESS = 3  # places
TRIED = 60_000  # searches by which the other order is tried
_NAME = re.compile(r"(.+?\.tsv)(?:\+([a-z]+))?")
ESTIMATORS: Mapping[str, Callable[[Decisions, Ends], Estimate]] = {"ips": ips, "snips": snips, "dr": doubly_robust}


class Scene(NamedTuple):
    """Searches that people make, the visitors, and what was learned from the earlier half."""

    pair: Ints
    visitors: Position | Cascade
    learned: Position


def log_path(name: str) -> tuple[Path, str]:
    """Where a log is, and the model that its visitors have; the name is the part after ``clicks:``."""
    read = _NAME.fullmatch(name)
    model = (read[2] or MODELS[0]) if read else ""
    if read is None or model not in MODELS:
        raise UsageError(f"clicks:{name}: write clicks:FILE.tsv or clicks:FILE.tsv+MODEL; {near(model, MODELS)}")
    data = os.environ.get("VEDETTE_DATA", "")
    for path in [Path(read[1]), *([Path(data) / "clicks" / read[1]] if data else [])]:
        if path.is_file():
            return path, model
    raise UsageError(f"clicks:{name} is not here: set VEDETTE_DATA to a folder that has clicks/{read[1]}")


def off_policy_row(world: str, estimator: str, searches: int, seed: int) -> Measured:
    """What one estimate says of one log with so many searches, and what is true."""
    place = place_of(world)
    scene = _scene(place.path, place.part)
    found = ESTIMATORS[estimator](_logged(scene, searches, seed), _by_bootstrap)
    truth = _tried(place.path, place.part, seed)
    is_said = not found.said
    return {
        "enough": float(is_said),
        "effective": found.effective,
        "truth": truth,
        "estimate": found.value if is_said else np.nan,
        "error": abs(found.value - truth) if is_said else np.nan,
        "held": float(found.low <= truth <= found.high) if is_said else np.nan,
        "width": found.high - found.low if is_said else np.nan,
    }


@lru_cache(maxsize=3)
def _scene(path: Path, model: str) -> Scene:
    log = read_log(path, {})
    if len(log.query) < 2:
        raise UsageError(f"clicks:{path.name} has no searches with {PLACES} results")
    first, second = (half.clicks() for half in halves(log))
    learned = fit_position(first, _prior(first))
    if model == "position":
        return Scene(second.result, fit_position(second, _prior(second)), learned)
    visitors = fit_cascade(second, _prior(second), stops_at_click=model == "cascade")
    return Scene(second.result, visitors, learned)


def _prior(log: Clicks) -> Floats:
    """What is believed of each result before its clicks: the click rate of the first place, which all look at."""
    return np.full(log.results, float(log.clicked[:, 0].mean()))


def _logged(scene: Scene, searches: int, seed: int) -> Decisions:
    """A log of the order with lots: which result was put first, how probable that was, and what came of it."""
    rng = rng_for(seed, "lab/off-policy/log")
    pair = scene.pair[rng.integers(0, len(scene.pair), searches)]
    first = np.where(rng.random(searches) < LOTS, rng.integers(0, PLACES, searches), 0)
    chance = LOTS / PLACES + np.where(first == 0, 1 - LOTS, 0.0)
    wanted = _wanted(scene, pair)
    return Decisions(
        chance,
        (first == wanted).astype(np.float64),
        _success(scene, _put_first(pair, first), rng),
        _expected(scene, _put_first(pair, first)),
        _expected(scene, _put_first(pair, wanted)),
    )


@lru_cache(maxsize=64)
def _tried(path: Path, model: str, seed: int) -> float:
    """What the other order brings."""
    scene, rng = _scene(path, model), rng_for(seed, "lab/off-policy/tried")
    pair = scene.pair[rng.integers(0, len(scene.pair), TRIED)]
    return float(_success(scene, _put_first(pair, _wanted(scene, pair)), rng).mean())


def _wanted(scene: Scene, pair: Ints) -> Ints:
    """The place of the result that the other order puts first."""
    return np.asarray(scene.learned.attraction[pair].argmax(axis=1))


def _put_first(pair: Ints, place: Ints) -> Ints:
    """The same lists with the result at a place put first; those before it move down."""
    columns = np.arange(PLACES)
    at = np.where(columns == 0, place[:, None], columns - (columns <= place[:, None]))
    return np.take_along_axis(pair, at, axis=1)


def _success(scene: Scene, pair: Ints, rng: np.random.Generator) -> Floats:
    visitors = scene.visitors
    clicked: Bools = (
        clicks_by_position(visitors, pair, rng)
        if isinstance(visitors, Position)
        else clicks_by_cascade(visitors, pair, rng)
    )
    return np.asarray(clicked[:, :SUCCESS].any(axis=1), np.float64)


def _expected(scene: Scene, pair: Ints) -> Floats:
    chances = scene.learned.examined * scene.learned.attraction[pair]
    return np.asarray(1 - np.prod(1 - chances[:, :SUCCESS], axis=1))


def _by_bootstrap(values: Floats) -> tuple[float, float]:
    found = interval(values)
    return found.low, found.high
