"""The hours of the week at which a site changes, multiplied with the rates of its pages."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from vedette.policy import Floats, Ints
from vedette.refresh.known_pages import Bools, KnownPages, Memory
from vedette.refresh.models.base import Rates
from vedette.refresh.models.gamma import GROUP_WIDTH, PAGE_WIDTH, add_observations, expected_time, subtract_sums
from vedette.refresh.models.pooled import Pooled
from vedette.refresh.models.rows import (
    add_to_groups,
    days_between,
    group_levels,
    group_rows,
    is_informative,
    page_rows,
    slice_memory,
)
from vedette.timeutil import DAY_S

HOURS, HOUR_S, WEEK_S = 168, 3_600.0, 604_800.0
MONDAY_S = 4 * DAY_S  # 5 January 1970
_PRIOR_CHANGES = 4.0  # changes an hour of the week that say as much as the profile of everything, which begins flat
_DECAY = 0.9995  # of what a site's profile remembers, at each change
_SMOOTHING = ((-2, 0.1), (-1, 0.2), (0, 0.4), (1, 0.2), (2, 0.1))
_RATE = Pooled()


@dataclass(frozen=True, slots=True)
class Rhythm:
    """A page's rate is its own, as ``pooled`` has it, times the profile of its site at the hour of the week (UTC).

        chance over (t0, t1) = that of ``pooled`` over a time of  integral of profile from t0 to t1

    The profile has 168 hours and a mean of 1. For each hour two sums are kept, which fade as further changes come: the
    changes that came, and those that a flat week lets expect. Their ratio, smoothed over neighbouring hours and drawn
    towards that of everything, is the profile. Looks less than a week apart count, found changed or not; a change
    between them is shared out over their hours as the profile itself has it. A change whose date the server tells
    belongs to its hour. Other looks say nothing of the hour.

    Useful where looks are frequent or servers tell dates, and people work by day. Not useful at a look a month without
    dates: then it is ``pooled``.

    Reference: Observe99, section 2.2, footnote 1, asks for it (a page that changes on working days only).

    >>> model = Rhythm()
    >>> daily = KnownPages(np.arange(1), np.array([86400.0]), np.array([True]), np.array([False]), np.array([np.nan]),
    ...               before_s=np.zeros(1))
    >>> memory = model.learn(Memory.empty(model.page_width, model.group_width), daily)
    >>> bool(0 < model.chance(memory, daily, np.array([2 * 86400.0]))[0] < 1)
    True
    """

    name: str = "rhythm"
    page_width: int = PAGE_WIDTH
    group_width: int = GROUP_WIDTH + 2 * HOURS
    rate: Pooled = _RATE

    def learn(self, memory: Memory, batch: KnownPages) -> Memory:
        """Changes and time for the page, in the site's own time; hours of changes for the site and for everything."""
        after, seen = memory.grow_for(batch), is_informative(batch)
        rows = page_rows(after, batch)
        # Whoever was not fetched before has no gap, and its row stays.
        gap = self._profile_time(memory, batch, np.where(seen, batch.before_s, batch.last_fetch_s), batch.last_fetch_s)
        belief = self.rate.belief(self._rate_memory(memory), batch)
        exposed = expected_time(belief.mean, gap, batch.changed)
        fresh = add_observations(rows, exposed, batch.changed, seen)
        add_to_groups(after.groups[:, :GROUP_WIDTH], batch, subtract_sums(rows, fresh), seen)
        after.pages[batch.place] = fresh
        self._learn_hours(after.groups[:, GROUP_WIDTH:], memory, batch, seen, belief.mean * exposed)
        return after

    def chance(self, memory: Memory, batch: KnownPages, at_s: Floats) -> Floats:
        """In the time of the site's profile."""
        wait = self._profile_time(memory, batch, batch.last_fetch_s, np.fmax(at_s, batch.last_fetch_s))
        return self.rate.belief(self._rate_memory(memory), batch).chance(wait)

    def rates(self, memory: Memory, batch: KnownPages) -> Rates:
        """Over the whole week."""
        return self.rate.rates(self._rate_memory(memory), batch)

    def _rate_memory(self, memory: Memory) -> Memory:
        return slice_memory(memory, 0, self.rate.page_width, 0, self.rate.group_width)

    def _profile_time(self, memory: Memory, batch: KnownPages, from_s: Floats, until_s: Floats) -> Floats:
        """The profile's integral between two times, in days."""
        sites, place = np.unique(batch.site, return_inverse=True)
        summed = _accumulate(_profiles(memory.groups[:, GROUP_WIDTH:], sites))
        return np.maximum(_integral(summed, place, until_s) - _integral(summed, place, from_s), 0.0)

    def _learn_hours(self, hours: Floats, memory: Memory, batch: KnownPages, seen: Bools, expected: Floats) -> None:
        """Looks that say something of the hour: those after less than a week, and changes with a date."""
        dated = seen & batch.changed & (batch.modified_s > batch.before_s) & (batch.modified_s <= batch.last_fetch_s)
        near = dated | (seen & (days_between(batch) * DAY_S < WEEK_S))
        for numbers, apart in list(group_levels(batch))[:2]:
            rows = np.flatnonzero(near & apart)
            if len(rows):
                looks = _Observations.from_batch(batch, rows, dated[rows], expected[rows])
                _add_hours(hours, memory.groups[:, GROUP_WIDTH:], numbers[rows], looks)


class _Observations(NamedTuple):
    """Between which hours of the week a look lies, and whether it found a change; its hour where there is a date.

    ``expected`` is how many first changes were to be expected between both.
    """

    first: Ints
    hours: Ints
    changed: Bools
    dated: Bools
    hour: Ints
    expected: Floats

    @classmethod
    def from_batch(cls, batch: KnownPages, rows: Ints, dated: Bools, expected: Floats) -> "_Observations":
        """The looks of these rows."""
        begin_s, end_s = batch.before_s[rows], batch.last_fetch_s[rows]
        count = np.minimum(np.floor((end_s - begin_s) / HOUR_S).astype(np.int64) + 1, HOURS)
        hour = _hour_of_week(np.where(dated, batch.modified_s[rows], end_s))
        return cls(_hour_of_week(begin_s), count, batch.changed[rows], dated, hour, expected)


def _add_hours(hours: Floats, before: Floats, numbers: Ints, looks: _Observations) -> None:
    """Add what came and what a flat week lets expect to the hours between two looks.

    That there was a change at some hour between them says nothing of which; that there was none at others does. So
    looks without a date count as what they were expected to find, changed or not. A dated change is itself, against one
    change anywhere between the looks.
    """
    groups, place = np.unique(numbers, return_inverse=True)
    profile = _profiles(before, groups)
    doubled = np.cumsum(np.pad(np.tile(profile, 2), ((0, 0), (1, 0))), axis=1)
    by_profile = 1 / np.maximum(doubled[place, looks.first + looks.hours] - doubled[place, looks.first], 1e-9)
    undated = looks.changed & ~looks.dated
    came = _spread_weight(place, looks, np.where(undated, by_profile, 0.0), len(groups)) * profile
    np.add.at(came, (place[looks.dated], looks.hour[looks.dated]), 1.0)
    flat = _spread_weight(place, looks, np.where(looks.dated, by_profile, looks.expected / looks.hours), len(groups))
    fading = _DECAY ** np.bincount(place, looks.changed, minlength=len(groups))[:, None]
    hours[groups] = hours[groups] * fading + np.hstack([came, flat])


def _spread_weight(place: Ints, looks: _Observations, weight: Floats, groups: int) -> Floats:
    """Add a weight to each hour from a first one on, over the week's end; all intervals at once, by their ends."""
    steps = np.zeros((groups, 2 * HOURS + 1))
    np.add.at(steps, (place, looks.first), weight)
    np.add.at(steps, (place, looks.first + looks.hours), -weight)
    level = np.cumsum(steps, axis=1)[:, : 2 * HOURS]
    spread: Floats = level[:, :HOURS] + level[:, HOURS:]
    return spread


def _hour_of_week(at_s: Floats) -> Ints:
    return (np.floor((at_s - MONDAY_S) / HOUR_S) % HOURS).astype(np.int64)


def _profiles(hours: Floats, sites: Ints) -> Floats:
    """The profile of each site, drawn towards that of everything."""
    everything = _profile(group_rows(hours, np.zeros(1, np.int64)), np.ones((1, HOURS)))
    own = _profile(group_rows(hours, sites), everything)
    return np.where((sites > 0)[:, None], own, everything)


def _profile(sums: Floats, above: Floats) -> Floats:
    came, flat = (_smooth(part) for part in np.split(sums, 2, axis=1))
    ratio = (came + _PRIOR_CHANGES * above) / (flat + _PRIOR_CHANGES)
    profile: Floats = ratio / ratio.mean(axis=1, keepdims=True)
    return profile


def _smooth(values: Floats) -> Floats:
    """Each hour with its neighbours, round the week."""
    smooth: Floats = np.sum([share * np.roll(values, step, axis=1) for step, share in _SMOOTHING], axis=0)
    return smooth


def _accumulate(profile: Floats) -> Floats:
    """Days of the profile's time from the week's begin to each hour, and to its end."""
    return np.pad(np.cumsum(profile, axis=1), ((0, 0), (1, 0))) / 24


def _integral(summed: Floats, place: Ints, at_s: Floats) -> Floats:
    """Days of the profile's time from a Monday long ago."""
    weeks, within = np.divmod((at_s - MONDAY_S) / HOUR_S, HOURS)
    hour = np.minimum(np.nan_to_num(within).astype(np.int64), HOURS - 1)
    part = within - hour
    days: Floats = 7 * weeks + summed[place, hour] * (1 - part) + summed[place, hour + 1] * part
    return days
