"""Slot factors of ads: the visibility of lower slots relative to the first, learned from clicks.

An impression in slot s of an ad whose rate is c brings c f_s clicks on average. Over many impressions, f_s is the
clicks in the slot divided by the clicks expected in the first; the prior is worth ``GUESS_CLICKS`` expected clicks. A
lower slot is never assumed to be seen more than one above it: if clicks say so, both get their common mean.

The expected clicks follow from the estimated rate of each ad after all its clicks, in any slot. Slots and rates are
thus learned from each other, as in expectation maximization, one step per update. Ads move up when they are clicked, so
comparing an ad's clicks below with its clicks above would favor lower slots; the estimates avoid that, since they count
the clicks that made it move.
"""

from typing import Protocol

import numpy as np

from vedette.policy import Floats, Ints
from vedette.serve.ads.by_score import AdPriors

# From a sample of the KDD Cup 2012: clicks in the second and third of three slots, relative to the first; then halves.
FIRST_FACTORS: Floats = np.array([1.0, 0.55, 0.38, 0.19, 0.1, 0.05, 0.025, 0.0125])
GUESS_CLICKS = 50.0


def fit_slot_factors(clicked: Floats, expected: Floats, guess: Floats = FIRST_FACTORS) -> Floats:
    """Fit slot factors of ads from the clicks in each slot, and the clicks expected in the first slot.

    >>> fit_slot_factors(np.array([400.0, 300.0]), np.array([400.0, 1000.0]), np.array([1.0, 0.5])).round(3).tolist()
    [1.0, 0.31]
    """
    size = min(len(clicked), len(guess))
    weight = expected[:size] + GUESS_CLICKS
    found = (clicked[:size] + GUESS_CLICKS * guess[:size]) / weight
    fitted = _fit_nonincreasing(found, weight)
    factors: Floats = fitted / fitted[0] if size else fitted
    return factors


class RatedAds(Protocol):
    """Protocol of ads with the numbers and counts needed to estimate their click rates."""

    @property
    def ad(self) -> Ints:
        """The ad numbers."""

    @property
    def clicked(self) -> Floats:
        """The clicks on each ad, in any slot."""

    @property
    def views(self) -> Floats:
        """The impressions of each ad, weighted by the visibility of their slots."""


class SlotCounts:
    """Counts of impressions and clicks of each ad in each slot, by ad number."""

    def __init__(self, ads: int, slots: int) -> None:
        self._shown, self._clicked = np.zeros((ads, slots)), np.zeros((ads, slots))

    def add(self, ads: Ints, slot: Ints, times: Floats, clicked: Floats) -> None:
        """Add impressions and clicks of ads in slots; the table grows as needed."""
        more = int(ads.max(initial=-1)) + 1 - len(self._shown)
        if more > 0:
            self._shown, self._clicked = (np.pad(each, ((0, more), (0, 0))) for each in (self._shown, self._clicked))
        place = ads * self._shown.shape[1] + slot
        np.add.at(self._shown.reshape(-1), place, times)
        np.add.at(self._clicked.reshape(-1), place, clicked)

    def forget(self, ads: Ints) -> None:
        """Reset the slot counts of these ad numbers, which are reused for other ads."""
        self._shown[ads] = self._clicked[ads] = 0.0

    def estimate_factors(self, told: AdPriors, ads: RatedAds, first: int = 0) -> Floats | None:
        """Estimate slot factors from an ad policy's priors; None if it has none.

        ``first`` is the number under which the first ad is counted here.
        """
        if not len(told.clicks):
            return None
        rate = (told.clicks[ads.ad] + ads.clicked) / (told.views[ads.ad] + ads.views)
        within = slice(first, first + int(ads.ad.max(initial=-1)) + 1)
        shown, clicked = self._shown[within], self._clicked[within]
        by_number = np.zeros(len(shown))
        known = ads.ad < len(shown)
        by_number[ads.ad[known]] = rate[known]
        return fit_slot_factors(clicked.sum(axis=0), by_number @ shown)


def _fit_nonincreasing(values: Floats, weight: Floats) -> Floats:
    """Fit the nearest non-increasing values, weighted: neighbors that rise are merged."""
    blocks: list[tuple[float, float, int]] = []
    for value, heavy in zip(values.tolist(), weight.tolist(), strict=True):
        mean, total, size = value, heavy, 1
        while blocks and blocks[-1][0] < mean:
            above, more, count = blocks.pop()
            mean, total, size = (mean * total + above * more) / (total + more), total + more, size + count
        blocks.append((mean, total, size))
    return np.repeat([mean for mean, _, _ in blocks], [size for _, _, size in blocks]).astype(np.float64)
