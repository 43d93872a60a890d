"""A linear model of what a look will bring, by what the last day's looks brought and by the hour: Pham's predictor.

Thirty-five features: mean and standard deviation of the yields of the last 24 hours (0 where there was no look), hours
since the last try, mean times hours, and an indicator for each hour of the day and each day of the week. With an
intercept the indicators are collinear, so the fit is a ridge with a penalty too small to matter otherwise.

Reference: Pham18 as told in Thompson23, sections 2.3 and 3.2.2.
"""

from typing import NamedTuple

import numpy as np

from vedette.discover.polling.sources import hour_of_week
from vedette.policy import Floats

__all__ = ["HOUR_S", "Told", "features", "fitted", "recent_yields"]

HOUR_S = 3_600.0
WINDOW_S = 24 * HOUR_S
# Nobody has waited longer than this: a source that was never looked at has no last look to count from.
LONGEST_H = 168.0
_HOURS, _DAYS = 24, 7
_PENALTY = 1.0


class Told(NamedTuple):
    """What is told of each row at a time: mean and deviation of its recent yields, and hours since the last try."""

    at_s: Floats
    mean: Floats
    deviation: Floats
    waited_h: Floats


def recent_yields(look_s: Floats, yields: Floats, now: float) -> tuple[Floats, Floats]:
    """Mean and standard deviation of the yields of a day, row by row; 0 where there was no look.

    >>> look_s, yields = np.array([[50.0, 40.0], [np.nan] * 2]), np.array([[2.0, 4.0], [0.0, 0.0]])
    >>> mean, deviation = recent_yields(look_s, yields, 60.0)
    >>> mean.tolist(), deviation.tolist()
    ([3.0, 0.0], [1.0, 0.0])
    """
    within = look_s > now - WINDOW_S
    count = np.maximum(within.sum(axis=1), 1)
    mean = (yields * within).sum(axis=1) / count
    square = (yields**2 * within).sum(axis=1) / count
    return mean, np.sqrt(np.maximum(square - mean**2, 0.0))


def features(told: Told) -> Floats:
    """A row of 35 features and an intercept for each row."""
    hours = hour_of_week(told.at_s)
    waited_h = np.minimum(told.waited_h, LONGEST_H)
    summary = np.column_stack([told.mean, told.deviation, waited_h, told.mean * waited_h, np.ones(len(hours))])
    return np.hstack([summary, np.eye(_HOURS)[hours % _HOURS], np.eye(_DAYS)[hours // _HOURS]])


def fitted(rows: Floats, yields: Floats) -> Floats:
    """The weights of a ridge regression."""
    return np.linalg.solve(rows.T @ rows + _PENALTY * np.eye(rows.shape[1]), rows.T @ yields).astype(np.float64)
