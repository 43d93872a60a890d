"""Price controller: the target number of refreshes, their actual number, and the price at which they meet.

    left   = budget - other fetches, but at least a fixed share of the budget
    target = left, with a budget; otherwise every known page once in three days
    never more than every known page once an hour

Refreshes are counted when they become due, not when they are sent: ``budget`` cuts what is sent, so that number would
never show a price that is too low. A page is counted once until it is fetched, so a slow host counts for no more than
it can take.

The price moves every few minutes, once enough fetches were due that chance does not dominate. There is also a bucket,
for policies without a price and for those that no price can move: unused refreshes are saved for a day.
"""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from math import isfinite
from typing import NamedTuple

import numpy as np

from vedette.engine.ports import CrawlStore
from vedette.policy import Floats
from vedette.pricing import MAX_OVERSPENT, Price
from vedette.timeutil import DAY_S

PRICE_KEY = "refresh purse"

DEFAULT_INTERVAL_S = 3 * DAY_S
MIN_INTERVAL_S = 3_600.0
# The minimum share of a budget for refreshes, however many pages are new.
REFRESH_FLOOR = 0.2
MOVE_EVERY_S = 300.0
# A new price settles within hours. One that has held for days ignores a busy noon and a quiet night: so fetches go
# where the news is, not where budget is left.
MIN_PATIENCE_S, MAX_PATIENCE_S = 7_200.0, 2 * DAY_S
# One step does not go all the way either, since it has seen little where few fetches are made.
MIN_MOVES = 4.0
# Fewer fetches than this say little about a rate; but wait at most a day.
MIN_FETCHES = 16.0
MAX_WAIT_S = DAY_S


@dataclass(frozen=True, slots=True)
class PriceController:
    """State of the price controller; ``price`` is None until there is a page to estimate it from.

    It is a first guess until it is ``settled``.

    ``refreshes`` and ``others`` were counted in the ``span_s`` since the price last moved; ``saved`` is the number of
    saved-up refreshes. ``age_s`` is how long there has been a price under this budget. ``seen_s`` is when time was last
    counted, reset with each run.

    >>> purse = PriceController("expected-gain").advance(0.0).with_price(1.0).add_spent(refreshes=200).advance(3600.0)
    >>> purse.target(0.0, 7200), purse.should_move(0.0, 7200), purse.move_price(0.0, 7200).value > 1.0
    (0.027777777777777776, True, True)
    """

    policy: str
    price: float | None = None
    stride: float = 0.0
    is_settled: bool = False
    span_s: float = 0.0
    refreshes: int = 0
    others: int = 0
    saved: float = 0.0
    age_s: float = 0.0
    seen_s: float | None = None

    @property
    def value(self) -> float:
        """The refresh price; 0 before there is one."""
        return self.price or 0.0

    def advance(self, now_s: float) -> "PriceController":
        """Advance the price controller's clock; a clock that was set back changes nothing.

        A run starts with one refresh saved.
        """
        if self.seen_s is None:
            return replace(self, seen_s=now_s, saved=max(self.saved, 1.0))
        return replace(self, seen_s=now_s, span_s=self.span_s + max(now_s - self.seen_s, 0.0))

    def add_spent(self, refreshes: int = 0, others: int = 0) -> "PriceController":
        """Count refreshes that came due and other fetches in the price controller."""
        saved = max(self.saved - refreshes, 0.0)
        return replace(self, refreshes=self.refreshes + refreshes, others=self.others + others, saved=saved)

    def with_price(self, price: float, *, settled: bool = False) -> "PriceController":
        """Set a price that was computed from a sample of pages."""
        return replace(self, price=price, is_settled=settled)

    def target(self, budget_per_s: float, pages: float) -> float:
        """Return the target number of refreshes a second under the budget."""
        if not budget_per_s > 0:
            return pages / DEFAULT_INTERVAL_S
        others = self.others / self.span_s if self.span_s > 0 else 0.0
        left = max(budget_per_s - others, REFRESH_FLOOR * budget_per_s)
        return min(left, pages / MIN_INTERVAL_S)

    def should_move(self, budget_per_s: float, pages: float) -> bool:
        """Check whether enough fetches were counted to move the price."""
        if self.span_s < MOVE_EVERY_S:
            return False
        return self.span_s * self.target(budget_per_s, pages) >= MIN_FETCHES or self.span_s >= MAX_WAIT_S

    def move_price(self, budget_per_s: float, pages: float) -> "PriceController":
        """Move the price by what was spent compared with the budget, and reset the counts."""
        begun = replace(self, span_s=0.0, refreshes=0, others=0)
        if self.price is None:
            return begun
        allowed = self.target(budget_per_s, pages) * self.span_s
        after = Price(self.price, self._patience_s(budget_per_s), self.stride).update(
            self.refreshes, allowed, self.span_s
        )
        return replace(begun, price=after.value, stride=after.stride, is_settled=True, age_s=self.age_s + self.span_s)

    def _patience_s(self, budget_per_s: float) -> float:
        """The time over which the price moves; longer without a budget, where nothing is lost meanwhile."""
        young_s = max(self.age_s / 2, MIN_PATIENCE_S, MIN_MOVES * self.span_s)
        return min(young_s, MAX_PATIENCE_S) if budget_per_s > 0 else MAX_PATIENCE_S

    def reset_age(self) -> "PriceController":
        """Reset the age of the price, since it has to settle under a new budget."""
        return replace(self, age_s=0.0, stride=0.0)

    def save_up(self, passed_s: float, pace: float) -> "PriceController":
        """Save up refreshes for later, at this rate over the elapsed time."""
        return replace(self, saved=min(self.saved + pace * passed_s, max(pace * DAY_S, 1.0)))

    def to_json(self) -> str:
        """Serialize the price controller for the next run."""
        return json.dumps({name: value for name, value in asdict(self).items() if name != "seen_s"})

    @staticmethod
    def parse_policy(text: str) -> str | None:
        """Parse which policy a saved price controller was for; None if invalid."""
        try:
            return str(json.loads(text)["policy"])
        except (TypeError, ValueError, KeyError):
            return None

    @classmethod
    def from_json(cls, text: str | None, policy: str) -> "PriceController":
        """Parse the saved price controller; a new one if it is invalid or for another policy.

        >>> kept = PriceController("nutch", price=2.0).to_json()
        >>> PriceController.from_json(kept, "nutch").price, PriceController.from_json("{", "nutch").price
        (2.0, None)
        """
        try:
            controller = cls(**json.loads(text or "{}"))
        except (TypeError, ValueError):
            return cls(policy)
        price_is_sound = controller.price is None or (isfinite(controller.price) and controller.price > 0)
        return controller if controller.policy == policy and price_is_sound else cls(policy)


class CommonPrice(NamedTuple):
    """The price of a cluster: the policy that it is for, its value, refreshes a second in all, and pages in all."""

    policy: str
    value: float | None
    target_per_s: float
    pages: float

    def max_rate(self, pages: float, *, is_priced: bool) -> float:
        """Return the maximum refreshes per second of a shard with these pages.

        Where the price does not decide, each shard gets its part of them.
        """
        return self.target_per_s * (MAX_OVERSPENT if is_priced else pages / max(self.pages, 1.0))


def load_policy(book: CrawlStore) -> str | None:
    """Load the name of the refresh policy that last ran here from the saved price; None if none did."""
    text = book.get_value(PRICE_KEY)
    return PriceController.parse_policy(text) if text else None


def load_price(book: CrawlStore) -> float | None:
    """Load the last refresh price from the crawl store; None if there was none."""
    policy = load_policy(book)
    return PriceController.from_json(book.get_value(PRICE_KEY), policy).price if policy is not None else None


LOWEST, HIGHEST = -20.0, 20.0
HALVINGS = 40
# Limits of the search, where no price makes the median page wait that long or that short.
DEFAULT_PRICE = 1.0


def find_starting_price(waits_s: Callable[[float], Floats], wait_s: float) -> float:
    """Find the starting price at which half of some pages wait this long; ``waits_s`` gives waits at a price.

    >>> waits_s = lambda price: np.array([1.0, 2.0, 9.0]) * price
    >>> round(find_starting_price(waits_s, 6.0), 6), find_starting_price(lambda _: np.zeros(3), 6.0)
    (3.0, 1.0)
    """
    low, high = LOWEST, HIGHEST
    if not _median(waits_s(10.0**low)) <= wait_s <= _median(waits_s(10.0**high)):
        return DEFAULT_PRICE
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if _median(waits_s(10.0**middle)) < wait_s:
            low = middle
        else:
            high = middle
    return float(10.0**high)


class FetchDemand(NamedTuple):
    """Demand for fetches at a price: how long sampled pages wait, their weight, and polls a second."""

    waits_s: Callable[[float], Floats]
    share: float
    poll_rate: Callable[[float], float]

    def fetch_rate(self, price: float) -> float:
        """Return the fetches per second demanded at a price."""
        waits_s = np.maximum(self.waits_s(price), MIN_INTERVAL_S)
        return self.share * float((1.0 / waits_s).sum()) + self.poll_rate(price)


def find_clearing_price(askers: FetchDemand, target: float) -> float | None:
    """Find the price at which this many fetches per second are demanded; None if no price does.

    >>> askers = FetchDemand(lambda price: np.array([7200.0, 14400.0]) * price, 2.0, lambda price: 1.0 / 3600 / price)
    >>> round(find_clearing_price(askers, 2.5 / 3600) or 0.0, 3), find_clearing_price(askers, 1e20)
    (1.0, None)
    """
    low, high = LOWEST, HIGHEST
    if not askers.fetch_rate(10.0**high) <= target <= askers.fetch_rate(10.0**low):
        return None
    for _ in range(HALVINGS // 2):
        middle = (low + high) / 2
        if askers.fetch_rate(10.0**middle) > target:
            low = middle
        else:
            high = middle
    return float(10.0**high)


def _median(waits_s: Floats) -> float:
    return float(np.sort(waits_s)[len(waits_s) // 2]) if len(waits_s) else 0.0
