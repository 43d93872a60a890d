"""Discovery experiment as live: the crawler's own modules poll recorded front pages (``lab run discovery --as-live``).

The poller, its allowance and the price controller are those of ``vedette up``. All sources are fetched once at the
first snapshot, as a crawl does with its lists; then the budget is a mean number of polls per snapshot.

    default    polls by an allowance, as without a budget and with refresh policies that ask no price
    by-price   polls by a price that spends the budget, as with one; no other fetch competes

A published policy that may run live chooses as many sources as the default would, by its allowance.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np

from vedette.discover.live_policies import DEFAULT_DISCOVERY_POLICY, PUBLISHED_SETTINGS
from vedette.discover.polling.sources import PollResults
from vedette.engine.scheduling.poll_counts import PollAllowance
from vedette.engine.scheduling.poll_schedule import find_free_price
from vedette.engine.scheduling.polling import PAGE_WORTH, PollResult, SourcePoller
from vedette.engine.scheduling.price_controller import FetchDemand, PriceController, find_clearing_price
from vedette.lab.core.experiment import Cell, Experiment, Measurements
from vedette.lab.core.registry import DEFAULT
from vedette.lab.experiments.discovery_by_price import EXPERIMENT as BY_PRICE
from vedette.lab.runs.discovery.frontpage_run import build_priced_row
from vedette.lab.worlds.catalog import open_frontpages
from vedette.lab.worlds.frontpages import Frontpages
from vedette.policy import Ints

PRICED = "by-price"
SOURCE_INTERVAL_S = 600.0


class EmptyStore:
    """A crawl store without pages or alerts that holds saved values in memory."""

    def __init__(self) -> None:
        self._values: dict[str, str] = {}

    def get_value(self, key: str) -> str | None:
        """Return a saved value."""
        return self._values.get(key)

    def set_value(self, key: str, value: str) -> None:
        """Save a value."""
        self._values[key] = value

    def get_alert_places(self) -> Sequence[str]:
        """Return no places."""
        return ()

    def get_links(self, _id: int) -> Sequence[str]:
        """Return no links."""
        return ()


class LivePoller:
    """Run the crawler's source poller on front pages, by an allowance or by a price."""

    def __init__(
        self, world: Frontpages, budget: float, seed: int, *, is_priced: bool, policy: str = DEFAULT_DISCOVERY_POLICY
    ) -> None:
        self.poller, self._is_priced = SourcePoller(EmptyStore(), seed, policy), is_priced
        self._times, self._host = world.times, world.host
        self._per_s = budget / float(np.diff(world.times).mean())
        self._allowance, self._price = PollAllowance(), PriceController("accrual")
        self._number: dict[int, int] = {}

    def choose(self, snapshot: int) -> Ints:
        """Choose the sources that the crawler would poll now; at first it fetches all of them."""
        if not len(self.poller):
            return np.arange(len(self._host))
        now_s = float(self._times[snapshot])
        chosen = self._choose_priced(now_s) if self._is_priced else self._choose_allowed(now_s)
        return np.array(chosen, np.int64)

    def observe(self, snapshot: int, brought: PollResults) -> None:
        """Report poll results as a crawl does: URLs have ids in order of discovery."""
        ids = [self._number.setdefault(target, len(self._number) + 1) for target in brought.target.tolist()]
        is_refetch = len(self.poller) > 0
        polls = [
            PollResult(
                place,
                int(self._host[place]),
                ok=bool(ok) or not is_refetch,
                is_list=True,
                is_refetch=is_refetch,
                links=ids[start:end],
                new=new,
            )
            for place, ok, start, end, new in zip(
                brought.place.tolist(),
                brought.ok.tolist(),
                brought.start[:-1].tolist(),
                brought.start[1:].tolist(),
                brought.yields.tolist(),
                strict=True,
            )
        ]
        self.poller.on_polls(polls, float(self._times[snapshot]))

    def _choose_allowed(self, now_s: float) -> list[int]:
        most = self._allowance.advance(now_s, self._per_s)
        chosen = self.poller.choose(find_free_price(SOURCE_INTERVAL_S), most, now_s, SOURCE_INTERVAL_S)
        self._allowance.take(len(chosen))
        return chosen

    def _choose_priced(self, now_s: float) -> list[int]:
        self._price, sources = self._price.advance(now_s), float(len(self.poller))
        if self._price.price is None:
            demand = FetchDemand(lambda _: np.zeros(0), 0.0, partial(self.poller.estimate_poll_rate, now_s))
            price = find_clearing_price(demand, self._per_s)
            self._price = self._price.with_price(price if price is not None else 1.0, settled=True)
        if self._price.should_move(self._per_s, _count_pages(sources)):
            self._price = self._price.move_price(self._per_s, _count_pages(sources))
        chosen = self.poller.choose(self._price.value / PAGE_WORTH, len(self.poller), now_s)
        self._price = self._price.add_spent(refreshes=len(chosen))
        return chosen


def _count_pages(sources: float) -> float:
    """Return a number of pages that limits no budget."""
    return 1e6 * sources


class DiscoveryAsLive(Experiment):
    """The discovery experiment with the crawler's own modules."""

    name = "discovery-as-live"
    about = "Does the crawler poll as well as the lab's default? (budget: polls per snapshot on average)"
    worlds = ("frontpages",)
    metrics = BY_PRICE.metrics
    own = BY_PRICE.own
    policies = (DEFAULT, PRICED, *PUBLISHED_SETTINGS)
    budgets = (3.0, 5.0, 10.0, 20.0)

    def run(self, cell: Cell) -> list[Measurements]:
        """Run the crawler's modules on a cell: one run, in one row."""
        world = open_frontpages(cell.world)
        policy = PUBLISHED_SETTINGS.get(cell.policy, DEFAULT_DISCOVERY_POLICY)
        live = LivePoller(world, cell.budget, cell.seed, is_priced=cell.policy == PRICED, policy=policy)
        return [build_priced_row(world, cell, live, world.sources)]


EXPERIMENT = DiscoveryAsLive()
