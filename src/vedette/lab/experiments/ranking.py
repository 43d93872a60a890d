"""Ranking experiment: which results first, while the quality of pages is unknown (exploration)?

Pandey08, chapter 5, in its communities and in its joke study with real votes. The budget is how many expected lives of
a page are measured; the joke study has its own length. Policies see likes, views and awareness, never quality.

``default`` is what runs live, by the same modules that answer searches (``lab.runs.ranking.live``), and
``live-selective`` and ``live-relaxed-selective`` are the other choices of ``serve.promotion``. ``prospect`` is the
policy behind the default without the live limits. ``selective-rR-kK`` and ``uniform-rR-kK`` are promotion with a degree
and a first position. ``selective-best`` is the setting of a fixed grid with the best quality per click on average, over
some seeds of the same world that no cell has. Rows with ``age`` are figures 5.1 and 5.3: how popular a new page of the
best quality is, and how often it is visited, through one expected life.
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
from vedette.lab.core.experiment import Cell, Experiment, Measurements, Metric
from vedette.lab.runs.ranking.community import CommunityResult, Phases, simulate_community
from vedette.lab.runs.ranking.jester import StudyResult, run_study
from vedette.lab.runs.ranking.live import LiveRanking
from vedette.lab.worlds.catalog import locate_world
from vedette.lab.worlds.community import parse_community
from vedette.lab.worlds.jester import JesterVotes, load_ratings
from vedette.policy import Floats
from vedette.serve.rank.explore.prospect import Prospect
from vedette.serve.rank.reranking import DEFAULT_PROMOTION, PROMOTIONS

BEST_OF_GRID = "selective-best"
PILOT_SEEDS = range(1_000_001, 1_000_005)
# Degree and first position: the recipes of the thesis, its figure 5.6, and the setting of its study.
GRID = ((0.1, 1), (0.2, 1), (0.1, 2), (0.3, 2), (0.5, 6), (1.0, 6), (1.0, 11), (1.0, 21))
_DEGREES = (0.02, 0.05, 0.1, 0.15, 0.2)
_PARAMETRIC_NAME = re.compile(r"(selective|uniform)-r(\d\.\d{1,3})-k(\d{1,4})")
_POLICIES: Mapping[str, Any] = {
    "default": LiveRanking(),
    **{f"live-{name}": LiveRanking(promotion=name) for name in PROMOTIONS if name != DEFAULT_PROMOTION},
    "prospect": Prospect(),
    "popularity": Popularity(),
    "uniform": Uniform(),
    "selective": Selective(),
    "relaxed-selective": RelaxedSelective(),
    "bayesian-mean": BayesianMean(),
    "ucb": Ucb(),
    "thompson": Thompson(),
    "damped-thompson": DampedThompson(),
}
OWN_METRICS: Mapping[str, Metric] = {
    "qpc_share": Metric("quality per click as a share of that of the order by true quality", "share", True),
    "became": Metric("share of the best pages that became popular in time", "share", True),
    "explored": Metric("share of views of pages that no one had seen", "share"),
    "pool": Metric("share of pages that no one had seen by the end", "share", False),
    "popularity": Metric("awareness times quality of the best page at an age, which is a share of the expected life"),
    "visit_share": Metric("share of all visits that the best page has at an age", "share"),
    "best_r": Metric("degree of the best of the grid"),
    "best_k": Metric("first place of the best of the grid"),
}


def list_policy_names() -> tuple[str, ...]:
    """List the policies of the ranking experiment: plain ones, the grid's best, and promotion as in the figures."""
    grid = [_format_name("selective", r, k) for r, k in GRID]
    curves = [_format_name(kind, r, 1) for kind in ("selective", "uniform") for r in _DEGREES]
    return tuple(dict.fromkeys([*_POLICIES, BEST_OF_GRID, *grid, *curves]))


def _format_name(kind: str, degree: float, first: int) -> str:
    return f"{kind}-r{degree:.2f}-k{first}"


def find_policy(name: str, *, older_first: bool = False) -> Any:  # noqa: ANN401 - each policy has its own kind of state
    """Find a ranking policy by its name; in the joke study older pages come first among equals."""
    if read := _PARAMETRIC_NAME.fullmatch(name):
        degree, first = float(read[2]), int(read[3])
        return Selective(first, degree, older_first) if read[1] == "selective" else Uniform(first, degree)
    if name not in _POLICIES:
        raise UsageError(f'there is no rank policy "{name}"')
    if older_first and name in {"popularity", "selective"}:
        return Popularity(older_first=True) if name == "popularity" else Selective(older_first=True)
    return _POLICIES[name]


def build_rows(cell: Cell) -> list[Measurements]:
    """Build the ranking experiment's rows of a cell; for the grid's best, the rows of that setting."""
    if cell.policy != BEST_OF_GRID:
        return _run_policy(cell, cell.policy)
    degree, first = _find_best_setting(cell.world, cell.budget)
    whole, *curve = _run_policy(cell, _format_name("selective", degree, first))
    return [{**whole, "best_r": degree, "best_k": float(first)}, *curve]


@lru_cache(maxsize=16)
def _find_best_setting(world: str, lives: float) -> tuple[float, int]:
    """Find the promotion setting of the grid with the best quality per click in a world."""

    def quality(setting: tuple[float, int]) -> float:
        cells = [Cell("", world, _format_name("selective", *setting), lives, seed) for seed in PILOT_SEEDS]
        return sum(_run_policy(cell, cell.policy)[0]["qpc"] for cell in cells)

    return max(GRID, key=quality)


def _run_policy(cell: Cell, policy: str) -> list[Measurements]:
    kind, _, name = cell.world.partition(":")
    if kind == "jester":
        jokes = _load_jokes(locate_world(cell.world).path)
        return [_study_metrics(run_study(jokes, find_policy(policy, older_first=True), cell.seed))]
    community = parse_community(name)
    phases = Phases.for_community(community, cell.budget)
    lived = simulate_community(community, find_policy(policy), phases, cell.seed)
    return [_community_metrics(lived), *(point._asdict() for point in lived.evolution)]


@lru_cache(maxsize=1)  # cells of one world come one after the other
def _load_jokes(path: Path) -> JesterVotes:
    return load_ratings(path)


def _community_metrics(lived: CommunityResult) -> dict[str, float]:
    return {
        "qpc": float(lived.qpc),
        "tbp": _mean_days(lived.tbp_days),
        "qpc_share": float(lived.qpc / lived.ideal),
        "became": lived.became_popular / max(len(lived.tbp_days), 1),
        "explored": lived.exploration_share,
        "pool": lived.unseen_share,
    }


def _study_metrics(result: StudyResult) -> dict[str, float]:
    return {
        "qpc": float(result.qpc),
        "tbp": _mean_days(result.tbp_days),
        "qpc_share": float(result.qpc / result.ideal),
        "became": result.became_popular / max(len(result.tbp_days), 1),
    }


def _mean_days(days: Floats) -> float:
    return float(days.mean()) if len(days) else float("nan")


class Ranking(Experiment):
    """The ranking experiment."""

    name = "ranking"
    about = "Which results first, while their quality is unknown? (budget: expected lives of a page, measured)"
    worlds = ("community", "jester")
    metrics = ("qpc", "tbp", *OWN_METRICS)
    own = OWN_METRICS
    budgets = (1.5,)
    figures = (("popularity", "age"), ("visit_share", "age"))

    @property
    def policies(self) -> tuple[str, ...]:
        """Return the policies of the ranking experiment: the explore stage's, and promotion as in the figures."""
        return list_policy_names()

    def run(self, cell: Cell) -> list[Measurements]:
        """Run the ranking experiment on a cell: one community or joke study under one policy."""
        return build_rows(cell)


EXPERIMENT = Ranking()
