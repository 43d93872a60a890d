"""Stems: exactly one for each word."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.adapters.index_store.stemming import LANGUAGES, stem

FORMS = {
    "ar": ("كتاب", "الكتاب"),
    "da": ("sprog", "sproget"),
    "de": ("zeitung", "zeitungen"),
    "el": ("δρομος", "δρομου"),
    "en": ("connection", "connections"),
    "es": ("libro", "libros"),
    "fi": ("talo", "talossa"),
    "fr": ("cheval", "chevals"),
    "hu": ("haz", "hazban"),
    "it": ("libro", "libri"),
    "nl": ("boek", "boeken"),
    "no": ("avis", "aviser"),
    "pt": ("livro", "livros"),
    "ro": ("carte", "carti"),
    "ru": ("книга", "книги"),
    "sv": ("tidning", "tidningar"),
    "ta": ("வீடு", "வீடுகள்"),
    "tr": ("kitap", "kitaplar"),
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_forms_share_a_stem(language: str) -> None:
    """In each language, two forms of a word have the same stem."""
    first, second = stem(language, FORMS[language])
    assert first == second


def test_each_language_is_tried() -> None:
    """Every language has an example, so that a misspelled algorithm name would be noticed."""
    assert FORMS.keys() == LANGUAGES.keys()


def test_unknown_languages_leave_words_alone() -> None:
    """An unsupported language stems nothing, and fails nothing."""
    words = ["houses", "running"]
    assert [stem(language, words) for language in ("ja", "", "english", "EN")] == [words] * 4


@given(st.sampled_from(sorted(LANGUAGES)), st.lists(st.text(st.characters(exclude_categories=()), max_size=12)))
def test_one_stem_for_each_word(language: str, words: list[str]) -> None:
    """Words have the same stems together as alone: no word is lost, split or moved."""
    assert stem(language, words) == [stem(language, [word])[0] for word in words]


@pytest.mark.parametrize("odd", ["", " ", "a b", "\t", "x\ny", "\ud800", "\x00", "houses " * 3])
def test_odd_words_do_not_disturb_others(odd: str) -> None:
    """An empty word, spaces within a word or half a character don't affect the neighbors."""
    stems = stem("en", ["houses", odd, "running", ""])
    assert (stems[0], stems[2], stems[3]) == (stem("en", ["houses"])[0], stem("en", ["running"])[0], "")


def test_other_whitespace_is_part_of_a_word() -> None:
    """Whether or not the tokenizer splits there, a word with an unusual space has one stem."""
    assert len(stem("en", ["no\u00a0break", "wide\u3000space", "line\u2028end", "unit\x1fend"])) == 4
