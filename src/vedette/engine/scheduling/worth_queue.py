"""Where the price binds, the unseen URLs of a host stand in line by what first fetches like them brought.

Without it, what is worth the price would wait behind what is not, where the latter was found first. Nothing happens
while nothing has a price, before anything was held back for it, before any first fetch was measured (breadth first
then), and where ``foresight`` says more (``foreseeing``).

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

import numpy as np
import numpy.typing as npt

from vedette.engine.coordinator.hosts import Hosts
from vedette.engine.coordinator.state import KeptHost, Named, Sifted
from vedette.engine.ports import Book, Ids, Urls
from vedette.engine.scheduling.first_fetch import FirstFetches
from vedette.engine.scheduling.impact_lookup import Foreseeing
from vedette.policy import Floats, Ints

__all__ = ["SOON_S", "ByWorth", "fronts_at"]

# So many times the price, and more, is worth a better front queue.
LEVELS = np.array([4.0, 2.0, 1.4, 1.0])
BEST, LAST = 2, 7
# So many URLs are weighed in one turn of a host, which comes again after so long.
STEP, SOON_S = 5_000, 1.0
# Once in line, a host is not sifted again for so long, and longer where it has many URLs; nor while little has moved.
AGAIN_S, AGAIN_PER_URL_S = 300.0, 1e-3
SAME_PRICE, SAME_MEASURED = 0.01, 0.05
# So many URLs are sifted at a time, of all hosts; one host may have more. Who has no turn for so long is left.
MOST_AT_ONCE = 200_000
LEFT_S = 600.0


@dataclass(slots=True)
class _Sifting:
    """URLs of a host by ascending id, their worth as far as they were weighed (NaN: stays where it is)."""

    ids: Ids
    worth: npt.NDArray[np.float32]
    done: int
    stepped_s: float


class ByWorth:
    """Puts unseen URLs in line by what ``firsts`` says."""

    def __init__(self, hosts: Hosts, urls: Urls, book: Book, firsts: FirstFetches, foreseeing: Foreseeing) -> None:
        self._hosts, self._urls, self._book = hosts, urls, book
        self._firsts, self._foreseeing = firsts, foreseeing
        self._sifting: dict[int, _Sifting] = {}

    @property
    def _price(self) -> float | None:
        """The price where it binds and worths differ; None where nothing is to be done."""
        is_mine = self._hosts.rules.order == "impact" and not self._foreseeing.is_at_work
        return self._firsts.price if is_mine and len(self._firsts.held) and self._firsts.measured else None

    def fronts(self, named: Sequence[Named]) -> dict[int, int]:
        """The front queues of URLs that are found now, by their places; what somebody named needs no worth."""
        price = self._price
        places = [place for place, one in enumerate(named) if one.depth and one.front is None]
        if price is None or not places:
            return {}
        worth = self._firsts.worths([named[place].url for place in places], [1] * len(places))
        return dict(zip(places, fronts_at(worth, price).tolist(), strict=True))

    def wants(self, host: KeptHost, looked: int, below: int, now_s: float) -> bool:
        """Whether a host is being sifted: it is where half of those looked at in a turn were below the price."""
        if host.id in self._sifting:
            return True
        price = self._price
        if price is None or 2 * below < max(looked, 1) or self._is_fresh(host, price, now_s):
            return False
        return self._begin(host, now_s)

    def step(self, host: KeptHost, now_s: float) -> None:
        """Weigh some more URLs of a host that is being sifted; the last step puts all of them in line."""
        sifting, price = self._sifting.get(host.id), self._price
        if sifting is None:
            return
        if price is None:
            del self._sifting[host.id]
            return
        self._weigh(sifting)
        sifting.stepped_s = now_s
        if sifting.done >= len(sifting.ids):
            del self._sifting[host.id]
            self._line_up(host, sifting, price)
            host.sifted = Sifted(now_s, price, self._firsts.measured)

    def _is_fresh(self, host: KeptHost, price: float, now_s: float) -> bool:
        sifted = host.sifted
        if sifted is None:
            return False
        if abs(now_s - sifted.at_s) < max(AGAIN_S, AGAIN_PER_URL_S * self._urls.waiting(host.id)):
            return True
        same = abs(price - sifted.price) <= SAME_PRICE * sifted.price
        return same and abs(self._firsts.measured - sifted.measured) <= SAME_MEASURED * sifted.measured

    def _begin(self, host: KeptHost, now_s: float) -> bool:
        left = [id_ for id_, one in self._sifting.items() if abs(now_s - one.stepped_s) > LEFT_S]
        for id_ in left:
            del self._sifting[id_]
        at_once = sum(len(one.ids) for one in self._sifting.values())
        if at_once and at_once + self._urls.waiting(host.id) > MOST_AT_ONCE:
            return False
        waiting, fronts = self._urls.lined_up(host.id)
        ids = np.sort(waiting[fronts >= BEST])
        self._sifting[host.id] = _Sifting(ids, np.full(len(ids), np.nan, np.float32), 0, now_s)
        return True

    def _weigh(self, sifting: _Sifting) -> None:
        """Known pages among them, which wait for a refresh, stay where they are."""
        ids = sifting.ids[sifting.done : sifting.done + STEP]
        urls, known = self._book.urls_by_id(ids.tolist()), self._book.copies(ids.tolist())
        rows = [row for row, id_ in enumerate(ids.tolist()) if id_ in urls and id_ not in known]
        if rows:
            some = ids[rows]
            worth = self._firsts.worths([urls[id_] for id_ in some.tolist()], self._urls.times_named(some).tolist())
            sifting.worth[sifting.done + np.array(rows)] = worth
        sifting.done += len(ids)

    def _line_up(self, host: KeptHost, sifting: _Sifting, price: float) -> None:
        """By front queue, then by worth, then as they stood; who was not weighed stands in front in its queue."""
        waiting, before = self._urls.lined_up(host.id)
        if not len(sifting.ids):
            return
        row = np.minimum(np.searchsorted(sifting.ids, waiting), len(sifting.ids) - 1)
        worth = np.where(sifting.ids[row] == waiting, sifting.worth[row], np.nan).astype(np.float64)
        weighed = np.isfinite(worth) & (before >= BEST)
        fronts = np.where(weighed, fronts_at(worth, price), before)
        order = np.lexsort((np.where(weighed, -worth, -np.inf), fronts))
        self._urls.line_up(host.id, waiting[order], fronts[order])


def fronts_at(worth: Floats, price: float) -> Ints:
    """The front queue of each worth, at a price.

    >>> fronts_at(np.array([50.0, 20.0, 14.0, 10.0, 9.9]), 10.0).tolist()
    [2, 3, 4, 5, 7]
    """
    level = (worth[:, None] < price * LEVELS[None, :]).sum(axis=1)
    return np.asarray(np.where(level < len(LEVELS), BEST + level, LAST), np.int64)
