"""URL order: sort the unseen URLs of a host by estimated impact, or else by worth at the price.

Where the price binds, the unseen URLs of a host are sorted by the mean gain of similar first fetches.

Otherwise URLs worth the price would wait behind URLs that are not, if the latter were found first. Sorting is off while
there is no price, before any URL was held back for it, before any first fetch was measured (breadth first then), and
where impact estimates are available.

URLs worth the price are in front queues 2 to 5, the rest in the last one. Queues are drawn with weights that halve, so
a host that has both gives a small part to the others, and nothing starves. Newly found URLs get their queue at once.
Waiting URLs are *sorted*: a few thousand are scored per turn, and when all were, the whole host is reordered. A host is
sorted if half of the URLs judged in a turn were below the price, and again only after a while, when price or
measurements have moved.

Useful for: a host whose sections differ. Not useful for: telling apart URLs in one section, at one depth, with equally
many in-links; that takes searches.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, nan
from typing import Protocol

import numpy as np
import numpy.typing as npt

from vedette.engine.coordinator.hosts import HostTable
from vedette.engine.coordinator.state import FoundUrl, HostState, SortState
from vedette.engine.ports import CrawlStore, Ids, LeasedUrl, UrlFrontier
from vedette.engine.scheduling.first_fetch import FirstFetches
from vedette.frontier.impact.estimates import UnseenWithGain, assign_by_rank
from vedette.frontier.unseen import UnseenUrls
from vedette.policy import Floats, Ints


class ImpactEstimates(Protocol):
    """Port to the impact estimates; ``version`` identifies the impact pass, 0 if there is none."""

    @property
    def version(self) -> int:
        """Impact port of URL order: number of the impact pass."""

    def get_known(self, ids: Ids) -> Floats:
        """Impact port of URL order: return the estimated impact of each URL's first fetch; NaN if none."""

    def get_gains(self, ids: Ids, urls: Sequence[str]) -> Floats:
        """Impact port of URL order: the same, with the average of the URL's folder if it has none."""

    def get_front_queues(self, gains: Floats) -> Ints:
        """Impact port of URL order: return the front queues for newly found URLs of these impacts."""


class NoImpact:
    """Impact estimates for URL order where none were computed.

    >>> NO_IMPACT.version, NO_IMPACT.get_gains(np.array([1], np.uint32), ["https://a.test/"]).tolist()
    (0, [nan])
    """

    version = 0

    def get_known(self, ids: Ids) -> Floats:
        """Return no impact estimate (NaN) for any URL."""
        return np.full(len(ids), np.nan)

    def get_gains(self, ids: Ids, urls: Sequence[str]) -> Floats:  # noqa: ARG002 - the shape that all have
        """Return no impact estimate (NaN) for any URL or folder."""
        return self.get_known(ids)

    def get_front_queues(self, gains: Floats) -> Ints:
        """Return the last front queue for all URLs without impact estimates; never called."""
        return np.full(len(gains), 7)


NO_IMPACT = NoImpact()


class ImpactLookup:
    """Look up impact estimates for URL order; use it only if ``is_active``."""

    def __init__(self, hosts: HostTable, urls: UrlFrontier, foresight: ImpactEstimates) -> None:
        self._hosts, self._urls, self._estimates = hosts, urls, foresight

    @property
    def is_active(self) -> bool:
        """Whether URLs are ordered by impact and an impact pass has been computed."""
        return self._hosts.rules.order == "impact" and self._estimates.version > 0

    def get_front_queues(self, urls: Sequence[str]) -> dict[int, int]:
        """Return the front queues of newly found URLs by position, if their impact is estimated."""
        gains = self._estimates.get_gains(np.zeros(len(urls), np.uint32), urls)
        places = np.flatnonzero(np.isfinite(gains))
        return dict(zip(places.tolist(), self._estimates.get_front_queues(gains[places]).tolist(), strict=True))

    def reorder_host(self, host: HostState) -> None:
        """Reorder a host's waiting URLs by impact after each new impact pass, the best first.

        URLs without an estimate (known pages that wait again, URLs found since) stay in their queue, in front.
        """
        if not self.is_active or host.impact_version == self._estimates.version:
            return
        host.impact_version = self._estimates.version
        ids, before = self._urls.get_queue(host.id)
        gains = self._estimates.get_known(ids)
        is_known = np.isfinite(gains)
        fronts = before.astype(np.int64)
        fronts[is_known] = assign_by_rank(gains[is_known])
        order = np.argsort(np.where(is_known, -gains, -inf), kind="stable")
        self._urls.set_queue(host.id, ids[order], fronts[order])

    def add_impact(self, leased: Sequence[LeasedUrl], batch: UnseenUrls) -> UnseenUrls:
        """Add the estimated impact of each leased URL to the order policy's batch."""
        return UnseenWithGain(batch.depth, batch.found, batch.inlinks, self.get_gains(leased))

    def get_gain(self, leased: LeasedUrl) -> float:
        """Return the estimated impact of one leased URL; NaN if there is none."""
        return float(self.get_gains([leased])[0]) if self.is_active else nan

    def get_gains(self, leased: Sequence[LeasedUrl]) -> Floats:
        """Return the estimated impact of leased URLs; NaN if there is none."""
        return self._estimates.get_gains(np.array([one.id for one in leased], np.uint32), [one.url for one in leased])


# Multiples of the price that earn a better front queue.
PRICE_LEVELS = np.array([4.0, 2.0, 1.4, 1.0])
BEST_QUEUE, LAST_QUEUE = 2, 7
# How many URLs are scored in one turn of a host, and the time until its next turn.
URLS_PER_STEP, NEXT_STEP_S = 5_000, 1.0
# After a sort, a host is not sorted again for this long, longer if it has many URLs; nor while little has moved.
RESORT_AFTER_S, RESORT_PER_URL_S = 300.0, 1e-3
PRICE_TOLERANCE, MEASURED_TOLERANCE = 0.01, 0.05
# How many URLs of all hosts are being sorted at a time; one host may have more. A sort without a turn for this long is
# dropped.
MAX_SORTING = 200_000
ABANDONED_AFTER_S = 600.0


@dataclass(slots=True)
class _SortJob:
    """A sort of a host's unseen URLs in progress: ids, and their worth so far (NaN: keeps its position)."""

    ids: Ids
    worth: npt.NDArray[np.float32]
    done: int
    stepped_s: float


class WorthSorter:
    """Sort the unseen URLs of hosts by the worth of their first fetches, in steps."""

    def __init__(
        self, hosts: HostTable, urls: UrlFrontier, book: CrawlStore, firsts: FirstFetches, foreseeing: ImpactLookup
    ) -> None:
        self._hosts, self._urls, self._store = hosts, urls, book
        self._first_fetches, self._impact = firsts, foreseeing
        self._sifting: dict[int, _SortJob] = {}

    @property
    def price(self) -> float | None:
        """The price for sorting unseen URLs; None if it does not bind or worths do not differ."""
        is_mine = self._hosts.rules.order == "impact" and not self._impact.is_active
        return (
            self._first_fetches.price
            if is_mine and len(self._first_fetches.below_price) and self._first_fetches.measured
            else None
        )

    def get_front_queues(self, named: Sequence[FoundUrl], price: float) -> dict[int, int]:
        """Return the front queues of newly found URLs by worth, by position; named URLs need no worth."""
        places = [place for place, one in enumerate(named) if one.depth and one.front is None]
        if not places:
            return {}
        worth = self._first_fetches.estimate_worths([named[place].url for place in places], [1] * len(places))
        return dict(zip(places, queues_at_price(worth, price).tolist(), strict=True))

    def should_sort(self, host: HostState, looked: int, below: int, now_s: float) -> bool:
        """Check whether a host's URLs need sorting: half of those judged in a turn were below the price."""
        if host.id in self._sifting:
            return True
        price = self.price
        if price is None or 2 * below < max(looked, 1) or self._is_fresh(host, price, now_s):
            return False
        return self._start_sort(host, now_s)

    def step(self, host: HostState, now_s: float) -> None:
        """Score some more URLs of a host that is being sorted; the last step reorders its queue."""
        sifting, price = self._sifting.get(host.id), self.price
        if sifting is None:
            return
        if price is None:
            del self._sifting[host.id]
            return
        self._score_step(sifting)
        sifting.stepped_s = now_s
        if sifting.done >= len(sifting.ids):
            del self._sifting[host.id]
            self._reorder(host, sifting, price)
            host.sort_state = SortState(now_s, price, self._first_fetches.measured)

    def _is_fresh(self, host: HostState, price: float, now_s: float) -> bool:
        sifted = host.sort_state
        if sifted is None:
            return False
        if abs(now_s - sifted.at_s) < max(RESORT_AFTER_S, RESORT_PER_URL_S * self._urls.count_waiting(host.id)):
            return True
        same = abs(price - sifted.price) <= PRICE_TOLERANCE * sifted.price
        return same and abs(self._first_fetches.measured - sifted.measured) <= MEASURED_TOLERANCE * sifted.measured

    def _start_sort(self, host: HostState, now_s: float) -> bool:
        left = [id_ for id_, one in self._sifting.items() if abs(now_s - one.stepped_s) > ABANDONED_AFTER_S]
        for id_ in left:
            del self._sifting[id_]
        at_once = sum(len(one.ids) for one in self._sifting.values())
        if at_once and at_once + self._urls.count_waiting(host.id) > MAX_SORTING:
            return False
        waiting, fronts = self._urls.get_queue(host.id)
        ids = np.sort(waiting[fronts >= BEST_QUEUE])
        self._sifting[host.id] = _SortJob(ids, np.full(len(ids), np.nan, np.float32), 0, now_s)
        return True

    def _score_step(self, sifting: _SortJob) -> None:
        """Score the next URLs of a sort by worth; known pages that wait for a refresh keep their position."""
        ids = sifting.ids[sifting.done : sifting.done + URLS_PER_STEP]
        urls, pages = self._store.get_urls(ids.tolist()), self._store.get_pages(ids.tolist())
        rows = [row for row, id_ in enumerate(ids.tolist()) if id_ in urls and id_ not in pages]
        if rows:
            some = ids[rows]
            worth = self._first_fetches.estimate_worths(
                [urls[id_] for id_ in some.tolist()], self._urls.count_inlinks(some).tolist()
            )
            sifting.worth[sifting.done + np.array(rows)] = worth
        sifting.done += len(ids)

    def _reorder(self, host: HostState, sifting: _SortJob, price: float) -> None:
        """Reorder a host's queue by front queue, then worth; unscored URLs come first in their queue."""
        waiting, before = self._urls.get_queue(host.id)
        if not len(sifting.ids):
            return
        row = np.minimum(np.searchsorted(sifting.ids, waiting), len(sifting.ids) - 1)
        worth = np.where(sifting.ids[row] == waiting, sifting.worth[row], np.nan).astype(np.float64)
        weighed = np.isfinite(worth) & (before >= BEST_QUEUE)
        fronts = np.where(weighed, queues_at_price(worth, price), before)
        order = np.lexsort((np.where(weighed, -worth, -np.inf), fronts))
        self._urls.set_queue(host.id, waiting[order], fronts[order])


def queues_at_price(worth: Floats, price: float) -> Ints:
    """Return the front queue for each first-fetch worth, at a price.

    >>> queues_at_price(np.array([50.0, 20.0, 14.0, 10.0, 9.9]), 10.0).tolist()
    [2, 3, 4, 5, 7]
    """
    level = (worth[:, None] < price * PRICE_LEVELS[None, :]).sum(axis=1)
    return np.asarray(np.where(level < len(PRICE_LEVELS), BEST_QUEUE + level, LAST_QUEUE), np.int64)
