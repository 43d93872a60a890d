"""Choose the snippet of a page's text to show for a query, and the words in it to highlight.

Words match as everywhere else (``vedette.text``): whole, and folded. The best snippet has the most different words of
the query; among such snippets, the one where they are closest together; among those, the first. It begins at a sentence
if one begins near enough, else at a word. A page has a few dozen hits, for which plain lists are faster than arrays.
"""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from vedette.policy import Ints
from vedette.text import WordHashes, compose, hash_words, locate_words

MAX_CHARACTERS = 200_000  # searched of a text that must be tokenized
MAX_HITS = 300  # that compete for the first word of the snippet
MAX_SLOTS = 64
MAX_PLACES = 400  # counted of one word
STEM_LETTERS = 3  # that words share if they are searched together
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

    def list_parts(self, begins: list[int]) -> list[tuple[int, int, int]]:
        """List the hits: which part of the text, of those that begin here, the position, and the slot."""
        pairs = zip(self.starts, self.slots, strict=True)
        return [(max(bisect_right(begins, start) - 1, 0), start, slot) for start, slot in pairs]


class PlainText:
    """A plain text, where searching each word is far faster than tokenizing; its hits are found part by part.

    The words of a slot are mostly forms of one word, so what they begin with is searched, once for all of them.
    """

    def __init__(self, text: str, wanted: Sequence[Sequence[str]]) -> None:
        if not text.isascii():  # to search single bytes is faster, and only ASCII characters are in words
            text = text.encode("ascii", "replace").decode("ascii")
        self._lower = text.lower()
        self._slots = _number_slots(wanted)
        self._stems = _list_stems(self._slots)

    def within(self, start: int, end: int) -> Hits:
        """Return the hits within a part of the text, each stem for the first few hundred times."""
        lower, found = self._lower[start:end], []
        for stem, slot in self._stems:
            at = lower.find(stem)
            for _ in range(MAX_PLACES):
                if at < 0:
                    break
                behind = _find_word_end(lower, at, stem, self._slots, slot)
                if behind:
                    found.append((at, behind, slot))
                at = lower.find(stem, at + len(stem))
        found.sort()
        return Hits([hit[0] for hit in found], [hit[1] for hit in found], [hit[2] for hit in found])

    def list_parts(self, begins: list[int]) -> list[tuple[int, int, int]]:
        """List the first hits of each stem in each part of the text: part, position, and slot."""
        lower, found = self._lower, []
        for stem, slot in self._stems:
            start = lower.find(stem)
            while start >= 0:
                end = start + len(stem)
                if _find_word_end(lower, start, stem, self._slots, slot):
                    part = bisect_right(begins, start)
                    found.append((max(part - 1, 0), start, slot))
                    if part == len(begins):
                        break
                    end = begins[part]
                start = lower.find(stem, end)
        return found


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


def _number_slots(wanted: Sequence[Sequence[str]]) -> dict[str, int]:
    """Return the slot of each word of the query; a word that fills two slots fills the first."""
    slots: dict[str, int] = {}
    for slot, words in enumerate(wanted[:MAX_SLOTS]):
        for word in words:
            if word:
                slots.setdefault(word, slot)
    return slots


def _list_stems(slots: dict[str, int]) -> list[tuple[str, int]]:
    """List what the words of each slot begin with, so that none is the beginning of another one of its slot.

    >>> _list_stems({"store": 0, "stored": 0, "storage": 0, "sold": 0, "stores": 1})
    [('stor', 0), ('sold', 0), ('stores', 1)]
    """
    groups: dict[tuple[int, str], str] = {}
    for word, slot in slots.items():
        key = slot, word[:STEM_LETTERS]
        groups[key] = _cut_common(groups[key], word) if key in groups else word
    return [(stem, slot) for (slot, _), stem in groups.items()]


def _cut_common(one: str, other: str) -> str:
    """Return what both words begin with."""
    while not other.startswith(one):
        one = one[:-1]
    return one


def _find_word_end(lower: str, start: int, stem: str, slots: dict[str, int], slot: int) -> int:
    """Return where the word that starts here with a stem ends, if it is a word of the slot; else 0."""
    if start and lower[start - 1].isalnum():
        return 0
    end = start + len(stem)
    while end < len(lower) and lower[end].isalnum():
        end += 1
    return end if slots.get(lower[start:end]) == slot else 0


def _choose_span(hits: Hits, room: int) -> tuple[int, int]:
    """Choose the span of query hits that the snippet should show."""
    most, shortest, first, last = 0, 0, 0, 0
    starts, ends, slots = hits
    next_ends: dict[int, int] = {}  # where the next word of each slot ends, seen from the hit
    for row in range(min(len(starts), MAX_HITS) - 1, -1, -1):
        start = starts[row]
        next_ends[slots[row]] = ends[row]
        near, reach = 0, start
        for end in next_ends.values():
            if end - start <= room:
                near += 1
                reach = max(reach, end)
        if near > most or (near == most and reach - start <= shortest):  # the first of equal ones
            most, shortest, first, last = near, reach - start, start, reach
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
