"""Estimates of what another policy would have brought (``learn.off_policy``), with the lab's bootstrap intervals."""

from vedette.decide import Floats
from vedette.lab.statistics import interval
from vedette.learn import off_policy
from vedette.learn.off_policy import NOT_ENOUGH, Decisions, Estimate

__all__ = ["NOT_ENOUGH", "Decisions", "Estimate", "doubly_robust", "ips", "snips"]


def ips(log: Decisions) -> Estimate:
    """Weighted by how much more often the other policy would have done so."""
    return off_policy.ips(log, _ends)


def snips(log: Decisions) -> Estimate:
    """The same, by the weights that there are."""
    return off_policy.snips(log, _ends)


def doubly_robust(log: Decisions) -> Estimate:
    """What the model expects, and where it was wrong, what came instead."""
    return off_policy.doubly_robust(log, _ends)


def _ends(values: Floats) -> tuple[float, float]:
    found = interval(values)
    return found.low, found.high
