"""Discovery experiment: which known pages to poll, so that most new pages are found soon?

On recorded front pages (Thompson23) k sources of all hosts are polled each snapshot, about every hour; each host
separately is ``discovery-per-host``. On histories of sites (Pandey08, chapter 3) k known pages of a host are polled
each cycle, in rows for cycles of 7 and of 30 days (``days``).
"""

from collections.abc import Mapping
from functools import lru_cache

from vedette.lab.core.experiment import Cell, Experiment, Measurements, Metric, Span, resolve_span
from vedette.lab.core.registry import find_policy
from vedette.lab.runs.discovery.arrivals import INTERVALS_S
from vedette.lab.runs.discovery.cycles import CYCLE_METRICS, Cycle, build_bound_rows, build_cycles, build_policy_rows
from vedette.lab.runs.discovery.frontpage_run import (
    METRIC_NAMES,
    OWN_METRICS,
    build_rows,
    list_policy_names,
    parse_poll_budget,
)
from vedette.lab.worlds.catalog import open_frontpages, open_history
from vedette.timeutil import DAY_S

_OWN_METRICS: Mapping[str, Metric] = {**OWN_METRICS, **CYCLE_METRICS}


class Discovery(Experiment):
    """The discovery experiment."""

    name = "discovery"
    about = "Which known pages to poll for new ones? (budget: polls per snapshot, over all hosts; git: per cycle)"
    worlds = ("frontpages", "git", "made", "live")
    metrics = (*METRIC_NAMES, *_OWN_METRICS)
    own = _OWN_METRICS
    budgets = (3.0, 5.0, 10.0, 20.0)
    # Figures 3.5 and 3.6 of Pandey08 have depth on their other axis; a budget is its upper limit.
    figures = (("coverage", "k"), ("overhead", "k"), ("regret_so_far", "day"))

    @property
    def policies(self) -> tuple[str, ...]:
        """Return the policies of the discovery experiment: those of the discover stage, and the bounds."""
        return list_policy_names()

    def run(self, cell: Cell) -> list[Measurements]:
        """Run the discovery experiment on a cell: front-page hosts share the polls; in histories each has its own."""
        if cell.world.startswith("frontpages:"):
            return build_rows(open_frontpages(cell.world), cell)
        rows: list[Measurements] = []
        for pace in ("weekly", "monthly"):
            found = _build_cycle_rows(cell, _load_cycles(cell.world, cell.span, pace))
            rows += [{"days": INTERVALS_S[pace] / DAY_S, **row} for row in found]
        return rows


def _build_cycle_rows(cell: Cell, hosts: list[list[Cycle]]) -> list[Measurements]:
    if cell.policy.startswith("bound-"):
        # Everything that could be found at a cycle is gone at the next, so both bounds are the same here.
        return build_bound_rows(hosts, parse_poll_budget(cell))
    return build_policy_rows(find_policy("discover", cell.policy), hosts, parse_poll_budget(cell), cell.seed)


@lru_cache(maxsize=2)  # cells of one world come one after the other
def _load_cycles(world: str, span: Span, pace: str) -> list[list[Cycle]]:
    history = open_history(world)
    return build_cycles(history, *resolve_span(span, history.begin_s, history.end_s), INTERVALS_S[pace])


EXPERIMENT = Discovery()
