"""Where a price begins: so that the middle page waits as long as the budget allows on average."""

from collections.abc import Callable

import numpy as np

from vedette.decide import Floats

__all__ = ["starting_price"]

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


def _middle(waits_s: Floats) -> float:
    return float(np.sort(waits_s)[len(waits_s) // 2]) if len(waits_s) else 0.0
