"""Where a price begins: so that the middle page waits as long as the budget allows on average."""

import numpy as np

from vedette.decide import rng_for
from vedette.refresh.known import Known, Memory
from vedette.ring.mind import Mind

__all__ = ["starting_price"]

LOWEST, HIGHEST = -20.0, 20.0
HALVINGS = 40
# Where no price makes the middle page wait so long, or so shortly.
ORDINARY = 1.0


def starting_price(mind: Mind, memory: Memory, batch: Known, wait_s: float) -> float:
    """The price at which half of these pages are due so long after their last fetch, by halves of its logarithm.

    >>> from vedette.refresh.policies.freshness import Freshness
    >>> no = np.zeros(3, dtype=bool)
    >>> batch = Known(np.arange(3), np.zeros(3), no, ~no, np.full(3, np.nan))
    >>> mind = Mind(Freshness())
    >>> price = starting_price(mind, mind.blank(3, 1), batch, 3 * 86_400.0)
    >>> (mind.due(mind.blank(3, 1), batch, 0.0, price, rng_for(1, "refresh")) / 86_400).round(2).tolist()
    [3.0, 3.0, 3.0]
    """
    low, high = LOWEST, HIGHEST
    if not _middle_s(mind, memory, batch, 10.0**low) <= wait_s <= _middle_s(mind, memory, batch, 10.0**high):
        return ORDINARY
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if _middle_s(mind, memory, batch, 10.0**middle) < wait_s:
            low = middle
        else:
            high = middle
    return float(10.0**high)


def _middle_s(mind: Mind, memory: Memory, batch: Known, price: float) -> float:
    """How long the middle page waits at a price."""
    now_s = float(batch.last_fetch_s.max())
    due_s = mind.due(memory, batch, now_s, price, rng_for(1, "refresh/starting-price"))
    return float(np.sort(due_s - batch.last_fetch_s)[len(due_s) // 2])
