"""Click-through rates as Pandey08 estimates them, and the bonus for what was shown seldom (sections 6.5 to 6.8).

Without a prior the rate is clicks by showings, and an ad that was never shown counts as infinitely good, ties by lot. A
Beta prior counts as clicks and showings from before: it stands in both the rate and the bonus, and nothing is infinite.
"""

import numpy as np

from vedette.policy import Floats
from vedette.serve.ads.candidates import Candidates

__all__ = ["ever_shown", "mix_bonus", "rates", "tuned_bonus"]


def ever_shown(options: Candidates) -> Floats:
    """Showings, those of the prior among them."""
    return options.shown + options.prior_shown


def rates(options: Candidates) -> Floats:
    """Clicks by showings; infinite where there is neither a showing nor a prior."""
    times = ever_shown(options)
    # Next to nothing instead of 0, so that nothing is divided by 0: it is put right after.
    found: Floats = (options.clicked + options.prior_clicked) / np.maximum(times, 1e-300)
    found[times <= 0] = np.inf
    return found


def mix_bonus(options: Candidates) -> Floats:
    """The exploration factor of MIX: sqrt(2 ln n_j / n_ij); infinite where nothing was shown."""
    return np.sqrt(2.0 * _logs(options))


def tuned_bonus(options: Candidates, rate: Floats) -> Floats:
    """That of BMIX-E: sqrt(ln n_j / n_ij * min(1/4, V)), V = c (1 - c) + sqrt(2 ln n_j / n_ij).

    Section 6.6.3 calls it an exploitation factor; it is the exploration factor.
    """
    logs = _logs(options)
    # Where nothing was shown the rate is infinite, and so is the bonus, whatever the minimum.
    known = np.minimum(rate, 1.0)
    return np.sqrt(logs * np.minimum(0.25, known * (1.0 - known) + np.sqrt(2.0 * logs)))


def _logs(options: Candidates) -> Floats:
    times = ever_shown(options)
    found: Floats = np.log(np.maximum(options.asked, 1.0)) / np.maximum(times, 1e-300)
    found[times <= 0] = np.inf
    return found
