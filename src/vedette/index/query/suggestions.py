"""Search suggestions: complete what is being typed with frequent words and with titles that contain it.

Phrases (titles, headings, link texts) are indexed by their words. Words are sorted, so all words with the typed prefix
are adjacent, and so are the lists of their phrases: whatever is typed, the phrases of its last word are one slice of
one array. Phrases are numbered best first, so the best of a slice have the smallest numbers, and a table of their words
shows whether they have the other words as well.

A phrase ranks higher the more weight it has and the shorter it is; one that begins with the input goes before one that
contains it elsewhere. Words with a typo, in any position, are corrected first: whole ones by the spell checker, and
the last one, which is only begun, by trying what one edit makes of it.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from string import ascii_lowercase

import numpy as np
import numpy.typing as npt

from vedette.index.query.spelling import SpellChecker, correct_words
from vedette.index.query.vocabulary import Vocabulary, is_stop_word
from vedette.policy import Ints
from vedette.text import normalize_words, split_words

Numbers = npt.NDArray[np.int32]

MAX_SHOWN_WORDS = 8
MAX_LETTERS = 80
MAX_WORDS = 16  # by which a phrase is found; what is displayed as one word may be several
MAX_TYPED = 200
MAX_FILTERED = 8192
MAX_SORTED = 64
MAX_COMPLETED = 12
MIN_PREFIX, MAX_PREFIX = 4, 16  # letters of an incomplete word that may have a typo
MAX_WORD_COMPLETIONS = 2  # completions of the last word that are offered besides phrases
SHORT = 8  # letters that make no difference to the rank of a phrase
LAST_CHARACTER = "\U0010ffff"


@dataclass(frozen=True, slots=True)
class Suggestions:
    """Index of phrases and words for search suggestions.

    ``phrases`` are as people wrote them, ``forms`` their words (``vedette.text``), both best first. Of the phrases'
    words in ``words``, in alphabetical order, word w has the phrases ``filed[starts[w]:starts[w + 1]]``; ``table`` has
    the words of each phrase, padded with -1.
    """

    phrases: tuple[str, ...]
    forms: tuple[str, ...]
    words: tuple[str, ...]
    starts: Ints
    filed: Numbers
    table: Numbers
    vocabulary: Vocabulary

    def complete(self, typed: str, most: int = 8, spelling: SpellChecker | None = None) -> tuple[str, ...]:
        """Return the best completions of the input; no two read alike, and none repeats the input.

        Words that no page has are corrected by ``spelling``, the last by how it begins.
        """
        text = typed[:MAX_TYPED]
        words = split_words(text)
        if not words or most < 1:
            return ()
        # The last word is incomplete if the next letter would still belong to it.
        is_open = len(split_words(f"{text}x")) == len(words)
        meant = words if spelling is None else self._correct(words, spelling, is_open=is_open)
        found = self._complete_words(meant, is_open=is_open, most=most)
        if meant == words or not self.vocabulary.doc_freq(meant[-1]):
            return found
        return (" ".join(meant), *found)[:most]

    def complete_word(self, word: str, most: int) -> list[str]:
        """Return the most frequent words that begin like this one; if there are none, like one with a typo less."""
        rows = self.vocabulary.find_prefix(word) or self.vocabulary.find_prefix(self._correct_prefix(word))
        pages = self.vocabulary.df[rows.start : rows.stop]
        return [self.vocabulary.get_word(row + rows.start) for row in _pick_largest(pages, most).tolist()]

    def _correct(self, words: list[str], spelling: SpellChecker, *, is_open: bool) -> list[str]:
        """Correct the words that no page has, each by itself, and the last one by its beginning if it is incomplete."""
        whole = words[:-1] if is_open else words
        meant = [
            piece
            for word in whole
            for piece in (not self.vocabulary.doc_freq(word) and correct_words([word], spelling)) or (word,)
        ]
        if is_open:
            last = words[-1]
            meant.append(last if self.vocabulary.find_prefix(last) else self._correct_prefix(last))
        return meant

    def _correct_prefix(self, prefix: str) -> str:
        """Return the beginning of the most frequent word whose beginning differs by one edit; itself if none does."""
        if not MIN_PREFIX <= len(prefix) <= MAX_PREFIX:
            return prefix
        # No word begins with more than this, so that a typo further on would not matter.
        known = next(
            end for end in range(len(prefix) - 1, -1, -1) if not end or self.vocabulary.find_prefix(prefix[:end])
        )
        best, pages = prefix, 0
        for near in _list_edits(prefix, known):
            rows = self.vocabulary.find_prefix(near)
            most = int(self.vocabulary.df[rows.start : rows.stop].max(initial=0)) if rows else 0
            if most > pages:
                best, pages = near, most
        return best

    def _complete_words(self, words: list[str], *, is_open: bool, most: int) -> tuple[str, ...]:
        begun = list(self._complete_word(words)) if is_open else []
        phrases = list(self._find_phrases(words, is_open=is_open, most=most))
        offered = [*begun, *phrases] if len(words) == 1 else [*phrases, *begun]
        return _deduplicate(offered, " ".join(words))[:most]

    def _complete_word(self, words: list[str]) -> Iterator[tuple[str, str]]:
        """Yield the input with its last word completed to frequent words of the index."""
        rows = self.vocabulary.find_prefix(words[-1])
        pages = self.vocabulary.df[rows.start : rows.stop]
        best = map(self.vocabulary.get_word, (_pick_largest(pages, MAX_COMPLETED) + rows.start).tolist())
        telling = [word for word in best if word != words[-1] and not is_stop_word(word)]
        for word in telling[:MAX_WORD_COMPLETIONS]:
            form = " ".join([*words[:-1], word])
            if len(words) <= MAX_SHOWN_WORDS and len(form) <= MAX_LETTERS:
                yield form, form

    def _find_phrases(self, words: list[str], *, is_open: bool, most: int) -> Iterator[tuple[str, str]]:
        """Yield the best suggested phrases that have all words; the last word may be a prefix."""
        ranges = [self._find_range(word, word + "\0") for word in words[:-1]]
        ranges.append(self._find_range(words[-1], words[-1] + (LAST_CHARACTER if is_open else "\0")))
        numbers = self._intersect(ranges)
        form = " ".join(words)
        leading = sorted(numbers.tolist(), key=lambda number: not self.forms[number].startswith(form))
        yield from ((self.forms[number], self.phrases[number]) for number in leading[: most + 1])

    def _find_range(self, first: str, end: str) -> tuple[int, int]:
        """Return the range of sorted words from one word up to, but not including, another."""
        return bisect_left(self.words, first), bisect_left(self.words, end)

    def _intersect(self, ranges: list[tuple[int, int]]) -> Numbers:
        """Find the best phrases that have a word of each range, in order; nested ranges need distinct words."""
        distinct = tuple(dict.fromkeys(ranges))
        slices = [self.filed[self.starts[first] : self.starts[end]] for first, end in distinct]
        numbers = _pick_smallest(min(slices, key=len), MAX_FILTERED if len(distinct) > 1 else MAX_SORTED)
        for first, end in distinct if len(distinct) > 1 else ():
            needed = sum(first <= other and other_end <= end for other, other_end in distinct)
            words = self.table[numbers]
            numbers = numbers[((words >= first) & (words < end)).sum(axis=1) >= needed]
        return numbers[:MAX_SORTED]


def _list_edits(word: str, last: int) -> list[str]:
    """List the words one edit away that begin with the same letter; the edit is not behind the position ``last``.

    >>> "stream" in _list_edits("straem", 3), "kafka" in _list_edits("kavka", 2), "kavka" in _list_edits("kavka", 4)
    (True, True, False)
    """
    parts = [(word[:at], word[at:]) for at in range(1, last + 1)]
    letters = sorted({*ascii_lowercase, *word})
    edits = [before + after[1] + after[0] + after[2:] for before, after in parts if len(after) > 1]
    edits += [before + after[1:] for before, after in parts if after]
    edits += [before + letter + after[1:] for before, after in parts if after for letter in letters]
    edits += [before + letter + after for before, after in parts for letter in letters]
    return [edit for edit in dict.fromkeys(edits) if edit != word]


def build_suggestions(phrases: Iterable[tuple[str, float]], vocabulary: Vocabulary) -> Suggestions:
    """Build search suggestions from weighted phrases; equal phrases add up and show their heaviest spelling.

    Long phrases are cut to their beginning.

    >>> from vedette.index.query.vocabulary import build_vocabulary
    >>> pages = [("kafka", 90), ("streams", 40), ("strong", 2)]
    >>> vocabulary = build_vocabulary(pages, lambda language, words: list(words), [])
    >>> titles = [("Kafka Streams", 2.0), ("KAFKA streams!", 1.0), ("Streams of Kafka: an introduction", 2.0)]
    >>> suggestions = build_suggestions(titles, vocabulary)
    >>> suggestions.complete("kafka st")
    ('Kafka Streams', 'Streams of Kafka: an introduction', 'kafka strong')
    >>> suggestions.complete("Ka")
    ('kafka', 'Kafka Streams', 'Streams of Kafka: an introduction')
    """
    merged: dict[str, tuple[float, float, str]] = {}
    for text, weight in phrases:
        shown, form = _shorten(text)
        total, heaviest, best = merged.get(form, (0.0, weight, shown))
        merged[form] = total + weight, max(heaviest, weight), shown if weight > heaviest else best
    merged.pop("", None)
    ordered = sorted(merged, key=lambda form: (-merged[form][0] / (SHORT + len(form)), form))
    return _build_index(tuple(ordered), tuple(merged[form][2] for form in ordered), vocabulary)


def _build_index(forms: tuple[str, ...], phrases: tuple[str, ...], vocabulary: Vocabulary) -> Suggestions:
    split = [form.split(" ", MAX_WORDS)[:MAX_WORDS] for form in forms]
    lengths = np.array([len(words) for words in split], np.int64)
    every = [word for words in split for word in words]
    words = tuple(sorted(set(every)))
    number_of = {word: number for number, word in enumerate(words)}
    numbers = np.array([number_of[word] for word in every], np.int32)
    rows = np.repeat(np.arange(len(forms), dtype=np.int32), lengths)
    columns = np.arange(len(every)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    table = np.full((len(forms), MAX_WORDS), -1, np.int32)
    table[rows, columns] = numbers
    order = np.argsort(numbers, kind="stable")
    starts = np.searchsorted(numbers[order], np.arange(len(words) + 1))
    return Suggestions(phrases, forms, words, starts, rows[order], table, vocabulary)


def _shorten(text: str) -> tuple[str, str]:
    """Shorten a phrase to the part that is suggested, with its words; both empty if nothing is."""
    shown = text[: 4 * MAX_LETTERS]
    if not shown.isprintable():
        shown = "".join(character if character.isprintable() else " " for character in shown)
    words = shown.split(None, MAX_SHOWN_WORDS)[:MAX_SHOWN_WORDS]
    while words and sum(map(len, words)) + len(words) - 1 > MAX_LETTERS:
        words.pop()
    shown = " ".join(words)
    return shown, normalize_words(shown).decode()


def _deduplicate(offered: list[tuple[str, str]], typed: str) -> tuple[str, ...]:
    """Deduplicate suggestions: keep the first of each form, and drop the input itself."""
    shown: dict[str, str] = {}
    for form, text in offered:
        shown.setdefault(form, text)
    shown.pop(typed, None)
    return tuple(shown.values())


def _pick_largest(values: Ints, most: int) -> Ints:
    """Return the positions of the ``most`` largest values, largest first."""
    places = np.argpartition(-values, most)[:most] if len(values) > most else np.arange(len(values))
    return places[np.lexsort((places, -values[places]))]


def _pick_smallest(numbers: Numbers, most: int) -> Numbers:
    """Return up to ``most`` distinct phrase numbers, the smallest ones, in order."""
    return np.unique(np.partition(numbers, most)[:most] if len(numbers) > most else numbers)
