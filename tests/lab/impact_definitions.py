"""What fetching pages is worth to those who search, after Impact08, section 3.

The impact of a page is how often people would see it: ``I(p) = sum_q f(q) V(R(p, q))``, with its rank among *all*
pages, crawled or not. The impact of a set of pages is the sum of theirs.

Before a page is fetched its score is not known, but perhaps between what it lies: the *worst case* of fetching a set is
``compute_worst_case``, and what is expected ``estimate_impact``.
"""

from typing import NamedTuple

import numpy as np

from vedette.attention import Visibility, step_visibility, visibility
from vedette.frontier.impact.url_features import Flags
from vedette.lab.quality.workload import TieBreak, Workload, compute_slot_scores, rank_results
from vedette.policy import Floats, Ints

# E(I(p, q)) = f(q) sum_r V(r) P(rank of p = r) The expectation of a set is the sum of those of its pages, so the best
# c pages are those of largest expectation. Scores are independent, each one of a few equally likely values (quantiles
# of what the scorer predicts). Given the score of a page, each other unseen page is before it with some probability,
# and how many are is a sum of independent draws: its distribution comes from one pass over the others (a *Poisson
# binomial*). The paper knows this for equal distributions only, and samples otherwise; here it is exact for any, and
# sampling (``sample_impact``) is for long lists, where a pass for each page would be quadratic. Of equal scores the
# earlier row stands first, and crawled pages before unseen.


MAX_EXACT_PAGES = 40  # unseen pages of one query up to which the exact way is taken
DRAWS = 400


def estimate_impact(
    crawled: Floats, values: Floats, frequency: float, seen: Visibility, rng: np.random.Generator
) -> Floats:
    """The expected impact of each unseen page (a row of equally likely ``values``), exactly where there are few."""
    if len(values) <= MAX_EXACT_PAGES:
        return compute_exact_impact(crawled, values, frequency, seen)
    return sample_impact(crawled, values, frequency, seen, rng)


def compute_exact_impact(crawled: Floats, values: Floats, frequency: float, seen: Visibility) -> Floats:
    """By the distribution of ranks. A score of 0 is in no list.

    Two pages with the same two possible scores, nothing crawled, and only the first result is seen: the earlier one
    wins three of four times.

    >>> from vedette.attention import step_visibility
    >>> compute_exact_impact(np.zeros(0), np.array([[1.0, 2.0], [1.0, 2.0]]), 1.0, step_visibility(1)).tolist()
    [0.75, 0.25]
    """
    impacts = np.zeros(len(values))
    ranks = np.arange(1, len(crawled) + len(values) + 1)
    shown = seen(ranks)
    for row, mine in enumerate(values):
        ahead = _compute_ahead_chances(values, row)
        counts = np.zeros((len(mine), len(values)))
        counts[:, 0] = 1.0
        for other in np.delete(np.arange(len(values)), row).tolist():
            chance = ahead[other][:, None]
            counts[:, 1:] = counts[:, 1:] * (1 - chance) + counts[:, :-1] * chance
            counts[:, :1] *= 1 - chance
        before = (crawled[None, :] >= mine[:, None]).sum(axis=1)
        chances = counts * shown[before[:, None] + np.arange(len(values))[None, :]]
        impacts[row] = frequency * float((chances.sum(axis=1) * (mine > 0)).mean())
    return impacts


def _compute_ahead_chances(values: Floats, row: int) -> Floats:
    """For each other page and each possible score of this one: how probably the other stands before it."""
    mine = values[row][None, None, :]
    before = values[:, :, None] > mine
    ties = values[:, :, None] == mine
    ties[row:] = False
    return np.asarray((before | ties).mean(axis=1))


def sample_impact(
    crawled: Floats,
    values: Floats,
    frequency: float,
    seen: Visibility,
    rng: np.random.Generator,
    draws: int = DRAWS,
) -> Floats:
    """The same, as an average over drawn scores."""
    pages, points = values.shape
    drawn = values[np.arange(pages)[None, :], rng.integers(0, points, (draws, pages))]
    order = np.argsort(-drawn, axis=1, kind="stable")
    ranks: Ints = np.empty_like(order)
    np.put_along_axis(ranks, order, np.broadcast_to(np.arange(1, pages + 1), order.shape), axis=1)
    ascending = np.sort(crawled)
    ranks += len(crawled) - np.searchsorted(ascending, drawn)
    return np.asarray(frequency * (seen(ranks) * (drawn > 0)).mean(axis=0))


# For a given set it is easily worked out: what is fetched scores as low as it may, all else as high as it may, and
# whoever is equal stands before it. (Every other case follows from this one by raising fetched pages and lowering
# others, and no rank of a fetched page gets worse by that.) What is hard is to choose the set: the worst case of two
# pages is not the sum of their worst cases.


class ScoreBounds(NamedTuple):
    """What is known of a query's results, a row a page: between what its score lies. Equal bounds: it is crawled."""

    low: Floats
    high: Floats


def compute_worst_case(sketch: ScoreBounds, fetched: Flags, frequency: float, seen: Visibility = visibility) -> float:
    """The least that fetching these rows of a query's sketch can bring.

    One page is known to score 5, one is fetched that scores 3 to 6 and may come second:

    >>> from vedette.attention import step_visibility
    >>> sketch = ScoreBounds(np.array([5.0, 3.0]), np.array([5.0, 6.0]))
    >>> compute_worst_case(sketch, np.array([False, True]), 2.0, step_visibility(1))
    0.0
    """
    scores = np.where(fetched, sketch.low, sketch.high)
    order = np.lexsort((fetched, -scores))
    ranks = np.flatnonzero(fetched[order]) + 1
    return frequency * float(seen(ranks).sum())


TOP_RESULTS = 10  # the paper's K


def compute_page_impacts(
    versions: Ints, workload: Workload, seen: Visibility | None = None, ties: TieBreak = TieBreak.OLDER_FIRST
) -> Floats:
    """The impact of each page when pages have these versions; viewed are the first ten, or whoever ``seen`` says."""
    seen = step_visibility(TOP_RESULTS) if seen is None else seen
    lists = rank_results(workload, compute_slot_scores(workload, versions), np.arange(workload.queries), ties)
    weights = workload.frequency[lists.row] * seen(lists.rank)
    impacts: Floats = np.bincount(workload.slot_page[lists.slot], weights, len(versions)).astype(np.float64)
    return impacts


def sum_impact(fetched: Ints, impacts: Floats) -> float:
    """The impact of the pages that were fetched, each counted once however often it was."""
    return float(impacts[np.unique(fetched)].sum())
