"""Why a result stands where it stands, as rows of a small table with bars."""

import math
from typing import NamedTuple

from vedette.serve.slate import Reason

BAR_WIDTH = 100.0


class ScoreRow(NamedTuple):
    """A feature with its bar: where it begins and how wide it is, of a hundred, and whether it pulled down."""

    reason: Reason
    start: float
    width: float
    down: bool


def build_score_rows(why: tuple[Reason, ...]) -> list[ScoreRow]:
    """The reasons, those that did most first. Bars of what pulls down lie to the left of the others' beginning.

    >>> [(row.start, row.width) for row in build_score_rows((Reason("title", 1, 3, 3), Reason("spam", 1, -1, -1)))]
    [(25.0, 75.0), (0.0, 25.0)]
    """
    ordered = sorted(why, key=lambda reason: -abs(_finite_contribution(reason)))
    up = max((_finite_contribution(reason) for reason in ordered), default=0.0)
    down = max((-_finite_contribution(reason) for reason in ordered), default=0.0)
    whole = (max(up, 0.0) + max(down, 0.0)) or 1.0
    zero = BAR_WIDTH * max(down, 0.0) / whole
    return [_build_row(reason, zero, BAR_WIDTH / whole) for reason in ordered]


def _build_row(reason: Reason, zero: float, scale: float) -> ScoreRow:
    width = abs(_finite_contribution(reason)) * scale
    down = _finite_contribution(reason) < 0
    return ScoreRow(reason, round(zero - width if down else zero, 2), round(width, 2), down)


def _finite_contribution(reason: Reason) -> float:
    """What it added, where that is a number that can be drawn."""
    return reason.contribution if math.isfinite(reason.contribution) and abs(reason.contribution) < 1e100 else 0.0
