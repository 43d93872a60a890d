"""What would another order have brought? Estimates from logs, held against trying it with visitors fitted to a log.

The budget is how many searches the log has. With few, "not enough data" is said, and nothing is counted but that.
See ``vedette.learn.clicks.off_policy`` for the estimates and ``vedette.lab.runs.ranking.off_policy`` for the worlds.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from vedette.errors import UsageError
from vedette.lab.core.experiment import Cell, Measurements, Metric
from vedette.lab.runs.ranking.off_policy import ESTIMATORS, build_row

OWN_METRICS: Mapping[str, Metric] = {
    "enough": Metric('share of logs about which something is said; of the others it says "not enough data"', "share"),
    "effective": Metric("decisions on which an estimate rests, in effect"),
    "estimate": Metric("share of searches that would succeed under the other order, as estimated", "share"),
    "truth": Metric("the same where it was tried", "share"),
    "error": Metric("difference of both", "share", False),
    "held": Metric("share of the 95 % intervals that hold the truth", "share", True),
    "width": Metric("width of the interval", "share", False),
}


@dataclass(frozen=True, slots=True)
class OffPolicy:
    """The experiment."""

    name: str = "off-policy"
    about: str = "Do estimates of what another order would bring come true? (budget: searches in the log)"
    worlds: tuple[str, ...] = ("clicks",)
    metrics: tuple[str, ...] = tuple(OWN_METRICS)
    own: Mapping[str, Metric] = field(default_factory=lambda: OWN_METRICS)
    budgets: tuple[float, ...] = (300.0, 3_000.0, 30_000.0)
    policies: tuple[str, ...] = tuple(ESTIMATORS)
    of_texts: tuple[str, ...] = ()
    figures: tuple[tuple[str, str], ...] = ()

    def run(self, cell: Cell) -> list[Measurements]:
        """One log and one estimate."""
        if cell.policy not in ESTIMATORS:
            raise UsageError(f'there is no estimate "{cell.policy}": they are {", ".join(ESTIMATORS)}')
        return [build_row(cell.world, cell.policy, int(cell.budget), cell.seed)]


EXPERIMENT = OffPolicy()
