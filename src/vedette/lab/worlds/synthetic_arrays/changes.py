"""Every change of many made pages at once: what ``made.clockwork.edit_times`` says of one page, as arrays.

A window of a process holds what a hash of its number says, so all windows of all pages are worked out side by side; the
moments are those of the served web, to the bit.
"""

from typing import NamedTuple

import numpy as np

from vedette.lab.worlds.synthetic.change_times import CLOCKS, PER_WINDOW, START_S, STEPS
from vedette.lab.worlds.synthetic.hashing import OFFSET, STEP, Words, mix_all
from vedette.lab.worlds.synthetic.page_traits import LAWS, Processes
from vedette.policy import Floats, Ints

__all__ = ["Changes", "changes_of", "spread_out"]

POISSON, WORKING, PERIODIC = (LAWS.index(law) for law in ("poisson", "working", "periodic"))


class Changes(NamedTuple):
    """Moments at which pages change, in no order; ``row`` is the page's place among the processes that were asked."""

    row: Ints
    at_s: Floats


def changes_of(process: Processes, after_s: Floats, until_s: Floats) -> Changes:
    """The changes of each page after a time of its own, up to another."""
    parts = [
        _poisson(process, np.flatnonzero(process.law == POISSON), after_s, until_s),
        _working(process, np.flatnonzero(process.law == WORKING), after_s, until_s),
        _periodic(process, np.flatnonzero(process.law == PERIODIC), after_s, until_s),
    ]
    return Changes(np.concatenate([part.row for part in parts]), np.concatenate([part.at_s for part in parts]))


def spread_out(first: Ints, last: Ints) -> tuple[Ints, Ints]:
    """The numbers of each range, ends included, one after the other; and the range that each belongs to.

    >>> ranges, numbers = spread_out(np.array([3, 7, 0]), np.array([4, 6, 0]))
    >>> ranges.tolist(), numbers.tolist()
    ([0, 0, 2], [3, 4, 0])
    """
    counts = np.maximum(last - first + 1, 0)
    ranges = np.repeat(np.arange(len(first)), counts)
    starts = np.cumsum(counts) - counts
    return ranges, first[ranges] + np.arange(len(ranges)) - starts[ranges]


def _poisson(process: Processes, rows: Ints, after_s: Floats, until_s: Floats) -> Changes:
    found = _scattered(process, rows, after_s - START_S, until_s - START_S)
    return Changes(found.row, START_S + found.at_s)


def _working(process: Processes, rows: Ints, after_s: Floats, until_s: Floats) -> Changes:
    """Poisson by the clock of the office."""
    office = CLOCKS["office"]
    low, high = np.zeros(len(after_s)), np.zeros(len(after_s))
    low[rows], high[rows] = office.readings(after_s[rows] - START_S), office.readings(until_s[rows] - START_S)
    found = _scattered(process, rows, low, high)
    return Changes(found.row, START_S + office.offsets_s(found.at_s))


def _scattered(process: Processes, rows: Ints, low: Floats, high: Floats) -> Changes:
    """Poisson events between two readings of a clock, by that clock."""
    width = PER_WINDOW / process.per_s[rows]
    first, last = np.floor(low[rows] / width).astype(np.int64), np.floor(high[rows] / width).astype(np.int64)
    place, window = spread_out(first, np.where(high[rows] > low[rows], last, first - 1))
    owner, events = _in_windows(process.key[rows][place], window)
    row, at = rows[place[owner]], events * width[place[owner]]
    kept = (low[row] < at) & (at <= high[row])
    return Changes(row[kept], at[kept])


def _in_windows(keys: Words, window: Ints) -> tuple[Ints, Floats]:
    """The events of windows: to which one each belongs, and where it lies, in windows since the start."""
    state = mix_all(keys ^ window.astype(np.uint64))
    left = np.searchsorted(STEPS, _fractions(state), side="right")
    owners, places = [], []
    open_ = np.arange(len(window))
    while len(open_ := open_[left[open_] > 0]):
        state[open_] = state[open_] * np.uint64(STEP) + np.uint64(OFFSET)
        left[open_] -= 1
        owners.append(open_)
        places.append(window[open_] + _fractions(state[open_]))
    none: list[Ints] = [np.zeros(0, np.int64)]
    return np.concatenate(owners or none), np.concatenate(places or [np.zeros(0)])


def _periodic(process: Processes, rows: Ints, after_s: Floats, until_s: Floats) -> Changes:
    per_s = process.per_s[rows]
    phase_s = START_S + _fractions(process.key[rows]) / per_s
    first = np.floor((after_s[rows] - phase_s) * per_s).astype(np.int64) + 1
    last = np.floor((until_s[rows] - phase_s) * per_s).astype(np.int64)
    place, turn = spread_out(first, last)
    return Changes(rows[place], phase_s[place] + turn / per_s[place])


def _fractions(words: Words) -> Floats:
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
