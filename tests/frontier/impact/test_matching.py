"""Which queries match unseen URLs, compared with the plain definition."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.frontier.impact.matching import MAX_NGRAM, Matcher, Pairs, QuerySet, WordForms
from vedette.frontier.impact.url_features import hash_folders, tokenize_texts
from vedette.text import hash_words, split_words

WORDS = st.lists(st.sampled_from(["tide", "moon", "ferry", "rope", "gull"]), max_size=6).map(" ".join)


def wanted_of(queries: list[str]) -> QuerySet:
    """Return queries that are each searched once; rarer first letters make words rarer."""
    words = [split_words(query) for query in queries]
    start = np.append(0, np.cumsum([len(each) for each in words], dtype=np.int64))
    flat = [word for each in words for word in each]
    telling = np.array([1.0 + "tmfrg".index(word[0]) for word in flat])
    return QuerySet(hash_words(" ".join(flat).encode()), start, np.ones(len(queries)), telling)


def grams(text: str) -> set[tuple[str, ...]]:
    """Return all runs of one to three words."""
    words = split_words(text)
    return {tuple(words[at : at + n]) for n in range(1, MAX_NGRAM + 1) for at in range(len(words) - n + 1)}


@given(st.lists(WORDS, max_size=5), st.lists(st.tuples(WORDS, st.lists(WORDS, max_size=3)), max_size=4))
def test_shares_are_those_of_the_definition(queries: list[str], pages: list[tuple[str, list[str]]]) -> None:
    """A candidate's share is that of the query's n-grams found in its URL and links together."""
    urls = ["x://" + url.replace(" ", "-") for url, _ in pages]
    strings = tokenize_texts(urls, [(row, text) for row, (_, texts) in enumerate(pages) for text in texts])
    wanted = wanted_of(queries)
    pairs = Matcher(wanted).match_pairs(strings)
    found = dict(zip(zip(pairs.row.tolist(), pairs.query.tolist(), strict=True), pairs.share.tolist(), strict=True))
    assert len(found) == len(pairs.row)
    for row, (url, texts) in enumerate(pages):
        having = grams(url).union(*map(grams, texts))
        for query, text in enumerate(queries):
            asked = grams(text)
            share = len(asked & having) / len(asked) if asked else 0.0
            if (row, query) in found:
                assert found[row, query] == share
            else:
                assert share < 1.0


FORMS = {"tide": "tides", "gull": "gulls"}


def with_forms(queries: list[str]) -> QuerySet:
    """Return the same queries, where two words have a plural that counts for less."""
    plain = wanted_of(queries)
    flat = [word for query in queries for word in split_words(query)]
    place = [at for at, word in enumerate(flat) if word in FORMS]
    words = hash_words(" ".join(FORMS[flat[at]] for at in place).encode())
    return replace(plain, forms=WordForms(words, np.array(place, np.int64), np.full(len(place), 0.8)))


@given(st.lists(WORDS, max_size=5), st.lists(st.tuples(WORDS, st.lists(WORDS, max_size=3)), max_size=4))
def test_other_forms_match_as_the_words_do(queries: list[str], pages: list[tuple[str, list[str]]]) -> None:
    """Strings with plurals match what the singular forms match, and no other words."""

    def match(wanted: QuerySet, forms: dict[str, str]) -> Pairs:
        def say(text: str) -> str:
            return " ".join(forms.get(word, word) for word in text.split())

        urls = ["x://" + say(url).replace(" ", "-") for url, _ in pages]
        names = [(row, say(text)) for row, (_, texts) in enumerate(pages) for text in texts]
        return Matcher(wanted).match_pairs(tokenize_texts(urls, names))

    plain, plural = match(wanted_of(queries), {}), match(with_forms(queries), FORMS)
    order = np.lexsort((plural.query, plural.row)), np.lexsort((plain.query, plain.row))
    for column in ("row", "query", "share", "longest_ngram", "links"):
        assert getattr(plural, column)[order[0]].tolist() == getattr(plain, column)[order[1]].tolist()
    assert np.all(plural.in_url[order[0]] <= plain.in_url[order[1]])
    assert np.all(plural.in_anchors[order[0]] <= plain.in_anchors[order[1]])


def test_a_form_says_less_than_the_word_and_a_chosen_query_keeps_its_forms() -> None:
    """A plural counts with its weight, no matter which queries were selected before."""
    wanted = with_forms(["moon", "tide rope"]).select(np.array([1]))
    pairs = Matcher(wanted).match_pairs(tokenize_texts(["x://tides-rope", "x://tide-rope"], []))
    assert pairs.share.tolist() == [1.0, 1.0]
    assert pairs.in_url.tolist() == pytest.approx([(0.8 * 1 + 4) / 5, 1.0])


def test_a_run_across_two_strings_is_none() -> None:
    """Words at the end of one link and the start of the next are not adjacent."""
    pairs = Matcher(wanted_of(["low tide"[4:] + " moon"])).match_pairs(
        tokenize_texts(["x://a"], [(0, "tide"), (0, "moon")])
    )
    assert pairs.longest_ngram.tolist() == [1]
    assert pairs.share.tolist() == [2 / 3]


def test_where_words_stand_is_told_apart() -> None:
    """The URL has the first word, two links have the second."""
    strings = tokenize_texts(["x://tide"], [(0, "the moon"), (0, "moon rises")])
    pairs = Matcher(wanted_of(["tide moon"])).match_pairs(strings)
    assert pairs.in_url.tolist() == [1 / 3]
    assert pairs.in_anchors.tolist() == [2 / 3]
    assert pairs.links.tolist() == [2]


def test_what_nobody_can_read_does_no_harm() -> None:
    """Broken URLs, endless words and empty input each get a row, without an error."""
    urls = ["", "://", "x://" + "a-" * 10_000, "x://%ff%00", "x://\ud800"]
    strings = tokenize_texts(urls, [(0, "y " * 10_000), (1, "")])
    assert len(strings.words) < 100
    assert len(hash_folders(urls)[0]) == len(urls)
    assert len(Matcher(wanted_of([])).match_pairs(strings).row) == 0
    assert len(Matcher(wanted_of(["", "tide"])).match_pairs(tokenize_texts([], [])).row) == 0
