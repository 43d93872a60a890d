"""Which sources of a host to look at? Each host with enough sources on its own, as Thompson23 does with 53 domains.

They ask for twice as many sources as the largest budget; recordings have few hosts of such a size, so here it is three
times the largest of smaller budgets.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from vedette.errors import UsageError
from vedette.lab.core.experiment import Cell, Measured, Metric
from vedette.lab.runs.discovery.rows import MEASURED, OWN, names_of_policies, row_of
from vedette.lab.worlds.catalog import open_frontpages
from vedette.lab.worlds.frontpages import Frontpages

__all__ = ["EXPERIMENT", "DiscoveryPerHost", "hosts_of"]

FEWEST_SOURCES = 12
_OWN: Mapping[str, Metric] = {**OWN, "sources": Metric("sources of the host")}


@dataclass(frozen=True, slots=True)
class DiscoveryPerHost:
    """The experiment; a row a host, which has its number in the recording as ``host``."""

    name: str = "discovery-per-host"
    about: str = "Which sources of a host to look at for what is new? (budget: looks a snapshot, for each host)"
    worlds: tuple[str, ...] = ("frontpages",)
    metrics: tuple[str, ...] = (*MEASURED, *_OWN)
    own: Mapping[str, Metric] = field(default_factory=lambda: _OWN)
    budgets: tuple[float, ...] = (1.0, 2.0, 4.0)
    of_texts: tuple[str, ...] = ()
    figures: tuple[tuple[str, str], ...] = ()

    @property
    def policies(self) -> tuple[str, ...]:
        """Those of the discover stage, and the bounds."""
        return names_of_policies()

    def run(self, cell: Cell) -> list[Measured]:
        """Every host has a budget of its own; one that the recording never saw has no row."""
        world = open_frontpages(cell.world)
        hosts = hosts_of(world)
        if not hosts:
            raise UsageError(f"{cell.world} has no host with {FEWEST_SOURCES} sources; leave --per-host out")
        return [_host_row(world, host, cell) for host in hosts]


def hosts_of(world: Frontpages) -> list[int]:
    """The hosts that have enough sources and were ever seen."""
    large = np.flatnonzero(np.bincount(world.host) >= FEWEST_SOURCES)
    return [host for host in large.tolist() if world.ok[:, world.host == host].any()]


def _host_row(world: Frontpages, host: int, cell: Cell) -> Measured:
    alone = world.host_view(world.host_names[host])
    return {**row_of(alone, cell), "sources": float(alone.sources), "host": float(host)}


EXPERIMENT = DiscoveryPerHost()
