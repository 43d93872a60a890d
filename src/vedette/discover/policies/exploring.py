"""What it is worth to know how a source stands that nobody looked at for long: it may have become the best of all.

What a look brings is one thing, what it teaches another. A source that was dull is not looked at, and so nobody hears
when its site is rebuilt and all news stands there. So what is not known counts, too,

    to_learn = usual (dt / D)^2,     D = max(LEAST_S, n step / (SHARE k)),

where *usual* is what a look brings in the mean and dt the time since the last try: after D a look is made although it
should bring nothing, and sooner in hours in which other looks bring little. D leaves all but a small share of the looks
to what they bring: with n sources and k looks a step, all have their turn within it.
"""

import numpy as np

from vedette.discover.polling.sources import Sources
from vedette.policy import Floats

__all__ = ["to_learn"]

# The part of looks that may be made to learn, and how soon each source has its turn again where looks are many.
DAY_S = 86_400.0
SHARE, LEAST_S = 0.05, 14 * DAY_S


def to_learn(options: Sources, k: int, now: float, *, is_priced: bool = False) -> Floats:
    """New pages for which a look at each source counts, beside those that it brings; 0 where nobody has looked yet.

    Where a price says how many looks are made, k is only the most of them: then those of the last day count.
    """
    tried_s = options.last_look_s
    seen = np.isfinite(tried_s)
    if not seen.any() or k < 1:
        return np.zeros(len(options))
    usual = options.found.sum() / max(int(options.looks.sum()), 1)
    step_s = now - float(tried_s[seen].max())
    between_s = step_s / k
    if is_priced:
        between_s = max(between_s, DAY_S / max(int((options.look_s > now - DAY_S).sum()), 1))
    turn_s = max(LEAST_S, between_s * len(options) / SHARE)
    unseen_s = np.where(seen, now - tried_s, 0.0)
    worth: Floats = usual * (unseen_s / turn_s) ** 2
    return worth
