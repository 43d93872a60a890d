"""Search quality of a repository of copies: the quality Q of Pandey08, eq. 4.5, exactly, and over the time of a run.

    Q(L) = sum_q f_q sum_p I(R(p, A(q, L))) S(W[p], q)   as a share of the same for L = W

A query is answered from the *local* copies, which may be old: they decide the rank of a page. People view a result with
the probability of its rank (``vedette.attention``), and find there what the page contains *now*. So

- a page that got better ranks too low, one that got worse too high;
- a page that has died keeps its rank, and is worth nothing;
- a page that is not in the repository is not listed. In the ideal it counts all the same, as in the equation; with
  ``undiscovered=False`` the ideal is that of the pages in the repository: what refreshing alone can reach.

Local and live state are given as the version of each page, below 0 for none. The ideal does not depend on how ties are
broken; the quality does.
"""

from collections.abc import Iterator
from math import nan

import numpy as np

from vedette.attention import visibility
from vedette.lab.core.experiment import step_times
from vedette.lab.quality.workload import TieBreak, Workload, compute_slot_scores, rank_results
from vedette.lab.worlds.history import History
from vedette.policy import Floats, Ints
from vedette.timeutil import DAY_S


def compute_quality(local: Ints, live: Ints, workload: Workload, ties: TieBreak = TieBreak.OLDER_FIRST) -> float:
    """Compute the absolute search quality of local copies over all queries (eq. 4.3)."""
    return _weighted_sum(
        workload,
        query_utilities(workload, compute_slot_scores(workload, local), compute_slot_scores(workload, live), ties),
    )


def ideal_quality(live: Ints, workload: Workload) -> float:
    """Compute the ideal search quality, with every copy current and no page unknown (eq. 4.4)."""
    return compute_quality(live, live, workload)


def relative_quality(
    local: Ints, live: Ints, workload: Workload, ties: TieBreak = TieBreak.OLDER_FIRST, *, undiscovered: bool = True
) -> float:
    """Compute the search quality between 0 and 1 (eq. 4.5); 1 if the web answers no query."""
    best = ideal_quality(live if undiscovered else _restrict_to_known(local, live), workload)
    return compute_quality(local, live, workload, ties) / best if best else 1.0


def query_utilities(
    workload: Workload, local: Floats, live: Floats, ties: TieBreak = TieBreak.OLDER_FIRST, queries: Ints | None = None
) -> Floats:
    """Compute the utility of each query: its results ranked by local scores, weighted by views and by live scores."""
    rows = np.arange(workload.queries) if queries is None else queries
    lists = rank_results(workload, local, rows, ties)
    # bincount adds in list order, so a query has the same value to the last bit in any set of queries.
    brought: Floats = np.bincount(lists.row, visibility(lists.rank) * live[lists.slot], len(rows)).astype(np.float64)
    return brought


class QualityTracker:
    """Tracker of search quality while copies and the web change; only queries that a change touches are recomputed.

    It equals ``relative_quality``, to the last bit.
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
        """Update the local copies of these pages (each once) and mark the affected queries; below 0 for no copy."""
        self._found_stale[self._local.update(pages, versions)] = True
        self._update_best(pages)

    def update_live(self, pages: Ints, versions: Ints) -> None:
        """Update the live versions of these pages (each once) and mark the affected queries; below 0 for dead pages."""
        self._found_stale[self._live.update(pages, versions)] = True
        self._update_best(pages)

    def quality(self) -> float:
        """Return the current absolute search quality, as ``compute_quality`` does."""
        stale = np.flatnonzero(self._found_stale)
        local, live = self._local.scores, self._live.scores
        self._found[stale] = query_utilities(self._workload, local, live, self._ties, stale)
        self._found_stale[stale] = False
        return _weighted_sum(self._workload, self._found)

    def ideal(self) -> float:
        """Return the current ideal search quality, as ``ideal_quality`` does, for the pages that count."""
        stale = np.flatnonzero(self._findable_stale)
        best = self._best.scores
        self._findable[stale] = query_utilities(self._workload, best, best, queries=stale)
        self._findable_stale[stale] = False
        return _weighted_sum(self._workload, self._findable)

    def relative_quality(self) -> float:
        """Return the current search quality between 0 and 1, as ``relative_quality`` does."""
        best = self.ideal()
        return self.quality() / best if best else 1.0

    def _update_best(self, pages: Ints) -> None:
        live = self._live.versions[pages]
        versions = live if self._undiscovered else _restrict_to_known(self._local.versions[pages], live)
        self._findable_stale[self._best.update(pages, versions)] = True


class ScoredVersions:
    """Versions of all pages, and the scores in query slots that follow from them."""

    def __init__(self, workload: Workload, versions: Ints) -> None:
        self._workload = workload
        self.versions = versions.copy()
        self.scores = compute_slot_scores(workload, versions)

    def update(self, pages: Ints, versions: Ints) -> Ints:
        """Set new versions of some pages; return the queries for which a score changed."""
        old, new = self._workload.find_matches(self.versions[pages]), self._workload.find_matches(versions)
        slots = np.unique(self._workload.match_slot[np.concatenate((old, new))])
        before = self.scores[slots]
        self.scores[self._workload.match_slot[old]] = 0.0
        self.scores[self._workload.match_slot[new]] = self._workload.match_score[new]
        self.versions[pages] = versions
        touched: Ints = self._workload.slot_query[slots[self.scores[slots] != before]]
        return touched


def _restrict_to_known(local: Ints, live: Ints) -> Ints:
    """Return the live versions of the pages that have a local copy; none for the others."""
    return np.where(local >= 0, live, -1)


def _weighted_sum(workload: Workload, values: Floats) -> float:
    return float((workload.frequency * values).sum())


# The monitor gets the fetches of every batch (``runs.refresh.run`` calls ``on_batch``), and so knows all copies. At the
# end of each day it measures the quality (eq. 4.5) as a share of that of current copies; the mean of these is the
# quality of the run. Fetches made at such a moment count. An incomplete last day is not measured; a run of less than a
# day is measured at its end.


class QualityMonitor:
    """Monitor of search quality during a run; ``shares`` has the quality at each measured time.

    Times before ``measured_s`` do not count.
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
        """Update the search quality with the pages fetched at this time; batches come in order of time."""
        while self._left_s and self._left_s[-1] < now_s:
            self._measure(self._left_s.pop())
        self._add_newborn(now_s)
        self._copy[pages] = self._history.version_at(pages, now_s)

    def compute_mean(self) -> float:
        """Return the mean search quality over all measuring times, once the run has ended."""
        return self.compute_means(1)[0]

    def compute_means(self, parts: int) -> list[float]:
        """Return the mean search quality of each of ``parts`` equal parts of the run."""
        while self._left_s:
            self._measure(self._left_s.pop())
        return [float(np.mean(part)) if len(part) else nan for part in np.array_split(self.shares, parts)]

    def _add_newborn(self, now_s: float) -> None:
        """Add the pages born since the last batch, with a copy of their birth; pages are numbered by birth."""
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
    """Yield the times at which search quality is measured: each day, or the end of a run of less than a day.

    >>> list(measuring_times(0.0, 200_000.0)), list(measuring_times(0.0, 50.0))
    ([86400.0, 172800.0], [50.0])
    """
    yield from step_times(begin_s, end_s, DAY_S)
    if end_s - begin_s < DAY_S:
        yield end_s
