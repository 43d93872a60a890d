"""Parse an HTML page in one pass: texts, links, headings, head.

Links and other URLs are as written, in page order; resolving them needs ``base``. No content is an error; numbers and
lengths are bounded, and every string can be written to a file.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import compress

import numpy as np

from vedette.parse.html.main_text import HIDDEN, LONG_LENGTH, mark_content
from vedette.parse.html.tag_handlers import scan_page
from vedette.parse.html.tokenizer import collapse_lines, decode_references, is_template, split_raw, split_tag, tokenize
from vedette.parse.html.walker import BREAK, Link, Scan

__all__ = ["Link", "Page", "parse_page"]

# With fewer words than this, a page with a script is a frame for the script to fill; with an empty container for it,
# more words are needed.
FEW_WORDS, FEW_FRAME_WORDS = 25, 100
# A page of this size with a smaller share of text, mostly scripts, is a program.
LARGE_LENGTH, LITTLE_SHARE, BULK_SHARE = 100_000, 0.005, 0.5
_LOADING_NOTICES = ("loading", "please wait")
# An empty container that a script fills.
_EMPTY_ROOT = re.compile(
    r"""<(?:div|main)[^>]{0,200}?\bid=["']?(?:app|application|main|root|__next|__nuxt)["'\ >][^<]*+</ | <app-root""",
    re.IGNORECASE | re.VERBOSE,
)
# Templates are read if they contain more than this, and this many times the main text of the page, and add either this
# many times its words or this many links.
MIN_TEMPLATE_LENGTH, MIN_TEMPLATE_FACTOR, MIN_TEMPLATE_LINKS = 300, 2, 5
# A placeholder in a template; a template with more than one per this many words is a control, not a text.
_PLACEHOLDER = re.compile(r"\{\{[^{}]{0,500}+\}\}\}?|<%[^%]{0,500}+%>|\$\{[^{}]{0,200}+\}")
WORDS_PER_PLACEHOLDER = 10
_FILLED_ADDRESS = re.compile(
    r"""\b(href|src)=(?:"[^"]{0,500}?(?:\{\{|<%|\$\{)[^"]*+"|'[^']{0,500}?(?:\{\{|<%|\$\{)[^']*+')"""
)
MAX_DATE_LINE = 160
_YEAR = re.compile(r"(?<![0-9])(?:19|20)[0-9]{2}(?![0-9])")
_WRAPPERS = {"template": "<div>", "/template": "</div>", "noscript": "<div>", "/noscript": "</div>"}


@dataclass(frozen=True, slots=True)
class Page:
    """A parsed HTML page.

    ``text`` is what a person sees, one line per block; ``main`` is that without menus, notices and lists of links;
    ``words`` is the approximate word count of ``main``, ``hidden_words`` that of invisible text. ``anchors`` has the id
    of each heading, empty if it has none, None if the heading is not in ``main``. ``robots_meta`` has every named meta.
    ``stamps`` are dates as written, by the names that pages give them, ``linked_data`` is JSON as written, and
    ``date_lines`` are short lines with digits next to the first heading.
    ``opens_templates`` means that the page was parsed with its templates opened (``open_templates``), and
    ``needs_script_links`` that a script fills in the addresses of links in them.
    """

    title: str
    description: str
    language: str
    headings: tuple[tuple[int, str], ...]
    anchors: tuple[str | None, ...]
    links: tuple[Link, ...]
    base: str | None
    canonical: str | None
    refresh: tuple[int, str] | None
    alternates: tuple[tuple[str, str], ...]
    feeds: tuple[str, ...]
    robots_meta: tuple[tuple[str, str], ...]
    stamps: tuple[tuple[str, str], ...]
    linked_data: tuple[str, ...]
    date_lines: tuple[str, ...]
    text: str
    main: str
    words: int
    hidden_words: int
    needs_script: bool
    needs_script_links: bool
    opens_templates: bool


def parse_page(text: str) -> Page:
    r"""Parse the HTML text of a page.

    >>> page = parse_page("<title>A  page</title><nav><a href=/>Home</a></nav><p><b>W</b>ords &amp; more.<p>End of it.")
    >>> page.title, page.links, page.main
    ('A page', (Link(href='/', text='Home', nofollow=False),), 'Words & more.\nEnd of it.')
    """
    scan, texts, marks, markup = _read_markup(text)
    main = "\n".join(compress(texts, marks))
    visible = [block for block, marks in zip(texts, scan.blocks, strict=True) if block and not marks & HIDDEN]
    hidden = [block for block, marks in zip(texts, scan.blocks, strict=True) if marks & HIDDEN]
    whole = "\n".join(visible)
    head = scan.head
    return Page(
        title=head.title or next((heading.text for heading in scan.headings if heading.level == 1), ""),
        description=head.description or head.og_description,
        language=head.language or head.header_language,
        headings=tuple((heading.level, heading.text) for heading in scan.headings),
        anchors=tuple(heading.anchor if marks[heading.block] else None for heading in scan.headings),
        links=tuple(scan.links.values()),
        base=head.base or None,
        canonical=head.canonical,
        refresh=head.refresh,
        alternates=tuple(head.alternates),
        feeds=tuple(head.feeds),
        robots_meta=tuple(head.metas),
        stamps=tuple(head.stamps),
        linked_data=tuple(head.linked_data),
        date_lines=tuple(_find_date_lines(scan, texts)),
        text=whole,
        main=main,
        words=count_words(main),
        hidden_words=sum(map(count_words, hidden)),
        needs_script=_needs_script(scan, visible, markup),
        needs_script_links=markup is not text and _has_filled_links(text),
        opens_templates=markup is not text,
    )


def _read_markup(text: str) -> tuple[Scan, list[str], list[bool], str]:
    """Scan the HTML of a page, with its templates opened if it has little text: scan, blocks, which are main, HTML."""
    scan = scan_page(text)
    texts = extract_block_texts(scan)
    marks = mark_content(texts, scan.blocks, scan.spans)
    main = "\n".join(compress(texts, marks))
    if scan.template_characters >= max(MIN_TEMPLATE_LENGTH, MIN_TEMPLATE_FACTOR * len(main)):
        markup = open_templates(text)
        opened = scan_page(markup)
        opened_texts = extract_block_texts(opened)
        opened_marks = mark_content(opened_texts, opened.blocks, opened.spans)
        opened_main = "\n".join(compress(opened_texts, opened_marks))
        has_text = count_words(opened_main) > max(FEW_WORDS, MIN_TEMPLATE_FACTOR * count_words(main))
        if has_text or len(opened.links) >= len(scan.links) + MIN_TEMPLATE_LINKS:
            return opened, opened_texts, opened_marks, markup
    return scan, texts, marks, text


def _find_date_lines(scan: Scan, texts: list[str]) -> Iterator[str]:
    """Find the lines that may date a page: short ones with a year's digits next to its first main heading."""
    levels = [heading.level for heading in scan.headings]
    if levels:
        at = scan.headings[levels.index(min(levels))].block
        for text, block in zip(texts[max(0, at - 3) : at + 13], scan.blocks[max(0, at - 3) : at + 13], strict=True):
            if len(text) <= MAX_DATE_LINE and not block & HIDDEN and _YEAR.search(text):
                yield text


def open_templates(text: str) -> str:
    """Return the HTML of a page with the contents of templates and ``<noscript>`` elements inlined.

    >>> open_templates("<template><p>One</p></template><script type='text/x-template'><p>Two</script>")
    '<div><p>One</p></div><div><p>Two</div>'
    """
    found, rest = tokenize(text)
    parts = [f"{before}{_open_template(tag) if tag else ''}" for before, tag in found]
    return "".join((*parts, rest))


def _open_template(tag: str) -> str:
    name, _ = split_tag(tag)
    if name in _WRAPPERS:
        return _WRAPPERS[name]
    script = split_raw(tag) if name == "script" else None
    if script is None or not is_template(script):
        return f"<{tag}>"
    body, places = _PLACEHOLDER.subn(" ", _FILLED_ADDRESS.sub("", script.body))
    return f"<div>{body}</div>" if places * WORDS_PER_PLACEHOLDER <= count_words(body) else ""


def _has_filled_links(text: str) -> bool:
    """Check whether a script template of a page has links whose addresses a script fills in.

    >>> _has_filled_links("<script type=text/x-template><a href='/{{version}}/intro'>Intro</a></script>")
    True
    """
    names = ((split_tag(tag)[0], tag) for _, tag in tokenize(text)[0] if tag)
    scripts = (split_raw(tag) for name, tag in names if name == "script")
    bodies = (script.body for script in scripts if script is not None and is_template(script))
    return any(found[1] == "href" for body in bodies for found in _FILLED_ADDRESS.finditer(body))


def extract_block_texts(scan: Scan) -> list[str]:
    """Return the text of each block of a scanned HTML page, references decoded, white space collapsed."""
    joined = collapse_lines(decode_references("".join(scan.pieces)))
    return list(map(str.strip, joined.split(BREAK)[1:-1]))


def count_words(text: str) -> int:
    """Count the words of a page's text, approximately."""
    # Three times as fast as str.count, which stops at every single space.
    letters = np.frombuffer(text.encode(), np.uint8)
    return int(np.count_nonzero(letters <= ord(" "))) + 1 if text else 0


def _needs_script(scan: Scan, visible: list[str], text: str) -> bool:
    """Check whether a page needs JavaScript to show its text, by how little text there is without it.

    That means: almost no words and a script or a request to enable scripts; no prose around an empty container for a
    script; or a large page that is nearly all script.
    """
    if not scan.scripts and not scan.wants_script:
        return False
    whole = "\n".join(visible)
    words = count_words(whole)
    if words <= FEW_WORDS and len(whole) <= 20 * FEW_WORDS:
        waits = not whole or whole.lower().startswith(_LOADING_NOTICES) or scan.template_characters > 0
        return scan.wants_script or waits or bool(_EMPTY_ROOT.search(text)) or _is_bulk(scan, whole, text)
    if words <= FEW_FRAME_WORDS and max(map(len, visible)) < LONG_LENGTH and _EMPTY_ROOT.search(text):
        return True
    return _is_bulk(scan, whole, text)


def _is_bulk(scan: Scan, visible: str, text: str) -> bool:
    """Check whether a page is large, has almost no text for its size, and is mostly scripts."""
    size = len(text)
    return size >= LARGE_LENGTH and len(visible) < LITTLE_SHARE * size and scan.script_characters > BULK_SHARE * size
