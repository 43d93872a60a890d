"""Axes of plots: round ticks, and numbers as people read them."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from vedette.web.console.ui.scales import round_up

__all__ = ["NOTHING", "THIN", "Axis", "axis_of", "said", "x_axis"]

THIN = "\u2009"
NOTHING = "\N{EN DASH}"
TICKS = 5
FEW = 7  # places that are each written below the axis
WIDE = 20.0  # times as much as the least: then steps are factors
NEAREST = 36.0  # between two numbers below the axis
MOST = 1e15  # what is larger is no measurement


class Axis(NamedTuple):
    """From ``low`` at ``begin`` to ``high`` at ``end``, in steps or in factors, with numbers at ``ticks``."""

    low: float
    high: float
    begin: float
    end: float
    ticks: tuple[float, ...]
    by_factors: bool = False

    def place(self, value: float) -> float:
        """Where a value is drawn; what lies outside is drawn at the edge."""
        low, high, at = (math.log(v) if self.by_factors else v for v in (self.low, self.high, max(value, self._least)))
        share = (at - low) / (high - low) if high > low else 0.5
        return self.begin + min(max(share, 0.0), 1.0) * (self.end - self.begin)

    @property
    def _least(self) -> float:
        return self.low if self.by_factors else -math.inf


def axis_of(values: Sequence[float], unit: str, begin: float, end: float) -> Axis:
    """An axis for amounts: from zero, to the next round number; shares end at 1 where they come near.

    >>> axis_of([0.2, 0.93], "share", 0, 100).ticks
    (0.0, 0.25, 0.5, 0.75, 1.0)
    >>> axis_of([-3.0, 7.0], "", 0, 100).ticks
    (-5.0, -2.5, 0.0, 2.5, 5.0, 7.5)
    """
    low = max(min((*values, 0.0)), -MOST)
    high = min(max((*values, 0.0)), MOST)
    if unit == "share" and low == 0.0 and 0.8 < high <= 1.0:
        return Axis(0.0, 1.0, begin, end, (0.0, 0.25, 0.5, 0.75, 1.0))
    step = round_up((high - low) / (TICKS - 1)) if high > low else 1.0
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    ticks = tuple(number * step for number in range(first, max(last, first + 1) + 1))
    return Axis(ticks[0], ticks[-1], begin, end, ticks)


def x_axis(values: Sequence[float], begin: float, end: float) -> Axis:
    """An axis for what was chosen: from the least to the most; in factors where these are far apart.

    >>> round(x_axis([10.0, 100.0, 1000.0], 0, 100).place(100.0), 6)
    50.0
    """
    places = sorted(frozenset(values))
    by_factors = places[0] > 0 and places[-1] / places[0] >= WIDE
    bare = Axis(places[0], places[-1], begin, end, (), by_factors)
    return bare._replace(ticks=_readable(bare, places if len(places) <= FEW else _between(bare)))


def _between(axis: Axis) -> list[float]:
    if axis.by_factors:
        powers = range(math.floor(math.log10(axis.low)), math.ceil(math.log10(axis.high)) + 1)
        return [10.0**power for power in powers if axis.low <= 10.0**power <= axis.high] or [axis.low, axis.high]
    step = round_up((axis.high - axis.low) / (TICKS - 1))
    numbers = range(math.ceil(axis.low / step), math.floor(axis.high / step) + 1)
    return [number * step for number in numbers]


def _readable(axis: Axis, places: Sequence[float]) -> tuple[float, ...]:
    """Those that do not cover each other, from the first on."""
    kept: list[float] = []
    for place in places:
        if not kept or abs(axis.place(place) - axis.place(kept[-1])) >= NEAREST:
            kept.append(place)
    return tuple(kept)


def said(value: float, unit: str) -> str:
    """A number as people read it, with its unit.

    >>> [said(*each).replace(THIN, " ") for each in ((0.834, "share"), (12345.0, ""), (2.5, "h"), (0.00123, ""))]
    ['83.4 %', '12 345', '2.5 h', '0.00123']
    """
    if not math.isfinite(value):
        return NOTHING
    if unit == "share":
        return f"{_short(100 * value)}{THIN}%"
    return f"{_short(value)}{THIN}{unit}" if unit else _short(value)


def _short(value: float) -> str:
    """Three digits that count; whole from a hundred on, with thin spaces."""
    if abs(value) >= 100:
        return f"{round(value):,}".replace(",", THIN) if abs(value) < MOST else f"{value:.2e}"
    text = f"{value:.3g}"
    return text if "e" in text or float(text) else "0"
