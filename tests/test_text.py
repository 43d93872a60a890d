"""Words: one form for everything that reads the same, numbers for words, for any text."""

# ruff: noqa: RUF001 - look-alike letters are tested here
import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.text import (
    compose,
    fold_character,
    hash_word,
    hash_words,
    locate_words,
    normalize_words,
    scramble,
    split_words,
)

ANYTHING = st.text(st.characters(exclude_categories=()))
ODD = (
    "aéßæǅİ\u0131ŉΐςЁ々かが\u3099ｶﾞﬁक़ड़ि\u093c한각\u1100\u1161\u11a8אּ\u05bcثً"
    "\u0301\u0323\u0345\u00ad\u200d\ufe0f²₂Ⅳ １Ａ+#cf.nNeEtT'ʼ-"
)
TRICKY = st.text(st.sampled_from(ODD) | st.characters(exclude_categories=()))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ""),
        (" \t\n--- % ", ""),
        ("Don't PANIC: 42", "don t panic 42"),
        ("Python 3.9.0rc1", "python 3 9 0rc1"),
        ("snake_case e-mail", "snake case e mail"),
        ("co\u00adop\u200der\ufe0fate", "cooperate"),
        ("Café Müller, Łódź, Ångström, İzmir", "cafe muller lodz angstrom izmir"),
        ("Straße STRASSE œuvre Ærø þing ﬁne ǆ", "strasse strasse oeuvre aero thing fine dz"),
        ("Ὀδυσσεύς ὈΔΥΣΣΕΎΣ ᾳ", "οδυσσευσ οδυσσευσ α"),
        ("Ёлка и йод", "елка и иод"),
        ("ＡＢＣ１２ ｶﾞｽ", "abc12 ガ ス"),
        ("日本語 text 東京tower", "日 本 語 text 東 京 tower"),
        ("がか", "が か"),
        ("한국어", "한 국 어"),
        ("ภาษา", "ภ า ษ า"),
        ("हिन्दी की", "हिन्दी की"),
        ("CO₂, note¹, Ⅳ, 1\ufe0f\u20e3", "co2 note iv 1"),
        ("п'ять пʼять п’ять", "п ять п ять п ять"),
    ],
)
def test_what_is_a_word(text: str, words: str) -> None:
    """Letters and digits are folded, everything else separates words, and some characters are words of their own."""
    assert split_words(text) == words.split()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("C++", "cplusplus"),
        ("C/C++ and Visual-C++.", "c cplusplus and visual cplusplus"),
        ("c++17 使用C++编程 «C++»", "cplusplus 17 使 用 cplusplus 编 程 cplusplus"),
        ("(C#) F#!", "csharp fsharp"),
        (".NET .net, .Net 8", "dotnet dotnet dotnet 8"),
        ("a.net doc#x page.c#l10 c+++ abc++ .nets éc++ e\u0301c++", "a net doc x page c l10 c abc nets ec ec"),
        ("http://example.net/#c", "http example net c"),
    ],
)
def test_names_with_punctuation(text: str, words: str) -> None:
    """C++, C#, F# and .NET are words on their own, but not inside something else."""
    assert split_words(text) == words.split()


@given(TRICKY)
def test_form_is_its_own_form(text: str) -> None:
    """Folding twice is the same as folding once."""
    form = normalize_words(text)
    assert normalize_words(form.decode()) == form


@given(TRICKY)
def test_equivalent_spellings_are_one(text: str) -> None:
    """A text has the same words composed and decomposed."""
    forms = {normalize_words(unicodedata.normalize(how, text)) for how in ("NFC", "NFD")}
    assert forms == {normalize_words(text)}


@given(TRICKY, TRICKY)
def test_a_space_parts_texts(one: str, other: str) -> None:
    """The words of two concatenated texts are the words of the first and then of the second."""
    assert split_words(f"{one} {other}") == split_words(one) + split_words(other)


@given(TRICKY)
def test_words_are_spaced_once_and_short(text: str) -> None:
    """A form has single spaces, none at its ends, and no word longer than 64 bytes."""
    words = normalize_words(text).split(b" ") if normalize_words(text) else []
    assert all(0 < len(word) <= 64 for word in words)
    assert [word.decode() for word in words] == split_words(text)


@given(st.text(st.characters(max_codepoint=127)))
def test_short_way_is_the_long_way(text: str) -> None:
    """An ASCII text has the same words next to a letter of another alphabet."""
    assert split_words(f"{text} ж") == [*split_words(text), "ж"]


def test_every_character_is_settled() -> None:
    """Each character has a form that does not change when folded again, in every spelling."""
    for block in [*range(0, 0xD800, 128), *range(0xE000, 0x3_0000, 128)]:
        every = " ".join(chr(block + at) for at in range(128))
        form = normalize_words(every)
        assert normalize_words(form.decode()) == form
        assert normalize_words(unicodedata.normalize("NFC", every)) == form
        assert normalize_words(unicodedata.normalize("NFD", every)) == form


def test_marks_that_are_letters_stay() -> None:
    """Accents are only folded in alphabets where people leave them out; elsewhere, they make other words."""
    for one, other in (("が", "か"), ("ぱ", "は"), ("कि", "क"), ("เก่า", "เกา"), ("각", "가")):
        assert normalize_words(one) != normalize_words(other)


def test_reading_of_one_character() -> None:
    """A single character reads the same as inside a text, except for the spaces around it."""
    for character in "AéßЖ日ﬁ-\u00ad\u0301":
        assert normalize_words(f"x{fold_character(character)}y") == normalize_words(f"x{character}y")


@pytest.mark.parametrize("letter", ["a", "é", "ж", "ß", "हि", "\U00010400"])
def test_long_words_are_cut(letter: str) -> None:
    """A word ends after 64 bytes, between two characters; its neighbors are not affected."""
    first, long, last = normalize_words(f"before {letter * 100} behind").split(b" ")
    assert (first, last) == (b"before", b"behind")
    assert 60 < len(long) <= 64
    assert normalize_words(letter * 100).startswith(long.decode().encode())


@given(ANYTHING)
def test_no_text_fails(text: str) -> None:
    """Lone surrogates, control characters and unassigned characters are read like any others."""
    form = normalize_words(text)
    assert len(hash_words(form)) == len(form.split())


@pytest.mark.parametrize(
    "text", ["a", "é", "a ", "日", "ß", "क\u0323", "\u0301\u0323", "\u05b0\u0591\u0323", "c++", "ﷺ"]
)
def test_monotonous_texts(text: str) -> None:
    """Endless words, endless marks and endless repetition cause no problems."""
    form = normalize_words(text * 200_000)
    assert len(set(hash_words(form).tolist())) <= 1


@given(st.lists(TRICKY, max_size=30))
def test_equal_numbers_are_equal_words(texts: list[str]) -> None:
    """Each word has the same number everywhere, and no two words of a text share one."""
    form = normalize_words(" ".join(texts))
    words = form.decode().split()
    numbers = hash_words(form).tolist()
    assert numbers == [hash_word(word) for word in words]
    assert len(set(numbers)) == len(set(words)) == len(set(zip(words, numbers, strict=True)))


def test_numbers_are_spread() -> None:
    """Short and similar words are spread evenly over the range, and hardly any two share a number."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    form = " ".join(a + b + c + d for a in letters for b in letters for c in letters for d in "abcd").encode()
    numbers = hash_words(form)
    expected = len(numbers) / 16
    assert abs(np.bincount(numbers >> np.uint32(28), minlength=16) - expected).max() < 5 * expected**0.5
    assert abs(np.bincount(numbers & np.uint32(15), minlength=16) - expected).max() < 5 * expected**0.5
    assert len(np.unique(numbers)) >= len(numbers) - 10


def test_numbers_are_for_ever() -> None:
    """A number is the upper half of the word's mixed bytes, in every process and on every machine."""
    factor, value = 0x9E37_79B9_7F4A_7C15, int.from_bytes(b"vedette", "little")
    mixed = (value ^ value >> 32) * factor % 2**64
    assert hash_word("vedette") == int(scramble(np.array([mixed], np.uint64))[0]) >> 32


def test_no_word_has_no_number() -> None:
    """Without words there are no numbers; the number of nothing is 0."""
    assert len(hash_words(b"")) == 0
    assert hash_words(b"").dtype == np.uint32
    assert hash_word("") == 0


@given(TRICKY)
def test_words_are_located(text: str) -> None:
    """Each word of a text, cut out at its reported position, is that word; only separators are in between."""
    text = compose(text)
    found = locate_words(text)
    if found is None:
        assert any(len(split_words(character)) > 1 for character in text)
        return
    pieces = [text[start:end] for start, end in zip(found.starts.tolist(), found.ends.tolist(), strict=True)]
    assert [word for piece in pieces for word in split_words(piece)] == split_words(text)
    assert found.numbers.tolist() == hash_words(normalize_words(text)).tolist()


def test_names_are_located() -> None:
    """A name is located with its punctuation; next to a letter, it is not a name."""
    text = "C++, c#-like, .NET; \u2c62c++ doc#x"
    found = locate_words(text)
    assert found is not None
    places = dict(
        zip(found.numbers.tolist(), zip(found.starts.tolist(), found.ends.tolist(), strict=True), strict=True)
    )
    names = [text[slice(*places[hash_word(word)])] for word in ("cplusplus", "csharp", "dotnet", "doc")]
    assert names == ["C++", "c#", ".NET", "doc"]


@given(TRICKY)
def test_composing_changes_no_word(text: str) -> None:
    """Normalizing the spellings of a text does not change its words."""
    assert normalize_words(compose(text)) == normalize_words(text)
