"""Refreshing a weekly web: so many fetches a week, chosen by what is known in hindsight or by what fetches told.

Copies are current in week 0. In each week after it ``room`` pages are fetched, and then the quality (eq. 4.5) is worked
out; its mean over the weeks is what a chooser reached.
"""

from collections.abc import Callable
from math import exp, log
from typing import Any, Protocol

import numpy as np

from vedette.lab.quality.quality import Standing
from vedette.lab.quality.shingle_shares import ShingleShares
from vedette.lab.quality.workload_part import Workload
from vedette.lab.runs.refresh.gains import Gains
from vedette.lab.runs.refresh.weekly import WEEK_S, Weekly
from vedette.policy import Due, Floats, Ints, rng_for
from vedette.refresh.known_pages import Known

__all__ = ["AsPlanned", "ByPriority", "Chooser", "Learning", "mean_quality"]

# The price is sought between these, by halving its logarithm.
LOWEST, HIGHEST, HALVINGS = 1e-15, 1e15, 60


class Chooser(Protocol):
    """Chooses pages week by week, and is told what fetching them brought."""

    def chosen(self, week: int, copies: Ints, fetched: Ints) -> Ints:
        """The pages to fetch in a week; ``fetched`` is the week in which each copy was made, ``copies`` its version."""

    def saw(self, week: int, pages: Ints, before: Ints, after: Ints) -> None:
        """These pages were fetched, and had these versions before and after."""


def mean_quality(weekly: Weekly, workload: Workload, chooser: Chooser) -> float:
    """The quality after each week's fetches, averaged."""
    copies, fetched = weekly.version[0].copy(), np.zeros(weekly.pages, np.int64)
    standing = Standing(workload, copies, copies)
    shares = []
    for week in range(1, weekly.weeks + 1):
        live = weekly.version[week]
        moved = np.flatnonzero(live != weekly.version[week - 1])
        standing.changed(moved, live[moved])
        pages = chooser.chosen(week, copies.copy(), fetched.copy())
        before = copies[pages]
        copies[pages], fetched[pages] = live[pages], week
        standing.fetched(pages, live[pages])
        chooser.saw(week, pages, before, live[pages])
        shares.append(standing.share())
    return float(np.mean(shares))


class AsPlanned:
    """By a plan that was made beforehand."""

    def __init__(self, plan: list[Ints]) -> None:
        self._plan = plan

    def chosen(self, week: int, copies: Ints, fetched: Ints) -> Ints:
        """Those of the week."""
        del copies, fetched
        return self._plan[week - 1]

    def saw(self, week: int, pages: Ints, before: Ints, after: Ints) -> None:
        """A plan learns nothing."""


class ByPriority:
    """The pages with the largest priority P = rate (t - last fetch), the oldest copies where there are equals."""

    def __init__(self, rate: Floats, room: int) -> None:
        self._rate, self._room = rate, room

    def chosen(self, week: int, copies: Ints, fetched: Ints) -> Ints:
        """Those of the week."""
        del copies
        order = np.lexsort((fetched, -self._rate * (week - fetched)))
        return np.sort(order[: self._room])

    def saw(self, week: int, pages: Ints, before: Ints, after: Ints) -> None:
        """What is known in hindsight is known already."""


class Learning:
    """A refresh policy that learns from its own fetches; each week the price is such that so many pages are due."""

    def __init__(
        self, policy: Due[None, Any, Known, Known], weekly: Weekly, workload: Workload, shares: ShingleShares, room: int
    ) -> None:
        self._policy, self._room, self._shares = policy, room, shares
        self._digest = weekly.web.digest
        self._gains = Gains(weekly.web, workload)
        self._every = np.arange(weekly.pages)
        self._gains.met(self._every, weekly.version[0])
        first = self._known(self._every, np.zeros(weekly.pages), first_fetch=np.ones(weekly.pages, bool))
        self._state = policy.observe(policy.start(None), first, 0.0)
        self._last_s = np.zeros(weekly.pages)

    def chosen(self, week: int, copies: Ints, fetched: Ints) -> Ints:
        """The pages that are due at the highest price at which enough are; the oldest copies where never enough are."""
        del copies
        now_s, batch = week * WEEK_S, self._known(self._every, self._last_s)

        def due_s(price: float) -> Floats:
            return self._policy.due(self._state, batch, now_s, price, rng_for(week, "lab/weekly"))

        found_s = due_s(_highest(lambda price: int((due_s(price) <= now_s).sum()) >= self._room))
        order = np.lexsort((fetched, np.where(found_s <= now_s, found_s, np.inf)))
        return np.sort(order[: self._room])

    def saw(self, week: int, pages: Ints, before: Ints, after: Ints) -> None:
        """What fetches brought, as the policy is told of it."""
        found = {
            "changed": self._digest[before] != self._digest[after],
            "before_s": self._last_s[pages],
            "gain": self._gains.took(pages, before, after),
            "share": self._shares.between(before, after),
        }
        self._last_s[pages] = week * WEEK_S
        self._state = self._policy.observe(self._state, self._known(pages, self._last_s[pages], **found), week * WEEK_S)

    def _known(self, pages: Ints, fetched_s: Floats, **found: Any) -> Known:  # noqa: ANN401 - columns of any kind
        no, views = np.zeros(len(pages), bool), self._gains.views()[pages]
        columns = {"changed": no, "first_fetch": no, "modified_s": np.full(len(pages), np.nan), "views": views}
        return Known(pages, fetched_s, **(columns | found))


def _highest(enough: Callable[[float], bool]) -> float:
    """The highest price that is low enough, or the lowest of all."""
    low, high = log(LOWEST), log(HIGHEST)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if enough(exp(middle)) else (low, middle)
    return exp(low)
