"""What is believed of rates, and how sources drift: each may have become another since it was last looked at.

Sites are rebuilt: a page that showed nothing new for months is the busiest of its site the next day, and nobody who
stays away from it hears of that. So a source becomes another one, about which nothing is known but its host, with a
constant chance per time (``DRIFT_S``). What is believed between looks is the mixture,

    p = 1 - e^(-dt / DRIFT_S),     mean = own + p max(usual - own, 0)

(of a change for the worse the next look tells by itself). A look says which of the two it was, by how well each would
have foretold what it brought: a change point with two hypotheses, as in Adams and MacKay, 2007. Evidence of a source
that became another is forgotten.
"""

from dataclasses import dataclass
from math import lgamma

import numpy as np

from vedette.policy import Floats

__all__ = ["Rates", "chance_of_change", "changed", "mixed"]

# The mean time after which a source is another one.
DRIFT_S = 365 * 86_400.0
# Links come in bursts, so numbers spread more than those of Poisson; as if rates differed by this shape from look to
# look. A source of which nothing is known spreads more still.
BURSTS, UNKNOWN = 3.0, 0.5


@dataclass(frozen=True, slots=True)
class Rates:
    """Gamma posteriors of rates, a row each and a column for each kind of life: mean = shape / rate."""

    shape: Floats
    rate: Floats

    @property
    def mean(self) -> Floats:
        """Links an hour."""
        return self.shape / self.rate

    @property
    def variance(self) -> Floats:
        """Of what is believed, not of what comes."""
        return self.shape / self.rate**2


def chance_of_change(unseen_s: Floats) -> Floats:
    """The chance that a source became another in this time.

    >>> chance_of_change(np.array([0.0, DRIFT_S])).round(2).tolist()
    [0.0, 0.63]
    """
    chance: Floats = -np.expm1(-np.maximum(unseen_s, 0.0) / DRIFT_S)
    return chance


def mixed(own: Rates, usual: Rates, chance: Floats) -> Rates:
    """What is believed of sources that became another with this chance: Gammas, never with a smaller mean.

    >>> own, usual = Rates(np.array([[2.0]]), np.array([[20.0]])), Rates(np.array([[1.0]]), np.array([[1.0]]))
    >>> mixed(own, usual, np.array([0.5])).mean.round(3).tolist()
    [[0.55]]
    """
    p = chance[:, None]
    mean = own.mean + p * np.maximum(usual.mean - own.mean, 0.0)
    apart = p * (1.0 - p) * (own.mean - usual.mean) ** 2
    variance = (1.0 - p) * own.variance + p * usual.variance + apart
    return Rates(mean**2 / variance, mean / variance)


def changed(yields: Floats, own: Floats, usual: Floats, chance: Floats) -> Floats:
    """What looks alone say of whether sources became another, which brought so much where so much was expected.

    1 is certain, and 0 that nothing speaks for it. Time alone says nothing here: evidence fades by another rule. Thirty
    links where half a one was expected are hardly of the same source; none at all are:

    >>> changed(np.array([30.0, 0.0]), np.full(2, 0.5), np.full(2, 20.0), np.full(2, 0.1)).round(2).tolist()
    [1.0, 0.0]
    """
    against = _likelihood(yields, own, BURSTS) - _likelihood(yields, usual, UNKNOWN)
    odds = (1.0 - chance) / np.maximum(chance, 1e-12) * np.exp(np.clip(against, -100.0, 100.0))
    after = 1.0 / (1.0 + odds)
    told: Floats = np.maximum(after - chance, 0.0) / (1.0 - chance)
    return told


def _likelihood(count: Floats, mean: Floats, shape: float) -> Floats:
    """The logarithm of the chance of a count, of a Poisson whose rate is Gamma; without what is the same for all."""
    mean = np.maximum(mean, 1e-9)
    ways = np.array([lgamma(each + shape) for each in count.tolist()]) - lgamma(shape)
    log: Floats = ways + shape * np.log(shape / (shape + mean)) + count * np.log(mean / (shape + mean))
    return log
