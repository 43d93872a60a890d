"""Page vectors learned from words: the space is correct, and pages on one topic are close together."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.index.query.retrieval import ForwardTokens
from vedette.index.semantic import latent_space
from vedette.index.semantic.latent_space import learn_space
from vedette.policy import Ints, rng_for

TOPICS = 4


def forward(pages: list[list[int]]) -> ForwardTokens:
    """Return pages with these words in their bodies."""
    words = np.array([word for page in pages for word in page], np.uint32)
    return ForwardTokens(words, np.array([[0, 0, 0, 0, len(page)] for page in pages], np.int64).reshape(-1, 5))


def write_pages(seed: int, pages: int = 80) -> tuple[ForwardTokens, Ints]:
    """Return pages on a few topics, each with its own words, and the topic of each page."""
    rng = rng_for(seed, "tests/latent_space")
    topics = rng.integers(TOPICS, size=pages)
    return forward([(100 * topic + rng.integers(1, 40, size=12)).tolist() for topic in topics.tolist()]), topics


def test_pages_of_a_topic_are_close_even_without_a_common_word() -> None:
    """Words that occur together count as related, so pages on a topic are close even without common words."""
    pages, topics = write_pages(1)
    space = learn_space(pages, rng_for(1, "learn"), TOPICS)
    assert space is not None
    vectors = space.project(pages)
    cosines, is_same = vectors @ vectors.T, topics[:, None] == topics
    words = [set(page) for page in np.split(pages.words, 12 * np.arange(1, len(topics)))]
    strangers = [(i, j) for i in range(len(topics)) for j in range(i) if is_same[i, j] and not words[i] & words[j]]
    assert strangers
    assert min(cosines[pair] for pair in strangers) > cosines[~is_same].max()


def test_the_space_is_that_of_the_exact_decomposition(monkeypatch: pytest.MonkeyPatch) -> None:
    """The randomized method spans the leading singular vectors, and small chunks give the same result as one."""
    pages, _ = write_pages(2)
    space = learn_space(pages, rng_for(2, "learn"), TOPICS)
    monkeypatch.setattr(latent_space, "CHUNK", 64)
    again = learn_space(pages, rng_for(2, "learn"), TOPICS)
    assert space is not None
    assert again is not None
    assert np.allclose(space.axes, again.axes, atol=1e-5)
    weights = latent_space._weigh(latent_space._count(pages), space.words, space.weights)
    dense = np.zeros((weights.rows, len(space.words)))
    dense[weights.row, weights.column] = weights.value
    exact = np.linalg.svd(dense, full_matrices=False)[2][:TOPICS].T
    assert np.linalg.svd(exact.T @ space.axes)[1].min() > 0.998


@given(st.lists(st.lists(st.integers(1, 9), max_size=6), max_size=8))
def test_any_pages_have_vectors_of_length_one_or_none(pages: list[list[int]]) -> None:
    """For any pages, there are no vectors at all, or one per page, of length one or zero and always finite."""
    space = learn_space(forward(pages), rng_for(3, "learn"), 3)
    if space is None:
        return
    lengths = np.linalg.norm(space.project(forward(pages)), axis=1)
    assert np.all(np.isclose(lengths, 1, atol=1e-4) | np.isclose(lengths, 0))
