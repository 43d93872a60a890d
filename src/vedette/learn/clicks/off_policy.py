"""What would another policy have brought? Estimates from a log with propensities, which say when they cannot know.

A row is one decision: with what probability it was taken, with what probability the other policy would take the same
one, and what came of it. For the doubly robust estimate also what a model expects of it, and what it expects of the
other policy on average.

- IPS (Horvitz and Thompson): mean of w r with w = target / logged; right on average, and wild.
- SNIPS (Swaminathan and Joachims 2015): the same divided by the mean of w; a little wrong, and much steadier.
- DR (Dudik, Langford and Li 2011): the model, corrected by w where it was wrong; right if either is.

A log that rests on few decisions is no evidence, however many rows it has. Its *effective* number is
``(sum w)^2 / sum w^2`` (Kish); below 100, or where the weights do not average to about 1, "not enough data" is said.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from vedette.policy import Floats

__all__ = ["FEWEST", "NOT_ENOUGH", "Decisions", "Ends", "Estimate", "by_normal", "doubly_robust", "ips", "snips"]

FEWEST = 100.0
# Weights average to 1 where the log covers what the other policy does; standard errors within which they must.
COVERED = 4.0
NOT_ENOUGH = "not enough data"
Z = 1.96
# The ends of the 95 % interval of a mean.
Ends = Callable[[Floats], tuple[float, float]]


class Decisions(NamedTuple):
    """A log in columns."""

    logged: Floats
    target: Floats
    reward: Floats
    expected: Floats
    expected_of_target: Floats

    @property
    def weights(self) -> Floats:
        """How much more often the other policy would have decided so."""
        return np.asarray(self.target / np.maximum(self.logged, 1e-12))


class Estimate(NamedTuple):
    """A value with its interval, on how many decisions it rests, and what is to be said against it."""

    value: float
    low: float
    high: float
    effective: float
    said: str


def by_normal(values: Floats) -> tuple[float, float]:
    """By the normal law: quick, and good enough where hundreds of decisions count.

    >>> by_normal(np.array([1.0, 1.0, 1.0]))
    (1.0, 1.0)
    """
    if len(values) < 2:
        return math.nan, math.nan
    mean, off = float(values.mean()), Z * float(values.std(ddof=1)) / math.sqrt(len(values))
    return mean - off, mean + off


def ips(log: Decisions, ends: Ends = by_normal) -> Estimate:
    """Weighted by how much more often the other policy would have done so.

    >>> ips(Decisions(*(np.array([0.5]),) * 5)).said
    'not enough data'
    """
    return _mean(log, log.weights * log.reward, ends)


def snips(log: Decisions, ends: Ends = by_normal) -> Estimate:
    """The same, by the weights that there are; the interval is that of the ratio, by its linear part."""
    weights = log.weights
    mean = float(weights.mean()) if len(weights) else math.nan
    if not mean > 0:
        return _estimate(log, math.nan, (math.nan, math.nan))
    value = float((weights * log.reward).mean()) / mean
    low, high = ends(weights * (log.reward - value) / mean)
    return _estimate(log, value, (value + low, value + high))


def doubly_robust(log: Decisions, ends: Ends = by_normal) -> Estimate:
    """What the model expects, and where it was wrong, what came instead."""
    return _mean(log, log.expected_of_target + log.weights * (log.reward - log.expected), ends)


def _mean(log: Decisions, values: Floats, ends: Ends) -> Estimate:
    return _estimate(log, float(values.mean()) if len(values) else math.nan, ends(values))


def _estimate(log: Decisions, value: float, between: tuple[float, float]) -> Estimate:
    weights = log.weights
    squares = float((weights**2).sum())
    effective = float(weights.sum()) ** 2 / squares if squares > 0 else 0.0
    said = NOT_ENOUGH if effective < FEWEST or not _covers(weights) else ""
    return Estimate(value, *between, effective, said)


def _covers(weights: Floats) -> bool:
    """Whether the weights average to about 1; they fall short where the other policy does what was never done."""
    error = float(weights.std()) / math.sqrt(len(weights))
    return abs(float(weights.mean()) - 1) <= COVERED * error + 1e-9
