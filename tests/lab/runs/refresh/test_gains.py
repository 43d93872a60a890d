"""Gains of fetches during a run: equal to the closed form page by page, and views equal to the lists."""

import numpy as np
import pytest
from bench.peers.quality_change import delta_q_a
from hypothesis import given
from hypothesis import strategies as st
from tests.lab.histories import Life, small_history

from vedette.attention import visibility
from vedette.lab.quality.corpus import ShingleDistance, load_corpus
from vedette.lab.quality.query_files import build_queries
from vedette.lab.quality.scoring import BooleanScoring, build_tfidf
from vedette.lab.quality.workload import Workload, build_workload, compute_slot_scores, rank_results
from vedette.lab.runs.refresh.gains import GainTracker
from vedette.lab.worlds.history import History
from vedette.policy import rng_for

WORDS = tuple(f"word{at}" for at in range(6))
QUERIES = build_queries([("word0", 4.0), ("word1 word2", 3.0), ("word3", 2.0), ("word4", 1.0), ("word0 word5", 1.0)])


def a_web(seed: int, pages: int, versions: int) -> History:
    """Return pages with a few words, and other words in each version."""
    rng = rng_for(seed, "tests/gains")
    lives = []
    for _ in range(pages):
        texts = [" ".join(rng.choice(WORDS, int(rng.integers(0, 7)))) for _ in range(versions)]
        lives.append(Life([(10.0 * at, text) for at, text in enumerate(texts)]))
    return small_history(lives)


def build_scores(history: History, *, ties: bool) -> Workload:
    """Return scores that are all equal, or those of texts."""
    corpus = load_corpus(history)
    scoring = BooleanScoring() if ties else build_tfidf(corpus, np.arange(len(history.version_page)))
    return build_workload(corpus, QUERIES, scoring)


@given(
    seed=st.integers(0, 2**32),
    pages=st.integers(1, 6),
    batches=st.lists(st.integers(1, 5), min_size=1, max_size=4),
)
def test_each_fetch_of_each_batch_brings_what_the_closed_form_says(seed: int, pages: int, batches: list[int]) -> None:
    """For any order of fetches, with deaths and ties, the gain is that of ``delta_q_a`` with all earlier copies."""
    history, rng = a_web(seed, pages, 3), rng_for(seed, "tests/gains/fetches")
    workload = build_scores(history, ties=bool(rng.integers(2)))
    copies = rng.integers(-1, 3, pages)
    copies = np.where(copies < 0, -1, copies + 3 * np.arange(pages))
    gains = GainTracker(history, workload)
    gains.add_copies(np.arange(pages), copies)
    for size in batches:
        taken = rng.permutation(pages)[:size]
        new = rng.integers(-1, 3, len(taken))
        after = np.where(new < 0, -1, new + 3 * taken)
        results = gains.replace_copies(taken, copies[taken], after)
        expected = []
        for page, version in zip(taken.tolist(), after.tolist(), strict=True):
            expected.append(delta_q_a(page, version, copies, workload))
            copies[page] = version
        assert results == pytest.approx(np.array(expected), abs=1e-9)
        assert gains.compute_views() == pytest.approx(viewed(workload, copies), abs=1e-12)


def viewed(workload: Workload, copies: np.ndarray) -> np.ndarray:
    """Return the share of each page in all viewed results, from whole lists."""
    lists = rank_results(workload, compute_slot_scores(workload, copies), np.arange(workload.queries))
    seen = np.zeros(len(copies))
    np.add.at(seen, workload.slot_page[lists.slot], workload.frequency[lists.row] * visibility(lists.rank))
    return seen / seen.sum() if seen.any() else seen


def test_a_copy_that_nobody_told_of_is_put_right_first() -> None:
    """Without adding first copies, the gains are the same: each fetch includes the previous version."""
    history = a_web(5, 4, 2)
    workload = build_scores(history, ties=False)
    first = np.arange(4) * 2
    report, untold = GainTracker(history, workload), GainTracker(history, workload)
    report.add_copies(np.arange(4), first)
    untold.replace_copies(np.arange(4), first, first)
    assert (
        untold.replace_copies(np.arange(4), first, first + 1).tolist()
        == report.replace_copies(np.arange(4), first, first + 1).tolist()
    )


def test_what_says_the_same_brings_nothing() -> None:
    """A new version with the words of the old one has the same scores and a gain of exactly zero."""
    history = small_history([Life([(0, "word0 tide"), (1, "tide word0")]), Life([(0, "word0")])])
    gains = GainTracker(history, build_scores(history, ties=False))
    gains.add_copies(np.arange(2), np.array([0, 2]))
    assert gains.replace_copies(np.array([0]), np.array([0]), np.array([1])).tolist() == [0.0]


def test_shares_of_shingles_that_differ() -> None:
    """If the last four of eight words are replaced, the first of five shingles stays, so eight of nine differ."""
    begin, end = "one two three four", "five six seven eight"
    lives = [Life([(0, f"{begin} {end}"), (1, f"{begin} nine ten eleven twelve"), (2, f"{begin.upper()} {end}!")])]
    shares = ShingleDistance(small_history(lives))
    report = shares.compute(np.array([0, 0, 0, 0, -1]), np.array([0, 1, 2, -1, 1]))
    assert report == pytest.approx([0.0, 8 / 9, 0.0, 1.0, 1.0])
