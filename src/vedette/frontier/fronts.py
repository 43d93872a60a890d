"""From worth to front queue: Mercator's priorities, eight of them, the first for what somebody asked for by name.

A front queue holds what was found at about the same worth, so the place of a URL costs nothing to keep, whatever the
policy. Worth that changes while a URL waits does not move it; whoever draws from the queues may look again.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from vedette.frontier.impact.estimates import ByImpact
from vedette.frontier.policies.breadth import Breadth
from vedette.frontier.policies.inlinks import Inlinks
from vedette.frontier.unseen import Unseen
from vedette.policy import Floats, Ints, Priority

__all__ = ["FRONTS", "ORDERS", "WANTED", "OrderName", "Ordering", "front_of"]

FRONTS = 8
WANTED = 0

OrderName = Literal["impact", "breadth", "inlinks"]


@dataclass(frozen=True, slots=True)
class Ordering:
    """An order policy, the range of worth that tells its front queues apart, and how many it chooses one from.

    ``sample`` is 1 where worth does not change while a URL waits: the front queues say all then.
    """

    policy: Priority[None, tuple[()], Unseen, Unseen]
    best: float
    worst: float
    sample: int


ORDERS: dict[OrderName, Ordering] = {
    # Where gains are known they say the queue (``foreseen``); the range is that of breadth first, for all others.
    "impact": Ordering(ByImpact(), best=0.0, worst=-7.0, sample=1),
    "breadth": Ordering(Breadth(), best=0.0, worst=-7.0, sample=1),
    "inlinks": Ordering(Inlinks(), best=7.0, worst=0.0, sample=4),
}


def front_of(worth: Floats, best: float, worst: float) -> Ints:
    """The front queue of each worth: equal steps from ``best`` to ``worst``, and whatever lies beyond at the ends.

    >>> front_of(np.array([9.0, 1.0, 0.5, 0.0, -3.0]), best=1.0, worst=0.0).tolist()
    [1, 1, 4, 7, 7]
    """
    steps = np.floor((best - worth) / (best - worst) * (FRONTS - 1))
    return (WANTED + 1 + np.clip(steps, 0, FRONTS - 2)).astype(np.int64)
