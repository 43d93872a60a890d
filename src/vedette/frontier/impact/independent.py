"""What the importance of a page says about its impact, and how much to make of that (Impact08, section 5.4)."""

from dataclasses import dataclass

import numpy as np

from vedette.policy import Floats

__all__ = ["Quadratic", "fitted_weights"]

FEWEST = 4
NOTHING = 1e-100  # estimates as small as that are none: what would be divided by them has no end


@dataclass(frozen=True, slots=True)
class Quadratic:
    """impact = a + b x + c x^2 within the importance that was seen, never below 0; beyond it, as at its ends.

    >>> x = np.array([0.0, 1.0, 2.0, 3.0])
    >>> Quadratic.fitted(x, 1 + x**2).of(np.array([2.0, 9.0])).round(6).tolist()
    [5.0, 10.0]
    """

    level: float = 0.0
    slope: float = 0.0
    bend: float = 0.0
    low: float = 0.0
    high: float = 0.0

    @classmethod
    def fitted(cls, importance: Floats, impact: Floats) -> "Quadratic":
        """By least squares; with few pages, or all of one importance, their mean."""
        if len(importance) < FEWEST or len(np.unique(importance)) < FEWEST - 1:
            return cls(level=float(impact.mean()) if len(impact) else 0.0)
        bend, slope, level = np.polyfit(importance, impact, 2).tolist()
        return cls(level, slope, bend, float(importance.min()), float(importance.max()))

    def of(self, importance: Floats) -> Floats:
        """The impact that pages of this importance have on average."""
        inside = np.clip(importance, self.low, self.high)
        return np.asarray(np.maximum(self.level + self.slope * inside + self.bend * inside**2, 0.0))


def fitted_weights(by_queries: Floats, by_importance: Floats, impact: Floats) -> tuple[float, float]:
    """The weights of both estimates that come nearest to what pages brought, by least squares; neither is below 0.

    >>> fitted_weights(np.array([1.0, 0.0, 2.0]), np.array([1.0, 1.0, 0.0]), np.array([5.0, 2.0, 6.0]))
    (3.0, 2.0)
    >>> fitted_weights(np.array([1.0, 0.0]), np.array([0.0, 1.0]), np.array([-1.0, 2.0]))
    (0.0, 2.0)
    """
    both = np.column_stack((by_queries, by_importance))
    both[:, np.abs(both).max(axis=0, initial=0.0) < NOTHING] = 0.0
    first, second = np.linalg.lstsq(both, impact, rcond=None)[0].round(12).tolist()
    if min(first, second) >= 0:
        return first, second
    # With two weights, the best one that is allowed has one of them at 0.
    alone = [max(float(one @ impact) / (float(one @ one) or 1.0), 0.0) for one in both.T]
    errors = [float(((impact - weight * one) ** 2).sum()) for weight, one in zip(alone, both.T, strict=True)]
    return (alone[0], 0.0) if errors[0] < errors[1] else (0.0, alone[1])
