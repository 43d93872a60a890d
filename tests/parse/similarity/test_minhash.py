"""Sketches: the estimate is the Jaccard index within its error, even for short texts."""

from collections.abc import Callable
from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.parse.similarity.minhash import (
    BANDS,
    BINS,
    Sketch,
    build_sketch,
    compute_bands,
    estimate_similarities,
    estimate_similarity,
    minhash,
)
from vedette.parse.similarity.shingles import WideHashes, shingle_text

SIGMAS = 5
LINEAR_PRIME = 2**61 - 1


def sketch(numbers: WideHashes) -> Sketch:
    """Return the sketch of something that has shingles."""
    made = build_sketch(numbers)
    assert made is not None
    return made


def likeness(one: str, other: str) -> float:
    """Return the similarity of two texts."""
    return estimate_similarity(sketch(shingle_text(one)).mins, sketch(shingle_text(other)).mins)


def pair(rng: np.random.Generator, union: int, common: int) -> tuple[WideHashes, WideHashes]:
    """Return two sets with this many members together and this many in common, the rest divided evenly."""
    members = rng.integers(0, 2**64, union, dtype=np.uint64)
    middle = common + (union - common) // 2
    return members[:middle], np.concatenate((members[:common], members[middle:]))


def linear(rng: np.random.Generator) -> Callable[[int], int]:
    """Return a random function of the kind used in the lecture."""
    a, b = (int(number) for number in rng.integers(1, LINEAR_PRIME, 2))
    return lambda x: (a * x + b) % LINEAR_PRIME


def test_example_of_the_lecture() -> None:
    """Sets {1,3,4} and {2,3,5} have the sketches (1,2) and (0,0): the estimate is 0, but the Jaccard index is 1/5."""
    functions = [lambda x: x % 5, lambda x: (2 * x + 1) % 5]
    one, other = minhash([1, 3, 4], functions), minhash([2, 3, 5], functions)
    assert (one, other) == ((1, 2), (0, 0))
    assert not any(a == b for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("union", [12, 60, 300, 3000])
@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 0.75, 0.9])
def test_estimate_is_the_jaccard_index(union: int, share: float) -> None:
    """Over many pairs, the mean estimate is J, with the spread of as many fair coins as there are bins."""
    rng, pairs = np.random.default_rng([union, int(100 * share)]), 200
    common = round(share * union)
    truth = common / union
    estimates = np.array(
        [estimate_similarity(*(sketch(side).mins for side in pair(rng, union, common))) for _ in range(pairs)]
    )
    # Where J = 0 chance agreements remain, one in 256 places, and estimates below 0 count as 0.
    sigma = sqrt(max(truth * (1 - truth), 1 / 256) / BINS)
    assert abs(estimates.mean() - truth) < SIGMAS * 1.5 * sigma / sqrt(pairs)
    assert abs(estimates - truth).max() < SIGMAS * 1.5 * sigma


def test_agrees_with_plain_minhash() -> None:
    """The error of the one-permutation sketch is no larger than with as many functions, except by chance."""
    rng = np.random.default_rng(11)
    functions = [linear(rng) for _ in range(BINS)]
    ours, plain = [], []
    for common in (60, 120, 180):
        for _ in range(10):
            one, other = pair(rng, 240, common)
            ours.append(estimate_similarity(sketch(one).mins, sketch(other).mins) - common / 240)
            mins = [minhash((int(value) for value in side), functions) for side in (one, other)]
            plain.append(sum(a == b for a, b in zip(*mins, strict=True)) / BINS - common / 240)
    assert np.std(ours) < 1.5 * np.std(plain)


def test_no_text_no_sketch() -> None:
    """An empty page is not similar to any page, not even another empty one."""
    assert build_sketch(shingle_text("2024-05-01 12:30")) is None


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=300))
def test_any_numbers_have_a_sketch(numbers: list[int]) -> None:
    """Order and repetition make no difference, and a set equals itself."""
    array = np.array(numbers, np.uint64)
    one, other = sketch(array), sketch(np.array(sorted(numbers * 2), np.uint64))
    assert (one.mins, one.bands.tolist()) == (other.mins, other.bands.tolist())
    assert estimate_similarity(one.mins, other.mins) == 1


def test_short_texts_are_told_apart() -> None:
    """Texts of one to ten words without a common word are never estimated to be even one third similar."""
    rng = np.random.default_rng(3)
    texts = []
    for number in range(400):
        words = ["".join(chr(97 + int(c)) for c in rng.integers(0, 26, 7)) for _ in range(number % 10 + 1)]
        texts.append(" ".join(words))
    rows = np.array([np.frombuffer(sketch(shingle_text(text)).mins, np.uint8) for text in texts])
    likenesses = np.array([estimate_similarities(row.tobytes(), rows) for row in rows])
    assert likenesses[~np.eye(len(texts), dtype=bool)].max() < 1 / 3
    assert (likenesses.diagonal() == 1).all()


def test_one_word_of_ten() -> None:
    """A ten-word text with its fifth word changed keeps 3 of 11 shingles, and does not count as the same text."""
    text = "a boat left the harbour before the storm had passed"
    assert abs(likeness(text, text.replace("harbour", "island")) - 3 / 11) < SIGMAS * sqrt(3 / 11 * 8 / 11 / BINS)


def test_dates_and_counters_make_no_difference() -> None:
    """A page that differs by a date, a clock and a counter is the same text."""
    page = "Updated 2024-05-{} at {}:30. There were {} visitors since the first day of this small page."
    assert likeness(page.format("01", 9, 12), page.format("17", 23, 13_442)) == 1


def test_moved_paragraphs_change_little() -> None:
    """Paragraphs in another order share all shingles except those across their borders."""
    rng = np.random.default_rng(8)
    names = ["".join(chr(97 + int(c)) for c in rng.integers(0, 26, 6)) for _ in range(500)]
    paragraphs = [" ".join(names[int(at)] for at in rng.integers(0, 500, 100)) for _ in range(12)]
    moved = [paragraphs[int(at)] for at in rng.permutation(12)]
    assert likeness("\n\n".join(paragraphs), "\n\n".join(moved)) > 0.85


def test_bands_are_read_off_a_kept_sketch() -> None:
    """The bands of a table of kept sketches are those that the pages had, so an index can be rebuilt."""
    rng = np.random.default_rng(5)
    made = [sketch(rng.integers(0, 2**64, 500, dtype=np.uint64)) for _ in range(4)]
    kept = np.array([np.frombuffer(one.mins, np.uint8) for one in made])
    assert compute_bands(kept).tolist() == [one.bands.tolist() for one in made]
    assert compute_bands(kept).shape == (4, BANDS)


@pytest.mark.parametrize(("share", "least", "most"), [(0.3, 0, 0.02), (0.7, 0.5, 0.75), (0.9, 0.98, 1)])
def test_candidates(share: float, least: float, most: float) -> None:
    """Pairs share a band about as often as the table of the documentation says."""
    rng, pairs = np.random.default_rng(int(share * 100)), 300
    hits = 0
    for _ in range(pairs):
        one, other = (sketch(side).bands for side in pair(rng, 1000, round(1000 * share)))
        hits += bool((one == other).any())
    assert least <= hits / pairs <= most


def test_one_against_many() -> None:
    """Comparing with many at once gives the same result as comparing with each."""
    rng = np.random.default_rng(6)
    one, other = pair(rng, 500, 300)
    sketches = [sketch(side).mins for side in (one, other, one[:100])]
    rows = np.array([np.frombuffer(mins, np.uint8) for mins in sketches])
    assert estimate_similarities(sketches[0], rows).tolist() == [
        estimate_similarity(sketches[0], mins) for mins in sketches
    ]
