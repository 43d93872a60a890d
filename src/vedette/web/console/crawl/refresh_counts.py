"""Amounts in equal stretches of time that end now: how many refreshes an hour, how much quality was won a day.

The keeper counts refreshes in sums that fade (``ring.forecast``), so that they speak of about the last day whenever
one looks. What came between two looks is the later sum without what was left of the earlier.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from markupsafe import Markup

from vedette.engine.scheduling.forecast import HALF_LIFE_S
from vedette.web.console.ports.monitoring import Watch
from vedette.web.console.ui.charts import Line, Other, Point, line_chart
from vedette.web.console.ui.time_series import Over

__all__ = ["Counts", "came_between", "counts_chart", "counts_of", "in_stretches", "step_of", "won_chart", "won_of"]

MOST_SUMS = 4_000  # looks at a sum
MOST_STRETCHES = 60
REFRESHES = ("refreshes", "wasted_share")
# By the name of the time that is looked at: seconds of a stretch, and what it is called.
_STEPS = {"hour": (300.0, "in 5 minutes"), "day": (3_600.0, "an hour"), "month": (86_400.0, "a day")}


class Counts(NamedTuple):
    """Refreshes and wasted ones, which found nothing new: in each stretch; and how many there were."""

    all: list[Point]
    wasted: list[Point]
    total: float


def step_of(over: Over) -> tuple[float, str]:
    """How long a stretch is, and its words."""
    return _STEPS[over.name]


def came_between(sums: Sequence[Point], half_life_s: float) -> list[Point]:
    """What was added to a sum that fades: when it was seen first, and how much; about one too many or too few at most.

    A sum that nothing was added to may stand as it was, because it fades when something is.

    >>> came_between([(0.0, 8.0), (86_400.0, 7.0), (90_000.0, 7.0)], 86_400.0)
    [(86400.0, 3.0), (90000.0, 0.0)]
    """
    found = []
    for (earlier_s, earlier), (later_s, later) in pairwise(sums):
        left = earlier * 0.5 ** (max(later_s - earlier_s, 0.0) / half_life_s)
        found.append((later_s, 0.0 if later == earlier else max(later - left, 0.0)))
    return found


def in_stretches(amounts: Sequence[Point], begun_s: float, now_s: float, step_s: float) -> list[Point]:
    """The sum of each stretch, at its end; stretches that began before the measuring did are left out.

    >>> in_stretches([(5.0, 1.0), (12.0, 2.0), (19.0, 3.0)], 0.0, 20.0, 10.0)
    [(10.0, 1.0), (20.0, 5.0)]
    """
    span_s = now_s - begun_s
    count = min(max(int(span_s / step_s), 0), MOST_STRETCHES) if math.isfinite(span_s) else 0
    sums = [0.0] * count
    for at_s, amount in amounts:
        back = (now_s - at_s) / step_s
        if 0 <= back < count and math.isfinite(amount):
            sums[int(back)] += amount
    return [(now_s - back * step_s, sums[back]) for back in reversed(range(count))]


def counts_of(watch: Watch, over: Over, now_s: float, of: tuple[str, str] = REFRESHES) -> Counts:
    """Refreshes over a time; or looks, by the names of their sum and of the share that was wasted."""
    since_s = now_s - over.span_s
    sums = watch.points(of[0], since_s, MOST_SUMS)
    shares = dict(watch.points(of[1], since_s, MOST_SUMS))
    lost = [(at_s, value * shares.get(at_s, 0.0)) for at_s, value in sums]
    begun_s = sums[0][0] if sums else now_s
    came, wasted = (came_between(each, HALF_LIFE_S) for each in (sums, lost))
    every, nothing_new = (in_stretches(each, begun_s, now_s, step_of(over)[0]) for each in (came, wasted))
    return Counts(every, nothing_new, sum(amount for _, amount in came))


def counts_chart(counts: Counts, over: Over, now_s: float) -> Markup:
    """Both as lines."""
    words = step_of(over)[1]
    other = Other("of these found nothing new", counts.wasted)
    return _chart("refreshes", f"Refreshes {words}", "n", counts.all, (over, now_s), other)


def won_of(watch: Watch, over: Over, now_s: float) -> list[Point]:
    """What fetches of known pages brought to search over a time; from the first that was measured on."""
    gains, step_s = watch.gains(now_s - over.span_s), step_of(over)[0]
    begun_s = max(gains[0][0] - step_s, now_s - over.span_s) if gains else now_s
    return in_stretches(gains, begun_s, now_s, step_s)


def won_chart(won: Sequence[Point], over: Over, now_s: float) -> Markup:
    """As a line."""
    return _chart("won", f"Quality won {step_of(over)[1]}", "gain", won, (over, now_s))


def _chart(
    name: str, title: str, unit: str, points: Sequence[Point], when: tuple[Over, float], other: Other | None = None
) -> Markup:
    over, now_s = when
    begun_s = points[0][0] if points else now_s - over.span_s
    csv = f"/console/refresh?csv={name}&over={over.name}"
    return line_chart(Line(name, title, title, unit, points, min(begun_s, now_s - 1.0), now_s, csv, other))
