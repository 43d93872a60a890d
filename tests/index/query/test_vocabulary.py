"""The words of an index: each is found with its pages, prefixes are ranges, and forms are distinguished from others."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.adapters.index_store.stemming import LANGUAGES, stem
from vedette.index.query.vocabulary import STOP_WORDS, Vocabulary, build_vocabulary, is_stop_word
from vedette.text import split_words

ENGLISH = split_words("""
    cache caches cached caching cash connect connected connecting connection connections house houses news new
    city cities kafka book books booking mp3s mp3 run runs cat cats 1990s
    """)


def unstemmed(_: str, words: Sequence[str]) -> list[str]:
    """Return a stemmer that finds no forms."""
    return list(words)


def vocabulary(*languages: str, words: Sequence[str] = ENGLISH) -> Vocabulary:
    """Return a vocabulary of these words; the first is the most frequent."""
    return build_vocabulary([(word, 10 * len(words) - place) for place, word in enumerate(words)], stem, languages)


WORDS = st.dictionaries(st.text(st.characters(exclude_categories=()), max_size=6), st.integers(1, 99), max_size=30)


@given(WORDS, st.text(max_size=6))
def test_words_are_found_with_their_pages(pages: dict[str, int], other: str) -> None:
    """Every word except the empty one has a number, and all other strings have none."""
    found = build_vocabulary(pages.items(), unstemmed, [])
    pages.pop("", None)
    assert {word: found.doc_freq(word) for word in pages} == pages
    assert found.doc_freq(other) == pages.get(other, 0)
    assert [found.get_word(row) for row in range(len(found))] == sorted(pages)


@given(WORDS, st.text(max_size=3))
def test_prefixes_are_ranges(pages: dict[str, int], prefix: str) -> None:
    """The words with a prefix form a range, in order."""
    found = build_vocabulary(pages.items(), unstemmed, [])
    begin = sorted(word for word in pages if word and word.startswith(prefix))
    assert [found.get_word(row) for row in found.find_prefix(prefix)] == begin


def test_word_told_twice_counts_once() -> None:
    """If two fields have a word, the larger number of pages counts."""
    assert build_vocabulary([("title", 3), ("title", 9), ("title", 4)], unstemmed, []).doc_freq("title") == 9


@pytest.mark.parametrize(
    ("word", "forms"),
    [
        ("cache", {"caches", "cached", "caching"}),
        ("houses", {"house"}),
        ("connection", {"connect", "connected", "connecting", "connections"}),
        ("cities", {"city"}),
        ("books", {"book", "booking"}),
        ("kafka", set()),
        ("news", set()),
    ],
)
def test_forms_in_english(word: str, forms: set[str]) -> None:
    """The forms of a word are other words with its stem, not words that only look similar."""
    assert {form for form, _ in vocabulary("en").find_forms(word)} == forms


def test_unknown_word_has_forms() -> None:
    """A word that is on no page still finds the forms that pages have."""
    assert [form for form, _ in vocabulary("en", words=["library", "libra"]).find_forms("libraries")] == ["library"]


def test_most_frequent_forms_come_first() -> None:
    """Forms are ordered by number of pages, and limited to the requested count."""
    forms = [form for form, _ in vocabulary("en").find_forms("connecting", 3)]
    assert forms == ["connect", "connected", "connection"]
    assert vocabulary("en").find_forms("connecting", 0) == ()


def test_weights_fall_with_distance() -> None:
    """A plural weighs most, other forms less, and all less than the word itself."""
    weights = dict(vocabulary("en").find_forms("connection"))
    assert weights["connections"] == 0.8
    assert 0 < weights["connecting"] < weights["connections"] < 1


def test_weights_fall_with_disagreement() -> None:
    """A form by one language of three weighs less than one by all."""
    one, all_ = vocabulary("en"), vocabulary("en", "fi", "hu")
    assert 0 < dict(all_.find_forms("cities"))["city"] < dict(one.find_forms("cities"))["city"]


def test_other_scripts_have_their_own_say() -> None:
    """Languages in other scripts don't vote on a Russian word."""
    assert vocabulary("en", "de", "ru", words=["книга", "книги"]).find_forms("книги") == (("книга", 0.8),)


@pytest.mark.parametrize(
    "word", ["mp3s", "1990s", "cats", "runs", "run", "", "x" * 500, "\ud800\ud800\ud800\ud800", "a b c d"]
)
def test_words_without_forms(word: str) -> None:
    """Numbers, very short words and non-words have no forms, without an error."""
    assert vocabulary("en", "de").find_forms(word) == ()


@given(st.text(max_size=12), st.lists(st.sampled_from([*sorted(LANGUAGES), "xx"]), max_size=5))
def test_forms_of_anything(word: str, languages: list[str]) -> None:
    """For any word and languages, forms are other words of the index with weights below 1."""
    found = vocabulary(*languages)
    for asked in (word, *ENGLISH):
        for form, weight in found.find_forms(asked):
            assert form in ENGLISH
            assert form != asked
            assert 0 < weight < 1


def test_empty_vocabulary() -> None:
    """An index without pages has no words, and queries to it don't fail."""
    empty = build_vocabulary([], stem, ["en"])
    assert (len(empty), empty.doc_freq("word"), empty.find_forms("words")) == (0, 0, ())
    assert list(empty.find_prefix("")) == []


@pytest.mark.parametrize("language", STOP_WORDS)
def test_stop_words_are_in_indexed_form(language: str) -> None:
    """Each stop word is one word as indexed, and the list is short enough to read."""
    words = STOP_WORDS[language]
    assert 20 <= len(words) <= 60
    assert all(split_words(word) == [word] and is_stop_word(word) for word in words)


def test_stop_words_are_common_words_only() -> None:
    """Accents make no difference once folded, and meaningful words are not stop words."""
    assert all(is_stop_word(word) for written in ("für", "á", "è", "på", "что", "ещё") for word in split_words(written))
    assert not any(is_stop_word(word) for word in ("kafka", "search", "", "haus", "2024"))
