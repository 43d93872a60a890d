"""Searches over a real index with click learning: what moves, what is explained, and where nothing is tried."""

import numpy as np
import pytest
from tests.engine.index_snapshots import NOW_S, Leaf, TestShelf
from tests.serve.rank.test_reranking import reputation

from vedette.engine.search.scoring import hash_query
from vedette.engine.search.search import Searcher
from vedette.serve.rank.reputation import Reputation
from vedette.serve.rank.reranking import UNPROVEN
from vedette.serve.rank.rules import NO_RULES, PINNED, SearchRules, parse_rules
from vedette.serve.slate import DEFAULT_AUDIENCE, Audience, SearchRequest, Slate

LEAVES = [Leaf(f"http://h{n % 7}.org/{n}", f"Kites {n}", f"kites and other birds {n}") for n in range(1, 15)]
TRYING = Audience(unproven=2, seed=5)


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> TestShelf:
    """Return pages that match about equally well, and a home page."""
    home = Leaf("http://kites.org/", "Kites", "kites of the world")
    return TestShelf([*LEAVES, home], tmp_path_factory.mktemp("index"))


def make_frequent(known: Reputation, query: str, views: float = 100.0) -> Reputation:
    """Return the same as if this query were searched often."""
    return known._replace(query=np.array([hash_query(query)]), query_views=np.array([views]))


def slate(
    shelf: TestShelf,
    known: Reputation | None,
    audience: Audience = DEFAULT_AUDIENCE,
    query: str = "birds",
    rules: SearchRules = NO_RULES,
) -> Slate:
    """Return the shown results."""
    return Searcher(shelf, rules, known).search(SearchRequest(query, audience=audience), NOW_S)


def test_a_liked_page_comes_first_with_an_explanation(shelf: TestShelf) -> None:
    """Its score includes quality, its reasons and sentence mention it, and its features contain it."""
    plain = slate(shelf, None)
    last = plain.results[-1].id
    first = slate(shelf, reputation({last: (90.0, 100.0)})).results[0]
    assert first.id == last
    assert sum(reason.contribution for reason in first.why) == pytest.approx(first.score, abs=0.1)
    assert "Of about 100 people who saw it recently, 90 liked it." in first.sentence
    assert dict(first.features)["quality"] > 0


def test_the_control_group_gets_results_by_relevance(shelf: TestShelf) -> None:
    """For visitors of the other group, and without anything learned, the results are unchanged."""
    known = reputation({14: (90.0, 100.0)})
    assert slate(shelf, known, Audience(is_learned=False, unproven=2)).results == slate(shelf, None).results


def test_unproven_pages_are_tried_and_marked(shelf: TestShelf) -> None:
    """At most two of the first ten, not the first one, each with a note and a propensity; the list is repeatable."""
    known = make_frequent(reputation(dict.fromkeys(range(1, 11), (10.0, 100.0)), teaching=1.0), "birds")
    shown = slate(shelf, known, TRYING)
    tried = [place for place, result in enumerate(shown.results, 1) if result.note == UNPROVEN]
    assert 1 <= len(tried) <= 2
    assert 1 not in tried
    assert all(0 < result.propensity <= 1 for result in shown.results)
    assert "Few people have seen it." in shown.results[tried[0] - 1].sentence
    assert slate(shelf, known, TRYING) == shown


def test_excluded_visitors_get_no_trials(shelf: TestShelf) -> None:
    """Programs and users beyond their quota get no trials."""
    known = make_frequent(reputation(dict.fromkeys(range(1, 11), (10.0, 100.0)), teaching=1.0), "birds")
    assert UNPROVEN not in [result.note for result in slate(shelf, known).results]


def test_queries_for_a_site_get_no_trials(shelf: TestShelf) -> None:
    """A query that names a site shows its home page first."""
    known = reputation(dict.fromkeys(range(1, 11), (10.0, 100.0)), teaching=1.0)
    shown = slate(shelf, make_frequent(known, "kites"), TRYING, "kites")
    assert shown.results[0].url == "http://kites.org/"
    assert UNPROVEN not in [result.note for result in shown.results]


def test_pins_stay_first(shelf: TestShelf) -> None:
    """Pages pinned by the operator come before those that visitors like."""
    rules = parse_rules([], [("birds", LEAVES[4].url)], [])
    shown = slate(shelf, reputation({14: (90.0, 100.0)}), query="birds", rules=rules)
    assert [result.note for result in shown.results[:1]] == [PINNED]
    assert shown.results[1].id == 14


def test_a_search_without_results_shows_none(shelf: TestShelf) -> None:
    """A search without results shows none, whatever was learned."""
    assert slate(shelf, reputation({}), TRYING, "zeppelin").results == ()
