"""Ranking in numbers: a policy by its name, a community or a joke study, and what came of it.

``default`` is what is meant to run live. ``selective-rR-kK`` and ``uniform-rR-kK`` are promotion with a degree and a
first place. ``selective-best`` is the setting of a fixed grid that has most quality per click on average over some
seeds of the same world that no cell has.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from vedette.errors import UsageError
from vedette.lab.baselines.ranking.bayesian_mean import BayesianMean
from vedette.lab.baselines.ranking.popularity import Popularity
from vedette.lab.baselines.ranking.selective import RelaxedSelective, Selective
from vedette.lab.baselines.ranking.thompson import DampedThompson, Thompson
from vedette.lab.baselines.ranking.ucb import Ucb
from vedette.lab.baselines.ranking.uniform import Uniform
from vedette.lab.core.experiment import Cell, Measured, Metric
from vedette.lab.runs.ranking.community import Lived, Phases, live_through
from vedette.lab.runs.ranking.jester import Told, hold_study
from vedette.lab.worlds.catalog import place_of
from vedette.lab.worlds.community import community_named
from vedette.lab.worlds.jester import Jokes, load_jokes
from vedette.policy import Floats
from vedette.serve.rank.explore.prospect import Prospect

__all__ = ["BEST", "GRID", "OWN", "named", "names_of_policies", "rows_of"]

BEST = "selective-best"
PILOTS = range(1_000_001, 1_000_005)
# Degree and first place: the recipes of the thesis, its figure 5.6, and the setting of its study.
GRID = ((0.1, 1), (0.2, 1), (0.1, 2), (0.3, 2), (0.5, 6), (1.0, 6), (1.0, 11), (1.0, 21))
_DEGREES = (0.02, 0.05, 0.1, 0.15, 0.2)
_PROMOTING = re.compile(r"(selective|uniform)-r(\d\.\d{1,3})-k(\d{1,4})")
_PLAIN: Mapping[str, Any] = {
    "default": Prospect(),
    "popularity": Popularity(),
    "uniform": Uniform(),
    "selective": Selective(),
    "relaxed-selective": RelaxedSelective(),
    "bayesian-mean": BayesianMean(),
    "ucb": Ucb(),
    "thompson": Thompson(),
    "damped-thompson": DampedThompson(),
}
OWN: Mapping[str, Metric] = {
    "qpc_share": Metric("quality per click as a share of that of the order by true quality", "share", True),
    "became": Metric("share of the best pages that became popular in time", "share", True),
    "explored": Metric("share of views that went to pages nobody had seen", "share"),
    "pool": Metric("share of pages that nobody had seen at the end", "share", False),
    "best_r": Metric("degree of the best of the grid"),
    "best_k": Metric("first place of the best of the grid"),
}


def names_of_policies() -> tuple[str, ...]:
    """All that are known: the plain ones, the best of the grid, and promotion at the settings that figures ask for."""
    grid = [_spelt("selective", r, k) for r, k in GRID]
    curves = [_spelt(kind, r, 1) for kind in ("selective", "uniform") for r in _DEGREES]
    return tuple(dict.fromkeys([*_PLAIN, BEST, *grid, *curves]))


def _spelt(kind: str, degree: float, first: int) -> str:
    return f"{kind}-r{degree:.2f}-k{first}"


def named(name: str, *, older_first: bool = False) -> Any:  # noqa: ANN401 - each policy has its own kind of state
    """A policy by its name; in the joke study older pages come first among equals."""
    if read := _PROMOTING.fullmatch(name):
        degree, first = float(read[2]), int(read[3])
        return Selective(first, degree, older_first) if read[1] == "selective" else Uniform(first, degree)
    if name not in _PLAIN:
        raise UsageError(f'there is no rank policy "{name}"')
    if older_first and name in {"popularity", "selective"}:
        return Popularity(older_first=True) if name == "popularity" else Selective(older_first=True)
    return _PLAIN[name]


def rows_of(cell: Cell) -> list[Measured]:
    """The row of a cell; for the best of the grid, how that setting fares."""
    if cell.policy != BEST:
        return [_row(cell, cell.policy)]
    degree, first = _best(cell.world, cell.budget)
    return [{**_row(cell, _spelt("selective", degree, first)), "best_r": degree, "best_k": float(first)}]


@lru_cache(maxsize=16)
def _best(world: str, lives: float) -> tuple[float, int]:
    """The best setting of the grid in a world."""

    def quality(setting: tuple[float, int]) -> float:
        cells = [Cell("", world, _spelt("selective", *setting), lives, seed) for seed in PILOTS]
        return sum(_row(cell, cell.policy)["qpc"] for cell in cells)

    return max(GRID, key=quality)


def _row(cell: Cell, policy: str) -> dict[str, float]:
    kind, _, name = cell.world.partition(":")
    if kind == "jester":
        return _of_study(hold_study(_jokes(place_of(cell.world).path), named(policy, older_first=True), cell.seed))
    community = community_named(name)
    return _of_community(live_through(community, named(policy), Phases.of(community, cell.budget), cell.seed))


@lru_cache(maxsize=1)  # cells of one world come one after the other
def _jokes(path: Path) -> Jokes:
    return load_jokes(path)


def _of_community(lived: Lived) -> dict[str, float]:
    return {
        "qpc": float(lived.qpc),
        "tbp": _mean(lived.tbp_days),
        "qpc_share": float(lived.qpc / lived.ideal),
        "became": lived.became / max(len(lived.tbp_days), 1),
        "explored": lived.explored,
        "pool": lived.pool,
    }


def _of_study(told: Told) -> dict[str, float]:
    return {
        "qpc": float(told.qpc),
        "tbp": _mean(told.tbp_days),
        "qpc_share": float(told.qpc / told.ideal),
        "became": told.became / max(len(told.tbp_days), 1),
    }


def _mean(days: Floats) -> float:
    return float(days.mean()) if len(days) else float("nan")
