"""Greedy C(1) refresh: fetch the pages most likely out of date, by a learned age chain; a one-day rule."""

from dataclasses import dataclass

import numpy as np

from vedette.errors import ConfigError
from vedette.policy import Floats
from vedette.refresh.known_pages import KnownPages, Memory
from vedette.refresh.models.hazards import empty_memory, get_life_curves, learn
from vedette.timeutil import DAY_S


@dataclass(frozen=True, slots=True)
class GreedyC1:
    """Refresh a page when its probability of having changed, divided by the cost of a fetch, reaches the price.

        P(t) = 1 - unchanged(age at the last fetch, t)        the chance that it is out of date
        due  = last_fetch + the first t with P(t) / cost >= price,  but ``bound_d`` days at the latest

    Fetching the pages with the largest terms of C(1) (eq. 14) is the same as fetching all whose term reaches some
    threshold; the price is that threshold, which settles where fetches meet the budget. P only tends to 1, so at a high
    price an expensive page would never be due: no change rate is below a floor, and no page waits longer than the
    bound. Similar pages would be due at the same moment, so up to a thousandth of their wait is randomized.

    For its memory, see ``refresh.models.hazards``.

    Useful as a baseline of one-day rules: it takes what is likeliest now and ignores tomorrow (``n_day`` does not). Not
    useful if pages change so fast that a copy is stale at once: it wastes its budget on them.

    Reference: B. Brewington, *Optimal observation with WWW applications*, 1999, sections 2.3.1, 2.3.2 and 2.4.

    >>> import numpy as np
    >>> from vedette.policy import rng_for
    >>> no = np.zeros(2, dtype=bool)
    >>> batch = KnownPages(np.arange(2), np.zeros(2), no, ~no, np.full(2, np.nan), cost=np.array([1.0, 40.0]))
    >>> policy = GreedyC1()
    >>> state = policy.observe(policy.start(None), batch, now=0.0)
    >>> (policy.due(state, batch, now=0.0, price=0.1, rng=rng_for(1, "refresh")) / 86400).round(1).tolist()
    [3.2, 180.0]
    """

    name: str = "greedy-c1"
    bound_d: float = 180.0
    priced: bool = True

    def __post_init__(self) -> None:
        if not 0 < self.bound_d < np.inf:
            raise ConfigError("greedy-c1: the bound must be positive and finite")

    def start(self, config: None) -> Memory:
        """Return an empty greedy C(1) memory: nothing was fetched yet."""
        return empty_memory()

    def observe(self, state: Memory, batch: KnownPages, now: float) -> Memory:
        """Learn the hazard by age from what the fetches found."""
        return learn(state, batch)

    def due(self, state: Memory, batch: KnownPages, now: float, price: float, rng: np.random.Generator) -> Floats:
        """Return when the probability of a change, divided by the cost, reaches the price."""
        wait_d = self._wait_d(state, batch, price) * (1 - rng.random(len(batch)) / 1000)
        due: Floats = batch.last_fetch_s + wait_d * DAY_S
        return due

    def reason(self, state: Memory, batch: KnownPages, row: int, now: float) -> str:
        """Describe the current probability that the page has changed."""
        past_d = np.maximum(now - batch.last_fetch_s, 0.0) / DAY_S
        chance = 1 - get_life_curves(state, batch).survival(past_d)[row]
        return f"greedy-c1: changed by now with probability {chance:.0%}, {self.bound_d:.0f} days of waiting at most"

    def _wait_d(self, state: Memory, batch: KnownPages, price: float) -> Floats:
        wait_d = get_life_curves(state, batch).wait_for_chance(np.maximum(price, 0.0) * batch.cost)
        return np.minimum(wait_d, self.bound_d)
