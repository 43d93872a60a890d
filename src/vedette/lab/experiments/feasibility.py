"""Can new pages be found by fetching few old ones? What one would find who knew where to look.

For each site (a host) and each step from one snapshot to the next, GREEDY covers what is new (``vedette.lab.runs.discovery.arrivals``);
links that leave the host are left out. A site and a step at which something new could be found make a *case*. The rows
are:

- one a case (``host``, ``step``): what was new, and the covers of 90 % and of all of it;
- one a cover size ``k`` up to the budget (figure 3.2 of Pandey08): new pages found per case, their share, the overhead;
- one a ``level`` of coverage (figure 3.4): the overhead of finding so much in every case, and (``overhead_pooled``) of
  finding so much of all, where it is cheapest;
- one a bin of ``jaccard`` (figure 3.3): how much pairs of old pages overlap that share any new page.

Overhead is printed in two forms, since those of the thesis do not agree: the sum of fetches by the sum of finds, and
the mean of the cases' ratios. All is told with (``waves`` = 1) and without (0) new pages that came in waves: without,
they do not count as new, and paths may lead over them. A policy is the pace of the snapshots; a budget is the
largest cover size. Nothing is drawn but a sample of old pages where a case has too many for all pairs.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from vedette.lab.core.experiment import Cell, Experiment, Measured, Metric, Span
from vedette.lab.core.spans import span_s
from vedette.lab.runs.discovery.arrivals import (
    PACES,
    Backlinks,
    Cover,
    Reach,
    greedy,
    hosts_of,
    overlaps,
    reaches,
    steps_of,
)
from vedette.lab.worlds.catalog import open_frontpages, open_history
from vedette.lab.worlds.frontpages import Frontpages
from vedette.lab.worlds.history import History
from vedette.policy import Floats, Ints, rng_for

__all__ = ["EXPERIMENT", "Case", "Feasibility", "cases_of", "cases_of_frontpages", "rows_of"]

Bools = npt.NDArray[np.bool_]

LEVELS = tuple(number / 10 for number in range(1, 11))
SIZES = (1, 2, 3, 5, 10, 20, 50, 83, 100, 200, 400, 600)  # 83 and 200 are those that the thesis gives figures for
BINS = 10
MOST_SETS = 1500  # distinct ones of a case, of which all pairs are compared
OWN: Mapping[str, Metric] = {
    "found": Metric("new pages found per site and step with a cover of at most k", "pages", True),
    "cover_size": Metric("old pages fetched per site and step", "pages", False),
    "cover_size_90": Metric("old pages to fetch for 90 % of the new ones", "pages", False),
    "overhead_pooled": Metric("overhead where the level is reached over all sites and steps together", "", False),
    "pairs": Metric("share of the pairs of old pages that share a new page, by their Jaccard coefficient", "share"),
    "pairs_mean": Metric("the same as a mean over sites and steps", "share"),
    "new": Metric("new pages", "pages"),
    "orphans": Metric("share of new pages that no old page leads to", "share", False),
    "direct": Metric("share of the others that an old page itself links to", "share"),
    "cases": Metric("sites and steps at which something new could be found"),
}


class Case(NamedTuple):
    """A site at a step: what its old pages cover, and GREEDY's cover of all of it."""

    step: int
    reach: Reach
    cover: Cover

    @property
    def found(self) -> int:
        """All that can be found."""
        return sum(self.cover.gains)


def cases_of(history: History, begin_s: float, end_s: float, every_s: float, *, waves: bool) -> list[Case]:
    """All sites and steps of a history at which anything is new."""
    backlinks = Backlinks.of(history)
    in_wave = history.wave[history.first_version]
    host = hosts_of(history)
    cases: list[Case] = []
    for number, step in enumerate(steps_of(begin_s, end_s, every_s)):
        arrivals = backlinks.arrivals(step)
        counted = waves | ~in_wave[arrivals.new]
        things = _numbered(host[arrivals.new], counted)
        cases += _cases(number, reaches(arrivals, things, host))
    return cases


def cases_of_frontpages(world: Frontpages, begin_s: float, end_s: float, every_s: float) -> list[Case]:
    """The same of recorded front pages: sources are old, and a target is new where no earlier snapshot had it.

    A step ends at the last recorded snapshot up to its time. What came and went in between is in no snapshot.
    """
    known = np.zeros(world.targets, bool)
    at = [step.now_s for step in steps_of(begin_s - every_s, end_s, every_s)]
    cases: list[Case] = []
    for number, snapshot in enumerate(np.unique(np.searchsorted(world.times, at, side="right") - 1).tolist()):
        source, target = world.shown(snapshot)
        fresh = np.flatnonzero(~known[target])
        if number:
            cases += _cases(number - 1, _front_reaches(world.host[source[fresh]], source[fresh], target[fresh]))
        known[target] = True
    return cases


def _front_reaches(host: Ints, source: Ints, target: Ints) -> Iterator[Reach]:
    for one in np.unique(host).tolist():
        rows = host == one
        found, bit = np.unique(target[rows], return_inverse=True)
        sets: dict[int, int] = {}
        for page, place in zip(source[rows].tolist(), bit.tolist(), strict=True):
            sets[page] = sets.get(page, 0) | 1 << place
        old = np.fromiter(sets, np.int64, len(sets))
        yield Reach(one, old, tuple(sets.values()), wanted=len(found), orphans=0, direct=len(found))


def _cases(step: int, found: Iterable[Reach]) -> list[Case]:
    return [Case(step, reach, greedy(reach.sets)) for reach in found]


def _numbered(group: Ints, counted: Bools) -> Ints:
    """Rows numbered from 0 within their group; -1 for such as do not count."""
    numbers = np.full(len(group), -1, np.int64)
    rows = np.flatnonzero(counted)
    rows = rows[np.argsort(group[rows], kind="stable")]
    first = np.searchsorted(group[rows], group[rows])
    numbers[rows] = np.arange(len(rows)) - first
    return numbers


def rows_of(cases: Sequence[Case], most: int, *, waves: bool, seed: int) -> list[Measured]:
    """All rows of these cases; ``most`` is the largest cover size."""
    useful = [case for case in cases if case.found]
    rows = [_summary(cases, useful), *map(_case_row, useful)]
    if useful:
        rows += [_size_row(useful, size) for size in _sizes(most)]
        rows += [_level_row(useful, level) for level in LEVELS]
        rows += _overlap_rows(useful, seed)
    return [{"waves": float(waves), **row} for row in rows]


def _summary(cases: Sequence[Case], useful: Sequence[Case]) -> dict[str, float]:
    wanted = sum(case.reach.wanted for case in cases)
    found = sum(case.found for case in useful)
    return {
        "cases": len(useful),
        "new": wanted,
        "orphans": (wanted - found) / max(wanted, 1),
        "direct": sum(case.reach.direct for case in useful) / max(found, 1),
    }


def _case_row(case: Case) -> dict[str, float]:
    sizes = [case.cover.size_for(share) for share in (0.9, 1.0)]
    return {
        "host": case.reach.group,
        "step": case.step,
        "new": case.reach.wanted,
        "orphans": case.reach.orphans / case.reach.wanted,
        "direct": case.reach.direct / case.found,
        "cover_size_90": sizes[0],
        "cover_size": sizes[1],
        "overhead": sizes[1] / case.found,
    }


def _sizes(most: int) -> list[int]:
    return [size for size in SIZES if size < most] + [most]


def _size_row(cases: Sequence[Case], size: int) -> dict[str, float]:
    fetches = np.array([min(size, len(case.cover.rows)) for case in cases])
    finds = np.array([case.cover.found_by(size) for case in cases])
    coverage = finds.sum() / sum(case.found for case in cases)
    return {"k": size, "found": float(finds.mean()), "coverage": float(coverage), **_overheads(fetches, finds)}


def _level_row(cases: Sequence[Case], level: float) -> dict[str, float]:
    sizes = [case.cover.size_for(level) for case in cases]
    finds = np.array([case.cover.found_by(size) for case, size in zip(cases, sizes, strict=True)])
    # The finds of cases are disjoint, so GREEDY over all of them together takes the largest gains first.
    pooled = Cover((), tuple(sorted((gain for case in cases for gain in case.cover.gains), reverse=True)))
    size = pooled.size_for(level)
    return {
        "level": level,
        "coverage": float(finds.sum() / sum(pooled.gains)),
        **_overheads(np.array(sizes), finds),
        "overhead_pooled": size / pooled.found_by(size),
    }


def _overheads(fetches: Ints, finds: Ints) -> dict[str, float]:
    return {
        "cover_size": float(fetches.mean()),
        "overhead": float(fetches.sum() / finds.sum()),
        "overhead_mean": float((fetches / finds).mean()),
    }


def _overlap_rows(cases: Sequence[Case], seed: int) -> list[dict[str, float]]:
    """How pairs that share anything are spread over the bins: of all pairs, and as a mean over cases that have any."""
    rng = rng_for(seed, "lab/feasibility/pairs")
    counts = np.array([_overlap_counts(_sampled(case.reach.sets, rng)) for case in cases])
    counts = counts[counts.sum(axis=1) > 0]
    if not len(counts):
        return []
    pooled = counts.sum(axis=0) / counts.sum()
    meant = (counts / counts.sum(axis=1, keepdims=True)).mean(axis=0)
    return [
        {"jaccard": place / BINS, "pairs": float(pooled[place]), "pairs_mean": float(meant[place])}
        for place in range(BINS)
    ]


def _overlap_counts(sets: Sequence[int]) -> Floats:
    counts = np.zeros(BINS)
    for overlap, pairs in overlaps(sets):
        counts[min(int(overlap * BINS), BINS - 1)] += pairs
    return counts


def _sampled(sets: Sequence[int], rng: np.random.Generator) -> Sequence[int]:
    if len(frozenset(sets)) <= MOST_SETS:
        return sets
    return [sets[row] for row in np.sort(rng.choice(len(sets), MOST_SETS, replace=False))]


class Feasibility:
    """The experiment."""

    name = "feasibility"
    about = "Can few old pages lead to all new ones? (budget: the largest cover; policy: the pace of snapshots)"
    worlds = ("git", "frontpages", "made", "live")
    own = OWN
    metrics = ("coverage", "overhead", "overhead_mean", *OWN)
    policies = tuple(PACES)
    budgets = (600.0,)
    of_texts: tuple[str, ...] = ()
    # Figures 3.2 (a) and (b), 3.3 and 3.4 of the thesis; the last in both forms of overhead.
    figures = (
        ("found", "k"),
        ("overhead", "k"),
        ("coverage", "k"),
        ("pairs", "jaccard"),
        ("overhead", "level"),
        ("overhead_mean", "level"),
    )

    def run(self, cell: Cell) -> list[Measured]:
        """All rows, with waves and without; front pages do not come in waves."""
        if cell.world.startswith("frontpages:"):
            cases = _frontpage_cases(cell.world, cell.span, cell.policy)
            return rows_of(cases, max(1, int(cell.budget)), waves=True, seed=cell.seed)
        rows: list[Measured] = []
        for waves in (True, False):
            cases = _history_cases(cell.world, cell.span, cell.policy, waves)
            rows += rows_of(cases, max(1, int(cell.budget)), waves=waves, seed=cell.seed)
        return rows


@lru_cache(maxsize=2)  # cells that differ in their seed or budget only come one after the other
def _history_cases(world: str, span: Span, pace: str, waves: bool) -> list[Case]:  # noqa: FBT001  # a key of the cache
    history = open_history(world)
    return cases_of(history, *span_s(span, history.begin_s, history.end_s), PACES[pace], waves=waves)


@lru_cache(maxsize=1)
def _frontpage_cases(world: str, span: Span, pace: str) -> list[Case]:
    recorded = open_frontpages(world)
    ends_s = span_s(span, float(recorded.times[0]), float(recorded.times[-1]))
    return cases_of_frontpages(recorded, *ends_s, PACES[pace])


EXPERIMENT: Experiment = Feasibility()
