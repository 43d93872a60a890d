"""First fetches ask at the price of refreshes: is an unseen URL worth one now, and if not, when is it looked at again?

    worth = what it is expected to bring, in ordinary changes  x  days for which that is had  /  cost

What is expected is the gain that ``impact`` foresees (``foresight``), or what first fetches like it brought where it
foresees nothing.

Where the operator set no budget nothing is asked: there is nothing to be thrifty with. What somebody named (the starts
of sites, what robots.txt names) needs no worth. Of the budget a part is for unseen URLs whatever the price: a first
crawl is never starved by a price that went astray, and what was once believed to bring nothing is tried again.

What was learned is written down now and then: a crash loses some minutes of it.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from math import nan

import numpy as np

from vedette.engine.coordinator.state import Rules
from vedette.engine.messages import Fetched, Result
from vedette.engine.ports import Book, Gained, Look
from vedette.engine.scheduling.below_price import BelowPrice
from vedette.engine.scheduling.budget import Bucket
from vedette.engine.scheduling.fetch_cost import FetchCost
from vedette.engine.scheduling.first_groups import groups_of_unseen
from vedette.policy import Floats
from vedette.pricing import LASTING_D, Firsts, Returns
from vedette.refresh.sections import site_of

__all__ = ["FIRSTS", "FirstFetches"]

FIRSTS = "first fetches"
# The part of a budget that is for unseen URLs in any case, and how much of it may be saved.
FLOOR, SAVED_S = 0.1, 600.0
ASK_AGAIN_S = 60.0
KEEP_EVERY_S = 600.0
MOST_FOLDERS = 20_000
COSTS = Returns(usual=1.0, hope=0.0)


class FirstFetches:
    """What is known of first fetches; ``price`` says what a fetch must be worth, None where nothing has a price.

    ``below`` counts how often a URL was looked at that was not worth the price.
    """

    def __init__(self, rules: Rules, book: Book, price: Callable[[], float | None]) -> None:
        self._book, self._price = book, price
        self._firsts = _firsts_in(book.life(FIRSTS))
        self._cost, self._costs = FetchCost(), COSTS
        self._floor = Bucket(1.0, 1.0)
        # What unseen URLs of a folder are worth, with their site, as long as nothing more is learned.
        self._folders: tuple[Firsts, dict[tuple[str, int], tuple[float, str]]] = self._firsts, {}
        self._kept_s: float | None = None
        self.held = BelowPrice()
        self.below = 0
        self.rule(rules)

    def rule(self, rules: Rules) -> None:
        """Other rules from now on."""
        per_s = FLOOR * rules.budget_per_s
        self._is_priced = per_s > 0
        if self._is_priced:
            self._floor.set_pace(per_s, max(1.0, SAVED_S * per_s))

    def worth(self, url: str, in_links: int, gain: float = nan) -> float:
        """What a first fetch of a URL is worth, per unit of cost; ``gain`` is what is foreseen of it."""
        worth = float(self._firsts.foreseen(np.array([gain]), [groups_of_unseen(url, in_links)])[0])
        return worth * LASTING_D / float(self._costs.expected([(site_of(url),)])[0])

    def worths(self, urls: Sequence[str], in_links: Sequence[int]) -> Floats:
        """The same of many of which nothing is foreseen: those of one folder with about as many in-links are alike."""
        firsts, known = self._folders
        if firsts is not self._firsts or len(known) > MOST_FOLDERS:
            known = {}
            self._folders = self._firsts, known
        keys = [
            (url.partition("?")[0].rpartition("/")[0], max(links, 1).bit_length())
            for url, links in zip(urls, in_links, strict=True)
        ]
        new = {key: one for key, one in zip(keys, zip(urls, in_links, strict=True), strict=True) if key not in known}
        worth = self._firsts.worth([groups_of_unseen(*one) for one in new.values()]).tolist()
        known |= {key: (each, site_of(url)) for (key, (url, _)), each in zip(new.items(), worth, strict=True)}
        found = [known[key] for key in keys]
        sites = list(dict.fromkeys(site for _, site in found))
        costs = dict(zip(sites, self._costs.expected([(site,) for site in sites]).tolist(), strict=True))
        return np.array([each * LASTING_D / costs[site] for each, site in found], np.float64)

    @property
    def measured(self) -> float:
        """Of how many first fetches it is known what they brought, where anything at all brings something."""
        return self._firsts.returns.total[0] if self._firsts.unit > 0 else 0.0

    @property
    def price(self) -> float | None:
        """What a first fetch must be worth; None where nothing has a price."""
        return self._price() if self._is_priced else None

    def later_s(self, url: str, in_links: int, now_s: float, gain: float = nan) -> float | None:
        """When to look again at a URL that is not worth a fetch now; None where it is, and may be fetched."""
        price = self.price
        worth = self.worth(url, in_links, gain) if price is not None else 0.0
        if price is None or worth >= price or self._floor.room(now_s):
            if price is not None and worth < price:
                self._floor.take(now_s)
                self.below += 1
            self.held.let_go(url)
            return None
        self.below += 1
        self.held.put(url, worth, price, now_s)
        return max(self._floor.ready_s, now_s + ASK_AGAIN_S)

    def ended(self, results: Sequence[Result]) -> None:
        """What pages cost that were fetched."""
        some = [result for result in results if isinstance(result, Fetched) and result.errand.robots_of is None]
        if some:
            sizes, held_s = [result.body_bytes for result in some], [result.held_s for result in some]
            self._cost = self._cost.after(sizes, held_s)
            sites = [(site_of(result.errand.url),) for result in some]
            self._costs = self._costs.after(sites, self._cost.of(sizes, held_s))

    def gained(self, gains: Sequence[Gained], now_s: float) -> None:
        """What first fetches of pages brought to search: ``gain`` is of the first fetch of each."""
        brought = {one.page: one.gain for one in gains if one.gain is not None}
        looks = self._book.looks(list(brought)) if brought else []
        if not looks:
            return
        self._firsts = self._firsts.came([_groups(look) for look in looks], _column(brought, looks))
        self._keep_now_and_then(now_s)

    def changed(self, gains: Sequence[Gained], now_s: float) -> None:
        """What changes of known pages brought: by that first fetches are held against refreshes."""
        some = [one.gain for one in gains if one.gain is not None]
        if some:
            self._firsts = self._firsts.changed(np.array(some, np.float64))
            self._keep_now_and_then(now_s)

    def _keep_now_and_then(self, now_s: float) -> None:
        if self._kept_s is None or abs(now_s - self._kept_s) >= KEEP_EVERY_S:
            self._book.set_life(FIRSTS, json.dumps(asdict(self._firsts)))
            self._kept_s = now_s


def _groups(look: Look) -> tuple[str, str, str]:
    return groups_of_unseen(look.url, look.kept.links or 1)


def _column(brought: dict[int, float], looks: Sequence[Look]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array([brought[look.page.id] for look in looks], np.float64)


def _firsts_in(text: str | None) -> Firsts:
    """What an earlier run wrote; nothing where that makes no sense.

    >>> _firsts_in('{"returns": 7}') == _firsts_in("[") == _firsts_in(None) == Firsts()
    True
    >>> _firsts_in(json.dumps(asdict(Firsts(changes=2.0, gained=1.5)))).unit
    0.25
    """
    try:
        kept = json.loads(text or "{}")
        groups = {str(name): (float(number), float(sum_)) for name, (number, sum_) in kept["returns"]["groups"].items()}
        number, brought, squares = map(float, kept["returns"]["total"])
        returns = replace(Returns(), total=(number, brought, squares), groups=groups)
        firsts = Firsts(returns, float(kept["changes"]), float(kept["gained"]))
    except (TypeError, ValueError, KeyError, AttributeError):
        return Firsts()
    return firsts if firsts.is_sound else Firsts()
