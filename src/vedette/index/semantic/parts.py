"""Parts of a page that are embedded separately: consecutive sections, joined or cut to about the same length."""

from typing import NamedTuple

from vedette.index.fields import StoredPage
from vedette.index.sections import split_sections

PART_CHARACTERS = 1000
MAX_PARTS = 8


class Part(NamedTuple):
    """A part of a page: where it starts in the page's text, and the embedded text, including title and heading."""

    start: int
    text: str


def split_parts(page: StoredPage) -> list[Part]:
    r"""Split a page into parts to embed; a page without text is one part, its title and description.

    >>> page = StoredPage("http://example.org/", "Tides", headings=("High", "Low"), body="High\nAt noon.\nLow\nAt six.")
    >>> split_parts(page._replace(anchors=("", "")))
    [Part(start=0, text='Tides\nHigh\nAt noon.\nLow\nAt six.')]
    """
    if not page.body.strip():
        return [Part(0, f"{page.title}\n{page.description}")]
    parts: list[tuple[int, int, str]] = []
    for section in split_sections(page, page.body):
        start = min(section.heading_at, section.start)
        if parts and section.end - parts[-1][0] <= PART_CHARACTERS:
            parts[-1] = parts[-1][0], section.end, parts[-1][2]
            continue
        for at in range(start, max(section.end, start + 1), PART_CHARACTERS):
            heading = f"{section.heading}\n" if at > start else ""
            parts.append((at, min(at + PART_CHARACTERS, section.end), heading))
        if len(parts) >= MAX_PARTS:
            break
    return [Part(start, f"{page.title}\n{heading}{page.body[start:end]}") for start, end, heading in parts[:MAX_PARTS]]
