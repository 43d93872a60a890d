"""Which k sources together: the most urgent first, and what it shows is taken from its relatives before the next."""

import numpy as np

from vedette.discover.polling.arrivals import LIVES_H
from vedette.discover.polling.overlap import Belief
from vedette.discover.polling.poll_value import hoped
from vedette.discover.polling.rates import Rates
from vedette.discover.polling.rhythm import HOUR_S
from vedette.policy import Floats, Ints

__all__ = ["Picking"]


class Picking:
    """Greedy choice among candidates: gains only fall, and only those of relatives of what was taken."""

    def __init__(
        self, belief: Belief, place: Ints, lost: Floats, chance: Floats, lesson: Floats, optimism: float, now: float
    ) -> None:
        self._rates = belief.arrivals.rates(place, now)
        self._lost, self._chance, self._lesson, self._optimism = lost.copy(), chance, lesson, optimism
        self._age_h = (now - belief.arrivals.since_s(place, now)) / HOUR_S
        row_of = np.full(len(belief.arrivals), -1, np.int64)
        row_of[place] = np.arange(len(place))
        self._share = belief.overlap.share(place)
        shower = np.where(self._share > 0, row_of[belief.overlap.other[place]], -1)
        row, column = np.nonzero(shower >= 0)
        order = np.argsort(shower[row, column], kind="stable")
        self._row, self._column = row[order], column[order]
        self._first = np.searchsorted(shower[self._row, self._column], np.arange(len(place) + 1))

    def best(self, k: int, price: float = 0.0) -> Ints:
        """Up to k rows, best first; none whose gain is below the price by then."""
        gain = self._gain(np.arange(len(self._lost)))
        taken = np.zeros(min(k, len(gain)), np.int64)
        for nth in range(len(taken)):
            taken[nth] = best = int(np.argmax(gain))
            if gain[best] < price:
                return taken[:nth]
            kin = self._take(best)
            gain[kin] = np.where(np.isneginf(gain[kin]), -np.inf, self._gain(kin))
            gain[best] = -np.inf
        return taken

    def _gain(self, rows: Ints) -> Floats:
        rates = Rates(self._rates.shape[rows], self._rates.rate[rows])
        return hoped(rates, self._lost[rows], self._optimism) * self._chance[rows] + self._lesson[rows]

    def _take(self, best: int) -> Ints:
        """What the best one shows is no more to be had elsewhere, as far as it came since the last look at it."""
        pairs = slice(self._first[best], self._first[best + 1])
        kin, share = self._row[pairs], self._share[self._row[pairs], self._column[pairs]]
        age_h = self._age_h[kin, None]
        part = _gathering(np.minimum(age_h, self._age_h[best])) / _gathering(age_h)
        self._lost[kin] *= 1.0 - share[:, None] * part
        return kin


def _gathering(age_h: Floats) -> Floats:
    part: Floats = -np.expm1(-np.maximum(age_h, 1e-3) / LIVES_H)
    return part
