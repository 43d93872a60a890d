"""Hazards by age: an age chain learned from fetches, as changes per day by age for groups, tilted by page.

A fetch shows whether a page changed since the previous one, not when. The steps of the chain are age intervals that
double in length; within one, changes come at a constant rate, so survival is exponential and everything has a closed
form. A section's rates are shrunk to the global ones as long as it has little data, and a page's *tilt* (how much more
often than its section it changes) to 1.

No rate is below a floor, so that the probability of a change comes arbitrarily close to 1 in bounded time
(``lab.experiments.plans`` says what depends on that).

Reference: B. Brewington, *Optimal observation with WWW applications*, 1999, section 2.2; continuous as in section 3.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from vedette.policy import Floats, Ints
from vedette.refresh.known_pages import Bools, KnownPages, Memory
from vedette.timeutil import DAY_S

# Start of each age interval, in days; the last has no end.
EDGES_D: Floats = np.array([0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0])
BINS = len(EDGES_D)
# The floor: one change in three years; and the prior: one in thirty days.
FLOOR, FIRST_RATE = 1e-3, 1 / 30
# How many observed days the global rates count for in a section, and the prior rate globally.
SECTION_PRIOR_D, FIRST_PRIOR_D = 200.0, 30.0
# How many expected changes a tilt of 1 counts for.
TILT_PRIOR = 1.0
BISECTION_STEPS = 45
# Per page: its age at the last fetch in days, changes found, changes expected, the time of the fetch, and that there
# was one.
AGE, FOUND, EXPECTED, LAST_S, MET = range(5)
PAGE_WIDTH, GROUP_WIDTH = 5, 2 * BINS


def empty_memory() -> Memory:
    """Return the empty hazard memory: no pages, and no changes in no time for the global group."""
    return Memory.empty(PAGE_WIDTH, GROUP_WIDTH)


class _BatchRows(NamedTuple):
    """The hazard memory rows of the pages of a batch; zeros if there are none."""

    page: Floats
    section: Ints


def _select_rows(memory: Memory, batch: KnownPages) -> _BatchRows:
    page = np.zeros((len(batch), PAGE_WIDTH))
    met = batch.place < len(memory.pages)
    page[met] = memory.pages[batch.place[met]]
    return _BatchRows(page, np.where(batch.section < len(memory.groups), batch.section, 0))


def _rates(memory: Memory) -> Floats:
    """Compute hazards in changes a day: a row per group, a column per age interval."""
    changes, watched_d = memory.groups[:, :BINS], memory.groups[:, BINS:]
    everything = (changes[0] + FIRST_RATE * FIRST_PRIOR_D) / (watched_d[0] + FIRST_PRIOR_D)
    rates: Floats = np.maximum((changes + everything * SECTION_PRIOR_D) / (watched_d + SECTION_PRIOR_D), FLOOR)
    return rates


class _Segment(NamedTuple):
    """A segment of time with constant hazard: prior days out of date, survival at its start, and length."""

    late_d: Floats
    stayed: Floats
    rate: Floats
    length_d: Floats

    def added_staleness(self, time_d: Floats) -> Floats:
        """Return the days out of date that a time within the segment adds."""
        rise: Floats = time_d + self.stayed * np.expm1(-self.rate * time_d) / self.rate
        return rise

    def solve_time(self, wanted_d: Floats) -> Floats:
        """Solve by bisection for the time within the segment that adds the wanted days out of date."""
        low_d, high_d = np.zeros(len(wanted_d)), self.length_d
        for _ in range(BISECTION_STEPS):
            middle_d = (low_d + high_d) / 2
            short = self.added_staleness(middle_d) < wanted_d
            low_d, high_d = np.where(short, middle_d, low_d), np.where(short, high_d, middle_d)
        return high_d


@dataclass(frozen=True, slots=True, eq=False)
class LifeCurves:
    """Life curves of a batch: the probability that each page has changed as time passes after its last fetch.

    ``age_d`` is its age at that fetch; ``rate`` has a row for each page and a column for each age interval, including
    the page's tilt. Everything is in days.
    """

    age_d: Floats
    rate: Floats

    def cumulative_hazard(self, age_d: Floats) -> Floats:
        """Return the cumulative hazard from age 0 to an age (a column per page, any number of rows)."""
        lengths = np.clip(age_d[..., None] - EDGES_D, 0.0, np.append(np.diff(EDGES_D), np.inf))
        total: Floats = (lengths * self.rate).sum(axis=-1)
        return total

    def survival(self, wait_d: Floats | float, age_d: Floats | None = None) -> Floats:
        """Return the probability that a page stays unchanged for a wait, from its last age or from another."""
        since_d = self.age_d if age_d is None else age_d
        stayed: Floats = np.exp(self.cumulative_hazard(since_d) - self.cumulative_hazard(since_d + wait_d))
        return stayed

    def expected_staleness(self, wait_d: Floats) -> Floats:
        """Return the expected days that a page will have been out of date: the integral of 1 - survival."""
        late_d = np.zeros(len(self.age_d))
        for part in self._segments(wait_d):
            late_d = part.late_d + part.added_staleness(part.length_d)
        return late_d

    def wait_for_staleness(self, wanted_d: Floats, most_d: float) -> Floats:
        """Return the wait after which the wanted days out of date are expected, or the longest allowed wait."""
        wait_d, elapsed_d = np.full(len(wanted_d), most_d), np.zeros(len(wanted_d))
        for part in self._segments(np.full(len(wanted_d), most_d)):
            here = (part.late_d <= wanted_d) & (part.late_d + part.added_staleness(part.length_d) > wanted_d)
            if here.any():
                found_d = elapsed_d + part.solve_time(wanted_d - part.late_d)
                wait_d = np.where(here, found_d, wait_d)
            elapsed_d = elapsed_d + part.length_d
        return wait_d

    def _segments(self, wait_d: Floats) -> Iterator["_Segment"]:
        """Split a wait into segments where the page enters another age interval."""
        late_d, stayed, now_d = np.zeros(len(self.age_d)), np.ones(len(self.age_d)), self.age_d
        end_d = self.age_d + wait_d
        for until_d, rate in zip([*EDGES_D[1:].tolist(), np.inf], self.rate.T, strict=True):
            part = _Segment(late_d, stayed, rate, np.maximum(np.minimum(end_d, until_d) - now_d, 0.0))
            yield part
            late_d = late_d + part.added_staleness(part.length_d)
            stayed, now_d = stayed * np.exp(-rate * part.length_d), now_d + part.length_d

    def wait_for_chance(self, chance: Floats) -> Floats:
        """Return the days after which a change has the given probability; infinite for 1 or more."""
        with np.errstate(divide="ignore"):
            wanted = self.cumulative_hazard(self.age_d) - np.log1p(-np.clip(chance, 0.0, 1.0))
        at_edges = np.cumsum(np.hstack([np.zeros((len(wanted), 1)), self.rate[:, :-1] * np.diff(EDGES_D)]), axis=1)
        bin_ = (at_edges <= wanted[:, None]).sum(axis=1) - 1
        row = np.arange(len(wanted))
        age_d = EDGES_D[bin_] + (wanted - at_edges[row, bin_]) / self.rate[row, bin_]
        wait_d: Floats = np.maximum(age_d - self.age_d, 0.0)
        return wait_d


def get_life_curves(memory: Memory, batch: KnownPages) -> LifeCurves:
    """Return the life curves learned for the pages of a batch."""
    rows = _select_rows(memory, batch)
    tilt = (rows.page[:, FOUND] + TILT_PRIOR) / (rows.page[:, EXPECTED] + TILT_PRIOR)
    return LifeCurves(rows.page[:, AGE], np.maximum(_rates(memory)[rows.section] * tilt[:, None], FLOOR))


def learn(memory: Memory, batch: KnownPages) -> Memory:
    """Learn hazards by age from these fetches; each page occurs once.

    A change happened at some time between two fetches: the time until then is assumed to be half of the gap, and the
    current age of the page the other half, unless the server says when it was.
    """
    after, rows = memory.grow_for(batch), _select_rows(memory, batch)
    rows.page[batch.first_fetch] = 0.0  # a page that came back starts over
    gap_d = _gap_d(batch, rows.page)
    found = (gap_d > 0) & batch.changed
    exposed_until_d = rows.page[:, AGE] + np.where(found, gap_d / 2, gap_d)
    exposed = _time_per_bin(rows.page[:, AGE], exposed_until_d)
    at = np.searchsorted(EDGES_D, exposed_until_d, side="right") - 1
    _add_counts(after.groups, np.zeros_like(batch.section), found, at, exposed)
    in_section = batch.section > 0
    _add_counts(after.groups, batch.section[in_section], found[in_section], at[in_section], exposed[in_section])
    page = rows.page.copy()
    page[:, FOUND] += found
    page[:, EXPECTED] += (_rates(memory)[rows.section] * exposed).sum(axis=1)
    page[:, AGE] = _ages_d(batch, rows.page[:, AGE], gap_d)
    page[:, LAST_S], page[:, MET] = batch.last_fetch_s, 1.0
    after.pages[batch.place] = page
    return after


def _gap_d(batch: KnownPages, page: Floats) -> Floats:
    """Return the days over which each fetch shows whether there was a change; 0 if it shows nothing."""
    before_s = np.where(np.isnan(batch.before_s), page[:, LAST_S], batch.before_s)
    tells = ~batch.first_fetch & ~batch.gone & (page[:, MET] > 0)
    gap_d: Floats = np.where(tells, np.maximum(batch.last_fetch_s - before_s, 0.0), 0.0) / DAY_S
    return gap_d


def _add_counts(groups: Floats, group: Ints, found: Bools, at: Ints, exposed: Floats) -> None:
    """Add changes at their ages, and the exposed time in each age interval, to the group rows."""
    np.add.at(groups, (group[found], at[found]), 1.0)
    np.add.at(groups[:, BINS:], group, exposed)


def _time_per_bin(start_d: Floats, end_d: Floats) -> Floats:
    """Compute how long each page was in each age interval."""
    until_d = np.append(EDGES_D[1:], np.inf)
    lengths_d: Floats = np.minimum(end_d[:, None], until_d) - np.maximum(start_d[:, None], EDGES_D)
    return np.maximum(lengths_d, 0.0)


def _ages_d(batch: KnownPages, age_d: Floats, gap_d: Floats) -> Floats:
    """Return the age of each page at its last fetch: by the server's date, else by past fetches."""
    stated_d = (batch.last_fetch_s - batch.modified_s) / DAY_S
    guessed_d = np.where(batch.first_fetch, 0.0, np.where(batch.changed, gap_d / 2, age_d + gap_d))
    ages_d: Floats = np.where(stated_d >= 0, stated_d, guessed_d)
    return ages_d
