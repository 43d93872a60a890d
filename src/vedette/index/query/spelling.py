"""Spelling correction ("Did you mean?"): suggest another spelling if it is far more frequent in the index.

A word is *doubted* if the index hardly has it. Words within edit distance (``DeletionIndex``) are scored as a noisy
channel: their frequency, against the improbability of the typo,

    score = log(pages with it) - 3 * cost

so that a correction must be twenty times as frequent for each edit. Transposed letters and letters doubled or not are
the usual typos and cost half; the first letter is seldom wrong, and costs more. A word may also be two run together, or
two words one that was split. If the caller can say how often words follow each other, that decides between candidates,
and no split is suggested that no page has.

Numbers and frequent words of the index are never changed: a query is not wrong because another one is common.

Useful for: typing errors in words that the index has. Not useful for: confused words that all exist ("their", "there"),
and names that no page has.

Why not symspellpy: the index is rebuilt whenever the vocabulary changes, and 100 000 words take it 5.7 s against .6 s
here (``make bench-spelling``). Its lookups are faster (.07 against .33 ms), but only rare words are looked up.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from math import inf, log, log1p

import numpy as np
import numpy.typing as npt

from vedette.index.query.vocabulary import Vocabulary
from vedette.policy import Ints
from vedette.text import scramble

# Two words a few edits apart become the same when a few letters are deleted from each. So every known word is stored
# under the hashes of its first letters with up to two deleted, and a word is looked up under the same. The first
# ``PREFIX_LETTERS`` letters are enough: an edit moves at most one letter out of them. The idea is that of SymSpell (W.
# Garbe, 2012). Here the index is an array of 64-bit entries, with the hash of the remaining letters in the upper half
# and the word in the lower, for all words at once. Words are numbered by frequency, so that the most frequent neighbors
# come first and a long tail can be cut off.


Codes = npt.NDArray[np.uint32]
UInt64s = npt.NDArray[np.uint64]
Bools = npt.NDArray[np.bool_]

MIN_LETTERS = 4  # letters of a word that may be doubted
MAX_LETTERS = 24
PREFIX_LETTERS = 7
MAX_WORDS_EACH = 256  # words of one deletion; honest languages have fewer
HALF_BITS = np.uint64(32)
ROW_MASK = np.uint64(0xFFFF_FFFF)

# The ways of deleting none, one or two letters: how many, and the last position at which one is deleted.
_WAYS = tuple(gone for count in range(3) for gone in combinations(range(PREFIX_LETTERS), count))
_COUNTS = np.array([len(gone) for gone in _WAYS])
_LAST = np.array([max(gone, default=-1) for gone in _WAYS])
# A letter counts by its position among the remaining ones, so that equal remainders have equal hashes however they came
# about.
_FACTORS: UInt64s = scramble(np.arange(1, PREFIX_LETTERS + 1, dtype=np.uint64)) | np.uint64(1)
_PLACED: UInt64s = np.zeros((PREFIX_LETTERS, len(_WAYS)), np.uint64)
for _way, _gone in enumerate(_WAYS):
    _left = [place for place in range(PREFIX_LETTERS) if place not in _gone]
    _PLACED[_left, _way] = _FACTORS[: len(_left)]


@dataclass(frozen=True, slots=True)
class DeletionIndex:
    """Deletion index for spelling correction: known words, most frequent first, keyed by their deletions.

    ``letters`` and ``pairs`` are bit masks of the letters of each word, and of its pairs of adjacent letters.
    """

    words: tuple[str, ...]
    lengths: Ints
    letters: UInt64s
    pairs: UInt64s
    entries: UInt64s

    def find_near(self, word: str, most: int = 100) -> list[int]:
        """Find up to ``most`` known words that may be within edit distance of a word, most frequent first."""
        reach = max_edits(word)
        if not reach or not self.words:
            return []
        codes, lengths = _encode_words([word])
        keys = np.unique(_compute_keys(codes, lengths)[1])
        starts = np.searchsorted(self.entries, keys)
        ends = np.searchsorted(self.entries, keys | ROW_MASK, side="right")
        runs = zip(starts.tolist(), ends.tolist(), strict=True)
        found = np.concatenate([self.entries[start : min(end, start + MAX_WORDS_EACH)] for start, end in runs])
        rows = np.unique(found & ROW_MASK).astype(np.int64)
        fits = np.abs(self.lengths[rows] - len(word)) <= reach
        # An edit changes at most two letters, and three pairs into three others.
        fits &= np.bitwise_count(self.letters[rows] ^ _letter_bits(codes)[0]) <= 2 * reach
        fits &= np.bitwise_count(self.pairs[rows] ^ _pair_bits(codes)[0]) <= 6 * reach
        return [int(row) for row in rows[fits][:most]]


def max_edits(word: str) -> int:
    """Return the allowed edit distance of a word: 0 for short ones, 1 for four and five letters, else 2."""
    if not MIN_LETTERS <= len(word) <= MAX_LETTERS:
        return 0
    return 1 if len(word) < 6 else 2


def build_deletion_index(words: tuple[str, ...]) -> DeletionIndex:
    """Build the deletion index of words that are given most frequent first and allow at least one edit.

    >>> build_deletion_index(("streams", "stream", "steam", "kafka")).find_near("straem")
    [0, 1, 2]
    """
    codes, lengths = _encode_words(list(words))
    rows, keys = _compute_keys(codes, lengths)
    entries = keys | rows.astype(np.uint64)
    entries.sort()
    return DeletionIndex(words, lengths, _letter_bits(codes), _pair_bits(codes), entries)


def _encode_words(words: list[str]) -> tuple[Codes, Ints]:
    """Encode words as rows of character codes, padded with zeros; also return their lengths."""
    array = np.array(words, f"<U{MAX_LETTERS}")
    codes = array.view(np.uint32).reshape(len(words), MAX_LETTERS)
    return codes, np.count_nonzero(codes, axis=1)


def _compute_keys(codes: Codes, lengths: Ints) -> tuple[Ints, UInt64s]:
    """Compute the deletion keys of each word: its row, and a hash of the letters left after each deletion.

    The hash is in the upper half.
    """
    first = codes[:, :PREFIX_LETTERS]
    letters = scramble(first.astype(np.uint64)) * (first != 0)
    spare = np.where(lengths < 6, 1, 2)
    sound = (lengths[:, None] > _LAST) & (spare[:, None] >= _COUNTS)
    numbers = scramble(letters @ _PLACED) >> HALF_BITS << HALF_BITS
    return sound.nonzero()[0], numbers[sound]


def _letter_bits(codes: Codes) -> UInt64s:
    """Compute a bit mask of the letters of each word; letters that are 64 apart share a bit."""
    bits = np.uint64(1) << (codes & np.uint32(63)).astype(np.uint64)
    bits[codes == 0] = 0
    return np.asarray(np.bitwise_or.reduce(bits, axis=1), np.uint64)


def _pair_bits(codes: Codes) -> UInt64s:
    """Compute a bit mask of the adjacent letter pairs of each word; the end counts as a letter."""
    mingled = codes[:, :-1] * np.uint32(23) + codes[:, 1:] * np.uint32(37)
    mingled[codes[:, :-1] == 0] = 0
    return _letter_bits(mingled)


BigramCounter = Callable[[str, str], float]

MAX_KNOWN = 100_000  # words that may be corrections: the most frequent
MAX_WORDS = 12  # of a query that are considered
MAX_CHECKED = 4
RARE_PAGES = 3
RARE_SHARE = 1 / 20_000  # of the pages of the most frequent word
PER_COST = 3.0
MARGIN = log(5)  # by which another word must be better than one that the index has
CANDIDATE_MARGIN = 6.0  # how far behind the best a candidate may be for its context to promote it
MAX_CANDIDATES = 3  # candidates that are scored in context

EDIT_COST, SLIP_COST, FIRST_LETTER_COST = 1.0, 0.5, 0.5
SPLIT_COST = 0.7
MIN_PIECE_LETTERS, MIN_JOINED_LETTERS = 3, 5
MIN_JOINED_RATIO = 10  # as many pages as have the two words apart

_DIGIT = re.compile(r"\d")


@dataclass(frozen=True, slots=True)
class SpellChecker:
    """Data for spelling correction: the vocabulary of the index, and a deletion index of frequent words.

    ``pages`` is the number of pages with each of the frequent words, ``most_pages`` that of the most frequent of all.
    """

    vocabulary: Vocabulary
    deletions: DeletionIndex
    pages: list[int]
    most_pages: int

    def is_rare(self, word: str) -> bool:
        """Check whether few enough pages have a word that it may be a typo."""
        return self.vocabulary.doc_freq(word) <= max(RARE_PAGES, self.most_pages * RARE_SHARE)


def build_spell_checker(vocabulary: Vocabulary) -> SpellChecker:
    """Build the spell checker of a vocabulary; takes about half a second for 100 000 frequent words."""
    frequent = np.argsort(-vocabulary.df, kind="stable")[: 2 * MAX_KNOWN].tolist()
    words = {row: vocabulary.get_word(row) for row in frequent}
    sound = [row for row, word in words.items() if max_edits(word) and not _DIGIT.search(word)][:MAX_KNOWN]
    deletions = build_deletion_index(tuple(words[row] for row in sound))
    return SpellChecker(vocabulary, deletions, vocabulary.df[sound].tolist(), int(vocabulary.df.max(initial=0)))


def correct_words(
    words: Sequence[str], spelling: SpellChecker, followed: BigramCounter | None = None
) -> tuple[str, ...] | None:
    """Correct the spelling of a query's words; None if no correction is better.

    ``followed(one, other)`` returns how many pages have the two words next to each other; it is called a few times.
    """
    asked = tuple(words[:MAX_WORDS])
    if joined := _join_words(asked, spelling, followed):
        return (*joined, *words[MAX_WORDS:])
    found: list[str] = []
    doubted = 0
    for at, word in enumerate(asked):
        better = None
        if doubted < MAX_CHECKED and not _DIGIT.search(word) and spelling.is_rare(word):
            doubted += 1
            near = _Context(found[-1] if found else "", asked[at + 1] if at + 1 < len(asked) else "", followed)
            better = _choose_correction(word, spelling, near)
        found.extend(better or (word,))
    return None if tuple(found) == asked else (*found, *words[MAX_WORDS:])


def edit_cost(meant: str, typed: str, most: float = inf) -> float:
    """Return the cost of the typo that turned the intended word into the typed one: the cheapest edits.

    If it is more than ``most`` it may be infinite.

    >>> edit_cost("receive", "recieve"), edit_cost("letter", "leter"), edit_cost("kafka", "kavka")
    (0.5, 0.5, 1.0)
    """
    first = 0.0 if meant[:1] == typed[:1] else FIRST_LETTER_COST
    meant, typed = _strip_common(meant, typed)
    typed_drops = _drop_costs(typed)
    older: list[float] = []
    last: list[float] = []
    row = [float(at) for at in range(len(typed) + 1)]
    for i, (letter, drop) in enumerate(zip(meant, _drop_costs(meant), strict=True), 1):
        older, last, row = last, row, [float(i)]
        for j, other in enumerate(typed, 1):
            cost = min(last[j - 1] + (letter != other) * EDIT_COST, last[j] + drop, row[-1] + typed_drops[j - 1])
            if i > 1 and j > 1 and letter == typed[j - 2] and meant[i - 2] == other:
                cost = min(cost, older[j - 2] + SLIP_COST)
            row.append(cost)
        if min(row) > most and min(last) > most:  # transposed letters reach back two rows
            return inf
    return first + row[-1]


def _strip_common(one: str, other: str) -> tuple[str, str]:
    """Strip the common prefix and suffix of two words, but keep one letter before the difference."""
    shorter = min(len(one), len(other))
    start = next((at for at in range(shorter) if one[at] != other[at]), shorter)
    most = shorter - start
    end = next((at for at in range(most) if one[-1 - at] != other[-1 - at]), most)
    start = max(0, start - 1)
    return one[start : len(one) - end], other[start : len(other) - end]


def _drop_costs(word: str) -> list[float]:
    """Return the cost of dropping each letter of a word: less for the second of a doubled letter."""
    return [SLIP_COST if at and letter == word[at - 1] else EDIT_COST for at, letter in enumerate(word)]


@dataclass(frozen=True, slots=True)
class _Context:
    """The neighboring words of a doubted word in the query, and the counter of word pairs."""

    before: str
    behind: str
    followed: BigramCounter | None

    def support(self, first: str, last: str) -> float:
        """Score how well a correction that begins and ends with these words fits its neighbors in the query."""
        if self.followed is None:
            return 0.0
        left = self.followed(self.before, first) if self.before else 0
        right = self.followed(last, self.behind) if self.behind else 0
        return log1p(left) + log1p(right)


def _choose_correction(word: str, spelling: SpellChecker, context: _Context) -> tuple[str, ...] | None:
    """Choose the correction of a doubted word; None if there is none."""
    scored = [*_iter_candidates(word, spelling), *_iter_splits(word, spelling, context.followed)]
    best = sorted(scored, key=lambda each: (-each[0], each[1]))[:MAX_CANDIDATES]
    if not best:
        return None
    if len(best) > 1:
        best = [(score + context.support(pieces[0], pieces[-1]), pieces) for score, pieces in best]
    score, pieces = max(best, key=lambda each: each[0])
    pages = spelling.vocabulary.doc_freq(word)
    return pieces if not pages or score > log(pages) + MARGIN else None


Candidate = tuple[float, tuple[str, ...]]


def _iter_candidates(word: str, spelling: SpellChecker) -> Iterator[Candidate]:
    """Yield spelling candidates within edit distance of a word, scored."""
    reach, known = max_edits(word), spelling.vocabulary.doc_freq(word)
    enough = -inf
    for place in spelling.deletions.find_near(word):
        other, pages = spelling.deletions.words[place], spelling.pages[place]
        if pages <= known or log(pages) - PER_COST * SLIP_COST < enough:
            break  # later ones are no more frequent
        cost = edit_cost(other, word, reach)
        if 0 < cost <= reach + (FIRST_LETTER_COST if other[0] != word[0] else 0):
            score = log(pages) - PER_COST * cost
            enough = max(enough, score - CANDIDATE_MARGIN)
            yield score, (other,)


def _iter_splits(word: str, spelling: SpellChecker, followed: BigramCounter | None) -> Iterator[Candidate]:
    """Yield splits of a word into two known words, scored by how many pages have, or should have, the pair."""
    if len(word) > 2 * MAX_LETTERS:
        return
    pieces = [(word[:at], word[at:]) for at in range(MIN_PIECE_LETTERS, len(word) - MIN_PIECE_LETTERS + 1)]
    known = [(spelling.vocabulary.doc_freq(one), spelling.vocabulary.doc_freq(other)) for one, other in pieces]
    chances = [one * other / max(1, spelling.most_pages) for one, other in known]
    for at in sorted(range(len(pieces)), key=lambda at: -chances[at])[:MAX_CANDIDATES]:
        pages = followed(*pieces[at]) if followed else chances[at]
        if min(known[at]) > RARE_PAGES and pages >= 1:
            yield log(pages) - PER_COST * SPLIT_COST, pieces[at]


def _join_words(
    words: tuple[str, ...], spelling: SpellChecker, followed: BigramCounter | None
) -> tuple[str, ...] | None:
    """Join the first two query words that the index has far more often as one word; None if none are."""
    for at, (one, other) in enumerate(pairwise(words)):
        whole = one + other
        if len(whole) < MIN_JOINED_LETTERS or _DIGIT.search(whole):
            continue
        if _is_one_word(one, other, spelling, followed):
            return (*words[:at], whole, *words[at + 2 :])
    return None


def _is_one_word(one: str, other: str, spelling: SpellChecker, followed: BigramCounter | None) -> bool:
    pages = spelling.vocabulary.doc_freq
    together = pages(one + other)
    if spelling.is_rare(one + other):
        return together > 0 and not (pages(one) and pages(other))
    apart = MIN_JOINED_RATIO * followed(one, other) if followed else min(pages(one), pages(other))
    return together > apart
