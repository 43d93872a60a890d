"""Announced changes (sitemap dates, feeds, pings): learn how reliable announcements are, site by site."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from vedette.policy import Floats
from vedette.refresh.known_pages import Bools, KnownPages, Memory
from vedette.refresh.models.base import Belief
from vedette.refresh.models.rows import add_to_groups, days_between, group_levels, group_rows, is_informative

COUNTS = 4  # changes, those of them that were announced, days without a change, announcements in these
_WEIGHT = 2.0  # looks of its own that outweigh what is said of the group above
_FIRST_RECALL = 0.02
_FIRST_FALSE = 1 / 365


class SignalQuality(NamedTuple):
    """Reliability of a site's change announcements: the share of changes announced, and false ones per day."""

    recall: Floats
    false_d: Floats


@dataclass(frozen=True, slots=True)
class Announcements:
    """Count how often fetches that found a change had been announced, and how often those that found none.

    ``adjust_belief`` applies that to any belief. For a page that changes at a rate h, where a share r of its changes is
    announced, and false announcements come at a rate v:

        without one, it goes stale at (1 - r) h;   with one, the chance that it is current is v / (v + r h) of that

    A site that never announced anything is left as it was. Only the last announcement is known, so several count as
    one.

    Reference: R. Busa-Fekete et al., *Learning to Crawl with Noisy Change-Indicating Signals*, 2025.
    """

    page_width: int = 0
    group_width: int = COUNTS

    def learn(self, memory: Memory, batch: KnownPages) -> Memory:
        """Count announced and unannounced changes, for the site and for everything."""
        after = memory.grow_for(batch)
        told_of = (batch.signal_s > batch.before_s) & (batch.signal_s <= batch.last_fetch_s)
        changed = batch.changed
        counts = np.stack(
            [changed, changed & told_of, np.where(changed, 0.0, days_between(batch)), ~changed & told_of], axis=1
        )
        add_to_groups(after.groups, batch, counts.astype(np.float64), is_informative(batch))
        return after

    def estimate_quality(self, memory: Memory, batch: KnownPages) -> SignalQuality:
        """Estimate the reliability of change announcements of each page's site."""
        recall, false_d = np.full(len(batch), _FIRST_RECALL), np.full(len(batch), _FIRST_FALSE)
        for numbers, apart in list(group_levels(batch))[:2]:
            changed, told_of, days, wrong = group_rows(memory.groups, numbers).T
            recall = np.where(apart, (told_of + _WEIGHT * recall) / (changed + _WEIGHT), recall)
            false_d = np.where(apart, (wrong + _WEIGHT) / (days + _WEIGHT / false_d), false_d)
        return SignalQuality(recall, false_d)

    def adjust_belief(self, memory: Memory, batch: KnownPages, belief: Belief, at_s: Floats) -> Belief:
        """Adjust a belief from fetches by what was announced, or not, since the last fetch."""
        worth, heard = self.estimate_quality(memory, batch), is_announced(batch, at_s)
        untold = np.where(self._has_announced(memory, batch), 1.0 - worth.recall, 1.0)
        said = np.where(heard, np.log1p(worth.recall * belief.hazard / worth.false_d), 0.0)
        return Belief(untold * belief.staleness + said, untold * belief.hazard)

    def _has_announced(self, memory: Memory, batch: KnownPages) -> Bools:
        """Check whether anything was ever announced for the page's site, true or false."""
        _, told_of, _, wrong = group_rows(memory.groups, batch.site).T
        speaks: Bools = told_of + wrong > 0
        return speaks


def is_announced(batch: KnownPages, at_s: Floats) -> Bools:
    """Check whether a change was announced after the last fetch and by the given time."""
    heard: Bools = (batch.signal_s > batch.last_fetch_s) & (batch.signal_s <= at_s)
    return heard
