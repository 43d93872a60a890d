"""Birth and change times of the synthetic web: a weekly rhythm, and Poisson, periodic and working-hours processes.

Nothing is stored and nothing is simulated forward. A process is divided into windows; the events of a window are a hash
of its number, so the last event before any moment is found by looking back over a few windows.

- *Rhythm*: a clock that runs faster in busy hours. A process that is even by this clock follows the working week.
- *Births*: one per unit of the rhythm's time on average. Within a block of 32 they are 32 independent uniform draws, so
  short intervals resemble a Poisson process while the number born by t has a closed form.
- *Poisson edits*: a window that is four mean gaps long has a Poisson number of edits at uniform positions, which is
  exactly a Poisson process. Each edit changes one of four groups of paragraphs.
"""

import math
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Literal, TypeVar

import numpy as np

from vedette.lab.worlds.synthetic.hashing import (
    LCG_INCREMENT,
    LCG_MULTIPLIER,
    MASK_64,
    fraction,
    fractions,
    mix,
    mix_all,
)
from vedette.policy import Floats, Ints
from vedette.timeutil import HOUR_S, WEEK_S

START_S = 1_767_571_200.0
"""Monday 5 January 2026, 00:00 UTC: when every synthetic web opens."""


_Share = TypeVar("_Share", float, Floats)

PARAGRAPH_GROUPS = 4
_BIRTHS_PER_BLOCK = 32
EVENTS_PER_WINDOW = 4.0


@dataclass(frozen=True, slots=True)
class Rhythm:
    """Weekly rhythm of births and changes: a clock that runs faster in busy hours, with as many seconds in a week.

    ``hour_readings`` are its readings at each full hour since Monday 00:00, one more than the week has hours.
    """

    hour_readings: tuple[float, ...]

    def clock_at(self, offset_s: float) -> float:
        """Return the rhythm clock's reading at an offset from the synthetic world's start."""
        week = math.floor(offset_s / WEEK_S)
        hours = (offset_s - week * WEEK_S) / HOUR_S
        hour = min(int(hours), len(self.hour_readings) - 2)
        low = self.hour_readings[hour]
        return week * WEEK_S + low + (hours - hour) * (self.hour_readings[hour + 1] - low)

    def clocks_at(self, offsets_s: Floats) -> Floats:
        """Return the rhythm clock's readings at many offsets: ``clock_at``, to the same bits."""
        marks = np.array(self.hour_readings)
        weeks = np.floor(offsets_s / WEEK_S)
        hours = (offsets_s - weeks * WEEK_S) / HOUR_S
        full = np.minimum(hours.astype(np.int64), len(marks) - 2)
        low = marks[full]
        readings: Floats = weeks * WEEK_S + low + (hours - full) * (marks[full + 1] - low)
        return readings

    def offset_s(self, reading: float) -> float:
        """Return the offset from the synthetic world's start at which the rhythm clock shows a reading."""
        week = math.floor(reading / WEEK_S)
        rest = reading - week * WEEK_S
        hour = min(max(bisect_right(self.hour_readings, rest), 1), len(self.hour_readings) - 1) - 1
        low = self.hour_readings[hour]
        return week * WEEK_S + (hour + (rest - low) / (self.hour_readings[hour + 1] - low)) * HOUR_S

    def offsets_s(self, readings: Floats) -> Floats:
        """Return the offsets of many rhythm clock readings: ``offset_s``, to the same bits."""
        marks = np.array(self.hour_readings)
        weeks = np.floor(readings / WEEK_S)
        rest = readings - weeks * WEEK_S
        hours = np.clip(np.searchsorted(marks, rest, side="right"), 1, len(marks) - 1) - 1
        low = marks[hours]
        offsets: Floats = weeks * WEEK_S + (hours + (rest - low) / (marks[hours + 1] - low)) * HOUR_S
        return offsets


def _parse_rhythm(days: str, hours: str) -> Rhythm:
    """Parse a weekly rhythm of change times from the weights of seven days and of 24 hours, each one digit."""
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
    """Draw the positions of synthetic page births within a block, in order."""
    base = mix(key ^ (block & MASK_64))
    return tuple(sorted(fraction(mix(base + index)) for index in range(_BIRTHS_PER_BLOCK)))


@dataclass(frozen=True, slots=True)
class BirthSchedule:
    """Birth times of a synthetic site's pages: a stock before the world opens, then a steady flow by a rhythm.

    ``stock`` pages are within ``span_s`` before the start, denser towards it by ``growth`` (1, 1.5 or 2, computed with
    operations that are equally exact for numbers and arrays); later ones come ``per_s`` on average. Births are whole
    seconds and never decrease with the page's number.
    """

    key: int
    stock: int
    span_s: float
    growth: float
    per_s: float
    rhythm: Rhythm

    def birth_s(self, number: int) -> float:
        """Return the birth time of the synthetic page of this number."""
        later = number - self.stock
        if later < 0:
            return START_S - math.ceil(self.span_s * self._age_curve((self.stock - number) / self.stock))
        block, index = divmod(later, _BIRTHS_PER_BLOCK)
        reading = (block + _draw_positions(self.key, block)[index]) * _BIRTHS_PER_BLOCK / self.per_s
        return START_S + math.floor(self.rhythm.offset_s(reading))

    def births_s(self, numbers: Ints) -> Floats:
        """Return the birth times of many synthetic pages at once: ``birth_s`` for arrays."""
        ages = np.ceil(self.span_s * self._age_curve(np.maximum((self.stock - numbers) / self.stock, 0.0)))
        return np.where(numbers < self.stock, START_S - ages, self._later_births_s(numbers - self.stock))

    def count_born(self, now_s: float) -> int:
        """Count the pages of a synthetic site born by now, dead ones included."""
        if now_s < START_S:
            return bisect_right(range(self.stock), now_s, key=self.birth_s)
        near = (
            self.stock
            + int(self.rhythm.clock_at(now_s - START_S) * self.per_s) // _BIRTHS_PER_BLOCK * _BIRTHS_PER_BLOCK
        )
        low, high = max(near - _BIRTHS_PER_BLOCK, 0), near + 2 * _BIRTHS_PER_BLOCK
        return bisect_right(range(high), now_s, lo=low, key=self.birth_s)

    def is_born(self, number: int, now_s: float) -> bool:
        """Check whether the synthetic page of this number is born by now."""
        return (number < self.stock and now_s >= START_S) or self.birth_s(number) <= now_s

    def _age_curve(self, share: _Share) -> _Share:
        if self.growth == 1.0:
            return share
        return share * (share if self.growth == 2.0 else np.sqrt(share))

    def _later_births_s(self, later: Ints) -> Floats:
        later = np.maximum(later, 0)
        blocks, indexes = np.divmod(later, _BIRTHS_PER_BLOCK)
        unique, where = np.unique(blocks, return_inverse=True)
        bases = mix_all(np.uint64(self.key) ^ unique.astype(np.uint64))
        words = mix_all(bases[:, None] + np.arange(_BIRTHS_PER_BLOCK, dtype=np.uint64)[None, :])
        darts = np.sort(fractions(words), axis=1)
        readings = (blocks + darts[where, indexes]) * _BIRTHS_PER_BLOCK / self.per_s
        return START_S + np.floor(self.rhythm.offsets_s(readings))


ChangeLaw = Literal["never", "poisson", "working", "periodic"]


@dataclass(frozen=True, slots=True)
class ChangeProcess:
    """How a synthetic page changes; ``per_s`` is the mean rate, a periodic one changes every 1 / per_s seconds."""

    law: ChangeLaw
    key: int = 0
    per_s: float = 0.0

    def clock_at(self, moment_s: float) -> float:
        """Return the reading, at a time, of the clock by which this change process is even."""
        offset_s = moment_s - START_S
        return RHYTHMS["office"].clock_at(offset_s) if self.law == "working" else offset_s

    def moment_s(self, reading: float) -> float:
        """Return the time at which the change process's clock shows a reading."""
        return START_S + (RHYTHMS["office"].offset_s(reading) if self.law == "working" else reading)


@dataclass(frozen=True, slots=True)
class EditState:
    """Edit state of a synthetic page: when it last changed (or was born), and each group's edit, 0 for none."""

    last_s: float
    shown: tuple[int, ...] = (0, 0, 0, 0)


def edit_state(process: ChangeProcess, birth_s: float, now_s: float) -> EditState:
    """Return the edits that a synthetic page shows now by its change process; those before its birth do not count."""
    if process.law == "never" or now_s <= birth_s:
        return EditState(birth_s)
    if process.law == "periodic":
        return _periodic_edits(process, birth_s, now_s)
    return _poisson_edits(process, birth_s, now_s)


def last_event(process: ChangeProcess, now_s: float) -> tuple[float, int]:
    """Return time and number of the last change event of a Poisson process that has always run."""
    windows = process.clock_at(now_s) * process.per_s / EVENTS_PER_WINDOW
    window = math.floor(windows)
    places = _cached_window_events(process.key, window)[0]
    index = bisect_right(places, windows - window) - 1
    while index < 0:
        window -= 1
        places = _cached_window_events(process.key, window)[0]
        index = len(places) - 1
    return process.moment_s((window + places[index]) * EVENTS_PER_WINDOW / process.per_s), (window << 6) + index + 1


def _phase_s(process: ChangeProcess) -> float:
    return START_S + fraction(process.key) / process.per_s


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
    """Return the Poisson CDF of change counts, P(count <= k) for k = 0, 1, ...; 30 suffice for the means used here."""
    terms = accumulate(range(1, 30), lambda term, k: term * mean / k, initial=math.exp(-mean))
    return tuple(accumulate(terms))


POISSON_CDF = _poisson_cdf(EVENTS_PER_WINDOW)
"""A window's first number determines by these how many events it has."""


def _window_events(key: int, window: int) -> tuple[list[float], int]:
    """Return the positions of a window's change events, in order, and a word whose bit pairs name the edited groups."""
    state = mix(key ^ (window & MASK_64))
    places = []
    for _ in range(bisect_right(POISSON_CDF, fraction(state))):
        state = (state * LCG_MULTIPLIER + LCG_INCREMENT) & MASK_64
        places.append((state >> 11) * 2.0**-53)
    places.sort()
    return places, mix(state)


_cached_window_events = lru_cache(maxsize=4096)(_window_events)
"""For the few processes that are queried repeatedly; those of pages would only evict one another."""


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
    """Iterate over a page's edits from newest to oldest, as (edit number, group it changes, clock reading)."""
    width = EVENTS_PER_WINDOW / process.per_s
    for window in range(math.floor(now / width), math.floor(birth / width) - 1, -1):
        places, groups = _window_events(process.key, window)
        for index in range(len(places) - 1, -1, -1):
            at = (window + places[index]) * width
            if at <= birth:
                return
            if at <= now:
                yield (window << 6) + index + 1, groups >> 2 * index & 3, at
