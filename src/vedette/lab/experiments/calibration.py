"""Do the chances that models of change give come true? Rules of the game: ``lab.calibration``.

The policies are models; a budget is looks a day, drawn evenly over all known pages. One row has the scores over all
looks, with 95 % intervals by pages drawn anew. The others have one ``bin`` each: a tenth of the looks, by what the
model said of them, with its mean chance and the share that had changed; where both agree, chances are true.
"""

from collections.abc import Mapping

from vedette.errors import UsageError
from vedette.lab.baselines.models.poisson import Poisson
from vedette.lab.baselines.models.replacement import Replacement
from vedette.lab.baselines.models.signals import SignalModel
from vedette.lab.core.experiment import Cell, Experiment, Measurements, Metric
from vedette.lab.core.registry import suggest_name
from vedette.lab.core.spans import resolve_span
from vedette.lab.runs.refresh.calibration import (
    FetchSampling,
    Groups,
    Judgments,
    bin_reliability,
    bootstrap_score,
    brier_scores,
    log_scores,
    run_calibration,
)
from vedette.lab.worlds.catalog import open_history
from vedette.lab.worlds.history import History
from vedette.refresh.models.age import Ageing
from vedette.refresh.models.base import ChangeModel
from vedette.refresh.models.mixture import Mixture
from vedette.refresh.models.pooled import Pooled
from vedette.refresh.models.rhythm import Rhythm
from vedette.refresh.models.two_stage import TwoStage
from vedette.refresh.models.waves import Waves
from vedette.refresh.models.young import Young
from vedette.refresh.sections import groups_of

_ALL_MODELS: tuple[ChangeModel, ...] = (
    *(Mixture(), Waves(), Pooled(), Ageing(), TwoStage(), Young(), Rhythm(), Replacement(), SignalModel(), Poisson()),
)
MODELS: Mapping[str, ChangeModel] = {model.name: model for model in _ALL_MODELS}
OWN_METRICS: Mapping[str, Metric] = {
    "log_score": Metric("mean logarithm of the chance given to what was found (held to 1e-4)", "nats", True),
    "log_score_low": Metric("lower end of its 95 % interval", "nats"),
    "log_score_high": Metric("upper end of its 95 % interval", "nats"),
    "brier": Metric("mean squared error of the chances", "", False),
    "brier_low": Metric("lower end of its 95 % interval"),
    "brier_high": Metric("upper end of its 95 % interval"),
    "said": Metric("mean chance of a change that was given", "share"),
    "found": Metric("share of looks that found a change", "share"),
    "looks": Metric("looks that were judged"),
}


def build_groups(history: History) -> Groups:
    """The groups of pages: their sections and sites; row 0 is everything."""
    groups = groups_of(history.urls)
    return Groups(groups.section, groups.site)


def build_rows(judged: Judgments, seed: int) -> list[Measurements]:
    """The rows of one model, the first in what was judged."""
    chance = judged.chance[0]
    logs, squares = (
        bootstrap_score(values[0], judged.page, seed) for values in (log_scores(judged), brier_scores(judged))
    )
    summary = {
        "log_score": logs.mean,
        "log_score_low": logs.low,
        "log_score_high": logs.high,
        "brier": squares.mean,
        "brier_low": squares.low,
        "brier_high": squares.high,
        "said": float(chance.mean()),
        "found": float(judged.changed.mean()),
        "looks": float(len(chance)),
    }
    bins = bin_reliability(chance, judged.changed)
    return [
        summary,
        *(
            {"bin": float(place), "said": each.chance, "found": each.changed, "looks": float(each.fetches)}
            for place, each in enumerate(bins)
        ),
    ]


class Calibration:
    """The experiment."""

    name = "calibration"
    about = "Do the chances that models of change give come true? (policies: models; budget: looks a day)"
    worlds = ("git", "made", "live")
    own = OWN_METRICS
    metrics = tuple(OWN_METRICS)
    policies = tuple(MODELS)
    budgets = (20.0,)
    of_texts: tuple[str, ...] = ()
    figures: tuple[tuple[str, str], ...] = (("found", "bin"), ("said", "bin"))

    def run(self, cell: Cell) -> list[Measurements]:
        """The scores, and a row for each tenth of the looks."""
        if cell.policy not in MODELS:
            raise UsageError(f'"{cell.policy}" is no model of change; {suggest_name(cell.policy, MODELS)}')
        history = open_history(cell.world)
        begin_s, end_s = resolve_span(cell.span, history.begin_s, history.end_s)
        looks = FetchSampling(begin_s, end_s, cell.budget, cell.seed)
        judged = run_calibration(history, [MODELS[cell.policy]], looks, build_groups(history))
        if not len(judged.page):
            raise UsageError(f"{cell.world}: nothing was looked at twice; write a longer span or a larger budget")
        return build_rows(judged, cell.seed)


EXPERIMENT: Experiment = Calibration()
