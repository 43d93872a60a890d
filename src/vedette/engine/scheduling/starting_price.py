"""Where a price begins: so that the middle page waits as long as a budget allows, or so that the budget is spent."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from vedette.engine.scheduling.price_controller import SHORTEST_SPAN_S
from vedette.policy import Floats

__all__ = ["Askers", "clearing_price", "starting_price"]

LOWEST, HIGHEST = -20.0, 20.0
HALVINGS = 40
# Where no price makes the middle page wait so long, or so shortly.
ORDINARY = 1.0


def starting_price(waits_s: Callable[[float], Floats], wait_s: float) -> float:
    """The price at which half of some pages wait so long; ``waits_s`` says how long each does at a price.

    >>> waits_s = lambda price: np.array([1.0, 2.0, 9.0]) * price
    >>> round(starting_price(waits_s, 6.0), 6), starting_price(lambda _: np.zeros(3), 6.0)
    (3.0, 1.0)
    """
    low, high = LOWEST, HIGHEST
    if not _middle(waits_s(10.0**low)) <= wait_s <= _middle(waits_s(10.0**high)):
        return ORDINARY
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if _middle(waits_s(10.0**middle)) < wait_s:
            low = middle
        else:
            high = middle
    return float(10.0**high)


class Askers(NamedTuple):
    """Who would spend what at a price: how long some pages wait, for how many each stands, and looks a second."""

    waits_s: Callable[[float], Floats]
    share: float
    looks: Callable[[float], float]

    def spent(self, price: float) -> float:
        """Fetches a second."""
        waits_s = np.maximum(self.waits_s(price), SHORTEST_SPAN_S)
        return self.share * float((1.0 / waits_s).sum()) + self.looks(price)


def clearing_price(askers: Askers, target: float) -> float | None:
    """The price at which so many fetches a second are wanted; None where no price makes it so many, or so few.

    >>> askers = Askers(lambda price: np.array([7200.0, 14400.0]) * price, 2.0, lambda price: 1.0 / 3600 / price)
    >>> round(clearing_price(askers, 2.5 / 3600) or 0.0, 3), clearing_price(askers, 1e20)
    (1.0, None)
    """
    low, high = LOWEST, HIGHEST
    if not askers.spent(10.0**high) <= target <= askers.spent(10.0**low):
        return None
    for _ in range(HALVINGS // 2):
        middle = (low + high) / 2
        if askers.spent(10.0**middle) > target:
            low = middle
        else:
            high = middle
    return float(10.0**high)


def _middle(waits_s: Floats) -> float:
    return float(np.sort(waits_s)[len(waits_s) // 2]) if len(waits_s) else 0.0
