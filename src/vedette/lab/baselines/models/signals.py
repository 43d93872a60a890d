"""Change signals (a sitemap's date, a feed, a ping), trusted by how often those of their site were right."""

from dataclasses import dataclass

from vedette.policy import Floats
from vedette.refresh.known_pages import KnownPages, Memory
from vedette.refresh.models.announced import COUNTS, Announcements, SignalQuality, is_announced
from vedette.refresh.models.base import Rates
from vedette.refresh.models.gamma import GROUP_WIDTH, PAGE_WIDTH
from vedette.refresh.models.pooled import Pooled
from vedette.refresh.models.rows import days_since_fetch, slice_memory

_RATE = Pooled()
_ANNOUNCED = Announcements()


@dataclass(frozen=True, slots=True)
class SignalModel:
    """Signal model: changes come at the page's rate D; a share r is signalled, and false signals come at a rate v.

        P(still fresh | t days, no signal)  = e^(-(1 - r) D t)
        P(still fresh | t days, a signal)   = e^(-(1 - r) D t) v / (r D + v)

    D is that of ``pooled``, r and v are counted by ``announced``. In ``chance``, a signal counts if it is after the
    last fetch and not after the given time.

    Useful if sites announce their changes. Not useful without signals: then it equals ``pooled``, up to a small
    expectation of a signal.

    Reference: R. Busa-Fekete et al., *Learning to Crawl with Noisy Change-Indicating Signals*, 2025.

    >>> import numpy as np
    >>> model = SignalModel()
    >>> page = KnownPages(np.arange(1), np.array([86400.0]), np.array([False]), np.array([False]), np.array([np.nan]),
    ...              before_s=np.zeros(1), signal_s=np.array([100000.0]))
    >>> memory = model.learn(Memory.empty(model.page_width, model.group_width), page)
    >>> before, after = (model.chance(memory, page, np.array([at_s])) for at_s in (99999.0, 100001.0))
    >>> bool(before[0] < after[0])
    True
    """

    name: str = "signals"
    page_width: int = PAGE_WIDTH
    group_width: int = GROUP_WIDTH + COUNTS
    rate: Pooled = _RATE
    announced: Announcements = _ANNOUNCED

    def learn(self, memory: Memory, batch: KnownPages) -> Memory:
        """Count which changes were signalled and which were not, and learn the pages' change rates."""
        after = memory.grow_for(batch)
        learned = self.rate.learn(self._rate_memory(memory), batch)
        after.groups[:, :GROUP_WIDTH] = learned.groups
        after.groups[:, GROUP_WIDTH:] = self.announced.learn(self._counts_memory(memory), batch).groups
        return Memory(learned.pages, after.groups)

    def chance(self, memory: Memory, batch: KnownPages, at_s: Floats) -> Floats:
        """Return the probability of change by the signal model, with the signals since the last fetch."""
        belief, worth = self.rate.distribution(self._rate_memory(memory), batch), self.estimate_quality(memory, batch)
        unheard = 1 - belief.chance(days_since_fetch(batch, at_s) * (1 - worth.recall))
        for_nothing = worth.false_d / (worth.recall * belief.mean + worth.false_d)
        for_nothing[~is_announced(batch, at_s)] = 1.0
        current: Floats = unheard * for_nothing
        return 1 - current

    def rates(self, memory: Memory, batch: KnownPages) -> Rates:
        """Return the rates of all changes, signalled or not, by the signal model."""
        return self.rate.rates(self._rate_memory(memory), batch)

    def estimate_quality(self, memory: Memory, batch: KnownPages) -> SignalQuality:
        """Estimate the quality of change signals of each page's site; a section has none of its own."""
        return self.announced.estimate_quality(self._counts_memory(memory), batch)

    def _rate_memory(self, memory: Memory) -> Memory:
        return slice_memory(memory, 0, self.rate.page_width, 0, self.rate.group_width)

    def _counts_memory(self, memory: Memory) -> Memory:
        return slice_memory(memory, 0, 0, GROUP_WIDTH, COUNTS)
