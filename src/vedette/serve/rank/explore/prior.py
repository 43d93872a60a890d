"""What pages are like in general, learned from what people made of those that were seen: a law of quality on a grid.

Most pages are liked by next to nobody and a few by many, so no Beta law fits. The weights of a grid of qualities are
fitted by expectation maximisation to (likes, awareness) of all pages, a nonparametric empirical Bayes (Robbins 1956,
Laird 1978). A few pages' worth of the law that is believed before anything was seen is kept, so that nothing is ever
impossible. A page's posterior is this law, weighed by how probable its own likes are under each quality.
"""

import numpy as np

from vedette.policy import Floats

# Qualities from one in ten thousand to nearly all, each 15 % above the one before.
GRID: Floats = np.geomspace(1e-4, 0.9, 64)
_LOGS = np.vstack([np.log(GRID), np.log1p(-GRID)])
KEPT_PAGES = 20.0
STEPS = 30


def uniform_prior() -> Floats:
    """Before anything is seen: every order of magnitude alike."""
    return np.full(len(GRID), 1.0 / len(GRID))


def posterior(weights: Floats, likes: Floats, aware: Floats) -> Floats:
    """How probable each quality of the grid is, a row for each page.

    >>> unseen, liked = posterior(uniform_prior(), np.array([0.0, 1.0]), np.array([0.0, 1.0])) @ GRID
    >>> bool(unseen < liked)
    True
    """
    logs = np.column_stack([likes, np.maximum(aware - likes, 0.0)]) @ _LOGS
    shares = weights * np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def fit_prior(weights: Floats, likes: Floats, aware: Floats, pages: Floats) -> Floats:
    """The law after some steps of expectation maximisation; ``pages`` says how many had these likes."""
    for _ in range(STEPS):
        counts = pages @ posterior(weights, likes, aware) + KEPT_PAGES * uniform_prior()
        weights = counts / counts.sum()
    return weights
