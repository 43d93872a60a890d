"""Weekly rhythm model: the hours of the week at which a site changes, multiplied with its pages' rates."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from vedette.policy import Floats, Ints
from vedette.refresh.known_pages import Bools, KnownPages, Memory
from vedette.refresh.models.base import Belief, Rates, to_chance
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
_PRIOR_CHANGES = 4.0  # changes per hour of the week that weigh as much as the global profile, which starts flat
_DECAY = 0.9995  # decay of a site's profile at each change
_SMOOTHING = ((-2, 0.1), (-1, 0.2), (0, 0.4), (1, 0.2), (2, 0.1))
_RATE = Pooled()


@dataclass(frozen=True, slots=True)
class Rhythm:
    """Rhythm model: a page's ``pooled`` rate times its site's profile at the hour of the week (UTC).

        chance over (t0, t1) = that of ``pooled`` over a time of  integral of profile from t0 to t1

    The profile has 168 hours and a mean of 1. For each hour two sums are stored, which decay with further changes: the
    changes that came, and those that a flat week would predict. Their ratio, smoothed over neighboring hours and shrunk
    to the global one, is the profile. Fetches less than a week apart count, found changed or not; a change between them
    is spread over their hours in proportion to the profile itself. A change dated by the server belongs to its hour.
    Other fetches say nothing about the hour.

    Useful if fetches are frequent or servers send dates, and people work by day. Not useful at one fetch a month
    without dates: then it equals ``pooled``.

    Reference: Observe99, section 2.2, footnote 1, suggests it (a page that changes on working days only).

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
        """Learn changes and profile time per page, and the hours of changes for the site and for everything."""
        after, seen = memory.grow_for(batch), is_informative(batch)
        rows = page_rows(after, batch)
        # A page without an earlier fetch has no gap, and its row stays.
        gap = self._profile_time(memory, batch, np.where(seen, batch.before_s, batch.last_fetch_s), batch.last_fetch_s)
        rate = self.rate.distribution(self._rate_memory(memory), batch).mean
        exposed = expected_time(rate, gap, batch.changed)
        fresh = add_observations(rows, exposed, batch.changed, seen)
        add_to_groups(after.groups[:, :GROUP_WIDTH], batch, subtract_sums(rows, fresh), seen)
        after.pages[batch.place] = fresh
        self._learn_hours(after.groups[:, GROUP_WIDTH:], memory, batch, seen, rate * exposed)
        return after

    def chance(self, memory: Memory, batch: KnownPages, at_s: Floats) -> Floats:
        """Return the change probability of each page in the time of its site's weekly profile."""
        return to_chance(self.belief(memory, batch, at_s))

    def belief(self, memory: Memory, batch: KnownPages, at_s: Floats) -> Belief:
        """Return the belief about each page in the time of its site's profile; its hazard is that of the hour."""
        at_s = np.fmax(at_s, batch.last_fetch_s)
        wait = self._profile_time(memory, batch, batch.last_fetch_s, at_s)
        sites, place = np.unique(batch.site, return_inverse=True)
        speed = _profiles(memory.groups[:, GROUP_WIDTH:], sites)[place, _hour_of_week(at_s)]
        return self.rate.distribution(self._rate_memory(memory), batch).belief(wait, speed)

    def rates(self, memory: Memory, batch: KnownPages) -> Rates:
        """Return each page's change rate averaged over the whole week."""
        return self.rate.rates(self._rate_memory(memory), batch)

    def _rate_memory(self, memory: Memory) -> Memory:
        return slice_memory(memory, 0, self.rate.page_width, 0, self.rate.group_width)

    def _profile_time(self, memory: Memory, batch: KnownPages, from_s: Floats, until_s: Floats) -> Floats:
        """Return the integral of the site's weekly profile between two times, in days."""
        sites, place = np.unique(batch.site, return_inverse=True)
        summed = _accumulate(_profiles(memory.groups[:, GROUP_WIDTH:], sites))
        return np.maximum(_integral(summed, place, until_s) - _integral(summed, place, from_s), 0.0)

    def _learn_hours(self, hours: Floats, memory: Memory, batch: KnownPages, seen: Bools, expected: Floats) -> None:
        """Learn the hours of changes from fetches less than a week apart, and from changes with a date."""
        dated = seen & batch.changed & (batch.modified_s > batch.before_s) & (batch.modified_s <= batch.last_fetch_s)
        near = dated | (seen & (days_between(batch) * DAY_S < WEEK_S))
        for numbers, apart in list(group_levels(batch))[:2]:
            rows = np.flatnonzero(near & apart)
            if len(rows):
                looks = _Observations.from_batch(batch, rows, dated[rows], expected[rows])
                _add_hours(hours, memory.groups[:, GROUP_WIDTH:], numbers[rows], looks)


class _Observations(NamedTuple):
    """Fetches with the hours of the week they span, whether they found a change, and its hour if dated.

    ``expected`` is the number of first changes expected between both.
    """

    first: Ints
    hours: Ints
    changed: Bools
    dated: Bools
    hour: Ints
    expected: Floats

    @classmethod
    def from_batch(cls, batch: KnownPages, rows: Ints, dated: Bools, expected: Floats) -> "_Observations":
        """Create the observations of these batch rows."""
        begin_s, end_s = batch.before_s[rows], batch.last_fetch_s[rows]
        count = np.minimum(np.floor((end_s - begin_s) / HOUR_S).astype(np.int64) + 1, HOURS)
        hour = _hour_of_week(np.where(dated, batch.modified_s[rows], end_s))
        return cls(_hour_of_week(begin_s), count, batch.changed[rows], dated, hour, expected)


def _add_hours(hours: Floats, before: Floats, numbers: Ints, looks: _Observations) -> None:
    """Add actual changes, and those a flat week would predict, to the hours between two fetches.

    A change at some hour between the fetches does not say which; no change at others does. So fetches without a date
    count with their expectation, changed or not. A dated change counts as itself, against one change anywhere between
    the fetches.
    """
    groups, place = np.unique(numbers, return_inverse=True)
    profile = _profiles(before, groups)
    doubled = np.cumsum(np.pad(np.tile(profile, 2), ((0, 0), (1, 0))), axis=1)
    by_profile = 1 / np.maximum(doubled[place, looks.first + looks.hours] - doubled[place, looks.first], 1e-9)
    undated = looks.changed & ~looks.dated
    changes = _spread_weight(place, looks, np.where(undated, by_profile, 0.0), len(groups)) * profile
    np.add.at(changes, (place[looks.dated], looks.hour[looks.dated]), 1.0)
    flat = _spread_weight(place, looks, np.where(looks.dated, by_profile, looks.expected / looks.hours), len(groups))
    fading = _DECAY ** np.bincount(place, looks.changed, minlength=len(groups))[:, None]
    hours[groups] = hours[groups] * fading + np.hstack([changes, flat])


def _spread_weight(place: Ints, looks: _Observations, weight: Floats, groups: int) -> Floats:
    """Add a weight to each hour of the week from a first one on, wrapping around, for all intervals at once."""
    steps = np.zeros((groups, 2 * HOURS + 1))
    np.add.at(steps, (place, looks.first), weight)
    np.add.at(steps, (place, looks.first + looks.hours), -weight)
    level = np.cumsum(steps, axis=1)[:, : 2 * HOURS]
    spread: Floats = level[:, :HOURS] + level[:, HOURS:]
    return spread


def _hour_of_week(at_s: Floats) -> Ints:
    return (np.floor((at_s - MONDAY_S) / HOUR_S) % HOURS).astype(np.int64)


def _profiles(hours: Floats, sites: Ints) -> Floats:
    """Compute the weekly profile of each site, shrunk to that of everything."""
    everything = _profile(group_rows(hours, np.zeros(1, np.int64)), np.ones((1, HOURS)))
    own = _profile(group_rows(hours, sites), everything)
    return np.where((sites > 0)[:, None], own, everything)


def _profile(sums: Floats, above: Floats) -> Floats:
    changes, flat = (_smooth(part) for part in np.split(sums, 2, axis=1))
    ratio = (changes + _PRIOR_CHANGES * above) / (flat + _PRIOR_CHANGES)
    profile: Floats = ratio / ratio.mean(axis=1, keepdims=True)
    return profile


def _smooth(values: Floats) -> Floats:
    """Smooth each hour with its neighbors, around the week."""
    smooth: Floats = np.sum([share * np.roll(values, step, axis=1) for step, share in _SMOOTHING], axis=0)
    return smooth


def _accumulate(profile: Floats) -> Floats:
    """Accumulate the weekly profile: days of profile time from the start of the week to each hour."""
    return np.pad(np.cumsum(profile, axis=1), ((0, 0), (1, 0))) / 24


def _integral(summed: Floats, place: Ints, at_s: Floats) -> Floats:
    """Return the days of profile time since a fixed Monday."""
    weeks, within = np.divmod((at_s - MONDAY_S) / HOUR_S, HOURS)
    hour = np.minimum(np.nan_to_num(within).astype(np.int64), HOURS - 1)
    part = within - hour
    days: Floats = 7 * weeks + summed[place, hour] * (1 - part) + summed[place, hour + 1] * part
    return days
