"""Cluster budget: one price for all shards, and one pool of pages that all of them draw from.

    price    moved by the spending of all shards against the whole budget, by the controller of a single machine
    pool     fills at the rate of the budget; what arrives is due to shards by what they lack, until they draw it

A shard lacks a page for each host that waits for the budget, so it gets what it would get on one machine, where all
hosts wait in one queue. What it cannot use, for example because it waits for a turn at an address, it gives back with
its next draw. So no page of the budget is lost, and all shards together never spend more than the pool had. A shard
that hears nothing keeps its price, and spends nothing more.

At first, each shard finds its own price, as a single machine does in its first hours. Once most pages belong to shards
that have found one, the mean of these prices becomes the first common price.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import exp, log
from types import MappingProxyType
from typing import NamedTuple

from vedette.engine.coordinator.hosts import HostTable
from vedette.engine.scheduling.first_fetch import FirstFetches
from vedette.engine.scheduling.price_controller import CommonPrice, PriceController
from vedette.engine.scheduling.refresh import RefreshScheduler

# The pool holds what arrives in this many seconds of wall time, and at least two pages.
POOL_WALL_S, MIN_POOL = 2.0, 2.0


NOTHING: Mapping[int, float] = MappingProxyType({})


class FetchPool(NamedTuple):
    """The pool of a cluster's budget: the pages that no shard lacks, at most ``most``, and those due to each shard.

    Pages become due to shards when they arrive, by what each of them lacks; so it does not matter which shard
    draws first. Of four pages, two shards that lack two and six get one and three:

    >>> pool = FetchPool(10.0, 0.0, {0: 2.0, 1: 6.0})
    >>> first, pool = pool.draw(0, 2.0, arrived=4.0)
    >>> second, pool = pool.draw(1, 6.0, arrived=0.0)
    >>> first, second, pool.draw(1, -9.0, arrived=0.0)[1].pages
    (1.0, 3.0, 8.0)
    """

    most: float
    pages: float = 0.0
    lacking: Mapping[int, float] = NOTHING
    due: Mapping[int, float] = NOTHING

    def draw(self, shard: int, lacking: float, arrived: float) -> tuple[float, "FetchPool"]:
        """Return what a shard gets that lacks some pages, and the pool after; a negative number is given back."""
        wanted = {**self.lacking, shard: max(lacking, 0.0)}
        due = {one: min(self.due.get(one, 0.0), pages) for one, pages in wanted.items()}
        free = min(self.pages + max(arrived, 0.0), self.most) + max(-lacking, 0.0)
        free += sum(self.due.values()) - sum(due.values())
        open_ = {one: pages - due[one] for one, pages in wanted.items()}
        part = min(free / max(sum(open_.values()), 1e-300), 1.0)
        due = {one: pages + part * open_[one] for one, pages in due.items()}
        free = min(free - part * sum(open_.values()), self.most)
        drawn, due[shard] = due[shard], 0.0
        return drawn, FetchPool(self.most, free, {**wanted, shard: wanted[shard] - drawn}, due)

    @property
    def has_spare(self) -> bool:
        """Whether sites may borrow from the pool: no shard lacks anything, and half of it is left."""
        return self.pages >= self.most / 2


def size_pool(budget_per_s: float, speed: float) -> float:
    """Return how many pages the pool holds at most; ``speed`` is the number of world seconds per second."""
    return max(budget_per_s * POOL_WALL_S * speed, MIN_POOL)


class ShardSpending(NamedTuple):
    """A shard's report: fetches since its last report, its demand, and its own price.

    ``refreshes`` came due, ``others`` were other fetches. ``pages`` is the number of pages to refresh, ``lacking`` how
    many pages of the budget it lacks now; a negative number is given back. Its own ``price`` counts once it
    ``is_settled``.
    """

    refreshes: int = 0
    others: int = 0
    pages: float = 0.0
    lacking: float = 0.0
    price: float | None = None
    is_settled: bool = False

    def __add__(self, later: "ShardSpending") -> "ShardSpending":  # type: ignore[override]  # of reports, not of tuples
        returned = min(self.lacking, 0.0)
        return later._replace(
            refreshes=self.refreshes + later.refreshes,
            others=self.others + later.others,
            lacking=later.lacking + returned,
        )


@dataclass(frozen=True, slots=True)
class ClusterBudget:
    """The state of the cluster's budget: the price controller and its current budget.

    >>> both = {0: ShardSpending(pages=100.0, price=1.0, is_settled=True), 1: ShardSpending(pages=1.0)}
    >>> budget = ClusterBudget(PriceController("expected-gain"), 2.0).step(both, 2.0, 0.0)
    >>> budget.price.value
    1.0
    """

    controller: PriceController
    budget_per_s: float
    pages: float = 0.0

    @property
    def price(self) -> CommonPrice:
        """The price that all shards follow."""
        target_per_s = self.controller.target(self.budget_per_s, self.pages)
        return CommonPrice(self.controller.policy, self.controller.price, target_per_s, self.pages)

    def step(self, reports: Mapping[int, ShardSpending], budget_per_s: float, passed_s: float) -> "ClusterBudget":
        """Return the budget after reports of all shards, and this many seconds after the previous step."""
        pages = sum(report.pages for report in reports.values())
        controller = self.controller if budget_per_s == self.budget_per_s else self.controller.reset_age()
        controller = controller.add_spent(
            sum(report.refreshes for report in reports.values()), sum(report.others for report in reports.values())
        )
        controller = replace(controller, span_s=controller.span_s + max(passed_s, 0.0))
        if controller.price is None:
            controller = _set_first_price(controller, reports, pages)
        if controller.should_move(budget_per_s, pages):
            controller = controller.move_price(budget_per_s, pages)
        return ClusterBudget(controller, budget_per_s, pages)

    def to_json(self) -> str:
        """Serialize the budget."""
        return json.dumps({"controller": self.controller.to_json(), "budget_per_s": self.budget_per_s})

    @classmethod
    def from_json(cls, text: str, policy: str) -> "ClusterBudget":
        """Parse a saved budget; return a new one if it is invalid or for another refresh policy."""
        try:
            kept = json.loads(text or "{}")
            return cls(PriceController.from_json(kept["controller"], policy), float(kept["budget_per_s"]))
        except (TypeError, ValueError, KeyError):
            return cls(PriceController(policy), 0.0)


def _set_first_price(
    controller: PriceController, reports: Mapping[int, ShardSpending], pages: float
) -> PriceController:
    """Set the first price once it covers most pages: the mean of the shards' prices, weighted by pages."""
    found = [(one.pages, one.price) for one in reports.values() if one.is_settled and one.price and one.pages > 0]
    known = sum(weight for weight, _ in found)
    if not found or known < pages / 2:
        return controller
    mean = sum(weight * log(price) for weight, price in found) / known
    return replace(controller.with_price(exp(mean), settled=True), span_s=0.0, refreshes=0, others=0)


@dataclass(slots=True)
class ShardBudget:
    """The part of a shard in the cluster's budget: report its spending, follow the price, and spend what is granted.

    ``shards`` is the number of shards.
    """

    refresher: RefreshScheduler
    firsts: FirstFetches
    hosts: HostTable
    shards: int
    _spent: tuple[int, int] = field(default=(0, 0))

    def __post_init__(self) -> None:
        self.refresher.shards = self.shards
        self._grant(0.0, has_spare=False)

    def report(self) -> ShardSpending:
        """Return what was spent since the last report, and what the shard lacks."""
        refreshes, others = self.refresher.spent
        before, self._spent = self._spent, (refreshes, others)
        return ShardSpending(
            refreshes - before[0],
            others - before[1],
            self.refresher.demand,
            0.0 if self.hosts.budget is None else self.hosts.budget.settle(),
            self.refresher.price,
            self.refresher.has_settled,
        )

    def follow(self, price: CommonPrice | None, granted: float, *, has_spare: bool) -> None:
        """Follow the cluster's price if there is one, and spend these pages of its budget."""
        if price is not None:
            self.refresher.follow(price)
        self._grant(granted, has_spare=has_spare)

    def _grant(self, pages: float, *, has_spare: bool) -> None:
        if self.hosts.budget is not None:
            self.hosts.budget.grant(pages, has_spare=has_spare)
            self.firsts.set_budget(self.hosts.rules.budget_per_s / self.shards)
