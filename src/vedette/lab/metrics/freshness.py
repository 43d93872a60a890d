"""Freshness and age of copies, computed during a run; fast enough for a million pages.

The time for which a copy was held is added when it ends, and then dropped: processing all versions and fetches at the
end of a run would take memory for all of them.

A share of N(t) live known pages is a sum over pages of parts of W, the integral of dt / N(t), which follows from births
and deaths alone: here every page is known from its birth, or from the start. So the contribution of a copy depends on
nothing else. If a page reverts to earlier content, its versions are processed one by one.
"""

from typing import NamedTuple

import numpy as np

from vedette.lab.worlds.history import Bools, History
from vedette.lab.worlds.synthetic.hashing import mix_all
from vedette.policy import Floats, Ints
from vedette.timeutil import DAY_S


class FreshnessResult(NamedTuple):
    """The freshness metric as a share, and age in days; NaN if there was no page at any time."""

    freshness: float
    age_d: float


class FreshnessMeter:
    """Meter of freshness and age from the times for which copies were held; pages are known from birth on.

    Copies may be held from before the measured time: freshness before it does not count, but age continues from there.
    """

    def __init__(self, history: History, begin_s: float, end_s: float) -> None:
        self._history = history
        self._begin_s, self._end_s = begin_s, end_s
        self._knots_s, self._share = _population_weights(history, begin_s, end_s)
        spans_s = np.diff(self._knots_s, append=end_s - begin_s)
        self._w = np.append(0.0, np.cumsum(spans_s * self._share))[:-1]
        squares = np.diff(self._knots_s**2, append=(end_s - begin_s) ** 2) / 2
        self._v = np.append(0.0, np.cumsum(squares * self._share))[:-1]
        self._populated_s = float(spans_s[self._share > 0].sum())
        self._returns = _find_reverting_pages(history)
        self._fresh = self._aged = 0.0

    def add_held_copies(self, versions: Ints, since_s: Floats, until_s: float) -> None:
        """Add the time for which copies (versions; none below 0) were held to the freshness; dead pages end earlier."""
        some = versions >= 0
        versions, since_s = versions[some], since_s[some]
        page = self._history.version_page[versions]
        end_s = np.maximum(np.minimum(self._history.died_s[page], min(until_s, self._end_s)), since_s)
        walked = self._returns[page]
        once = ~walked
        stale_s = np.clip(find_stale_times(self._history, versions[once]), since_s[once], end_s[once])
        self._add_fresh_time(since_s[once], stale_s)
        self._add_stale_time(stale_s, end_s[once])
        if walked.any():
            self._walk_versions(versions[walked], since_s[walked], end_s[walked])

    def _walk_versions(self, versions: Ints, since_s: Floats, end_s: Floats) -> None:
        """Add the freshness of copies whose page may revert to their content, walking from version to version."""
        copied, is_current = self._history.digest[versions], np.ones(len(versions), bool)
        while len(versions):
            following, at_s = _next_versions(self._history, versions)
            over = at_s >= end_s
            turned = over | ((self._history.digest[following] == copied) != is_current)
            until_s = np.minimum(at_s, end_s)
            fresh, stale = turned & is_current, turned & ~is_current
            self._add_fresh_time(since_s[fresh], until_s[fresh])
            self._add_stale_time(since_s[stale], until_s[stale])
            since_s, is_current = np.where(turned, at_s, since_s), is_current ^ turned
            on = ~over
            versions, since_s, end_s = following[on], since_s[on], end_s[on]
            copied, is_current = copied[on], is_current[on]

    def _add_fresh_time(self, since_s: Floats, until_s: Floats) -> None:
        self._fresh += float((self._integrate_weight(until_s) - self._integrate_weight(since_s)).sum())

    def _add_stale_time(self, since_s: Floats, until_s: Floats) -> None:
        self._aged += float(self._integrate_age(since_s, until_s).sum())

    def result(self) -> FreshnessResult:
        """Return the freshness and age measured so far."""
        if not self._populated_s:
            return FreshnessResult(np.nan, np.nan)
        return FreshnessResult(self._fresh / self._populated_s, self._aged / self._populated_s / DAY_S)

    def overlaps(self, since_s: float, until_s: float) -> bool:
        """Check whether a copy held from one time to another overlaps the time in which freshness is measured."""
        return since_s < self._end_s and until_s > self._begin_s

    def _integrate_weight(self, at_s: Floats) -> Floats:
        """Integrate the freshness weight W, dt / N(t), from the start; nothing before it."""
        at = np.maximum(at_s - self._begin_s, 0.0)
        knot = np.searchsorted(self._knots_s, at, side="right") - 1
        weight: Floats = self._w[knot] + (at - self._knots_s[knot]) * self._share[knot]
        return weight

    def _integrate_age(self, stale_s: Floats, end_s: Floats) -> Floats:
        """Integrate the age of copies, (t - stale) dt / N(t), from stale or from the start to the end."""
        first, last = (at - self._begin_s for at in (stale_s, end_s))
        weight = self._integrate_weight(end_s) - self._integrate_weight(stale_s)
        moment: Floats = self._integrate_first_moment(last) - self._integrate_first_moment(first) - first * weight
        return moment

    def _integrate_first_moment(self, at: Floats) -> Floats:
        at = np.maximum(at, 0.0)
        knot = np.searchsorted(self._knots_s, at, side="right") - 1
        moment: Floats = self._v[knot] + (at**2 - self._knots_s[knot] ** 2) / 2 * self._share[knot]
        return moment


class FreshnessByPeriod:
    """Freshness and age for equal parts of the measured time, each separately: their differences are chance.

    If there are pages all the time, the mean of the parts is the freshness of the whole.
    """

    def __init__(self, history: History, begin_s: float, end_s: float, parts: int) -> None:
        self.ends_s = np.linspace(begin_s, end_s, parts + 1)
        self._parts = [FreshnessMeter(history, *ends) for ends in zip(self.ends_s[:-1], self.ends_s[1:], strict=True)]

    def add_held_copies(self, versions: Ints, since_s: Floats, until_s: float) -> None:
        """Add the time for which copies were held to the freshness of each period."""
        first_s = float(since_s.min(initial=until_s))
        for part in self._parts:
            if part.overlaps(first_s, until_s):
                part.add_held_copies(versions, since_s, until_s)

    def result(self) -> list[FreshnessResult]:
        """Return the freshness and age of each period."""
        return [part.result() for part in self._parts]


def find_stale_times(history: History, versions: Ints) -> Floats:
    """Find when a copy of each version goes stale: at the page's next version with different content."""
    digest, (following, at_s) = history.digest[versions], _next_versions(history, versions)
    while (alike := np.isfinite(at_s) & (history.digest[following] == digest)).any():
        # Versions with the same content follow each other if only links changed.
        following[alike], at_s[alike] = _next_versions(history, following[alike])
    return at_s


def _next_versions(history: History, versions: Ints) -> tuple[Ints, Floats]:
    """Find the next version of each version's page and its time; the version itself and infinity if there is none."""
    following = np.minimum(versions + 1, len(history.version_page) - 1)
    follows = (following > versions) & (history.version_page[following] == history.version_page[versions])
    at_s = np.where(follows, history.version_at_s[following], np.inf)
    return np.where(follows, following, versions), at_s


def _find_reverting_pages(history: History) -> Bools:
    """Find the pages whose content reverts to an earlier version, with something else in between."""
    first = np.append(True, history.version_page[1:] != history.version_page[:-1])[: len(history.version_page)]
    first[1:] |= history.digest[1:] != history.digest[:-1]
    keys = mix_all(history.version_page[first].astype(np.uint64)) ^ history.digest[first]
    order = np.sort(keys)
    twice = order[:-1][order[1:] == order[:-1]]
    returns = np.zeros(history.pages, bool)
    if len(twice):
        returns[history.version_page[first][np.isin(keys, twice)]] = True
    return returns


def _population_weights(history: History, begin_s: float, end_s: float) -> tuple[Floats, Floats]:
    """Compute the steps of the freshness weight 1 / N(t): times since the start and values; 0 if there is no page."""
    lives = (history.died_s > begin_s) & (history.born_s < end_s)
    born = np.maximum(history.born_s[lives], begin_s) - begin_s
    died = np.minimum(history.died_s[lives], end_s) - begin_s
    knots, where = np.unique(np.concatenate([[0.0], born, died]), return_inverse=True)
    steps = np.concatenate([[0.0], np.ones(len(born)), -np.ones(len(died))])
    count = np.rint(np.cumsum(np.bincount(where, steps)))
    return knots, np.divide(1.0, count, out=np.zeros(len(count)), where=count > 0)
