"""New-sites experiment: how many new pages are on new sites, and what does it cost to find them?

A site is new at a snapshot where its first page is; in a git history of one host, folders represent sites. Old pages
lead to it as they lead to new pages: by a link, or through new pages. GREEDY covers all new sites of a step
(``vedette.lab.runs.discovery.arrivals``); sites that no old page leads to are orphans.

The rows are:

- one per ``step`` at which anything is new: pages on new sites and on old ones (table 9.1 of Pandey08), the cover;
- one per ``level`` of coverage (figure 9.1): fetches of old pages per new site, and per page of these sites;
- one over all.

A new site costs once and brings all of its pages, so the overhead per page is comparable with that of new pages on old
sites (experiment "feasibility"). A policy is the pace of the snapshots; the budget is the largest cover size. All rows
are given with (``waves`` = 1) and without (0) pages that came in waves.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from vedette.lab.baselines.greedy_cover import Cover, compute_greedy_cover
from vedette.lab.core.experiment import Cell, Experiment, Measurements, Metric, resolve_span
from vedette.lab.runs.discovery.arrivals import (
    INTERVALS_S,
    Arrivals,
    Backlinks,
    Interval,
    compute_cover_sets,
    split_intervals,
)
from vedette.lab.worlds.catalog import open_history
from vedette.lab.worlds.history import History
from vedette.policy import Floats, Ints

LEVELS = tuple(number / 10 for number in range(1, 11))
OWN_METRICS: Mapping[str, Metric] = {
    "on_new_sites": Metric("share of new pages that are on new sites", "share"),
    "new": Metric("new pages", "pages"),
    "new_sites": Metric("new sites"),
    "pages_per_site": Metric("pages of a new site in its first snapshot", "pages"),
    "orphan_sites": Metric("share of new sites that no old page links to", "share", False),
    "site_overhead": Metric("fetches of old pages per new site found: sum of fetches / sum of new sites", "", False),
    "site_overhead_mean": Metric("the same as a mean of ratios over steps", "", False),
}


class NewSiteStep(NamedTuple):
    """New sites of a step: the number of new pages, the pages of each new site, and GREEDY's cover.

    ``pages_found`` counts the pages on the sites that each pick of the cover finds, ``orphans`` sites that none can
    find.
    """

    step: int
    new: int
    sizes: Ints
    orphans: int
    cover: Cover
    pages_found: tuple[int, ...]


def find_new_sites(
    history: History, steps: Sequence[Interval], *, waves: bool, most: int | None = None
) -> list[NewSiteStep]:
    """Find the new sites of a history in each step at which anything is new."""
    backlinks = Backlinks.from_history(history)
    in_wave = history.wave[history.first_version]
    site_born_s = history.site_born_s
    found: list[NewSiteStep] = []
    for number, step in enumerate(steps):
        arrivals = backlinks.find_arrivals(step)
        counted = waves | ~in_wave[arrivals.new]
        if counted.any():
            things = _number_new_sites(history.site[arrivals.new], site_born_s, step)
            found.append(_build_step(number, arrivals, np.where(counted, things, -1), int(counted.sum()), most))
    return found


def _number_new_sites(site: Ints, site_born_s: Floats, step: Interval) -> Ints:
    """Number the new site of each page from 0; -1 if its site is old."""
    fresh = site_born_s[site] > step.before_s
    things = np.full(len(site), -1, np.int64)
    things[fresh] = np.unique(site[fresh], return_inverse=True)[1]
    return things


def _build_step(number: int, arrivals: Arrivals, things: Ints, new: int, most: int | None) -> NewSiteStep:
    sizes = np.bincount(things[things >= 0])
    nowhere = np.zeros(int(max(arrivals.new.max(initial=-1), arrivals.old_source.max(initial=-1))) + 1, np.int64)
    found = compute_cover_sets(arrivals, things, nowhere)
    sets = [bits for reach in found for bits in reach.cover_bits]
    cover = compute_greedy_cover(sets, most=most)
    orphans = sum(reach.orphans for reach in found)
    return NewSiteStep(number, new, sizes[sizes > 0], orphans, cover, _count_pages_found(sets, cover, sizes))


def _count_pages_found(sets: Sequence[int], cover: Cover, sizes: Ints) -> tuple[int, ...]:
    missing = -1
    brought: list[int] = []
    for row in cover.rows:
        fresh = sets[row] & missing
        brought.append(sum(int(size) for place, size in enumerate(sizes) if fresh >> place & 1))
        missing &= ~sets[row]
    return tuple(brought)


def build_rows(found: Sequence[NewSiteStep], *, waves: bool) -> list[Measurements]:
    """Build all rows of the new-sites experiment for these steps."""
    useful = [one for one in found if one.cover.gains]
    rows = [_build_summary(found), *({"step": one.step, **_build_summary([one])} for one in found)]
    rows += [_build_level_row(useful, level) for level in LEVELS if useful]
    return [{"waves": float(waves), **row} for row in rows]


def _build_summary(found: Sequence[NewSiteStep]) -> dict[str, float]:
    new, sites = sum(one.new for one in found), sum(len(one.sizes) for one in found)
    pages = sum(int(one.sizes.sum()) for one in found)
    covered = sum(sum(one.cover.gains) for one in found)
    fetches = sum(len(one.cover.rows) for one in found)
    row = {"new": new, "new_sites": sites, "on_new_sites": pages / max(new, 1)}
    if sites:
        row |= {"pages_per_site": pages / sites, "orphan_sites": sum(one.orphans for one in found) / sites}
    if covered:
        row |= {"site_overhead": fetches / covered, "overhead": fetches / sum(sum(one.pages_found) for one in found)}
    return row


def _build_level_row(found: Sequence[NewSiteStep], level: float) -> dict[str, float]:
    sizes = [one.cover.find_size(level) for one in found]
    sites = np.array([one.cover.count_found(size) for one, size in zip(found, sizes, strict=True)])
    pages = np.array([sum(one.pages_found[:size]) for one, size in zip(found, sizes, strict=True)])
    fetches = np.array(sizes)
    return {
        "level": level,
        "site_overhead": float(fetches.sum() / sites.sum()),
        "site_overhead_mean": float((fetches / sites).mean()),
        "overhead": float(fetches.sum() / pages.sum()),
        "overhead_mean": float((fetches / pages).mean()),
    }


class NewSites(Experiment):
    """The new-sites experiment."""

    name = "new-sites"
    about = "How many new pages are on new sites? (budget: the largest cover; policy: the interval of snapshots)"
    worlds = ("git", "made", "live")
    own = OWN_METRICS
    metrics = ("overhead", "overhead_mean", *OWN_METRICS)
    policies = ("monthly", "weekly", "daily")
    budgets = (600.0,)

    def run(self, cell: Cell) -> list[Measurements]:
        """Run the new-sites experiment on a cell: all rows, with waves and without."""
        history = open_history(cell.world)
        steps = split_intervals(*resolve_span(cell.span, history.begin_s, history.end_s), INTERVALS_S[cell.policy])
        rows: list[Measurements] = []
        for waves in (True, False):
            rows += build_rows(find_new_sites(history, steps, waves=waves, most=max(1, int(cell.budget))), waves=waves)
        return rows


EXPERIMENT = NewSites()
