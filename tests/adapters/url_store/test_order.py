"""Reordering: the same URLs wait for the same hosts, in another order."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from vedette.adapters.url_store.queues import FRONTS, HostQueues


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, FRONTS - 1)), min_size=1, max_size=60), st.randoms())
def test_nobody_is_lost_and_the_order_is_the_new_one(rows: list[tuple[int, int]], random: object) -> None:
    """One host's URLs are in the new order, queue by queue; others, and requested ones, stay as before."""
    queues, ids = HostQueues(), np.arange(1, len(rows) + 1, dtype=np.uint32)
    hosts, fronts = (np.array(column) for column in zip(*rows, strict=True))
    queues.append(ids, hosts, fronts.astype(np.uint8))
    others = [(id_, host) for id_, (host, front) in enumerate(rows, 1) if host != 1 or front == 0]
    waiting, before = queues.list_waiting(1)
    assert sorted(waiting.tolist()) == [id_ for id_, (host, front) in enumerate(rows, 1) if host == 1 and front]
    assert (np.diff(before.astype(int)) >= 0).all()
    order = np.random.default_rng(random.randrange(1 << 30)).permutation(len(waiting))  # type: ignore[attr-defined]
    again = (before[order].astype(int) % (FRONTS - 1) + 1).astype(np.uint8)
    queues.reorder(1, waiting[order], again)
    wanted = [int(id_) for front in range(1, FRONTS) for id_ in waiting[order][again == front]]
    wished = [id_ for id_, host in others if host == 1]
    assert [one.id for one in queues.pop([1] * (len(rows) + 1), None)] == wished + wanted
    assert queues.count_total() == len([1 for _, host in others if host != 1])
