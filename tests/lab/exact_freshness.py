"""How current the copies of a repository are: freshness and age over time, and how many fetches found a change.

Nothing is sampled. Between two events of a page (a new version, a new copy, its death) its copy is current or it is
not, so a page's time falls into pieces, and integrals over them are exact.

- *freshness*: the share of live known pages whose copy says what the page says, averaged over time;
- *age*: for how many days a copy has been outdated (0 while it is current), averaged over live known pages, then over
time;
- *changed per fetch*: the share of fetches that found something other than the copy, or found the page dead for the
  first time. First fetches have nothing to compare with, and do not count.

A page is known from its first copy on. Copies come from fetches, or they are *given*: where a run begins with a current
repository, no one paid for it. What a version says is its digest, so a change that is taken back makes an old copy
current again. A fetch at the moment of a change sees the change.

Both averages are over the share at each moment, as people ask for it. So each piece is weighed with the time that has
passed by a clock that runs at one over the number of live known pages.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from vedette.lab.worlds.history import Bools, History
from vedette.policy import Floats, Ints
from vedette.timeutil import DAY_S


class Copies(NamedTuple):
    """Copies: their page and time; in any order."""

    pages: Ints
    at_s: Floats


class CopyFreshness(NamedTuple):
    """How current the copies were; freshness is 1 and age 0 if no page was ever known."""

    freshness: float
    age_days: float
    changed_per_fetch: float
    fetches: int


def initial_copies(history: History, begin_s: float, end_s: float) -> Copies:
    """A current repository to begin with: all pages that live then, and every page that is born later, at birth."""
    born = np.maximum(history.born_s, begin_s)
    pages = np.flatnonzero((history.died_s > begin_s) & (born < end_s))
    return Copies(pages, born[pages])


def measure_freshness(history: History, given: Copies, fetched: Copies, begin_s: float, end_s: float) -> CopyFreshness:
    """Measure how current the copies were between two times."""
    events = _merge_events(history, given, fetched)
    pieces = _split_pieces(history, events, begin_s, end_s)
    clock = _Clock.from_pieces(pieces)
    fresh = clock.elapsed(pieces.begin[pieces.current], pieces.end[pieces.current])
    stale = ~pieces.current
    age = clock.integrate_age(pieces.begin[stale], pieces.end[stale], pieces.since[stale])
    total = clock.total
    changed, compared = _count_changed_fetches(history, events)
    return CopyFreshness(
        freshness=float(fresh.sum()) / total if total else 1.0,
        age_days=float(age.sum()) / total if total else 0.0,
        changed_per_fetch=changed / compared if compared else 0.0,
        fetches=len(fetched.pages),
    )


class _Events(NamedTuple):
    """Versions and copies, by page and time; ``live`` and ``held`` are versions after the event, below 0 for none.

    ``before`` is the event of the copy before, -1 if there was none.
    """

    page: Ints
    at_s: Floats
    live: Ints
    held: Ints
    before: Ints
    is_fetch: Bools


def _merge_events(history: History, given: Copies, fetched: Copies) -> _Events:
    page = np.concatenate((history.version_page, given.pages, fetched.pages))
    at_s = np.concatenate((history.version_at_s, given.at_s, fetched.at_s))
    # Stable: at one moment the version comes first, then the copy that was given, then the fetch.
    order = np.lexsort((at_s, page))
    page, at_s = page[order], at_s[order]
    places = np.arange(len(order))
    own = np.searchsorted(page, page)  # where the events of a page begin
    version = order < len(history.version_page)
    live_at = _last_marked(places, version)
    live = np.where((live_at >= own) & (at_s < history.died_s[page]), order[np.maximum(live_at, 0)], -1)
    copied_at = _last_marked(places, ~version)
    held = np.where(copied_at >= own, live[np.maximum(copied_at, 0)], -1)
    before = np.append(-1, copied_at[:-1])[: len(order)]
    paid = order >= len(history.version_page) + len(given.pages)
    return _Events(page, at_s, live, held, np.where(before >= own, before, -1), paid)


def _last_marked(places: Ints, marked: Bools) -> Ints:
    """The last marked place up to each place; -1 if there is none."""
    latest: Ints = np.maximum.accumulate(np.where(marked, places, -1)) if len(places) else places
    return latest


class _Pieces(NamedTuple):
    """Times in days from the beginning in which nothing happens to a live known page.

    ``since`` is when the copy ceased to be current; it may be before the beginning. ``opens`` and ``closes`` mark the
    first and the last piece of a page.
    """

    begin: Floats
    end: Floats
    opens: Bools
    closes: Bools
    current: Bools
    since: Floats


def _split_pieces(history: History, events: _Events, begin_s: float, end_s: float) -> _Pieces:
    following = np.append(events.at_s[1:], np.inf)[: len(events.page)]
    same = np.append(events.page[1:] == events.page[:-1], False)[: len(events.page)]
    end = np.minimum(np.where(same, following, np.inf), history.died_s[events.page])
    known = (events.live >= 0) & (events.held >= 0)
    current = known & (history.digest[events.live] == history.digest[events.held])
    # A stale time begins where the event before, if it is the same page's, left the copy current or there was none.
    stale = known & ~current
    begins = stale & ~np.append(False, stale[:-1] & same[:-1])[: len(stale)]
    since = events.at_s[np.maximum(_last_marked(np.arange(len(stale)), begins), 0)]
    begin, end = np.maximum(events.at_s, begin_s), np.minimum(end, end_s)
    kept = known & (begin < end)
    days = [(at_s[kept] - begin_s) / DAY_S for at_s in (begin, end, since)]
    other = np.diff(events.page[kept], prepend=-1, append=-1) != 0  # where another page begins
    return _Pieces(days[0], days[1], other[:-1], other[1:], current[kept], days[2])


@dataclass(frozen=True, slots=True)
class _Clock:
    """Time that runs at one over the number of live known pages.

    ``at`` are the days at which that number changes, ``rate`` what it is one over from then on; ``time`` and ``moment``
    are the integrals of the rate, and of the rate times the day, up to then.
    """

    at: Floats
    rate: Floats
    time: Floats
    moment: Floats

    @staticmethod
    def from_pieces(pieces: _Pieces) -> "_Clock":
        """The clock of these pieces. Those of a page follow on each other, so only its first and last count."""
        opens, closes = pieces.begin[pieces.opens], pieces.end[pieces.closes]
        at, place = np.unique(np.concatenate((opens, closes)), return_inverse=True)
        count = np.cumsum(np.bincount(place, np.repeat([1, -1], len(opens)), len(at)))
        rate = np.divide(1.0, count, out=np.zeros(len(at)), where=count > 0.5)
        gaps = np.diff(at)
        time = np.cumsum(rate[:-1] * gaps)
        moment = np.cumsum(rate[:-1] * gaps * (at[:-1] + gaps / 2))
        return _Clock(at, rate, np.append(0.0, time), np.append(0.0, moment))

    @property
    def total(self) -> float:
        """Days in which at least one page was live and known."""
        return float((np.diff(self.at) * (self.rate[:-1] > 0)).sum())

    def elapsed(self, begin: Floats, end: Floats) -> Floats:
        """Return how much of the clock's time passes in each interval."""
        return self._integrate_until(end)[0] - self._integrate_until(begin)[0]

    def integrate_age(self, begin: Floats, end: Floats, since: Floats) -> Floats:
        """The integral of the age over each piece of time by this clock."""
        first, last = self._integrate_until(begin), self._integrate_until(end)
        return last[1] - first[1] - since * (last[0] - first[0])

    def _integrate_until(self, day: Floats) -> tuple[Floats, Floats]:
        """Both integrals up to a day."""
        known = np.searchsorted(self.at, day, side="right") - 1
        rate, start = self.rate[known], self.at[known]
        passed = rate * (day - start)
        return self.time[known] + passed, self.moment[known] + passed * (day + start) / 2


def _count_changed_fetches(history: History, events: _Events) -> tuple[int, int]:
    """Count the fetches that found a change, and those that had a copy to compare with."""
    fetches = np.flatnonzero(events.is_fetch & (events.before >= 0))
    now, before = events.live[fetches], events.live[events.before[fetches]]
    digest = np.append(history.digest, np.uint64(0))  # the last is for none
    gone = (now < 0) != (before < 0)
    changed = gone | ((now >= 0) & (digest[now] != digest[before]))
    return int(changed.sum()), len(fetches)
