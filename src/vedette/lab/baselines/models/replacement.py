"""Replacement model of page change: a page leaves the content of its copy, and may come back to it."""

from dataclasses import dataclass

import numpy as np

from vedette.policy import Floats
from vedette.refresh.known_pages import KnownPages, Memory
from vedette.refresh.models.base import Rates
from vedette.refresh.models.gamma import GROUP_WIDTH, PAGE_WIDTH
from vedette.refresh.models.pooled import Pooled
from vedette.refresh.models.rows import days_between, days_since_fetch, is_informative, slice_memory
from vedette.refresh.models.trust import get_weights, log_scores, update_weights

# The share of pages that would differ from an old copy forever; 1: none ever comes back.
SHARES = (1.0, 0.8, 0.6, 0.4)
_RATE = Pooled()


@dataclass(frozen=True, slots=True)
class Replacement:
    """Two states, "as the copy" and "changed"; the first is left at the page's rate D, and regained at a rate m.

        chance of "changed" after t days = share (1 - e^(-D t / share))        share = D / (D + m)

    With share = 1 nothing comes back: the replacement model of Observe99, whose changed state ends only with a fetch.
    Other shares are also tried on every group, and trusted by their accuracy. Rates are those of ``pooled``.

    Useful for pages with rotating content (boxes that rotate, a banner that comes and goes) and if edits are undone.
    Not useful if content never repeats.

    Reference: Observe99, section 2.2, after R. Howard, *Dynamic Programming and Markov Processes*, 1960.

    >>> model = Replacement()
    >>> daily = KnownPages(np.arange(1), np.array([86400.0]), np.array([True]), np.array([False]), np.array([np.nan]),
    ...               before_s=np.zeros(1))
    >>> memory = model.learn(Memory.empty(model.page_width, model.group_width), daily)
    >>> bool(0 < model.chance(memory, daily, np.array([2 * 86400.0]))[0] < 1)
    True
    """

    name: str = "replacement"
    page_width: int = PAGE_WIDTH
    group_width: int = GROUP_WIDTH + 1 + len(SHARES)
    rate: Pooled = _RATE

    def learn(self, memory: Memory, batch: KnownPages) -> Memory:
        """Weigh the replacement model's shares by how well they predicted each fetch, and learn the pages' rates."""
        after = memory.grow_for(batch)
        chances = self._chances(memory, batch, days_between(batch))
        update_weights(after.groups[:, GROUP_WIDTH:], batch, log_scores(chances, batch.changed), is_informative(batch))
        learned = self.rate.learn(self._rate_memory(memory), batch)
        after.groups[:, :GROUP_WIDTH] = learned.groups
        return Memory(learned.pages, after.groups)

    def chance(self, memory: Memory, batch: KnownPages, at_s: Floats) -> Floats:
        """Return the probability of change by the replacement model: the mean over all shares, by their weights."""
        chances = self._chances(memory, batch, days_since_fetch(batch, at_s))
        chance: Floats = (get_weights(memory.groups[:, GROUP_WIDTH:], batch) * chances).sum(axis=1)
        return chance

    def rates(self, memory: Memory, batch: KnownPages) -> Rates:
        """Return the rates at which pages leave their copy's content, by the replacement model."""
        return self.rate.rates(self._rate_memory(memory), batch)

    def _rate_memory(self, memory: Memory) -> Memory:
        return slice_memory(memory, 0, self.rate.page_width, 0, self.rate.group_width)

    def _chances(self, memory: Memory, batch: KnownPages, wait_d: Floats) -> Floats:
        belief = self.rate.distribution(self._rate_memory(memory), batch)
        return np.stack([share * belief.chance(wait_d / share) for share in SHARES], axis=1)
