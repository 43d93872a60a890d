"""Rollback guard: compare quality per click with and without learned ranking, and return to the safe order.

One visitor in ten, by the visitor hash of the day, gets the order without anything learned, as a control group. Quality
per click is the average grade of a group's clicks (``page_quality.grade_clicks``). Visitors are the unit: clicks of one
person are alike, so the interval is over people.
"""

from typing import NamedTuple

import numpy as np

from vedette.learn.clicks.impressions import Bools, Impressions
from vedette.policy import Floats

# Nothing is reported before this many people of each group clicked.
MIN_PEOPLE = 30
Z = 1.96
# The guard tests repeatedly, so at two deviations it would raise a false alarm one time in twenty; at three far less
# often.
Z_GUARD = 3.0
FALLBACK_S = 7 * 86_400.0


class Arm(NamedTuple):
    """One experiment arm: people who clicked, clicks, and quality per click with its 95% half width."""

    people: int
    clicks: int
    quality: float
    half_width: float


class GroupComparison(NamedTuple):
    """Both experiment arms, and the difference of learned to control: mean and standard error."""

    learned: Arm
    plain: Arm
    difference: float = 0.0
    error: float = float("inf")

    @property
    def is_enough(self) -> bool:
        """Whether both experiment arms are large enough to compare."""
        return min(self.learned.people, self.plain.people) >= MIN_PEOPLE


class RollbackGuard(NamedTuple):
    """State of the rollback guard: until when all get the safe order (world time), and why.

    ``since_s`` is the start of the comparison.
    """

    until_s: float = 0.0
    since_s: float = 0.0
    why: str = ""

    def is_active(self, now_s: float) -> bool:
        """Check whether the rollback guard shows the safe order to all."""
        return now_s < self.until_s


def compare_groups(seen: Impressions, is_learned: Bools, among: Bools) -> GroupComparison:
    """Compare quality per click of both arms; ``is_learned`` is by row, ``among`` selects rows."""
    clicked = seen.clicked & among
    learned, plain = (_measure_arm(seen, each & clicked) for each in (is_learned, ~is_learned))
    if not (learned[0].people and plain[0].people):
        return GroupComparison(learned[0], plain[0])
    difference = learned[0].quality - plain[0].quality
    return GroupComparison(learned[0], plain[0], difference, float(np.hypot(learned[1], plain[1])))


def _measure_arm(seen: Impressions, rows: Bools) -> tuple[Arm, float]:
    """Measure one experiment arm, and the standard error of its quality: a ratio of sums over people."""
    if not rows.any():
        return Arm(0, 0, 0.0, float("inf")), float("inf")
    _, person = np.unique(seen.visitor[rows], return_inverse=True)
    clicks: Floats = np.bincount(person).astype(np.float64)
    liked = np.bincount(person, seen.liked[rows])
    quality = float(liked.sum() / clicks.sum())
    people = len(clicks)
    spread = float(np.sum((liked - quality * clicks) ** 2)) * people / max(people - 1, 1)
    error = float(np.sqrt(spread)) / float(clicks.sum()) if people > 1 else float("inf")
    return Arm(people, int(clicks.sum()), quality, Z * error), error


def update_guard(before: RollbackGuard, found: GroupComparison, now_s: float) -> RollbackGuard:
    """Update the rollback guard: continue, return to the safe order for a week, or try again after it.

    >>> arms = Arm(400, 900, 0.4, 0.03), Arm(300, 800, 0.6, 0.03)
    >>> update_guard(RollbackGuard(), GroupComparison(*arms, -0.2, 0.02), 5.0).why
    'quality per click fell from 0.60 to 0.40'
    >>> update_guard(RollbackGuard(), GroupComparison(*arms, -0.2, 0.1), 5.0).why
    ''
    """
    if before.is_active(now_s):
        return before
    if before.until_s:
        return RollbackGuard(since_s=before.until_s)
    if found.is_enough and found.difference < -Z_GUARD * found.error:
        why = f"quality per click fell from {found.plain.quality:.2f} to {found.learned.quality:.2f}"
        return RollbackGuard(now_s + FALLBACK_S, before.since_s, why)
    return before
