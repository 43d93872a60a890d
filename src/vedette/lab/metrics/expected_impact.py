"""What a fetch brings on average, where scores of unseen pages are known as distributions (Impact08, section 4.2).

    E(I(p, q)) = f(q) sum_r V(r) P(rank of p = r)

The expectation of a set is the sum of those of its pages, so the best c pages are those of largest expectation. Scores
are independent, each one of a few equally likely values (quantiles of what the scorer predicts). Given the score of a
page, each other unseen page is before it with some probability, and how many are is a sum of independent draws: its
distribution comes from one pass over the others (a *Poisson binomial*). The paper knows this for equal distributions
only, and samples otherwise; here it is exact for any, and sampling (``sampled_impact``) is for long lists, where a
pass for each page would be quadratic. Of equal scores the earlier row stands first, and crawled pages before unseen.
"""

import numpy as np

from vedette.attention import Visibility
from vedette.policy import Floats, Ints

__all__ = ["EXACT", "exact_impact", "expected_impact", "sampled_impact"]

EXACT = 40  # unseen pages of one query up to which the exact way is taken
DRAWS = 400


def expected_impact(
    crawled: Floats, values: Floats, frequency: float, seen: Visibility, rng: np.random.Generator
) -> Floats:
    """The expected impact of each unseen page (a row of equally likely ``values``), exactly where there are few."""
    if len(values) <= EXACT:
        return exact_impact(crawled, values, frequency, seen)
    return sampled_impact(crawled, values, frequency, seen, rng)


def exact_impact(crawled: Floats, values: Floats, frequency: float, seen: Visibility) -> Floats:
    """By the distribution of ranks. A score of 0 is in no list.

    Two pages with the same two possible scores, nothing crawled, and only the first result is seen: the earlier one
    wins three of four times.

    >>> from vedette.attention import among_first
    >>> exact_impact(np.zeros(0), np.array([[1.0, 2.0], [1.0, 2.0]]), 1.0, among_first(1)).tolist()
    [0.75, 0.25]
    """
    impacts = np.zeros(len(values))
    ranks = np.arange(1, len(crawled) + len(values) + 1)
    shown = seen(ranks)
    for row, mine in enumerate(values):
        ahead = _chances(values, row)
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


def _chances(values: Floats, row: int) -> Floats:
    """For each other page and each possible score of this one: how probably the other stands before it."""
    mine = values[row][None, None, :]
    before = values[:, :, None] > mine
    ties = values[:, :, None] == mine
    ties[row:] = False
    return np.asarray((before | ties).mean(axis=1))


def sampled_impact(
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
