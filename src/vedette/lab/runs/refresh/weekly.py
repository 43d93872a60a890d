"""Weekly refresh simulation (Pandey08, 4.7): a web seen once a week, with the pages that exist all the time.

Changes between two weeks are not seen. So the web is a separate history, whose versions begin with the week in which
they are first seen; ``version`` says which one each page has in each week. ``links`` are the links to each page in the
first week, from all pages of the web, including those that do not exist all the time.
"""

from collections.abc import Callable
from dataclasses import replace
from math import exp, log
from typing import Any, NamedTuple, Protocol

import numpy as np

from vedette.errors import UsageError
from vedette.lab.quality.corpus import ShingleDistance
from vedette.lab.quality.scoring import count_in_links
from vedette.lab.quality.search_quality import QualityTracker
from vedette.lab.quality.workload import Workload
from vedette.lab.runs.refresh.gains import GainTracker
from vedette.lab.worlds.history import PAGE, Bools, History, SelectedTexts
from vedette.policy import Due, Floats, Ints, rng_for
from vedette.refresh.known_pages import KnownPages
from vedette.timeutil import WEEK_S

SPAN_WEEKS = 48  # as in the thesis
SPAN_STEP_WEEKS = 12  # weeks between the starts of spans that are tried


class WeeklyWeb(NamedTuple):
    """Weekly web of the pages that stay; ``version[week, page]`` counts from week 0, when all copies are current."""

    web: History
    version: Ints
    links: Ints

    @property
    def weeks(self) -> int:
        """Return the number of weeks in which the weekly web is refreshed."""
        return len(self.version) - 1

    @property
    def pages(self) -> int:
        """Return the number of pages of the weekly web."""
        return int(self.version.shape[1])

    @property
    def changed(self) -> Bools:
        """Return whether each page of the weekly web changed since the week before; row 0 is week 1."""
        digest = self.web.digest[self.version]
        changed: Bools = digest[1:] != digest[:-1]
        return changed


class PageStatistics(NamedTuple):
    """Statistics of the pages of a weekly web, known in hindsight, in columns; rows are weeks from week 1 on.

    ``share`` is the share of the text that a week's change replaced (0 for none), ``gain`` the search gain of fetching
    the page in that week, after one in the week before; ``views`` is the mean over all weeks.
    """

    share: Floats
    gain: Floats
    views: Floats


def find_busiest_span(history: History) -> tuple[float, float]:
    """Find the 48 weeks of a history in which staying pages change most, without waves; all of a shorter history."""
    last_s = history.end_s - SPAN_WEEKS * WEEK_S
    if last_s <= history.begin_s:
        return history.begin_s, history.end_s
    begins_s = np.arange(history.begin_s, last_s + 1, SPAN_STEP_WEEKS * WEEK_S)
    most = int(np.argmax([_count_changes(history, begin_s, begin_s + SPAN_WEEKS * WEEK_S) for begin_s in begins_s]))
    return float(begins_s[most]), float(begins_s[most]) + SPAN_WEEKS * WEEK_S


def _count_changes(history: History, begin_s: float, end_s: float) -> int:
    stays = (history.born_s <= begin_s) & (history.died_s > end_s)
    at_s = history.version_at_s
    return int((stays[history.version_page] & ~history.wave & (at_s > begin_s) & (at_s <= end_s)).sum())


def build_weekly_web(history: History, begin_s: float, end_s: float) -> WeeklyWeb:
    """Build the weekly web of the pages that exist in every week of a span."""
    times_s = np.arange(begin_s, end_s + 1, WEEK_S)
    every = np.arange(history.pages)
    seen = np.stack([history.version_at(every, at_s) for at_s in times_s])
    stays = np.flatnonzero((seen >= 0).all(axis=0) & (history.kind == PAGE))
    if len(times_s) < 3 or not len(stays):
        raise UsageError(f"{history.name}: no page existed throughout all {len(times_s)} weeks; change --from and --to")
    # Versions are numbered by page, then by time, and so are the remaining ones.
    versions, place = np.unique(seen[:, stays], return_inverse=True)
    version = place.reshape(len(times_s), len(stays))
    first_week = np.full(len(versions), len(times_s))
    np.minimum.at(first_week, version, np.arange(len(times_s))[:, None])
    links = count_in_links(history, seen[0])[stays]
    return WeeklyWeb(_build_history(history, stays, versions, times_s[first_week]), version, links)


def _build_history(history: History, stays: Ints, versions: Ints, at_s: Floats) -> History:
    count = len(stays)
    return replace(
        history,
        begin_s=float(at_s.min()),
        urls=[history.urls[page] for page in stays.tolist()],
        site=history.site[stays],
        kind=history.kind[stays],
        born_s=np.full(count, at_s.min()),
        died_s=np.full(count, np.inf),
        moved_to=np.full(count, -1, np.int64),
        version_page=np.searchsorted(stays, history.version_page[versions]),
        version_at_s=at_s,
        **{name: getattr(history, name)[versions] for name in ("digest", "words", "wave")},
        link_start=np.zeros(len(versions) + 1, np.int64),
        link_to=np.zeros(0, np.int64),
        texts=SelectedTexts(history.texts, versions),
    )


def score_by_links(workload: Workload, links: Ints) -> Workload:
    """Score a weekly web's workload by links to the page plus one (``scoring.InLinkScoring``)."""
    return replace(workload, match_score=links[workload.slot_page[workload.match_slot]].astype(np.float64) + 1)


def fit_pages(weekly: WeeklyWeb, workload: Workload, shares: ShingleDistance) -> PageStatistics:
    """Compute page statistics of a weekly web in hindsight, as if every page were fetched every week."""
    gains = GainTracker(weekly.web, workload)
    every = np.arange(weekly.pages)
    gains.add_copies(every, weekly.version[0])
    share, gain = np.zeros((weekly.weeks, weekly.pages)), np.zeros((weekly.weeks, weekly.pages))
    views = np.zeros(weekly.pages)
    for week, changed in enumerate(weekly.changed):
        pages = every[changed]
        before, after = weekly.version[week, pages], weekly.version[week + 1, pages]
        share[week, pages] = shares.compute(before, after)
        gain[week, pages] = gains.replace_copies(pages, before, after)
        views += gains.compute_views() / weekly.weeks
    return PageStatistics(share, gain, views)


# Copies are current in week 0. In each week after it ``room`` pages are fetched, and then the quality (eq. 4.5) is
# computed; its mean over the weeks is the result of a chooser.


# The price is between these, found by bisection of its logarithm.
MIN_PRICE, MAX_PRICE, BISECTION_STEPS = 1e-15, 1e15, 60


class Chooser(Protocol):
    """Chooser of the pages to refresh week by week, which learns from the results."""

    def choose(self, week: int, copies: Ints, fetched: Ints) -> Ints:
        """Choose the pages to refresh in a week; ``fetched`` is the week of each copy, ``copies`` its version."""

    def observe(self, week: int, pages: Ints, before: Ints, after: Ints) -> None:
        """Learn from weekly refreshes of these pages, with their versions before and after."""


def run_weekly(weekly: WeeklyWeb, workload: Workload, chooser: Chooser) -> float:
    """Run a weekly refresh chooser and return the mean search quality after each week's fetches."""
    copies, fetched = weekly.version[0].copy(), np.zeros(weekly.pages, np.int64)
    standing = QualityTracker(workload, copies, copies)
    shares = []
    for week in range(1, weekly.weeks + 1):
        live = weekly.version[week]
        moved = np.flatnonzero(live != weekly.version[week - 1])
        standing.update_live(moved, live[moved])
        pages = chooser.choose(week, copies.copy(), fetched.copy())
        before = copies[pages]
        copies[pages], fetched[pages] = live[pages], week
        standing.update_copies(pages, live[pages])
        chooser.observe(week, pages, before, live[pages])
        shares.append(standing.relative_quality())
    return float(np.mean(shares))


class PlannedChooser:
    """Weekly refresh chooser that follows a precomputed plan."""

    def __init__(self, plan: list[Ints]) -> None:
        self._plan = plan

    def choose(self, week: int, copies: Ints, fetched: Ints) -> Ints:
        """Return the pages that the plan refreshes in this week."""
        del copies, fetched
        return self._plan[week - 1]

    def observe(self, week: int, pages: Ints, before: Ints, after: Ints) -> None:
        """Ignore weekly refreshes: a plan learns nothing."""


class PriorityChooser:
    """Weekly refresh chooser by the largest priority P = rate (t - last fetch), the oldest copies among equals."""

    def __init__(self, rate: Floats, room: int) -> None:
        self._rate, self._room = rate, room

    def choose(self, week: int, copies: Ints, fetched: Ints) -> Ints:
        """Choose the pages with the largest refresh priority in this week."""
        del copies
        order = np.lexsort((fetched, -self._rate * (week - fetched)))
        return np.sort(order[: self._room])

    def observe(self, week: int, pages: Ints, before: Ints, after: Ints) -> None:
        """Ignore weekly refreshes: the rates are known in hindsight already."""


class PolicyChooser:
    """Weekly refresh chooser that runs a refresh policy, at a price such that ``room`` pages are due each week."""

    def __init__(
        self,
        policy: Due[None, Any, KnownPages, KnownPages],
        weekly: WeeklyWeb,
        workload: Workload,
        shares: ShingleDistance,
        room: int,
    ) -> None:
        self._policy, self._room, self._shares = policy, room, shares
        self._digest = weekly.web.digest
        self._gains = GainTracker(weekly.web, workload)
        self._every = np.arange(weekly.pages)
        self._gains.add_copies(self._every, weekly.version[0])
        first = self._build_known(self._every, np.zeros(weekly.pages), first_fetch=np.ones(weekly.pages, bool))
        self._state = policy.observe(policy.start(None), first, 0.0)
        self._last_s = np.zeros(weekly.pages)

    def choose(self, week: int, copies: Ints, fetched: Ints) -> Ints:
        """Choose the pages due at the highest price at which enough are; the oldest copies if that never happens."""
        del copies
        now_s, batch = week * WEEK_S, self._build_known(self._every, self._last_s)

        def due_s(price: float) -> Floats:
            return self._policy.due(self._state, batch, now_s, price, rng_for(week, "lab/weekly"))

        found_s = due_s(_find_highest_price(lambda price: int((due_s(price) <= now_s).sum()) >= self._room))
        order = np.lexsort((fetched, np.where(found_s <= now_s, found_s, np.inf)))
        return np.sort(order[: self._room])

    def observe(self, week: int, pages: Ints, before: Ints, after: Ints) -> None:
        """Let the refresh policy learn from weekly fetches."""
        found = {
            "changed": self._digest[before] != self._digest[after],
            "before_s": self._last_s[pages],
            "gain": self._gains.replace_copies(pages, before, after),
            "share": self._shares.compute(before, after),
        }
        self._last_s[pages] = week * WEEK_S
        self._state = self._policy.observe(
            self._state, self._build_known(pages, self._last_s[pages], **found), week * WEEK_S
        )

    def _build_known(self, pages: Ints, fetched_s: Floats, **found: Any) -> KnownPages:  # noqa: ANN401 - columns of any kind
        no, views = np.zeros(len(pages), bool), self._gains.compute_views()[pages]
        columns = {"changed": no, "first_fetch": no, "modified_s": np.full(len(pages), np.nan), "views": views}
        return KnownPages(pages, fetched_s, **(columns | found))


def _find_highest_price(enough: Callable[[float], bool]) -> float:
    """Find the highest price at which enough pages are due in a week, or the lowest of all."""
    low, high = log(MIN_PRICE), log(MAX_PRICE)
    for _ in range(BISECTION_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if enough(exp(middle)) else (low, middle)
    return exp(low)
