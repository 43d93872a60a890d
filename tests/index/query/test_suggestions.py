"""Suggestions while typing: words and titles with the typed prefix, the best first, for any input."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.index.query.spelling import build_spell_checker
from vedette.index.query.suggestions import Suggestions, build_suggestions
from vedette.index.query.vocabulary import build_vocabulary
from vedette.text import split_words

PHRASES = [
    ("Kafka Streams", 5.0),
    ("Apache Kafka", 9.0),
    ("Kafka Connect: getting started", 3.0),
    ("KAFKA  STREAMS!", 1.0),
    ("Streams in Java", 2.0),
    ("Café Müller - Öffnungszeiten", 1.0),
    ("Ubuntu 24.04 LTS", 2.0),
    ("日本語の検索", 1.0),
    ("Strings and string builders", 1.0),
    ("", 50.0),
    ("!!!", 50.0),
]
PAGES = {"kafka": 90, "kafkaesque": 3, "streams": 40, "string": 30, "the": 900, "this": 800, "theatre": 5}


def suggestions(phrases: Sequence[tuple[str, float]] = PHRASES) -> Suggestions:
    """Return suggestions over a small index."""
    return build_suggestions(phrases, build_vocabulary(PAGES.items(), lambda _, words: list(words), []))


@pytest.mark.parametrize(
    ("typed", "first"),
    [
        ("kafka str", ("Kafka Streams",)),
        ("KAFKA, STR", ("Kafka Streams",)),
        ("str kaf", ("str kafka",)),
        ("streams kaf", ("Kafka Streams",)),
        ("cafe mul", ("Café Müller - Öffnungszeiten",)),
        ("Öff", ("Café Müller - Öffnungszeiten",)),
        ("ubuntu 24 0", ("Ubuntu 24.04 LTS",)),
        ("日本", ("日本語の検索",)),
        ("検索", ("日本語の検索",)),
        ("started kafka", ("Kafka Connect: getting started",)),
    ],
)
def test_titles_with_what_is_typed(typed: str, first: tuple[str, ...]) -> None:
    """A title matches if it has all words, the last one as a prefix, in any order; case and accents are ignored."""
    assert suggestions().complete(typed, 1) == first


def test_last_word_is_completed() -> None:
    """Frequent words with this prefix come before titles; stop words are not suggested."""
    found = suggestions().complete("ka", 5)
    assert found[:2] == ("kafka", "kafkaesque")
    assert found[2:] == ("Kafka Streams", "Kafka Connect: getting started", "Apache Kafka")
    assert suggestions().complete("th", 5) == ("theatre",)


def test_finished_word_is_not_completed() -> None:
    """After a space, the last word is complete: titles with it are suggested, longer words are not."""
    assert "kafkaesque" in suggestions().complete("kafka", 8)
    found = suggestions().complete("kafka ", 8)
    assert found == ("Kafka Streams", "Kafka Connect: getting started", "Apache Kafka")


def test_a_word_begun_is_another_word() -> None:
    """A match for one typed word does not count for the next one with the same prefix."""
    found = suggestions([("Strings", 9.0), ("Strings and string builders", 1.0)]).complete("strings str", 5)
    assert found[0] == "Strings and string builders"
    assert "Strings" not in found


def test_heavier_and_shorter_first() -> None:
    """Of equally long titles, the heavier one comes first; of equally heavy ones, the shorter."""
    phrases = [("zebra one", 1.0), ("zebra two", 3.0), ("zebra with many more words", 3.0)]
    assert suggestions(phrases).complete("zebra", 5) == ("zebra two", "zebra with many more words", "zebra one")


def test_one_spelling_of_each() -> None:
    """Titles that read the same are merged, with their weights added, in the heaviest spelling."""
    phrases = [("Zebra  crossing", 1.0), ("zebra CROSSING", 2.5), ("Zebra crossing?", 2.0), ("Zebra farming!", 3.0)]
    assert suggestions(phrases).complete("zeb", 5) == ("zebra CROSSING", "Zebra farming!")


def test_what_is_there_is_not_offered() -> None:
    """A suggestion contains something that was not typed yet."""
    assert "Kafka Streams" not in suggestions().complete("kafka streams", 5)


def test_long_titles_are_cut() -> None:
    """A long title is cut between words."""
    long = "How to set up a cluster of zebras in seven easy steps without regretting it"
    assert suggestions([(long, 1.0)]).complete("how t", 1) == ("How to set up a cluster of zebras",)
    assert suggestions([("x" * 81, 1.0)]).complete("x", 5) == ()


def test_invisible_characters_are_not_offered() -> None:
    """Control characters and marks for text direction become spaces."""
    assert suggestions([("zebra\x00\u202ecrossing\n", 1.0)]).complete("zeb", 5) == ("zebra crossing",)


TYPED = st.one_of(
    st.text(st.characters(exclude_categories=())),
    st.lists(st.sampled_from(["kafka", "kaf", "streams", "str", "in", "ö", "日", "24", "the", "!", ""])).map(" ".join),
)


@given(TYPED, st.integers(-1, 9))
def test_anything_typed(typed: str, most: int) -> None:
    """For any input, at most this many suggestions are made, all short and distinct."""
    found = suggestions().complete(typed, most)
    assert len(found) <= max(most, 0)
    assert all(len(each) <= 80 and len(each.split()) <= 8 for each in found)
    forms = [" ".join(split_words(each)) for each in (typed, *found)]
    assert len(set(forms)) == len(forms)


TITLES = st.lists(
    st.lists(st.sampled_from(split_words("red reed read deed dead")), min_size=1, max_size=6), max_size=12
)


@given(TITLES, st.lists(st.sampled_from(split_words("red reed r re de dead")), min_size=1, max_size=3, unique=True))
def test_all_titles_that_fit(titles: list[list[str]], typed: list[str]) -> None:
    """Slices and tables find the same as scanning all titles, unless a word is a repeated prefix."""
    whole, begun = typed[:-1], typed[-1]
    if any(word.startswith(begun) for word in whole):
        return
    phrases = {" ".join(title) for title in titles}
    fitting = {
        phrase
        for phrase in phrases - {" ".join(typed)}
        if set(whole) <= set(phrase.split()) and any(word.startswith(begun) for word in phrase.split())
    }
    empty = build_vocabulary([], lambda _, words: list(words), [])
    found = build_suggestions([(phrase, 1.0) for phrase in sorted(phrases)], empty).complete(" ".join(typed), 20)
    assert set(found) == fitting


def test_nothing_to_suggest() -> None:
    """Without titles and words, there are no suggestions."""
    empty = build_suggestions([], build_vocabulary([], lambda _, words: list(words), []))
    assert empty.complete("anything", 5) == ()


@pytest.mark.parametrize("typed", ["s" * 100_000, "s " * 100_000, "\ud800", "\x00", "é" * 9_999])
def test_long_and_odd_typing(typed: str) -> None:
    """Very long or broken text is no error."""
    assert isinstance(suggestions().complete(typed, 8), tuple)


@pytest.mark.parametrize(
    ("typed", "first"),
    [
        ("kafak str", "Kafka Streams"),
        ("kafka sterams", "kafka streams"),
        ("kafka sttre", "Kafka Streams"),
        ("kavka", "kafka"),
        ("strea kafk", "strea kafka"),
    ],
)
def test_typos_in_any_word_are_corrected(typed: str, first: str) -> None:
    """Whole words by the spell checker, the incomplete last one by its beginning; words that exist are kept."""
    found = suggestions()
    assert found.complete(typed, spelling=build_spell_checker(found.vocabulary))[0] == first
