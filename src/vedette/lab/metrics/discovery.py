"""How much better than a rival? Both forms of the headline figures of Thompson23, which print mixes.

Print says that Thompson's crawler finds 20 % more pages than Pham's, and that its regret is 6 % at the end against
15 %, which would be 11 % more. The first is a mean of ratios over hosts, after the warm-up; the second follows from
sums. Here both are worked out from the rows of ``discovery-per-host``.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from vedette.lab.core.run_folder import Row
from vedette.lab.core.statistics import Interval, bootstrap_interval
from vedette.policy import Floats, Ints
from vedette.timeutil import HOUR_S

# *New* targets are those that could first be seen in the time that is measured; each has the time at which it appeared,
# the time at which nobody could see it any more, and the time at which it was found (NaN where it never was).
# Reference: Pandey08, section 3.2.1; Thompson23, sections 2.1 and 3.3.


def coverage(found_s: Floats) -> float:
    """The share of new targets that were found; NaN where there were none.

    >>> coverage(np.array([10.0, np.nan, 30.0, 40.0]))
    0.75
    """
    return float(np.mean(~np.isnan(found_s))) if len(found_s) else float("nan")


def overhead(looks: npt.ArrayLike, finds: npt.ArrayLike) -> float:
    """All looks by all finds, over whatever sites and times they are given for; infinity where nothing was found.

    One of two forms, since the figures of Pandey08 do not agree with each other: see ``overhead_mean``.

    >>> overhead([1, 4, 5], [10, 0, 10])
    0.5
    """
    return _ratio(float(np.sum(looks)), float(np.sum(finds)))


def overhead_mean(looks: Ints, finds: Ints) -> float:
    """The mean of looks by finds, over sites and times with finds: a quiet hour counts as much as a busy one.

    >>> overhead_mean(np.array([1, 4, 5]), np.array([10, 0, 10]))
    0.3
    """
    some = finds > 0
    return float(np.mean(looks[some] / finds[some])) if np.any(some) else float("inf")


def hours_to_discovery(appeared_s: Floats, gone_s: Floats, found_s: Floats) -> Floats:
    """Hours from when each target appeared to when it was found; one never found counts with its whole visible life."""
    hours: Floats = (np.where(np.isnan(found_s), gone_s, found_s) - appeared_s) / HOUR_S
    return hours


def htd_p90(appeared_s: Floats, gone_s: Floats, found_s: Floats) -> float:
    """The 90th percentile of hours to discovery, of all new targets, interpolated between neighbours.

    Counting only what was found, as printed (``htd_p90_found``), praises whoever misses all but the easy ones.
    """
    return _p90(hours_to_discovery(appeared_s, gone_s, found_s))


def htd_p90_found(appeared_s: Floats, found_s: Floats) -> float:
    """The same over the targets that were found, as in Thompson23."""
    found = ~np.isnan(found_s)
    return _p90((found_s[found] - appeared_s[found]) / HOUR_S)


def regret(found: float, found_by_bound: float) -> float:
    """The share of the bound's finds that is missing; negative where a myopic bound was outdone.

    >>> regret(94, 100)
    0.06
    """
    return _ratio(found_by_bound - found, found_by_bound)


def _ratio(part: float, whole: float) -> float:
    if whole:
        return part / whole
    return float("nan") if not part else float(np.copysign(np.inf, part))


def _p90(hours: Floats) -> float:
    return float(np.percentile(hours, 90)) if len(hours) else float("nan")


class Headline(NamedTuple):
    """A policy against a rival in one world at one budget.

    Means over hosts with their intervals: the ratios of coverage and of overhead, and the difference of hours to
    discovery (as printed, over found pages). ``pages_pooled`` is the ratio of all pages found after the warm-up, and
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
    """A headline for each world and budget at which both were run; seeds of a host are averaged first."""
    found: dict[tuple[str, float], dict[str, list[Row]]] = {}
    for row in rows:
        found.setdefault((row.cell.world, row.cell.budget), {}).setdefault(row.cell.policy, []).append(row)
    return [
        _compute_headline(world, budget, by_policy[policy], by_policy[rival])
        for (world, budget), by_policy in found.items()
        if policy in by_policy and rival in by_policy
    ]


def _compute_headline(world: str, budget: float, mine: list[Row], others: list[Row]) -> Headline:
    one, two = _mean_by_host(mine), _mean_by_host(others)
    hosts = [host for host in one if host in two]

    def told(name: str) -> tuple[list[float], list[float]]:
        return [one[host][name] for host in hosts], [two[host][name] for host in hosts]

    coverage, overhead, waits = (np.array(told(name)) for name in ("coverage", "overhead", "htd_p90_found"))
    pages = coverage * np.array(told("new"))
    every = np.array(told("found"))
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
