"""Relevance and reputation combined: what moves, what must not, and with which probability."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.serve.rank.explore.prospect import MAX_AWARE, MAX_LIKES
from vedette.serve.rank.reputation import Reputation, pair_key
from vedette.serve.rank.reranking import DEFAULT_PROMOTION, MAX_POINTS, ReorderedResults, TrialLimits, reorder

NONE, NO = np.zeros(0, np.int64), np.zeros(0)
QUERY = 12345
SHAPE = (MAX_AWARE + 1, MAX_LIKES + 1)


def reputation(
    known: dict[int, tuple[float, float]], *, teaching: float = 0.0, views: float = 100.0, general: float = 0.1
) -> Reputation:
    """Return pages with likes and examinations, and the gain of a view of an unseen page."""
    ids = np.array(sorted(known), np.int64)
    likes, looks = (np.array([known[id_][part] for id_ in ids.tolist()]) for part in (0, 1))
    mean = (likes + 5 * general) / (looks + 5)
    table = np.zeros(SHAPE)
    table[:2, 0] = teaching
    pages = (
        ids,
        likes,
        looks,
        mean,
        NONE,
        NO,
        NO,
        NO,
        np.array([QUERY]),
        np.array([general]),
        np.array([views]),
        NONE,
        NO,
    )
    return Reputation(*pages, table, np.ones(SHAPE), general, 1e6)


def ordered(
    scores: list[float],
    known: Reputation,
    first: int = 2,
    most: int = 2,
    seed: int = 1,
    promotion: str = DEFAULT_PROMOTION,
) -> ReorderedResults:
    """Return the order of pages 1, 2, 3 … with these scores."""
    ids = np.arange(1, len(scores) + 1)
    by_score = np.argsort(-np.array(scores), kind="stable")
    chances = TrialLimits(first, most, np.random.default_rng(seed), promotion)
    return reorder(by_score, np.array(scores), known.look_up(ids, ids, QUERY), known, chances)


@given(st.lists(st.floats(-5, 30), min_size=1, max_size=60), st.integers(0, 10))
def test_without_knowledge_the_order_is_that_of_relevance(scores: list[float], most: int) -> None:
    """Equal scores keep their order, and everything is certain."""
    found = ordered(scores, reputation({}), most=most)
    assert found.rows.tolist() == np.argsort(-np.array(scores), kind="stable").tolist()
    assert (found.propensities == 1.0).all()


def test_liked_pages_rise_and_disliked_ones_fall() -> None:
    """Of equally relevant pages, the one that people liked comes first, and the one they left comes last."""
    found = ordered([5.0, 5.1, 5.2], reputation({1: (80.0, 100.0), 3: (0.0, 100.0)}))
    assert found.rows.tolist() == [0, 1, 2]
    assert found.points[0] > 0 > found.points[2]


def test_quality_does_not_replace_relevance() -> None:
    """However well liked it is, a page that is far less relevant stays below."""
    found = ordered([5.0, 5.0 + 2 * MAX_POINTS + 0.1], reputation({1: (1e4, 1e4), 2: (0.0, 1e4)}))
    assert found.rows.tolist() == [1, 0]


KNOWN = dict.fromkeys(range(1, 13), (10.0, 100.0))
SCORES = [6.0] * 12 + [5.0] * 8


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("first", "most"), [(2, 2), (1, 1), (4, 3), (2, 0)])
def test_the_unproven_keep_to_their_seats(seed: int, first: int, most: int) -> None:
    """There are at most this many in the first ten, none before the first open position, and some do occur."""
    found = ordered(SCORES, reputation(KNOWN, teaching=1.0), first, most, seed)
    places = np.flatnonzero(found.is_unproven[:10]) + 1
    assert len(places) == most
    assert (places >= first).all()
    assert sorted(found.rows.tolist()) == list(range(20))


def test_lots_decide_among_equals_and_are_told() -> None:
    """Eight unseen pages share two positions: each page is at each of them with a probability of one in eight."""
    found = [ordered(SCORES, reputation(KNOWN, teaching=1.0), seed=seed) for seed in range(60)]
    places = found[0].is_unproven[:10]
    assert found[0].propensities[:10][places].tolist() == [1 / 8, 1 / 8]
    shown = np.concatenate([each.rows[:10][each.is_unproven[:10]] for each in found])
    assert sorted(np.unique(shown).tolist()) == list(range(12, 20))


def test_where_nobody_looks_nothing_is_tried() -> None:
    """Learning about a page is useless if no one searches the query."""
    assert not ordered(SCORES, reputation(KNOWN, teaching=1.0, views=0.0)).is_unproven.any()


def test_pages_lean_on_what_is_nearest() -> None:
    """Evidence for page and query comes first, then for the page, then for its site and the query."""
    known = reputation({1: (50.0, 100.0)})._replace(
        pair=np.array([pair_key(QUERY, 2)]),
        pair_mean=np.array([0.7]),
        pair_likes=np.array([7.0]),
        pair_looks=np.array([9.0]),
        host=np.array([9]),
        host_mean=np.array([0.3]),
    )
    found = known.look_up(np.array([1, 2, 3, 4]), np.array([9, 9, 9, 8]), QUERY)
    assert found.mean.tolist() == pytest.approx([50.5 / 105, 0.7, 0.2, 0.1])


def test_what_is_known_elsewhere_says_little_here() -> None:
    """Views for other queries count for this one as at most two and a half views."""
    known = reputation({1: (0.0, 1000.0), 2: (30.0, 60.0)})._replace(
        pair=np.array([pair_key(QUERY, 2)]),
        pair_mean=np.array([0.5]),
        pair_likes=np.array([30.0]),
        pair_looks=np.array([60.0]),
    )
    found = known.look_up(np.array([1, 2, 3]), np.array([9, 9, 9]), QUERY)
    assert 2.0 < found.here_looks[0] <= 2.5
    assert found.here_looks[1:].tolist() == [60.0, 0.0]
    assert found.here_likes.tolist() == [0.0, 30.0, 0.0]


@pytest.mark.parametrize("seed", range(5))
def test_who_was_never_seen_is_tried_before_who_was(seed: int) -> None:
    """Both are hardly known, but another view of the one already tried teaches only a tenth as much."""
    known = reputation(dict.fromkeys(range(1, 13), (10.0, 100.0)) | {13: (0.0, 20.0)}, teaching=1.0)
    pairs = [*range(1, 13), 13]
    keys = np.array([pair_key(QUERY, id_) for id_ in pairs])
    order = np.argsort(keys)
    table = known.teaching.copy()
    table[20, 0] = 0.1
    known = known._replace(
        pair=keys[order],
        pair_mean=np.full(13, 0.1)[order],
        pair_likes=np.array([10.0] * 12 + [0.0])[order],
        pair_looks=np.array([100.0] * 12 + [20.0])[order],
        teaching=table,
    )
    found = ordered([6.0] * 12 + [5.0, 5.0], known, most=1, seed=seed)
    assert found.rows[found.is_unproven].tolist() == [13]


# Six results that answer ever worse; pages 4 and 6 were never seen, page 5 twice.
SEEN = {1: (10.0, 100.0), 2: (10.0, 100.0), 3: (10.0, 100.0), 5: (0.0, 2.0)}
SIX = [9.0, 8.0, 7.0, 6.0, 5.0, 4.0]


@pytest.mark.parametrize(("promotion", "pool"), [("selective", {3, 5}), ("relaxed-selective", {3, 4, 5})])
def test_selective_promotion_draws_from_those_that_nobody_has_seen(promotion: str, pool: set[int]) -> None:
    """Each page of the pool is drawn with its documented probability, only at the open positions."""
    known, draws = reputation(SEEN), 400
    lists = [ordered(SIX, known, most=1, seed=seed, promotion=promotion) for seed in range(draws)]
    second = [int(found.rows[1]) for found in lists]
    assert {*second} == pool
    for found in lists:
        assert found.is_unproven.tolist() == [False, True, False, False, False, False]
        assert found.propensities[1] == pytest.approx(1 / len(pool))
        assert [row for row in found.rows.tolist() if row != found.rows[1]] == sorted({*range(6)} - {found.rows[1]})
    for row in pool:
        assert second.count(row) / draws == pytest.approx(1 / len(pool), abs=0.08)


def test_selective_promotion_keeps_to_the_limits() -> None:
    """There is none if none is allowed, before its first position, or if everything was seen."""
    known = reputation(SEEN)
    assert not ordered(SIX, known, most=0, promotion="selective").is_unproven.any()
    assert ordered(SIX, known, first=3, promotion="selective").rows.tolist()[:2] == [0, 1]
    everything = reputation(dict.fromkeys(range(1, 7), (10.0, 100.0)))
    assert not ordered(SIX, everything, promotion="selective").is_unproven.any()
