"""Feasibility experiment: can new pages be found by fetching few old ones, by an oracle that knows which?

For each site (a host) and each step from one snapshot to the next, GREEDY covers the new pages
(``vedette.lab.runs.discovery.arrivals``); links that leave the host are left out. A site and a step with something new
to find make a *case*. The rows are:

- one per case (``host``, ``step``): the new pages, and the covers of 90% and of all of them;
- one per cover size ``k`` up to the budget (figure 3.2 of Pandey08): new pages found per case, their share, the
overhead;
- one per ``level`` of coverage (figure 3.4): the overhead of finding that much in every case, and (``overhead_pooled``)
  of finding that much of the total, where it is cheapest;
- one per bin of ``jaccard`` (figure 3.3): how much pairs of old pages that lead to anything new overlap, and in the row
  of 0 the share of those that have nothing in common (``disjoint``).

Overhead is given in two forms, since those of the thesis do not agree: the sum of fetches by the sum of finds, and the
mean of the cases' ratios. All rows are given with (``waves`` = 1) and without (0) new pages that came in waves:
without, they do not count as new, and paths may go through them. A policy is the pace of the snapshots; a budget is the
largest cover size. Nothing is random but a sample of old pages if a case has too many for all pairs.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from vedette.lab.baselines.greedy_cover import Cover, compute_greedy_cover
from vedette.lab.core.experiment import Cell, Experiment, Measurements, Metric, Span, resolve_span
from vedette.lab.runs.discovery.arrivals import (
    INTERVALS_S,
    Backlinks,
    CoverSets,
    compute_cover_sets,
    jaccard_overlaps,
    number_hosts,
    split_intervals,
)
from vedette.lab.worlds.catalog import open_frontpages, open_history
from vedette.lab.worlds.frontpages import Frontpages
from vedette.lab.worlds.history import History
from vedette.policy import Floats, Ints, rng_for

Bools = npt.NDArray[np.bool_]

LEVELS = tuple(number / 10 for number in range(1, 11))
SIZES = (1, 2, 3, 5, 10, 20, 50, 83, 100, 200, 400, 600)  # the thesis gives figures for 83 and 200
BINS = 10
MAX_SETS = 1500  # of distinct sets in a case, for comparing all pairs
OWN_METRICS: Mapping[str, Metric] = {
    "found": Metric("new pages found per site and step with at most k old pages", "pages", True),
    "cover_size": Metric("number of old pages fetched per site and step", "pages", False),
    "cover_size_90": Metric("number of old pages needed to find 90% of the new ones", "pages", False),
    "overhead_pooled": Metric("overhead if all sites and steps together must reach the level", "", False),
    "pairs": Metric("share of the pairs of old pages that link to something new, by Jaccard coefficient", "share"),
    "pairs_mean": Metric("the same as a mean over sites and steps", "share"),
    "disjoint": Metric("share of those pairs without a new page in common", "share"),
    "new": Metric("number of new pages", "pages"),
    "orphans": Metric("share of new pages that cannot be reached from any old page", "share", False),
    "direct": Metric("share of the other new pages that an old page links to directly", "share"),
    "cases": Metric("number of combinations of site and step with new pages"),
}


class CoverCase(NamedTuple):
    """A feasibility case: a site at a step, what its old pages cover, and GREEDY's cover of all of it."""

    step: int
    cover_sets: CoverSets
    cover: Cover

    @property
    def findable(self) -> int:
        """Return how many new pages of a feasibility case can be found."""
        return sum(self.cover.gains)


def build_cases(history: History, begin_s: float, end_s: float, every_s: float, *, waves: bool) -> list[CoverCase]:
    """Build the feasibility cases of a history: all sites and steps at which anything is new."""
    backlinks = Backlinks.from_history(history)
    in_wave = history.wave[history.first_version]
    host = number_hosts(history)
    cases: list[CoverCase] = []
    for number, step in enumerate(split_intervals(begin_s, end_s, every_s)):
        arrivals = backlinks.find_arrivals(step)
        counted = waves | ~in_wave[arrivals.new]
        things = _number_in_group(host[arrivals.new], counted)
        cases += _cover_cases(number, compute_cover_sets(arrivals, things, host))
    return cases


def build_frontpage_cases(world: Frontpages, begin_s: float, end_s: float, every_s: float) -> list[CoverCase]:
    """Build the feasibility cases of recorded front pages: sources are old, targets new at their first snapshot.

    A step ends at the last recorded snapshot up to its time. Anything that came and went in between is in no snapshot.
    """
    is_known = np.zeros(world.targets, bool)
    at = [step.now_s for step in split_intervals(begin_s - every_s, end_s, every_s)]
    cases: list[CoverCase] = []
    for number, snapshot in enumerate(np.unique(np.searchsorted(world.times, at, side="right") - 1).tolist()):
        source, target = world.visible_links(snapshot)
        fresh = np.flatnonzero(~is_known[target])
        if number:
            cases += _cover_cases(
                number - 1, _build_frontpage_sets(world.host[source[fresh]], source[fresh], target[fresh])
            )
        is_known[target] = True
    return cases


def _build_frontpage_sets(host: Ints, source: Ints, target: Ints) -> Iterator[CoverSets]:
    for one in np.unique(host).tolist():
        rows = host == one
        found, bit = np.unique(target[rows], return_inverse=True)
        sets: dict[int, int] = {}
        for page, place in zip(source[rows].tolist(), bit.tolist(), strict=True):
            sets[page] = sets.get(page, 0) | 1 << place
        old = np.fromiter(sets, np.int64, len(sets))
        yield CoverSets(one, old, tuple(sets.values()), item_count=len(found), orphans=0, direct=len(found))


def _cover_cases(step: int, found: Iterable[CoverSets]) -> list[CoverCase]:
    return [CoverCase(step, reach, compute_greedy_cover(reach.cover_bits)) for reach in found]


def _number_in_group(group: Ints, counted: Bools) -> Ints:
    """Number rows from 0 within their group; -1 for those that do not count."""
    numbers = np.full(len(group), -1, np.int64)
    rows = np.flatnonzero(counted)
    rows = rows[np.argsort(group[rows], kind="stable")]
    first = np.searchsorted(group[rows], group[rows])
    numbers[rows] = np.arange(len(rows)) - first
    return numbers


def build_rows(cases: Sequence[CoverCase], most: int, *, waves: bool, seed: int) -> list[Measurements]:
    """Build all rows of the feasibility experiment for these cases; ``most`` is the largest cover size."""
    useful = [case for case in cases if case.findable]
    rows = [_build_summary(cases, useful), *map(_build_case_row, useful)]
    if useful:
        rows += [_build_size_row(useful, size) for size in _cover_sizes(most)]
        rows += [_build_level_row(useful, level) for level in LEVELS]
        rows += _build_overlap_rows(useful, seed)
    return [{"waves": float(waves), **row} for row in rows]


def _build_summary(cases: Sequence[CoverCase], useful: Sequence[CoverCase]) -> dict[str, float]:
    wanted = sum(case.cover_sets.item_count for case in cases)
    found = sum(case.findable for case in useful)
    return {
        "cases": len(useful),
        "new": wanted,
        "orphans": (wanted - found) / max(wanted, 1),
        "direct": sum(case.cover_sets.direct for case in useful) / max(found, 1),
    }


def _build_case_row(case: CoverCase) -> dict[str, float]:
    sizes = [case.cover.find_size(share) for share in (0.9, 1.0)]
    return {
        "host": case.cover_sets.group,
        "step": case.step,
        "new": case.cover_sets.item_count,
        "orphans": case.cover_sets.orphans / case.cover_sets.item_count,
        "direct": case.cover_sets.direct / case.findable,
        "cover_size_90": sizes[0],
        "cover_size": sizes[1],
        "overhead": sizes[1] / case.findable,
    }


def _cover_sizes(most: int) -> list[int]:
    return [size for size in SIZES if size < most] + [most]


def _build_size_row(cases: Sequence[CoverCase], size: int) -> dict[str, float]:
    fetches = np.array([min(size, len(case.cover.rows)) for case in cases])
    finds = np.array([case.cover.count_found(size) for case in cases])
    coverage = finds.sum() / sum(case.findable for case in cases)
    return {"k": size, "found": float(finds.mean()), "coverage": float(coverage), **_overhead_metrics(fetches, finds)}


def _build_level_row(cases: Sequence[CoverCase], level: float) -> dict[str, float]:
    sizes = [case.cover.find_size(level) for case in cases]
    finds = np.array([case.cover.count_found(size) for case, size in zip(cases, sizes, strict=True)])
    # The finds of cases are disjoint, so GREEDY over all of them together takes the largest gains first.
    pooled = Cover((), tuple(sorted((gain for case in cases for gain in case.cover.gains), reverse=True)))
    size = pooled.find_size(level)
    return {
        "level": level,
        "coverage": float(finds.sum() / sum(pooled.gains)),
        **_overhead_metrics(np.array(sizes), finds),
        "overhead_pooled": size / pooled.count_found(size),
    }


def _overhead_metrics(fetches: Ints, finds: Ints) -> dict[str, float]:
    return {
        "cover_size": float(fetches.mean()),
        "overhead": float(fetches.sum() / finds.sum()),
        "overhead_mean": float((fetches / finds).mean()),
    }


def _build_overlap_rows(cases: Sequence[CoverCase], seed: int) -> list[dict[str, float]]:
    """Build the feasibility rows of page overlap: pairs by bin of Jaccard coefficient, of all and as mean of cases."""
    rng = rng_for(seed, "lab/feasibility/pairs")
    counts = np.array([_count_overlaps(_sample_sets(case.cover_sets.cover_bits, rng)) for case in cases])
    counts = counts[counts.sum(axis=1) > 0]
    if not len(counts):
        return []
    # The first column counts pairs with nothing in common; they belong to the first bin, too.
    disjoint, bins = counts[:, 0].sum() / counts.sum(), counts[:, 1:].copy()
    bins[:, 0] += counts[:, 0]
    pooled = bins.sum(axis=0) / bins.sum()
    meant = (bins / bins.sum(axis=1, keepdims=True)).mean(axis=0)
    rows = [
        {"jaccard": place / BINS, "pairs": float(pooled[place]), "pairs_mean": float(meant[place])}
        for place in range(BINS)
    ]
    rows[0]["disjoint"] = float(disjoint)
    return rows


def _count_overlaps(sets: Sequence[int]) -> Floats:
    """Count the pairs of sets that have nothing in common, then the others by bin of their Jaccard coefficient."""
    counts = np.zeros(1 + BINS)
    for overlap, pairs in jaccard_overlaps(sets):
        counts[1 + min(int(overlap * BINS), BINS - 1) if overlap else 0] += pairs
    return counts


def _sample_sets(sets: Sequence[int], rng: np.random.Generator) -> Sequence[int]:
    if len(frozenset(sets)) <= MAX_SETS:
        return sets
    return [sets[row] for row in np.sort(rng.choice(len(sets), MAX_SETS, replace=False))]


class Feasibility(Experiment):
    """The feasibility experiment."""

    name = "feasibility"
    about = "Do a few old pages link to all new ones? (budget: the largest cover; policy: the interval of snapshots)"
    worlds = ("git", "frontpages", "made", "live")
    own = OWN_METRICS
    metrics = ("coverage", "overhead", "overhead_mean", *OWN_METRICS)
    policies = tuple(INTERVALS_S)
    budgets = (600.0,)
    # Figures 3.2 (a) and (b), 3.3 and 3.4 of the thesis; the last in both forms of overhead.
    figures = (
        ("found", "k"),
        ("overhead", "k"),
        ("coverage", "k"),
        ("pairs", "jaccard"),
        ("overhead", "level"),
        ("overhead_mean", "level"),
    )

    def run(self, cell: Cell) -> list[Measurements]:
        """Run the feasibility experiment on a cell: all rows, with waves and without; front pages have no waves."""
        if cell.world.startswith("frontpages:"):
            cases = _load_frontpage_cases(cell.world, cell.span, cell.policy)
            return build_rows(cases, max(1, int(cell.budget)), waves=True, seed=cell.seed)
        rows: list[Measurements] = []
        for waves in (True, False):
            cases = _load_history_cases(cell.world, cell.span, cell.policy, waves)
            rows += build_rows(cases, max(1, int(cell.budget)), waves=waves, seed=cell.seed)
        return rows


@lru_cache(maxsize=2)  # cells that differ only in their seed or budget come one after the other
def _load_history_cases(world: str, span: Span, pace: str, waves: bool) -> list[CoverCase]:  # noqa: FBT001  # a key of the cache
    history = open_history(world)
    return build_cases(history, *resolve_span(span, history.begin_s, history.end_s), INTERVALS_S[pace], waves=waves)


@lru_cache(maxsize=1)
def _load_frontpage_cases(world: str, span: Span, pace: str) -> list[CoverCase]:
    recorded = open_frontpages(world)
    ends_s = resolve_span(span, float(recorded.times[0]), float(recorded.times[-1]))
    return build_frontpage_cases(recorded, *ends_s, INTERVALS_S[pace])


EXPERIMENT = Feasibility()
