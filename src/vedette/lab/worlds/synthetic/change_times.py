"""When things happen in the made web: births by the rhythm of a working week, and changes by several processes.

Nothing is stored and nothing is played forward. A process is cut into windows; what happens in a window is a hash of
its number, so the last event before any moment is found by looking back over a few windows.

- *Rhythm*: a clock that runs faster in busy hours. A process that is even by this clock follows the working week.
- *Births*: one per unit of the rhythm's time on average. Within a block of 32 they fall like 32 independent darts, so
  short stretches look like a Poisson process while the number born by t has a closed form.
- *Poisson edits*: a window that is four mean gaps long holds a Poisson number of edits at uniform places, which is
  exactly a Poisson process. Each edit touches one of four groups of paragraphs.
"""

import math
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Literal

import numpy as np

from vedette.lab.worlds.synthetic.hashing import LCG_INCREMENT, LCG_MULTIPLIER, MASK_64, fraction, mix, mix_all
from vedette.policy import Floats, Ints
from vedette.timeutil import HOUR_S, WEEK_S

START_S = 1_767_571_200.0
"""Monday 5 January 2026, 00:00 UTC: when every made world opens."""


PARAGRAPH_GROUPS = 4
_BIRTHS_PER_BLOCK = 32
EVENTS_PER_WINDOW = 4.0


@dataclass(frozen=True, slots=True)
class Rhythm:
    """A clock whose seconds are long in busy hours; a week of it has as many seconds as a week.

    ``hour_readings`` are its readings at each full hour since Monday 00:00, one more than the week has hours.
    """

    hour_readings: tuple[float, ...]

    def clock_at(self, offset_s: float) -> float:
        """What this clock shows at an offset from the world's start."""
        week = math.floor(offset_s / WEEK_S)
        hours = (offset_s - week * WEEK_S) / HOUR_S
        hour = min(int(hours), len(self.hour_readings) - 2)
        low = self.hour_readings[hour]
        return week * WEEK_S + low + (hours - hour) * (self.hour_readings[hour + 1] - low)

    def clocks_at(self, offsets_s: Floats) -> Floats:
        """``clock_at`` at many offsets, to the same bits."""
        marks = np.array(self.hour_readings)
        weeks = np.floor(offsets_s / WEEK_S)
        hours = (offsets_s - weeks * WEEK_S) / HOUR_S
        full = np.minimum(hours.astype(np.int64), len(marks) - 2)
        low = marks[full]
        readings: Floats = weeks * WEEK_S + low + (hours - full) * (marks[full + 1] - low)
        return readings

    def offset_s(self, reading: float) -> float:
        """The offset from the world's start at which this clock shows a reading."""
        week = math.floor(reading / WEEK_S)
        rest = reading - week * WEEK_S
        hour = min(max(bisect_right(self.hour_readings, rest), 1), len(self.hour_readings) - 1) - 1
        low = self.hour_readings[hour]
        return week * WEEK_S + (hour + (rest - low) / (self.hour_readings[hour + 1] - low)) * HOUR_S

    def offsets_s(self, readings: Floats) -> Floats:
        """``offset_s`` for many readings, to the same bits."""
        marks = np.array(self.hour_readings)
        weeks = np.floor(readings / WEEK_S)
        rest = readings - weeks * WEEK_S
        hours = np.clip(np.searchsorted(marks, rest, side="right"), 1, len(marks) - 1) - 1
        low = marks[hours]
        offsets: Floats = weeks * WEEK_S + (hours + (rest - low) / (marks[hours + 1] - low)) * HOUR_S
        return offsets


def _parse_rhythm(days: str, hours: str) -> Rhythm:
    """A clock from the weights of seven days and of twenty-four hours, each one digit."""
    weights = [int(day) * int(hour) for day in days for hour in hours]
    unit_s = WEEK_S / sum(weights)
    return Rhythm((0.0, *accumulate(weight * unit_s for weight in weights)))


RHYTHMS: dict[str, Rhythm] = {
    "office": _parse_rhythm("8999711", "111111259999699987421111"),
    "press": _parse_rhythm("8888765", "222224789987666778765433"),
    "evening": _parse_rhythm("5555689", "321111122333443334679986"),
}


@lru_cache(maxsize=4096)
def _draw_positions(key: int, block: int) -> tuple[float, ...]:
    """Where the births of a block fall in it, in order."""
    base = mix(key ^ (block & MASK_64))
    return tuple(sorted(fraction(mix(base + index)) for index in range(_BIRTHS_PER_BLOCK)))


@dataclass(frozen=True, slots=True)
class BirthSchedule:
    """When each page of a site is born: a stock before the world opens, then a steady flow by a rhythm.

    ``stock`` pages lie within ``span_s`` before the start, thicker towards it by ``growth`` (1, 1.5 or 2, computed with
    operations that are exact alike for numbers and arrays); later ones come ``per_s`` on average. Births are whole
    seconds and never decrease with the page's number.
    """

    key: int
    stock: int
    span_s: float
    growth: float
    per_s: float
    rhythm: Rhythm

    def birth_s(self, number: int) -> float:
        """When the page of this number is born."""
        later = number - self.stock
        if later < 0:
            return START_S - math.ceil(self.span_s * self._age_curve((self.stock - number) / self.stock))
        block, index = divmod(later, _BIRTHS_PER_BLOCK)
        reading = (block + _draw_positions(self.key, block)[index]) * _BIRTHS_PER_BLOCK / self.per_s
        return START_S + math.floor(self.rhythm.offset_s(reading))

    def births_s(self, numbers: Ints) -> Floats:
        """``birth_s`` of many numbers at once."""
        ages = np.ceil(self.span_s * self._age_curves((self.stock - numbers) / self.stock))
        return np.where(numbers < self.stock, START_S - ages, self._later_births_s(numbers - self.stock))

    def count_born(self, now_s: float) -> int:
        """How many pages there are by now, dead ones included."""
        if now_s < START_S:
            return bisect_right(range(self.stock), now_s, key=self.birth_s)
        near = (
            self.stock
            + int(self.rhythm.clock_at(now_s - START_S) * self.per_s) // _BIRTHS_PER_BLOCK * _BIRTHS_PER_BLOCK
        )
        low, high = max(near - _BIRTHS_PER_BLOCK, 0), near + 2 * _BIRTHS_PER_BLOCK
        return bisect_right(range(high), now_s, lo=low, key=self.birth_s)

    def is_born(self, number: int, now_s: float) -> bool:
        """Whether the page of this number exists by now."""
        return (number < self.stock and now_s >= START_S) or self.birth_s(number) <= now_s

    def _age_curve(self, share: float) -> float:
        if self.growth == 1.0:
            return share
        return share * (share if self.growth == 2.0 else math.sqrt(share))

    def _age_curves(self, shares: Floats) -> Floats:
        shares = np.maximum(shares, 0.0)
        if self.growth == 1.0:
            return shares
        return shares * (shares if self.growth == 2.0 else np.sqrt(shares))

    def _later_births_s(self, later: Ints) -> Floats:
        later = np.maximum(later, 0)
        blocks, indexes = np.divmod(later, _BIRTHS_PER_BLOCK)
        unique, where = np.unique(blocks, return_inverse=True)
        bases = mix_all(np.uint64(self.key) ^ unique.astype(np.uint64))
        words = mix_all(bases[:, None] + np.arange(_BIRTHS_PER_BLOCK, dtype=np.uint64)[None, :])
        darts = np.sort((words >> np.uint64(11)).astype(np.float64) * 2.0**-53, axis=1)
        readings = (blocks + darts[where, indexes]) * _BIRTHS_PER_BLOCK / self.per_s
        return START_S + np.floor(self.rhythm.offsets_s(readings))


ChangeLaw = Literal["never", "poisson", "working", "periodic"]


@dataclass(frozen=True, slots=True)
class ChangeProcess:
    """How a page changes. ``per_s`` is the mean rate; a periodic one changes every 1 / per_s seconds exactly."""

    law: ChangeLaw
    key: int = 0
    per_s: float = 0.0

    def clock_at(self, moment_s: float) -> float:
        """What the clock by which this process is even shows at a time."""
        offset_s = moment_s - START_S
        return RHYTHMS["office"].clock_at(offset_s) if self.law == "working" else offset_s

    def moment_s(self, reading: float) -> float:
        """When that clock shows a reading."""
        return START_S + (RHYTHMS["office"].offset_s(reading) if self.law == "working" else reading)


@dataclass(frozen=True, slots=True)
class EditState:
    """The state of a page's text: when it last changed (or was born), and which edit each group shows, 0 for none."""

    last_s: float
    shown: tuple[int, ...] = (0, 0, 0, 0)


def edit_state(process: ChangeProcess, birth_s: float, now_s: float) -> EditState:
    """The edits that a page shows now; those at or before its birth do not count."""
    if process.law == "never" or now_s <= birth_s:
        return EditState(birth_s)
    if process.law == "periodic":
        return _periodic_edits(process, birth_s, now_s)
    return _poisson_edits(process, birth_s, now_s)


def last_event(process: ChangeProcess, now_s: float) -> tuple[float, int]:
    """When a Poisson process that has always run last had an event, and the number of that event."""
    windows = process.clock_at(now_s) * process.per_s / EVENTS_PER_WINDOW
    window = math.floor(windows)
    places = _cached_window_events(process.key, window)[0]
    index = bisect_right(places, windows - window) - 1
    while index < 0:
        window -= 1
        places = _cached_window_events(process.key, window)[0]
        index = len(places) - 1
    return process.moment_s((window + places[index]) * EVENTS_PER_WINDOW / process.per_s), (window << 6) + index + 1


def edit_times(process: ChangeProcess, birth_s: float, until_s: float) -> Iterator[float]:
    """The moments after birth, up to a time, at which the page changes, in order."""
    if process.law == "never" or until_s <= birth_s:
        return
    if process.law == "periodic":
        yield from _periodic_times(process, birth_s, until_s)
        return
    width = EVENTS_PER_WINDOW / process.per_s
    low, high = process.clock_at(birth_s), process.clock_at(until_s)
    for window in range(math.floor(low / width), math.floor(high / width) + 1):
        for place in _window_events(process.key, window)[0]:
            if low < (window + place) * width <= high:
                yield process.moment_s((window + place) * width)


def _phase_s(process: ChangeProcess) -> float:
    return START_S + fraction(process.key) / process.per_s


def _periodic_times(process: ChangeProcess, birth_s: float, until_s: float) -> Iterator[float]:
    phase_s = _phase_s(process)
    first = math.floor((birth_s - phase_s) * process.per_s) + 1
    last = math.floor((until_s - phase_s) * process.per_s)
    for turn in range(first, last + 1):
        yield phase_s + turn / process.per_s


def _periodic_edits(process: ChangeProcess, birth_s: float, now_s: float) -> EditState:
    phase_s = _phase_s(process)
    turn = math.floor((now_s - phase_s) * process.per_s)
    first = math.floor((birth_s - phase_s) * process.per_s) + 1
    if turn < first:
        return EditState(birth_s)
    latest = [turn - (turn - group) % PARAGRAPH_GROUPS for group in range(PARAGRAPH_GROUPS)]
    shown = tuple(edit * 2 + 1 if edit >= first else 0 for edit in latest)
    return EditState(phase_s + turn / process.per_s, shown)


def _poisson_cdf(mean: float) -> tuple[float, ...]:
    """P(count <= k) for k = 0, 1, ...; thirty are enough for any mean used here."""
    terms = accumulate(range(1, 30), lambda term, k: term * mean / k, initial=math.exp(-mean))
    return tuple(accumulate(terms))


POISSON_CDF = _poisson_cdf(EVENTS_PER_WINDOW)
"""By these a window's first number says how many events it holds."""


def _window_events(key: int, window: int) -> tuple[list[float], int]:
    """The places of a window's events in it, in order, and a word whose bit pairs name the groups that they touch."""
    state = mix(key ^ (window & MASK_64))
    places = []
    for _ in range(bisect_right(POISSON_CDF, fraction(state))):
        state = (state * LCG_MULTIPLIER + LCG_INCREMENT) & MASK_64
        places.append((state >> 11) * 2.0**-53)
    places.sort()
    return places, mix(state)


_cached_window_events = lru_cache(maxsize=4096)(_window_events)
"""For the few processes that are asked again and again; those of pages would only push one another out."""


def _poisson_edits(process: ChangeProcess, birth_s: float, now_s: float) -> EditState:
    now, birth = process.clock_at(now_s), process.clock_at(birth_s)
    last: float | None = None
    shown = [0] * PARAGRAPH_GROUPS
    for edit, group, at in _iter_edits_backwards(process, now, birth):
        last = at if last is None else last
        shown[group] = shown[group] or edit
        if all(shown):
            break
    if last is None:
        return EditState(birth_s)
    return EditState(process.moment_s(last), tuple(shown))


def _iter_edits_backwards(process: ChangeProcess, now: float, birth: float) -> Iterator[tuple[int, int, float]]:
    """Edits from the newest to the oldest, as (its own number, the group it touches, the clock's reading)."""
    width = EVENTS_PER_WINDOW / process.per_s
    for window in range(math.floor(now / width), math.floor(birth / width) - 1, -1):
        places, groups = _window_events(process.key, window)
        for index in range(len(places) - 1, -1, -1):
            at = (window + places[index]) * width
            if at <= birth:
                return
            if at <= now:
                yield (window << 6) + index + 1, groups >> 2 * index & 3, at
