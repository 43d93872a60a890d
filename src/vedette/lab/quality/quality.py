"""How good a repository is for those who search it: the quality Q of Pandey08, eq. 4.5, exactly.

    Q(L) = sum_q f_q sum_p I(R(p, A(q, L))) S(W[p], q)   as a share of the same for L = W

A query is answered out of the *local* copies, which may be old: they decide the rank of a page. People view a result
with the probability of its rank (``vedette.attention``), and find there what the page says *now*. So

- a page that got better stands too low, one that got worse too high;
- a page that has died holds its rank, and is worth nothing;
- a page that is not in the repository is not listed. In the ideal it counts all the same, as in the equation; with
  ``undiscovered=False`` the ideal is that of the pages that the repository has: what refreshing alone can reach.

What is local and what is live is given as the version of each page, below 0 for none. The ideal does not depend on how
ties are broken; the quality does.
"""

from collections.abc import Iterator
from math import floor, nan

import numpy as np

from vedette.attention import visibility
from vedette.lab.quality.corpus import concat_ranges
from vedette.lab.quality.workload import TieBreak, Workload, compute_slot_scores, rank_results
from vedette.lab.worlds.history import History
from vedette.policy import Floats, Ints
from vedette.timeutil import DAY_S


def compute_quality(local: Ints, live: Ints, workload: Workload, ties: TieBreak = TieBreak.OLDER_FIRST) -> float:
    """What people find, all queries together, before it is put in relation to the ideal (eq. 4.3)."""
    return _weighted_sum(
        workload,
        query_utilities(workload, compute_slot_scores(workload, local), compute_slot_scores(workload, live), ties),
    )


def ideal_quality(live: Ints, workload: Workload) -> float:
    """What they would find if every copy were current and no page unknown (eq. 4.4)."""
    return compute_quality(live, live, workload)


def relative_quality(
    local: Ints, live: Ints, workload: Workload, ties: TieBreak = TieBreak.OLDER_FIRST, *, undiscovered: bool = True
) -> float:
    """The quality between 0 and 1 (eq. 4.5). Where the web answers no query, nothing is missed: 1."""
    best = ideal_quality(live if undiscovered else _restrict_to_known(local, live), workload)
    return compute_quality(local, live, workload, ties) / best if best else 1.0


def query_utilities(
    workload: Workload, local: Floats, live: Floats, ties: TieBreak = TieBreak.OLDER_FIRST, queries: Ints | None = None
) -> Floats:
    """What each query brings: its results in the order of local scores, weighed by viewing and by live scores."""
    asked = np.arange(workload.queries) if queries is None else queries
    lists = rank_results(workload, local, asked, ties)
    # bincount adds in the order of the list, so a query brings the same to the last bit whoever is asked with it.
    brought: Floats = np.bincount(lists.row, visibility(lists.rank) * live[lists.slot], len(asked)).astype(np.float64)
    return brought


class QualityTracker:
    """The quality of a repository while it and the web change: only queries that a change touches are worked out again.

    It says what ``relative_quality`` would say, to the last bit.
    """

    def __init__(
        self,
        workload: Workload,
        local: Ints,
        live: Ints,
        ties: TieBreak = TieBreak.OLDER_FIRST,
        *,
        undiscovered: bool = True,
    ) -> None:
        self._workload, self._ties, self._undiscovered = workload, ties, undiscovered
        self._local, self._live = ScoredVersions(workload, local), ScoredVersions(workload, live)
        self._best = ScoredVersions(workload, live if undiscovered else _restrict_to_known(local, live))
        self._found, self._findable = np.zeros(workload.queries), np.zeros(workload.queries)
        self._found_stale, self._findable_stale = np.ones(workload.queries, bool), np.ones(workload.queries, bool)

    def update_copies(self, pages: Ints, versions: Ints) -> None:
        """These pages (each once) have other copies now; below 0, none any more."""
        self._found_stale[self._local.update(pages, versions)] = True
        self._update_best(pages)

    def update_live(self, pages: Ints, versions: Ints) -> None:
        """These pages (each once) say something else now; below 0, they have died."""
        self._found_stale[self._live.update(pages, versions)] = True
        self._update_best(pages)

    def quality(self) -> float:
        """As ``compute_quality``."""
        stale = np.flatnonzero(self._found_stale)
        local, live = self._local.scores, self._live.scores
        self._found[stale] = query_utilities(self._workload, local, live, self._ties, stale)
        self._found_stale[stale] = False
        return _weighted_sum(self._workload, self._found)

    def ideal(self) -> float:
        """As ``ideal``, for the pages that count."""
        stale = np.flatnonzero(self._findable_stale)
        best = self._best.scores
        self._findable[stale] = query_utilities(self._workload, best, best, queries=stale)
        self._findable_stale[stale] = False
        return _weighted_sum(self._workload, self._findable)

    def relative_quality(self) -> float:
        """As ``relative_quality``."""
        best = self.ideal()
        return self.quality() / best if best else 1.0

    def _update_best(self, pages: Ints) -> None:
        live = self._live.versions[pages]
        versions = live if self._undiscovered else _restrict_to_known(self._local.versions[pages], live)
        self._findable_stale[self._best.update(pages, versions)] = True


class ScoredVersions:
    """Versions of all pages and the scores that follow from them."""

    def __init__(self, workload: Workload, versions: Ints) -> None:
        self._workload = workload
        self.versions = versions.copy()
        self.scores = compute_slot_scores(workload, versions)

    def update(self, pages: Ints, versions: Ints) -> Ints:
        """Other versions for some pages; returned are the queries for which a score is another now."""
        old = self._find_matches(self.versions[pages])
        new = self._find_matches(versions)
        slots = np.unique(self._workload.match_slot[np.concatenate((old, new))])
        before = self.scores[slots]
        self.scores[self._workload.match_slot[old]] = 0.0
        self.scores[self._workload.match_slot[new]] = self._workload.match_score[new]
        self.versions[pages] = versions
        touched: Ints = self._workload.slot_query[slots[self.scores[slots] != before]]
        return touched

    def _find_matches(self, versions: Ints) -> Ints:
        held = versions[versions >= 0]
        return concat_ranges(self._workload.match_start[held], self._workload.match_start[held + 1])


def _restrict_to_known(local: Ints, live: Ints) -> Ints:
    """What is live of the pages that have a copy."""
    return np.where(local >= 0, live, -1)


def _weighted_sum(workload: Workload, values: Floats) -> float:
    return float((workload.frequency * values).sum())


# It is told what every batch fetches (as ``refresh_run.refresh`` tells whoever listens), knows the rules of the game,
# and so knows all copies. At the end of each day it works out the quality (eq. 4.5) as a share of that of current
# copies; the mean of these is the quality of the run. Fetches that are made at such a moment count. Of a last day
# that is not whole there is no look; a run of less than a day is looked at when it ends.


class QualityMonitor:
    """Follows a run from its begin to its end; ``shares`` has the quality at each moment that is over and counts.

    What is before ``measured_s`` does not count.
    """

    def __init__(
        self, history: History, workload: Workload, begin_s: float, end_s: float, measured_s: float | None = None
    ) -> None:
        self._history = history
        first_s = begin_s if measured_s is None else measured_s
        self._left_s = [at_s for at_s in measuring_times(begin_s, end_s) if at_s > first_s or at_s == end_s][::-1]
        self._every = np.arange(history.pages)
        self._copy = history.version_at(self._every, begin_s)
        self._live = self._copy.copy()
        self._counted = self._copy.copy()
        self._first = history.first_version
        self._born = int(np.searchsorted(history.born_s, begin_s, side="right"))
        self._quality = QualityTracker(workload, self._copy, self._live)
        self.shares: list[float] = []

    def on_batch(self, now_s: float, pages: Ints) -> None:
        """These pages are fetched now; batches come in the order of time."""
        while self._left_s and self._left_s[-1] < now_s:
            self._measure(self._left_s.pop())
        self._add_newborn(now_s)
        self._copy[pages] = self._history.version_at(pages, now_s)

    def compute_mean(self) -> float:
        """The mean over all moments, once the run is over."""
        return self.compute_means(1)[0]

    def compute_means(self, parts: int) -> list[float]:
        """The same for so many parts of the time, of which each has its share of the moments."""
        while self._left_s:
            self._measure(self._left_s.pop())
        return [float(np.mean(part)) if len(part) else nan for part in np.array_split(self.shares, parts)]

    def _add_newborn(self, now_s: float) -> None:
        """A page is known from its birth on, with a copy of that moment; pages are numbered by birth."""
        end = int(np.searchsorted(self._history.born_s, now_s, side="right"))
        self._copy[self._born : end] = self._first[self._born : end]
        self._born = end

    def _measure(self, now_s: float) -> None:
        self._add_newborn(now_s)
        live = self._history.version_at(self._every, now_s)
        changed, fetched = np.flatnonzero(live != self._live), np.flatnonzero(self._copy != self._counted)
        self._quality.update_live(changed, live[changed])
        self._quality.update_copies(fetched, self._copy[fetched])
        self._live, self._counted = live, self._copy.copy()
        self.shares.append(self._quality.relative_quality())


def measuring_times(begin_s: float, end_s: float) -> Iterator[float]:
    """The moments at which a run is looked at.

    >>> list(measuring_times(0.0, 200_000.0)), list(measuring_times(0.0, 50.0))
    ([86400.0, 172800.0], [50.0])
    """
    days = floor((end_s - begin_s) / DAY_S)
    yield from (begin_s + day * DAY_S for day in range(1, days + 1))
    if not days:
        yield end_s
