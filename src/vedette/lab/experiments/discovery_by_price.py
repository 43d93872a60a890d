"""Discovery experiment with a price: does it spend polls better than a constant number per hour?

The expected value of each poll is compared with one price, and the price follows spending (``vedette.pricing``), so
polls go to the hours in which waiting loses most. The budget is a mean number of polls per snapshot, and need not be
whole: compared with ``discovery`` and k polls at every snapshot, it shows with how many fewer polls the same is found.
"""

from collections.abc import Mapping
from dataclasses import replace
from math import inf

import numpy as np

from vedette.discover.policies.accrual import Accrual
from vedette.discover.polling.poll_value import compute_index
from vedette.discover.polling.sources import PollHistory, PollResults
from vedette.errors import UsageError
from vedette.lab.core.experiment import Cell, Experiment, Measurements, Metric
from vedette.lab.core.registry import DEFAULT, find_policy
from vedette.lab.runs.discovery.frontpage_run import METRIC_NAMES, OWN_METRICS, build_priced_row
from vedette.lab.worlds.catalog import open_frontpages
from vedette.lab.worlds.frontpages import Frontpages
from vedette.policy import Ints, rng_for
from vedette.pricing import LOWEST, Price
from vedette.timeutil import DAY_S

# The price moves once a day, by the day's spending: it must not follow the hours, or it would level them.
PRICE_PATIENCE_S = 4 * DAY_S
# At first the number of polls is constant; the worth of the last one is the starting price.
LEARNING_PHASE_S = 7 * DAY_S
# At most this many times the mean number of polls at a snapshot.
MAX_POLL_FACTOR = 4.0
# The default without urgency: then a poll is worth what would be gone, not what would be late.
PATIENT_POLICY, PATIENT_H = "default-patient", 200.0
_EXCLUDED_METRICS = ("regret", "regret_steady", "regret_so_far")
_OWN_METRICS: Mapping[str, Metric] = {
    **{name: metric for name, metric in OWN_METRICS.items() if name not in _EXCLUDED_METRICS},
    "looks": Metric("polls per snapshot, after the warm-up", "pages"),
}


class PricedPoller:
    """Poller that takes every source worth the price, at most ``k`` polls at a time."""

    def __init__(self, policy: Accrual, world: Frontpages, budget: float, seed: int) -> None:
        self._policy, self._budget, self._seed = policy, budget, seed
        self.k = min(max(int(MAX_POLL_FACTOR * budget), 1), world.sources)
        self._times = world.times
        self._book = PollHistory(world.host)
        self._state = policy.start(None)
        self._begun_s: float | None = None
        self._price: Price | None = None
        self._least: list[float] = []
        self._spent = self._snapshots = 0
        self._moved_s = -inf

    def choose(self, snapshot: int) -> Ints:
        """Choose the sources worth the price now; a constant number until there is a price."""
        now_s, options = float(self._times[snapshot]), self._book.list_options()
        rng = rng_for(self._seed, f"discover/{self._policy.name}/{snapshot}")
        if self._price is not None:
            policy = replace(self._policy, price=self._price.value)
            return policy.choose(self._state, options, self.k, now_s, rng).rows
        rows = self._policy.choose(self._state, options, max(round(self._budget), 1), now_s, rng).rows
        self._least.append(
            float(compute_index(self._state, options, now_s, self._policy.optimism)[rows].min(initial=inf))
        )
        return rows

    def observe(self, snapshot: int, brought: PollResults) -> None:
        """Let the policy learn from the priced polls, and adjust the price at the end of a day."""
        now_s = float(self._times[snapshot])
        self._state = self._policy.observe(self._state, self._book.record(brought, now_s), now_s)
        self._begun_s = now_s if self._begun_s is None else self._begun_s
        self._spent, self._snapshots = self._spent + len(brought.place), self._snapshots + 1
        if self._price is None and now_s - self._begun_s >= LEARNING_PHASE_S:
            half = self._least[len(self._least) // 2 :]
            self._price = Price(max(float(np.mean(half)), LOWEST), PRICE_PATIENCE_S)
            self._moved_s, self._spent, self._snapshots = now_s, 0, 0
        elif self._price is not None and now_s - self._moved_s >= DAY_S:
            budget = self._budget * self._snapshots
            self._price = self._price.update(float(self._spent), budget, now_s - self._moved_s)
            self._moved_s, self._spent, self._snapshots = now_s, 0, 0


class DiscoveryByPrice(Experiment):
    """The experiment of discovery with a price."""

    name = "discovery-by-price"
    about = "Do polls by price find as much as a constant number? (budget: polls per snapshot on average)"
    worlds = ("frontpages",)
    metrics = (*(name for name in METRIC_NAMES if name not in _EXCLUDED_METRICS), *_OWN_METRICS)
    own = _OWN_METRICS
    policies = (DEFAULT, PATIENT_POLICY)
    budgets = (2.55, 4.25, 8.5, 17.0)

    def run(self, cell: Cell) -> list[Measurements]:
        """Run the discovery-by-price experiment on a cell: one run, in one row."""
        policy = _load_policy(cell.policy)
        world = open_frontpages(cell.world)
        looks = PricedPoller(policy, world, cell.budget, cell.seed)
        return [build_priced_row(world, cell, looks, looks.k)]


def _load_policy(name: str) -> Accrual:
    policy = find_policy("discover", DEFAULT if name == PATIENT_POLICY else name)
    if not isinstance(policy, Accrual):
        raise UsageError(f"policy {name} does not take a price; choose {DEFAULT}")
    return replace(policy, patience_h=PATIENT_H) if name == PATIENT_POLICY else policy


EXPERIMENT = DiscoveryByPrice()
