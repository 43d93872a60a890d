"""Which known pages to look at, so that most of what is new is found soon?

On recorded front pages (Thompson23) k sources of all hosts are looked at each snapshot, about every hour; each host on
its own is ``discovery-per-host``. On histories of sites (Pandey08, chapter 3) k known pages of a host are looked at
each cycle, in rows for cycles of 7 and of 30 days (``days``).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from vedette.lab.core.experiment import Cell, Measured, Metric, Span
from vedette.lab.core.registry import policy_named
from vedette.lab.core.spans import span_s
from vedette.lab.runs.discovery.arrivals import PACES
from vedette.lab.runs.discovery.cycles import CYCLE_OWN, Cycle, bound_rows, cycles_of, policy_rows
from vedette.lab.runs.discovery.rows import MEASURED, OWN, looks_of, names_of_policies, rows_of
from vedette.lab.worlds.catalog import open_frontpages, open_history

__all__ = ["EXPERIMENT", "Discovery"]

_DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class Discovery:
    """The experiment."""

    name: str = "discovery"
    about: str = (
        "Which known pages to look at for what is new? (budget: looks a snapshot, over all hosts; git: a cycle)"
    )
    worlds: tuple[str, ...] = ("frontpages", "git", "made", "live")
    metrics: tuple[str, ...] = (*MEASURED, *OWN, *CYCLE_OWN)
    own: Mapping[str, Metric] = field(default_factory=lambda: {**OWN, **CYCLE_OWN})
    budgets: tuple[float, ...] = (3.0, 5.0, 10.0, 20.0)
    of_texts: tuple[str, ...] = ()
    # Figures 3.5 and 3.6 of Pandey08 have depth on their other axis; a budget is its upper limit.
    figures: tuple[tuple[str, str], ...] = (("coverage", "k"), ("overhead", "k"))

    @property
    def policies(self) -> tuple[str, ...]:
        """Those of the discover stage, and the bounds."""
        return names_of_policies()

    def run(self, cell: Cell) -> list[Measured]:
        """On front pages all hosts compete for the same looks; in histories each has its own."""
        if cell.world.startswith("frontpages:"):
            return rows_of(open_frontpages(cell.world), cell)
        rows: list[Measured] = []
        for pace in ("weekly", "monthly"):
            found = _cycle_rows(cell, _hosts(cell.world, cell.span, pace))
            rows += [{"days": PACES[pace] / _DAY_S, **row} for row in found]
        return rows


def _cycle_rows(cell: Cell, hosts: list[list[Cycle]]) -> list[Measured]:
    if cell.policy.startswith("bound-"):
        # All that could be found at a cycle is gone at the next, so both bounds are the same here.
        return bound_rows(hosts, looks_of(cell))
    return policy_rows(policy_named("discover", cell.policy), hosts, looks_of(cell), cell.seed)


@lru_cache(maxsize=2)  # cells of one world come one after the other
def _hosts(world: str, span: Span, pace: str) -> list[list[Cycle]]:
    history = open_history(world)
    return cycles_of(history, *span_s(span, history.begin_s, history.end_s), PACES[pace])


EXPERIMENT = Discovery()
