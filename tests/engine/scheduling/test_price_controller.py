"""The price controller: the target number of refreshes, and how the price follows the actual one."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.engine.scheduling.policy_memory import GroupRows
from vedette.engine.scheduling.price_controller import PriceController

DAY_S = 86_400.0


def build_spending(refreshes: int, others: int = 0, span_s: float = DAY_S, price: float = 1.0) -> PriceController:
    """Return the budget's state after a time with this many fetches."""
    return (
        PriceController("a policy")
        .advance(0.0)
        .with_price(price, settled=True)
        .add_spent(refreshes, others)
        .advance(span_s)
    )


@given(st.floats(1e-6, 100.0), st.integers(1, 10**6), st.integers(0, 10**6))
def test_the_target_lies_within_the_budget(budget_per_s: float, pages: int, others: int) -> None:
    """It is never more than the budget or than each page once an hour, and never zero."""
    target = build_spending(0, others).target(budget_per_s, pages)
    assert 0 < target <= min(budget_per_s, pages / 3600.0)


@given(st.integers(0, 10**6))
def test_the_price_follows_what_is_spent(refreshes: int) -> None:
    """The price rises if more is due than allowed, falls if less is, and otherwise stays."""
    pages = 30_000
    after = build_spending(refreshes).move_price(0.0, pages)
    assert (after.value > 1.0) == (refreshes > pages // 3)
    assert (after.value < 1.0) == (refreshes < pages // 3)
    assert (after.refreshes, after.others, after.span_s) == (0, 0, 0.0)


def test_a_young_price_is_in_haste_and_an_old_one_is_not() -> None:
    """With half of the budget unused for an hour, a new price falls a lot, a week-old one hardly at all."""
    young = build_spending(50, span_s=3600.0)
    old = replace(young, age_s=7 * DAY_S)
    assert young.move_price(100 / 3600.0, 10**6).value < 0.9 < old.move_price(100 / 3600.0, 10**6).value < 1.0
    assert old.reset_age().move_price(100 / 3600.0, 10**6).value == young.move_price(100 / 3600.0, 10**6).value


def test_new_pages_leave_a_part_for_known_ones() -> None:
    """A first crawl that takes the whole budget does not drive the price up forever."""
    crowded = build_spending(17_280, others=86_400)
    assert crowded.target(1.0, 10**6) == pytest.approx(0.2)
    assert crowded.move_price(1.0, 10**6).value == pytest.approx(1.0)


def test_few_fetches_move_the_price_slowly() -> None:
    """The price of a small site moves once a day, that of a large one every few minutes."""
    assert not build_spending(1, span_s=3600.0).should_move(0.0, 10)
    assert build_spending(1, span_s=DAY_S).should_move(0.0, 10)
    assert build_spending(1, span_s=400.0).should_move(0.0, 10**6)
    assert not build_spending(1, span_s=200.0).should_move(0.0, 10**6)


def test_time_between_runs_is_not_counted() -> None:
    """A stored state continues where it was, whenever it is read."""
    kept = build_spending(5, span_s=600.0)
    later = PriceController.from_json(kept.to_json(), "a policy").advance(1e9).advance(1e9 + 60.0)
    assert (later.span_s, later.refreshes, later.price) == (660.0, 5, kept.price)
    assert later.advance(5.0).span_s == later.span_s


@given(st.text(max_size=40) | st.sampled_from(["[]", '{"price": -1, "policy": "a policy"}', '{"price": NaN}', "3"]))
def test_a_purse_that_cannot_be_read_is_a_new_one(text: str) -> None:
    """No stored text prevents a start."""
    assert PriceController.from_json(text, "a policy") == PriceController("a policy")


def test_groups_are_bounded() -> None:
    """Excess sections count for their site, excess sites for everything, and so do overlong names."""
    groups = GroupRows(1, most=3)
    groups.select(["https://a.test/x/1"])
    picked = groups.select(["https://a.test/x/1", "https://a.test/y/1", "https://b.test/z/1", f"https://{'c' * 999}/"])
    assert len(groups) == 3
    assert picked.site.tolist() == [1, 1, 0, 0]
    assert picked.section.tolist() == [2, 1, 0, 0]
