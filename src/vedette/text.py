"""Words of a text: one tokenizer for pages, queries, the index and ranking, so that they always agree.

The *spaced form* of a text is its words with one space between them, as UTF-8:

- a word is a run of letters, digits and combining marks, in lower case; everything else separates words;
- invisible characters (soft hyphen, joiners, variation selectors) are removed, and do not separate words;
- accents are folded in Latin, Greek and Cyrillic, where people omit them; single characters for two letters (``ß``,
  ``æ``, ligatures) become two. Marks of other scripts are letters to their readers, and stay;
- wide and narrow forms become the usual ones, and equivalent spellings (composed or not) become one;
- characters of scripts that are written without spaces (Han, kana, Thai, Khmer …), and of Hangul, whose words have
  endings, are one word each. A run of them in a query is a phrase, which matches inside longer runs;
- four names with significant punctuation are words: C++, C#, F# and .NET;
- a word ends after 64 bytes.

A word's *number* is computed from its bytes in blocks of eight, a little-endian number each, for all words of a text at
once; most words are one block. Further blocks are mixed and added, each times its own odd factor. Mixing folds upper
bits onto lower ones, since a product only carries upwards: without it, words that differ in their eighth letter would
differ in eight bits. The hash is not keyed: anyone can construct words that collide.

Which characters are letters depends on the Unicode version of the running Python.
"""

import re
import unicodedata
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import xxhash

WordHashes = npt.NDArray[np.uint32]
WideHashes = npt.NDArray[np.uint64]
Codes = npt.NDArray[np.uint32]
Flags = npt.NDArray[np.bool_]
Places = npt.NDArray[np.int64]

MAX_WORD_BYTES = 64  # of a word; in ``raw_word_hashes``, of one that is read in blocks
LOAD_BYTES = 8
SPACE = 32
FACTOR, HALF = np.uint64(0x9E37_79B9_7F4A_7C15), np.uint64(32)

# A reading is a character, or an index into the list of longer readings, with these flags on it.
ALONE = np.uint32(1 << 31)  # it is a word by itself
JOINS = np.uint32(1 << 30)  # it may have to be composed with the preceding character
LONGER = np.uint32(1 << 29)  # it is not one character
MARKED = ALONE | JOINS | LONGER

MAX_MARKS = 30  # in a row; no script needs that many, and ordering more takes quadratic time
IDEOGRAPHS = 0x2_0000  # planes 2 and 3 have nothing else
END = 0x4_0000  # beyond this nothing belongs in a page
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
STANDING_ALONE = (
    *SPACELESS,
    (0x3006, 0x3007),  # Han signs for closing and zero
    (0x1100, 0x11FF),  # Hangul, letters and syllables
    (0x3131, 0x318F),
    (0xA960, 0xA97F),
    (0xAC00, 0xD7FF),
    (0xFFA0, 0xFFDC),
    (IDEOGRAPHS, END),
)
PLAIN = ((0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (IDEOGRAPHS, 0x2_F7FF), (0x2_FA20, END))

_INVISIBLE = re.compile("[\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0]")
_ACCENTS = re.compile("[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]")
_SUBSCRIPTS = re.compile("[\u2080-\u2089]")
_SEPARATING = re.compile("[\u02bb\u02bc\U0001d100-\U0001d1ff]")  # apostrophes that count as letters; musical notes
_USUAL = re.compile("[0-9A-Za-z\u00df-\u052f\u3099\u309a\u30a1-\u30fc]+")  # the base characters of unusual forms
_PLAINER = str.maketrans(
    {"æ": "ae", "œ": "oe", "þ": "th", "ø": "o", "đ": "d", "ð": "d", "ł": "l", "ħ": "h", "ŧ": "t", "\u0131": "i"}
)
_ASCII = bytes(ord(chr(code).lower()) if code < 128 and chr(code).isalnum() else SPACE for code in range(256))

_ALPHABETS = "A-Za-z_\u00aa\u00b5\u00ba\u00c0-\u0dff\u1200-\u1fff"  # and their accents, so that both spellings agree
# Look back only where a name may begin: looking back at every character takes three times as long.
_NAMES = re.compile(
    rf"[cCfF.](?=[+#nN])(?<![0-9{_ALPHABETS}.#+@][cCfF.])"
    rf"(?:(?<=[cC])\+\+|(?<=[cCfF])#|(?<=\.)(?:net|NET|Net))(?![{_ALPHABETS}#+])"
)
_NAMES_AS_WORDS = {"c++": "cplusplus", "c#": "csharp", "f#": "fsharp", ".net": "dotnet"}


def normalize_words(text: str) -> bytes:
    """Normalize a text to its spaced form: folded words with one space between them.

    >>> normalize_words("Don't panic: 42 towels, café-style.").decode()
    'don t panic 42 towels cafe style'
    >>> normalize_words("Große Änderung in C++: 日本語!").decode()
    'grosse anderung in cplusplus 日 本 語'
    """
    if _may_have_names(text):
        text = _NAMES.sub(lambda found: f" {_NAMES_AS_WORDS[found[0].lower()]} ", text)
    return _join_words(_fold_ascii(text) if text.isascii() else _fold_text(text))


def split_words(text: str) -> list[str]:
    """Split a text into its normalized words, in order.

    >>> split_words("Ubuntu 24.04 (LTS)")
    ['ubuntu', '24', '04', 'lts']
    """
    return normalize_words(text).decode().split()


class LocatedWords(NamedTuple):
    """The words of a text by number, with the start and end of each in the text."""

    numbers: WordHashes
    starts: Places
    ends: Places


def locate_words(text: str) -> LocatedWords | None:
    """Locate the words of a text, in order; None if it needs ``compose`` first, or one character is several words.

    >>> found = locate_words("Who? Der Große Bär!")
    >>> found.starts.tolist(), found.ends.tolist(), found.numbers.tolist().index(hash_word("grosse"))
    ([0, 5, 9, 15], [3, 8, 14, 18], 2)
    """
    letters = _fold_ascii(text) if text.isascii() else _fold_text(text)
    solid = np.zeros(len(letters) + 2, bool)
    np.not_equal(letters, SPACE, out=solid[1:-1])
    edges = (solid[1:] != solid[:-1]).nonzero()[0]
    starts, ends = edges[::2], edges[1::2]
    if not text.isascii():
        sizes = _build_sizes().take(_codes(text), mode="clip")
        if sizes.sum() != len(letters):
            return None
        origins = np.repeat(np.arange(len(text)), sizes)
        starts, ends = origins[starts], origins[ends - 1] + 1
        if sizes.min() == 0:  # removed characters belong to the word before
            visible = np.append(sizes.nonzero()[0], len(text))
            ends = visible[np.searchsorted(visible, ends)]
    found = LocatedWords(hash_words(_join_words(letters)), starts, ends)
    return _with_names(found, text) if _may_have_names(text) else found


def _with_names(found: LocatedWords, text: str) -> LocatedWords:
    """Replace the letters of names such as C++ or .NET by the name's word among located words."""
    names = list(_NAMES.finditer(text))
    spans = np.array([name.span() for name in names], np.int64).reshape(-1, 2)
    first, behind = np.searchsorted(found.starts, spans).T
    whole = first < behind  # a name attached to a letter of another script has no word of its own
    words = b" ".join(_NAMES_AS_WORDS[name[0].lower()].encode() for name in names)
    found.numbers[first[whole]] = hash_words(words)[whole]
    found.starts[first[whole]], found.ends[first[whole]] = spans[whole].T
    return found


def compose(text: str) -> str:
    """Compose equivalent Unicode spellings of a text into one, in linear time: long runs of marks are cut."""
    codes = _codes(text)
    readings = _build_readings()[0].take(codes, mode="clip")
    return _compose_codes(codes, (readings == 0) | ((readings & JOINS) != 0))


def hash_words(form: bytes) -> WordHashes:
    """Hash each word of a spaced form to a number: equal words have equal numbers, collisions are very rare.

    >>> [len(hash_words(form)) for form in (b"", b"to", b"to be or not to be")]
    [0, 1, 6]
    """
    if not form:
        return np.zeros(0, np.uint32)
    return (scramble(raw_word_hashes(form)) >> HALF).astype(np.uint32)


@lru_cache(maxsize=8192)  # a search asks for each word several times
def hash_word(word: str) -> int:
    """Hash one normalized word to its number.

    >>> hash_words(b"to be").tolist().index(hash_word("be"))
    1
    """
    return int(hash_words(word.encode("utf-8", "replace"))[0]) if word else 0


def scramble(values: WideHashes) -> WideHashes:
    """Scramble 64-bit values one to one: every bit depends on all bits (splitmix64's finalizer)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58_476D_1CE4_E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D0_49BB_1331_11EB)
    return values ^ (values >> np.uint64(31))


def mix(numbers: WideHashes) -> WideHashes:
    """Mix word numbers in place, one to one."""
    numbers ^= numbers >> HALF
    numbers *= FACTOR
    return numbers


# By the distance between the spaces before and after a word.
_LOAD_MASKS: WideHashes = np.array([0] + [(1 << 8 * size) - 1 for size in range(LOAD_BYTES + 1)], np.uint64)
_TAIL_OFFSETS = np.arange(LOAD_BYTES, MAX_WORD_BYTES, LOAD_BYTES)
_FACTORS: WideHashes = scramble(_TAIL_OFFSETS.astype(np.uint64)) | np.uint64(1)


def raw_word_hashes(form: bytes) -> WideHashes:
    """Compute the mixed hash of each word of a spaced form that has at least one word."""
    padded = b" %b %b" % (form, bytes(MAX_WORD_BYTES))
    loads: WideHashes = np.ndarray(len(form) + MAX_WORD_BYTES - LOAD_BYTES, "<u8", padded, 1, (1,))
    spaces = (np.frombuffer(padded, np.uint8) == SPACE).nonzero()[0]
    before, reach = spaces[:-1], spaces[1:] - spaces[:-1]
    numbers = loads.take(before)
    numbers &= _LOAD_MASKS.take(reach, mode="clip")
    long = (reach > LOAD_BYTES + 1).nonzero()[0]
    if len(long):
        numbers[long] += _hash_tail(padded, loads, before[long], reach[long])
    return mix(numbers)


def _hash_tail(padded: bytes, loads: WideHashes, before: Places, reach: Places) -> WideHashes:
    """Hash the bytes of longer words after their first eight."""
    longest = int(reach.max()) - 1
    offsets = _TAIL_OFFSETS[: (longest - 1) // LOAD_BYTES]
    pieces = loads[before[:, None] + offsets]
    pieces &= _LOAD_MASKS.take(reach[:, None] - offsets, mode="clip")
    numbers: WideHashes = mix(pieces) @ _FACTORS[: len(offsets)]
    if longest > MAX_WORD_BYTES:
        for row in (reach > MAX_WORD_BYTES + 1).nonzero()[0].tolist():
            start = int(before[row]) + 1
            numbers[row] = xxhash.xxh64_intdigest(padded[start : start + int(reach[row]) - 1])
    return numbers


def mask_needed(codes: npt.NDArray[np.uint8] | Codes) -> Flags:
    """Mask the letters of a folded text, and the first space after each word."""
    solid: Flags = codes != SPACE
    kept = solid.copy()
    kept[1:] |= solid[:-1]
    return kept


def space_out(codes: Codes, alone: Flags) -> Codes:
    """Put a space around each character of a folded text that is a word by itself."""
    copies = np.where(alone, 3, 1)
    ends = np.cumsum(copies)[alone]
    codes = np.repeat(codes & ~ALONE, copies)
    codes[ends - 1] = codes[ends - 3] = SPACE
    return codes


def fold_character(character: str) -> str:
    """Fold a character to how it is read: lower-case letters without accents, a space, or nothing.

    >>> [fold_character(character) for character in "Éß\u00ad!が"]
    ['e', 'ss', '', ' ', 'が']
    """
    pieces = unicodedata.normalize("NFD", character)
    return unicodedata.normalize("NFC", "".join(_fold_piece(piece) for piece in pieces))


def _fold_piece(piece: str) -> str:
    """Fold a character that has no decomposition into equivalent ones."""
    category = unicodedata.category(piece)
    if category == "Cf" or _INVISIBLE.match(piece) or _ACCENTS.match(piece):
        return ""
    if _SUBSCRIPTS.match(piece):
        return str(unicodedata.digit(piece))
    if _SEPARATING.match(piece) or not (category[0] in "LM" or category in {"Nd", "Nl"}):
        return " "
    usual = unicodedata.normalize("NFKD", piece)
    folded = (usual if _USUAL.fullmatch(_ACCENTS.sub("", usual)) else piece).casefold()
    return _SEPARATING.sub(" ", _ACCENTS.sub("", unicodedata.normalize("NFD", folded))).translate(_PLAINER)


def _may_have_names(text: str) -> bool:
    """Check cheaply whether a text may contain names such as C++ or .NET, by single characters first."""
    signs = ("+" in text and "++" in text) or ("#" in text and any(name in text for name in ("C#", "c#", "F#", "f#")))
    return signs or ".net" in text or ".NET" in text or ".Net" in text


def _join_words(letters: npt.NDArray[np.uint8] | Codes) -> bytes:
    kept = letters[mask_needed(letters)].tobytes()
    form = kept.rstrip(b" ") if letters.itemsize == 1 else kept.decode("utf-32-le").rstrip(" ").encode()
    return _truncate_words(form) if len(form) > MAX_WORD_BYTES else form


def _fold_ascii(text: str) -> npt.NDArray[np.uint8]:
    return np.frombuffer(text.encode().translate(_ASCII), np.uint8)


def _codes(text: str) -> Codes:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


def _fold_text(text: str) -> Codes:
    """Fold a text: letters, with spaces for separators and around characters that are words by themselves."""
    table, longer = _build_readings()
    codes = table.take(_codes(text), mode="clip")
    highest = codes.max()
    if highest >= LONGER:
        codes = _expand_readings(codes, longer)
    if codes.min() == 0:
        codes = codes[codes != 0]
    if highest < LONGER:
        return codes
    joining = (codes & JOINS) != 0
    if joining.any():
        codes = table.take(_codes(_compose_codes(codes & ~MARKED, joining)))
    codes &= ~JOINS
    alone = codes >= ALONE
    return space_out(codes, alone) if alone.any() else codes


def _expand_readings(codes: Codes, longer: tuple[Codes, ...]) -> Codes:
    """Expand characters that fold to several letters, in place of their placeholder marks."""
    places = (codes & LONGER).nonzero()[0]
    if not len(places):
        return codes
    readings = [longer[at] for at in (codes[places] & ~MARKED).tolist()]
    codes[places] = [reading[0] for reading in readings]
    behind = np.repeat(places + 1, [len(reading) - 1 for reading in readings])
    return np.insert(codes, behind, np.concatenate([reading[1:] for reading in readings]))


def _compose_codes(codes: Codes, joining: Flags) -> str:
    """Compose equivalent spellings in character codes; keep only the first of too many marks in a row."""
    places = np.arange(1, len(codes) + 1)
    letters = np.maximum.accumulate(np.where(joining, 0, places))
    kept = codes[places - letters <= MAX_MARKS]
    return unicodedata.normalize("NFC", kept.tobytes().decode("utf-32-le", "surrogatepass"))


def _truncate_words(form: bytes) -> bytes:
    """Truncate each word of a spaced form to the longest allowed."""
    edges = (np.frombuffer(b" %b " % form, np.uint8) == SPACE).nonzero()[0]
    if (edges[1:] - edges[:-1]).max() <= MAX_WORD_BYTES + 1:
        return form
    return b" ".join(word[:MAX_WORD_BYTES].decode("utf-8", "ignore").encode() for word in form.split(b" "))


@cache
def _build_readings() -> tuple[Codes, tuple[Codes, ...]]:
    """Build the table of how each character folds, and the longer readings; its last entry is for the rest.

    Built when the first text needs it, in about 200 ms.
    """
    table = np.full(END + 1, SPACE, np.uint32)
    for first, last in PLAIN:
        table[first : last + 1] = np.arange(first, last + 1) | ALONE
    found: dict[str, int] = {}
    for code in (table[:END] == SPACE).nonzero()[0].tolist():
        if unicodedata.category(chr(code)) in {"Cn", "Co", "Cs"}:
            continue  # unassigned; left out for speed, since it would fold to a space
        reading = fold_character(chr(code))
        if len(reading) > 1:
            table[code] = LONGER | np.uint32(found.setdefault(reading, len(found)))
        else:
            table[code] = _mark_code(reading) if reading else 0
    table[-1] = SPACE
    return table, tuple(np.array([_mark_code(each) for each in reading], np.uint32) for reading in found)


@cache
def _build_sizes() -> npt.NDArray[np.uint8]:
    """Build the table of how many characters each character folds to, with added spaces."""
    table, longer = _build_readings()
    sizes = np.where(table >= ALONE, 3, np.where(table == 0, 0, 1)).astype(np.uint8)
    written_out = ((table & LONGER) != 0).nonzero()[0]
    sizes[written_out] = [len(longer[at]) for at in (table[written_out] & ~MARKED).tolist()]
    return sizes


def _mark_code(character: str) -> int:
    code = ord(character)
    joins = unicodedata.category(character)[0] == "M" or 0x1160 <= code <= 0x11FF
    alone = any(first <= code <= last for first, last in STANDING_ALONE)
    return code | joins * int(JOINS) | alone * int(ALONE)
