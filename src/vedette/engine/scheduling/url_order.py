"""How the unseen URLs of a host stand in line: by the impact that is foreseen, or else by worth at the price.

Where the price binds, the unseen URLs of a host stand in line by what first fetches like them brought.

Without it, what is worth the price would wait behind what is not, where the latter was found first. Nothing happens
while nothing has a price, before anything was held back for it, before any first fetch was measured (breadth first
then), and where ``foresight`` says more.

What is worth the price stands in the front queues 2 to 5, the rest in the last: queues are drawn with weights that
halve, so of a host that has both a small part of what is drawn is of the others, and nothing starves. What is found is
put into its queue at once. Those who wait are *sifted*: a few thousand a turn are weighed, and when all were, the whole
host stands in line anew. A host is sifted where half of what was looked at in a turn was not worth the price, and again
only after a while, when price or measurements have moved.

Useful for: a host whose sections differ. Not useful for: telling apart what lies in one section, at one depth, with as
many in-links; for that somebody must search.
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
    """Whoever has what was worked out. ``version`` tells one making from another; 0 where there is none."""

    @property
    def version(self) -> int:
        """Which making this is."""

    def get_known(self, ids: Ids) -> Floats:
        """What a first fetch of each of these URLs is expected to bring; NaN where it was not worked out."""

    def get_gains(self, ids: Ids, urls: Sequence[str]) -> Floats:
        """The same; where it was not worked out, what is usual where the URL lies, and NaN only where nothing is."""

    def get_front_queues(self, gains: Floats) -> Ints:
        """The front queues for URLs that are found now and of which so much is expected."""


class NoImpact:
    """Nobody knows anything.

    >>> NO_IMPACT.version, NO_IMPACT.get_gains(np.array([1], np.uint32), ["https://a.test/"]).tolist()
    (0, [nan])
    """

    version = 0

    def get_known(self, ids: Ids) -> Floats:
        """Nothing."""
        return np.full(len(ids), np.nan)

    def get_gains(self, ids: Ids, urls: Sequence[str]) -> Floats:  # noqa: ARG002 - the shape that all have
        """Nothing."""
        return self.get_known(ids)

    def get_front_queues(self, gains: Floats) -> Ints:
        """The last of all; nobody asks."""
        return np.full(len(gains), 7)


NO_IMPACT = NoImpact()


class ImpactLookup:
    """Asks ``foresight``; to be used where ``is_active``: the order is by impact, and something was worked out."""

    def __init__(self, hosts: HostTable, urls: UrlFrontier, foresight: ImpactEstimates) -> None:
        self._hosts, self._urls, self._estimates = hosts, urls, foresight

    @property
    def is_active(self) -> bool:
        """Whether something is foreseen, and the operator wants it heeded."""
        return self._hosts.rules.order == "impact" and self._estimates.version > 0

    def get_front_queues(self, urls: Sequence[str]) -> dict[int, int]:
        """The front queues of URLs that are found now, by their places, as far as what they bring is foreseen."""
        gains = self._estimates.get_gains(np.zeros(len(urls), np.uint32), urls)
        known = np.flatnonzero(np.isfinite(gains))
        return dict(zip(known.tolist(), self._estimates.get_front_queues(gains[known]).tolist(), strict=True))

    def reorder_host(self, host: HostState) -> None:
        """After each making of what is foreseen, those that wait for a host stand in line by it, the best first.

        Of whom nothing is foreseen (known pages that wait again, what was found since) stays in its queue, in front.
        """
        if not self.is_active or host.impact_version == self._estimates.version:
            return
        host.impact_version = self._estimates.version
        ids, before = self._urls.get_queue(host.id)
        gains = self._estimates.get_known(ids)
        known = np.isfinite(gains)
        fronts = before.astype(np.int64)
        fronts[known] = assign_by_rank(gains[known])
        order = np.argsort(np.where(known, -gains, -inf), kind="stable")
        self._urls.set_queue(host.id, ids[order], fronts[order])

    def add_impact(self, leased: Sequence[LeasedUrl], batch: UnseenUrls) -> UnseenUrls:
        """The batch with what is foreseen of each."""
        return UnseenWithGain(batch.depth, batch.found, batch.inlinks, self._get_gains(leased))

    def get_gain(self, leased: LeasedUrl) -> float:
        """What is foreseen of one; NaN where nothing is."""
        return float(self._get_gains([leased])[0]) if self.is_active else nan

    def _get_gains(self, leased: Sequence[LeasedUrl]) -> Floats:
        return self._estimates.get_gains(np.array([one.id for one in leased], np.uint32), [one.url for one in leased])


# So many times the price, and more, is worth a better front queue.
PRICE_LEVELS = np.array([4.0, 2.0, 1.4, 1.0])
BEST_QUEUE, LAST_QUEUE = 2, 7
# So many URLs are weighed in one turn of a host, which comes again after so long.
URLS_PER_STEP, NEXT_STEP_S = 5_000, 1.0
# Once in line, a host is not sifted again for so long, and longer where it has many URLs; nor while little has moved.
RESORT_AFTER_S, RESORT_PER_URL_S = 300.0, 1e-3
PRICE_TOLERANCE, MEASURED_TOLERANCE = 0.01, 0.05
# So many URLs are sifted at a time, of all hosts; one host may have more. Who has no turn for so long is left.
MAX_SORTING = 200_000
ABANDONED_AFTER_S = 600.0


@dataclass(slots=True)
class _SortJob:
    """URLs of a host by ascending id, their worth as far as they were weighed (NaN: stays where it is)."""

    ids: Ids
    worth: npt.NDArray[np.float32]
    done: int
    stepped_s: float


class WorthSorter:
    """Puts unseen URLs in line by what ``firsts`` says."""

    def __init__(
        self, hosts: HostTable, urls: UrlFrontier, book: CrawlStore, firsts: FirstFetches, foreseeing: ImpactLookup
    ) -> None:
        self._hosts, self._urls, self._store = hosts, urls, book
        self._first_fetches, self._impact = firsts, foreseeing
        self._sifting: dict[int, _SortJob] = {}

    @property
    def price(self) -> float | None:
        """The price where it binds and worths differ; None where nothing is to be done."""
        is_mine = self._hosts.rules.order == "impact" and not self._impact.is_active
        return (
            self._first_fetches.price
            if is_mine and len(self._first_fetches.below_price) and self._first_fetches.measured
            else None
        )

    def get_front_queues(self, named: Sequence[FoundUrl], price: float) -> dict[int, int]:
        """The front queues of URLs that are found now, by their places; what somebody named needs no worth."""
        places = [place for place, one in enumerate(named) if one.depth and one.front is None]
        if not places:
            return {}
        worth = self._first_fetches.estimate_worths([named[place].url for place in places], [1] * len(places))
        return dict(zip(places, queues_at_price(worth, price).tolist(), strict=True))

    def should_sort(self, host: HostState, looked: int, below: int, now_s: float) -> bool:
        """Whether a host is being sifted: it is where half of those looked at in a turn were below the price."""
        if host.id in self._sifting:
            return True
        price = self.price
        if price is None or 2 * below < max(looked, 1) or self._is_fresh(host, price, now_s):
            return False
        return self._start_sort(host, now_s)

    def step(self, host: HostState, now_s: float) -> None:
        """Weigh some more URLs of a host that is being sifted; the last step puts all of them in line."""
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
        """Known pages among them, which wait for a refresh, stay where they are."""
        ids = sifting.ids[sifting.done : sifting.done + URLS_PER_STEP]
        urls, known = self._store.get_urls(ids.tolist()), self._store.get_pages(ids.tolist())
        rows = [row for row, id_ in enumerate(ids.tolist()) if id_ in urls and id_ not in known]
        if rows:
            some = ids[rows]
            worth = self._first_fetches.estimate_worths(
                [urls[id_] for id_ in some.tolist()], self._urls.count_inlinks(some).tolist()
            )
            sifting.worth[sifting.done + np.array(rows)] = worth
        sifting.done += len(ids)

    def _reorder(self, host: HostState, sifting: _SortJob, price: float) -> None:
        """By front queue, then by worth, then as they stood; who was not weighed stands in front in its queue."""
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
    """The front queue of each worth, at a price.

    >>> queues_at_price(np.array([50.0, 20.0, 14.0, 10.0, 9.9]), 10.0).tolist()
    [2, 3, 4, 5, 7]
    """
    level = (worth[:, None] < price * PRICE_LEVELS[None, :]).sum(axis=1)
    return np.asarray(np.where(level < len(PRICE_LEVELS), BEST_QUEUE + level, LAST_QUEUE), np.int64)
