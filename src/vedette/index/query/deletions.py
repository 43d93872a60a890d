"""Which known words are spelled nearly so? Neighbours by deleted letters, in one sorted array.

Two words that are a few edits apart become the same when a few letters are deleted from each. So every known word is
filed under the numbers of what is left of its first letters when up to two are deleted, and a word is looked up under
the same. It is enough to look at the first ``WIDTH`` letters: an edit moves at most one letter out of them.

The idea is that of SymSpell (W. Garbe, 2012). Here a file is an array of 64-bit entries, a number's upper half being
the hash of what is left and the lower the word, for all words at once. Words are numbered by how frequent they are, so
that the most frequent neighbours stand first and a crowd of others can be cut off.
"""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from vedette.policy import Ints
from vedette.text import stirred

__all__ = ["Deletions", "build_deletions", "reach_of"]

Codes = npt.NDArray[np.uint32]
Words = npt.NDArray[np.uint64]
Flags = npt.NDArray[np.bool_]

SHORTEST = 4  # letters of a word that is worth doubting
LONGEST = 24
WIDTH = 7
MOST_EACH = 256  # words of one deletion; honest languages have fewer
HALF = np.uint64(32)
ROW = np.uint64(0xFFFF_FFFF)

# The ways of deleting none, one or two letters: how many, and the last place at which one is deleted.
_WAYS = tuple(gone for count in range(3) for gone in combinations(range(WIDTH), count))
_COUNTS = np.array([len(gone) for gone in _WAYS])
_LAST = np.array([max(gone, default=-1) for gone in _WAYS])
# A letter counts by its place among those left, so that what is left has one number whichever way it came about.
_FACTORS: Words = stirred(np.arange(1, WIDTH + 1, dtype=np.uint64)) | np.uint64(1)
_PLACED: Words = np.zeros((WIDTH, len(_WAYS)), np.uint64)
for _way, _gone in enumerate(_WAYS):
    _left = [place for place in range(WIDTH) if place not in _gone]
    _PLACED[_left, _way] = _FACTORS[: len(_left)]


@dataclass(frozen=True, slots=True)
class Deletions:
    """Known words, the most frequent first, filed by what is left of them.

    ``letters`` and ``pairs`` say as bits which letters each has, and which letters next to each other.
    """

    words: tuple[str, ...]
    lengths: Ints
    letters: Words
    pairs: Words
    entries: Words

    def near(self, word: str, most: int = 100) -> list[int]:
        """The places of at most so many known words that may be within reach of a word, the most frequent first."""
        reach = reach_of(word)
        if not reach or not self.words:
            return []
        codes, lengths = _codes([word])
        keys = np.unique(_filed(codes, lengths)[1])
        starts = np.searchsorted(self.entries, keys)
        ends = np.searchsorted(self.entries, keys | ROW, side="right")
        runs = zip(starts.tolist(), ends.tolist(), strict=True)
        found = np.concatenate([self.entries[start : min(end, start + MOST_EACH)] for start, end in runs])
        rows = np.unique(found & ROW).astype(np.int64)
        fits = np.abs(self.lengths[rows] - len(word)) <= reach
        # An edit changes at most two letters, and three pairs into three others.
        fits &= np.bitwise_count(self.letters[rows] ^ _letters(codes)[0]) <= 2 * reach
        fits &= np.bitwise_count(self.pairs[rows] ^ _pairs(codes)[0]) <= 6 * reach
        return [int(row) for row in rows[fits][:most]]


def reach_of(word: str) -> int:
    """How many edits away another word may be: none for short ones, one for four and five letters, two from six on."""
    if not SHORTEST <= len(word) <= LONGEST:
        return 0
    return 1 if len(word) < 6 else 2


def build_deletions(words: tuple[str, ...]) -> Deletions:
    """File words, which are given with the most frequent first and have a reach.

    >>> build_deletions(("streams", "stream", "steam", "kafka")).near("straem")
    [0, 1, 2]
    """
    codes, lengths = _codes(list(words))
    rows, keys = _filed(codes, lengths)
    entries = keys | rows.astype(np.uint64)
    entries.sort()
    return Deletions(words, lengths, _letters(codes), _pairs(codes), entries)


def _codes(words: list[str]) -> tuple[Codes, Ints]:
    """The characters of words, a row each, with zeros behind; and how many they are."""
    array = np.array(words, f"<U{LONGEST}")
    codes = array.view(np.uint32).reshape(len(words), LONGEST)
    return codes, np.count_nonzero(codes, axis=1)


def _filed(codes: Codes, lengths: Ints) -> tuple[Ints, Words]:
    """For each word and each way of deleting for which it has letters to spare: its row, and a number of what is left.

    The number is in the upper half.
    """
    first = codes[:, :WIDTH]
    letters = stirred(first.astype(np.uint64)) * (first != 0)
    spare = np.where(lengths < 6, 1, 2)
    sound = (lengths[:, None] > _LAST) & (spare[:, None] >= _COUNTS)
    numbers = stirred(letters @ _PLACED) >> HALF << HALF
    return sound.nonzero()[0], numbers[sound]


def _letters(codes: Codes) -> Words:
    """Which letters a word has, as bits; letters that are 64 apart pass for one."""
    bits = np.uint64(1) << (codes & np.uint32(63)).astype(np.uint64)
    bits[codes == 0] = 0
    return np.asarray(np.bitwise_or.reduce(bits, axis=1), np.uint64)


def _pairs(codes: Codes) -> Words:
    """Which letters it has next to each other, as bits; the end counts as a letter."""
    mingled = codes[:, :-1] * np.uint32(23) + codes[:, 1:] * np.uint32(37)
    mingled[codes[:, :-1] == 0] = 0
    return _letters(mingled)
