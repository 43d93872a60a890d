"""Gains are measured with the same score that search ranks by, for every page and query."""

from pathlib import Path

import numpy as np
import pytest
from tests.engine.index_snapshots import NOW_S, Leaf, TestShelf

from vedette.engine.search.answer_scores import AnswerScorer, read_query, read_words
from vedette.engine.search.scoring import (
    ALL_FEATURES,
    build_slots,
    explain_texts,
    score_candidates,
    score_signals,
    score_words,
)
from vedette.engine.search.search import Searcher
from vedette.index.features import TextFeatures, compute_features, find_hits
from vedette.index.quality.watched_queries import build_watched, merge_scores, normalize_points
from vedette.index.query.parser import parse_query
from vedette.index.query.planner import build_plan
from vedette.index.query.retrieval import ForwardTokens
from vedette.policy import Ints, rng_for
from vedette.serve.slate import SearchRequest
from vedette.text import WordHashes, hash_word

FEEDBACK = [feature.key for feature in ALL_FEATURES].index("feedback")
WORDS = ("tide", "tides", "moon", "sand", "the", "of", "low", "high", "table", "water", "salt", "rock")
FORMS = {"tide": (("tides", 0.8),), "tides": (("tide", 0.8),)}
QUERIES = (
    *("tide", "low tide", "the tide of the moon", "tide table", "salt water rock", "tide tide", "high tide table moon"),
    *("low water of the moon rock", "sand"),
)


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> TestShelf:
    """Return pages of a few words in any order, in all fields."""
    rng = rng_for(1, "test/answer_scores")

    def some(most: int) -> str:
        return " ".join(rng.choice(WORDS, int(rng.integers(0, most))).tolist())

    leaves = [
        Leaf(
            f"https://{'ab'[page % 2]}.test/{some(3).replace(' ', '-')}{page}",
            some(5),
            some(60),
            (some(4), some(3)),
            (some(4),),
            spam=float(rng.random()),
            importance=float(rng.random()),
        )
        for page in range(150)
    ]
    return TestShelf(leaves, tmp_path_factory.mktemp("index"), FORMS)


def watch(shelf: TestShelf, *queries: str) -> AnswerScorer:
    """Watch queries, each searched equally often."""
    read = [read_query(query, shelf, NOW_S) for query in queries]
    return AnswerScorer(build_watched([(one, 1.0) for one in read if one is not None]))


def test_each_score_is_that_of_search(shelf: TestShelf) -> None:
    """All pages and queries are scored at once, with the same result as search for one query."""
    ids = np.arange(1, len(shelf.leaves) + 1)
    found = watch(shelf, *QUERIES).score(shelf.forward(ids), shelf.get_signals(ids))
    assert set(found.query.tolist()) == set(range(len(QUERIES)))
    for query, text in enumerate(QUERIES):
        rows = np.flatnonzero(found.query == query)
        plan = build_plan(parse_query(text, NOW_S), shelf.get_word_forms, ())
        scored = score_candidates(ids[found.page[rows]], plan.wanted, shelf, NOW_S)
        expected = scored.scores - scored.contributions[:, FEEDBACK]  # depends on other results
        assert found.score[rows].tolist() == pytest.approx(normalize_points(expected).tolist(), abs=2e-6)


def test_pages_are_scored_alone_as_together(shelf: TestShelf) -> None:
    """A page's scores do not depend on what else is measured with it."""
    scorer, ids = watch(shelf, *QUERIES), np.arange(1, 41)
    together = scorer.score(shelf.forward(ids), shelf.get_signals(ids))
    each = [np.array([id_]) for id_ in ids.tolist()]
    alone = [scorer.score(shelf.forward(one), shelf.get_signals(one)) for one in each]
    assert together.query.tolist() == [query for one in alone for query in one.query.tolist()]
    assert together.score.tolist() == [score for one in alone for score in one.score.tolist()]


def change_pages(shelf: TestShelf, ids: Ints) -> tuple[ForwardTokens, ForwardTokens]:
    """Pages before and after some of their words were swapped, replaced or, in every third page, cut."""
    rng, before, words, lengths = rng_for(2, "test/answer_scores"), shelf.forward(ids), list[WordHashes](), list[Ints]()
    for row, part in enumerate(np.split(before.words, np.cumsum(before.lengths.sum(axis=1))[:-1])):
        sizes, new = before.lengths[row].copy(), part.copy()
        at = rng.integers(0, max(len(new), 1), 4)[: len(new)]
        new[at] = rng.permutation(new[at]) if row % 2 else rng.choice(before.words, len(at))
        cut = int(row % 3 == 0 and sizes[-1] > 2)
        sizes[-1] -= cut
        words.append(new[: len(new) - cut])
        lengths.append(sizes)
    return before, ForwardTokens(np.concatenate(words), np.array(lengths))


def test_scores_of_changes_are_those_of_both_versions(shelf: TestShelf) -> None:
    """Scores that a change cannot affect are not computed twice, and no affected score is missed, bit for bit."""
    scorer, ids = watch(shelf, *QUERIES), np.arange(1, 121)
    signals, every = shelf.get_signals(ids), np.ones(len(ids), np.bool_)
    before, after = change_pages(shelf, ids)
    plain = merge_scores(scorer.score(before, signals), scorer.score(after, signals), len(QUERIES))
    found = scorer.score_changes(before, after, signals, every)
    assert [column.tolist() for column in found] == [column.tolist() for column in plain]
    other = plain.before != plain.after
    assert 0 < other.sum() < len(other)
    some = scorer.score_changes(before, after, signals, ~every)
    left = some.before != some.after
    assert [column[left].tolist() for column in some] == [column[other].tolist() for column in plain]
    assert len(some.page) < len(plain.page), "queries that a change leaves alone are not scored"


def test_a_score_is_the_sum_of_its_features(shelf: TestShelf) -> None:
    """Search explains each score by its features; the measurement adds up the same features without storing them."""
    ids = np.arange(1, 61)
    forward, signals = shelf.forward(ids), shelf.get_signals(ids)
    for text in QUERIES:
        wanted = build_plan(parse_query(text, NOW_S), shelf.get_word_forms, ()).wanted
        slots = build_slots(wanted, shelf.df, len(shelf.finder))
        full = explain_texts(compute_features(forward, slots), signals, len(slots), np.zeros(len(ids)), None)
        slim = TextFeatures(find_hits(forward, slots), forward.lengths, np.array([[slot.idf for slot in slots]]))
        points = score_words(slim, signals.depth, len(slots)) + score_signals(signals, len(slots))
        assert points.tolist() == pytest.approx(full.scores.tolist(), abs=1e-12)


def test_the_first_ten_measured_are_the_first_ten_served(shelf: TestShelf) -> None:
    """Over all queries, at least 80% agree: the rest is due to looser matches and site diversity."""
    ids = np.arange(1, len(shelf.leaves) + 1)
    found = watch(shelf, *QUERIES).score(shelf.forward(ids), shelf.get_signals(ids))
    shared = served = 0
    for query, text in enumerate(QUERIES):
        rows = np.flatnonzero(found.query == query)
        first = ids[found.page[rows[np.argsort(-found.score[rows], kind="stable")]]][:10].tolist()
        shown = [result.id for result in Searcher(shelf).search(SearchRequest(text), NOW_S).results][:10]
        shared, served = shared + len({*first} & {*shown}), served + len(shown)
    assert shared >= 0.8 * served > 0


def test_words_are_distinguished_and_forms_count(shelf: TestShelf, tmp_path: Path) -> None:
    """A word by number finds itself; with its spelling, its other forms too, which count less."""
    page = TestShelf([Leaf("https://a.test/", body="tides"), Leaf("https://a.test/b", body="tide")], tmp_path)
    ids, numbers = np.array([1, 2]), np.array([hash_word("tide")], np.uint32)
    plain, spelled = (
        AnswerScorer(build_watched([(one, 1.0) for one in read_words(numbers, words, shelf.get_word_forms)]))
        for words in ({}, {hash_word("tide"): "tide"})
    )
    assert plain.score(page.forward(ids), page.get_signals(ids)).page.tolist() == [1]
    found = spelled.score(page.forward(ids), page.get_signals(ids))
    assert found.page.tolist() == [0, 1]
    assert found.score[0] < found.score[1]


def test_empty_queries_and_pages_are_valid(shelf: TestShelf) -> None:
    """No queries, no pages; and an invalid or too long query is not watched."""
    none = np.zeros(0, np.int64)
    assert len(watch(shelf).score(shelf.forward(np.array([1])), shelf.get_signals(np.array([1]))).page) == 0
    assert len(watch(shelf, "tide").score(shelf.forward(none), shelf.get_signals(none)).page) == 0
    assert read_query("", shelf, NOW_S) is None
    assert read_query(" ".join(["moon"] * 20), shelf, NOW_S) is None
