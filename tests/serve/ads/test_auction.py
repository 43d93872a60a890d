"""The price of a click: the second price, to the cent."""

from decimal import Decimal
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.serve.ads.auction import second_price

CENTS = st.decimals("0.01", "99.99", places=2)
RATES = st.decimals("0.0001", "0.9999", places=4)
AUCTIONS = st.lists(st.tuples(CENTS, RATES), max_size=8)


def test_the_table_of_the_lecture() -> None:
    """The order is C, B, D, A, and they pay 1.51, 2.68, 0.51 and the minimum."""
    prices = second_price([4, 3, 2, 1], [0.01, 0.03, 0.06, 0.08], Decimal("0.10"))
    assert prices == [Decimal("0.10"), Decimal("2.68"), Decimal("1.51"), Decimal("0.51")]
    assert all(isinstance(price, Decimal) for price in prices)


@pytest.mark.parametrize("kind", [str, float, Decimal])
def test_numbers_are_read_as_they_are_written(kind: type) -> None:
    """A tenth is a tenth, as a text, a float or a decimal."""
    bids, ctrs = [kind("0.30"), kind("0.10")], [kind("0.1"), kind("0.15")]
    # Ranks .030 and .015: .15 + .01.
    assert second_price(bids, ctrs, 0)[0] == Decimal("0.16")


def test_half_a_cent_is_rounded_up() -> None:
    """2.625 becomes 2.63, not the nearest even cent."""
    assert second_price(["9", "1.05"], ["0.2", "0.5"], 0)[0] == Decimal("2.64")
    assert second_price(["9", "1.046"], ["0.2", "0.5"], 0)[0] == Decimal("2.63")


def test_one_alone_pays_the_minimum_and_nobody_pays_nothing() -> None:
    """Without a competitor, the price is the reserve; without ads, there is no price."""
    assert second_price([5], [0.1], "0.25") == [Decimal("0.25")]
    assert second_price([], [], "0.25") == []


def test_lists_of_different_lengths_are_refused() -> None:
    """A missing rate is an error of the caller, and is reported."""
    with pytest.raises(ValueError, match="each ad needs one of each"):
        second_price([1, 2], [0.1], 0)


@given(AUCTIONS, CENTS)
def test_nobody_pays_more_than_the_bid_nor_less_than_the_reserve(
    auction: list[tuple[Decimal, Decimal]], minimum: Decimal
) -> None:
    """This is true whatever others bid; if the bid is below the reserve, the bid is the limit."""
    bids, ctrs = [bid for bid, _ in auction], [ctr for _, ctr in auction]
    for bid, price in zip(bids, second_price(bids, ctrs, minimum), strict=True):
        assert min(bid, minimum) <= price <= bid


@given(AUCTIONS, CENTS)
def test_a_price_keeps_the_place(auction: list[tuple[Decimal, Decimal]], minimum: Decimal) -> None:
    """At its price, an ad would still rank no lower than the one below it, except for rounding by half a cent."""
    bids, ctrs = [bid for bid, _ in auction], [ctr for _, ctr in auction]
    prices = second_price(bids, ctrs, minimum)
    order = sorted(range(len(bids)), key=lambda at: -bids[at] * ctrs[at])
    for above, below in pairwise(order):
        assert prices[above] * ctrs[above] >= min(bids[below] * ctrs[below], bids[above] * ctrs[above])
