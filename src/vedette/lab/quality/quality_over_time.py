"""The quality of a repository while it is refreshed: a listener that follows a run and looks at it once a day.

It is told what every batch fetches (as ``refresh_run.refresh`` tells whoever listens), knows the rules of the game, and
so knows all copies. At the end of each day it works out the quality (eq. 4.5) as a share of that of current copies; the
mean of these is the quality of the run. Fetches that are made at such a moment count. Of a last day that is not whole
there is no look; a run of less than a day is looked at when it ends.
"""

from collections.abc import Iterator
from math import floor, nan

import numpy as np

from vedette.lab.quality.quality import Standing
from vedette.lab.quality.workload_part import Workload
from vedette.lab.worlds.history import History
from vedette.policy import Ints

__all__ = ["QualityOverTime", "looks_s"]

DAY_S = 86_400.0


class QualityOverTime:
    """Follows a run from its begin to its end; ``shares`` has the quality at each moment that is over and counts.

    What is before ``measured_s`` does not count.
    """

    def __init__(
        self, history: History, workload: Workload, begin_s: float, end_s: float, measured_s: float | None = None
    ) -> None:
        self._history = history
        first_s = begin_s if measured_s is None else measured_s
        self._left_s = [at_s for at_s in looks_s(begin_s, end_s) if at_s > first_s or at_s == end_s][::-1]
        self._every = np.arange(history.pages)
        self._copy = history.version_at(self._every, begin_s)
        self._live = self._copy.copy()
        self._counted = self._copy.copy()
        self._first = history.first_version
        self._born = int(np.searchsorted(history.born_s, begin_s, side="right"))
        self._standing = Standing(workload, self._copy, self._live)
        self.shares: list[float] = []

    def decided(self, now_s: float, pages: Ints) -> None:
        """These pages are fetched now; batches come in the order of time."""
        while self._left_s and self._left_s[-1] < now_s:
            self._look(self._left_s.pop())
        self._meet_newborn(now_s)
        self._copy[pages] = self._history.version_at(pages, now_s)

    def mean(self) -> float:
        """The mean over all moments, once the run is over."""
        return self.means(1)[0]

    def means(self, parts: int) -> list[float]:
        """The same for so many parts of the time, of which each has its share of the moments."""
        while self._left_s:
            self._look(self._left_s.pop())
        return [float(np.mean(part)) if len(part) else nan for part in np.array_split(self.shares, parts)]

    def _meet_newborn(self, now_s: float) -> None:
        """A page is known from its birth on, with a copy of that moment; pages are numbered by birth."""
        end = int(np.searchsorted(self._history.born_s, now_s, side="right"))
        self._copy[self._born : end] = self._first[self._born : end]
        self._born = end

    def _look(self, now_s: float) -> None:
        self._meet_newborn(now_s)
        live = self._history.version_at(self._every, now_s)
        changed, fetched = np.flatnonzero(live != self._live), np.flatnonzero(self._copy != self._counted)
        self._standing.changed(changed, live[changed])
        self._standing.fetched(fetched, self._copy[fetched])
        self._live, self._counted = live, self._copy.copy()
        self.shares.append(self._standing.share())


def looks_s(begin_s: float, end_s: float) -> Iterator[float]:
    """The moments at which a run is looked at.

    >>> list(looks_s(0.0, 200_000.0)), list(looks_s(0.0, 50.0))
    ([86400.0, 172800.0], [50.0])
    """
    days = floor((end_s - begin_s) / DAY_S)
    yield from (begin_s + day * DAY_S for day in range(1, days + 1))
    if not days:
        yield end_s
