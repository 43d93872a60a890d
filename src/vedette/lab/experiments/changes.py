"""Changes experiment: how do pages change? Rates, lifetimes, ages, rhythm of the week, and a test for memorylessness.

A history is a complete record, so nothing has to be guessed between fetches. What is unknown is the ends: a version
that is still current when the record or the page ends would have lived longer. So

- the *rate* of a page is its changes by the time over which it was observed: the maximum likelihood of a Poisson
  process, to which the unfinished end adds time and no change;
- how long *versions live* is the product-limit estimate (E. Kaplan, P. Meier, 1958), in which an unfinished version
  counts as long as it was observed, and one that is older than the record from its age at that time on;
- *ages* are weighted by time: the share of all page-days that a page spent at such an age;
- the *hazard* is changes per page-day at an age. Over all pages it falls with age even if each page is memoryless, as
  old versions belong to slow pages. So memorylessness is tested page by page.

The test is exact for each page, at a false discovery rate of 5% over all of them. ``hazard_ratio`` pools the tested
pages: the hazard at an age in units of a page's mean interval, relative to memoryless pages with as many changes; 1 at
all ages if they are memoryless.

All rows are given with (``waves`` = 1) and without (0) versions from changes of many pages at once. Hours are UTC, from
Monday 0:00. Reference: Observe99, sections 2.1 and 2.2.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from vedette.lab.core.experiment import Cell, Experiment, Measurements, Metric, resolve_span
from vedette.lab.worlds.catalog import open_history
from vedette.lab.worlds.history import PAGE, History
from vedette.policy import Floats, Ints, rng_for
from vedette.timeutil import DAY_S

# If changes come from a Poisson process, then, given that there were n of them in a window, they are distributed like n
# independent uniform draws, and the n + 1 gaps (including both ends) are uniform over all divisions of the window.
# Greenwood's statistic, the sum of the squared shares, is large if changes come in bursts and small if they are
# regular. Its distribution for each n is simulated, so a p-value is exact at any n, and it is two-sided. A page with at
# least 5 changes is tested; with more than 200 the first 200 count, and its window ends at the next. Over many pages
# the false discovery rate is controlled (Y. Benjamini, Y. Hochberg, *Controlling the False Discovery Rate*, 1995). A
# rate that drifts counts as bursts: the test asks whether the process is Poisson at a constant rate, which is what
# memoryless policies assume. Reference: M. Greenwood, *The Statistical Study of Infectious Diseases*, 1946.


Bools = npt.NDArray[np.bool_]

MIN_CHANGES, MAX_CHANGES = 5, 200  # changes needed to test a page
DRAWS = 9999
LEVEL = 0.05


def normalize_gaps(begin_s: float, end_s: float, changes_s: Floats) -> Floats | None:
    """Normalize the gaps between a page's changes to shares of the window; None if there are too few changes.

    >>> normalize_gaps(0.0, 10.0, np.array([1.0, 2.0, 4.0, 6.0, 9.0])).tolist()
    [0.1, 0.1, 0.2, 0.2, 0.3, 0.1]
    """
    if len(changes_s) > MAX_CHANGES:
        changes_s, end_s = changes_s[:MAX_CHANGES], float(changes_s[MAX_CHANGES])
    if len(changes_s) < MIN_CHANGES or end_s <= begin_s:
        return None
    gaps: Floats = np.diff(changes_s, prepend=begin_s, append=end_s)
    return gaps / (end_s - begin_s)


class GreenwoodResults(NamedTuple):
    """Results of the Greenwood test for each page: its p value, and whether changes are bursty rather than regular."""

    p: Floats
    bursts: Bools


def run_greenwood_test(pages: Sequence[Floats], seed: int) -> GreenwoodResults:
    """Test each page's changes for memorylessness (Greenwood), by the shares of its gaps."""
    p, bursts = np.ones(len(pages)), np.zeros(len(pages), bool)
    sizes = np.array([len(gaps) for gaps in pages], np.int64)
    odd = np.array([float(gaps @ gaps) for gaps in pages])
    for size in np.unique(sizes).tolist():
        rows = np.flatnonzero(sizes == size)
        drawn = _null_distribution(size, seed)
        # The page itself counts as one more draw: so a p-value is never too small.
        above = 1 + DRAWS - np.searchsorted(drawn, odd[rows])
        below = 1 + np.searchsorted(drawn, odd[rows], side="right")
        p[rows] = np.minimum(1.0, 2 * np.minimum(above, below) / (DRAWS + 1))
        bursts[rows] = above < below
    return GreenwoodResults(p, bursts)


def _null_distribution(size: int, seed: int) -> Floats:
    """Draw the null distribution of Greenwood's statistic: memoryless pages with ``size`` gaps, ascending."""
    gaps = rng_for(seed, f"lab/memoryless/{size}").standard_exponential((DRAWS, size))
    return np.sort((gaps**2).sum(axis=1) / gaps.sum(axis=1) ** 2)


def select_discoveries(p: Floats, level: float = LEVEL) -> Bools:
    """Select the p values that are discoveries at this false discovery rate (Benjamini and Hochberg).

    >>> select_discoveries(np.array([0.04, 0.001, 0.2, 0.02])).tolist()
    [False, True, False, True]
    """
    order = np.argsort(p, kind="stable")
    holds = np.flatnonzero(p[order] <= level * np.arange(1, len(p) + 1) / max(len(p), 1))
    found = np.zeros(len(p), bool)
    found[order[: holds[-1] + 1 if len(holds) else 0]] = True
    return found


def compute_hazard_ratios(pages: Sequence[Floats], edges: Sequence[float]) -> list[float]:
    """Compute the change hazard from each edge to the next, relative to memoryless pages with as many changes.

    It is 1 for memoryless pages. Edges are ages in units of a page's mean interval. Each of such a page's n + 1 gaps is
    longer than a share u with probability (1 - u) ** n, and all but the last end with a change.
    """
    seen, expected = np.zeros((2, len(edges))), np.zeros((2, len(edges)))
    bounds = np.append(np.asarray(edges, np.float64), np.inf)
    for gaps in pages:
        n = len(gaps) - 1
        ages = np.minimum(bounds / n, 1.0)
        longer = (gaps[:, None] >= ages) & (ages < 1.0)
        seen += -np.diff(longer[:-1].sum(axis=0)), np.diff(np.minimum(gaps[:, None], ages).sum(axis=0)) * n
        expected += -n * np.diff((1 - ages) ** n), -n * np.diff((1 - ages) ** (n + 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = (seen[0] / seen[1]) / (expected[0] / expected[1])
    return [float(ratio) for ratio in ratios]


AGES_D = (0.0, 1 / 24, 0.25, 1.0, 2.0, 4.0, 7.0, 14.0, 30.0, 60.0, 90.0, 180.0, 365.0, 730.0, 1460.0)
SCALED_AGES = (0.0, 0.05, 0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0)
QUANTILES = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
MONDAY_H = 72  # hours from a Monday's midnight to the epoch's begin, a Thursday's

OWN_METRICS: Mapping[str, Metric] = {
    "pages": Metric("pages watched"),
    "changes": Metric("changes seen"),
    "rate_d": Metric("changes per page and day; with a quantile: of the pages' own rates", "1/d"),
    "unchanged": Metric("share of pages that never changed", "share"),
    "wave_share": Metric("share of changes that came in waves", "share"),
    "wave_count": Metric("waves that changed anything"),
    "working_share": Metric("share of changes on Monday to Friday, 08:00 to 18:00 UTC (50 of 168 hours)", "share"),
    "lifetime_d": Metric("days that a version lives", "d"),
    "outlived": Metric("share of versions that live longer than age_d", "share"),
    "aged": Metric("share of all page-days spent at more than age_d", "share"),
    "hazard_d": Metric("changes per page-day from age_d to the next", "1/d"),
    "hazard_ratio": Metric("hazard from scaled_age to the next, relative to memoryless pages"),
    "hour_share": Metric("share of changes in this hour of the week", "share"),
    "tested": Metric("pages with enough changes to be tested"),
    "not_memoryless": Metric("share of tested pages that are not memoryless, at a false discovery rate of 5%", "share"),
    "bursts": Metric("share of tested pages whose changes come in bursts", "share"),
    "regular": Metric("share of tested pages whose changes are regular", "share"),
}


class VersionSpans(NamedTuple):
    """Observed spans of page versions: page, begin and end, age at both ends, and whether a change ended it."""

    page: Ints
    begin_s: Floats
    end_s: Floats
    entry_s: Floats
    exit_s: Floats
    changed: Bools
    wave: Bools  # it ended in a wave


def build_version_spans(history: History, begin_s: float, end_s: float, *, waves: bool) -> VersionSpans:
    """Build the observed spans of all versions from start to end; without waves as if those changed nothing."""
    first = np.zeros(len(history.version_page), bool)
    first[history.first_version] = True
    selected = np.flatnonzero((history.kind[history.version_page] == PAGE) & (waves | first | ~history.wave))
    page, at_s = history.version_page[selected], history.version_at_s[selected]
    until_s = history.died_s[page]
    follows = np.append(page[1:] == page[:-1], False)
    until_s[follows] = at_s[1:][follows[:-1]]
    in_wave = np.append(history.wave[selected][1:], False)
    lo, hi = np.maximum(at_s, begin_s), np.minimum(until_s, end_s)
    changed = follows & (until_s < end_s)
    seen = (lo < hi) | (changed & (lo == hi) & (at_s >= begin_s))  # two versions in one second are a change, too
    spells = VersionSpans(page, lo, hi, lo - at_s, hi - at_s, changed, changed & in_wave)
    return VersionSpans(*(column[seen] for column in spells))


class Survival(NamedTuple):
    """Survival curve of page versions: ages at which versions ended, ascending, and the share that lives longer."""

    age_s: Floats
    share: Floats

    def share_at(self, age_s: float) -> float:
        """Return the share of page versions that live longer than this age."""
        place = int(np.searchsorted(self.age_s, age_s, side="right"))
        return float(self.share[place - 1]) if place else 1.0

    def quantile(self, q: float) -> float:
        """Return the age by which this share of page versions has ended; NaN if the record is too short."""
        place = int(np.searchsorted(-self.share, q - 1 - 1e-12))
        return float(self.age_s[place]) if place < len(self.age_s) else np.nan


def estimate_survival(spells: VersionSpans) -> Survival:
    """Estimate the survival of page versions (Kaplan-Meier), with versions that were old when the record began.

    >>> three = VersionSpans(*(np.array(c) for c in ([0, 1, 2], [0.0] * 3, [2.0, 3.0, 5.0], [0.0] * 3, [2.0, 3.0, 5.0],
    ...                  [True, False, True], [False] * 3)))
    >>> estimate_survival(three).share.round(3).tolist()
    [0.667, 0.0]
    """
    ages, ended = np.unique(spells.exit_s[spells.changed], return_counts=True)
    at_risk = np.searchsorted(np.sort(spells.entry_s), ages) - np.searchsorted(np.sort(spells.exit_s), ages)
    return Survival(ages, np.cumprod(1 - ended / np.maximum(at_risk, ended)))


def build_rows(history: History, begin_s: float, end_s: float, *, waves: bool, seed: int) -> list[Measurements]:
    """Build all rows of the changes experiment for the time from start to end."""
    spells = build_version_spans(history, begin_s, end_s, waves=waves)
    if not len(spells.page):
        return []
    tested = _collect_gaps(spells)
    rows = [_build_summary(spells, tested, seed), *_build_quantile_rows(spells), *_build_age_rows(spells)]
    rows += [*_build_hour_rows(spells), *_build_ratio_rows(tested)]
    return [{"waves": float(waves), **row} for row in rows]


def _count_changes(spells: VersionSpans) -> tuple[Ints, Floats]:
    """Count the changes of each observed page, and its days of observation."""
    _, place = np.unique(spells.page, return_inverse=True)
    return np.bincount(place, spells.changed).astype(np.int64), np.bincount(
        place, spells.end_s - spells.begin_s
    ) / DAY_S


def _build_summary(spells: VersionSpans, tested: list[Floats], seed: int) -> dict[str, float]:
    changes, days = _count_changes(spells)
    hours = _hours_of_week(spells)
    total = max(int(changes.sum()), 1)
    p, bursts = run_greenwood_test(tested, seed)
    odd = select_discoveries(p)
    return {
        "pages": len(changes),
        "changes": int(changes.sum()),
        "rate_d": float(changes.sum() / days.sum()),
        "unchanged": float((changes == 0).mean()),
        "wave_share": float(spells.wave.sum() / total),
        "wave_count": len(np.unique(spells.end_s[spells.wave])),
        "working_share": float(((hours // 24 < 5) & (hours % 24 >= 8) & (hours % 24 < 18)).sum() / total),
        "tested": len(tested),
        "not_memoryless": float(odd.sum() / max(len(tested), 1)),
        "bursts": float((odd & bursts).sum() / max(len(tested), 1)),
        "regular": float((odd & ~bursts).sum() / max(len(tested), 1)),
    }


def _hours_of_week(spells: VersionSpans) -> Ints:
    return (spells.end_s[spells.changed] // 3600 + MONDAY_H).astype(np.int64) % 168


def _build_hour_rows(spells: VersionSpans) -> list[dict[str, float]]:
    counts = np.bincount(_hours_of_week(spells), minlength=168)
    return [{"hour": hour, "hour_share": float(count / max(counts.sum(), 1))} for hour, count in enumerate(counts)]


def _build_quantile_rows(spells: VersionSpans) -> list[dict[str, float]]:
    changes, days = _count_changes(spells)
    watched = days > 0
    rates = changes[watched] / days[watched]
    lives = estimate_survival(spells)
    return [
        {"quantile": q, "rate_d": float(np.quantile(rates, q)), "lifetime_d": lives.quantile(q) / DAY_S}
        for q in QUANTILES
    ]


def _build_age_rows(spells: VersionSpans) -> list[dict[str, float]]:
    lives = estimate_survival(spells)
    rows: list[dict[str, float]] = []
    for age_d, next_d in zip(AGES_D, (*AGES_D[1:], np.inf), strict=True):
        low_s, high_s = age_d * DAY_S, next_d * DAY_S
        days = _time_at_ages(spells, low_s, high_s) / DAY_S
        ends = spells.exit_s[spells.changed]
        changes = int(((ends >= low_s) & (ends < high_s)).sum())
        aged = _time_at_ages(spells, low_s, np.inf) / max(_time_at_ages(spells, 0.0, np.inf), 1e-9)
        hazard_d = changes / days if days else np.nan
        rows.append({"age_d": age_d, "outlived": lives.share_at(low_s), "aged": aged, "hazard_d": hazard_d})
    return rows


def _time_at_ages(spells: VersionSpans, low_s: float, high_s: float) -> float:
    """Sum the observed time that page versions spent at these ages."""
    return float(np.maximum(np.minimum(spells.exit_s, high_s) - np.maximum(spells.entry_s, low_s), 0).sum())


def _collect_gaps(spells: VersionSpans) -> list[Floats]:
    """Collect the normalized change gaps of each page that has enough changes."""
    cuts = np.flatnonzero(np.diff(spells.page)) + 1
    found: list[Floats] = []
    for rows in np.split(np.arange(len(spells.page)), cuts):
        changes_s = spells.end_s[rows][spells.changed[rows]]
        gaps = normalize_gaps(float(spells.begin_s[rows[0]]), float(spells.end_s[rows[-1]]), changes_s)
        if gaps is not None:
            found.append(gaps)
    return found


def _build_ratio_rows(tested: list[Floats]) -> list[dict[str, float]]:
    ratios = compute_hazard_ratios(tested, SCALED_AGES)
    return [{"scaled_age": age, "hazard_ratio": ratio} for age, ratio in zip(SCALED_AGES, ratios, strict=True)]


class Changes(Experiment):
    """The changes experiment: it decides nothing, so one policy and one budget represent the record itself."""

    name = "changes"
    about = "How do pages change, and do changes depend on the last one? (no policy, no budget)"
    worlds = ("git", "made", "live")
    own = OWN_METRICS
    metrics = tuple(OWN_METRICS)
    policies = ("as-recorded",)
    budgets = (1.0,)

    def run(self, cell: Cell) -> list[Measurements]:
        """Run the changes experiment on a cell: all rows, with waves and without."""
        history = open_history(cell.world)
        begin_s, end_s = resolve_span(cell.span, history.begin_s, history.end_s)
        return [
            row for waves in (True, False) for row in build_rows(history, begin_s, end_s, waves=waves, seed=cell.seed)
        ]


EXPERIMENT = Changes()
