"""The words of a text as numbers, so that two texts can be compared without looking at a single word in Python.

The *normal form* of a text is its words in lower case with one space between them, as UTF-8:

- a word is a run of letters and combining marks; everything else separates words. That includes digits, so dates,
  counters, prices and version numbers make no difference;
- invisible format characters (soft hyphen, joiners, variation selectors) vanish, and do not separate;
- scripts that are written without spaces (Han, kana, Bopomofo, Thai, Lao, Myanmar, Khmer) have no words to be found
  cheaply, so that each of their characters is a word.

A word's number is read off its bytes in loads of eight, a little-endian number each, for all words of a text at once;
most words are one load. Further loads are mixed and added, each times an odd factor of its own. A *shingle* is so many
consecutive words; its number is a polynomial in their mixed numbers, mixed once more. Nothing but the words enters, so
that the place of a shingle makes no difference. Mixing folds upper bits onto lower ones, as a product carries upwards
only: without it, words that differ in their eighth letter would differ in eight bits. There is no secret in it:
somebody can make up words with the numbers of another page's, and so pass for that page, as with a plain copy. Only the
fingerprint says that two texts are the same.

Which characters are letters is what the running Python's version of Unicode says: a text in characters that were
defined lately may have another form under another version.
"""

import unicodedata
from functools import cache

import numpy as np
import numpy.typing as npt
import xxhash

from vedette.decide import Ints

__all__ = ["Words", "fingerprint", "fingerprint_of", "normal_form", "shingles", "shingles_of", "stirred"]

Words = npt.NDArray[np.uint64]
Codes = npt.NDArray[np.uint32]

WIDTH = 4
MOST_BYTES = 1 << 20  # of a normal form; what lies behind makes no difference to its shingles
LOAD_BYTES = 8
LONGEST_BYTES = 64  # of a word that is read in loads; a longer one is hashed by itself
SPACE = 32
FACTOR, HALF = np.uint64(0x9E37_79B9_7F4A_7C15), np.uint64(32)

ALONE = np.uint32(1 << 31)  # marks a character that is a word by itself
IDEOGRAPHS = 0x2_0000  # in planes 2 and 3 there is nothing else
END = 0x4_0000  # from here on there is nothing that a page should have
SPACELESS = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Myanmar
    (0x1780, 0x17FF),  # Khmer
    (0x3005, 0x3005),  # the mark that repeats an ideograph
    (0x3040, 0x312F),  # Hiragana, Katakana, Bopomofo
    (0x31A0, 0x31FF),  # their extensions
    (0x3400, 0x4DBF),  # Han
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0xFF66, 0xFF9F),  # narrow Katakana
)
VARIATION_SELECTORS = slice(0xFE00, 0xFE10)

_ASCII = bytes(ord(chr(code).lower()) if chr(code).isalpha() and code < 128 else SPACE for code in range(256))


def normal_form(text: str) -> bytes:
    """The words of a text, in lower case, one space between them.

    >>> normal_form("Don't panic: 42 towels (2024-05-01).").decode()
    'don t panic towels'
    >>> normal_form("Gro\u00dfe \u00c4nderung: \u65e5\u672c\u8a9e!").decode()
    'große änderung 日 本 語'
    """
    if text.isascii():
        letters = np.frombuffer(text.encode().translate(_ASCII), np.uint8)
        return letters[_needed(letters)].tobytes().rstrip(b" ")
    codes = _spaced(text)
    return codes[_needed(codes)].tobytes().decode("utf-32-le").rstrip(" ").encode()


def shingles(text: str, *, width: int = WIDTH) -> Words:
    """The numbers of all pieces of ``width`` words, in the order of the text; see ``shingles_of``.

    >>> bool((shingles("It was 5 o'clock, then.") == shingles("it was 12 O'CLOCK then")).all())
    True
    """
    return shingles_of(normal_form(text), width=width)


def shingles_of(form: bytes, *, width: int = WIDTH) -> Words:
    """The same of a text in its normal form. Fewer words than ``width`` are one shingle; no words are none.

    >>> [len(shingles_of(form)) for form in (b"", b"to be", b"to be or not", b"to be or not to be")]
    [0, 1, 1, 3]
    """
    if not form:
        return np.zeros(0, np.uint64)
    numbers = _word_numbers(form[:MOST_BYTES])
    count = max(1, len(numbers) + 1 - width)
    found = numbers[:count].copy()
    for place in range(1, min(width, len(numbers))):
        found *= FACTOR
        found += numbers[place : place + count]
    return _mix(found)


def fingerprint(text: str) -> bytes:
    """Sixteen bytes that are equal for texts of equal normal form, and for no others that anybody will meet."""
    return fingerprint_of(normal_form(text))


def fingerprint_of(form: bytes) -> bytes:
    """The same of a text in its normal form."""
    return xxhash.xxh3_128_digest(form)


def stirred(values: Words) -> Words:
    """Each value as another one, every bit of which depends on all bits (splitmix64's finaliser; one to one)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58_476D_1CE4_E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D0_49BB_1331_11EB)
    return values ^ (values >> np.uint64(31))


# By the distance from the space before a word to the one behind it.
_WANTED: Words = np.array([0] + [(1 << 8 * size) - 1 for size in range(LOAD_BYTES + 1)], np.uint64)
_FURTHER = np.arange(LOAD_BYTES, LONGEST_BYTES, LOAD_BYTES)
_FACTORS: Words = stirred(_FURTHER.astype(np.uint64)) | np.uint64(1)


def _word_numbers(form: bytes) -> Words:
    """The mixed number of each word."""
    padded = b" %b %b" % (form, bytes(LONGEST_BYTES))
    loads: Words = np.ndarray(len(form) + LONGEST_BYTES - LOAD_BYTES, "<u8", padded, 1, (1,))
    spaces = (np.frombuffer(padded, np.uint8) == SPACE).nonzero()[0]
    before, reach = spaces[:-1], spaces[1:] - spaces[:-1]
    numbers = loads.take(before)
    numbers &= _WANTED.take(reach, mode="clip")
    long = (reach > LOAD_BYTES + 1).nonzero()[0]
    if len(long):
        numbers[long] += _further(padded, loads, before[long], reach[long])
    return _mix(numbers)


def _further(padded: bytes, loads: Words, before: Ints, reach: Ints) -> Words:
    """What longer words have behind their first load."""
    longest = int(reach.max()) - 1
    offsets = _FURTHER[: (longest - 1) // LOAD_BYTES]
    pieces = loads[before[:, None] + offsets]
    pieces &= _WANTED.take(reach[:, None] - offsets, mode="clip")
    numbers: Words = _mix(pieces) @ _FACTORS[: len(offsets)]
    if longest > LONGEST_BYTES:
        for row in (reach > LONGEST_BYTES + 1).nonzero()[0].tolist():
            start = int(before[row]) + 1
            numbers[row] = xxhash.xxh64_intdigest(padded[start : start + int(reach[row]) - 1])
    return numbers


def _mix(numbers: Words) -> Words:
    """Change each number into another one, in place and one to one."""
    numbers ^= numbers >> HALF
    numbers *= FACTOR
    return numbers


def _needed(codes: npt.NDArray[np.uint8] | Codes) -> npt.NDArray[np.bool_]:
    """Where letters stand, and the first of the spaces behind them."""
    solid: npt.NDArray[np.bool_] = codes != SPACE
    needed = solid.copy()
    needed[1:] |= solid[:-1]
    return needed


def _spaced(text: str) -> Codes:
    """Lower-case letters, with spaces for all that separates words and around characters that are words themselves."""
    codes = _readings().take(np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32), mode="clip")
    if codes.min() == 0:
        codes = codes[codes != 0]
    alone = codes >= ALONE
    return _set_apart(codes, alone) if alone.any() else codes


def _set_apart(codes: Codes, alone: npt.NDArray[np.bool_]) -> Codes:
    copies = np.where(alone, 3, 1)
    ends = np.cumsum(copies)[alone]
    codes = np.repeat(codes & ~ALONE, copies)
    codes[ends - 1] = codes[ends - 3] = SPACE
    return codes


@cache
def _readings() -> Codes:
    """What each character is read as: a lower-case letter, a word by itself, a space, or (0) nothing.

    Made when the first text comes that needs it, in about 30 ms. The last entry stands for all characters behind.
    """
    readings = np.arange(END + 1, dtype=np.uint32)
    readings[:IDEOGRAPHS] = [_reading(chr(code)) for code in range(IDEOGRAPHS)]
    for first, last in (*SPACELESS, (IDEOGRAPHS, END)):
        block = readings[first : last + 1]
        block[block > SPACE] |= ALONE
    readings[VARIATION_SELECTORS] = 0
    readings[-1] = SPACE
    return readings


def _reading(character: str) -> int:
    category = unicodedata.category(character)
    if category == "Cf":
        return 0
    if category[0] not in "LM":
        return SPACE
    folded = character.casefold()
    return ord(folded if len(folded) == 1 else character.lower()[0])
