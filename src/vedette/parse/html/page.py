"""Parse an HTML page in one pass into everything that it says: texts, links, headings, head.

Links and other addresses are as written, in the order of the page; resolving them needs ``base``. Nothing that a page
says is an error; numbers and lengths are bounded, and every string can be written to a file.
"""

import re
from dataclasses import dataclass

import numpy as np

from vedette.parse.html.attributes import collapse_lines, decode_references
from vedette.parse.html.main_text import HIDDEN, select_content
from vedette.parse.html.tag_handlers import scan_page
from vedette.parse.html.walker import BREAK, Link, Scan

__all__ = ["Link", "Page", "parse_page"]

# Fewer words than this are a frame for a script to fill, if there is a script.
FEW_WORDS = 25
_LOADING_NOTICES = ("loading", "please wait")
# An empty place for what a script brings, or the text itself in a script that only another script can show.
_EMPTY_ROOT = re.compile(
    r"""<script[^>]{0,200}?\btype=["']?text/(?:x-)?(?:\w{1,40}-)?template
      | <(?:div|main)[^>]{0,200}?\bid=["']?(?:app|application|main|root|__next|__nuxt)["'\ >][^<]{0,200}+</
      | <app-root""",
    re.IGNORECASE | re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Page:
    """A parsed HTML page.

    ``text`` is what a person sees, a line per block; ``main`` is that without menus, notices and lists of links;
    ``words`` counts those of ``main``, roughly, and ``hidden_words`` those that nobody sees. ``robots_meta`` has every
    named meta. ``stamps`` are dates as written, by the names that pages give them, and ``linked_data`` is JSON as
    written.
    """

    title: str
    description: str
    language: str
    headings: tuple[tuple[int, str], ...]
    links: tuple[Link, ...]
    base: str | None
    canonical: str | None
    refresh: tuple[int, str] | None
    alternates: tuple[tuple[str, str], ...]
    feeds: tuple[str, ...]
    robots_meta: tuple[tuple[str, str], ...]
    stamps: tuple[tuple[str, str], ...]
    linked_data: tuple[str, ...]
    text: str
    main: str
    words: int
    hidden_words: int
    needs_script: bool


def parse_page(text: str) -> Page:
    r"""Parse the HTML text of a page.

    >>> page = parse_page("<title>A  page</title><nav><a href=/>Home</a></nav><p><b>W</b>ords &amp; more.<p>End of it.")
    >>> page.title, page.links, page.main
    ('A page', (Link(href='/', text='Home', nofollow=False),), 'Words & more.\nEnd of it.')
    """
    scan = scan_page(text)
    texts = extract_block_texts(scan)
    visible = [block for block, marks in zip(texts, scan.blocks, strict=True) if block and not marks & HIDDEN]
    whole = "\n".join(visible)
    main = "\n".join(select_content(texts, scan.blocks))
    head = scan.head
    return Page(
        title=head.title or next((heading for level, heading in scan.headings if level == 1), ""),
        description=head.description or head.og_description,
        language=head.language or head.header_language,
        headings=tuple(scan.headings),
        links=tuple(scan.links.values()),
        base=head.base or None,
        canonical=head.canonical,
        refresh=head.refresh,
        alternates=tuple(head.alternates),
        feeds=tuple(head.feeds),
        robots_meta=tuple(head.metas),
        stamps=tuple(head.stamps),
        linked_data=tuple(head.linked_data),
        text=whole,
        main=main,
        words=count_words(main),
        hidden_words=0 if len(visible) == len(texts) else _count_hidden_words(texts, scan.blocks),
        needs_script=_needs_script(scan, whole, text),
    )


def extract_block_texts(scan: Scan) -> list[str]:
    """Return the text of each block of a scanned HTML page, references decoded, white space collapsed."""
    joined = collapse_lines(decode_references("".join(scan.pieces)))
    return list(map(str.strip, joined.split(BREAK)[1:-1]))


def count_words(text: str) -> int:
    """Count roughly the words of a page's text."""
    # Three times as fast as str.count, which stops at every single space.
    letters = np.frombuffer(text.encode(), np.uint8)
    return int(np.count_nonzero(letters <= ord(" "))) + 1 if text else 0


def _count_hidden_words(texts: list[str], blocks: list[int]) -> int:
    return sum(count_words(text) for text, marks in zip(texts, blocks, strict=True) if marks & HIDDEN)


def _needs_script(scan: Scan, visible: str, text: str) -> bool:
    """Check whether a page needs JavaScript to show its text: next to no words, and a script or a plea for one."""
    if len(visible) > 20 * FEW_WORDS or count_words(visible) > FEW_WORDS:
        return False
    if scan.wants_script:
        return True
    return scan.scripts > 0 and (
        not visible or visible.lower().startswith(_LOADING_NOTICES) or bool(_EMPTY_ROOT.search(text))
    )
