"""Signals that a page has changed (a sitemap's date, a feed, a ping), trusted as far as their site's proved right."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from vedette.decide import Floats
from vedette.refresh.known import Known, Memory
from vedette.refresh.model import Rates
from vedette.refresh.models.gamma import ROW, SUMS
from vedette.refresh.models.pooled import Pooled
from vedette.refresh.models.rows import gap_d, group_rows, inner, levels, tallied, told, waited_d

__all__ = ["Signals", "Worth"]

COUNTS = 4
_WEIGHT = 2.0  # looks of its own that outweigh what is said of the group above
_FIRST_RECALL = 0.02
_FIRST_FALSE = 1 / 365


class Worth(NamedTuple):
    """What signals of a page's site are worth: the share of changes that they tell, and false ones a day."""

    recall: Floats
    false_d: Floats


_RATE = Pooled()


@dataclass(frozen=True, slots=True)
class Signals:
    """Changes come at the page's rate D; a share r of them is signalled, and signals come for nothing at a rate v.

        P(still fresh | t days, no signal)  = e^(-(1 - r) D t)
        P(still fresh | t days, a signal)   = e^(-(1 - r) D t) v / (r D + v)

    D is that of ``pooled``. For each site it is counted how often looks that found a change had been announced, and how
    often those that found none. In ``learn``, ``signal_s`` belongs to the look if it lies between its fetch and the one
    before; in ``chance``, if it lies after the last fetch and not after the time in question. Only the last signal is
    known, so several count as one.

    Useful where sites announce what they change. Not useful without signals: then it is ``pooled``, up to a small
    expectation that they might have told.

    Reference: R. Busa-Fekete et al., *Learning to Crawl with Noisy Change-Indicating Signals*, 2025.

    >>> model = Signals()
    >>> page = Known(np.arange(1), np.array([86400.0]), np.array([False]), np.array([False]), np.array([np.nan]),
    ...              before_s=np.zeros(1), signal_s=np.array([100000.0]))
    >>> memory = model.learn(Memory.empty(model.page_width, model.group_width), page)
    >>> before, after = (model.chance(memory, page, np.array([at_s])) for at_s in (99999.0, 100001.0))
    >>> bool(before[0] < after[0])
    True
    """

    name: str = "signals"
    page_width: int = ROW
    group_width: int = SUMS + COUNTS
    rate: Pooled = _RATE

    def learn(self, memory: Memory, batch: Known) -> Memory:
        """Count what was announced and what was not, for page, site and everything."""
        after, seen = memory.reaching(batch), told(batch)
        signalled = (batch.signal_s > batch.before_s) & (batch.signal_s <= batch.last_fetch_s)
        gap, changed = gap_d(batch), batch.changed
        counts = np.stack([changed, changed & signalled, np.where(changed, 0.0, gap), ~changed & signalled], axis=1)
        tallied(after.groups[:, SUMS:], batch, counts.astype(np.float64), seen)
        learned = self.rate.learn(self._of_rate(memory), batch)
        after.groups[:, :SUMS] = learned.groups
        return Memory(learned.pages, after.groups)

    def chance(self, memory: Memory, batch: Known, at_s: Floats) -> Floats:
        """With what has been announced since the last fetch."""
        belief, worth = self.rate.belief(self._of_rate(memory), batch), self.worth(memory, batch)
        unheard = 1 - belief.chance(waited_d(batch, at_s) * (1 - worth.recall))
        heard = (batch.signal_s > batch.last_fetch_s) & (batch.signal_s <= at_s)
        for_nothing = worth.false_d / (worth.recall * belief.mean + worth.false_d)
        return 1 - unheard * np.where(heard, for_nothing, 1.0)

    def rates(self, memory: Memory, batch: Known) -> Rates:
        """Of all changes, announced or not."""
        return self.rate.rates(self._of_rate(memory), batch)

    def worth(self, memory: Memory, batch: Known) -> Worth:
        """What the signals of each page's site are worth; a section has none of its own."""
        recall, false_d = np.full(len(batch), _FIRST_RECALL), np.full(len(batch), _FIRST_FALSE)
        for numbers, apart in list(levels(batch))[:2]:
            changed, told_of, days, wrong = group_rows(memory.groups[:, SUMS:], numbers).T
            recall = np.where(apart, (told_of + _WEIGHT * recall) / (changed + _WEIGHT), recall)
            false_d = np.where(apart, (wrong + _WEIGHT) / (days + _WEIGHT / false_d), false_d)
        return Worth(recall, false_d)

    def _of_rate(self, memory: Memory) -> Memory:
        return inner(memory, 0, self.rate.page_width, 0, self.rate.group_width)
