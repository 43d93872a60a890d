"""Greedy C(2) refresh: fetch pages out of date longest, by an age chain learned from fetches; a one-day rule."""

from dataclasses import dataclass

import numpy as np

from vedette.errors import ConfigError
from vedette.policy import Floats
from vedette.refresh.known_pages import KnownPages, Memory
from vedette.refresh.models.hazards import empty_memory, get_life_curves, learn
from vedette.timeutil import DAY_S


@dataclass(frozen=True, slots=True)
class GreedyC2:
    """Refresh a page when its expected days out of date, divided by the cost of a fetch, reach the price.

        Z(t) = integral of 1 - unchanged(age at the last fetch, s), s = 0 .. t
        due  = last_fetch + the t with Z(t) / cost = price,  but ``bound_d`` days at the latest

    Fetching the pages with the largest terms of C(2) (eq. 24) is the same as fetching all whose term reaches some
    threshold; the price is that threshold. Z grows without limit, so every page is eventually due at any price (2.3.2),
    even with different costs; the bound says by when. Similar pages would be due at the same moment, so up to a
    thousandth of their wait is randomized.

    For its memory, see ``refresh.models.hazards``.

    Useful if being out of date for long is worse than being so often. Not useful if a page is simply right or wrong
    when it is searched: the time already passed is then no reason to fetch it.

    Reference: B. Brewington, *Optimal observation with WWW applications*, 1999, sections 2.3.1, 2.3.2 and 2.4.

    >>> import numpy as np
    >>> from vedette.policy import rng_for
    >>> no = np.zeros(2, dtype=bool)
    >>> batch = KnownPages(np.arange(2), np.zeros(2), no, ~no, np.full(2, np.nan), cost=np.array([1.0, 4.0]))
    >>> policy = GreedyC2()
    >>> state = policy.observe(policy.start(None), batch, now=0.0)
    >>> (policy.due(state, batch, now=0.0, price=1.0, rng=rng_for(1, "refresh")) / 86400).round(1).tolist()
    [8.1, 16.9]
    """

    name: str = "greedy-c2"
    bound_d: float = 180.0
    priced: bool = True

    def __post_init__(self) -> None:
        if not 0 < self.bound_d < np.inf:
            raise ConfigError("greedy-c2: the bound must be positive and finite")

    def start(self, config: None) -> Memory:
        """Return an empty greedy C(2) memory: nothing was fetched yet."""
        return empty_memory()

    def observe(self, state: Memory, batch: KnownPages, now: float) -> Memory:
        """Learn the hazard by age from what the fetches found."""
        return learn(state, batch)

    def due(self, state: Memory, batch: KnownPages, now: float, price: float, rng: np.random.Generator) -> Floats:
        """Return when the expected days out of date, divided by the cost, reach the price."""
        wait_d = self._wait_d(state, batch, price)
        due: Floats = batch.last_fetch_s + wait_d * (1 - rng.random(len(batch)) / 1000) * DAY_S
        return due

    def reason(self, state: Memory, batch: KnownPages, row: int, now: float) -> str:
        """Describe the expected days that the page has been out of date by now."""
        past_d = np.maximum(now - batch.last_fetch_s, 0.0) / DAY_S
        late_d = get_life_curves(state, batch).expected_staleness(past_d)[row]
        return (
            f"greedy-c2: {late_d:.1f} days out of date are expected by now, {self.bound_d:.0f} days of waiting at most"
        )

    def _wait_d(self, state: Memory, batch: KnownPages, price: float) -> Floats:
        return get_life_curves(state, batch).wait_for_staleness(np.maximum(price, 0.0) * batch.cost, self.bound_d)
