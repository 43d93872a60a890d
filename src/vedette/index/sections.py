"""Sections of a page: where they are in its text, and which of them answer a query.

A section is the text from one heading of the main text to the next. The words of a query count once for each section
that has them, and more if they are in its heading. A word that is in every section of a page tells none of them apart,
so words are weighted by how few sections have them, as pages are by inverse document frequency.
"""

from math import log1p
from typing import NamedTuple
from urllib.parse import quote

from vedette.index.fields import StoredPage
from vedette.index.snippets import SearchedText
from vedette.text import compose

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


class Outline(NamedTuple):
    """The sections of a text as columns: headings, their ids, and where each heading and text begins and ends."""

    headings: list[str]
    anchors: list[str]
    begins: list[int]
    starts: list[int]
    ends: list[int]

    def get_section(self, row: int, end: int, share: float = 1.0) -> Section:
        """Return a section, up to this end."""
        heading = self.headings[row].strip(_PERMALINK_SIGNS)
        return Section(heading, self.anchors[row], self.begins[row], self.starts[row], end, share)


def split_sections(page: StoredPage, text: str) -> list[Section]:
    r"""Split a page's text into sections; what is before the first heading is a section without one.

    >>> page = StoredPage("http://example.org/", headings=("One", "Two"), anchors=("", "two"))
    >>> parts = split_sections(page, "Lead\nOne\nText\nTwo\nEnd")
    >>> [(part.heading, part.anchor, part.start, part.end) for part in parts]
    [('', '', 0, 4), ('One', '', 9, 13), ('Two', 'two', 18, 21)]
    """
    outline = outline_text(page, text)
    return [outline.get_section(row, end) for row, end in enumerate(outline.ends)]


def outline_text(page: StoredPage, text: str) -> Outline:
    """Find the sections of a page's text, in order (``split_sections``)."""
    is_composed = text is page.body
    headings, anchors, begins, starts = [""], [""], [0], [0]
    lines = f"\n{text}\n"
    position = 0
    for heading, anchor in zip(page.headings, page.anchors, strict=False):
        if anchor is None:
            continue
        line = f"\n{heading if is_composed else compose(heading)}\n"
        at = lines.find(line, position)
        if at >= 0:
            position = at + len(line) - 1
            headings.append(heading)
            anchors.append(anchor)
            begins.append(at)
            starts.append(min(position, len(text)))
    ends = [max(start, at - 1) for start, at in zip(starts, begins[1:], strict=False)]
    ends.append(len(text))
    first = 0 if ends[0] else 1
    return Outline(headings[first:], anchors[first:], begins[first:], starts[first:], ends[first:])


def choose_sections(outline: Outline, found: SearchedText) -> list[Section]:
    """Choose the sections with the most telling words of the query, best first; none if no section has any.

    The words that a section has, and those that its heading has, are bits of a number each.
    """
    starts = outline.starts
    has: dict[int, int] = {}
    in_heading: dict[int, int] = {}
    for row, start, slot in found.list_parts(outline.begins) if starts else ():
        has[row] = has.get(row, 0) | 1 << slot
        if start < starts[row]:
            in_heading[row] = in_heading.get(row, 0) | 1 << slot
    if not has:
        return []
    weights = _weigh_slots(list(has.values()), len(starts))
    points: dict[tuple[int, int], float] = {}  # many sections have the same words
    scores: dict[int, float] = {}
    for row in sorted(has):
        key = has[row], in_heading.get(row, 0)
        if key not in points:
            points[key] = _add_weights(weights, key[0]) + HEADING_WEIGHT * _add_weights(weights, key[1])
        scores[row] = points[key]
    best = sorted(scores, key=lambda row: -scores[row])[:MAX_SECTIONS]
    shares = [scores[row] / scores[best[0]] for row in best]
    return [
        outline.get_section(row, _find_end(outline, row), share)
        for row, share in zip(best, shares, strict=True)
        if share >= MIN_SHARE
    ]


def _weigh_slots(masks: list[int], sections: int) -> list[float]:
    """Weigh each slot by how few sections have it; 0 if none has."""
    weights = []
    for slot in range(max(masks).bit_length()):
        count = sum([mask >> slot & 1 for mask in masks])
        weights.append(log1p(sections / count) if count else 0.0)
    return weights


def _add_weights(weights: list[float], mask: int) -> float:
    return sum([weight for slot, weight in enumerate(weights) if mask >> slot & 1])


def _find_end(outline: Outline, row: int) -> int:
    """Find where a section ends; one with next to no text of its own includes the subsections that follow it."""
    start = outline.starts[row]
    for following in range(row, len(outline.ends)):
        if outline.ends[following] - start >= MIN_LENGTH:
            return outline.ends[following]
    return outline.ends[-1]
