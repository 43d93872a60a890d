"""Ad auction: the second price of a click, the lowest bid that would have kept the slot, plus a cent.

Lecture: an ad's *rank* is its bid times its click-through rate. An ad above another pays, for a click,

    (rank of the next) / (own click-through rate) + 0.01

rounded half up to the cent and never more than the bid; the last one pays the minimum. Money is exact: decimal numbers
are parsed exactly, and rounded once.
"""

from collections.abc import Sequence
from decimal import Decimal
from itertools import pairwise
from math import lcm

Number = Decimal | float | int | str
CENT = Decimal("0.01")


def second_price(bids: Sequence[Number], ctrs: Sequence[Number], minimum: Number) -> list[Decimal]:
    """Compute the second price of a click on each ad, in the order given, which also breaks ties.

    ``ctrs`` may be any positive weights: the score that ranks is the one that prices. The minimum is the reserve; a
    price below it is raised to it. No ad pays more than its bid, even if the bid is below the minimum: exclude
    ineligible ads beforehand.

    >>> [str(price) for price in second_price([4, 3, 2, 1], [0.01, 0.03, 0.06, 0.08], "0.05")]
    ['0.05', '2.68', '1.51', '0.51']
    """
    if len(bids) != len(ctrs):
        raise ValueError(f"{len(bids)} bids and {len(ctrs)} click-through rates: each ad needs one of each")
    bid, ctr = [_ratio(each) for each in bids], [_ratio(each) for each in ctrs]
    # All ranks over one denominator, so that they are integers: exact, and much faster than fractions.
    whole = lcm(*(below * under for (_, below), (_, under) in zip(bid, ctr, strict=True)))
    ranks = [over * above * (whole // (below * under)) for (over, below), (above, under) in zip(bid, ctr, strict=True)]
    order = sorted(range(len(ranks)), key=lambda place: -ranks[place])
    floor = _round_half_up(*_ratio(minimum), 0)
    cents = [floor] * len(ranks)
    for place, following in pairwise(order):
        above, under = ctr[place]
        # Without a click nothing is paid, so a rate of 0 may have any price.
        asked = _round_half_up(ranks[following] * under, whole * above, 1) if above else 1
        cents[place] = max(asked, floor)
    # A bid in fractions of a cent is never exceeded by rounding.
    return [min(price, 100 * over // below) * CENT for price, (over, below) in zip(cents, bid, strict=True)]


def _ratio(number: Number) -> tuple[int, int]:
    """Convert a decimal number, as written, to an exact ratio of integers: 0.1 is a tenth."""
    exact = number if isinstance(number, Decimal | int) else Decimal(str(number))
    return exact.as_integer_ratio()


def _round_half_up(over: int, below: int, more: int) -> int:
    """Round an amount half up to whole cents, exactly, and add ``more`` cents."""
    return more + (200 * over + below) // (2 * below)
