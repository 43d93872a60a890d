"""Impact of fetched pages (Impact08): the definition of section 3, and the worst case of section 4.1."""

from itertools import pairwise, permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.lab.histories import Life, small_history
from tests.lab.impact_definitions import ScoreBounds, compute_page_impacts, compute_worst_case, sum_impact

from vedette.attention import step_visibility, visibility
from vedette.lab.quality.corpus import load_corpus
from vedette.lab.quality.query_files import build_queries
from vedette.lab.quality.scoring import InLinkScoring
from vedette.lab.quality.workload import Workload, build_workload

FREQUENCY = 7.0


def two_queries() -> Workload:
    """Page 0 has both words and the fewest links, 1 and 2 have one each; "tide" is searched three times as often."""
    lives = [Life([(0, "low tide")]), Life([(0, "tide")]), Life([(0, "low")]), Life([(0, "ebb")])]
    queries = build_queries([("tide", 3.0), ("low", 1.0)])
    return build_workload(load_corpus(small_history(lives)), queries, InLinkScoring(np.array([0, 5, 5, 9])))


def test_impact_is_how_often_a_page_is_seen() -> None:
    """Pages 1 and 2 come first for one query each, page 0 second for both; page 3 matches no query."""
    second = 2**-1.5
    impacts = compute_page_impacts(np.arange(4), two_queries(), visibility)
    assert impacts.tolist() == pytest.approx([4 * second, 3, 1, 0])
    assert compute_page_impacts(np.arange(4), two_queries()).tolist() == [4, 3, 1, 0]
    assert compute_page_impacts(np.arange(4), two_queries(), step_visibility(1)).tolist() == [0, 3, 1, 0]


def test_impact_of_a_set_counts_every_page_once() -> None:
    """Fetching a page three times does not make it seen more often."""
    assert sum_impact(np.array([1, 1, 2, 1]), np.array([4.0, 3.0, 1.0])) == 4
    assert sum_impact(np.zeros(0, np.int64), np.array([4.0])) == 0


def test_pages_that_are_not_there_have_no_impact() -> None:
    """A dead page has no rank, and the others move up."""
    impacts = compute_page_impacts(np.array([0, -1, 2, 3]), two_queries(), step_visibility(1))
    assert impacts.tolist() == [3, 0, 1, 0]


def test_worst_case_of_two_pages_is_more_than_both_worst_cases() -> None:
    """Section 4.1: nothing is crawled, two pages have overlapping scores. Each alone may come second.

    Both together take ranks 1 and 2, whichever is which: f V(2) for one, f (V(1) + V(2)) for both.
    """
    sketch = ScoreBounds(np.array([1.0, 2.0]), np.array([4.0, 5.0]))
    alone = [compute_worst_case(sketch, np.array(chosen), FREQUENCY) for chosen in ([True, False], [False, True])]
    assert alone == pytest.approx([FREQUENCY * 2**-1.5] * 2)
    both = compute_worst_case(sketch, np.array([True, True]), FREQUENCY)
    assert both == pytest.approx(FREQUENCY * (1 + 2**-1.5))
    assert both > sum(alone)


def test_worst_rank_of_a_page_between_others() -> None:
    """A page whose bounds range from below the fifth to above the third score is, at worst, at rank 5."""
    sketch = ScoreBounds(np.array([9.0, 8.0, 3.0, 7.0, 6.0, 1.0]), np.array([9.0, 8.0, 7.5, 7.0, 6.0, 2.0]))
    fetched = np.array([False, False, True, False, False, False])
    assert compute_worst_case(sketch, fetched, FREQUENCY) == pytest.approx(FREQUENCY * 5**-1.5)


BOUNDS = st.tuples(st.integers(0, 4), st.integers(0, 2)).map(lambda pair: (pair[0], pair[0] + pair[1]))


@given(st.lists(st.tuples(BOUNDS, st.booleans()), min_size=1, max_size=4))
def test_worst_case_is_the_least_of_all_cases(pages: list[tuple[tuple[int, int], bool]]) -> None:
    """No choice of scores within the bounds, and no order of ties, gives less impact."""
    bounds, fetched = [page[0] for page in pages], [page[1] for page in pages]
    cases = [
        sum((rank + 1) ** -1.5 for rank, page in enumerate(order) if fetched[page])
        for scores in product(*(range(low, high + 1) for low, high in bounds))
        for order in permutations(range(len(pages)))
        if all(scores[one] >= scores[other] for one, other in pairwise(order))
    ]
    sketch = ScoreBounds(np.array([low for low, _ in bounds], float), np.array([high for _, high in bounds], float))
    assert compute_worst_case(sketch, np.array(fetched), 1.0) == pytest.approx(min(cases))
