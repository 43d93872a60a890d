"""Anything considered worthless is tried again at growing intervals: refreshes, polls and first fetches."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.memory_web import Drive, MemoryWeb, memory_book, page, rules_for

from vedette.engine.coordinator.state import CrawlRules
from vedette.engine.ports import FetchGain
from vedette.engine.scheduling.first_fetch import FirstFetches
from vedette.engine.scheduling.polling import PollResult, SourcePoller
from vedette.model import Site
from vedette.pricing import FirstFetchModel

A = "https://a.test"
HOUR_S, DAY_S = 3_600.0, 86_400.0
LATEST_D = 180.0
DEAR = 1e9


def test_a_page_that_never_changed_and_never_gained_is_fetched_again() -> None:
    """A page that is unchanged for months and that no one searches for is due within half a year, at any price."""
    web = MemoryWeb({f"{A}/start": page("/still"), f"{A}/still": page(title="still")})
    drive = Drive(web, rules_for(Site(f"{A}/start", scope="host"), recrawl=True), workers=1).begin().run(HOUR_S)
    for day in range(1, 100):
        drive.run(DAY_S)
        row = drive.pages()[f"{A}/still"]
        drive.keeper.on_gains([FetchGain(row.id, row.fetched_s, 0.0, 0.0)], drive.now_s)
        assert drive.pages()[f"{A}/still"].due_s < np.inf, f"on day {day} nobody wants it any more"
    (look,) = drive.book.get_known_pages([drive.pages()[f"{A}/still"].id])
    refreshing = drive.keeper.refresher
    for price in (1e-6, 1.0, DEAR):
        refreshing._price = refreshing._price.with_price(price, settled=True)
        (due_s,) = refreshing._compute_due_times([look], drive.now_s).tolist()
        assert due_s <= look.page.fetched_s + (LATEST_D + 1) * DAY_S, f"at a price of {price}"


@pytest.mark.parametrize("price", [1.0, DEAR])
def test_an_unproductive_source_is_polled_again(price: float) -> None:
    """A list without news for a month is polled within another month, at any price."""
    looking = SourcePoller(memory_book())
    for hour in range(24 * 30):
        looking.on_polls(
            [PollResult(1, 1, ok=True, is_list=True, is_refetch=hour > 0, links=[7], new=0)], hour * HOUR_S
        )
    now_s = 24 * 30 * HOUR_S
    looking.choose(price, 1, now_s)
    assert looking.forecast([1], now_s)[1] <= now_s + 30 * DAY_S
    assert looking.estimate_poll_rate(now_s, price) >= 1.0 / (31 * DAY_S)


@settings(max_examples=50)
@given(st.integers(1, 10_000), st.floats(1e-6, 1e3))
def test_a_section_without_gain_keeps_some_worth(fetches: int, change: float) -> None:
    """This is true no matter how many of its first fetches gained nothing while changes gained a lot."""
    firsts = (
        FirstFetchModel().add_changes(np.full(100, change)).add_first_fetches([["tags"]] * fetches, np.zeros(fetches))
    )
    assert firsts.worth([["tags"]])[0] > 0


def test_unseen_pages_that_are_worth_less_than_any_price_are_tried_again() -> None:
    """A tenth of the budget is for URLs considered worthless, so that they can prove otherwise."""
    firsts = FirstFetches(CrawlRules(budget_per_s=1.0), memory_book(), SimpleNamespace(price=DEAR))
    tried = sum(firsts.check_price(f"{A}/tags/{n}", 1, 10_000.0 + n) is None for n in range(1_000))
    assert tried >= 100
