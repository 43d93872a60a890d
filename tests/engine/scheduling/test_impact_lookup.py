"""Unseen URLs by estimated impact: the best are fetched first, nothing starves, and nothing else changes."""

from collections.abc import Sequence
from types import SimpleNamespace

import numpy as np
from tests.engine.memory_web import Drive, MemoryWeb, memory_book, page, rules_for

from vedette.engine.coordinator.state import CrawlRules
from vedette.engine.decision_record import Decision
from vedette.engine.ports import Ids
from vedette.engine.scheduling.first_fetch import FirstFetches
from vedette.engine.scheduling.schedule import Schedule
from vedette.engine.scheduling.url_order import NO_IMPACT, ImpactEstimates
from vedette.lab.core.parity import find_difference
from vedette.model import Site
from vedette.policy import Floats, Ints
from vedette.refresh.policies.fixed import Fixed

A = "https://a.test"
PAGES = 120
SITE = Site(f"{A}/", overrule=("trap",))


class ByNumber:
    """Estimates that later pages of a list bring more, and knows nothing about the first ones."""

    def __init__(self, turn: int = 1, unknown: int = 0) -> None:
        self.version, self._unknown = turn, unknown

    def get_known(self, ids: Ids) -> Floats:
        """Estimate by id, which is in the order of finding."""
        return np.where(ids > self._unknown, ids.astype(np.float64), np.nan)

    def get_gains(self, ids: Ids, urls: Sequence[str]) -> Floats:
        """Estimate by the number in the URL where it was just found."""
        numbers = [float(url.rpartition("/")[2] or 0) if "/d/" in url else np.nan for url in urls]
        return np.where(ids > 0, self.get_known(ids), np.array(numbers))

    def get_front_queues(self, gains: Floats) -> Ints:
        """Put the best into the first queue."""
        return np.clip(7 - 7 * gains // PAGES, 1, 7).astype(np.int64)


def site() -> MemoryWeb:
    """Return a list of pages, and the pages."""
    web = MemoryWeb({f"{A}/d/{n}": page(title=f"number {n}") for n in range(PAGES)})
    web.replies[f"{A}/"] = page(*(f"/d/{n}" for n in range(PAGES)))
    return web


def pages_of(drive: Drive) -> list[str]:
    """Return the pages in the order of their requests."""
    return [url for url in drive.asked_urls() if not url.endswith("robots.txt")]


def crawled(
    order: str, foresight: ImpactEstimates, fetches: int = PAGES + 1, witness: list[Decision] | None = None
) -> list[str]:
    """Return the URLs in the order of their requests."""
    schedule = Schedule(sources=Fixed(), witness=witness.append if witness is not None else None)
    rules = rules_for(SITE, order=order, max_pages=fetches)
    return pages_of(Drive(site(), rules, workers=1, schedule=schedule, foresight=foresight).begin().run())


def test_without_foresight_the_order_is_exactly_breadth_first() -> None:
    """Without searches, the default order is breadth first."""
    assert crawled("impact", NO_IMPACT) == crawled("breadth", NO_IMPACT)


def test_other_orders_ignore_estimates() -> None:
    """If the operator wants breadth first, estimates don't matter."""
    assert crawled("breadth", ByNumber()) == crawled("breadth", NO_IMPACT)


def test_the_best_estimates_are_fetched_first_and_nothing_starves() -> None:
    """Most of the first quarter of fetches are from the best quarter; finally, everything is fetched once."""
    some = crawled("impact", ByNumber(), fetches=PAGES // 4 + 1)[1:]
    assert sum(int(url.rpartition("/")[2]) >= 3 * PAGES // 4 for url in some) >= 0.5 * len(some)
    assert sorted(crawled("impact", ByNumber())) == sorted(crawled("breadth", NO_IMPACT))


def test_waiting_urls_are_reordered_by_new_estimates() -> None:
    """Without estimates at discovery, the best URLs are requested first once a pass has estimated them."""
    foresight = ByNumber(turn=0)
    drive = Drive(site(), rules_for(SITE, order="impact"), workers=1, foresight=foresight).begin()
    drive.run(until=lambda: len(pages_of(drive)) > 10)
    early = len(pages_of(drive))
    foresight.version = 1
    drive.run(until=lambda: len(pages_of(drive)) > early + 40)
    numbers = [int(url.rpartition("/")[2]) for url in pages_of(drive)[early + 10 : early + 40]]
    assert sum(number >= PAGES // 2 for number in numbers) > 0.7 * len(numbers)


def test_urls_without_estimates_keep_their_place() -> None:
    """A pass that knows half of them loses none."""
    assert sorted(crawled("impact", ByNumber(unknown=PAGES // 2))) == sorted(crawled("breadth", NO_IMPACT))


def test_decisions_by_foresight_are_made_again_to_the_bit() -> None:
    """The lab makes the same decisions as the coordinator's log of an order by impact."""
    report: list[Decision] = []
    crawled("impact", ByNumber(), witness=report)
    orders = [decision for decision in report if decision.stage == "order"]
    assert any("gain" in decision.facts for decision in orders)
    assert find_difference(orders) is None


def test_estimates_are_compared_with_the_price_and_zero_is_worth_something() -> None:
    """The more gain, the more worth; a gain of zero still has some."""
    firsts = FirstFetches(CrawlRules(budget_per_s=1.0), memory_book(), SimpleNamespace(price=1.0))
    firsts._model = firsts._model.add_changes(np.full(9, 0.5)).add_first_fetches([["x"]] * 9, np.full(9, 0.5))
    nothing, little, much = (firsts.estimate_worth(f"{A}/d/1", 1, gain) for gain in (0.0, 0.5, 50.0))
    assert much > 5 * little > 5 * nothing > 0
