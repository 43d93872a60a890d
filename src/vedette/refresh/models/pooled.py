"""Rates shrunk to those of their section, their site and everything: the empirical Bayes form of a memoryless page."""

from dataclasses import dataclass

from vedette.policy import Floats
from vedette.refresh.known_pages import KnownPages, Memory
from vedette.refresh.models.base import Rates
from vedette.refresh.models.gamma import (
    GROUP_WIDTH,
    PAGE_WIDTH,
    Gamma,
    add_observations,
    expected_time,
    pooled_prior,
    subtract_sums,
)
from vedette.refresh.models.rows import add_to_groups, days_between, days_since_fetch, is_informative, page_rows

FIRST_MEAN = 1 / 30  # changes a day, where nothing has been seen at all


@dataclass(frozen=True, slots=True)
class Pooled:
    """A page changes at a rate of its own, which is drawn from those of its group; see ``gamma``.

    A page's row is its changes and the days over which they were looked for. A look that finds a change counts one
    change and the time until it, as expected by what was known before the look: of several changes between two looks
    one is seen.

    Useful for nearly all pages: most have too few looks to say anything of themselves. Not useful where pages of a
    section change together (see ``waves``), or where a change makes the next one likelier (see ``ageing``).

    Reference: for the Gamma prior, G. Casella, *An Introduction to Empirical Bayes Data Analysis*, 1985; for what one
    learns of rates from "changed or not", J. Cho and H. Garcia-Molina, *Estimating Frequency of Change*, 2003.

    >>> import numpy as np
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
        """Count changes and time for the page, and what its groups' sums grow by."""
        after, seen = memory.grow_for(batch), is_informative(batch)
        rows = page_rows(after, batch)
        time_d = expected_time(self.belief(memory, batch).mean, days_between(batch), batch.changed)
        fresh = add_observations(rows, time_d, batch.changed, seen)
        add_to_groups(after.groups, batch, subtract_sums(rows, fresh), seen)
        after.pages[batch.place] = fresh
        return after

    def chance(self, memory: Memory, batch: KnownPages, at_s: Floats) -> Floats:
        """By all rates that the page may have."""
        return self.belief(memory, batch).chance(days_since_fetch(batch, at_s))

    def rates(self, memory: Memory, batch: KnownPages) -> Rates:
        """Of the Gamma distribution that is believed."""
        return self.belief(memory, batch).rates()

    def belief(self, memory: Memory, batch: KnownPages) -> Gamma:
        """What is believed of each page's rate, in changes a day."""
        changes, time = page_rows(memory, batch).T
        return pooled_prior(memory.groups, batch, FIRST_MEAN).update(changes, time)
