"""PageRank: power iteration agrees with linear algebra, on every small graph."""

from itertools import pairwise
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.index.pagerank import (
    GraphBlock,
    host_importance,
    merge_percentiles,
    page_importance,
    percentiles,
    sample_quantiles,
)
from vedette.policy import Floats, Ints

Links = list[tuple[int, int]]

# Enough for the rounds to be done to the last digit that is compared.
MANY_ROUNDS = 200


def ends(links: Links) -> tuple[Ints, Ints]:
    """Return the sources and targets of links."""
    both = np.array(links, np.int64).reshape(-1, 2)
    return both[:, 0], both[:, 1]


def solved(
    links: Links, pages: int, damping: float, hosts: list[int] | None = None, within_host: float = 1.0
) -> Floats:
    """Solve the formula as a dense system of linear equations."""
    weights = np.zeros((pages, pages))
    for source, target in links:
        if source != target:
            same = hosts is not None and hosts[source] == hosts[target]
            weights[target, source] = within_host if same else 1.0
    for source in range(pages):
        column = weights[:, source]
        weights[:, source] = column / column.sum() if column.any() else 1 / pages
    return np.linalg.solve(np.eye(pages) - damping * weights, np.full(pages, (1 - damping) / pages))


# Graphs from the literature: four pages, three pointing at the first; a ring; a star; the eleven pages with a hub and a
# dangling page; two cliques with a bridge.
TOYS: dict[str, tuple[int, Links]] = {
    "three cite one": (4, [(1, 0), (2, 0), (3, 0)]),
    "unequal out-degrees": (4, [(1, 0), (1, 2), (2, 0), (3, 0), (3, 1), (3, 2)]),
    "ring": (5, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)]),
    "star": (6, [*((leaf, 0) for leaf in range(1, 6)), *((0, leaf) for leaf in range(1, 6))]),
    "eleven": (
        11,
        [
            *((1, 2), (2, 1), (3, 0), (3, 1), (4, 1), (4, 3), (4, 5), (5, 1), (5, 4)),
            *((page, target) for page in (6, 7, 8) for target in (1, 4)),
            *((9, 4), (10, 4)),
        ],
    ),
    "two cliques": (6, [(0, 1), (1, 2), (2, 0), (1, 0), (3, 4), (4, 5), (5, 3), (4, 3), (2, 3)]),
}


@pytest.mark.parametrize("name", TOYS)
@pytest.mark.parametrize("damping", [0.5, 0.85])
def test_toy_graphs(name: str, damping: float) -> None:
    """On graphs from the literature, importance solves the equations."""
    pages, links = TOYS[name]
    found = page_importance(*ends(links), pages, damping=damping, rounds=MANY_ROUNDS)
    np.testing.assert_allclose(found, solved(links, pages, damping), atol=1e-8)


def test_order_of_the_eleven() -> None:
    """The page that all others link to is first, then the page it links to, then the hub."""
    pages, links = TOYS["eleven"]
    assert np.argsort(-page_importance(*ends(links), pages))[:3].tolist() == [1, 2, 4]


GRAPHS = st.integers(1, 12).flatmap(
    lambda pages: st.tuples(
        st.just(pages),
        st.lists(st.tuples(st.integers(0, pages - 1), st.integers(0, pages - 1)), max_size=60),
        st.lists(st.integers(0, 3), min_size=pages, max_size=pages),
    )
)


@given(GRAPHS, st.floats(0, 0.9), st.floats(0.1, 1))
def test_any_graph(graph: tuple[int, Links, list[int]], damping: float, within_host: float) -> None:
    """The same is true for any graph, with hosts, repeated links, self-links and pages without links."""
    pages, links, hosts = graph
    sources, targets = ends(links)
    found = page_importance(
        sources, targets, pages, damping=damping, hosts=np.array(hosts), within_host=within_host, rounds=MANY_ROUNDS
    )
    np.testing.assert_allclose(found, solved(links, pages, damping, hosts, within_host), atol=1e-7)


@given(GRAPHS)
def test_default_rounds_keep_the_promise(graph: tuple[int, Links, list[int]]) -> None:
    """With the default number of rounds, the error is as small as documented.

    The sum is 1, and no value is negative.
    """
    pages, links, _ = graph
    found = page_importance(*ends(links), pages)
    assert np.abs(found - solved(links, pages, 0.85)).sum() <= 2 * 0.85**60 + 1e-8
    assert found.sum() == pytest.approx(1)
    assert (found > 0).all()


@given(GRAPHS, st.randoms(use_true_random=False))
def test_order_of_links_makes_no_difference(graph: tuple[int, Links, list[int]], random: Random) -> None:
    """Links in another order, or repeated, give exactly the same result."""
    pages, links, hosts = graph
    shuffled = links * 2
    random.shuffle(shuffled)
    first = page_importance(*ends(links), pages, hosts=np.array(hosts))
    assert first.tolist() == page_importance(*ends(shuffled), pages, hosts=np.array(hosts)).tolist()


def test_links_from_outside_count_more() -> None:
    """Of two pages with one similar link each, the one linked from another host ranks higher."""
    sources, targets = ends([(0, 1), (0, 2)])
    found = page_importance(sources, targets, 3, hosts=np.array([7, 7, 8]))
    assert found[2] > found[1]
    same = page_importance(sources, targets, 3)
    assert same[1] == same[2]


@pytest.mark.parametrize("pages", [0, 1, 4])
def test_no_links(pages: int) -> None:
    """Without links all pages are equal; without pages the array is empty."""
    assert page_importance(*ends([]), pages).tolist() == pytest.approx([1 / pages] * pages if pages else [])


def test_links_to_what_is_no_page_are_left_out() -> None:
    """A link end below zero or after the last page is ignored."""
    links = [(0, 1), (1, 2)]
    strange = [*links, (-1, 0), (0, -1), (3, 0), (2, 99)]
    assert page_importance(*ends(strange), 3).tolist() == page_importance(*ends(links), 3).tolist()


def test_weight_of_nothing_is_no_division_by_nothing() -> None:
    """Links with a weight of zero leave finite numbers that sum to 1."""
    sources, targets = ends([(0, 1), (1, 0)])
    found = page_importance(sources, targets, 3, hosts=np.zeros(3, np.int64), within_host=0)
    assert found.sum() == pytest.approx(1)


def test_hosts_add_up_their_pages() -> None:
    """A host's importance is the sum over its pages; a host without pages has none."""
    found = host_importance(np.array([0.1, 0.2, 0.3, 0.4]), np.array([0, 0, 3, 1]))
    assert np.expm1(found) / 4 == pytest.approx([0.3, 0.4, 0, 0.3])
    assert host_importance(np.zeros(0), np.zeros(0, np.int64)).tolist() == []


@given(st.lists(st.floats(allow_nan=False), max_size=50))
def test_percentiles_are_places(values: list[float]) -> None:
    """Percentiles keep the order, are between 0 and 1 with a mean of one half, and equal values share one."""
    places = percentiles(np.array(values))
    assert all(0 <= place <= 1 for place in places)
    pairs = sorted(zip(values, places.tolist(), strict=True))
    for (low, before), (high, after) in pairwise(pairs):
        assert (low == high) == (before == after)
        assert before <= after
    assert not values or places.mean() == pytest.approx(0.5)


def test_ends_of_percentiles() -> None:
    """The smallest of different values is at 0 and the largest at 1; a single value is in the middle."""
    assert percentiles(np.array([3.0, 1.0, 2.0])).tolist() == [1, 0, 0.5]
    assert percentiles(np.array([9.0])).tolist() == [0.5]


@pytest.mark.parametrize("seed", range(4))
def test_blocks_that_exchange_what_flows_between_them_settle_at_the_ranks_of_the_whole_graph(seed: int) -> None:
    """Three blocks of a random graph, each solved separately until nothing changes, agree with one computation."""
    random, pages = np.random.default_rng(seed), 60
    block_of, hosts = np.sort(random.integers(0, 3, pages)), np.arange(pages) // 4
    hosts = hosts + 100 * block_of  # a host is in one block
    pairs = np.unique(random.integers(0, pages, (150, 2)), axis=0)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    whole = page_importance(pairs[:, 0], pairs[:, 1], pages, hosts=hosts, rounds=MANY_ROUNDS)
    inflow, dangling, ranks = np.zeros(pages), np.zeros(3), np.zeros(pages)
    for _ in range(60):
        flows = np.zeros((3, pages))
        for block in range(3):
            own = np.flatnonzero(block_of == block)
            place = np.full(pages, -1)
            place[own] = np.arange(len(own))
            from_here, inside = block_of[pairs[:, 0]] == block, block_of[pairs[:, 1]] == block
            ours, away = pairs[from_here & inside], pairs[from_here & ~inside]
            elsewhere = float(dangling.sum() - dangling[block])
            solved = GraphBlock(
                place[ours[:, 0]],
                place[ours[:, 1]],
                len(own),
                place[away[:, 0]],
                inflow[own],
                float(pages),
                elsewhere,
                hosts[own],
            ).solve(rounds=MANY_ROUNDS)
            ranks[own], dangling[block] = solved.ranks, solved.dangling
            flows[block] = np.bincount(away[:, 1], solved.outflow, minlength=pages)
        inflow = flows.sum(axis=0)
    assert ranks == pytest.approx(whole, abs=1e-6)


@given(st.lists(st.integers(0, 9), min_size=2, max_size=40), st.integers(1, 20))
def test_percentiles_of_blocks_are_about_those_of_all(values: list[int], cut: int) -> None:
    """Each block knows a sample of the others, from which it estimates the ranks of its own pages."""
    here, there = np.array(values[:cut], np.float64), np.array(values[cut:], np.float64)
    merged = merge_percentiles(here, [(float(len(there)), sample_quantiles(there))])
    both = percentiles(np.array(values, np.float64))[: len(here)]
    assert merged == pytest.approx(both, abs=1.5 / len(values) + 0.05)
