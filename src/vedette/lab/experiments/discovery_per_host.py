"""Discovery experiment per host: which of its sources to poll? Each host alone, as Thompson23 does with 53 domains.

They require twice as many sources as the largest budget; recordings have few hosts of that size, so here it is three
times the largest of smaller budgets.
"""

from collections.abc import Mapping

import numpy as np

from vedette.errors import UsageError
from vedette.lab.core.experiment import Cell, Experiment, Measurements, Metric
from vedette.lab.runs.discovery.frontpage_run import METRIC_NAMES, OWN_METRICS, build_rows, list_policy_names
from vedette.lab.worlds.catalog import open_frontpages
from vedette.lab.worlds.frontpages import Frontpages

MIN_SOURCES = 12
_OWN_METRICS: Mapping[str, Metric] = {**OWN_METRICS, "sources": Metric("sources of the host")}


class DiscoveryPerHost(Experiment):
    """The discovery experiment per host (``host`` is its number in the recording): one row, and one per day."""

    name = "discovery-per-host"
    about = "Which sources of a host to poll for new pages? (budget: polls per snapshot, for each host)"
    worlds = ("frontpages",)
    metrics = (*METRIC_NAMES, *_OWN_METRICS)
    own = _OWN_METRICS
    budgets = (1.0, 2.0, 4.0)
    # Figures 2 and 3 of Thompson23.
    figures = (("coverage", "budget"), ("overhead", "budget"), ("htd_p90_found", "budget"), ("regret_so_far", "day"))

    @property
    def policies(self) -> tuple[str, ...]:
        """Return the policies of the per-host discovery experiment: those of the discover stage, and the bounds."""
        return list_policy_names()

    def run(self, cell: Cell) -> list[Measurements]:
        """Run the per-host discovery experiment: each host has its own budget; unseen hosts have no row."""
        world = open_frontpages(cell.world)
        hosts = find_hosts(world)
        if not hosts:
            raise UsageError(f"{cell.world} has no host with {MIN_SOURCES} sources; drop --per-host")
        return [row for host in hosts for row in _build_host_rows(world, host, cell)]


def find_hosts(world: Frontpages) -> list[int]:
    """Find the hosts of a recording that have enough sources and were ever seen."""
    large = np.flatnonzero(np.bincount(world.host) >= MIN_SOURCES)
    return [host for host in large.tolist() if world.ok[:, world.host == host].any()]


def _build_host_rows(world: Frontpages, host: int, cell: Cell) -> list[Measurements]:
    alone = world.host_view(world.host_names[host])
    whole, *rest = build_rows(alone, cell)
    curve = [row for row in rest if "day" in row]
    return [{**row, "host": float(host)} for row in ({**whole, "sources": float(alone.sources)}, *curve)]


EXPERIMENT = DiscoveryPerHost()
