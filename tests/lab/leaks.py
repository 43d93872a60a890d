"""Does the future leak? The same past with another future must give the same decisions up to then.

A policy that uses what it cannot know decides differently if the future is altered. This finds it without reading any
code.
"""

from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import NamedTuple, TypeVar

import numpy as np

World = TypeVar("World")


class LoggedDecision(NamedTuple):
    """A decision: when it was made (a time or a step), and what was decided: numbers, in order."""

    at: float
    values: Sequence[float]


def find_first_leak(
    run: Callable[[World], Sequence[LoggedDecision]],
    world: World,
    altered_after: Callable[[World, float, int], World],
    at: float,
    seeds: Sequence[int] = (1, 2, 3),
) -> int | None:
    """Return the number of the first decision before ``at`` that another future changes; None if there is none.

    ``alter_future(world, at, seed)`` returns the world with a different future from ``at`` on. Several futures are
    tried, because one may look the same by chance to a cheating policy. Decisions at ``at`` itself may already differ.
    """
    report = _select_before(run(world), at)
    leaks = [_find_difference(report, _select_before(run(altered_after(world, at, seed)), at)) for seed in seeds]
    return min((leak for leak in leaks if leak is not None), default=None)


def _select_before(log: Sequence[LoggedDecision], at: float) -> list[LoggedDecision]:
    return [decided for decided in log if decided.at < at]


def _find_difference(one: Sequence[LoggedDecision], other: Sequence[LoggedDecision]) -> int | None:
    pairs = enumerate(zip_longest(one, other))
    return next((number for number, (first, second) in pairs if not _is_same(first, second)), None)


def _is_same(first: LoggedDecision | None, second: LoggedDecision | None) -> bool:
    if first is None or second is None:
        return False
    whats = np.asarray(first.values, np.float64), np.asarray(second.values, np.float64)
    return first.at == second.at and np.array_equal(*whats, equal_nan=True)
