"""Learn the overlap of discovery sources, and compute which accumulated links no other source has shown.

Amounts are for a source with one new link an hour.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from vedette.discover.polling.arrivals import LIFETIMES_H, ArrivalModel
from vedette.discover.polling.sources import Sources
from vedette.policy import Floats, Ints
from vedette.timeutil import HOUR_S

# Two sources need not be polled together. The latest sources that showed a link are remembered; when a poll brings a
# link that is new to its own source, those that showed it before are counted, against everything new to the source
# while the other was polled. So ``shared / tried`` is the probability that a new link of a source is available from
# another.


# Relatives stored per source; sources stored per link, which must divide 256; links stored per source.
MAX_RELATED, SOURCES_PER_LINK, LINKS_PER_SOURCE = 16, 4, 32
MIN_LINKS = 1 << 15
# Number of prior links without an overlap.
PRIOR_LINKS = 6.0
# The initial overlap of two lists counts as much as this many links.
ASSUMED_LINKS = 12.0
# Evidence covers about this many links; older evidence decays.
MEMORY_LINKS = 2_000.0
# Another source is a witness if it was polled after at least this share of the new links had appeared.
MIN_SEEN_SHARE = 0.3
SEEN_DECAY_S = 86_400.0
# New relatives that one poll can add.
MAX_NEW_RELATED = 4
MAX_SHARE = 0.98


class _NewLinks(NamedTuple):
    """Links that are new to a polled source: the source's row, and the slot of the link in the ring."""

    row: Ints
    slot: Ints


@dataclass(frozen=True, slots=True)
class Overlap:
    """The overlap of discovery sources: which relatives show the same links.

    ``other[place]`` are relatives, -1 for none, with what they ``shared`` of what was ``tried``.

    Links are in a ring by their numbers, which count up: ``link`` says which one a slot holds, ``shown_by`` the sources
    that showed it, ``shown_count`` their number so far, modulo 256. The ring grows with the number of sources, not of
    links.
    """

    other: Ints
    shared: Floats
    tried: Floats
    link: Ints
    shown_by: npt.NDArray[np.int32]
    shown_count: npt.NDArray[np.uint8]

    @classmethod
    def empty(cls) -> "Overlap":
        """Return an overlap without any source."""
        nobody = np.zeros((0, MAX_RELATED))
        return cls(nobody.astype(np.int64), nobody, nobody, *_create_ring(MIN_LINKS))

    def estimate_share(self, place: Ints) -> Floats:
        """Estimate the overlap: the probability that a link of each source is shown by each of its relatives."""
        share: Floats = np.minimum(self.shared[place] / (self.tried[place] + PRIOR_LINKS), MAX_SHARE)
        return share

    def grow_copy(self, places: int) -> "Overlap":
        """Return a writable copy of the overlap with a row for each of ``places`` sources."""
        more = max(places - len(self.other), 0)
        other = np.concatenate([self.other, np.full((more, MAX_RELATED), -1, np.int64)])
        shared, tried = (np.concatenate([each, np.zeros((more, MAX_RELATED))]) for each in (self.shared, self.tried))
        slots = max(MIN_LINKS, 1 << (LINKS_PER_SOURCE * max(len(other), 1) - 1).bit_length())
        if slots > len(self.link):
            return Overlap(other, shared, tried, *_grow_ring(self, slots))
        return Overlap(other, shared, tried, self.link.copy(), self.shown_by.copy(), self.shown_count.copy())

    def select(self, places: Ints) -> "Overlap":
        """Return the overlap of some sources, in this order; the others are removed as relatives."""
        number = np.full(len(self.other) + 1, -1, np.int64)  # the last is for -1, which means none
        number[places] = np.arange(len(places))
        other = number[self.other[places]]
        shared, tried = (np.where(other >= 0, each[places], 0.0) for each in (self.shared, self.tried))
        shown_by = number[self.shown_by].astype(np.int32)
        return Overlap(other, shared, tried, self.link.copy(), shown_by, self.shown_count.copy())

    def assume(self, pairs: Sequence[tuple[int, int, float]]) -> "Overlap":
        """Return the overlap in which pairs of sources are expected to show this share of each other's links.

        It counts as much as ``ASSUMED_LINKS`` observed links, and replaces each one's weakest relative.
        """
        after = replace(self, other=self.other.copy(), shared=self.shared.copy(), tried=self.tried.copy())
        for one, two, share in [*pairs, *((two, one, share) for one, two, share in pairs)]:
            column = int(np.argmin(after.shared[one]))
            if after.shared[one, column] < share * ASSUMED_LINKS:
                after.other[one, column], after.tried[one, column] = two, ASSUMED_LINKS
                after.shared[one, column] = share * ASSUMED_LINKS
        return after

    def learn_polls(self, batch: Sources, before_s: Floats, looked_s: Floats) -> "Overlap":
        """Learn the overlap of sources from polls.

        ``before_s`` is the previous poll of each row, ``looked_s`` the latest of every position, by now.
        """
        after = self.grow_copy(len(looked_s))
        fresh = _record_links(after, batch)
        known = np.isfinite(before_s)[fresh.row]
        _count_shared(after, batch.place, _NewLinks(fresh.row[known], fresh.slot[known]), before_s, looked_s)
        return after


def _record_links(overlap: Overlap, batch: Sources) -> _NewLinks:
    """Record which source showed which link, and return the links that are new to each source."""
    row = np.repeat(np.arange(len(batch)), np.diff(batch.shown_start))
    slot = batch.shown % len(overlap.link)
    newer = batch.shown > overlap.link[slot]
    # Of two links of one batch in the same slot the one with the larger number stays.
    begun = slot[newer]
    np.maximum.at(overlap.link, begun, batch.shown[newer])
    overlap.shown_by[begun], overlap.shown_count[begun] = -1, 0
    fresh = (overlap.link[slot] == batch.shown) & (overlap.shown_by[slot] != batch.place[row][:, None]).all(axis=1)
    row, slot = row[fresh], slot[fresh]
    nth = (overlap.shown_count[slot] + _count_earlier_equals(slot)) % SOURCES_PER_LINK
    overlap.shown_by[slot, nth] = batch.place[row]
    np.add.at(overlap.shown_count, slot, np.uint8(1))
    return _NewLinks(row, slot)


def _count_shared(overlap: Overlap, place: Ints, fresh: _NewLinks, before_s: Floats, looked_s: Floats) -> None:
    many = np.bincount(fresh.row, minlength=len(place)).astype(np.float64)
    rows = np.flatnonzero(many)
    if not len(rows):
        return
    pair, times = _count_pairs(overlap, place, fresh, len(looked_s))
    kin = overlap.other[place[rows]]
    key = rows[:, None] * len(looked_s) + kin
    at = np.minimum(np.searchsorted(pair, key), max(len(pair) - 1, 0))
    met = (kin >= 0) & (pair[at] == key) if len(pair) else np.zeros(kin.shape, bool)
    seen = _compute_seen_share(before_s[rows, None], looked_s[kin], looked_s[place[rows], None])
    could = np.where((kin >= 0) & (seen > MIN_SEEN_SHARE), seen * many[rows, None], 0.0)
    kept = np.maximum(1.0 - many[rows, None] / MEMORY_LINKS, 0.5)
    old = place[rows]
    overlap.tried[old] = overlap.tried[old] * kept + could
    overlap.shared[old] = overlap.shared[old] * kept + np.where(
        met, np.minimum(times[at] if len(pair) else 0.0, could), 0.0
    )
    strange = np.ones(len(pair), bool)
    strange[at[met]] = False
    _replace_weakest(overlap, place, pair[strange], times[strange], many, before_s, looked_s)


def _count_pairs(overlap: Overlap, place: Ints, fresh: _NewLinks, places: int) -> tuple[Ints, Floats]:
    """Count the links that each polled source shares with each other source; a pair is one number."""
    who = overlap.shown_by[fresh.slot].astype(np.int64)
    row = np.broadcast_to(fresh.row[:, None], who.shape)
    others = (who >= 0) & (who != place[row])
    pair, times = np.unique(row[others] * places + who[others], return_counts=True)
    return pair, times.astype(np.float64)


def _replace_weakest(
    overlap: Overlap, place: Ints, pair: Ints, times: Floats, many: Floats, before_s: Floats, looked_s: Floats
) -> None:
    """Replace the weakest relative of a source by another source that shares more links with it."""
    row, who = np.divmod(pair, len(looked_s))
    seen = _compute_seen_share(before_s[row], looked_s[who], looked_s[place[row]])
    could = seen * many[row]
    times = np.where(seen > MIN_SEEN_SHARE, np.minimum(times, could), 0.0)
    order = np.lexsort((who, -times, row))
    row, who, times, could = row[order], who[order], times[order], could[order]
    nth = _count_earlier_equals(row)
    some = nth < MAX_NEW_RELATED
    row, who, times, could, nth = row[some], who[some], times[some], could[some], nth[some]
    weakest = np.argsort(overlap.shared[place[row]], axis=1, kind="stable")
    column = weakest[np.arange(len(row)), nth]
    better = times > overlap.shared[place[row], column]
    at = (place[row[better]], column[better])
    overlap.other[at], overlap.shared[at], overlap.tried[at] = who[better], times[better], could[better]


def _compute_seen_share(before_s: Floats, other_s: Floats, now_s: Floats) -> Floats:
    """Compute which share of the links new since ``before_s`` was there when the other source was polled."""
    whole_s = np.maximum(now_s - before_s, 1.0)
    left = np.exp(-np.clip(now_s - other_s, 0.0, whole_s) / SEEN_DECAY_S)
    end = np.exp(-whole_s / SEEN_DECAY_S)
    part: Floats = (left - end) / (1.0 - end)
    return part


def _count_earlier_equals(kind: Ints) -> Ints:
    """Count, for each element, the equal ones before it, such as the same link shown by several sources.

    >>> _count_earlier_equals(np.array([5, 3, 5, 5, 3])).tolist()
    [0, 0, 1, 2, 1]
    """
    order = np.argsort(kind, kind="stable")
    ordered = kind[order]
    nth = np.empty(len(kind), np.int64)
    nth[order] = np.arange(len(kind)) - np.searchsorted(ordered, ordered)
    return nth


_Ring = tuple[Ints, npt.NDArray[np.int32], npt.NDArray[np.uint8]]


def _create_ring(slots: int) -> _Ring:
    return np.full(slots, -1, np.int64), np.full((slots, SOURCES_PER_LINK), -1, np.int32), np.zeros(slots, np.uint8)


def _grow_ring(old: Overlap, slots: int) -> _Ring:
    """Return a larger ring of links shown by sources, with the same links."""
    link, shower, showers = _create_ring(slots)
    kept = np.flatnonzero(old.link >= 0)
    at = old.link[kept] % slots
    link[at], shower[at], showers[at] = old.link[kept], old.shown_by[kept], old.shown_count[kept]
    return link, shower, showers


# Relatives mostly show the same links as each other, so each of several counts less.
OVERLAP_DISCOUNT = 0.6


class AccrualState(NamedTuple):
    """The state of the accrual policy: the arrival model of links, and the overlap of sources."""

    arrivals: ArrivalModel
    overlap: Overlap

    @classmethod
    def empty(cls) -> "AccrualState":
        """Return the accrual state before any source was polled."""
        return cls(ArrivalModel.empty(), Overlap.empty())

    def ensure_places(self, batch: Sources) -> "AccrualState":
        """Return the accrual state with an element for each position of a batch of sources."""
        arrivals = self.arrivals.ensure_places(batch)
        known = len(self.overlap.other) >= len(arrivals)
        return AccrualState(arrivals, self.overlap if known else self.overlap.grow_copy(len(arrivals)))

    def select(self, places: Ints) -> "AccrualState":
        """Return the state of some sources, in this order; their positions count from 0 again."""
        return AccrualState(self.arrivals.select(places), self.overlap.select(places))


def estimate_unique_rates(belief: AccrualState, place: Ints) -> Floats:
    """Estimate new links an hour at each source that no relative of it shows."""
    kept = np.prod(1.0 - belief.overlap.estimate_share(place), axis=1) ** OVERLAP_DISCOUNT
    rates: Floats = belief.arrivals.estimate_own_rates(place).mean.sum(axis=1) * kept
    return rates


def compute_accrued(belief: AccrualState, place: Ints, now: float) -> Floats:
    """Compute what accumulated on each source and no other showed: A_c of ``arrivals``, one column per lifetime.

    More time since a poll never lowers it.

    Time since the poll is split where relatives were polled. Links from before such a poll count only with the share
    that the relative does not show.
    """
    arrivals, overlap = belief
    since_s = arrivals.find_accrual_start_s(place, now)
    newest = arrivals.compute_fill(arrivals.host[place], np.full(len(place), now))
    oldest = _decay_fill(arrivals.filled[place], since_s, now)
    total = newest - oldest
    share = overlap.estimate_share(place)
    rows = np.flatnonzero(share.any(axis=1))  # most sources have no relatives, and cost no more than this
    total[rows] = _subtract_shown(belief, place[rows], since_s[rows], share[rows], newest[rows], oldest[rows], now)
    unknown: Floats = np.maximum(total, 0.0)
    return unknown


def _subtract_shown(
    belief: AccrualState, place: Ints, since_s: Floats, share: Floats, newest: Floats, oldest: Floats, now: float
) -> Floats:
    """Return what accumulated since ``since_s`` on sources with relatives, without what those have shown."""
    arrivals, overlap = belief
    cut_s = np.clip(np.where(share > 0, arrivals.looked_s[overlap.other[place]], -np.inf), since_s[:, None], now)
    order = np.argsort(-cut_s, axis=1, kind="stable")
    cut_s, share = (np.take_along_axis(each, order, axis=1) for each in (cut_s, share))
    there = np.repeat(oldest[:, None], cut_s.shape[1], axis=1)
    # Few relatives are polled in this time, and only those cost anything.
    row, column = np.nonzero(cut_s > since_s[:, None])
    at_s = cut_s[row, column]
    there[row, column] = _decay_fill(arrivals.compute_fill(arrivals.host[place[row]], at_s), at_s, now)
    kept = np.cumprod(1.0 - share, axis=1) ** OVERLAP_DISCOUNT
    # The sum over pieces, each with the remaining share, telescoped: every poll of a relative subtracts its part.
    taken = np.diff(kept, axis=1, prepend=1.0)
    rest: Floats = newest + np.einsum("ij,ijc->ic", taken, there) - kept[:, -1:] * oldest
    return rest


def _decay_fill(filled: Floats, at_s: Floats, now: float) -> Floats:
    left: Floats = filled * np.exp(-(now - at_s)[..., None] / (HOUR_S * LIFETIMES_H))
    return left
