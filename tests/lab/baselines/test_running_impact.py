"""What a crawler keeps while it runs: worth link by link, and what is remembered of links."""

from dataclasses import replace

import numpy as np
import pytest
from tests.frontier.stumps import stump

from vedette.frontier.impact.estimator import ImpactSettings, create_model
from vedette.frontier.impact.matching import QuerySet
from vedette.frontier.impact.query_need import Improvability
from vedette.frontier.impact.sketches import Sketches
from vedette.frontier.impact.url_features import DescribedUrls, TrainingPages, hash_folders, tokenize_texts
from vedette.lab.baselines.running_impact import MAX_HITS, ImpactTracker, select_needy_queries
from vedette.policy import Floats, Ints, rng_for
from vedette.text import hash_words

CRAWLED = 100
WANTED = QuerySet(hash_words(b"low tide moon"), np.array([0, 2, 3]), np.array([5.0, 1.0]), np.ones(3))


def described(urls: list[str], anchors: list[tuple[int, str]]) -> DescribedUrls:
    """URLs with the words of links to them, and nothing else to tell them apart."""
    nothing = np.ones(len(urls), np.int64)
    folder, branch = hash_folders(urls)
    return DescribedUrls(nothing, nothing, nothing, np.zeros(len(urls)), folder, branch, tokenize_texts(urls, anchors))


def brought() -> TrainingPages:
    """Every other crawled page is called a page on low tide, says so, and brought much."""
    urls = [f"https://a.test/x{page}" for page in range(CRAWLED)]
    good = np.arange(CRAWLED) % 4 < 2
    batch = described(urls, [(page, "low tide") for page in np.flatnonzero(good).tolist()])
    columns = {name: getattr(batch, name) for name in DescribedUrls.__dataclass_fields__}
    rows: Ints = np.flatnonzero(good)
    scores: Floats = rng_for(1, "tests/standing").random(len(rows)) + 1.0
    return TrainingPages(
        **columns,
        page=np.arange(CRAWLED),
        gain=np.where(good, 10.0, 0.0),
        found_row=rows,
        found_query=np.zeros(len(rows), np.int64),
        found_score=scores,
    )


@pytest.fixture
def standing() -> ImpactTracker:
    """One that has learned."""
    learned = ImpactTracker(ImpactSettings(WANTED, stump))
    learned.learn(brought())
    return learned


def test_a_link_with_words_that_people_ask_for_raises_the_worth(standing: ImpactTracker) -> None:
    """Two new URLs, one called what good pages were called: it is worth about what these brought, and more."""
    urls = ["https://a.test/new1", "https://a.test/new2"]
    worth = standing.estimate_gain(np.array([501, 502]), described(urls, [(0, "low tide"), (1, "about us")]))
    assert worth[0] > worth[1]
    assert worth.min() >= 0.0
    assert worth.max() <= 10.0


def test_what_an_earlier_link_said_is_remembered(standing: ImpactTracker) -> None:
    """The second link says another part: together they match, and the worth by queries is as if said at once."""
    url = ["https://a.test/new"]
    standing.estimate_gain(np.array([7]), described(url, [(0, "low tide")]))
    matcher = standing.model.matcher
    assert matcher is not None
    later = standing._load_hits(np.array([7]))
    assert matcher.build_pairs(later).share.tolist() == [1.0]
    assert len(standing._load_hits(np.array([8])).ngram) == 0


def test_a_stranger_cannot_fill_the_memory(standing: ImpactTracker) -> None:
    """However often a link is repeated, what is kept of a URL is bounded."""
    for _ in range(MAX_HITS):
        standing.estimate_gain(np.array([7]), described(["https://a.test/new"], [(0, "low tide moon")] * 3))
    assert len(standing._hits[7]) <= MAX_HITS
    assert standing.size_bytes < 1_000_000


def test_before_anything_was_fetched_all_are_worth_the_same() -> None:
    """Nothing is known, and nothing fails."""
    fresh = ImpactTracker(ImpactSettings(WANTED, stump))
    assert np.ptp(fresh.estimate_gain(np.arange(2), described(["x://a", "x://b"], [(0, "low tide")]))) == 0
    assert create_model(None).estimate_gain(described([], [])).tolist() == []


def test_learning_from_a_handful_falls_back_on_importance() -> None:
    """With too few pages for trees there is an answer for each URL all the same, and it is finite."""
    few = ImpactTracker(ImpactSettings(WANTED, stump))
    one = brought()
    columns = {name: getattr(one, name) for name in TrainingPages.__dataclass_fields__ if not name.startswith("found_")}
    urls = [f"https://a.test/x{page}" for page in range(3)]
    small = {name: value[:3] for name, value in columns.items() if name != "texts"}
    nothing = np.zeros(0, np.int64)
    told = described(urls, [])
    few.learn(
        TrainingPages(
            **{**small, "texts": told.texts, "found": np.arange(3)},
            found_row=nothing,
            found_query=nothing,
            found_score=np.zeros(0),
        )
    )
    assert np.isfinite(few.estimate_gain(np.arange(3), told)).all()


def test_the_needy_are_asked_often_and_answered_badly() -> None:
    """Of two queries that are asked as often, the one with the worse results is kept."""
    sketches = Sketches.empty(2).put(np.zeros(10, np.int64), np.arange(10), np.full(10, 0.9))
    rates = Improvability().add_cycle(np.array([0.1, 0.9]), np.array([5.0, 1.0]))
    equal = replace(WANTED, frequency=np.ones(2))
    chosen, few = select_needy_queries(equal, sketches, rates, 0.5)
    assert chosen.tolist() == [1]
    assert few.words.tolist() == WANTED.words[2:].tolist()
