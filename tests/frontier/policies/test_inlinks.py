"""In-links first: the count decides, depth breaks ties, then the earlier find."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from vedette.frontier.policies.inlinks import Inlinks
from vedette.frontier.unseen import UnseenUrls
from vedette.policy import Floats, rng_for

# The known-URL table counts up to 255.
counts = st.integers(1, 255)
depths = st.integers(0, 20)
numbers = st.integers(0, 2**32 - 1)

Row = tuple[int, int, int]


def worth_of(rows: list[Row]) -> Floats:
    """Return the worth of rows of in-links, depth and serial number."""
    columns = np.array(rows, dtype=np.int64).reshape(-1, 3)
    policy = Inlinks()
    batch = UnseenUrls(depth=columns[:, 1], found=columns[:, 2], inlinks=columns[:, 0])
    return policy.worth(policy.start(None), batch, 0.0, rng_for(1, "test"))


@given(st.tuples(counts, depths, numbers), st.tuples(counts, depths, numbers))
def test_two_urls_are_ordered_by_inlinks_then_depth_then_number(a: Row, b: Row) -> None:
    """One more in-link outweighs any difference in depth; at equal counts, lower depth wins, then the earlier find."""
    first, second = worth_of([a, b])
    assert (first > second) == ((-a[0], *a[1:]) < (-b[0], *b[1:]))


def test_nobody_linked_is_worth_no_less_than_linked_once() -> None:
    """A start URL has no in-links, but that doesn't make it last."""
    start, once = worth_of([(0, 0, 0), (1, 0, 0)])
    assert start == once


def test_the_reason_names_the_count() -> None:
    """The reason says how many pages link to a URL."""
    policy = Inlinks()
    batch = UnseenUrls(np.array([5]), np.array([0]), np.array([17]))
    assert "17" in policy.reason(policy.start(None), batch, 0, 0.0)
