"""Waves model of change: a page's own pace, its age, and waves of changes that affect many pages together.

A page changes by itself at a rate that is its own pace times a function of age, the same for all pages:

    own hazard = pace x g(days since its last change)

A page changed today is far more likely to change tomorrow than one unchanged for a year, so g falls steeply. It is
learned for all pages together, bin by bin. A page's pace has a Gamma distribution around that of its section, which has
one around that of its site; time is scaled by g for all of them, so that paces are comparable.

A *wave* is a change of many pages at once: a release, a template, a rebuilt site. A page that changes unexpectedly
opens a wave in its section and in its site, between its last two fetches. Every page last fetched before that may be
affected too: with a share that starts low and follows the results of the next fetches. So one unexpected change makes
the rest of a section worth fetching, and a few fetches without a change end it.

A found change is credited to causes by how probable each made it; time between two fetches is censored, so a page
counts with the number of changes expected given at least one.

Useful for: documentation, wikis, built sites, anything that people edit. Not useful for: pages that change by the
clock; use ``rhythm`` for those.

References: a page's age as the predictor of its next change: B. Brewington, G. Cybenko, *How Dynamic is the Web?*,
2000, and Observe99. Waves are ours; a signal causes the same kind of jump in belief in Busa-Fekete et al., WWW 2025.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from vedette.policy import Floats, Ints
from vedette.refresh.known_pages import Bools, KnownPages, Memory
from vedette.refresh.models.base import Belief, Rates, to_chance
from vedette.refresh.models.rows import announced_delay_d, group_levels, is_informative
from vedette.timeutil import DAY_S

# Ages in days at which the age factor may change.
AGES: Floats = np.concatenate([[0.0], np.geomspace(0.25, 2000.0, 14)])
UNTIL: Floats = np.append(AGES[1:], np.inf)
BINS = len(AGES)
# How many changes the prior of equal ages counts for.
AGE_STRENGTH = 5.0
# The assumed age of a page of unknown age.
UNKNOWN_AGE_D = 30.0
# Columns of a page.
OWN, PACED, CHANGED_S = range(3)
# Columns of a group: own changes and paced time, changes by waves and days; then waves, ages, properties of waves.
CHANGES, TIME, SWEPT, DAYS = range(4)
WAVES = 4
FIRST_WAVE = 4
AGE_CHANGES = FIRST_WAVE + 4 * WAVES
AGE_TIME = AGE_CHANGES + BINS
LIKE = AGE_TIME + BINS
GROUP_WIDTH = LIKE + 4
# Per wave: it came after one time and before another; counts of pages it hit and spared.
AFTER, BEFORE, HIT, SPARED = range(4)
FULL = 0.999
# Prior number of days without a wave for every group.
SWEPT_PRIOR_D = 200.0
TINY = 1e-9


class _PagePace(NamedTuple):
    """Each page's posterior pace (shape and rate of a Gamma), and its paced time between two moments."""

    shape: Floats
    rate: Floats
    paced_time: Floats

    @property
    def pace(self) -> Floats:
        return self.shape / self.rate


@dataclass(frozen=True, slots=True)
class Waves:
    """The waves model of change: own pace, age, and waves over sections and sites.

    ``shape`` says how similar pages of a section are, ``section_shape`` how similar sections of a site.

    ``first_share`` is the prior share of a section and of a site that a wave hits, and ``doubt`` the number of pages
    that this prior counts for. A change with a probability below one minus ``surprise`` opens a wave.
    """

    name: str = "waves"
    shape: float = 0.5
    section_shape: float = 8.0
    first_share: tuple[float, float] = (0.02, 0.01)
    doubt: float = 2.0
    surprise: float = 0.5
    remembered: float = 20.0
    page_width: int = 3
    group_width: int = GROUP_WIDTH

    def learn(self, memory: Memory, batch: KnownPages) -> Memory:
        """Credit the changes found to pace, age and waves; a first fetch initializes a row."""
        after = memory.grow_for(batch)
        self._start_rows(after, batch)
        seen = np.flatnonzero(is_informative(batch))
        if len(seen):
            self._credit(after, memory, batch, seen)
        return after

    def chance(self, memory: Memory, batch: KnownPages, at_s: Floats) -> Floats:
        """Return the probability that a page's own pace or a wave changed it."""
        return to_chance(self.belief(memory, batch, at_s))

    def belief(self, memory: Memory, batch: KnownPages, at_s: Floats) -> Belief:
        """Return the belief from the page's own pace and waves: summed hazards, and the hazard then."""
        memory = memory.ensure_rows(batch)
        changed_s = self._changed_s(memory, batch)
        own = self._own_pace(memory, batch, changed_s, batch.last_fetch_s, at_s)
        age = np.maximum(at_s - changed_s, 0.0) / DAY_S
        hazard = own.pace * _factors(memory)[_bin(age)]
        for rows, counted in _levels(batch):
            hazard = hazard + counted * memory.groups[rows, SWEPT] / (memory.groups[rows, DAYS] + SWEPT_PRIOR_D)
        staleness = own.pace * own.paced_time + _wave_staleness(memory, batch)
        return Belief(staleness, np.maximum(hazard, TINY))

    def wave_staleness(self, memory: Memory, batch: KnownPages) -> Floats:
        """Return the part of each page's staleness that is due to waves since its last fetch."""
        return _wave_staleness(memory.ensure_rows(batch), batch)

    def rates(self, memory: Memory, batch: KnownPages) -> Rates:
        """Return each page's rate from its pace at its age and from waves; the interval is that of the pace."""
        memory = memory.ensure_rows(batch)
        changed_s = self._changed_s(memory, batch)
        own = self._own_pace(memory, batch, changed_s, batch.last_fetch_s, batch.last_fetch_s)
        hazard = self.belief(memory, batch, batch.last_fetch_s).hazard
        low, high = _gamma_interval(own.shape)
        paced = hazard * np.minimum(own.pace * _factors(memory)[_bin(_age(batch, changed_s))] / hazard, 1.0)
        return Rates(hazard, hazard - paced + paced * low, hazard - paced + paced * high)

    def _start_rows(self, memory: Memory, batch: KnownPages) -> None:
        rows = batch.place[batch.first_fetch]
        memory.pages[rows] = 0.0
        memory.pages[rows, CHANGED_S] = self._first_changed_s(batch)[batch.first_fetch]
        fresh = memory.groups[0, LIKE:].sum() == 0
        if fresh:
            memory.groups[0, LIKE:] = _prior(self.first_share)

    def _changed_s(self, memory: Memory, batch: KnownPages) -> Floats:
        """Return when each page last changed by itself; without a row, as if fetched for the first time."""
        changed_s = memory.pages[batch.place, CHANGED_S]
        return np.where(changed_s != 0, changed_s, self._first_changed_s(batch))

    @staticmethod
    def _first_changed_s(batch: KnownPages) -> Floats:
        unknown_s = batch.last_fetch_s - UNKNOWN_AGE_D * DAY_S
        stated_s = np.where(np.isfinite(batch.modified_s), batch.modified_s, batch.born_s)
        return np.where(np.isfinite(stated_s), np.minimum(stated_s, batch.last_fetch_s), unknown_s)

    def _own_pace(
        self, memory: Memory, batch: KnownPages, changed_s: Floats, from_s: Floats, until_s: Floats
    ) -> _PagePace:
        """Return each page's posterior pace, and the age-weighted time between two moments."""
        from_d, until_d = (np.maximum(at_s - changed_s, 0.0) / DAY_S for at_s in (from_s, until_s))
        paced = np.maximum(_integrate_factors(memory, until_d) - _integrate_factors(memory, from_d), 0.0)
        rows = memory.pages[batch.place]
        return _PagePace(
            rows[:, OWN] + self.shape, rows[:, PACED] + self.shape / self._group_pace(memory, batch), paced
        )

    def _group_pace(self, memory: Memory, batch: KnownPages) -> Floats:
        """Return the pace of a page's section, shrunk to its site's, and that to the global one."""
        every = memory.groups[0]
        pace = np.full(len(batch), (every[CHANGES] + 0.5) / (every[TIME] + 50.0))
        for rows, own in reversed(_levels(batch)):
            changes, time = memory.groups[rows, CHANGES], memory.groups[rows, TIME]
            nearer = (changes + self.section_shape) / (time + self.section_shape / pace)
            pace = np.where(own, nearer, pace)
        return pace

    def _credit(self, after: Memory, memory: Memory, batch: KnownPages, seen: Ints) -> None:
        batch = batch.select(seen)
        memory = memory.ensure_rows(batch)
        changed_s = self._changed_s(memory, batch)
        announced_s = batch.before_s + announced_delay_d(batch) * DAY_S
        is_announced = np.isfinite(announced_s)
        until_s = np.where(is_announced, announced_s, batch.last_fetch_s)
        own = self._own_pace(memory, batch, changed_s, batch.before_s, until_s)
        levels = list(_levels(batch))
        chances = [_wave_chance(_waves(memory, rows), batch.before_s) * some[:, None] for rows, some in levels]
        own_hazard = own.pace * own.paced_time
        hazard = own_hazard - sum(np.log1p(-np.minimum(chance, FULL)).sum(axis=1) for chance in chances)
        chance = np.maximum(-np.expm1(-hazard), TINY)
        by_itself = np.where(batch.changed, -np.expm1(-own_hazard) / chance, 0.0)
        count = np.where(is_announced, by_itself, np.where(batch.changed, own_hazard / chance, 0.0))
        self._credit_own(after, memory, batch, changed_s, until_s, own, count)
        moved = by_itself > 0.5
        found_s = np.where(is_announced, announced_s, (batch.before_s + batch.last_fetch_s) / 2)
        after.pages[batch.place[moved], CHANGED_S] = found_s[moved]
        for level, ((rows, some), shares) in enumerate(zip(levels, chances, strict=True)):
            self._credit_waves(after, batch, rows, some, shares / chance[:, None])
            unexpected = np.flatnonzero(some & batch.changed & (1.0 - chance > self.surprise))
            self._open_waves(after, batch, rows, unexpected, level)

    def _credit_own(
        self,
        after: Memory,
        memory: Memory,
        batch: KnownPages,
        changed_s: Floats,
        until_s: Floats,
        own: _PagePace,
        count: Floats,
    ) -> None:
        after.pages[batch.place, OWN] += count
        after.pages[batch.place, PACED] += own.paced_time
        after.groups[0, CHANGES] += count.sum()
        after.groups[0, TIME] += own.paced_time.sum()
        for rows, some in _levels(batch):
            np.add.at(after.groups[:, CHANGES], rows[some], count[some])
            np.add.at(after.groups[:, TIME], rows[some], own.paced_time[some])
        from_d, until_d = ((at_s - changed_s)[:, None] / DAY_S for at_s in (batch.before_s, until_s))
        days = np.clip(until_d, AGES, UNTIL) - np.clip(np.maximum(from_d, 0.0), AGES, UNTIL)
        part = days * _factors(memory)
        part /= np.maximum(part.sum(axis=1, keepdims=True), TINY)
        after.groups[0, AGE_CHANGES:AGE_TIME] += (count[:, None] * part).sum(axis=0)
        after.groups[0, AGE_TIME:LIKE] += (own.pace[:, None] * days).sum(axis=0)

    @staticmethod
    def _credit_waves(after: Memory, batch: KnownPages, rows: Ints, some: Bools, hit: Floats) -> None:
        """Update each wave since the previous fetch by whether it hit the page; ``hit`` is its probability."""
        weight = np.where((hit > 0) & some[:, None], _chance_after(_waves(after, rows), batch.before_s), 0.0)
        hit = np.where(batch.changed[:, None], np.minimum(hit, 1.0), 0.0) * weight
        for wave in range(WAVES):
            np.add.at(after.groups[:, FIRST_WAVE + 4 * wave + HIT], rows, hit[:, wave])
            np.add.at(after.groups[:, FIRST_WAVE + 4 * wave + SPARED], rows, weight[:, wave] - hit[:, wave])
        np.add.at(after.groups[:, SWEPT], rows, hit.sum(axis=1))
        np.add.at(after.groups[:, DAYS], rows, some * (batch.last_fetch_s - batch.before_s) / DAY_S)

    def _open_waves(self, after: Memory, batch: KnownPages, rows: Ints, unexpected: Ints, level: int) -> None:
        """Open a wave in each group where a page changed unexpectedly and no wave is known for that time.

        A group's newest wave ends later with each that is opened, so most pages are settled by one comparison.
        """
        numbers = rows[unexpected]
        newest = _waves(after, numbers)[:, :, BEFORE].max(axis=1, initial=0.0)
        left = newest <= batch.before_s[unexpected]
        last_s = dict(zip(numbers[left].tolist(), newest[left].tolist(), strict=True))
        for place, number in zip(unexpected[left].tolist(), numbers[left].tolist(), strict=True):
            if last_s[number] > batch.before_s[place]:
                continue
            last_s[number] = float(batch.last_fetch_s[place])
            waves = after.groups[number, FIRST_WAVE:AGE_CHANGES].reshape(WAVES, 4)
            oldest = waves[int(waves[:, BEFORE].argmin())]
            like = after.groups[0, LIKE + 2 * level : LIKE + 2 * level + 2]
            if oldest[BEFORE] > 0:
                like += 0.2 * oldest[HIT:]
                like *= min(1.0, self.remembered / like.sum())
            oldest[:] = batch.before_s[place], batch.last_fetch_s[place], *(like * (self.doubt / like.sum()))


def _waves(memory: Memory, rows: Ints) -> Floats:
    """Return the waves of groups of pages: a row per wave."""
    return memory.groups[:, FIRST_WAVE:AGE_CHANGES][rows].reshape(len(rows), WAVES, 4)


def _chance_after(waves: Floats, last_s: Floats) -> Floats:
    """Return the probability that each wave of a page's group came after a time: 0, 1, or in between."""
    width_s = np.maximum(waves[:, :, BEFORE] - waves[:, :, AFTER], 1.0)
    return np.clip((waves[:, :, BEFORE] - last_s[:, None]) / width_s, 0.0, 1.0)


def _wave_chance(waves: Floats, last_s: Floats) -> Floats:
    """Return the probability that each wave of a page's group hit the page since a time."""
    share = waves[:, :, HIT] / np.maximum(waves[:, :, HIT] + waves[:, :, SPARED], TINY)
    chance: Floats = _chance_after(waves, last_s) * share
    return chance


def _wave_staleness(memory: Memory, batch: KnownPages) -> Floats:
    """Return -log of the probability that no wave hit each page since its last fetch."""
    staleness = np.zeros(len(batch))
    for rows, counted in _levels(batch):
        chance = _wave_chance(_waves(memory, rows), batch.last_fetch_s) * counted[:, None]
        staleness -= np.log1p(-np.minimum(chance, FULL)).sum(axis=1)
    return staleness


def _prior(shares: tuple[float, float]) -> Floats:
    """Return the prior counts of pages that a wave hits and spares, in a section and in a site."""
    return np.array([shares[0], 1.0, shares[1], 2.0])


def _age(batch: KnownPages, changed_s: Floats) -> Floats:
    age: Floats = np.maximum(batch.last_fetch_s - changed_s, 0.0) / DAY_S
    return age


def _factors(memory: Memory) -> Floats:
    """Return the age factors g of the waves model, bin by bin; 1 without observations."""
    changes, time = memory.groups[0, AGE_CHANGES:AGE_TIME], memory.groups[0, AGE_TIME:LIKE]
    factors: Floats = (changes + AGE_STRENGTH) / (time + AGE_STRENGTH)
    return factors


def _bin(age: Floats) -> Ints:
    return np.searchsorted(AGES, age, side="right") - 1


def _integrate_factors(memory: Memory, age: Floats) -> Floats:
    """Integrate the age factors g from age 0."""
    factors = _factors(memory)
    knots = np.append(0.0, np.cumsum(factors[:-1] * np.diff(AGES)))
    paced: Floats = np.interp(age, AGES, knots) + np.maximum(age - AGES[-1], 0.0) * factors[-1]
    return paced


def _levels(batch: KnownPages) -> tuple[tuple[Ints, Bools], ...]:
    """Return the section and site of each page, nearest first, and whether it has its own."""
    _, site, section = group_levels(batch)
    return section, site


def _gamma_interval(shape: Floats) -> tuple[Floats, Floats]:
    """Return the middle 90% of a Gamma distribution with mean 1, by Wilson and Hilferty's cube."""
    spread = 1.645 / (3.0 * np.sqrt(shape))
    middle = 1.0 - 1.0 / (9.0 * shape)
    return np.maximum(middle - spread, 0.0) ** 3, np.maximum(middle + spread, 0.0) ** 3
