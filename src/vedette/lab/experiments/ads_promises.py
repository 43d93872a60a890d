"""Do policies of sponsored results keep what is proven of them? Small markets, each seed another one.

See ``vedette.lab.runs.ads.promises`` for the worlds ``market:cells``, ``market:mix`` and ``market:bpol``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from vedette.errors import UsageError
from vedette.lab.core.experiment import Cell, Measurements, Metric
from vedette.lab.runs.ads.promises import GUARANTEES, build_guarantee_rows

OWN_METRICS: Mapping[str, Metric] = {
    "reached": Metric("revenue by the fluid optimum; for MIX, minus mistakes by those allowed, of the worst ad"),
    "promised": Metric("the least that is proven of it"),
    "kept": Metric("share of markets in which it was reached", "share", True),
    "empty": Metric("share of markets in which nothing is promised", "share"),
}


@dataclass(frozen=True, slots=True)
class AdGuarantees:
    """The experiment."""

    name: str = "sponsor-promises"
    about: str = "Do greedy, msvv, mix and bpol keep what is proven of them? (budget: slots, for mix)"
    worlds: tuple[str, ...] = ("market",)
    # Where nobody names a world.
    usual_worlds: tuple[str, ...] = tuple(f"market:{name}" for name in GUARANTEES)
    metrics: tuple[str, ...] = tuple(OWN_METRICS)
    own: Mapping[str, Metric] = field(default_factory=lambda: OWN_METRICS)
    budgets: tuple[float, ...] = (1.0,)
    policies: tuple[str, ...] = tuple(name for names in GUARANTEES.values() for name in names)
    of_texts: tuple[str, ...] = ()
    figures: tuple[tuple[str, str], ...] = ()

    def run(self, cell: Cell) -> list[Measurements]:
        """One small market; nothing where a world says nothing of a policy."""
        world = cell.world.partition(":")[2]
        if world not in GUARANTEES:
            raise UsageError(f"{self.name} is put to market:{', market:'.join(GUARANTEES)}")
        return (
            build_guarantee_rows(world, cell.policy, int(cell.budget), cell.seed)
            if cell.policy in GUARANTEES[world]
            else []
        )


EXPERIMENT = AdGuarantees()
