"""First fetches: is an unseen URL worth a fetch at the current price, and if not, when is it checked again?

    worth = expected gain, in ordinary changes  x  days for which it lasts  /  cost

The expected gain is the estimate of the latest impact pass, or the mean gain of similar first fetches if it has none.

Without an operator budget there is no price, and every URL may be fetched. Named URLs (start URLs, sitemaps in
robots.txt) need no worth. Part of the budget is for unseen URLs at any price: a wrong price never starves a first
crawl, and URLs once believed worthless are tried again.

The model is saved periodically: a crash loses some minutes of it.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from math import isfinite, nan
from typing import NamedTuple, Protocol

import numpy as np

from vedette.engine.coordinator.state import CrawlRules
from vedette.engine.messages import FetchResult, FetchSuccess
from vedette.engine.ports import CrawlStore, FetchGain
from vedette.engine.scheduling.budget import TokenBucket
from vedette.engine.scheduling.fetch_cost import BusySites, FetchCost
from vedette.model import section_of, site_of
from vedette.policy import Floats
from vedette.pricing import GAIN_LASTS_D, FirstFetchModel, Returns, in_links_group

MAX_DEPTH = 9


def list_groups(url: str, in_links: int) -> tuple[str, str, str]:
    """Return the first-fetch groups of a URL: its section, its folder depth, and roughly how many pages link to it.

    >>> list_groups("https://example.org/docs/api/v3/sets.html", 5)
    ('https://example.org/docs/api/', 'depth 3', 'in 4')
    """
    folders = max(url.partition("?")[0].count("/") - 3, 0)
    return section_of(url), f"depth {min(folders, MAX_DEPTH)}", in_links_group(in_links)


HELD_KEY = "held back"
MAX_HELD = 5_000
TOP_SHOWN = 20
# Each is checked again after a minute or more; one not checked for this long was fetched, or is far back in the queue.
MAX_AGE_S = 3_600.0
KEEP_EVERY_S = 60.0


class HeldUrl(NamedTuple):
    """An unseen URL held back below the price: its first-fetch worth, the price, and the time."""

    url: str
    worth: float
    price: float
    at_s: float


class HeldSummary(NamedTuple):
    """Summary of unseen URLs held back below the price in the last hour, and those worth most."""

    urls: int = 0
    best: tuple[HeldUrl, ...] = ()


class BelowPrice:
    """The latest unseen URLs held back because a first fetch is worth less than the price; bounded.

    >>> held = BelowPrice()
    >>> held.add("https://a.test/1", 2.0, 5.0, 0.0); held.add("https://a.test/2", 3.0, 5.0, 10.0)
    >>> held.summarize(20.0).urls, held.summarize(20.0).best[0].url, held.summarize(4_000.0).urls
    (2, 'https://a.test/2', 0)
    """

    def __init__(self) -> None:
        self._held: dict[str, HeldUrl] = {}
        self._kept_s: float | None = None

    def __len__(self) -> int:
        return len(self._held)

    def add(self, url: str, worth: float, price: float, now_s: float) -> None:
        """Add an unseen URL whose first fetch is worth less than the price."""
        self._held.pop(url, None)
        self._held[url] = HeldUrl(url, worth, price, now_s)
        while len(self._held) > MAX_HELD:
            del self._held[next(iter(self._held))]

    def remove(self, url: str) -> None:
        """Remove a URL that is no longer held back below the price."""
        self._held.pop(url, None)

    def summarize(self, now_s: float) -> HeldSummary:
        """Summarize the URLs held back below the price in the last hour."""
        lately = [one for one in self._held.values() if abs(now_s - one.at_s) <= MAX_AGE_S]
        return HeldSummary(len(lately), tuple(sorted(lately, key=lambda one: (-one.worth, one.url))[:TOP_SHOWN]))

    def save_periodically(self, book: CrawlStore, now_s: float) -> None:
        """Save the summary of URLs held back below the price periodically, for the console."""
        if self._kept_s is None or abs(now_s - self._kept_s) >= KEEP_EVERY_S:
            waiting = self.summarize(now_s)
            book.set_value(HELD_KEY, json.dumps({"at_s": now_s, "urls": waiting.urls, "best": waiting.best}))
            self._kept_s = now_s


def load_held_summary(book: CrawlStore, now_s: float) -> HeldSummary:
    """Load the saved summary of URLs held back below the price; empty if it is old or invalid."""
    try:
        data = json.loads(book.get_value(HELD_KEY) or "{}")
        best = tuple(
            HeldUrl(str(url), float(worth), float(price), float(at_s)) for url, worth, price, at_s in data["best"]
        )
        urls, at_s = int(data["urls"]), float(data["at_s"])
    except (TypeError, ValueError, KeyError):
        return HeldSummary()
    sound = all(isfinite(each) for one in best for each in one[1:])
    return HeldSummary(urls, best) if sound and abs(now_s - at_s) <= MAX_AGE_S else HeldSummary()


FIRSTS_KEY = "first fetches"
# The share of a budget reserved for unseen URLs, and how much of it may be saved.
BUDGET_FLOOR, MAX_SAVED_S = 0.1, 600.0
RETRY_AFTER_S = 60.0
SAVE_EVERY_S = 600.0
MAX_FOLDERS = 20_000
INITIAL_COSTS = Returns(usual=1.0, hope=0.0)


class PriceSource(Protocol):
    """Port to the current price of a fetch, for first fetches; None if there is no price."""

    @property
    def price(self) -> float | None:
        """The current price of a fetch, which first fetches must be worth."""


class FirstFetches:
    """Model of first fetches of unseen URLs; ``refresher`` gives the price that a fetch must be worth.

    ``below_count`` counts how often a URL was below the price.
    """

    def __init__(self, rules: CrawlRules, book: CrawlStore, refresher: PriceSource) -> None:
        self._store, self._refresher = book, refresher
        self._model = _parse_firsts(book.get_value(FIRSTS_KEY))
        self._cost, self._costs = FetchCost(), INITIAL_COSTS
        self._floor = TokenBucket(1.0, 1.0)
        # The worth of unseen URLs by folder, with their site, cached until more is learned.
        self._folders: tuple[FirstFetchModel, dict[tuple[str, int], tuple[float, str]]] = self._model, {}
        self._kept_s: float | None = None
        self.below_price = BelowPrice()
        self.below_count = 0
        self.apply_rules(rules)

    def apply_rules(self, rules: CrawlRules) -> None:
        """Apply changed crawl rules to first fetches."""
        self._busy = BusySites(rules.sites)
        self.set_budget(rules.budget_per_s)

    def set_budget(self, budget_per_s: float) -> None:
        """Set the fetch budget; a part of it is for unseen URLs at any price."""
        per_s = BUDGET_FLOOR * budget_per_s
        self._is_priced = per_s > 0
        if self._is_priced:
            self._floor.set_rate(per_s, max(1.0, MAX_SAVED_S * per_s))
        else:
            self.below_price = BelowPrice()

    def estimate_worth(self, url: str, in_links: int, gain: float = nan) -> float:
        """Estimate the worth of a URL's first fetch per unit of cost; ``gain`` is its estimated impact."""
        worth = float(self._model.worth_from_gains(np.array([gain]), [list_groups(url, in_links)])[0])
        return worth * GAIN_LASTS_D / float(self._costs.estimate([(site_of(url),)])[0])

    def estimate_worths(self, urls: Sequence[str], in_links: Sequence[int], gains: Floats | None = None) -> Floats:
        """Estimate the first-fetch worth of many URLs by folder and in-links, or by known impact ``gains``."""
        firsts, cache = self._folders
        if firsts is not self._model or len(cache) > MAX_FOLDERS:
            cache = {}
            self._folders = self._model, cache
        keys = [
            (url.partition("?")[0].rpartition("/")[0], max(links, 1).bit_length())
            for url, links in zip(urls, in_links, strict=True)
        ]
        new = {key: one for key, one in zip(keys, zip(urls, in_links, strict=True), strict=True) if key not in cache}
        worth = self._model.worth([list_groups(*one) for one in new.values()]).tolist()
        cache |= {key: (each, site_of(url)) for (key, (url, _)), each in zip(new.items(), worth, strict=True)}
        found = [cache[key] for key in keys]
        sites = list(dict.fromkeys(site for _, site in found))
        costs = dict(zip(sites, self._costs.estimate([(site,) for site in sites]).tolist(), strict=True))
        per_day = np.array([each for each, _ in found], np.float64)
        rows = np.flatnonzero(np.isfinite(gains)).tolist() if gains is not None else []
        if gains is not None and rows:
            groups = [list_groups(urls[row], in_links[row]) for row in rows]
            per_day[rows] = self._model.worth_from_gains(gains[rows], groups)
        return np.asarray(per_day * GAIN_LASTS_D / np.array([costs[site] for _, site in found], np.float64))

    @property
    def measured(self) -> float:
        """Number of first fetches whose search gain was measured; 0 if no fetch gains anything."""
        return self._model.returns.total[0] if self._model.unit > 0 else 0.0

    @property
    def price(self) -> float | None:
        """The price that a first fetch must be worth; None if there is no price."""
        return self._refresher.price if self._is_priced else None

    def check_price(self, url: str, in_links: int, now_s: float, gain: float = nan) -> float | None:
        """Return when to check an unseen URL below the price again; None if it may be fetched now."""
        price = self.price
        if price is not None:
            price *= float(self._busy.find_factors([url], now_s)[0])
        worth = self.estimate_worth(url, in_links, gain) if price is not None else 0.0
        if price is None or worth >= price or self._floor.count_available(now_s):
            if price is not None and worth < price:
                self._floor.take(now_s)
                self.below_count += 1
            self.below_price.remove(url)
            return None
        self.below_count += 1
        self.below_price.add(url, worth, price, now_s)
        return max(self._floor.ready_s, now_s + RETRY_AFTER_S)

    def on_results(self, results: Sequence[FetchResult]) -> None:
        """Learn the cost of first fetches from fetch results."""
        some = [result for result in results if isinstance(result, FetchSuccess) and result.task.robots_of is None]
        if some:
            sizes, held_s = [result.body_bytes for result in some], [result.connection_s for result in some]
            self._cost = self._cost.observe(sizes, held_s)
            sites = [(site_of(result.task.url),) for result in some]
            self._costs = self._costs.observe(sites, self._cost.estimate(sizes, held_s))

    def on_first_gains(self, gains: Sequence[FetchGain], now_s: float) -> None:
        """Learn from the measured search gains of first fetches."""
        brought = {one.page: one.gain for one in gains if one.gain is not None}
        looks = self._store.get_known_pages(list(brought)) if brought else []
        if not looks:
            return
        self._model = self._model.add_first_fetches(
            [list_groups(look.url, look.state.links or 1) for look in looks],
            np.array([brought[look.page.id] for look in looks], np.float64),
        )
        self._save_periodically(now_s)

    def on_change_gains(self, gains: Sequence[FetchGain], now_s: float) -> None:
        """Learn from the gains of page changes, the unit for comparing first fetches."""
        some = [one.gain for one in gains if one.gain is not None]
        if some:
            self._model = self._model.add_changes(np.array(some, np.float64))
            self._save_periodically(now_s)

    def _save_periodically(self, now_s: float) -> None:
        if self._kept_s is None or abs(now_s - self._kept_s) >= SAVE_EVERY_S:
            self._store.set_value(FIRSTS_KEY, json.dumps(asdict(self._model)))
            self._kept_s = now_s


def _parse_firsts(text: str | None) -> FirstFetchModel:
    """Parse the first-fetch model that an earlier run saved; empty if invalid.

    >>> _parse_firsts('{"returns": 7}') == _parse_firsts("[") == _parse_firsts(None) == FirstFetchModel()
    True
    >>> _parse_firsts(json.dumps(asdict(FirstFetchModel(changes=2.0, gained=1.5)))).unit
    0.25
    """
    try:
        data = json.loads(text or "{}")
        groups = {str(name): (float(number), float(sum_)) for name, (number, sum_) in data["returns"]["groups"].items()}
        number, brought, squares = map(float, data["returns"]["total"])
        returns = replace(Returns(), total=(number, brought, squares), groups=groups)
        firsts = FirstFetchModel(returns, float(data["changes"]), float(data["gained"]))
    except (TypeError, ValueError, KeyError, AttributeError):
        return FirstFetchModel()
    return firsts if firsts.is_sound else FirstFetchModel()
