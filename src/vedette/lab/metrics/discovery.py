"""Metrics of discovery: coverage, overhead, hours to discovery (HTD), regret.

*New* targets are those that could first be seen in the measured time; each has the time at which it appeared, the time
at which it was no longer visible, and the time at which it was found (NaN for never).

Reference: Pandey08, section 3.2.1; Thompson23, sections 2.1 and 3.3.
"""

import numpy as np
import numpy.typing as npt

from vedette.policy import Floats, Ints
from vedette.timeutil import HOUR_S


def coverage(found_s: Floats) -> float:
    """Compute discovery coverage, the share of new targets that were found; NaN if there were none.

    >>> coverage(np.array([10.0, np.nan, 30.0, 40.0]))
    0.75
    """
    return float(np.mean(~np.isnan(found_s))) if len(found_s) else float("nan")


def overhead(looks: npt.ArrayLike, finds: npt.ArrayLike) -> float:
    """Compute discovery overhead as total polls by total finds; infinity if nothing was found.

    One of two forms, since the figures of Pandey08 do not agree with each other: see ``overhead_mean``.

    >>> overhead([1, 4, 5], [10, 0, 10])
    0.5
    """
    return _ratio(float(np.sum(looks)), float(np.sum(finds)))


def overhead_mean(looks: Ints, finds: Ints) -> float:
    """Compute discovery overhead as the mean of polls by finds, over the sites and times with finds.

    >>> overhead_mean(np.array([1, 4, 5]), np.array([10, 0, 10]))
    0.3
    """
    some = finds > 0
    return float(np.mean(looks[some] / finds[some])) if np.any(some) else float("inf")


def hours_to_discovery(appeared_s: Floats, gone_s: Floats, found_s: Floats) -> Floats:
    """Compute the hours to discovery of each target; one never found counts with its whole visible life."""
    hours: Floats = (np.where(np.isnan(found_s), gone_s, found_s) - appeared_s) / HOUR_S
    return hours


def htd_p90(appeared_s: Floats, gone_s: Floats, found_s: Floats) -> float:
    """Compute the 90th percentile of hours to discovery over all new targets, interpolated between neighbors.

    Counting only what was found, as published (``htd_p90_found``), favors policies that find only the easy ones.
    """
    return _p90(hours_to_discovery(appeared_s, gone_s, found_s))


def htd_p90_found(appeared_s: Floats, found_s: Floats) -> float:
    """Compute the 90th percentile of hours to discovery over the targets that were found, as in Thompson23."""
    found = ~np.isnan(found_s)
    return _p90((found_s[found] - appeared_s[found]) / HOUR_S)


def regret(found: float, found_by_bound: float) -> float:
    """Compute the discovery regret: the share of the bound's finds that is missing; negative if the bound was beaten.

    >>> regret(94, 100)
    0.06
    """
    return _ratio(found_by_bound - found, found_by_bound)


def _ratio(part: float, whole: float) -> float:
    if whole:
        return part / whole
    return float("nan") if not part else float(np.copysign(np.inf, part))


def _p90(hours: Floats) -> float:
    return float(np.percentile(hours, 90)) if len(hours) else float("nan")
