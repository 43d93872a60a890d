"""No site fills the first page if there are others."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from vedette.serve.rank.diversity import spread_sites

FIRST, SHARE, FEWEST_SITES = 10, 3, 5


@given(st.lists(st.integers(0, 12), max_size=60))
def test_at_most_three_of_a_site_among_ten(hosts: list[int]) -> None:
    """All rows stay; a site has at most three in the first ten, unless there is nothing else to show."""
    rows = np.arange(len(hosts))
    result = spread_sites(rows, np.array(hosts, np.int64))
    assert sorted(result.rows.tolist()) == rows.tolist()
    if len(set(hosts)) < FEWEST_SITES:
        assert result.rows.tolist() == rows.tolist()
        assert not result.moved
        return
    within = sum(min(hosts.count(host), SHARE) for host in set(hosts))
    first = [hosts[row] for row in result.rows[: min(FIRST, within)].tolist()]
    assert all(first.count(host) <= SHARE for host in first)


@given(st.lists(st.integers(0, 12), max_size=60))
def test_order_within_each_part_stays(hosts: list[int]) -> None:
    """Rows that move down keep their order, and so do those that move up."""
    result = spread_sites(np.arange(len(hosts)), np.array(hosts, np.int64))
    kept = [row for row in result.rows.tolist() if row not in result.moved]
    moved = [row for row in result.rows.tolist() if row in result.moved]
    assert kept == sorted(kept)
    assert moved == sorted(moved)


def test_a_site_that_would_fill_the_page() -> None:
    """With twelve results of one site and a few others, three of it come first, and the rest after the ten."""
    hosts = np.array([1] * 12 + [2, 3, 4, 5, 6, 7, 8])
    result = spread_sites(np.arange(len(hosts)), hosts)
    assert result.rows[:10].tolist() == [0, 1, 2, 12, 13, 14, 15, 16, 17, 18]
    assert result.moved == set(range(3, 12))
