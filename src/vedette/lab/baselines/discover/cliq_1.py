"""CLIQ-1: one page for each cluster of pages with the same new links at the latest full crawl."""

from dataclasses import dataclass

from vedette.lab.baselines.discover.cliq_win import CliqWin


@dataclass(frozen=True, slots=True)
class Cliq1(CliqWin):
    """``cliq-win`` without a memory: only clusters of the latest full crawl that found anything.

    Useful to see what overlap is worth without memory. Not useful otherwise, as ``od-1``.

    Reference: Pandey08, sections 3.6.2 and 3.6.4.

    >>> Cliq1().remembers, Cliq1().likeness
    (False, 0.2)
    """

    name: str = "cliq-1"
    remembers: bool = False
