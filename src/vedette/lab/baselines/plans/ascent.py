"""To the top of a concave function of a few numbers, which may have edges.

Quasi-Newton steps (BFGS) with a line search by halves: it finds its way also where the slope jumps, as it does for a
minimum of many straight lines.

Reference: A. Lewis, M. Overton, *Nonsmooth optimization via quasi-Newton methods*, Mathematical Programming 141, 2013.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from vedette.policy import Floats

__all__ = ["Point", "highest"]

TRIES = 14
# How much of the promised rise a step must bring, and how much of the slope it must use up.
ENOUGH_RISE, ENOUGH_SLOPE = 1e-4, 0.5
SMALL = 1e-10


class Point(NamedTuple):
    """A place, the value there, and a slope that no value exceeds: f(y) <= value + slope . (y - at)."""

    at: Floats
    value: float
    slope: Floats


def highest(function: Callable[[Floats], Point], start: Floats, rounds: int, tolerance: float = SMALL) -> Point:
    """The highest point that was met in so many steps; it ends where the next promises less than a part of the value.

    >>> tent = lambda x: Point(x, -abs(float(x[0]) - 3.0), -np.sign(x - 3.0))
    >>> highest(tent, np.zeros(1), rounds=50).at.round(6).tolist()
    [3.0]
    """
    here = best = function(start)
    curve = _first_curve(here)
    for _ in range(rounds):
        way = curve @ here.slope
        if float(here.slope @ way) <= tolerance * max(abs(here.value), 1.0):
            break
        there = _along(function, here, way)
        best = max(best, there, key=lambda point: point.value)
        curve = _bent(curve, there.at - here.at, here.slope - there.slope)
        here = there
    return best


def _first_curve(here: Point) -> Floats:
    """Steps of length 1 along the first slope: prices are of that size where costs count days."""
    return np.eye(len(here.at)) / max(float(np.linalg.norm(here.slope)), SMALL)


def _along(function: Callable[[Floats], Point], here: Point, way: Floats) -> Point:
    low, high, step = 0.0, np.inf, 1.0
    promised = float(here.slope @ way)
    there = here
    for _ in range(TRIES):
        there = function(here.at + step * way)
        if there.value < here.value + ENOUGH_RISE * step * promised:
            high = step
        elif float(there.slope @ way) > ENOUGH_SLOPE * promised:
            low = step
        else:
            break
        step = (low + high) / 2 if high < np.inf else 2 * low
    return there


def _bent(curve: Floats, moved: Floats, fallen: Floats) -> Floats:
    """The BFGS update of the inverse curvature; unchanged where the slope did not fall along the step."""
    along = float(moved @ fallen)
    if along <= SMALL * float(np.linalg.norm(moved)) * float(np.linalg.norm(fallen)):
        return curve
    turn = np.eye(len(moved)) - np.outer(moved, fallen) / along
    bent: Floats = turn @ curve @ turn.T + np.outer(moved, moved) / along
    return bent
