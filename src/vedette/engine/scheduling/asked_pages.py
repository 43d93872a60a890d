"""What the refresh policy says of one page, in numbers for people."""

from typing import NamedTuple

import numpy as np

from vedette.engine.scheduling.policy_memory import Made
from vedette.engine.scheduling.policy_runner import Mind

__all__ = ["Asked", "told_of"]


class Asked(NamedTuple):
    """What the policy says of one page, for people; None where it does not say. ``worth`` is per unit of ``cost``."""

    policy: str
    reason: str
    rate_d: float | None
    rate_low_d: float | None
    rate_high_d: float | None
    chance: float | None
    worth: float | None
    price: float | None
    cost: float = 1.0


def told_of(mind: Mind, made: Made, now_s: float, price: float | None) -> Asked:
    """What it says of the page of a batch of one, at a price."""
    memory, batch = made.memory, made.batch
    rates, worth = mind.rates(memory, batch), mind.value(memory, batch, now_s)
    chance = mind.chance(memory, batch, np.array([now_s]))
    low, high = (float(rates.low[0]), float(rates.high[0])) if rates else (None, None)
    return Asked(
        policy=mind.policy.name,
        reason=mind.reason(memory, batch, 0, now_s),
        rate_d=float(rates.mean[0]) if rates else None,
        rate_low_d=low,
        rate_high_d=high,
        chance=float(chance[0]) if chance is not None else None,
        worth=float(worth[0]) if worth is not None else None,
        price=price,
        cost=float(batch.cost[0]),
    )
