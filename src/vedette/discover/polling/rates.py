"""Rate posteriors of discovery sources, and drift: a source may have changed since its last poll.

Sites are rebuilt: a page that showed nothing new for months can be the busiest of its site the next day, which only a
poll would show. So a source becomes another one, known only by its host, with a constant probability per time
(``DRIFT_S``). The belief between polls is the mixture,

    p = 1 - e^(-dt / DRIFT_S),     mean = own + p max(usual - own, 0)

(a change for the worse shows in the next poll by itself). A poll decides which of the two it was, by how well each
would have predicted its yield: a change point with two hypotheses, as in Adams and MacKay, 2007. Evidence from before a
change is dropped.
"""

from dataclasses import dataclass
from math import lgamma

import numpy as np

from vedette.policy import Floats

# The mean time after which a source changes.
DRIFT_S = 365 * 86_400.0
# Links come in bursts, so counts vary more than Poisson, as if rates differed by this shape from poll to poll. An
# unknown source varies even more.
BURST_SHAPE, UNKNOWN_SHAPE = 3.0, 0.5


@dataclass(frozen=True, slots=True)
class RatePosterior:
    """Gamma posteriors of sources' rates of new links, a row per source, a column per kind of lifetime.

    mean = shape / rate.
    """

    shape: Floats
    rate: Floats

    @property
    def mean(self) -> Floats:
        """The posterior mean of the rate, in links an hour."""
        return self.shape / self.rate

    @property
    def variance(self) -> Floats:
        """The posterior variance of the rate, not that of the number of links."""
        return self.shape / self.rate**2


def compute_drift_chance(unseen_s: Floats) -> Floats:
    """Compute the probability that a source's rate drifted since its last poll.

    >>> compute_drift_chance(np.array([0.0, DRIFT_S])).round(2).tolist()
    [0.0, 0.63]
    """
    chance: Floats = -np.expm1(-np.maximum(unseen_s, 0.0) / DRIFT_S)
    return chance


def mix_rates(own: RatePosterior, usual: RatePosterior, chance: Floats) -> RatePosterior:
    """Mix rate posteriors of sources that drifted with this probability: Gammas, never with a smaller mean.

    >>> own, usual = RatePosterior(np.array([[2.0]]), np.array([[20.0]])), RatePosterior(np.array([[1.0]]),
    ...     np.array([[1.0]]))
    >>> mix_rates(own, usual, np.array([0.5])).mean.round(3).tolist()
    [[0.55]]
    """
    p = chance[:, None]
    mean = own.mean + p * np.maximum(usual.mean - own.mean, 0.0)
    apart = p * (1.0 - p) * (own.mean - usual.mean) ** 2
    variance = (1.0 - p) * own.variance + p * usual.variance + apart
    return RatePosterior(mean**2 / variance, mean / variance)


def estimate_change(yields: Floats, own: Floats, usual: Floats, chance: Floats) -> Floats:
    """Estimate from poll yields alone whether the rate of each source changed (a change point test).

    ``yields`` were observed where ``own`` or ``usual`` were expected.

    1 is certain; 0 means no evidence. Time alone is no evidence here: evidence decays by another rule. Thirty links
    where half of one was expected are hardly from the same source; none at all are:

    >>> estimate_change(np.array([30.0, 0.0]), np.full(2, 0.5), np.full(2, 20.0), np.full(2, 0.1)).round(2).tolist()
    [1.0, 0.0]
    """
    against = _compute_log_likelihood(yields, own, BURST_SHAPE) - _compute_log_likelihood(yields, usual, UNKNOWN_SHAPE)
    odds = (1.0 - chance) / np.maximum(chance, 1e-12) * np.exp(np.clip(against, -100.0, 100.0))
    after = 1.0 / (1.0 + odds)
    told: Floats = np.maximum(after - chance, 0.0) / (1.0 - chance)
    return told


def _compute_log_likelihood(count: Floats, mean: Floats, shape: float) -> Floats:
    """Compute the log likelihood of a poll's count under a Poisson with Gamma rate, up to a constant."""
    mean = np.maximum(mean, 1e-9)
    ways = np.array([lgamma(each + shape) for each in count.tolist()]) - lgamma(shape)
    log: Floats = ways + shape * np.log(shape / (shape + mean)) + count * np.log(mean / (shape + mean))
    return log
