"""From worth to front queue: higher worth is never in a later queue, and no policy uses the operator's own queue."""

from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.adapters.url_store.queues import FRONTS as STORED_FRONTS
from vedette.frontier.queues import FRONT_QUEUES, ORDER_POLICIES, REQUESTED_QUEUE, OrderName, assign_by_worth
from vedette.frontier.unseen import UnseenUrls
from vedette.policy import rng_for

worths = st.floats(-1e6, 1e6)
every_order = pytest.mark.parametrize("name", get_args(OrderName))


@given(st.lists(worths, min_size=1, max_size=20), st.floats(-100, 100), st.floats(0.1, 100))
def test_better_worth_stands_no_further_back(some: list[float], best: float, width: float) -> None:
    """Higher worth never means a later queue, and the first queue stays reserved."""
    ordered = np.array(sorted(some, reverse=True))
    fronts = assign_by_worth(ordered, best, best - width)
    assert np.all(np.diff(fronts) >= 0)
    assert fronts.min() > REQUESTED_QUEUE
    assert fronts.max() < FRONT_QUEUES


@given(st.floats(-100, 100), st.floats(0.1, 100))
def test_the_ends_of_the_range_are_the_best_and_the_worst_queue(best: float, width: float) -> None:
    """Any chosen range uses all queues."""
    fronts = assign_by_worth(np.linspace(best, best - width, 1000), best, best - width)
    assert sorted(set(fronts.tolist())) == list(range(REQUESTED_QUEUE + 1, FRONT_QUEUES))


def test_there_are_as_many_queues_as_are_kept() -> None:
    """The store of known URLs has exactly these front queues."""
    assert FRONT_QUEUES == STORED_FRONTS


def fronts_by(name: OrderName, *, depths: list[int], inlinks: list[int]) -> list[int]:
    """Return the front queues that an order gives."""
    ordering = ORDER_POLICIES[name]
    batch = UnseenUrls(np.array(depths), np.arange(len(depths)), np.array(inlinks))
    worth = ordering.policy.worth(ordering.policy.start(None), batch, 0.0, rng_for(1, "test"))
    return [int(front) for front in assign_by_worth(worth, ordering.best, ordering.worst)]


def test_breadth_has_a_queue_for_each_depth_while_they_last() -> None:
    """Each additional link from the start is one queue later, up to the last one."""
    fronts = fronts_by("breadth", depths=list(range(12)), inlinks=[1] * 12)
    assert fronts[: FRONT_QUEUES - 1] == list(range(REQUESTED_QUEUE + 1, FRONT_QUEUES))
    assert set(fronts[FRONT_QUEUES - 1 :]) == {FRONT_QUEUES - 1}


def test_inlinks_has_a_queue_for_each_doubling() -> None:
    """Twice as many in-links are one queue better, up to the best one; depth has no effect."""
    fronts = fronts_by("inlinks", depths=[9] * 8, inlinks=[2**power for power in range(8)])
    assert fronts[:7] == list(range(FRONT_QUEUES - 1, REQUESTED_QUEUE, -1))
    assert fronts[7] == REQUESTED_QUEUE + 1
    assert fronts_by("inlinks", depths=[0], inlinks=[3]) == fronts_by("inlinks", depths=[30], inlinks=[3])


@every_order
def test_every_order_names_its_policy(name: OrderName) -> None:
    """The configured name is the name of the policy."""
    assert ORDER_POLICIES[name].policy.name == name
