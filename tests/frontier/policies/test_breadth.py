"""Breadth first: the link distance decides, the serial number breaks ties, and nothing else counts."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from vedette.frontier.policies.breadth import Breadth
from vedette.frontier.unseen import UnseenUrls
from vedette.policy import Floats, rng_for

depths = st.integers(0, 2**20 - 1)
numbers = st.integers(0, 2**32 - 1)


def worth_of(rows: list[tuple[int, int]], seed: int = 1, now_s: float = 0.0) -> Floats:
    """Return the worth of rows of depth and serial number."""
    columns = np.array(rows, dtype=np.int64).reshape(-1, 2)
    policy = Breadth()
    batch = UnseenUrls(columns[:, 0], columns[:, 1], inlinks=np.arange(len(rows)))
    return policy.worth(policy.start(None), batch, now_s, rng_for(seed, "test"))


@given(st.tuples(depths, numbers), st.tuples(depths, numbers))
def test_two_urls_are_ordered_by_depth_then_by_number(a: tuple[int, int], b: tuple[int, int]) -> None:
    """Lower depth wins; at equal depth the earlier find wins, so the order is strict."""
    worth = worth_of([a, b])
    assert (worth[0] > worth[1]) == (a < b)
    assert (worth[0] == worth[1]) == (a == b)


def test_neighbouring_numbers_far_from_the_start_still_differ() -> None:
    """Rounding never makes two consecutive finds equal, at any depth and any count."""
    assert np.all(np.diff(worth_of([(2**20 - 1, 2**32 - 3), (2**20 - 1, 2**32 - 2)])) < 0)


@given(st.integers(2**32, 2**62), depths)
def test_a_number_beyond_all_bounds_never_outweighs_a_link(number: int, depth: int) -> None:
    """No matter how many URLs were seen before, lower depth comes first."""
    nearer, farther = worth_of([(depth, number), (depth + 1, 0)])
    assert nearer > farther


def test_neither_time_nor_chance_matters() -> None:
    """The same URLs have the same worth at any time and for any seed."""
    rows = [(3, 1), (0, 2), (3, 0)]
    assert worth_of(rows).tolist() == worth_of(rows, seed=2, now_s=1e9).tolist()


def test_the_reason_names_the_distance() -> None:
    """The reason says how far a URL is from a start URL."""
    policy = Breadth()
    batch = UnseenUrls(np.array([5, 8]), np.array([0, 1]), np.array([1, 1]))
    assert "8 links" in policy.reason(policy.start(None), batch, 1, 0.0)
