"""Shocks to a crawl with a budget: no minute exceeds it, and all of it is spent."""

from dataclasses import replace

import pytest
from tests.engine.shocks import BLOWS, struck
from tests.engine.weighted_hosts import weighed
from tests.tree_runs import PROVE

# Those that differ in kind: the others are the same in the other order, or for fewer hosts.
NAMES = ("budget doubled, then halved", "nine in ten hosts down", "births of ten minutes at once", "a new site")
# A request more or less is this part of a minute's budget: thirty, or fifteen where it is halved.
ONE = 1 / 15


@pytest.mark.parametrize("name", BLOWS if PROVE else NAMES)
def test_a_blow_is_taken_within_three_minutes(name: str) -> None:
    """After that, no minute has more than 102% of its budget plus a request, and ten minutes have at least 98%.

    Every host gets its turn. For a larger budget and the live policy, run ``shocks``.
    """
    taken = struck(replace(BLOWS[name], hosts=10, per_s=0.5), refresh="uniform")
    assert taken.most <= 1.02 + ONE
    assert taken.least >= 0.98
    assert taken.longest_s <= 90.0
    assert taken.newcomer >= (20 if BLOWS[name].new_site else 0)


def test_no_host_waits_while_its_work_is_worth_the_price() -> None:
    """If budget is left, such hosts are requested as often as politeness allows, and others are not.

    A tenth of the budget goes to hosts that are not worth the price, so that they can prove otherwise.
    """
    waited = weighed({"good": 2, "poor": 3}, per_s=4.0)
    assert waited.worths["good"] > waited.price
    assert waited.longest_s["good"] <= 6.0
    assert waited.per_s["good"] >= 2 * 0.8
    assert 0.05 * 4.0 <= waited.per_s["poor"] <= 0.15 * 4.0


def test_no_page_worth_the_price_waits_behind_pages_that_are_not() -> None:
    """A host with good pages behind poor ones gets as many requests for good ones as a good host.

    A small share of its requests is for poor pages, so that these can prove otherwise.
    """
    waited = weighed({"good": 1, "poor": 1, "both": 1}, per_s=1.0, pages=900)
    assert waited.worths["good"] > waited.price > waited.worths["poor"]
    assert waited.longest_s["both"] <= 12.0
    assert waited.per_s["both"] >= 0.8 * waited.per_s["good"]
    assert waited.sections["good"] >= 0.8
    assert 0.05 <= waited.sections["poor"] <= 0.15
