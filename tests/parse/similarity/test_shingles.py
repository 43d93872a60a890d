"""Texts as numbers: equal words give equal numbers anywhere, and different words give different ones."""

import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.parse.similarity import shingles as module
from vedette.parse.similarity.shingles import (
    fingerprint_form,
    fingerprint_text,
    normal_form,
    shingle_form,
    shingle_text,
)
from vedette.text import FACTOR, SPACELESS

WORDS = st.lists(st.sampled_from(["sea", "land", "air", "fire", "été", "море", "a", "zz"]), max_size=40)


def plain_form(text: str) -> bytes:
    """Apply the documented rule, character by character."""
    words = "".join(_plain_reading(character) for character in text).split(" ")
    return " ".join(word for word in words if word).encode()


def _plain_reading(character: str) -> str:
    if 0x20000 <= ord(character) < 0x40000:
        return f" {character} "
    category = unicodedata.category(character)
    if category == "Cf" or "\ufe00" <= character <= "\ufe0f":
        return ""
    if category[0] not in "LM" or ord(character) >= 0x40000:
        return " "
    folded = character.casefold()
    letter = folded if len(folded) == 1 else character.lower()[0]
    apart = any(first <= ord(character) <= last for first, last in SPACELESS)
    return f" {letter} " if apart else letter


@given(st.text())
def test_normal_form_is_the_stated_rule(text: str) -> None:
    """Tables and masks give the same normal form as the rule applied one character at a time."""
    assert normal_form(text) == plain_form(text)


@given(st.text(st.characters(max_codepoint=127)))
def test_short_way_is_the_long_way(text: str) -> None:
    """An ASCII text has the same words next to a letter of another script."""
    assert normal_form(f"{text} é") == (normal_form(text) + " é".encode()).strip()


@given(st.text(st.characters(exclude_categories=())))
def test_no_text_fails(text: str) -> None:
    """Lone surrogates, control characters and unassigned characters are read like any others."""
    assert fingerprint_text(text) == fingerprint_form(normal_form(text))
    assert len(shingle_text(text)) <= max(1, len(text))


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("", ""),
        (" \t\n 12.5 % --- ", ""),
        ("On 2024-05-01 at 12:30, 1 024 of 3 were", "on at of were"),
        ("v2beta", "v beta"),
        ("co\u00adop\u00aderate", "cooperate"),
        ("日本語 text", "日 本 語 text"),
        ("text日本", "text 日 本"),
        ("हिन्दी", "हिन्दी"),
        ("Ὀδυσσεύς ὈΔΥΣΣΕΎΣ", "ὀδυσσεύσ ὀδυσσεύσ"),
    ],
)
def test_normal_forms(text: str, form: str) -> None:
    """Digits and marks separate words, soft hyphens disappear, and ideographs are single words."""
    assert normal_form(text).decode() == form


@given(WORDS, st.integers(1, 6))
def test_equal_numbers_are_equal_words(words: list[str], width: int) -> None:
    """Two shingles of a text have the same number if and only if they are the same words."""
    numbers = shingle_text(" ".join(words), width=width).tolist()
    pieces = [tuple(words[at : at + width]) for at in range(max(1, len(words) - width + 1))] if words else []
    assert len(numbers) == len(pieces)
    assert len(set(zip(pieces, numbers, strict=True))) == len(set(pieces)) == len(set(numbers))


@given(WORDS, WORDS)
def test_place_makes_no_difference(before: list[str], words: list[str]) -> None:
    """A text has the same numbers after any other text."""
    alone = shingle_text(" ".join([*words, *["end"] * 4]))
    behind = shingle_text(" ".join([*before, *words, *["end"] * 4]))
    assert np.array_equal(behind[len(behind) - len(alone) :], alone)


def test_words_are_not_run_together() -> None:
    """Word boundaries are part of the number and of the fingerprint."""
    one, other = "to get her there now", "together there now now"
    assert not np.isin(shingle_text(one), shingle_text(other)).any()
    assert fingerprint_text("to get her") != fingerprint_text("together")


def test_numbers_are_spread() -> None:
    """Shingles of one-letter words, whose polynomials are close together, fill the range evenly."""
    letters = [chr(97 + at % 26) for at in range(26)]
    text = " ".join(a + " " + b + " " + c for a in letters for b in letters for c in letters)
    numbers = np.unique(shingle_text(text, width=3))
    counts = np.bincount((numbers >> np.uint64(60)).astype(int), minlength=16)
    expected = len(numbers) / 16
    assert abs(counts - expected).max() < 5 * expected**0.5


def plain_mix(value: int) -> int:
    """Apply the documented mixing: the upper half onto the lower, then spread upwards."""
    return (value ^ value >> 32) * int(FACTOR) % 2**64


def test_numbers_are_for_ever() -> None:
    """A number is the documented polynomial, mixed, so it is the same in every process and on every machine."""
    value = 0
    for word in (b"to", b"be", b"or", b"not"):
        value = value * int(FACTOR) + plain_mix(int.from_bytes(word, "little"))
    assert shingle_text("To be, or not").tolist() == [plain_mix(value % 2**64)]


@given(st.integers(1, 200), st.data())
def test_every_letter_counts(size: int, data: st.DataObject) -> None:
    """A word that differs in one letter anywhere, or is one letter longer, has another number, at any length."""
    word = "a" * size
    at = data.draw(st.integers(0, size - 1))
    others = [word[:at] + "b" + word[at + 1 :], word + "a", word + "b"]
    numbers = [int(shingle_text(each, width=1)[0]) for each in (word, *others)]
    assert len(set(numbers)) == len(numbers)


def test_last_letters_of_several_words() -> None:
    """Words that only differ in their eighth letter, the top of a block, are distinguished in all combinations."""
    letters = "abcdefghijklmnop"
    texts = [
        f"sevenis{a} sevenis{b} sevenis{c} sevenis{d}" for a in letters for b in letters for c in "ab" for d in "ab"
    ]
    assert len({int(shingle_text(text)[0]) for text in texts}) == len(texts)


@given(st.lists(st.integers(1, 80), min_size=1, max_size=30))
def test_neighbours_make_no_difference(sizes: list[int]) -> None:
    """A word has the same number alone and next to longer and shorter words."""
    words = [chr(97 + at % 26) * size for at, size in enumerate(sizes)]
    assert shingle_text(" ".join(words), width=1).tolist() == [int(shingle_text(word, width=1)[0]) for word in words]


def test_long_texts_are_cut() -> None:
    """A text of many megabytes costs bounded memory: anything after the first megabyte adds no shingle."""
    form = b"abc " * (module.MAX_BYTES // 4)
    assert np.array_equal(shingle_form(form + b"other words at the end"), shingle_form(form[: module.MAX_BYTES]))


@pytest.mark.parametrize("text", ["a" * 300_000, "é" * 300_000, "a " * 200_000, "日" * 200_000, "\u0301" * 300_000])
def test_monotonous_texts(text: str) -> None:
    """Repeated words, or a single endless word, have few different shingles and cause no problems."""
    assert len(np.unique(shingle_text(text))) <= 2
