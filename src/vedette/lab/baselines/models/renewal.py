"""Renewal model: page changes as a renewal process in continuous time, and the two-stage model of why pages change.

A renewal process restarts at every change; all of it follows from the *survival*, the probability that a life
between two changes lasts longer than t. An age chain is the same thing in steps (``TwoStageLife.chain``).

Reference: B. Brewington, *Optimal observation with WWW applications*, 1999, sections 2.1 and 3; W. Feller, *An
Introduction to Probability Theory and Its Applications*, volume 2, chapter XI.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import log

import numpy as np

from vedette.policy import Floats
from vedette.refresh.models.age_chain import AgeChain, chain_from_survival

Survival = Callable[[Floats], Floats]


@dataclass(frozen=True, slots=True)
class TwoStageLife:
    """Two-stage page life: a reason to change comes, then somebody gets to it; two memoryless waits with own rates.

    The sum of both is not memoryless (eq. 3): just after a change the next is improbable. Where one rate is far larger
    than the other it nearly is, with the smaller rate.

    >>> round(TwoStageLife(2.0, 1.0).mode, 4)
    0.6931
    """

    motive: float
    response: float

    def __post_init__(self) -> None:
        assert min(self.motive, self.response) > 0, "both rates are above 0"

    @property
    def mode(self) -> float:
        """Return the page life with the greatest density: ln(l1 / l2) / (l1 - l2). Eq. 4 multiplies instead."""
        if self.has_equal_rates:
            return 2 / (self.motive + self.response)
        return log(self.motive / self.response) / (self.motive - self.response)

    @property
    def has_equal_rates(self) -> bool:
        """Check whether both rates are so near that the difference of exponentials would be lost in rounding."""
        return abs(self.motive - self.response) < 1e-6 * self.motive

    def density(self, life: Floats) -> Floats:
        """Return the density of page lives in the two-stage model (eq. 3); its limit where the rates are equal."""
        one, two = self.motive, self.response
        if self.has_equal_rates:
            return one * two * life * np.exp(-(one + two) / 2 * life)
        return one * two / (two - one) * (np.exp(-one * life) - np.exp(-two * life))

    def survival(self, life: Floats) -> Floats:
        """Return the probability that a page life in the two-stage model lasts longer than this."""
        one, two = self.motive, self.response
        if self.has_equal_rates:
            mean = (one + two) / 2
            return (1 + mean * life) * np.exp(-mean * life)
        return (two * np.exp(-one * life) - one * np.exp(-two * life)) / (two - one)

    def hazard(self, age: Floats) -> Floats:
        """Return the change hazard at an age in the two-stage model: it rises from 0 to the smaller rate."""
        return self.density(age) / self.survival(age)

    def chain(self, step: float, last_age: int) -> AgeChain:
        """Convert the two-stage page life to an age chain in discrete steps."""
        return chain_from_survival(self.survival(step * np.arange(last_age + 2, dtype=np.float64)))


@dataclass(frozen=True, slots=True, eq=False)
class Renewal:
    """Renewal model of a page whose lives last longer than t with probability ``survival(t)``, independently."""

    survival: Survival

    def conditional_survival(self, age: Floats, wait: Floats) -> Floats:
        """Return the probability that a page of an age does not change for a while, in the renewal model."""
        reached = self.survival(age)
        return np.divide(self.survival(age + wait), reached, out=np.zeros_like(reached), where=reached > 0)

    def mean_life(self, longest: float, parts: int = 20_000) -> float:
        """Return the mean life of a page between changes in the renewal model, for lives up to ``longest``."""
        times = np.linspace(0.0, longest, parts + 1)
        return float(np.trapezoid(self.survival(times), times))

    def age_density(self, age: Floats, longest: float) -> Floats:
        """Return the density of a page's age at a random moment in the renewal model: survival over mean life."""
        return self.survival(age) / self.mean_life(longest)

    def expected_changes(self, wait: float, parts: int = 2_000) -> float:
        """Compute the expected changes within a time after one: the renewal equation m(t) = F(t) + sum m(t - u) dF(u).

        A part's changes count at its middle, so the error falls with the square of its length.

        >>> round(Renewal(memoryless_survival(0.5)).expected_changes(4.0), 3)
        2.0
        """
        ends = 1 - self.survival(np.linspace(0.0, wait, parts + 1))
        mass = np.diff(ends)
        changes = np.zeros(parts + 1)
        middle = np.zeros(parts)
        for at in range(1, parts + 1):
            # middle[v] = m at the middle of part v; the part that is being filled is left out, and solved for.
            others = float(mass[1:at] @ middle[: at - 1][::-1])
            changes[at] = (ends[at] + others + mass[0] * changes[at - 1] / 2) / (1 - mass[0] / 2)
            middle[at - 1] = (changes[at - 1] + changes[at]) / 2
        return float(changes[-1])


def memoryless_survival(rate: float) -> Survival:
    """Return the survival function of a memoryless page with this change rate, for the renewal model."""

    def survival(life: Floats) -> Floats:
        return np.exp(-rate * life)

    return survival
