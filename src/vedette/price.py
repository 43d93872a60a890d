"""The price of a fetch: what the next one must be worth, so that spending meets the budget.

Whatever asks for fetches says what they are *worth*, in one unit: expected gain in search quality, times days for which
it is had, per unit of cost. What is worth at least the price is fetched. The price moves on spending against the budget
and on nothing else: a price that rose with what waits would starve small hosts behind politeness.

    log price  +=  (spent / budget - 1) (time / patience)

The step is bounded, so that a burst of births moves the price by a factor and not by orders. Where spending is too low
or too high for long, steps grow: a price that began in the wrong place is in the right one within days.

Useful for: one budget that several askers share without quotas. Not useful for: limits that must hold at every moment;
those are for a bucket beside it (``ring.allowance``, ``lab.refresh_run``).
"""

from dataclasses import dataclass, replace
from math import exp, inf, isfinite

from vedette.errors import ConfigError

__all__ = ["Price"]

DAY_S = 86_400.0
# Spending beyond so many times the budget moves the price no faster.
MOST_OVERSPENT = 3.0
# Steps in one direction make the next one longer, up to so many times.
LONGEST_STRIDE = 8.0
LENGTHENING = 1.15
LOWEST, HIGHEST = 1e-30, 1e30


@dataclass(frozen=True, slots=True)
class Price:
    """A price; ``stride`` is positive where spending has been too high of late, negative where too low.

    >>> price = Price(1.0)
    >>> price.after(spent=2.0, budget=1.0, span_s=3600.0).value > 1.0 > price.after(0.0, 1.0, 3600.0).value
    True
    >>> price.after(spent=1.0, budget=1.0, span_s=3600.0).value
    1.0
    """

    value: float
    patience_s: float = 2 * DAY_S
    stride: float = 0.0

    def __post_init__(self) -> None:
        if not (self.value > 0 and isfinite(self.value) and self.patience_s > 0):
            raise ConfigError("a price and its patience must be above 0")

    def after(self, spent: float, budget: float, span_s: float) -> "Price":
        """The price after a time in which so much was spent of a budget for this time; nothing moves it without one."""
        if not (0 < budget < inf) or span_s <= 0:
            return self
        off = min(spent / budget, MOST_OVERSPENT) - 1.0
        stride = self._stride(off)
        step = off * abs(stride) * min(span_s / self.patience_s, 1.0)
        return replace(self, value=min(max(self.value * exp(step), LOWEST), HIGHEST), stride=stride)

    def _stride(self, off: float) -> float:
        """Longer where it goes on in one direction, short again where it turns."""
        if off == 0:
            return self.stride
        side = 1.0 if off > 0 else -1.0
        if side * self.stride < 0 or not self.stride:
            return side
        return side * min(abs(self.stride) * LENGTHENING, LONGEST_STRIDE)
