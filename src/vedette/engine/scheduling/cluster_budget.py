"""Cluster budget: one price for all shards, and the share of the fetch budget that each of them may spend.

    price    moved by the spending of all shards against the whole budget, by the controller of a single machine
    share    budget * wanted / sum of wanted;  wanted = recent rate + hosts that wait for the budget / a moment

So a shard gets what it would get on one machine, where all hosts wait in one queue. The shares never add up to more
than the budget: a share only grows by what other shards have given up. A shard that gets no reply keeps its price and
share.

At first, each shard finds its own price, as a single machine does in its first hours. Once most pages belong to shards
that have found one, the mean of these prices becomes the first common price.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import exp, log
from typing import NamedTuple

from vedette.engine.coordinator.hosts import HostTable
from vedette.engine.scheduling.first_fetch import FirstFetches
from vedette.engine.scheduling.price_controller import CommonPrice, PriceController
from vedette.engine.scheduling.refresh import RefreshScheduler

# The part of the budget that is divided evenly, so that an idle shard can start.
EVEN_SHARE = 0.002
# A shard that has not received its share yet uses this part of an even share.
UNHEARD_SHARE = 0.05
# What a shard wants is averaged over this many lead times of tasks. It takes a moment to pass shares on, so shares that
# followed every wish would be on their way most of the time.
WANTED_LEADS = 8.0


class ShardSpending(NamedTuple):
    """A shard's report: fetches since its last report, its demand, and its own price.

    ``refreshes`` came due, ``others`` were other fetches. ``pages`` is the number of pages to refresh, ``wanted_per_s``
    the rate of fetches that it wants, and ``share_per_s`` the share that it uses now. Its own ``price`` counts once it
    ``is_settled``.
    """

    refreshes: int = 0
    others: int = 0
    pages: float = 0.0
    wanted_per_s: float = 0.0
    share_per_s: float = 0.0
    price: float | None = None
    is_settled: bool = False

    def __add__(self, later: "ShardSpending") -> "ShardSpending":  # type: ignore[override]  # of reports, not of tuples
        return later._replace(refreshes=self.refreshes + later.refreshes, others=self.others + later.others)


@dataclass(frozen=True, slots=True)
class ClusterBudget:
    """The state of the cluster's budget: the price controller and its current budget.

    >>> both = {0: ShardSpending(pages=100.0, price=1.0, is_settled=True), 1: ShardSpending(pages=1.0)}
    >>> budget = ClusterBudget(PriceController("expected-gain"), 2.0).step(both, 2.0, 0.0)
    >>> budget.price.value, budget.split(both)
    (1.0, {0: 1.0, 1: 1.0})
    >>> round(budget.split({0: ShardSpending(wanted_per_s=3.0), 1: ShardSpending(wanted_per_s=1.0)})[0], 6)
    1.499
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

    def split(self, reports: Mapping[int, ShardSpending]) -> dict[int, float]:
        """Split the budget among the shards that may spend it, by their demand."""
        wanted = sum(report.wanted_per_s for report in reports.values())
        even, rest = self.budget_per_s / len(reports), self.budget_per_s * (1.0 - EVEN_SHARE)
        if not wanted > 0:
            aims = dict.fromkeys(reports, even)
        else:
            aims = {one: EVEN_SHARE * even + rest * report.wanted_per_s / wanted for one, report in reports.items()}
        # What a shard uses remains taken until the shard reports that it uses less.
        free = max(self.budget_per_s - sum(report.share_per_s for report in reports.values()), 0.0)
        growth = {one: max(aims[one] - report.share_per_s, 0.0) for one, report in reports.items()}
        part = min(free / max(sum(growth.values()), 1e-300), 1.0)
        return {one: min(aims[one], report.share_per_s + part * growth[one]) for one, report in reports.items()}

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


def find_unheard_share(budget_per_s: float, shards: int) -> float:
    """Return what a shard may spend that has not received its share yet."""
    return UNHEARD_SHARE * budget_per_s / shards


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
    """A shard's side of the cluster's budget: report its spending, and follow price and share.

    ``shards`` is the number of shards.
    """

    refresher: RefreshScheduler
    firsts: FirstFetches
    hosts: HostTable
    shards: int
    _wanted_per_s: float = 0.0
    _seen_s: float | None = None
    _spent: tuple[int, int] = field(default=(0, 0))

    def __post_init__(self) -> None:
        self.refresher.shards = self.shards

    def report(self, now_s: float) -> ShardSpending:
        """Return the spending since the last report, and the shard's demand."""
        budget, rules = self.hosts.budget, self.hosts.rules
        refreshes, others = self.refresher.spent
        before, self._spent = self._spent, (refreshes, others)
        share_per_s = 0.0
        if budget is not None:
            if budget.share_per_s is None:
                self._set_share(find_unheard_share(rules.budget_per_s, self.shards))
            taken, lead_s = budget.take_count(), max(rules.ahead_s, 1e-3)
            if self._seen_s is not None and now_s > self._seen_s:
                passed_s = now_s - self._seen_s
                wanted = taken / passed_s + budget.count_waiting() / max(lead_s, 1.0 / rules.budget_per_s)
                self._wanted_per_s += (wanted - self._wanted_per_s) * min(passed_s / (WANTED_LEADS * lead_s), 1.0)
            share_per_s = budget.share_per_s or 0.0
        self._seen_s = now_s
        return ShardSpending(
            refreshes - before[0],
            others - before[1],
            self.refresher.demand,
            self._wanted_per_s,
            share_per_s,
            self.refresher.price,
            self.refresher.has_settled,
        )

    def follow(self, price: CommonPrice, share_per_s: float) -> None:
        """Follow the cluster's price, and spend this share of its budget."""
        self.refresher.follow(price)
        budget = self.hosts.budget
        if budget is not None and share_per_s > 0 and share_per_s != budget.share_per_s:
            self._set_share(share_per_s)

    def _set_share(self, share_per_s: float) -> None:
        assert self.hosts.budget is not None, "a share of no budget"
        self.hosts.budget.set_share(share_per_s)
        self.firsts.set_budget(share_per_s)
