"""Blows to a crawl under a budget: no minute costs more than it may, and all that may be spent is."""

from dataclasses import replace

import pytest
from tests.ring.shocks import BLOWS, struck

# A request more or less is this part of a minute's budget: thirty, or fifteen where it is halved.
ONE = 1 / 15


@pytest.mark.parametrize("name", ["budget halved, then doubled", "half of the hosts down"])
def test_a_blow_is_taken_within_three_minutes(name: str) -> None:
    """Then no minute has more than 102 % of its budget, a request aside; ten have 98 %; and everybody has turns.

    All blows, at a larger budget and with the policy that runs live, are in ``shocks``.
    """
    taken = struck(replace(BLOWS[name], hosts=10, per_s=0.5), refresh="uniform")
    assert taken.most <= 1.02 + ONE
    assert taken.least >= 0.98
    assert taken.longest_s <= 60.0
