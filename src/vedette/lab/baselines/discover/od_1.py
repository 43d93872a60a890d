"""OD-1: poll the pages that led to most new pages at the latest full crawl."""

from dataclasses import dataclass

from vedette.lab.baselines.discover.od_win import OdWin


@dataclass(frozen=True, slots=True)
class Od1(OdWin):
    """``od-win`` without a memory: only the latest full crawl that found anything counts, which is alpha = 0.

    Useful to see what memory is worth. Not useful otherwise: pages that lead to something new this week are mostly
    different from last week's.

    Reference: Pandey08, section 3.6.4.

    >>> import numpy as np
    >>> from vedette.discover.polling.sources import PollResults, PollHistory
    >>> book, one, policy = PollHistory(np.zeros(2, np.int64)), np.array([True]), Od1()
    >>> state = policy.start(None)
    >>> for place in (0, 1):
    ...     came = PollResults(np.array([place]), one, np.array([0, 1]), np.array([place]), one)
    ...     state = policy.observe(state, book.record(came, 60.0), 60.0)
    >>> state.tolist()
    [0.0, 1.0]
    """

    name: str = "od-1"
    alpha: float = 0.0
