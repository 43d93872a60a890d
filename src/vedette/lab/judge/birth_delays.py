"""How soon births were told: delays from the true birth of pages to the message, those that never came included.

A page that was not told counts as told later than all: it is in the quarters, so a crawler gains nothing by missing
what is hard to find. Intervals are from the bootstrap over births.
"""

from collections.abc import Mapping, Sequence
from math import inf, isfinite, nan
from typing import NamedTuple

import numpy as np

from vedette.policy import Floats, rng_for

RESAMPLES = 2000
LEVEL = 0.95
QUARTILES = (0.25, 0.5, 0.75)


class AlertDelays(NamedTuple):
    """Seconds from birth to message: quarters over all births, infinite where too few were told.

    ``low_s`` and ``high_s`` are the ends of the median's interval.
    """

    births: int
    told: int
    quarter_s: float
    median_s: float
    three_quarters_s: float
    low_s: float
    high_s: float

    @property
    def share(self) -> float:
        """The part of births that was told."""
        return self.told / self.births if self.births else nan


def measure_delays(born_s: Mapping[str, float], told_s: Mapping[str, float], seed: int = 1) -> AlertDelays:
    """Of these births, by URL, those that were told; a URL that is no birth is passed over.

    >>> found = measure_delays({"a": 0.0, "b": 10.0, "c": 20.0}, {"a": 60.0, "b": 40.0, "x": 1.0})
    >>> found.births, found.told, found.quarter_s, found.median_s, found.three_quarters_s
    (3, 2, 30.0, 60.0, inf)
    """
    waits = np.array([max(told_s[url] - at_s, 0.0) if url in told_s else inf for url, at_s in born_s.items()])
    if not len(waits):
        return AlertDelays(0, 0, nan, nan, nan, nan, nan)
    rng = rng_for(seed, "lab/birth-delays")
    draws = waits[rng.integers(0, len(waits), (RESAMPLES, len(waits)))]
    medians = _rank_quantile(draws, 0.5)
    low, high = (float(_rank_quantile(medians[None, :], part)[0]) for part in ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
    quarter, median, three = (float(_rank_quantile(waits[None, :], part)[0]) for part in QUARTILES)
    return AlertDelays(len(waits), sum(map(isfinite, waits.tolist())), quarter, median, three, low, high)


def _rank_quantile(rows: Floats, part: float) -> Floats:
    """The value of each row below which this part lies: one that occurs, since there is nothing between infinities."""
    place = min(max(int(np.ceil(part * rows.shape[1])) - 1, 0), rows.shape[1] - 1)
    ranked: Floats = np.sort(rows, axis=1)[:, place]
    return ranked


def earliest_times(seen: Sequence[tuple[str, float]]) -> dict[str, float]:
    """When each URL was first told.

    >>> earliest_times([("a", 5.0), ("b", 2.0), ("a", 1.0)])
    {'a': 1.0, 'b': 2.0}
    """
    first: dict[str, float] = {}
    for url, at_s in seen:
        first[url] = min(at_s, first.get(url, inf))
    return first
