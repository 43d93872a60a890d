"""Split a page into sections at its headings, and choose those that answer a query.

A section is the text from one heading of the main text to the next. The words of a query count once for each section
that has them, and more if they are in its heading. A word that is in every section of a page tells none of them apart,
so words are weighted by how few sections have them, as pages are by inverse document frequency.
"""

from typing import NamedTuple
from urllib.parse import quote

import numpy as np

from vedette.index.fields import StoredPage
from vedette.index.snippets import Hits
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
