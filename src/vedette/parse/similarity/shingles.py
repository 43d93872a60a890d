"""Shingles of a text: its runs of words as hashes, to compare texts without handling single words in Python.

The *normal form* of a text is its words in lower case with one space between them, as UTF-8:

- a word is a run of letters and combining marks; everything else separates words. That includes digits, so dates,
  counters, prices and version numbers make no difference;
- invisible format characters (soft hyphen, joiners, variation selectors) are removed, and do not separate words;
- scripts written without spaces (Han, kana, Bopomofo, Thai, Lao, Myanmar, Khmer) have no words that are cheap to find,
  so each of their characters is a word.

A word's number is ``vedette.text.raw_word_hashes``. A *shingle* is a few consecutive words; its number is a polynomial
in their numbers, mixed once more. It depends only on the words, not on the position of the shingle. It is not keyed:
someone can construct words that collide with another page's, and so pass for that page, as with a plain copy. Only the
fingerprint proves that two texts are the same.

This definition of a word is older and coarser than that of ``vedette.text``: stored numbers depend on it.

Which characters are letters depends on the Unicode version of the running Python: a text with recently defined
characters may have another form under another version.
"""

import unicodedata
from functools import cache

import numpy as np
import xxhash

from vedette.text import (
    ALONE,
    FACTOR,
    SPACE,
    SPACELESS,
    Codes,
    WideHashes,
    mask_needed,
    mix,
    raw_word_hashes,
    scramble,
    space_out,
)

__all__ = [
    "WideHashes",
    "fingerprint_form",
    "fingerprint_text",
    "normal_form",
    "scramble",
    "shingle_form",
    "shingle_text",
]

SHINGLE_WORDS = 4
MAX_BYTES = 1 << 20  # of a normal form; the rest does not affect its shingles

IDEOGRAPHS = 0x2_0000  # planes 2 and 3 have nothing else
LAST_CODE = 0x4_0000  # beyond this nothing belongs in a page
VARIATION_SELECTORS = slice(0xFE00, 0xFE10)

_ASCII = bytes(ord(chr(code).lower()) if chr(code).isalpha() and code < 128 else SPACE for code in range(256))


def normal_form(text: str) -> bytes:
    """Return the normal form of a text for shingles: its words, in lower case, one space between them.

    >>> normal_form("Don't panic: 42 towels (2024-05-01).").decode()
    'don t panic towels'
    >>> normal_form("Gro\u00dfe \u00c4nderung: \u65e5\u672c\u8a9e!").decode()
    'große änderung 日 本 語'
    """
    if text.isascii():
        letters = np.frombuffer(text.encode().translate(_ASCII), np.uint8)
        return letters[mask_needed(letters)].tobytes().rstrip(b" ")
    codes = _separate_words(text)
    return codes[mask_needed(codes)].tobytes().decode("utf-32-le").rstrip(" ").encode()


def shingle_text(text: str, *, width: int = SHINGLE_WORDS) -> WideHashes:
    """Hash all shingles of ``width`` words of a text, in order; see ``shingle_form``.

    >>> bool((shingle_text("It was 5 o'clock, then.") == shingle_text("it was 12 O'CLOCK then")).all())
    True
    """
    return shingle_form(normal_form(text), width=width)


def shingle_form(form: bytes, *, width: int = SHINGLE_WORDS) -> WideHashes:
    """Hash all shingles of a text in its normal form.

    Fewer words than ``width`` are one shingle; no words give none.

    >>> [len(shingle_form(form)) for form in (b"", b"to be", b"to be or not", b"to be or not to be")]
    [0, 1, 1, 3]
    """
    if not form:
        return np.zeros(0, np.uint64)
    numbers = raw_word_hashes(form[:MAX_BYTES])
    count = max(1, len(numbers) + 1 - width)
    found = numbers[:count].copy()
    for place in range(1, min(width, len(numbers))):
        found *= FACTOR
        found += numbers[place : place + count]
    return mix(found)


def fingerprint_text(text: str) -> bytes:
    """Compute the 16-byte fingerprint of a text's normal form, equal only for texts with the same words."""
    return fingerprint_form(normal_form(text))


def fingerprint_form(form: bytes) -> bytes:
    """Compute the 16-byte fingerprint of a text in its normal form."""
    return xxhash.xxh3_128_digest(form)


def _separate_words(text: str) -> Codes:
    """Separate the words of a text for its normal form: lower-case letters, spaces around all words."""
    codes = _build_readings().take(np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32), mode="clip")
    if codes.min() == 0:
        codes = codes[codes != 0]
    alone = codes >= ALONE
    return space_out(codes, alone) if alone.any() else codes


@cache
def _build_readings() -> Codes:
    """Build the table of what each character is in the normal form: a letter, a word, a space, or (0) nothing.

    Built when the first text needs it, in about 30 ms. The last entry is for all later characters.
    """
    readings = np.arange(LAST_CODE + 1, dtype=np.uint32)
    readings[:IDEOGRAPHS] = [_read_character(chr(code)) for code in range(IDEOGRAPHS)]
    for first, last in (*SPACELESS, (IDEOGRAPHS, LAST_CODE)):
        block = readings[first : last + 1]
        block[block > SPACE] |= ALONE
    readings[VARIATION_SELECTORS] = 0
    readings[-1] = SPACE
    return readings


def _read_character(character: str) -> int:
    category = unicodedata.category(character)
    if category == "Cf":
        return 0
    if category[0] not in "LM":
        return SPACE
    folded = character.casefold()
    return ord(folded if len(folded) == 1 else character.lower()[0])
