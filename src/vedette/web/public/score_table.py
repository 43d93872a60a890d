"""Why a result stands where it stands, as rows of a small table with bars."""

import math
from typing import NamedTuple

from vedette.serve.slate import Reason

__all__ = ["Row", "rows_of"]

WIDTH = 100.0


class Row(NamedTuple):
    """A feature with its bar: where it begins and how wide it is, of a hundred, and whether it pulled down."""

    reason: Reason
    start: float
    width: float
    down: bool


def rows_of(why: tuple[Reason, ...]) -> list[Row]:
    """The reasons, those that did most first. Bars of what pulls down lie to the left of the others' beginning.

    >>> [(row.start, row.width) for row in rows_of((Reason("title", 1, 3, 3), Reason("spam", 1, -1, -1)))]
    [(25.0, 75.0), (0.0, 25.0)]
    """
    ordered = sorted(why, key=lambda reason: -abs(_weight(reason)))
    up = max((_weight(reason) for reason in ordered), default=0.0)
    down = max((-_weight(reason) for reason in ordered), default=0.0)
    whole = (max(up, 0.0) + max(down, 0.0)) or 1.0
    zero = WIDTH * max(down, 0.0) / whole
    return [_row(reason, zero, WIDTH / whole) for reason in ordered]


def _row(reason: Reason, zero: float, scale: float) -> Row:
    width = abs(_weight(reason)) * scale
    down = _weight(reason) < 0
    return Row(reason, round(zero - width if down else zero, 2), round(width, 2), down)


def _weight(reason: Reason) -> float:
    """What it added, where that is a number that can be drawn."""
    return reason.contribution if math.isfinite(reason.contribution) and abs(reason.contribution) < 1e100 else 0.0
