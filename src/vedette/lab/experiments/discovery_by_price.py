"""Does a price spend looks better than a constant number of them each hour?

Whatever a look would save is held against one price, and the price follows what was spent (``vedette.pricing``), so looks
go to the hours in which most is lost by waiting. The budget is a mean of looks a snapshot, and need not be whole: held
against ``discovery`` with k looks at every snapshot, it says with how many fewer the same is found.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import inf

import numpy as np

from vedette.discover.policies.accrual import Accrual
from vedette.discover.polling.poll_value import index
from vedette.discover.polling.sources import Brought, LookBook
from vedette.errors import UsageError
from vedette.lab.core.experiment import Cell, Measured, Metric
from vedette.lab.core.registry import DEFAULT, policy_named
from vedette.lab.runs.discovery.rows import MEASURED, OWN, priced_row
from vedette.lab.worlds.catalog import open_frontpages
from vedette.lab.worlds.frontpages import Frontpages
from vedette.policy import Ints, rng_for
from vedette.pricing import DAY_S, LOWEST, Price

__all__ = ["EXPERIMENT", "DiscoveryByPrice", "PricedLooks"]

# The price moves once a day, by what the day has spent: it must not follow the hours, or it would level them.
PATIENCE_S = 4 * DAY_S
# For so long there is a constant number of looks; what the least of them was worth is where the price begins.
LEARNING_S = 7 * DAY_S
# No more looks at a snapshot than so many times the mean.
MOST = 4.0
# The default in no hurry: then a look is worth what would be gone, and not what would be late.
PATIENT, PATIENT_H = "default-patient", 200.0
_NOT_TOLD = ("regret", "regret_steady")
_OWN: Mapping[str, Metric] = {
    **{name: metric for name, metric in OWN.items() if name not in _NOT_TOLD},
    "looks": Metric("looks a snapshot, after the warm-up", "pages"),
}


class PricedLooks:
    """A policy that is asked for what is worth the price, at most ``k`` looks at a time."""

    def __init__(self, policy: Accrual, world: Frontpages, budget: float, seed: int) -> None:
        self._policy, self._budget, self._seed = policy, budget, seed
        self.k = min(max(int(MOST * budget), 1), world.sources)
        self._times = world.times
        self._book = LookBook(world.host)
        self._state = policy.start(None)
        self._begun_s: float | None = None
        self._price: Price | None = None
        self._least: list[float] = []
        self._spent = self._snapshots = 0
        self._moved_s = -inf

    def choose(self, snapshot: int) -> Ints:
        """What is worth the price now; as long as there is none, a constant number."""
        now_s, options = float(self._times[snapshot]), self._book.options()
        rng = rng_for(self._seed, f"discover/{self._policy.name}/{snapshot}")
        if self._price is not None:
            asked = replace(self._policy, price=self._price.value)
            return asked.choose(self._state, options, self.k, now_s, rng).rows
        rows = self._policy.choose(self._state, options, max(round(self._budget), 1), now_s, rng).rows
        self._least.append(float(index(self._state, options, now_s, self._policy.optimism)[rows].min(initial=inf)))
        return rows

    def see(self, snapshot: int, brought: Brought) -> None:
        """Tell the policy, and move the price where a day is over."""
        now_s = float(self._times[snapshot])
        self._state = self._policy.observe(self._state, self._book.enter(brought, now_s), now_s)
        self._begun_s = now_s if self._begun_s is None else self._begun_s
        self._spent, self._snapshots = self._spent + len(brought.place), self._snapshots + 1
        if self._price is None and now_s - self._begun_s >= LEARNING_S:
            half = self._least[len(self._least) // 2 :]
            self._price = Price(max(float(np.mean(half)), LOWEST), PATIENCE_S)
            self._moved_s, self._spent, self._snapshots = now_s, 0, 0
        elif self._price is not None and now_s - self._moved_s >= DAY_S:
            budget = self._budget * self._snapshots
            self._price = self._price.after(float(self._spent), budget, now_s - self._moved_s)
            self._moved_s, self._spent, self._snapshots = now_s, 0, 0


@dataclass(frozen=True, slots=True)
class DiscoveryByPrice:
    """The experiment."""

    name: str = "discovery-by-price"
    about: str = "Do looks by price find as much as a constant number? (budget: looks a snapshot on average)"
    worlds: tuple[str, ...] = ("frontpages",)
    metrics: tuple[str, ...] = (*(name for name in MEASURED if name not in _NOT_TOLD), *_OWN)
    own: Mapping[str, Metric] = field(default_factory=lambda: _OWN)
    policies: tuple[str, ...] = (DEFAULT, PATIENT)
    budgets: tuple[float, ...] = (2.55, 4.25, 8.5, 17.0)
    of_texts: tuple[str, ...] = ()
    figures: tuple[tuple[str, str], ...] = ()

    def run(self, cell: Cell) -> list[Measured]:
        """One run, in one row."""
        policy = _policy_of(cell.policy)
        world = open_frontpages(cell.world)
        looks = PricedLooks(policy, world, cell.budget, cell.seed)
        return [priced_row(world, cell, looks, looks.k)]


def _policy_of(name: str) -> Accrual:
    policy = policy_named("discover", DEFAULT if name == PATIENT else name)
    if not isinstance(policy, Accrual):
        raise UsageError(f"{name} knows no price; {DEFAULT} does")
    return replace(policy, patience_h=PATIENT_H) if name == PATIENT else policy


EXPERIMENT = DiscoveryByPrice()
