"""A requested URL overtakes all others of its host, and none is lost or duplicated."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from vedette.adapters.url_store.queues import FRONTS, HostQueues

FRONT = st.integers(0, FRONTS - 1)


def filled(fronts: list[int]) -> HostQueues:
    """Return one host with ids from 1 on, each in the given front queue."""
    queues = HostQueues()
    ids = np.arange(1, len(fronts) + 1, dtype=np.uint32)
    queues.append(ids, np.zeros(len(fronts), np.int64), np.array(fronts, np.uint8))
    return queues


def emptied(queues: HostQueues) -> list[int]:
    """Return all ids of the host, best queue first."""
    order = []
    while popped := queues.pop([0], None):
        order.append(popped[0].id)
        queues.mark(np.array([popped[0].id], np.uint32), 1)
    return order


@given(st.lists(FRONT, min_size=1, max_size=30), st.lists(st.integers(0, 29), max_size=10))
def test_what_is_put_first_comes_first_and_the_rest_keeps_its_order(fronts: list[int], picks: list[int]) -> None:
    """The last one put first leads, and the others stay in the order of their queues."""
    queues = filled(fronts)
    plain = emptied(filled(fronts))
    chosen = [pick % len(fronts) + 1 for pick in picks]
    for id_ in chosen:
        queues.move_to_front(id_, 0)
    leading = list(dict.fromkeys(reversed(chosen)))
    assert queues.count_waiting(0) == len(fronts)
    ordered = emptied(queues)
    best = [id_ for id_ in ordered if id_ not in leading]
    assert ordered[: len(leading)] == leading
    assert best == [id_ for id_ in plain if id_ not in leading]


@given(st.lists(FRONT, min_size=1, max_size=30), st.data())
def test_a_place_says_how_many_come_before(fronts: list[int], data: st.DataObject) -> None:
    """Front queue and number of ids before it agree with the order in which the queues are emptied."""
    id_ = data.draw(st.integers(1, len(fronts)))
    queues = filled(fronts)
    place = queues.find_position(id_, 0)
    order = emptied(queues)
    same = [other for other in order if fronts[other - 1] == fronts[id_ - 1]]
    assert place == (fronts[id_ - 1], same.index(id_))


def test_a_place_far_back_is_not_looked_for_without_end() -> None:
    """With a million URLs on one host, a lookup must not iterate over all of them."""
    queues = filled([0] * 50)
    assert queues.find_position(50, 0, most=10) is None
