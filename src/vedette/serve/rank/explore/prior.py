"""Prior of page quality: a distribution on a grid, learned from the feedback on all pages (empirical Bayes).

Most pages are liked by almost no one and a few by many, so no Beta distribution fits. The weights of a grid of
qualities are fitted by expectation maximization to (likes, awareness) of all pages, a nonparametric empirical Bayes
(Robbins 1956, Laird 1978). The initial prior keeps the weight of a few pages, so that nothing is ever impossible. A
page's posterior is this prior, weighted by the likelihood of its own likes under each quality.
"""

import numpy as np

from vedette.policy import Floats

# Qualities from one in ten thousand to nearly all, each 15 % above the one before.
GRID: Floats = np.geomspace(1e-4, 0.9, 64)
_LOGS = np.vstack([np.log(GRID), np.log1p(-GRID)])
KEPT_PAGES = 20.0
STEPS = 30


def uniform_prior() -> Floats:
    """Return the initial quality prior: uniform over orders of magnitude."""
    return np.full(len(GRID), 1.0 / len(GRID))


def posterior(weights: Floats, likes: Floats, aware: Floats) -> Floats:
    """Compute the posterior probability of each quality on the grid, one row per page.

    >>> unseen, liked = posterior(uniform_prior(), np.array([0.0, 1.0]), np.array([0.0, 1.0])) @ GRID
    >>> bool(unseen < liked)
    True
    """
    logs = np.column_stack([likes, np.maximum(aware - likes, 0.0)]) @ _LOGS
    shares = weights * np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def fit_prior(weights: Floats, likes: Floats, aware: Floats, pages: Floats) -> Floats:
    """Fit the quality prior by some steps of expectation maximization; ``pages`` are counts of pages."""
    for _ in range(STEPS):
        counts = pages @ posterior(weights, likes, aware) + KEPT_PAGES * uniform_prior()
        weights = counts / counts.sum()
    return weights
