"""Pooled change rates, shrunk to those of section, site and all pages: empirical Bayes for memoryless pages."""

from dataclasses import dataclass

import numpy as np

from vedette.policy import Floats
from vedette.refresh.known_pages import KnownPages, Memory
from vedette.refresh.models.base import Belief, Rates, to_chance
from vedette.refresh.models.gamma import (
    GROUP_WIDTH,
    PAGE_WIDTH,
    Gamma,
    add_observations,
    expected_time,
    pooled_prior,
    subtract_sums,
)
from vedette.refresh.models.rows import (
    add_to_groups,
    announced_delay_d,
    days_between,
    days_since_fetch,
    is_informative,
    page_rows,
)

FIRST_MEAN = 1 / 30  # changes per day, before any data


@dataclass(frozen=True, slots=True)
class Pooled:
    """Pooled model: a page changes at its own rate, drawn from the rates of its group; see ``gamma``.

    A page's row is its changes and the days over which they were observed. A fetch that finds a change counts one
    change and the time until it, as expected before the fetch: of several changes between two fetches one is seen.

    Useful for nearly all pages: most have too few fetches to estimate their own rate. Not useful if pages of a section
    change together (see ``waves``), or if a change makes the next one likelier (see ``age``).

    Reference: for the Gamma prior, G. Casella, *An Introduction to Empirical Bayes Data Analysis*, 1985; for estimating
    rates from "changed or not", J. Cho and H. Garcia-Molina, *Estimating Frequency of Change*, 2003.

    >>> ten = np.arange(10)
    >>> daily = KnownPages(ten, np.full(10, 86400.0), ten < 1, ten < 0, np.full(10, np.nan), before_s=np.zeros(10))
    >>> model = Pooled()
    >>> memory = model.learn(Memory.empty(model.page_width, model.group_width), daily)
    >>> chance = model.chance(memory, daily, np.full(10, 2 * 86400.0))
    >>> bool(chance[0] > chance[1] > 0)
    True
    """

    name: str = "pooled"
    page_width: int = PAGE_WIDTH
    group_width: int = GROUP_WIDTH

    def learn(self, memory: Memory, batch: KnownPages) -> Memory:
        """Count changes and time per page, and add the increase to the sums of its groups."""
        after, seen = memory.grow_for(batch), is_informative(batch)
        rows = page_rows(after, batch)
        known_d = announced_delay_d(batch)
        guessed_d = expected_time(self.distribution(memory, batch).mean, days_between(batch), batch.changed)
        time_d = np.where(np.isfinite(known_d), known_d, guessed_d)
        fresh = add_observations(rows, time_d, batch.changed, seen)
        add_to_groups(after.groups, batch, subtract_sums(rows, fresh), seen)
        after.pages[batch.place] = fresh
        return after

    def chance(self, memory: Memory, batch: KnownPages, at_s: Floats) -> Floats:
        """Return the change probability of each page, averaged over its possible pooled rates."""
        return to_chance(self.belief(memory, batch, at_s))

    def belief(self, memory: Memory, batch: KnownPages, at_s: Floats) -> Belief:
        """Return the belief about each page, averaged over its possible pooled rates."""
        return self.distribution(memory, batch).belief(days_since_fetch(batch, at_s))

    def rates(self, memory: Memory, batch: KnownPages) -> Rates:
        """Return the pooled change rates from each page's Gamma distribution."""
        return self.distribution(memory, batch).rates()

    def distribution(self, memory: Memory, batch: KnownPages) -> Gamma:
        """Return the Gamma distribution of each page's change rate, per day."""
        changes, time = page_rows(memory, batch).T
        return pooled_prior(memory.groups, batch, FIRST_MEAN).update(changes, time)
