"""Beta priors of a stated accuracy, as Pandey08 makes them up (section 6.8.1).

For an ad of rate c and accuracy v, the prior's mean mu is drawn from the Beta distribution of mean c and variance
c (1 - v); the prior is the one of mean mu and variance mu (1 - v). The variance of a Beta distribution is
mean (1 - mean) / (alpha + beta + 1), so alpha + beta = (1 - mean) / (1 - v) - 1. This is only positive where v is above
the mean: so mu is drawn again unless v > mu, and c must be below v. The print calls the variance sigma, and says that
for c = 0.2 and v = 0.9 the mean lies within 0.1 of c with probability 0.58; by these formulas it is 0.49.
"""

import numpy as np

from vedette.policy import Floats

__all__ = ["beta_priors"]

MOST_DRAWS = 1_000


def beta_priors(rate: Floats, accuracy: float, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """The parameters alpha, and alpha + beta, of the prior of each ad; both 0 where none of that accuracy exists.

    >>> alpha, both = beta_priors(np.array([0.2]), 0.9, np.random.default_rng(1))
    >>> bool(0 < alpha[0] < both[0])
    True
    """
    fits = rate < accuracy
    weight = np.where(fits, (1 - rate) / (1 - accuracy) - 1, 1.0)
    mean = rng.beta(rate * weight, (1 - rate) * weight)
    for _ in range(MOST_DRAWS):
        again = fits & ~((mean < accuracy) & (mean > 0))
        if not again.any():
            break
        mean[again] = rng.beta((rate * weight)[again], ((1 - rate) * weight)[again])
    fits &= (mean < accuracy) & (mean > 0)
    shown = np.where(fits, (1 - mean) / (1 - accuracy) - 1, 0.0)
    return mean * shown, shown
