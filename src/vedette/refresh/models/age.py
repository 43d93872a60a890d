"""Age model of change: a hazard for each age since the last change, learned by group, scaled by page."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from vedette.policy import Floats, Ints
from vedette.refresh.known_pages import Bools, KnownPages, Memory
from vedette.refresh.models.base import Belief, Rates, to_chance
from vedette.refresh.models.gamma import GROUP_WIDTH, PAGE_WIDTH, Gamma, add_observations, pooled_prior, subtract_sums
from vedette.refresh.models.rows import (
    add_to_groups,
    announced_delay_d,
    days_between,
    days_since_fetch,
    group_levels,
    group_rows,
    is_informative,
    page_rows,
)
from vedette.timeutil import DAY_S

# Ages in days at which the hazard changes; the last one applies forever.
EDGES_D = np.array([0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0])
BINS = len(EDGES_D)
_ENDS_D = np.append(EDGES_D[1:], np.inf)
FIRST_HAZARD = 1 / 30
_CHANGES = 3.0  # of its own that outweigh the hazard of the parent group
_CHANGED_AT = PAGE_WIDTH


class _Exposure(NamedTuple):
    """What a fetch says about each age bin: the share of the change in it, and the days without one."""

    ended: Floats
    days: Floats


@dataclass(frozen=True, slots=True)
class Ageing:
    """Age model of change: the age chain in its survival form.

    A page of age a is still unchanged after t days with probability

        exp(-tilt (H(a + t) - H(a)))        H(a) = sum over ages below a of hazard

    The hazard is a step function of age; that of a group is shrunk towards its parent's. The tilt is the page's own
    factor, Gamma distributed about 1 within its group (see ``gamma``, with H in place of time): without it the hazard
    would fall with age merely because old copies belong to slow pages.

    The time of a change between two fetches is unobserved: its share in each bin, and the time before it, are the
    expectations before the fetch. The age is then counted from the server's date, or from the middle of the gap. A
    page's row is its changes, the expected changes, and the day of the last change.

    Useful if changes come in bursts, or if pages settle down. Not useful if fetches are much rarer than changes: then
    all ages look the same.

    Reference: Observe99, section 2.2 (the chain), with its last state "that old or older"; the tilt is the frailty of
    survival analysis (J. Vaupel et al., 1979).

    >>> model = Ageing()
    >>> daily = KnownPages(np.arange(1), np.array([86400.0]), np.array([True]), np.array([False]), np.array([np.nan]),
    ...               before_s=np.zeros(1))
    >>> memory = model.learn(Memory.empty(model.page_width, model.group_width), daily)
    >>> chances = [float(model.chance(memory, daily, np.array([day * 86400.0]))[0]) for day in (1, 2, 30)]
    >>> chances[0] == 0 < chances[1] < chances[2]
    True
    """

    name: str = "ageing"
    page_width: int = PAGE_WIDTH + 1
    group_width: int = GROUP_WIDTH + 2 * BINS

    def learn(self, memory: Memory, batch: KnownPages) -> Memory:
        """Add changes and days by age to the groups, found and expected changes to the page, and its age."""
        after, seen = memory.grow_for(batch), is_informative(batch)
        rows, tilt = page_rows(after, batch), self._tilt(memory, batch).mean
        from_d = np.fmax(batch.before_s / DAY_S - self._changed_at_d(rows, batch.before_s), 0.0)
        hazard = self._hazard(memory, batch)
        from_d = np.nan_to_num(from_d)
        spent = _estimate_exposure(_time_per_bin(from_d, days_between(batch)), hazard * tilt[:, None], batch.changed)
        spent = _replace_announced(spent, from_d, announced_delay_d(batch))
        expected = (hazard * spent.days).sum(axis=1)
        fresh = rows.copy()
        fresh[:, :PAGE_WIDTH] = add_observations(rows[:, :PAGE_WIDTH], expected, batch.changed, seen)
        fresh[:, _CHANGED_AT] = self._last_change_d(rows, batch, seen)
        grown = np.hstack([subtract_sums(rows, fresh), spent.ended, tilt[:, None] * spent.days])
        add_to_groups(after.groups, batch, grown, seen)
        after.pages[batch.place] = fresh
        return after

    def chance(self, memory: Memory, batch: KnownPages, at_s: Floats) -> Floats:
        """Return the change probability from the age at the last fetch on, averaged over tilts."""
        return to_chance(self.belief(memory, batch, at_s))

    def belief(self, memory: Memory, batch: KnownPages, at_s: Floats) -> Belief:
        """Return the belief about each page at its age by then, averaged over tilts."""
        age_d, wait_d, hazard = self._age_d(memory, batch), days_since_fetch(batch, at_s), self._hazard(memory, batch)
        turns = (hazard * _time_per_bin(age_d, wait_d)).sum(axis=1)
        return self._tilt(memory, batch).belief(turns, hazard[np.arange(len(batch)), _bin(age_d + wait_d)])

    def rates(self, memory: Memory, batch: KnownPages) -> Rates:
        """Return the change rate per day at each page's present age."""
        hazard = self._hazard(memory, batch)[np.arange(len(batch)), _bin(self._age_d(memory, batch))]
        return Rates(*(hazard * rate for rate in self._tilt(memory, batch).rates()))

    def _age_d(self, memory: Memory, batch: KnownPages) -> Floats:
        """Return the age in days of each page at its last fetch."""
        changed_at_d = self._changed_at_d(page_rows(memory, batch), batch.last_fetch_s)
        return np.fmax(batch.last_fetch_s / DAY_S - changed_at_d, 0.0)

    @staticmethod
    def _changed_at_d(rows: Floats, since_s: Floats) -> Floats:
        """Return the day of each page's last known change; the given time for an unknown page."""
        changed_at_d: Floats = np.where(rows[:, _CHANGED_AT] != 0, rows[:, _CHANGED_AT], since_s / DAY_S)
        return changed_at_d

    def _last_change_d(self, rows: Floats, batch: KnownPages, seen: Bools) -> Floats:
        """Return the day of each page's last change after these fetches."""
        last_d, modified_d = batch.last_fetch_s / DAY_S, batch.modified_s / DAY_S
        announced_d = batch.before_s / DAY_S + announced_delay_d(batch)
        middle_d = np.where(np.isfinite(announced_d), announced_d, last_d - days_between(batch) / 2)
        after_d = np.where((modified_d > last_d - days_between(batch)) & (modified_d <= last_d), modified_d, middle_d)
        first_d = np.fmin(np.where(np.isfinite(modified_d), modified_d, last_d), last_d)
        kept_d = np.where(seen & batch.changed, after_d, self._changed_at_d(rows, batch.last_fetch_s))
        return np.where(batch.first_fetch, first_d, kept_d)

    def _tilt(self, memory: Memory, batch: KnownPages) -> Gamma:
        changes, expected = page_rows(memory, batch)[:, :PAGE_WIDTH].T
        return pooled_prior(memory.groups[:, :GROUP_WIDTH], batch, 1.0).update(changes, expected)

    def _hazard(self, memory: Memory, batch: KnownPages) -> Floats:
        """Return the hazard per day at each age: the group's level, then its shape, both shrunk upward."""
        hazard = np.full((len(batch), BINS), FIRST_HAZARD)
        for numbers, apart in group_levels(batch):
            ended, days = np.split(group_rows(memory.groups, numbers)[:, GROUP_WIDTH:], 2, axis=1)
            level = (ended.sum(axis=1) + _CHANGES) / ((days * hazard).sum(axis=1) + _CHANGES)
            above = hazard * level[:, None]
            hazard = np.where(apart[:, None], (ended + _CHANGES) / (days + _CHANGES / above), hazard)
        return hazard


def _bin(age_d: Floats) -> Ints:
    return np.searchsorted(EDGES_D, age_d, side="right") - 1


def _time_per_bin(from_d: Floats, days: Floats) -> Floats:
    """Compute how many of the days after an age are spent in each age bin."""
    until_d = (from_d + days)[:, None]
    spent: Floats = np.maximum(np.minimum(until_d, _ENDS_D) - np.maximum(from_d[:, None], EDGES_D), 0.0)
    return spent


def _estimate_exposure(days: Floats, hazard: Floats, changed: Bools) -> _Exposure:
    """Estimate exposure by age bin: all days, or with a change its expected share and the days before it."""
    turns = np.clip(hazard * days, 1e-12, 500.0)
    until = np.cumsum(turns, axis=1)
    alive, total = np.exp(turns - until), until[:, -1:]
    ended = -alive * np.expm1(-turns) / -np.expm1(-total)
    # Days before the end of a life that may outlast the gap, minus those of lives that do.
    lived = (alive * -np.expm1(-turns) / hazard - days * np.exp(-total)) / -np.expm1(-total)
    has_changed = changed[:, None]
    return _Exposure(np.where(has_changed, ended, 0.0), np.where(has_changed, np.clip(lived, 0.0, days), days))


def _replace_announced(spent: _Exposure, from_d: Floats, known_d: Floats) -> _Exposure:
    """Replace estimated exposure if the time of the change was announced."""
    is_known = np.isfinite(known_d)[:, None]
    delay_d = np.nan_to_num(known_d)
    ended = np.arange(BINS) == _bin(from_d + delay_d)[:, None]
    return _Exposure(
        np.where(is_known, ended, spent.ended), np.where(is_known, _time_per_bin(from_d, delay_d), spent.days)
    )
