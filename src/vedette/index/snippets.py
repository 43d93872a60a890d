"""Choose the snippet of a page's text to show for a query, and the words in it to highlight.

Words match as everywhere else (``vedette.text``): whole, and folded. The best snippet has the most different words of
the query; among such snippets, the one where they are closest together; among those, the first. It begins at a sentence
if one begins near enough, else at a word. A page has a few dozen hits, for which plain lists are faster than arrays.
"""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from vedette.policy import Ints
from vedette.text import WordHashes, compose, hash_words, locate_words

MAX_CHARACTERS = 200_000  # searched of a text that must be tokenized
MAX_HITS = 300  # that compete for the first word of the snippet
MAX_SLOTS = 64
MAX_PLACES = 400  # counted of one word
MAX_CUT_SHIFT = 24  # characters: how far a cut moves to fall between words
ELLIPSIS = "…"

# Words whose letters differ in the text (``vedette.text``).
_NAMES = frozenset({"cplusplus", "csharp", "fsharp", "dotnet"})
# What an ASCII text contains if its white space is not tidy.
_UNTIDY = ("  ", "\n\n", " \n", "\n ", "\t", "\r", "\v", "\f", "\x1c", "\x1d", "\x1e", "\x1f")
_SENTENCE_END = re.compile(r"[.!?…][\"')\]’”»]*\s|[。！？]|\n")  # noqa: RUF001 - full-width signs end sentences too

_BLANK = np.array([chr(code).isspace() for code in range(0x3002)])  # nothing beyond is white space


class Snippet(NamedTuple):
    """A snippet of text, and the parts of it to highlight: pairs of start and end, ordered and disjoint."""

    text: str = ""
    marks: tuple[tuple[int, int], ...] = ()


class Hits(NamedTuple):
    """Where words of the query occur in a text, in order and disjoint, and which query slot each fills."""

    starts: list[int]
    ends: list[int]
    slots: list[int]

    def within(self, start: int, end: int) -> "Hits":
        """Return the hits within a part of the text, counted from its beginning."""
        first, behind = bisect_left(self.starts, start), bisect_right(self.ends, end)
        return Hits(
            [at - start for at in self.starts[first:behind]],
            [at - start for at in self.ends[first:behind]],
            self.slots[first:behind],
        )

    def iterate_parts(self, begins: Sequence[int]) -> Iterator[tuple[int, int, int]]:
        """Iterate over the hits: which part of the text, of those that begin here, the position, and the slot."""
        for start, slot in zip(self.starts, self.slots, strict=True):
            yield max(bisect_right(begins, start) - 1, 0), start, slot


class PlainText:
    """A plain ASCII text, where searching each word is far faster than tokenizing; its hits are found part by part."""

    def __init__(self, text: str, wanted: Sequence[Sequence[str]]) -> None:
        self._lower = text.lower()
        self._words = _list_words(wanted)

    def within(self, start: int, end: int) -> Hits:
        """Return the hits within a part of the text, counted from its beginning."""
        return _find_plain_hits(self._lower[start:end], self._words)

    def iterate_parts(self, begins: Sequence[int]) -> Iterator[tuple[int, int, int]]:
        """Iterate over the first hits of each word in each part of the text: part, position, and slot."""
        lower = self._lower
        for word, slot in self._words:
            start = lower.find(word)
            while start >= 0:
                end = start + len(word)
                if not lower[start - 1 : start].isalnum() and not lower[end : end + 1].isalnum():
                    part = bisect_right(begins, start)
                    yield max(part - 1, 0), start, slot
                    if part == len(begins):
                        break
                    end = begins[part]
                start = lower.find(word, end)


SearchedText = Hits | PlainText


def tidy_text(text: str) -> tuple[str, bool]:
    """Collapse runs of white space in a text; also return whether the text is plain ASCII.

    In a plain text all letters are ASCII, and nothing else is part of a word, so its words can be searched directly.

    >>> tidy_text("As  it   is"), tidy_text("naïve")
    (('As it is', True), ('naïve', False))
    """
    text = text.strip() if text.isascii() and _is_tidy(text) else _normalize_space(text)
    return text, text.isascii() or not any(map(_is_foreign_letter, sorted(set(text))))


def cut_snippet(text: str, hits: Hits, most: int) -> Snippet:
    """Cut the best snippet, at most ``most`` characters long, from a text with its hits (``find_hits``).

    >>> text, hits = find_hits("Gulls nest here. Many birds eat fish, as Gulls do.", [["gulls"], ["fish", "crab"]])
    >>> piece = cut_snippet(text, hits, 40)
    >>> piece.text, [piece.text[start:end] for start, end in piece.marks]
    ('…Many birds eat fish, as Gulls do.', ['fish', 'Gulls'])
    """
    if most <= 0:
        return Snippet()
    if len(text) <= most:
        return Snippet(text.replace("\n", " "), _merge_marks(hits, 0, len(text), 0))
    first, last = _choose_span(hits, most - 2 * len(ELLIPSIS))
    start = _choose_start(text, first, last, most)
    end = _choose_end(text, start, last, most - len(ELLIPSIS) * (start > 0))
    before, behind = ELLIPSIS * (start > 0), ELLIPSIS * (end < len(text))
    shown = text[start:end].replace("\n", " ")
    return Snippet((before + shown + behind)[:most], _merge_marks(hits, start, end, len(before)))


def highlight_words(text: str, wanted: Sequence[Sequence[str]]) -> Snippet:
    """Highlight the words of the query in a whole text, such as a title.

    >>> highlight_words("Der Große\u00a0 Bär", [["grosse"], ["bar", "baren"]])
    Snippet(text='Der Große Bär', marks=((4, 9), (10, 13)))
    """
    text, hits = find_hits(text, wanted)
    return Snippet(text.replace("\n", " "), _merge_marks(hits, 0, len(text), 0))


def _normalize_space(text: str) -> str:
    """Normalize white space in a snippet's text to one space or line end; lone surrogates are replaced."""
    if text.isascii() and not any(blank in text for blank in _UNTIDY):
        return text.strip()
    text = text.replace(" \n", "\n")  # the first of a run is kept, and line ends take precedence over spaces
    coding = "ascii" if text.isascii() else "utf-32-le"
    codes: Ints = np.frombuffer(text.encode(coding, "replace"), "u1" if text.isascii() else "u4")
    blank = _BLANK.take(codes, mode="clip")
    kept = ~blank
    kept[1:] |= ~blank[:-1]
    codes, blank = codes[kept], blank[kept]
    codes[blank & (codes != ord("\n"))] = ord(" ")
    return codes.tobytes().decode(coding).rstrip()


def _is_tidy(text: str) -> bool:
    """Check whether a long ASCII text has single spaces and line ends, and no other white space."""
    codes = np.frombuffer(text.encode(), np.uint8)
    blank = codes <= ord(" ")
    # In a long text this takes a fifth of the time of searching for each kind. Few texts have other control characters.
    return not (blank[1:] & blank[:-1]).any() and not (blank & (codes != ord(" ")) & (codes != ord("\n"))).any()


class _QueryNumbers(NamedTuple):
    """The hashes of the query's words, ascending, and the query slot that each fills."""

    numbers: WordHashes
    slots: Ints


@lru_cache(maxsize=16)  # one query makes many snippets
def _compile_query(wanted: tuple[tuple[str, ...], ...]) -> _QueryNumbers:
    """Compile the query's words into sorted hashes; a word that fills two slots fills the first."""
    slots: dict[int, int] = {}
    for slot, words in enumerate(wanted[:MAX_SLOTS]):
        for number in hash_words(" ".join(words).encode("utf-8", "replace")).tolist():
            slots.setdefault(number, slot)
    numbers = sorted(slots)
    return _QueryNumbers(np.array(numbers, np.uint32), np.array([slots[number] for number in numbers], np.int64))


def search_text(
    text: str, wanted: Sequence[Sequence[str]], *, is_plain: bool | None = None
) -> tuple[str, SearchedText]:
    """Search a text for the query's words; return the tidied text, perhaps normalized, and where to find hits in it.

    ``wanted`` has the words of each slot of the query, in indexed form; any one of them fills the slot. ``is_plain`` is
    what ``tidy_text`` returned for the text, where it is known to be tidy.
    """
    if is_plain is None:
        text, is_plain = tidy_text(text)
    if is_plain and not any(word in _NAMES for words in wanted for word in words):
        return text, PlainText(text, wanted)
    sought = _compile_query(tuple(map(tuple, wanted)))
    text = text[:MAX_CHARACTERS]
    found = locate_words(text)
    if found is None:
        text = compose(text)
        found = locate_words(text)
    if found is None or not len(sought.numbers):
        return text, Hits([], [], [])
    places = np.searchsorted(sought.numbers, found.numbers)
    places[places == len(sought.numbers)] = 0
    hit = (sought.numbers[places] == found.numbers).nonzero()[0]
    return text, Hits(found.starts[hit].tolist(), found.ends[hit].tolist(), sought.slots[places[hit]].tolist())


def find_hits(text: str, wanted: Sequence[Sequence[str]]) -> tuple[str, Hits]:
    """Find all of the query's words in a text; return the tidied text, perhaps normalized, and the hits."""
    text, found = search_text(text, wanted)
    return text, found.within(0, len(text))


@lru_cache(maxsize=4096)
def _is_foreign_letter(character: str) -> bool:
    return not character.isascii() and unicodedata.category(character)[0] in "LMNC"


def _list_words(wanted: Sequence[Sequence[str]]) -> list[tuple[str, int]]:
    """List the words of the query with their slots; a word that fills two slots fills the first."""
    slots: dict[str, int] = {}
    for slot, words in enumerate(wanted[:MAX_SLOTS]):
        for word in words:
            if word:
                slots.setdefault(word, slot)
    return list(slots.items())


def _find_plain_hits(lower: str, words: list[tuple[str, int]]) -> Hits:
    """Find words in a plain ASCII text in lower case, each for the first few hundred times."""
    find = lower.find
    found: dict[int, tuple[int, int]] = {}
    for word, slot in words:
        start, places = find(word), MAX_PLACES
        while start >= 0 and places:
            end = start + len(word)
            if not lower[start - 1 : start].isalnum() and not lower[end : end + 1].isalnum():
                found.setdefault(start, (end, slot))
            start, places = find(word, end), places - 1
    starts = sorted(found)
    return Hits(starts, [found[start][0] for start in starts], [found[start][1] for start in starts])


def _choose_span(hits: Hits, room: int) -> tuple[int, int]:
    """Choose the span of query hits that the snippet should show."""
    best, first, last = (0, 0), 0, 0
    next_ends: dict[int, int] = {}  # where the next word of each slot ends, seen from the hit
    for start, end, slot in zip(*(column[MAX_HITS - 1 :: -1] for column in hits), strict=True):
        next_ends[slot] = end
        near = [other for other in next_ends.values() if other - start <= room]
        reach = max(near, default=start)
        rank = (-len(near), reach - start)
        if rank <= best:  # the first of equal ones
            best, first, last = rank, start, reach
    return first, last


def _choose_start(text: str, first: int, last: int, most: int) -> int:
    """Choose where the snippet begins: at a sentence, else at a word, so that the hits fit after it."""
    room = most - 2 * len(ELLIPSIS)
    if last <= room * 2 // 3:
        return 0
    earliest = max(0, first - max(0, room - (last - first)) * 2 // 3)
    borders = [found.end() for found in _SENTENCE_END.finditer(text, earliest, first)]
    if borders:
        return borders[0]
    start = max(0, last - room, min(first - room // 4, len(text) - room))
    space = text.find(" ", start, min(first, start + MAX_CUT_SHIFT))
    return start if space < 0 else space + 1


def _choose_end(text: str, start: int, last: int, most: int) -> int:
    """Choose where the snippet ends: at the end of the text, else between words."""
    if len(text) - start <= most:
        return len(text)
    end = start + most - len(ELLIPSIS)
    space = max(text.rfind(border, max(last, end - MAX_CUT_SHIFT), end + 1) for border in " \n")
    return end if space < 0 else space


def _merge_marks(hits: Hits, start: int, end: int, shift: int) -> tuple[tuple[int, int], ...]:
    """Convert the hits inside a snippet to highlight ranges; ranges that touch are merged."""
    inside = slice(bisect_left(hits.starts, start), bisect_right(hits.ends, end))
    marks: list[tuple[int, int]] = []
    for first, last in zip(hits.starts[inside], hits.ends[inside], strict=True):
        mark = first - start + shift, last - start + shift
        if marks and marks[-1][1] >= mark[0]:
            marks[-1] = marks[-1][0], mark[1]
        else:
            marks.append(mark)
    return tuple(marks)
