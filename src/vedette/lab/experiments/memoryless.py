"""Are a page's changes memoryless? An exact test, page by page.

Where changes come from a Poisson process, then, given that there were n of them in a window, they lie in it as n
independent uniform draws do, and the n + 1 gaps (both ends among them) are spread evenly over all ways to divide the
window. Greenwood's statistic, the sum of the squared shares, is large where changes come in bursts and small where they
are regular. Its distribution for each n is drawn, so a p-value is exact at any n, and it is two-sided.

A page with at least 5 changes is tested; of one with more than 200 the first 200 count, and its window ends at the
next. Over many pages the false discovery rate is held (Y. Benjamini, Y. Hochberg, *Controlling the False Discovery
Rate*, 1995). A rate that drifts counts as bursts: the test asks whether the process is Poisson at a constant rate,
which is what memoryless policies assume.

Reference: M. Greenwood, *The Statistical Study of Infectious Diseases*, 1946.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from vedette.policy import Floats, rng_for

__all__ = ["FEWEST", "Verdicts", "discoveries", "gaps_of", "hazard_ratios", "verdicts"]

Bools = npt.NDArray[np.bool_]

FEWEST, LARGEST = 5, 200  # changes of a page that is tested
DRAWS = 9999
LEVEL = 0.05


def gaps_of(begin_s: float, end_s: float, changes_s: Floats) -> Floats | None:
    """The shares into which ascending changes divide a window; None where they are too few.

    >>> gaps_of(0.0, 10.0, np.array([1.0, 2.0, 4.0, 6.0, 9.0])).tolist()
    [0.1, 0.1, 0.2, 0.2, 0.3, 0.1]
    """
    if len(changes_s) > LARGEST:
        changes_s, end_s = changes_s[:LARGEST], float(changes_s[LARGEST])
    if len(changes_s) < FEWEST or end_s <= begin_s:
        return None
    gaps: Floats = np.diff(changes_s, prepend=begin_s, append=end_s)
    return gaps / (end_s - begin_s)


class Verdicts(NamedTuple):
    """For each page, how often memoryless changes look as odd, and whether they are rather in bursts than regular."""

    p: Floats
    bursts: Bools


def verdicts(pages: Sequence[Floats], seed: int) -> Verdicts:
    """The test of each page, by the shares of its gaps."""
    p, bursts = np.ones(len(pages)), np.zeros(len(pages), bool)
    sizes = np.array([len(gaps) for gaps in pages], np.int64)
    odd = np.array([float(gaps @ gaps) for gaps in pages])
    for size in np.unique(sizes).tolist():
        rows = np.flatnonzero(sizes == size)
        drawn = _drawn(size, seed)
        # The page itself counts as one more draw: so a p-value is never too small.
        above = 1 + DRAWS - np.searchsorted(drawn, odd[rows])
        below = 1 + np.searchsorted(drawn, odd[rows], side="right")
        p[rows] = np.minimum(1.0, 2 * np.minimum(above, below) / (DRAWS + 1))
        bursts[rows] = above < below
    return Verdicts(p, bursts)


def _drawn(size: int, seed: int) -> Floats:
    """Greenwood's statistic of memoryless pages with so many gaps, ascending."""
    gaps = rng_for(seed, f"lab/memoryless/{size}").standard_exponential((DRAWS, size))
    return np.sort((gaps**2).sum(axis=1) / gaps.sum(axis=1) ** 2)


def discoveries(p: Floats, level: float = LEVEL) -> Bools:
    """Which p-values stand when at most this share of those that stand may be false.

    >>> discoveries(np.array([0.04, 0.001, 0.2, 0.02])).tolist()
    [False, True, False, True]
    """
    order = np.argsort(p, kind="stable")
    holds = np.flatnonzero(p[order] <= level * np.arange(1, len(p) + 1) / max(len(p), 1))
    found = np.zeros(len(p), bool)
    found[order[: holds[-1] + 1 if len(holds) else 0]] = True
    return found


def hazard_ratios(pages: Sequence[Floats], edges: Sequence[float]) -> list[float]:
    """The hazard from each edge to the next, by that of memoryless pages with as many changes; 1 where they are.

    Edges are ages in units of a page's mean interval, window by changes. Of n + 1 gaps of a memoryless page each is
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
