"""Does the future leak? The same past with another future must give the same decisions up to then.

Whoever decides by what it cannot know decides otherwise when that is altered. This finds it without reading any code.
"""

from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import NamedTuple, TypeVar

import numpy as np

__all__ = ["Decided", "first_leak"]

World = TypeVar("World")


class Decided(NamedTuple):
    """A decision: when it was made (a time or a step, as the world counts), and what was decided: numbers, in order."""

    at: float
    what: Sequence[float]


def first_leak(
    run: Callable[[World], Sequence[Decided]],
    world: World,
    altered_after: Callable[[World, float, int], World],
    at: float,
    seeds: Sequence[int] = (1, 2, 3),
) -> int | None:
    """The first decision before ``at`` that another future changes, as its number in the log; None where none does.

    ``altered_after(world, at, seed)`` is the world with what comes from ``at`` on made otherwise. Several futures are
    tried, since one may look the same by chance where a cheat looks. Decisions at ``at`` itself may already differ.
    """
    told = _before(run(world), at)
    leaks = [_difference(told, _before(run(altered_after(world, at, seed)), at)) for seed in seeds]
    return min((leak for leak in leaks if leak is not None), default=None)


def _before(log: Sequence[Decided], at: float) -> list[Decided]:
    return [decided for decided in log if decided.at < at]


def _difference(one: Sequence[Decided], other: Sequence[Decided]) -> int | None:
    pairs = enumerate(zip_longest(one, other))
    return next((number for number, (first, second) in pairs if not _same(first, second)), None)


def _same(first: Decided | None, second: Decided | None) -> bool:
    if first is None or second is None:
        return False
    whats = np.asarray(first.what, np.float64), np.asarray(second.what, np.float64)
    return first.at == second.at and np.array_equal(*whats, equal_nan=True)
