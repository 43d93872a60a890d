"""How much better than a rival is a discovery policy? Both forms of the headline figures of Thompson23 (figure 4).

The paper says that Thompson's crawler finds 20% more pages than Pham's, and that its regret is 6% at the end against
15%, which would be 11% more. The first is a mean of ratios over hosts, after the warm-up; the second follows from
sums. Both are computed here from runs of ``discovery-per-host``.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from vedette.lab.core.run_folder import Row
from vedette.lab.core.statistics import Interval, bootstrap_interval


class Headline(NamedTuple):
    """A policy against a rival in one world at one budget.

    Means over hosts with their intervals: the ratios of coverage and of overhead, and the difference of hours to
    discovery (as published, over found pages). ``pages_pooled`` is the ratio of all pages found after the warm-up, and
    ``pages_by_regret`` that of all pages found from the first hour on, (1 - regret) / (1 - regret of the rival).
    """

    world: str
    budget: float
    coverage_ratio: Interval
    overhead_ratio: Interval
    htd_difference_h: Interval
    pages_pooled: float
    pages_by_regret: float


def compute_headlines(rows: Iterable[Row], policy: str, rival: str) -> list[Headline]:
    """Compute a headline for each world and budget at which both were run; seeds of a host are averaged first."""
    found: dict[tuple[str, float], dict[str, list[Row]]] = {}
    for row in (row for row in rows if "host" in row.numbers and "coverage" in row.numbers):
        found.setdefault((row.cell.world, row.cell.budget), {}).setdefault(row.cell.policy, []).append(row)
    return [
        _compute_headline(world, budget, by_policy[policy], by_policy[rival])
        for (world, budget), by_policy in found.items()
        if policy in by_policy and rival in by_policy
    ]


def _compute_headline(world: str, budget: float, mine: list[Row], others: list[Row]) -> Headline:
    one, two = _mean_by_host(mine), _mean_by_host(others)
    hosts = [host for host in one if host in two]

    def collect_pairs(name: str) -> tuple[list[float], list[float]]:
        return [one[host][name] for host in hosts], [two[host][name] for host in hosts]

    coverage, overhead, waits = (np.array(collect_pairs(name)) for name in ("coverage", "overhead", "htd_p90_found"))
    pages = coverage * np.array(collect_pairs("new"))
    every = np.array(collect_pairs("found"))
    return Headline(
        world,
        budget,
        bootstrap_interval((coverage[0] / coverage[1]).tolist()),
        bootstrap_interval((overhead[0] / overhead[1]).tolist()),
        bootstrap_interval((waits[0] - waits[1]).tolist()),
        float(pages[0].sum() / pages[1].sum()),
        float(every[0].sum() / every[1].sum()),
    )


def _mean_by_host(rows: Iterable[Row]) -> dict[float, dict[str, float]]:
    hosts: dict[float, list[Row]] = {}
    for row in rows:
        hosts.setdefault(row.numbers["host"], []).append(row)
    names = ("coverage", "overhead", "htd_p90_found", "new", "found")
    return {
        host: {name: float(np.mean([row.numbers[name] for row in of_host])) for name in names}
        for host, of_host in hosts.items()
    }
