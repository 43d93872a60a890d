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

import numpy as np

from vedette.attention import visibility
from vedette.lab.quality.corpus import ranges
from vedette.lab.quality.workload_part import Ties, Workload, result_lists, slot_scores
from vedette.policy import Floats, Ints

__all__ = ["Side", "Standing", "ideal", "quality_of", "share_of_ideal", "usefulness"]


def quality_of(local: Ints, live: Ints, workload: Workload, ties: Ties = Ties.OLDER_FIRST) -> float:
    """What people find, all queries together, before it is put in relation to the ideal (eq. 4.3)."""
    return _total(workload, usefulness(workload, slot_scores(workload, local), slot_scores(workload, live), ties))


def ideal(live: Ints, workload: Workload) -> float:
    """What they would find if every copy were current and no page unknown (eq. 4.4)."""
    return quality_of(live, live, workload)


def share_of_ideal(
    local: Ints, live: Ints, workload: Workload, ties: Ties = Ties.OLDER_FIRST, *, undiscovered: bool = True
) -> float:
    """The quality between 0 and 1 (eq. 4.5). Where the web answers no query, nothing is missed: 1."""
    best = ideal(live if undiscovered else _known(local, live), workload)
    return quality_of(local, live, workload, ties) / best if best else 1.0


def usefulness(
    workload: Workload, local: Floats, live: Floats, ties: Ties = Ties.OLDER_FIRST, queries: Ints | None = None
) -> Floats:
    """What each query brings: its results in the order of local scores, weighed by viewing and by live scores."""
    asked = np.arange(workload.queries) if queries is None else queries
    lists = result_lists(workload, local, asked, ties)
    # bincount adds in the order of the list, so a query brings the same to the last bit whoever is asked with it.
    brought: Floats = np.bincount(lists.row, visibility(lists.rank) * live[lists.slot], len(asked)).astype(np.float64)
    return brought


class Standing:
    """The quality of a repository while it and the web change: only queries that a change touches are worked out again.

    It says what ``share_of_ideal`` would say, to the last bit.
    """

    def __init__(
        self,
        workload: Workload,
        local: Ints,
        live: Ints,
        ties: Ties = Ties.OLDER_FIRST,
        *,
        undiscovered: bool = True,
    ) -> None:
        self._workload, self._ties, self._undiscovered = workload, ties, undiscovered
        self._local, self._live = Side(workload, local), Side(workload, live)
        self._best = Side(workload, live if undiscovered else _known(local, live))
        self._found, self._findable = np.zeros(workload.queries), np.zeros(workload.queries)
        self._found_stale, self._findable_stale = np.ones(workload.queries, bool), np.ones(workload.queries, bool)

    def fetched(self, pages: Ints, versions: Ints) -> None:
        """These pages (each once) have other copies now; below 0, none any more."""
        self._found_stale[self._local.put(pages, versions)] = True
        self._renew_best(pages)

    def changed(self, pages: Ints, versions: Ints) -> None:
        """These pages (each once) say something else now; below 0, they have died."""
        self._found_stale[self._live.put(pages, versions)] = True
        self._renew_best(pages)

    def quality(self) -> float:
        """As ``quality_of``."""
        stale = np.flatnonzero(self._found_stale)
        local, live = self._local.scores, self._live.scores
        self._found[stale] = usefulness(self._workload, local, live, self._ties, stale)
        self._found_stale[stale] = False
        return _total(self._workload, self._found)

    def ideal(self) -> float:
        """As ``ideal``, for the pages that count."""
        stale = np.flatnonzero(self._findable_stale)
        best = self._best.scores
        self._findable[stale] = usefulness(self._workload, best, best, queries=stale)
        self._findable_stale[stale] = False
        return _total(self._workload, self._findable)

    def share(self) -> float:
        """As ``share_of_ideal``."""
        best = self.ideal()
        return self.quality() / best if best else 1.0

    def _renew_best(self, pages: Ints) -> None:
        live = self._live.versions[pages]
        versions = live if self._undiscovered else _known(self._local.versions[pages], live)
        self._findable_stale[self._best.put(pages, versions)] = True


class Side:
    """Versions of all pages and the scores that follow from them."""

    def __init__(self, workload: Workload, versions: Ints) -> None:
        self._workload = workload
        self.versions = versions.copy()
        self.scores = slot_scores(workload, versions)

    def put(self, pages: Ints, versions: Ints) -> Ints:
        """Other versions for some pages; returned are the queries for which a score is another now."""
        old = self._matches(self.versions[pages])
        new = self._matches(versions)
        slots = np.unique(self._workload.match_slot[np.concatenate((old, new))])
        before = self.scores[slots]
        self.scores[self._workload.match_slot[old]] = 0.0
        self.scores[self._workload.match_slot[new]] = self._workload.match_score[new]
        self.versions[pages] = versions
        touched: Ints = self._workload.slot_query[slots[self.scores[slots] != before]]
        return touched

    def _matches(self, versions: Ints) -> Ints:
        held = versions[versions >= 0]
        return ranges(self._workload.match_start[held], self._workload.match_start[held + 1])


def _known(local: Ints, live: Ints) -> Ints:
    """What is live of the pages that have a copy."""
    return np.where(local >= 0, live, -1)


def _total(workload: Workload, values: Floats) -> float:
    return float((workload.frequency * values).sum())
