"""Apache StormCrawler's adaptive schedule: refresh interval up by half, or half way down to the shortest."""

from dataclasses import dataclass

import numpy as np

from vedette.errors import ConfigError
from vedette.policy import Floats, Ints
from vedette.refresh.known_pages import KnownPages
from vedette.timeutil import DAY_S, HOUR_S


@dataclass(frozen=True, slots=True)
class StormCrawler:
    """Stretch a page's refresh interval by half when unchanged, else go half way to the shortest.

        interval <- min(max_interval, interval (1 + inc_rate))            unchanged
        interval <- (1 - dec_rate) interval + dec_rate min_interval       changed
        interval <- first_interval                                        first fetch, nothing to compare with
        due      =  last_fetch + interval

    The state is one interval in seconds per page, 0 for none yet. A page that changes at every fetch approaches the
    shortest interval; one that never does reaches the longest after seven fetches. Neither a page's worth nor a fetch's
    cost matters, and there is no budget.

    Useful as the usual practice besides ``nutch``, and if only the latest comparison is stored. Not useful if a budget
    must be met, pages differ in worth, or a change is noise.

    Reference: Apache StormCrawler, ``AdaptiveScheduler``, with its default rates and intervals.

    >>> from vedette.policy import rng_for
    >>> fetched_s = np.full(3, 1000.0)
    >>> batch = KnownPages(np.arange(3), fetched_s, np.array([True, False, False]), np.array([0, 0, 1], bool),
    ...     fetched_s)
    >>> policy = StormCrawler()
    >>> intervals_s = policy.observe(np.array([10800.0, 7200.0, 0.0]), batch, now=1000.0)
    >>> intervals_s.tolist()
    [7200.0, 10800.0, 86400.0]
    >>> policy.due(intervals_s, batch, now=1000.0, price=0.0, rng=rng_for(1, "refresh")).tolist()
    [8200.0, 11800.0, 87400.0]
    """

    name: str = "stormcrawler"
    inc_rate: float = 0.5
    dec_rate: float = 0.5
    first_interval_s: float = DAY_S
    min_interval_s: float = HOUR_S
    max_interval_s: float = 14 * DAY_S

    def __post_init__(self) -> None:
        if not (self.inc_rate >= 0 and 0 <= self.dec_rate <= 1):
            raise ConfigError("stormcrawler: use inc_rate >= 0 and 0 <= dec_rate <= 1")
        if not 0 < self.min_interval_s <= self.first_interval_s <= self.max_interval_s < np.inf:
            raise ConfigError("stormcrawler: intervals must satisfy 0 < min_interval <= first_interval <= max_interval")

    def start(self, config: None) -> Floats:
        """Return an empty array of StormCrawler intervals."""
        return np.zeros(0)

    def observe(self, state: Floats, batch: KnownPages, now: float) -> Floats:
        """Return the StormCrawler intervals after these fetches, in a new array; one row per page."""
        before_s = self._interval_s(state, batch.place)
        shorter_s = (1 - self.dec_rate) * before_s + self.dec_rate * self.min_interval_s
        longer_s = np.minimum(before_s * (1 + self.inc_rate), self.max_interval_s)
        after = np.zeros(max(len(state), int(batch.place.max(initial=-1)) + 1))
        after[: len(state)] = state
        compared_s = np.where(batch.changed, shorter_s, longer_s)
        after[batch.place] = np.where(batch.first_fetch, self.first_interval_s, compared_s)
        return after

    def due(self, state: Floats, batch: KnownPages, now: float, price: float, rng: np.random.Generator) -> Floats:
        """Return last fetch plus StormCrawler interval; a page without one gets the first interval."""
        due: Floats = batch.last_fetch_s + self._interval_s(state, batch.place)
        return due

    def reason(self, state: Floats, batch: KnownPages, row: int, now: float) -> str:
        """Describe a page's StormCrawler interval and how the latest fetch changed it."""
        again = f"again {self._interval_s(state, batch.place)[row] / HOUR_S:.1f} h after the last fetch"
        if batch.first_fetch[row]:
            return f"stormcrawler: fetched once, {again}"
        return f"stormcrawler: found {'changed' if batch.changed[row] else 'unchanged'}, {again}"

    def _interval_s(self, state: Floats, place: Ints) -> Floats:
        """Return each page's StormCrawler interval; the first interval where the state has none."""
        intervals_s = np.zeros(len(place))
        inside = place < len(state)
        intervals_s[inside] = state[place[inside]]
        return np.where(intervals_s > 0, intervals_s, self.first_interval_s)
