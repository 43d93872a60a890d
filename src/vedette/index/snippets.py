"""Which piece of a page's text to show for a query, and what in it to highlight.

Words match as everywhere else (``vedette.words``): whole, and folded. The best piece has the most different words of
the query; among such pieces, the one where they stand closest together; among those, the first. It begins at a sentence
if one begins near enough, else at a word. Everything is done on arrays of the words' numbers and places, once over the
text.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from vedette.decide import Ints
from vedette.words import Numbers, composed, located, numbers_of

__all__ = ["Piece", "mark_words", "snippet_of"]

MOST_CHARACTERS = 200_000  # of a text that are looked at
MOST_HITS = 2_000  # that compete for the first word of the piece
MOST_SLOTS = 64
BORDER_WITHIN = 24  # characters: how far a cut moves to fall between words
ELLIPSIS = "…"

_SENTENCE_END = re.compile(r"[.!?…][\"')\]’”»]*\s|[。！？]|\n")  # noqa: RUF001 - full-width signs end sentences too

_BLANK = np.array([chr(code).isspace() for code in range(0x3002)])  # nothing behind is white space


class Piece(NamedTuple):
    """A piece of text, and which parts of it to highlight: pairs of start and end, in order and apart."""

    text: str = ""
    marks: tuple[tuple[int, int], ...] = ()


class _Hits(NamedTuple):
    """Where words of the query stand in a text, and which slot of the query each fills."""

    starts: Ints
    ends: Ints
    slots: Ints


def snippet_of(text: str, wanted: Sequence[Sequence[str]], most: int = 200) -> Piece:
    """The best piece of a text, of so many characters at most.

    ``wanted`` has the words of each slot of the query, in indexed form; any one of them fills the slot.

    >>> piece = snippet_of("Gulls nest here. Many birds eat fish, as Gulls do.", [["gulls"], ["fish", "crab"]], 40)
    >>> piece.text, [piece.text[start:end] for start, end in piece.marks]
    ('…Many birds eat fish, as Gulls do.', ['fish', 'Gulls'])
    """
    if most <= 0:
        return Piece()
    text, hits = _hits(_tidy(text[:MOST_CHARACTERS]), wanted)
    if len(text) <= most:
        return Piece(text.replace("\n", " "), _marks(hits, 0, len(text), 0))
    first, last = _best(hits, most - 2 * len(ELLIPSIS))
    start = _start(text, first, last, most)
    end = _end(text, start, last, most - len(ELLIPSIS) * (start > 0))
    before, behind = ELLIPSIS * (start > 0), ELLIPSIS * (end < len(text))
    shown = text[start:end].replace("\n", " ")
    return Piece((before + shown + behind)[:most], _marks(hits, start, end, len(before)))


def mark_words(text: str, wanted: Sequence[Sequence[str]]) -> Piece:
    """A whole text, such as a title, with the words of the query marked.

    >>> mark_words("Der Große\u00a0 Bär", [["grosse"], ["bar", "baren"]])
    Piece(text='Der Große Bär', marks=((4, 9), (10, 13)))
    """
    text, hits = _hits(_tidy(text), wanted)
    return Piece(text.replace("\n", " "), _marks(hits, 0, len(text), 0))


def _tidy(text: str) -> str:
    """The text with one space or line end for all white space in a row; halves of characters become signs."""
    text = text.replace(" \n", "\n")  # the first of a row is kept, and line ends say more than spaces
    coding = "ascii" if text.isascii() else "utf-32-le"
    codes: Ints = np.frombuffer(text.encode(coding, "replace"), "u1" if text.isascii() else "u4")
    blank = _BLANK.take(codes, mode="clip")
    kept = ~blank
    kept[1:] |= ~blank[:-1]
    codes, blank = codes[kept], blank[kept]
    codes[blank & (codes != ord("\n"))] = ord(" ")
    return codes.tobytes().decode(coding).rstrip()


class _Sought(NamedTuple):
    """The numbers of the words that are wanted, in rising order, and the slot that each fills."""

    numbers: Numbers
    slots: Ints


@lru_cache(maxsize=16)  # one query makes many snippets
def _sought(wanted: tuple[tuple[str, ...], ...]) -> _Sought:
    """A word that fills two slots fills the first."""
    slots: dict[int, int] = {}
    for slot, words in enumerate(wanted[:MOST_SLOTS]):
        for number in numbers_of(" ".join(words).encode("utf-8", "replace")).tolist():
            slots.setdefault(number, slot)
    numbers = sorted(slots)
    return _Sought(np.array(numbers, np.uint32), np.array([slots[number] for number in numbers], np.int64))


def _hits(text: str, wanted: Sequence[Sequence[str]]) -> tuple[str, _Hits]:
    """Where the query's words stand in a text, and the text, which may have to be spelt another way for that."""
    sought = _sought(tuple(map(tuple, wanted)))
    found = located(text)
    if found is None:
        text = composed(text)
        found = located(text)
    if found is None or not len(sought.numbers):
        return text, _Hits(*np.zeros((3, 0), np.int64))
    places = np.searchsorted(sought.numbers, found.numbers)
    places[places == len(sought.numbers)] = 0
    hit = (sought.numbers[places] == found.numbers).nonzero()[0]
    return text, _Hits(found.starts[hit], found.ends[hit], sought.slots[places[hit]])


def _best(hits: _Hits, room: int) -> tuple[int, int]:
    """Where the words begin and end that the piece is about."""
    starts, ends, slots = (column[:MOST_HITS] for column in hits)
    if not len(starts):
        return 0, 0
    of_slot = slots[:, None] == np.unique(slots)
    far = np.iinfo(np.int64).max
    # For each hit, and each slot: where that slot's next word ends, from here on.
    next_ends = np.minimum.accumulate(np.where(of_slot, ends[:, None], far)[::-1])[::-1]
    near = next_ends - starts[:, None] <= room
    last = np.where(near, next_ends, starts[:, None]).max(axis=1)
    best = np.lexsort((starts, last - starts, -near.sum(axis=1)))[0]
    return int(starts[best]), int(last[best])


def _start(text: str, first: int, last: int, most: int) -> int:
    """Where the piece begins: at a sentence, else at a word, so that what it is about has room behind."""
    room = most - 2 * len(ELLIPSIS)
    if last <= room * 2 // 3:
        return 0
    earliest = max(0, first - max(0, room - (last - first)) * 2 // 3)
    borders = [found.end() for found in _SENTENCE_END.finditer(text, earliest, first)]
    if borders:
        return borders[0]
    start = max(0, last - room, min(first - room // 4, len(text) - room))
    space = text.find(" ", start, min(first, start + BORDER_WITHIN))
    return start if space < 0 else space + 1


def _end(text: str, start: int, last: int, most: int) -> int:
    """Where the piece ends: with the text, else between words."""
    if len(text) - start <= most:
        return len(text)
    end = start + most - len(ELLIPSIS)
    space = max(text.rfind(border, max(last, end - BORDER_WITHIN), end + 1) for border in " \n")
    return end if space < 0 else space


def _marks(hits: _Hits, start: int, end: int, shift: int) -> tuple[tuple[int, int], ...]:
    """The hits that lie in a piece, as ranges of what is shown; ranges that touch are one."""
    inside = (hits.starts >= start) & (hits.ends <= end)
    marks: list[tuple[int, int]] = []
    for first, last in zip(hits.starts[inside].tolist(), hits.ends[inside].tolist(), strict=True):
        mark = first - start + shift, last - start + shift
        if marks and marks[-1][1] >= mark[0]:
            marks[-1] = marks[-1][0], mark[1]
        else:
            marks.append(mark)
    return tuple(marks)
