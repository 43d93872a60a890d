"""The price of a fetch: it settles where spending meets the budget, and nothing else moves it."""

from math import inf, isfinite

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.errors import ConfigError
from vedette.price import Price

HOUR_S, DAY_S = 3_600.0, 86_400.0


def spends(price: float, worths: list[float]) -> float:
    """What is worth its price is bought."""
    return float(sum(worth >= price for worth in worths))


@given(st.floats(1e-9, 1e9), st.integers(1, 400), st.integers(0, 2**32 - 1))
def test_it_settles_where_spending_meets_the_budget(first: float, budget: int, seed: int) -> None:
    """Wherever it begins, within a month of hours what is bought is what may be, give or take a fifth."""
    worths = np.random.Generator(np.random.PCG64(seed)).lognormal(0.0, 2.0, 1000).tolist()
    price, spent = Price(first), []
    for _ in range(30 * 24):
        bought = spends(price.value, worths)
        spent.append(bought)
        price = price.after(bought, float(budget), HOUR_S)
    assert np.mean(spent[-5 * 24 :]) == pytest.approx(budget, rel=0.2, abs=2.0)


@given(st.floats(1e-6, 1e6), st.floats(0, 1e9), st.floats(1e-3, 1e6), st.floats(1.0, 1e7))
def test_it_moves_towards_the_budget(value: float, spent: float, budget: float, span_s: float) -> None:
    """Too much spent never makes it lower, too little never higher; it is above 0 and finite whatever is told."""
    after = Price(value).after(spent, budget, span_s).value
    assert isfinite(after)
    assert after > 0
    assert (after - value) * (spent - budget) >= 0


@pytest.mark.parametrize(("budget", "span_s"), [(0.0, 60.0), (inf, 60.0), (5.0, 0.0), (5.0, -60.0)])
def test_nothing_moves_it_without_a_budget_or_time(budget: float, span_s: float) -> None:
    """Where there is no budget, or no time has passed, it stays."""
    assert Price(2.0).after(99.0, budget, span_s) == Price(2.0)


def test_a_burst_moves_it_by_a_factor_only() -> None:
    """A thousand times the budget in one hour moves it no more than three times the budget does."""
    assert Price(1.0).after(1000.0, 1.0, HOUR_S) == Price(1.0).after(3.0, 1.0, HOUR_S)


@pytest.mark.parametrize("value", [0.0, -1.0, inf, float("nan")])
def test_what_is_no_price_is_refused(value: float) -> None:
    """A price is a number above 0."""
    with pytest.raises(ConfigError, match="price"):
        Price(value)
