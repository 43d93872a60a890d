"""What a click costs: the least with which an advertiser would have kept its place, and a cent (second price).

Lecture: an ad's *rank* is its bid times its click-through rate. Whoever stands above another pays, for a click,

    (rank of the next) / (own click-through rate) + 0.01

rounded half up to the cent and never more than the bid; the last one pays the minimum. Money is exact: numbers are
read as they are written, and rounded once.
"""

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

__all__ = ["CENT", "Number", "second_price"]

Number = Decimal | float | int | str
CENT = Decimal("0.01")


def second_price(bids: Sequence[Number], ctrs: Sequence[Number], minimum: Number) -> list[Decimal]:
    """The price of a click on each ad, in the order given; equal ranks stand in that order, too.

    ``ctrs`` may be any positive weights: the score that ranks is the one that prices. The minimum is the reserve; a
    price below it is raised to it. Nobody pays more than the bid, even where the bid is below the minimum: whoever may
    not take part is to be left out before.

    >>> [str(price) for price in second_price([4, 3, 2, 1], [0.01, 0.03, 0.06, 0.08], "0.05")]
    ['0.05', '2.68', '1.51', '0.51']
    """
    bid, ctr = [_exact(each) for each in bids], [_exact(each) for each in ctrs]
    if len(bid) != len(ctr):
        raise ValueError(f"{len(bid)} bids and {len(ctr)} click-through rates: there must be one for each ad")
    ranks = [one * other for one, other in zip(bid, ctr, strict=True)]
    order = sorted(range(len(ranks)), key=lambda place: -ranks[place])
    floor = _cents(_exact(minimum))
    prices = [floor] * len(ranks)
    for place, following in pairwise(order):
        # Without a click nothing is paid, so a rate of 0 may have any price.
        asked = ranks[following] / ctr[place] if ctr[place] else Fraction(0)
        prices[place] = max(_cents(asked + _exact(CENT)), floor)
    return [min(price, _cents_below(most)) for price, most in zip(prices, bid, strict=True)]


def _exact(number: Number) -> Fraction:
    """A number as it is written: 0.1 is a tenth."""
    return Fraction(number) if isinstance(number, Decimal | int) else Fraction(str(number))


def _cents(amount: Fraction) -> Decimal:
    """Rounded half up, exactly: a quotient of whole numbers is compared, not one of rounded ones."""
    whole, rest = divmod(amount.numerator * 100, amount.denominator)
    return (whole + (2 * rest >= amount.denominator)) * CENT


def _cents_below(amount: Fraction) -> Decimal:
    """A bid that is no whole number of cents is never exceeded by rounding."""
    return (amount.numerator * 100 // amount.denominator) * CENT
