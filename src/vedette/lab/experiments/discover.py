"""Which sources to look at, of all hosts at once, so that most of what is new is found soon?

At each snapshot of a recording, about every hour, k sources are looked at. The document's own setting, each host on its
own, is ``discover-hosts``. Reference: Thompson23.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from vedette.lab.discovery_rows import MEASURED, OWN, names_of_policies, row_of
from vedette.lab.experiment import Cell, Measured, Metric
from vedette.lab.open_world import open_frontpages

__all__ = ["EXPERIMENT", "Discover"]


@dataclass(frozen=True, slots=True)
class Discover:
    """The experiment; a row a cell."""

    name: str = "discover"
    about: str = "Which sources to look at for what is new? (budget: looks a snapshot, over all hosts)"
    worlds: tuple[str, ...] = ("frontpages",)
    metrics: tuple[str, ...] = (*MEASURED, *OWN)
    own: Mapping[str, Metric] = field(default_factory=lambda: OWN)
    budgets: tuple[float, ...] = (3.0, 5.0, 10.0, 20.0)
    of_texts: tuple[str, ...] = ()
    figures: tuple[tuple[str, str], ...] = ()

    @property
    def policies(self) -> tuple[str, ...]:
        """Those of the discover stage, and the bounds."""
        return names_of_policies()

    def run(self, cell: Cell) -> list[Measured]:
        """All hosts compete for the same looks."""
        return [row_of(open_frontpages(cell.world), cell)]


EXPERIMENT = Discover()
