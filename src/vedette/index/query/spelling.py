"""Did you mean? Another spelling of a query, where the index knows it much better.

A word is *doubted* when the index hardly has it. Words within its reach (``deletions``) are weighed as by a noisy
channel: how frequent they are, against how unlikely the slip would be,

    score = log(pages with it) - 3 * cost

so that a slip must make a word twenty times as frequent for each edit. Letters that change places and letters doubled
or not are the usual slips and cost half; the first letter is seldom wrong, and costs more. A word may also be two run
together, or two words one that was taken apart. Where the caller can say how often words follow each other, that
decides between candidates, and no split is offered that no page has.

Numbers and words that the index knows well are never touched: a query is not wrong because another one is common.

Useful for: slips of the finger in words that the index has.
Not useful for: confused words that all exist ("their", "there"), and names that no page has.
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
from vedette.text import stirred

__all__ = [
    "Deletions",
    "Followed",
    "Spelling",
    "build_deletions",
    "build_spelling",
    "corrected",
    "reach_of",
    "slip_cost",
]

# Two words that are a few edits apart become the same when a few letters are deleted from each. So every known word
# is filed under the numbers of what is left of its first letters when up to two are deleted, and a word is looked up
# under the same. It is enough to look at the first ``WIDTH`` letters: an edit moves at most one letter out of them.
# The idea is that of SymSpell (W. Garbe, 2012). Here a file is an array of 64-bit entries, a number's upper half
# being the hash of what is left and the lower the word, for all words at once. Words are numbered by how frequent
# they are, so that the most frequent neighbours stand first and a crowd of others can be cut off.


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


Followed = Callable[[str, str], float]

MOST_KNOWN = 100_000  # words that anything is corrected to: the most frequent
MOST_WORDS = 12  # of a query that are looked at
MOST_DOUBTED = 4
RARE_PAGES = 3
RARE_SHARE = 1 / 20_000  # of the pages of the most frequent word
PER_COST = 3.0
MARGIN = log(5)  # by which another word must be better than one that the index has
WORTH_A_LOOK = 6.0  # how far behind the best a candidate may be that its context brings forward
FEW = 3  # candidates that are looked at in context

EDIT, USUAL, FIRST = 1.0, 0.5, 0.5
SPLIT_COST = 0.7
SHORTEST_PIECE, SHORTEST_JOINED = 3, 5
JOINED_TIMES = 10  # as many pages as have the two words apart

_DIGIT = re.compile(r"\d")


@dataclass(frozen=True, slots=True)
class Spelling:
    """What is needed to correct: the words of the index, and the frequent ones filed by deletions.

    ``pages`` says how many pages have each of the frequent words, ``most_pages`` how many the most frequent of all.
    """

    vocabulary: Vocabulary
    deletions: Deletions
    pages: list[int]
    most_pages: int

    def is_rare(self, word: str) -> bool:
        """Whether so few pages have a word that it may be a slip."""
        return self.vocabulary.df_of(word) <= max(RARE_PAGES, self.most_pages * RARE_SHARE)


def build_spelling(vocabulary: Vocabulary) -> Spelling:
    """File the frequent words of a vocabulary, in about half a second for 100 000 of them."""
    frequent = np.argsort(-vocabulary.df, kind="stable")[: 2 * MOST_KNOWN].tolist()
    words = {row: vocabulary.word(row) for row in frequent}
    sound = [row for row, word in words.items() if reach_of(word) and not _DIGIT.search(word)][:MOST_KNOWN]
    deletions = build_deletions(tuple(words[row] for row in sound))
    return Spelling(vocabulary, deletions, vocabulary.df[sound].tolist(), int(vocabulary.df.max(initial=0)))


def corrected(words: Sequence[str], spelling: Spelling, followed: Followed | None = None) -> tuple[str, ...] | None:
    """What the words of a query probably should be; None where nothing is better than what is there.

    ``followed(one, other)`` says how many pages have the two words next to each other; it is asked a few times.
    """
    asked = tuple(words[:MOST_WORDS])
    if joined := _joined(asked, spelling, followed):
        return (*joined, *words[MOST_WORDS:])
    found: list[str] = []
    doubted = 0
    for at, word in enumerate(asked):
        better = None
        if doubted < MOST_DOUBTED and not _DIGIT.search(word) and spelling.is_rare(word):
            doubted += 1
            near = _Context(found[-1] if found else "", asked[at + 1] if at + 1 < len(asked) else "", followed)
            better = _better(word, spelling, near)
        found.extend(better or (word,))
    return None if tuple(found) == asked else (*found, *words[MOST_WORDS:])


def slip_cost(meant: str, typed: str, most: float = inf) -> float:
    """How unlikely it is that somebody who meant one word typed another: the cheapest edits from one to the other.

    Where it is more than ``most`` it may be infinite.

    >>> slip_cost("receive", "recieve"), slip_cost("letter", "leter"), slip_cost("kafka", "kavka")
    (0.5, 0.5, 1.0)
    """
    first = 0.0 if meant[:1] == typed[:1] else FIRST
    meant, typed = _differing(meant, typed)
    typed_drops = _drops(typed)
    older: list[float] = []
    last: list[float] = []
    row = [float(at) for at in range(len(typed) + 1)]
    for i, (letter, drop) in enumerate(zip(meant, _drops(meant), strict=True), 1):
        older, last, row = last, row, [float(i)]
        for j, other in enumerate(typed, 1):
            cost = min(last[j - 1] + (letter != other) * EDIT, last[j] + drop, row[-1] + typed_drops[j - 1])
            if i > 1 and j > 1 and letter == typed[j - 2] and meant[i - 2] == other:
                cost = min(cost, older[j - 2] + USUAL)
            row.append(cost)
        if min(row) > most and min(last) > most:  # letters that change places reach back two rows
            return inf
    return first + row[-1]


def _differing(one: str, other: str) -> tuple[str, str]:
    """Two words without what they begin and end with alike, but for one letter before what differs."""
    shorter = min(len(one), len(other))
    start = next((at for at in range(shorter) if one[at] != other[at]), shorter)
    most = shorter - start
    end = next((at for at in range(most) if one[-1 - at] != other[-1 - at]), most)
    start = max(0, start - 1)
    return one[start : len(one) - end], other[start : len(other) - end]


def _drops(word: str) -> list[float]:
    """What it costs to drop each letter: less if it is the second of two alike."""
    return [USUAL if at and letter == word[at - 1] else EDIT for at, letter in enumerate(word)]


@dataclass(frozen=True, slots=True)
class _Context:
    """The words before and behind, where there are any, and who knows what follows what."""

    before: str
    behind: str
    followed: Followed | None

    def support(self, first: str, last: str) -> float:
        """How well something that begins and ends with these words stands there."""
        if self.followed is None:
            return 0.0
        left = self.followed(self.before, first) if self.before else 0
        right = self.followed(last, self.behind) if self.behind else 0
        return log1p(left) + log1p(right)


def _better(word: str, spelling: Spelling, context: _Context) -> tuple[str, ...] | None:
    """What a doubted word should be, or None."""
    scored = [*_single(word, spelling), *_splits(word, spelling, context.followed)]
    best = sorted(scored, key=lambda each: (-each[0], each[1]))[:FEW]
    if not best:
        return None
    if len(best) > 1:
        best = [(score + context.support(pieces[0], pieces[-1]), pieces) for score, pieces in best]
    score, pieces = max(best, key=lambda each: each[0])
    pages = spelling.vocabulary.df_of(word)
    return pieces if not pages or score > log(pages) + MARGIN else None


Scored = tuple[float, tuple[str, ...]]


def _single(word: str, spelling: Spelling) -> Iterator[Scored]:
    """Other words within reach, scored."""
    reach, known = reach_of(word), spelling.vocabulary.df_of(word)
    enough = -inf
    for place in spelling.deletions.near(word):
        other, pages = spelling.deletions.words[place], spelling.pages[place]
        if pages <= known or log(pages) - PER_COST * USUAL < enough:
            break  # those that follow are no more frequent
        cost = slip_cost(other, word, reach)
        if 0 < cost <= reach + (FIRST if other[0] != word[0] else 0):
            score = log(pages) - PER_COST * cost
            enough = max(enough, score - WORTH_A_LOOK)
            yield score, (other,)


def _splits(word: str, spelling: Spelling, followed: Followed | None) -> Iterator[Scored]:
    """The word as two that the index knows, scored by how many pages have them in a row, or should by chance."""
    if len(word) > 2 * LONGEST:
        return
    pieces = [(word[:at], word[at:]) for at in range(SHORTEST_PIECE, len(word) - SHORTEST_PIECE + 1)]
    known = [(spelling.vocabulary.df_of(one), spelling.vocabulary.df_of(other)) for one, other in pieces]
    chances = [one * other / max(1, spelling.most_pages) for one, other in known]
    for at in sorted(range(len(pieces)), key=lambda at: -chances[at])[:FEW]:
        pages = followed(*pieces[at]) if followed else chances[at]
        if min(known[at]) > RARE_PAGES and pages >= 1:
            yield log(pages) - PER_COST * SPLIT_COST, pieces[at]


def _joined(words: tuple[str, ...], spelling: Spelling, followed: Followed | None) -> tuple[str, ...] | None:
    """The words with two of them written as one, if the index has that far more often; the first such pair."""
    for at, (one, other) in enumerate(pairwise(words)):
        whole = one + other
        if len(whole) < SHORTEST_JOINED or _DIGIT.search(whole):
            continue
        if _is_one_word(one, other, spelling, followed):
            return (*words[:at], whole, *words[at + 2 :])
    return None


def _is_one_word(one: str, other: str, spelling: Spelling, followed: Followed | None) -> bool:
    pages = spelling.vocabulary.df_of
    together = pages(one + other)
    if spelling.is_rare(one + other):
        return together > 0 and not (pages(one) and pages(other))
    apart = JOINED_TIMES * followed(one, other) if followed else min(pages(one), pages(other))
    return together > apart
