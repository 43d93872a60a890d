"""Apache Nutch's adaptive schedule: multiply the refresh interval up when unchanged, down when changed."""

from dataclasses import dataclass

import numpy as np

from vedette.errors import ConfigError
from vedette.policy import Floats, Ints
from vedette.refresh.known_pages import KnownPages
from vedette.timeutil import DAY_S, HOUR_S


@dataclass(frozen=True, slots=True)
class Nutch:
    """Stretch a page's interval by 40% when a fetch finds it unchanged, shorten it by 20% when it changed.

        interval <- interval (1 + inc_rate)    unchanged
        interval <- interval (1 - dec_rate)    changed
        interval <- first_interval             first fetch, nothing to compare with
        due      =  last_fetch + interval      always within [min_interval, max_interval] after the last fetch

    With ``sync_delta`` the schedule shifts towards the moment of change: let delta = last_fetch - modified. An
    unchanged page's interval is at least delta, and it is due sync_delta_rate * delta earlier. Nutch counted that from
    the fetch without a lower bound, so a page unmodified for long was due at once, forever (NUTCH-1564); here the
    bounds apply to the due time too. It is off by default.

    The state is one interval in seconds per page, 0 for none yet. In equilibrium a page is found changed at a share q
    of its fetches with (1 - dec_rate)^q (1 + inc_rate)^(1 - q) = 1: about 60% with the default rates, whatever the
    page's worth and the cost of a fetch; the price is ignored.

    Useful as the usual practice, as the baseline of every other refresh policy, and if only the latest comparison is
    stored. Not useful if a budget must be met, pages differ in worth, or a change is noise.

    Reference: Apache Nutch, ``AdaptiveFetchSchedule`` (A. Bialecki), with its default rates; NUTCH-1564. The bounds are
    ours.

    >>> import numpy as np
    >>> from vedette.policy import rng_for
    >>> fetched_s = np.full(3, 1000.0)
    >>> batch = KnownPages(np.arange(3), fetched_s, np.array([True, False, False]), np.array([0, 0, 1], bool),
    ...     fetched_s)
    >>> policy = Nutch()
    >>> intervals_s = policy.observe(np.array([7200.0, 7200.0, 0.0]), batch, now=1000.0)
    >>> intervals_s.tolist()
    [5760.0, 10080.0, 86400.0]
    >>> policy.due(intervals_s, batch, now=1000.0, price=0.0, rng=rng_for(1, "refresh")).tolist()
    [6760.0, 11080.0, 87400.0]
    """

    name: str = "nutch"
    inc_rate: float = 0.4
    dec_rate: float = 0.2
    first_interval_s: float = DAY_S
    min_interval_s: float = HOUR_S
    max_interval_s: float = 30 * DAY_S
    sync_delta: bool = False
    sync_delta_rate: float = 0.3

    def __post_init__(self) -> None:
        if not (self.inc_rate >= 0 and 0 <= self.dec_rate < 1 and 0 <= self.sync_delta_rate <= 1):
            raise ConfigError("nutch: use inc_rate >= 0, 0 <= dec_rate < 1 and 0 <= sync_delta_rate <= 1")
        if not 0 < self.min_interval_s <= self.first_interval_s <= self.max_interval_s < np.inf:
            raise ConfigError("nutch: intervals must satisfy 0 < min_interval <= first_interval <= max_interval")

    def start(self, config: None) -> Floats:
        """Return an empty array of Nutch intervals."""
        return np.zeros(0)

    def observe(self, state: Floats, batch: KnownPages, now: float) -> Floats:
        """Return the Nutch intervals after these fetches, in a new array; a page may occur once in a batch."""
        assert len(np.unique(batch.place)) == len(batch), "a page occurs twice in a batch"
        stretched = self._interval_s(state, batch.place) * np.where(
            batch.changed, 1.0 - self.dec_rate, 1.0 + self.inc_rate
        )
        if self.sync_delta:
            stretched = np.where(batch.changed, stretched, np.maximum(stretched, _delta_s(batch)))
        after = np.zeros(max(len(state), int(batch.place.max(initial=-1)) + 1))
        after[: len(state)] = state
        after[batch.place] = self._clip_s(np.where(batch.first_fetch, self.first_interval_s, stretched))
        return after

    def due(self, state: Floats, batch: KnownPages, now: float, price: float, rng: np.random.Generator) -> Floats:
        """Return last fetch plus Nutch interval; a page without one gets the first interval."""
        due: Floats = batch.last_fetch_s + self._wait_s(state, batch)
        return due

    def reason(self, state: Floats, batch: KnownPages, row: int, now: float) -> str:
        """Describe a page's Nutch interval and how the latest fetch changed it."""
        again = f"again {self._wait_s(state, batch)[row] / HOUR_S:.1f} h after the last fetch"
        if batch.first_fetch[row]:
            return f"nutch: fetched once, {again}"
        return f"nutch: found {'changed' if batch.changed[row] else 'unchanged'}, {again}"

    def _wait_s(self, state: Floats, batch: KnownPages) -> Floats:
        wait_s = self._interval_s(state, batch.place)
        if self.sync_delta:
            early_s = np.where(batch.changed | batch.first_fetch, 0.0, self.sync_delta_rate * _delta_s(batch))
            wait_s = wait_s - early_s
        return self._clip_s(wait_s)

    def _interval_s(self, state: Floats, place: Ints) -> Floats:
        """Return each page's Nutch interval; the first interval where the state has none."""
        intervals_s = np.zeros(len(place))
        inside = place < len(state)
        intervals_s[inside] = state[place[inside]]
        return np.where(intervals_s > 0, intervals_s, self.first_interval_s)

    def _clip_s(self, wait_s: Floats) -> Floats:
        return np.clip(wait_s, self.min_interval_s, self.max_interval_s)


def _delta_s(batch: KnownPages) -> Floats:
    """Return how long before the latest fetch each page changed; 0 if that is unknown or after the fetch."""
    delta_s: Floats = np.fmax(batch.last_fetch_s - batch.modified_s, 0.0)
    return delta_s
