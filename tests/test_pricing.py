"""The price of a fetch: it settles where spending meets the budget, and nothing else changes it."""

from math import inf, isfinite

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.errors import ConfigError
from vedette.pricing import FirstFetchModel, Price, Returns, clear_price, split_by_shares

HOUR_S, DAY_S = 3_600.0, 86_400.0


def spends(price: float, worths: list[float]) -> float:
    """Fetch if a fetch is worth its price."""
    return float(sum(worth >= price for worth in worths))


@given(st.floats(1e-9, 1e9), st.integers(1, 400), st.integers(0, 2**32 - 1))
def test_it_settles_where_spending_meets_the_budget(first: float, budget: int, seed: int) -> None:
    """From any start, spending matches the budget within a month of hours, to within 20%."""
    worths = np.random.Generator(np.random.PCG64(seed)).lognormal(0.0, 2.0, 1000).tolist()
    price, spent = Price(first), []
    for _ in range(30 * 24):
        bought = spends(price.value, worths)
        spent.append(bought)
        price = price.update(bought, float(budget), HOUR_S)
    assert np.mean(spent[-5 * 24 :]) == pytest.approx(budget, rel=0.2, abs=2.0)


@given(st.floats(1e-6, 1e6), st.floats(0, 1e9), st.floats(1e-3, 1e6), st.floats(1.0, 1e7))
def test_it_moves_towards_the_budget(value: float, spent: float, budget: float, span_s: float) -> None:
    """Overspending never lowers it, and underspending never raises it; it is always above 0 and finite."""
    after = Price(value).update(spent, budget, span_s).value
    assert isfinite(after)
    assert after > 0
    assert (after - value) * (spent - budget) >= 0


@pytest.mark.parametrize(("budget", "span_s"), [(0.0, 60.0), (inf, 60.0), (5.0, 0.0), (5.0, -60.0)])
def test_nothing_moves_it_without_a_budget_or_time(budget: float, span_s: float) -> None:
    """Without a budget, or if no time has passed, it stays the same."""
    assert Price(2.0).update(99.0, budget, span_s) == Price(2.0)


def test_a_burst_moves_it_by_a_factor_only() -> None:
    """A thousand times the budget in one hour changes it no more than three times the budget does."""
    assert Price(1.0).update(1000.0, 1.0, HOUR_S) == Price(1.0).update(3.0, 1.0, HOUR_S)


@pytest.mark.parametrize("value", [0.0, -1.0, inf, float("nan")])
def test_what_is_no_price_is_refused(value: float) -> None:
    """A price is a number above 0."""
    with pytest.raises(ConfigError, match="price"):
        Price(value)


def test_what_was_never_fetched_is_worth_what_is_usual_and_what_brought_nothing_is_worth_something() -> None:
    """However often a section gained nothing, it keeps some worth; a section with gains is worth more."""
    firsts = (
        FirstFetchModel()
        .add_changes(np.full(20, 1.0))
        .add_first_fetches([["full"]] * 50 + [["empty"]] * 50, np.repeat([9.0, 0.0], 50))
    )
    full, empty = firsts.worth([["full"], ["empty"]]).tolist()
    assert full > firsts.page_worth > empty > 0
    assert FirstFetchModel().worth([["any"], []]).tolist() == [FirstFetchModel().page_worth] * 2


@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(-1e6, 1e6)), max_size=30), st.floats(1e-9, 1e9))
def test_worth_does_not_depend_on_the_unit_of_gains(received: list[tuple[str, float]], factor: float) -> None:
    """In any unit of gains, the worth of first fetches is the same number of ordinary changes."""
    names, gains = [[name] for name, _ in received], np.array([gain for _, gain in received], np.float64)
    one, other = (
        FirstFetchModel().add_changes(np.array([2.0]) * by).add_first_fetches(names, gains * by) for by in (1.0, factor)
    )
    asked = [["a"], ["b"], ["z"]]
    assert other.worth(asked) == pytest.approx(one.worth(asked), rel=1e-6)
    assert (one.worth(asked) > 0).all()


@given(st.lists(st.floats(0, 1e9), max_size=50), st.integers(0, 60))
def test_nobody_who_is_left_out_is_worth_more_than_the_price(worth: list[float], most: int) -> None:
    """As many are fetched as allowed, each worth the price, and none above it waits."""
    values = np.array(worth, np.float64)
    found = clear_price(values, most)
    others = np.delete(values, found.rows)
    assert len(found.rows) == min(most, len(values))
    assert (values[found.rows] >= found.price).all()
    assert (others <= found.price).all()


@given(st.lists(st.integers(0, 9), min_size=1, max_size=40), st.integers(0, 4), st.integers(0, 4))
def test_parts_add_up_and_keep_to_their_shares(batches: list[int], one: int, two: int) -> None:
    """Over any number of batches, each kind gets its share, to within one or two."""
    shares = (one / 8, two / 8, (8 - one - two) / 8)
    owed, had = [0.0] * 3, np.zeros(3)
    for most in batches:
        parts, owed = split_by_shares(most, shares, owed)
        assert sum(parts) == most
        had += parts
    assert np.abs(had - np.array(shares) * sum(batches)).max() <= 2.0


def test_groups_are_bounded() -> None:
    """A hostile site with ever new sections does not fill the memory."""
    many = [[f"section {number}"] for number in range(7_000)]
    known = Returns().observe(many, np.ones(len(many)))
    assert len(known.groups) < len(many)
    assert known.observe(many[:1], np.ones(1)).groups[many[0][0]] == (2.0, 2.0)
