"""``bound-delta-q``: fetch what does most for those who search, if it were known what every page says now.

At each decision it takes, one after the other, the page whose fetch brings the largest change in quality (eq. 4.6 of
Pandey08), exactly: by the ranks of copies and what all pages say at that moment. A fetch that it has taken counts for
the next. Where the budget reaches for all pages that anybody's results depend on, it takes them all.

It is greedy and myopic, and no optimum: it sees the present and nothing of the future, so it fetches a page that is to
change again in an hour; and it does not see that two fetches may bring much which alone bring nothing. What brings
nothing is not fetched: the budget is kept for the next wave. So its copies of pages that no query finds grow old, and
its freshness says little.
"""

import numpy as np

from vedette.lab.quality.change import compute_slot_gains
from vedette.lab.quality.corpus import concat_ranges
from vedette.lab.quality.quality import ScoredVersions
from vedette.lab.quality.workload import Workload
from vedette.lab.worlds.history import History
from vedette.policy import Ints

# Below this part of what all queries together count, a gain is an error of rounding.
MIN_GAIN_SHARE = 1e-12


class BoundDeltaQ:
    """Chooses by the versions that are live at the moment of the choice.

    Only queries that something touched since the last choice are worked out again.
    """

    def __init__(self, history: History, workload: Workload) -> None:
        self._history, self._workload = history, workload
        self._event_times_s, self._event_count = np.sort(np.append(history.version_at_s, history.died_s)), -1
        unknown = np.full(history.pages, -1)
        self._local, self._live = ScoredVersions(workload, unknown), ScoredVersions(workload, unknown)
        self._stale = np.ones(workload.queries, bool)
        self._gain = np.zeros(len(workload.slot_page))
        self._least = MIN_GAIN_SHARE * float(workload.frequency.sum())

    def choose(self, copies: Ints, now_s: float, most: int) -> Ints:
        """The pages to fetch now, ascending."""
        if not most:
            return np.zeros(0, np.int64)
        self._update_side(self._local, copies)
        self._update_live(now_s)
        outdated = np.unique(self._workload.slot_page[self._local.scores != self._live.scores])
        return outdated if len(outdated) <= most else self._choose_best(most)

    def _update_live(self, now_s: float) -> None:
        turns = int(np.searchsorted(self._event_times_s, now_s, side="right"))
        # Most hours nothing happens anywhere, and then nobody needs to be asked what it says.
        if turns != self._event_count:
            self._event_count = turns
            self._update_side(self._live, self._history.version_at(np.arange(self._history.pages), now_s))

    def _update_side(self, side: ScoredVersions, versions: Ints) -> None:
        pages = np.flatnonzero(side.versions != versions)
        self._stale[side.update(pages, versions[pages])] = True

    def _choose_best(self, most: int) -> Ints:
        """One after the other, each as if it had been fetched when the next is looked for."""
        taken: list[int] = []
        while len(taken) < most:
            self._recompute_gains()
            worth = np.bincount(self._workload.slot_page, self._gain, self._history.pages)
            page = int(worth.argmax())
            if worth[page] <= self._least:
                break
            taken.append(page)
            self._stale[self._local.update(np.array([page]), self._live.versions[[page]])] = True
        return np.sort(np.array(taken, np.int64))

    def _recompute_gains(self) -> None:
        workload, queries = self._workload, np.flatnonzero(self._stale)
        self._gain[concat_ranges(workload.slot_start[queries], workload.slot_start[queries + 1])] = 0.0
        slots, gains = compute_slot_gains(workload, self._local.scores, self._live.scores, queries)
        self._gain[slots] = workload.frequency[workload.slot_query[slots]] * gains
        self._stale[queries] = False
