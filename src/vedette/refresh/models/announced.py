"""Announced changes (sitemap dates, feeds, pings): learn how reliable announcements are, site by site."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from vedette.policy import Floats, Ints
from vedette.refresh.known_pages import Bools, KnownPages, Memory
from vedette.refresh.models.base import Belief
from vedette.refresh.models.rows import days_between, group_levels, group_rows, is_informative
from vedette.timeutil import DAY_S

# Per site: changes, announced changes, days without a change, announcements in these; when the last announcement that
# proved true or false came, and the usual days between two.
CHANGED, TOLD, DAYS, WRONG, LAST_S, GAP_D = range(6)
COUNTS = 6
_WEIGHT = 2.0  # fetches of its own that outweigh the parent group
_FIRST_RECALL = 0.02
_FIRST_FALSE = 1 / 365
# How many changes, or fetches without one, are remembered: a site that stops announcing loses trust with each.
_REMEMBERED_CHANGES, _REMEMBERED_LOOKS = 50.0, 500.0
# The usual time between two announcements is averaged over this many; the default applies before there were two.
_GAPS, _FIRST_GAP_D = 8.0, 7.0
# Prior probability that a site has stopped announcing.
_STOPPED = 0.01
_MAX_GAPS = 50.0


class SignalQuality(NamedTuple):
    """Reliability of a site's change announcements: the share of changes announced, and false ones per day."""

    recall: Floats
    false_d: Floats


class AnnouncedBelief(NamedTuple):
    """A belief that considers announcements, and the share of the page's coming changes that will be announced.

    The hazard is that of all changes; without an announcement, staleness grows only by the rest.
    """

    belief: Belief
    recall: Floats
    false_d: Floats


@dataclass(frozen=True, slots=True)
class Announcements:
    """Count how often fetches that found a change had been announced, and how often those that found none.

    ``adjust_belief`` applies that to any belief. For a page that changes at a rate h, with a share r of its changes
    announced, and false announcements at a rate v:

        staleness = h t - r h s,    and log(1 + r h / v) more with an announcement

    t is the time since the last fetch. s is the silent part of it: from the last announcement, or from the fetch, to
    when a source was last read (``heard_s``): later silence means nothing. Only the last announcement is known, so
    nothing is assumed about the time before it.

    Silence is trusted as long as the site announces anything. After several times the usual gap between two
    announcements it has probably stopped, and counts decay with every unannounced change. A site that never announced
    anything is unaffected.

    Reference: R. Busa-Fekete et al., *Learning to Crawl with Noisy Change-Indicating Signals*, 2025. The decay is ours.
    """

    page_width: int = 0
    group_width: int = COUNTS

    def learn(self, memory: Memory, batch: KnownPages) -> Memory:
        """Count announced and unannounced changes, for the site and globally; earlier ones decay."""
        after, seen = memory.grow_for(batch), is_informative(batch)
        announced = (batch.signal_s > batch.before_s) & (batch.signal_s <= batch.last_fetch_s)
        changed = batch.changed
        counts = np.stack(
            [changed, changed & announced, np.where(changed, 0.0, days_between(batch)), ~changed & announced], axis=1
        )
        for numbers, apart in list(group_levels(batch))[:2]:
            rows = np.flatnonzero(seen & apart)
            groups, place = np.unique(numbers[rows], return_inverse=True)
            changes = np.bincount(place, changed[rows], minlength=len(groups))[:, None]
            others = np.bincount(place, ~changed[rows], minlength=len(groups))[:, None]
            after.groups[groups, :DAYS] *= (1 - 1 / _REMEMBERED_CHANGES) ** changes
            after.groups[groups, DAYS:LAST_S] *= (1 - 1 / _REMEMBERED_LOOKS) ** others
            np.add.at(after.groups[:, :LAST_S], numbers[rows], counts[rows].astype(np.float64))
            announced_rows = np.flatnonzero(seen & apart & announced)
            _learn_gaps(after.groups, numbers[announced_rows], batch.signal_s[announced_rows])
        return after

    def estimate_quality(self, memory: Memory, batch: KnownPages) -> SignalQuality:
        """Estimate the reliability of change announcements of each page's site."""
        recall, false_d = np.full(len(batch), _FIRST_RECALL), np.full(len(batch), _FIRST_FALSE)
        for numbers, apart in list(group_levels(batch))[:2]:
            changed, announced, days, wrong = group_rows(memory.groups, numbers)[:, :LAST_S].T
            recall = np.where(apart, (announced + _WEIGHT * recall) / (changed + _WEIGHT), recall)
            false_d = np.where(apart, (wrong + _WEIGHT) / (days + _WEIGHT / false_d), false_d)
        return SignalQuality(recall, false_d)

    def adjust_belief(self, memory: Memory, batch: KnownPages, belief: Belief, at_s: Floats) -> AnnouncedBelief:
        """Adjust a belief from fetches by what was announced, or not, since the last fetch."""
        quality, has_signal = self.estimate_quality(memory, batch), is_announced(batch, at_s)
        listened_s = np.minimum(batch.heard_s, at_s)  # unknown stays unknown
        waited_s = np.maximum(at_s - batch.last_fetch_s, 1.0)
        announced_s = np.where(has_signal, batch.signal_s, batch.last_fetch_s)
        listened, silent = (
            np.nan_to_num(np.clip((listened_s - since_s) / waited_s, 0.0, 1.0))
            for since_s in (batch.last_fetch_s, announced_s)
        )
        recall = quality.recall * self._chance_speaking(memory, batch, listened_s)
        jump = np.where(has_signal, np.log1p(quality.recall * belief.hazard / quality.false_d), 0.0)
        adjusted = Belief((1.0 - recall * silent) * belief.staleness + jump, belief.hazard)
        return AnnouncedBelief(adjusted, recall * listened, quality.false_d)

    def _chance_speaking(self, memory: Memory, batch: KnownPages, listened_s: Floats) -> Floats:
        """Return the probability that the page's site still announces changes, by how long it has been silent."""
        rows = group_rows(memory.groups, batch.site)
        gap_d = np.where(rows[:, GAP_D] > 0, rows[:, GAP_D], _FIRST_GAP_D)
        silence = np.fmax(listened_s - rows[:, LAST_S], 0.0) / DAY_S / gap_d
        chance: Floats = 1.0 / (1.0 + _STOPPED * np.exp(np.minimum(silence, _MAX_GAPS)))
        return np.where(rows[:, LAST_S] > 0, chance, 0.0)


def _learn_gaps(groups: Floats, numbers: Ints, signal_s: Floats) -> None:
    """Update when each group last announced something, and the usual time between two announcements, in place."""
    for number in np.unique(numbers).tolist():
        row, times_s = groups[number], signal_s[numbers == number]
        times_s = times_s[times_s > row[LAST_S]]
        if len(times_s) and row[LAST_S] > 0:
            gap_d = (float(times_s.max()) - row[LAST_S]) / DAY_S / len(times_s)
            row[GAP_D] += (gap_d - row[GAP_D]) * min(len(times_s) / _GAPS, 1.0) if row[GAP_D] > 0 else gap_d
        row[LAST_S] = max(row[LAST_S], float(times_s.max(initial=0.0)))


def is_announced(batch: KnownPages, at_s: Floats) -> Bools:
    """Check whether a change was announced after the last fetch and by the given time."""
    announced: Bools = (batch.signal_s > batch.last_fetch_s) & (batch.signal_s <= at_s)
    return announced
