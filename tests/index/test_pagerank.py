"""PageRank: power iteration agrees with linear algebra, on every small graph."""

from itertools import pairwise
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.index.pagerank import host_importance, page_importance, percentiles
from vedette.policy import Floats, Ints

Links = list[tuple[int, int]]

# Enough for the rounds to be done to the last digit that is compared.
MANY_ROUNDS = 200


def ends(links: Links) -> tuple[Ints, Ints]:
    """The sources and the targets of links."""
    both = np.array(links, np.int64).reshape(-1, 2)
    return both[:, 0], both[:, 1]


def solved(
    links: Links, pages: int, damping: float, hosts: list[int] | None = None, within_host: float = 1.0
) -> Floats:
    """The formula as one dense system of linear equations."""
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
    """On graphs of the literature the importance is the solution of the equations."""
    pages, links = TOYS[name]
    found = page_importance(*ends(links), pages, damping=damping, rounds=MANY_ROUNDS)
    np.testing.assert_allclose(found, solved(links, pages, damping), atol=1e-8)


def test_order_of_the_eleven() -> None:
    """The page that all point at leads, then the one page it points at, then the hub."""
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
    """The same on any graph, with hosts, repeated links, links to oneself and pages without any."""
    pages, links, hosts = graph
    sources, targets = ends(links)
    found = page_importance(
        sources, targets, pages, damping=damping, hosts=np.array(hosts), within_host=within_host, rounds=MANY_ROUNDS
    )
    np.testing.assert_allclose(found, solved(links, pages, damping, hosts, within_host), atol=1e-7)


@given(GRAPHS)
def test_default_rounds_keep_the_promise(graph: tuple[int, Links, list[int]]) -> None:
    """With the default rounds, all pages together are as near as the docstring says; the sum is 1, none is below 0."""
    pages, links, _ = graph
    found = page_importance(*ends(links), pages)
    assert np.abs(found - solved(links, pages, 0.85)).sum() <= 2 * 0.85**60 + 1e-8
    assert found.sum() == pytest.approx(1)
    assert (found > 0).all()


@given(GRAPHS, st.randoms(use_true_random=False))
def test_order_of_links_makes_no_difference(graph: tuple[int, Links, list[int]], random: Random) -> None:
    """Links in another order, and repeated, give the same to the last bit."""
    pages, links, hosts = graph
    shuffled = links * 2
    random.shuffle(shuffled)
    first = page_importance(*ends(links), pages, hosts=np.array(hosts))
    assert first.tolist() == page_importance(*ends(shuffled), pages, hosts=np.array(hosts)).tolist()


def test_links_from_outside_count_more() -> None:
    """Of two pages with one link each from like pages, the one linked from another host is ahead."""
    sources, targets = ends([(0, 1), (0, 2)])
    found = page_importance(sources, targets, 3, hosts=np.array([7, 7, 8]))
    assert found[2] > found[1]
    same = page_importance(sources, targets, 3)
    assert same[1] == same[2]


@pytest.mark.parametrize("pages", [0, 1, 4])
def test_no_links(pages: int) -> None:
    """Without links all pages are the same; no pages are an empty array."""
    assert page_importance(*ends([]), pages).tolist() == pytest.approx([1 / pages] * pages if pages else [])


def test_links_to_what_is_no_page_are_left_out() -> None:
    """An end below zero or behind the last page makes no difference."""
    links = [(0, 1), (1, 2)]
    strange = [*links, (-1, 0), (0, -1), (3, 0), (2, 99)]
    assert page_importance(*ends(strange), 3).tolist() == page_importance(*ends(links), 3).tolist()


def test_weight_of_nothing_is_no_division_by_nothing() -> None:
    """Links that are to weigh nothing leave finite numbers that sum to 1."""
    sources, targets = ends([(0, 1), (1, 0)])
    found = page_importance(sources, targets, 3, hosts=np.zeros(3, np.int64), within_host=0)
    assert found.sum() == pytest.approx(1)


def test_hosts_add_up_their_pages() -> None:
    """A host's importance grows with that of its pages; a host number without pages has none."""
    found = host_importance(np.array([0.1, 0.2, 0.3, 0.4]), np.array([0, 0, 3, 1]))
    assert np.expm1(found) / 4 == pytest.approx([0.3, 0.4, 0, 0.3])
    assert host_importance(np.zeros(0), np.zeros(0, np.int64)).tolist() == []


@given(st.lists(st.floats(allow_nan=False), max_size=50))
def test_percentiles_are_places(values: list[float]) -> None:
    """They keep the order, lie within 0 and 1, and are one half in the mean; equal values have equal ones."""
    places = percentiles(np.array(values))
    assert all(0 <= place <= 1 for place in places)
    pairs = sorted(zip(values, places.tolist(), strict=True))
    for (low, before), (high, after) in pairwise(pairs):
        assert (low == high) == (before == after)
        assert before <= after
    assert not values or places.mean() == pytest.approx(0.5)


def test_ends_of_percentiles() -> None:
    """The smallest of different values is at 0, the largest at 1; one value alone is in the middle."""
    assert percentiles(np.array([3.0, 1.0, 2.0])).tolist() == [1, 0, 0.5]
    assert percentiles(np.array([9.0])).tolist() == [0.5]
