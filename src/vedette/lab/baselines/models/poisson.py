"""Poisson change model: the rate of each page by maximum likelihood of fetches that say "changed" or "unchanged"."""

from dataclasses import dataclass

import numpy as np

from vedette.policy import Floats
from vedette.refresh.known_pages import KnownPages, Memory
from vedette.refresh.models.base import Rates
from vedette.refresh.models.rows import (
    add_to_groups,
    days_between,
    days_since_fetch,
    group_levels,
    group_rows,
    is_informative,
    page_rows,
)

BINS = 12
# Gaps from an hour to four years, each about 2.6 times the one before; others count as the nearest.
GRID_D = np.geomspace(1 / 24, 1500.0, BINS)
FIRST_RATE = 1 / 30
_STEPS = 30
_Z_90 = 1.6449


@dataclass(frozen=True, slots=True)
class Poisson:
    """Poisson change model: a fetch after a gap a finds a page of change rate D changed with probability 1 - e^(-D a).

    The rate solves

        w / D - w / M  +  sum over changed of a / (e^(D a) - 1)  -  sum over unchanged of a  =  0

    where M is the rate of the parent group, found in the same way, and w = 1/2 the weight of this pseudo-observation:
    without it pages that were always or never found changed would have no finite rate. The left side decreases in D and
    is convex, so Newton's method from below never overshoots.

    All gaps of changed fetches cannot be stored: they are counted on a grid of 12, each by its two neighbors in shares
    that preserve its logarithm. The row of a page or a group is these counts and the time without change. The interval
    is that of the Fisher information of log D.

    Useful as the estimate that most published policies use. Not useful for pages with few fetches, which are most of
    them: see ``pooled``.

    Reference: J. Cho and H. Garcia-Molina, *Estimating Frequency of Change*, ACM TOIT 2003, section 4 (irregular
    access).

    >>> model = Poisson()
    >>> weekly = KnownPages(np.arange(1), np.array([7 * 86400.0]), np.array([True]), np.array([False]),
    ...                     np.array([np.nan]), before_s=np.zeros(1))
    >>> memory = model.learn(Memory.empty(model.page_width, model.group_width), weekly)
    >>> bool(model.rates(memory, weekly).mean[0] > 1 / 30)
    True
    """

    name: str = "poisson"
    page_width: int = BINS + 1
    group_width: int = BINS + 1
    weight: float = 0.5

    def learn(self, memory: Memory, batch: KnownPages) -> Memory:
        """Count changed gaps on the Poisson model's grid, or add time without change, for pages and their groups."""
        after, seen = memory.grow_for(batch), is_informative(batch)
        amounts = np.zeros((len(batch), BINS + 1))
        amounts[:, 0] = seen * np.where(batch.changed, 0.0, days_between(batch))
        amounts[:, 1:] = _spread_on_grid(days_between(batch)) * (seen & batch.changed)[:, None]
        after.pages[batch.place] += amounts
        add_to_groups(after.groups, batch, amounts, seen)
        return after

    def chance(self, memory: Memory, batch: KnownPages, at_s: Floats) -> Floats:
        """Return the probability of change by the Poisson model, as if its most likely rate were the true one."""
        chance: Floats = -np.expm1(-self._rate(memory, batch) * days_since_fetch(batch, at_s))
        return chance

    def rates(self, memory: Memory, batch: KnownPages) -> Rates:
        """Return the Poisson model's most likely change rates, with intervals."""
        rate, above = self._rate(memory, batch), self._group_rate(memory, batch)
        row = page_rows(memory, batch)
        turns = rate[:, None] * GRID_D
        information = rate * (row[:, 0] + self.weight / above) + (row[:, 1:] * _curvature(turns)).sum(axis=1)
        wide = np.exp(_Z_90 / np.sqrt(information))
        return Rates(rate, rate / wide, rate * wide)

    def _rate(self, memory: Memory, batch: KnownPages) -> Floats:
        return _solve_rates(page_rows(memory, batch), self._group_rate(memory, batch), self.weight)

    def _group_rate(self, memory: Memory, batch: KnownPages) -> Floats:
        """Return the Poisson rate of each page's smallest group, shrunk toward its parent group."""
        rate = np.full(len(batch), FIRST_RATE)
        for numbers, apart in group_levels(batch):
            # Groups are few: each is solved once, for all its pages.
            some, first, place = np.unique(numbers, return_index=True, return_inverse=True)
            own = _solve_rates(group_rows(memory.groups, some), rate[first], self.weight)
            rate = np.where(apart, own[place], rate)
        return rate


def _spread_on_grid(gaps_d: Floats) -> Floats:
    """Spread each gap over its two neighbors on the Poisson model's grid, as shares."""
    step = np.log(GRID_D[1] / GRID_D[0])
    where = np.clip(np.log(np.maximum(gaps_d, 1e-9) / GRID_D[0]) / step, 0, BINS - 1)
    shares: Floats = np.maximum(1 - np.abs(where[:, None] - np.arange(BINS)), 0.0)
    return shares


def _solve_rates(rows: Floats, above: Floats, weight: float) -> Floats:
    """Solve for each row's Poisson rate by Newton's method, from a bound by a / (e^(D a) - 1) >= 1 / D - a / 2."""
    time, counts = rows[:, 0] + weight / above, rows[:, 1:]
    rate: Floats = (counts.sum(axis=1) + weight) / (time + counts @ (GRID_D / 2))
    for _ in range(_STEPS):
        turns = np.clip(rate[:, None] * GRID_D, 1e-9, 500.0)
        grown = np.expm1(turns)
        value = weight / rate + (counts * GRID_D / grown).sum(axis=1) - time
        slope = weight / rate**2 + (counts * GRID_D**2 * ((grown + 1) / grown) / grown).sum(axis=1)
        step = np.maximum(value / slope, 0.0)
        rate = rate + step
        if np.all(step <= 1e-9 * rate):
            break
    return rate


def _curvature(turns: Floats) -> Floats:
    """Compute the Fisher information of log D from one changed fetch, by the expected changes in its gap."""
    turns = np.clip(turns, 1e-4, 300.0)
    grown = np.expm1(turns)
    sharp: Floats = turns * (turns * (1 / grown + (1 / grown) ** 2) - 1 / grown)
    return np.maximum(sharp, 0.0)
