"""The index of fresh copies: its wait is where its worth is the price, exactly, for whatever rate, weight and price."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.refresh.freshness_index import index_wait_days, index_worth

positive = st.floats(1e-6, 1e6)


def ones(value: float) -> np.ndarray:
    """A column of one row."""
    return np.array([value])


@given(rate=positive, weight=positive, part=st.floats(1e-12, 1 - 1e-9))
def test_after_the_wait_a_fetch_is_worth_its_price(rate: float, weight: float, part: float) -> None:
    """For every price below what the page can ever be worth, the wait is finite and the worth is that price."""
    price = part * weight / rate
    wait = index_wait_days(ones(rate), ones(weight), ones(price))
    assert np.isfinite(wait).all()
    assert index_worth(ones(rate), ones(weight), wait) == pytest.approx(price, rel=1e-6)


@given(rate=positive, weight=positive, above=st.floats(1.0, 1e6))
def test_what_never_pays_is_never_due(rate: float, weight: float, above: float) -> None:
    """A fetch is worth less than weight / rate for ever; at that price or above, it is never made."""
    price = np.nextafter(above * weight / rate, np.inf)
    assert index_wait_days(ones(rate), ones(weight), ones(price * (1 + 1e-9))).tolist() == [np.inf]


@given(rate=positive, prices=st.lists(st.floats(0, 10), min_size=2, max_size=10))
def test_the_dearer_the_later(rate: float, prices: list[float]) -> None:
    """A higher price never makes a page due earlier."""
    ascending = np.sort(np.array(prices))
    waits = index_wait_days(np.full(len(prices), rate), np.ones(len(prices)), ascending)
    assert (waits[1:] >= waits[:-1]).all()


def test_edges_have_no_surprises() -> None:
    """No price: at once. No change, no weight: never."""
    rate, weight = np.array([0.5, 0.0, 0.5]), np.array([1.0, 1.0, 0.0])
    assert index_wait_days(rate, weight, np.zeros(3)).tolist() == [0.0, np.inf, np.inf]
    assert index_wait_days(rate, weight, np.full(3, 0.1))[1:].tolist() == [np.inf, np.inf]
