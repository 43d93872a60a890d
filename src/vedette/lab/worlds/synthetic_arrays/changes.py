"""Every change of many made pages at once: what ``made.clockwork.edit_times`` says of one page, as arrays.

A window of a process holds what a hash of its number says, so all windows of all pages are worked out side by side; the
moments are those of the served web, to the bit.
"""

from typing import NamedTuple

import numpy as np

from vedette.lab.worlds.synthetic.change_times import EVENTS_PER_WINDOW, POISSON_CDF, RHYTHMS, START_S
from vedette.lab.worlds.synthetic.hashing import LCG_INCREMENT, LCG_MULTIPLIER, HashArray, mix_all
from vedette.lab.worlds.synthetic.page_traits import CHANGE_LAWS, ChangeProcesses
from vedette.policy import Floats, Ints

POISSON, WORKING, PERIODIC = (CHANGE_LAWS.index(law) for law in ("poisson", "working", "periodic"))


class Changes(NamedTuple):
    """Moments at which pages change, in no order; ``row`` is the page's place among the processes that were asked."""

    row: Ints
    at_s: Floats


def list_changes(process: ChangeProcesses, after_s: Floats, until_s: Floats) -> Changes:
    """The changes of each page after a time of its own, up to another."""
    parts = [
        _poisson_changes(process, np.flatnonzero(process.law == POISSON), after_s, until_s),
        _working_changes(process, np.flatnonzero(process.law == WORKING), after_s, until_s),
        _periodic_changes(process, np.flatnonzero(process.law == PERIODIC), after_s, until_s),
    ]
    return Changes(np.concatenate([part.row for part in parts]), np.concatenate([part.at_s for part in parts]))


def expand_ranges(first: Ints, last: Ints) -> tuple[Ints, Ints]:
    """The numbers of each range, ends included, one after the other; and the range that each belongs to.

    >>> ranges, numbers = expand_ranges(np.array([3, 7, 0]), np.array([4, 6, 0]))
    >>> ranges.tolist(), numbers.tolist()
    ([0, 0, 2], [3, 4, 0])
    """
    counts = np.maximum(last - first + 1, 0)
    ranges = np.repeat(np.arange(len(first)), counts)
    starts = np.cumsum(counts) - counts
    return ranges, first[ranges] + np.arange(len(ranges)) - starts[ranges]


def _poisson_changes(process: ChangeProcesses, rows: Ints, after_s: Floats, until_s: Floats) -> Changes:
    found = _clock_changes(process, rows, after_s - START_S, until_s - START_S)
    return Changes(found.row, START_S + found.at_s)


def _working_changes(process: ChangeProcesses, rows: Ints, after_s: Floats, until_s: Floats) -> Changes:
    """Poisson by the clock of the office."""
    office = RHYTHMS["office"]
    low, high = np.zeros(len(after_s)), np.zeros(len(after_s))
    low[rows], high[rows] = office.clocks_at(after_s[rows] - START_S), office.clocks_at(until_s[rows] - START_S)
    found = _clock_changes(process, rows, low, high)
    return Changes(found.row, START_S + office.offsets_s(found.at_s))


def _clock_changes(process: ChangeProcesses, rows: Ints, low: Floats, high: Floats) -> Changes:
    """Poisson events between two readings of a clock, by that clock."""
    width = EVENTS_PER_WINDOW / process.per_s[rows]
    first, last = np.floor(low[rows] / width).astype(np.int64), np.floor(high[rows] / width).astype(np.int64)
    place, window = expand_ranges(first, np.where(high[rows] > low[rows], last, first - 1))
    owner, events = _window_events(process.key[rows][place], window)
    row, at = rows[place[owner]], events * width[place[owner]]
    kept = (low[row] < at) & (at <= high[row])
    return Changes(row[kept], at[kept])


def _window_events(keys: HashArray, window: Ints) -> tuple[Ints, Floats]:
    """The events of windows: to which one each belongs, and where it lies, in windows since the start."""
    state = mix_all(keys ^ window.astype(np.uint64))
    left = np.searchsorted(POISSON_CDF, _fractions(state), side="right")
    owners, places = [], []
    open_ = np.arange(len(window))
    while len(open_ := open_[left[open_] > 0]):
        state[open_] = state[open_] * np.uint64(LCG_MULTIPLIER) + np.uint64(LCG_INCREMENT)
        left[open_] -= 1
        owners.append(open_)
        places.append(window[open_] + _fractions(state[open_]))
    none: list[Ints] = [np.zeros(0, np.int64)]
    return np.concatenate(owners or none), np.concatenate(places or [np.zeros(0)])


def _periodic_changes(process: ChangeProcesses, rows: Ints, after_s: Floats, until_s: Floats) -> Changes:
    per_s = process.per_s[rows]
    phase_s = START_S + _fractions(process.key[rows]) / per_s
    first = np.floor((after_s[rows] - phase_s) * per_s).astype(np.int64) + 1
    last = np.floor((until_s[rows] - phase_s) * per_s).astype(np.int64)
    place, turn = expand_ranges(first, last)
    return Changes(rows[place], phase_s[place] + turn / per_s[place])


def _fractions(words: HashArray) -> Floats:
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
