"""How much is a lower slot seen? Factors beside the first slot, learned from clicks, leaning on a first guess.

A showing in slot s of an ad whose rate is c brings c f_s clicks on average. Over many showings, f_s is what was clicked
in the slot by what would have been clicked in the first; ``GUESS_CLICKS`` expected clicks is what the guess is worth.
A lower slot is never believed to be seen more than one above it: where clicks say so, both get their common mean.

What would have been clicked follows from what is believed of each ad after all its clicks, in whatever slot. Slots and
rates are so learned from each other, as in expectation maximisation, a step at each look. Ads move up where they are
clicked, so to compare an ad's clicks below with its clicks above would flatter lower slots; beliefs are not misled by
that, since they count the clicks that made it move.
"""

from typing import Protocol

import numpy as np

from vedette.policy import Floats, Ints
from vedette.serve.ads.by_score import AdPriors

# By a sample of the KDD Cup 2012: clicks in the second and third of three slots, beside the first; then by halves.
FIRST_FACTORS: Floats = np.array([1.0, 0.55, 0.38, 0.19, 0.1, 0.05, 0.025, 0.0125])
GUESS_CLICKS = 50.0


def fit_slot_factors(clicked: Floats, expected: Floats, guess: Floats = FIRST_FACTORS) -> Floats:
    """The factors of slots by clicks in each, and by clicks expected of what it showed, had the first slot shown it.

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
    """What is needed of ads to say how likely a click on each is: their numbers and counts."""

    @property
    def ad(self) -> Ints:
        """Their numbers."""

    @property
    def clicked(self) -> Floats:
        """Clicks, in whatever slot."""

    @property
    def views(self) -> Floats:
        """Showings by how much their slots were seen."""


class SlotCounts:
    """How often each ad was shown and clicked in each slot, by its number."""

    def __init__(self, ads: int, slots: int) -> None:
        self._shown, self._clicked = np.zeros((ads, slots)), np.zeros((ads, slots))

    def add(self, ads: Ints, slot: Ints, times: Floats, clicked: Floats) -> None:
        """These were shown, each in its slot so many times, with so many clicks. There is room for any number."""
        more = int(ads.max(initial=-1)) + 1 - len(self._shown)
        if more > 0:
            self._shown, self._clicked = (np.pad(each, ((0, more), (0, 0))) for each in (self._shown, self._clicked))
        place = ads * self._shown.shape[1] + slot
        np.add.at(self._shown.reshape(-1), place, times)
        np.add.at(self._clicked.reshape(-1), place, clicked)

    def forget(self, ads: Ints) -> None:
        """Others stand in the places of these."""
        self._shown[ads] = self._clicked[ads] = 0.0

    def estimate_factors(self, told: AdPriors, ads: RatedAds, first: int = 0) -> Floats | None:
        """How much slots are seen, by what a policy has told of ads; None where it told nothing.

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
    """The nearest values that never rise: neighbours that do are joined, as heavy as both."""
    blocks: list[tuple[float, float, int]] = []
    for value, heavy in zip(values.tolist(), weight.tolist(), strict=True):
        mean, total, size = value, heavy, 1
        while blocks and blocks[-1][0] < mean:
            above, more, count = blocks.pop()
            mean, total, size = (mean * total + above * more) / (total + more), total + more, size + count
        blocks.append((mean, total, size))
    return np.repeat([mean for mean, _, _ in blocks], [size for _, _, size in blocks]).astype(np.float64)
