"""Scale experiment: what does a cluster need for a number of pages a month, and what ends first?

The budget is pages a month. Costs of a page and of a search are those that ``bench/cluster_crawl.py`` and
``bench/cluster_search.py`` measured; everything else is an assumption, and has a name below. Needs are proportional to
pages, hosts have sizes by Zipf's law, and nothing is random: one seed is enough.

A shard has one coordinator and is on one machine, so the coordinator's time for a page and the number of machines
decide how many shards there are. Shards are asked for each search and use PostgreSQL several times a second, whatever
they crawl. The ``limit`` metrics are the pages a month at which a part that machines cannot be added to ends;
the smallest is the first bottleneck.
"""

from collections.abc import Callable, Mapping
from math import ceil
from typing import NamedTuple

import numpy as np

from vedette.lab.core.experiment import Cell, Experiment, Measurements, Metric
from vedette.lab.worlds.machines import MACHINES, Machine
from vedette.timeutil import DAY_S

MONTH_S = 30 * DAY_S

# Measured, in CPU seconds on the machine of the benchmarks.
COORDINATOR_S = 0.0019
PAGE_S = 0.0068
SHARD_SEARCH_S = 0.0044
URL_BYTES = 15.5

# Assumed.
BUSY_SHARE = 0.6  # of the CPU time of a machine, and of one coordinator
SEARCHES_PER_S = 100.0
URLS_PER_PAGE = 10.0
PROCESS_BYTES = 600e6  # of all processes of a shard
FETCHED_BYTES, STORED_BYTES = 60e3, 20e3  # of a page on the wire, and in archive, text and index
LINK_BYTES, FOREIGN_LINKS = 80.0, 10.0  # of a link to another shard, and how many a page has
POSTGRES_PER_S = 2000.0  # transactions
TRANSACTIONS_PER_S = 20.0  # of a shard
HOSTS, DELAY_S = 50_000_000, 1.0  # hosts of the web; pause between requests to one
LOST_SHARE = 0.01  # of pages beyond the largest hosts' delays, which counts as an end
SEARCH_LIMIT_S = 1.0  # CPU time of a search, which counts as an end
_TOP = 1_000_000


class Needs(NamedTuple):
    """What a cluster needs for a number of pages a month; bytes are of all machines together."""

    nodes: int
    shards: int
    cores: float
    memory_bytes: float
    stored_bytes: float
    bytes_per_s: float


def estimate_needs(pages: float, machine: Machine) -> Needs:
    """Estimate what a cluster of this kind of machine needs for a number of pages a month.

    >>> needs = estimate_needs(20e9, MACHINES["large"])
    >>> needs.nodes, needs.shards
    (14, 25)
    """
    per_s = pages / MONTH_S
    bytes_per_s = per_s * (FETCHED_BYTES + 2 * FOREIGN_LINKS * LINK_BYTES)
    shards = max(1, ceil(per_s * COORDINATOR_S / BUSY_SHARE))
    while True:
        cores = per_s * PAGE_S + SEARCHES_PER_S * shards * SHARD_SEARCH_S
        memory_bytes = pages * URLS_PER_PAGE * URL_BYTES + shards * PROCESS_BYTES
        shares = (
            cores / (BUSY_SHARE * machine.cores),
            memory_bytes / machine.memory_bytes,
            pages * STORED_BYTES / machine.disk_bytes,
            bytes_per_s / (BUSY_SHARE * machine.bytes_per_s),
        )
        nodes = ceil(max(shares))
        if nodes <= shards:
            return Needs(nodes, shards, cores, memory_bytes, pages * STORED_BYTES, bytes_per_s)
        shards = nodes  # a shard is on one machine, so there are at least as many


def find_lost_share(pages: float) -> float:
    """Return the share of pages that the largest hosts have beyond what their delay allows in a month."""
    total = np.log(HOSTS) + np.euler_gamma  # the sum of 1/rank
    sizes = pages / total / np.arange(1, _TOP + 1)
    return float(np.maximum(sizes - MONTH_S / DELAY_S, 0.0).sum() / pages)


def find_limits(machine: Machine) -> dict[str, float]:
    """Return the pages a month at which each part ends that machines cannot be added to."""
    return {
        "limit_delays": _bisect(lambda pages: find_lost_share(pages) > LOST_SHARE),
        "limit_postgres": _bisect(
            lambda pages: estimate_needs(pages, machine).shards * TRANSACTIONS_PER_S > POSTGRES_PER_S
        ),
        "limit_search": _bisect(lambda pages: estimate_needs(pages, machine).shards * SHARD_SEARCH_S > SEARCH_LIMIT_S),
    }


def _bisect(is_over: Callable[[float], bool]) -> float:
    low, high = 1e6, 1e13
    for _ in range(50):
        middle = (low * high) ** 0.5
        low, high = (low, middle) if is_over(middle) else (middle, high)
    return low


OWN_METRICS: Mapping[str, Metric] = {
    "nodes": Metric("machines"),
    "shards": Metric("shards"),
    "cores": Metric("cores in use"),
    "memory_gb": Metric("memory of all machines, in GB"),
    "stored_tb": Metric("archive, text and index, in TB"),
    "network_gbit": Metric("network traffic, in Gbit/s"),
    "lost": Metric("share of pages beyond what the delays of the largest hosts allow", "share", False),
    "search_ms": Metric("CPU time of a search, in ms", "", False),
    "limit_delays": Metric("pages a month at which 1% of pages are beyond the largest hosts' delays"),
    "limit_postgres": Metric("pages a month at which PostgreSQL has too many transactions"),
    "limit_search": Metric("pages a month at which a search costs 1 s of CPU time"),
}


class Scale(Experiment):
    """The scale experiment (``scale``)."""

    name = "scale"
    about = "How many machines does a cluster need, and what ends first? (budget: pages a month)"
    worlds = ("machines",)
    # If the command line names no world.
    usual_worlds = tuple(f"machines:{name}" for name in MACHINES)
    metrics = tuple(OWN_METRICS)
    own = OWN_METRICS
    budgets = (200e6, 2e9, 20e9)
    policies = ("default",)

    def run(self, cell: Cell) -> list[Measurements]:
        """Estimate the needs of a cluster of this kind of machine."""
        machine = MACHINES[cell.world.partition(":")[2]]
        needs = estimate_needs(cell.budget, machine)
        return [
            {
                "nodes": needs.nodes,
                "shards": needs.shards,
                "cores": needs.cores,
                "memory_gb": needs.memory_bytes / 1e9,
                "stored_tb": needs.stored_bytes / 1e12,
                "network_gbit": 8 * needs.bytes_per_s / 1e9,
                "lost": find_lost_share(cell.budget),
                "search_ms": 1000 * needs.shards * SHARD_SEARCH_S,
                **find_limits(machine),
            }
        ]


EXPERIMENT = Scale()
