"""Choose the snippet of a page's text to show for a query, and the words in it to highlight; and its sections.

Words match as everywhere else (``vedette.text``): whole, and folded. The best snippet has the most different words of
the query; among such snippets, the one where they are closest together; among those, the first. It begins at a sentence
if one begins near enough, else at a word. Everything is done on arrays of word hashes and positions, once over the
text.

A section is the text from one heading of the main text to the next. The words of a query count once for each section
that has them, and more if they are in its heading. A word that is in every section of a page tells none of them apart,
so words are weighted by how few sections have them, as pages are by inverse document frequency.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import quote

import numpy as np

from vedette.index.fields import StoredPage
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
    """Where words of the query occur in a text, in order, and which query slot each fills."""

    starts: Ints
    ends: Ints
    slots: Ints

    def within(self, start: int, end: int) -> "Hits":
        """Return the hits within a part of the text, counted from its beginning."""
        inside = (self.starts >= start) & (self.ends <= end)
        return Hits(self.starts[inside] - start, self.ends[inside] - start, self.slots[inside])


def tidy_text(text: str) -> tuple[str, bool]:
    """Collapse runs of white space in a text; also return whether the text is plain ASCII.

    In a plain text all letters are ASCII, and nothing else is part of a word, so its words can be searched directly.

    >>> tidy_text("As  it   is"), tidy_text("naïve")
    (('As it is', True), ('naïve', False))
    """
    text = _normalize_space(text)
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


def find_hits(text: str, wanted: Sequence[Sequence[str]], *, is_plain: bool | None = None) -> tuple[str, Hits]:
    """Find the query's words in a text; return the tidied text, perhaps normalized, and the hits.

    ``wanted`` has the words of each slot of the query, in indexed form; any one of them fills the slot. ``is_plain`` is
    what ``tidy_text`` returned for the text, where it is known to be tidy.
    """
    if is_plain is None:
        text, is_plain = tidy_text(text)
    if is_plain and not any(word in _NAMES for words in wanted for word in words):
        return text, _find_plain_hits(text, wanted)
    sought = _compile_query(tuple(map(tuple, wanted)))
    text = text[:MAX_CHARACTERS]
    found = locate_words(text)
    if found is None:
        text = compose(text)
        found = locate_words(text)
    if found is None or not len(sought.numbers):
        return text, Hits(*np.zeros((3, 0), np.int64))
    places = np.searchsorted(sought.numbers, found.numbers)
    places[places == len(sought.numbers)] = 0
    hit = (sought.numbers[places] == found.numbers).nonzero()[0]
    return text, Hits(found.starts[hit], found.ends[hit], sought.slots[places[hit]])


@lru_cache(maxsize=4096)
def _is_foreign_letter(character: str) -> bool:
    return not character.isascii() and unicodedata.category(character)[0] in "LMNC"


def _find_plain_hits(text: str, wanted: Sequence[Sequence[str]]) -> Hits:
    """Find the query's words in a plain ASCII text, where searching each word is far faster than tokenizing."""
    lower = text.lower()
    found: dict[tuple[int, int], int] = {}
    for slot, words in enumerate(wanted[:MAX_SLOTS]):
        for word in words:
            for place in _find_word(lower, word):
                found.setdefault(place, slot)
    rows = [(*place, slot) for place, slot in sorted(found.items())]
    return Hits(*np.array(rows, np.int64).reshape(-1, 3).T)


def _find_word(text: str, word: str) -> Iterator[tuple[int, int]]:
    """Yield where a word occurs as a whole word in a text, for the first few hundred times."""
    start = text.find(word) if word else -1
    for _ in range(MAX_PLACES):
        if start < 0:
            return
        end = start + len(word)
        if not text[start - 1 : start].isalnum() and not text[end : end + 1].isalnum():
            yield start, end
        start = text.find(word, end)


def _choose_span(hits: Hits, room: int) -> tuple[int, int]:
    """Choose the span of query hits that the snippet should show."""
    starts, ends, slots = (column[:MAX_HITS] for column in hits)
    if not len(starts):
        return 0, 0
    of_slot = slots[:, None] == np.unique(slots)
    far = np.iinfo(np.int64).max
    # For each hit and slot: where that slot's next word ends.
    next_ends = np.minimum.accumulate(np.where(of_slot, ends[:, None], far)[::-1])[::-1]
    near = next_ends - starts[:, None] <= room
    last = np.where(near, next_ends, starts[:, None]).max(axis=1)
    best = np.lexsort((starts, last - starts, -near.sum(axis=1)))[0]
    return int(starts[best]), int(last[best])


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
    inside = (hits.starts >= start) & (hits.ends <= end)
    marks: list[tuple[int, int]] = []
    for first, last in zip(hits.starts[inside].tolist(), hits.ends[inside].tolist(), strict=True):
        mark = first - start + shift, last - start + shift
        if marks and marks[-1][1] >= mark[0]:
            marks[-1] = marks[-1][0], mark[1]
        else:
            marks.append(mark)
    return tuple(marks)


MAX_SECTIONS = 4
HEADING_WEIGHT = 0.75
MIN_LENGTH = 80
# Sections that score less than this share of the best one are not shown beside it.
MIN_SHARE = 0.6
# What permalinks add to a heading.
_PERMALINK_SIGNS = " #¶§🔗"
_SAFE = "!$&'()*+,;=:@/?-._~"


class Section(NamedTuple):
    """A section of a page: its heading, the id that leads there, and where heading and text are in the page's text.

    ``share`` is its score for a query, as a share of that of the best section.
    """

    heading: str
    anchor: str
    heading_at: int
    start: int
    end: int
    share: float = 1.0

    def build_url(self, page: StoredPage) -> str:
        """Build the URL that leads to this section of a page.

        A heading without an id is found by its text; only browsers can do that, and only in HTML.

        >>> page = StoredPage("http://example.org/")
        >>> Section("Set-up", "", 0, 0, 0).build_url(page), Section("Set-up", "run", 0, 0, 0).build_url(page)
        ('http://example.org/#:~:text=Set%2Dup', 'http://example.org/#run')
        """
        url = page.url.partition("#")[0]
        if self.anchor:
            return f"{url}#{quote(self.anchor, safe=_SAFE)}"
        if self.heading and page.kind == "html":
            return f"{url}#:~:text={quote(self.heading, safe='').replace('-', '%2D')}"
        return url


def split_sections(page: StoredPage, text: str) -> list[Section]:
    r"""Split a page's text into sections; what is before the first heading is a section without one.

    >>> page = StoredPage("http://example.org/", headings=("One", "Two"), anchors=("", "two"))
    >>> parts = split_sections(page, "Lead\nOne\nText\nTwo\nEnd")
    >>> [(part.heading, part.anchor, part.start, part.end) for part in parts]
    [('', '', 0, 4), ('One', '', 9, 13), ('Two', 'two', 18, 21)]
    """
    is_composed = text is page.body
    found: list[tuple[str, str, int, int]] = [("", "", 0, 0)]
    lines = f"\n{text}\n"
    position = 0
    for heading, anchor in zip(page.headings, page.anchors, strict=False):
        line = f"\n{heading if is_composed else compose(heading)}\n"
        at = -1 if anchor is None else lines.find(line, position)
        if at >= 0:
            position = at + len(line) - 1
            found.append((heading.strip(_PERMALINK_SIGNS), anchor or "", at, min(position, len(text))))
    ends = [max(0, at - 1) for _, _, at, _ in found[1:]] + [len(text)]
    sections = [Section(*part, max(part[3], end)) for part, end in zip(found, ends, strict=True)]
    return sections if sections[0].end else sections[1:]


def choose_sections(sections: list[Section], hits: Hits) -> list[Section]:
    """Choose the sections with the most telling words of the query, best first; none if no section has any."""
    if not sections or not len(hits.slots):
        return []
    starts = np.array([section.heading_at for section in sections])
    place = np.maximum(np.searchsorted(starts, hits.starts, side="right") - 1, 0)
    is_heading = hits.starts < np.array([section.start for section in sections])[place]
    slots, slot = np.unique(hits.slots, return_inverse=True)
    has = np.zeros((len(sections), len(slots)), bool)
    has[place, slot] = True
    in_heading = np.zeros_like(has)
    in_heading[place[is_heading], slot[is_heading]] = True
    weights = np.log1p(len(sections) / has.sum(axis=0))
    scores = has @ weights + HEADING_WEIGHT * (in_heading @ weights)
    best = np.argsort(-scores, kind="stable")[:MAX_SECTIONS].tolist()
    shares = scores / scores[best[0]]
    return [_extend_short(sections, row)._replace(share=float(shares[row])) for row in best if shares[row] >= MIN_SHARE]


def _extend_short(sections: list[Section], row: int) -> Section:
    """Extend a section that has next to no text of its own over the subsections that follow it."""
    section = sections[row]
    ends = (following.end for following in sections[row:] if following.end - section.start >= MIN_LENGTH)
    return section._replace(end=next(ends, sections[-1].end))
