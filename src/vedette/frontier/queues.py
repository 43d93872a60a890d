"""The frontier's front queues: which URLs of a host come first (Mercator).

Mercator has two kinds of queues. *Front queues* are for priorities; from them the next URLs of a host are chosen with a
bias towards the better ones. They are durable and stored with the known URLs (``adapters/url_store``). *Back queues*
are for hosts: each holds a few chosen URLs of one host, and a heap gives the host to request next (``back_queues``).
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from vedette.frontier.impact.estimates import ImpactOrder
from vedette.frontier.policies.breadth import Breadth
from vedette.frontier.policies.inlinks import Inlinks
from vedette.frontier.unseen import UnseenUrls
from vedette.policy import Floats, Ints, Priority

# A front queue holds URLs found at about the same worth, so storing the position of a URL costs nothing, whatever the
# policy. A worth that changes while a URL waits does not move it; the code that draws from the queues may score again.


FRONT_QUEUES = 8
REQUESTED_QUEUE = 0

OrderName = Literal["impact", "breadth", "inlinks"]


@dataclass(frozen=True, slots=True)
class OrderConfig:
    """An order policy with the range of worth that its front queues divide, and its sample size.

    ``sample`` is 1 if worth does not change while a URL waits: the front queues are sufficient then.
    """

    policy: Priority[None, tuple[()], UnseenUrls, UnseenUrls]
    best: float
    worst: float
    sample: int


ORDER_POLICIES: dict[OrderName, OrderConfig] = {
    # If gains are known they determine the queue (``estimates``); for the others the range is that of breadth first.
    "impact": OrderConfig(ImpactOrder(), best=0.0, worst=-7.0, sample=1),
    "breadth": OrderConfig(Breadth(), best=0.0, worst=-7.0, sample=1),
    "inlinks": OrderConfig(Inlinks(), best=7.0, worst=0.0, sample=4),
}


def assign_by_worth(worth: Floats, best: float, worst: float) -> Ints:
    """Assign each worth to a front queue of the frontier: equal steps from ``best`` to ``worst``, clipped.

    >>> assign_by_worth(np.array([9.0, 1.0, 0.5, 0.0, -3.0]), best=1.0, worst=0.0).tolist()
    [1, 1, 4, 7, 7]
    """
    steps = np.floor((best - worth) / (best - worst) * (FRONT_QUEUES - 1))
    return (REQUESTED_QUEUE + 1 + np.clip(steps, 0, FRONT_QUEUES - 2)).astype(np.int64)
