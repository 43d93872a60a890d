"""The blocks of a page with the places where they stand, so that two versions can be compared block by block.

A place is a small number made of the innermost containers and what their authors call them, without digits: it stays
the same when the text changes and when posts get other numbers. Many blocks may share one place, such as the
paragraphs of an article.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

import xxhash

from vedette.parse.html.attributes import attributes_of
from vedette.parse.html.main_text import HIDDEN, content_marks
from vedette.parse.html.page import block_texts
from vedette.parse.html.tag_handlers import finished
from vedette.parse.html.tokenizer import Token, parts_of, tokens
from vedette.parse.html.walker import BREAK, Scan

__all__ = ["Block", "blocks_of"]

INNERMOST = 4
DEEPEST = 256
LONGEST_CALLED = 100
FURTHEST_END = 8
_NAMES = """
    article aside blockquote dd div dl dt fieldset figure footer form h1 h2 h3 h4 h5 h6 header li main nav ol p pre
    section table td th tr ul
    """
_PLACES = frozenset(_NAMES.split())
_LETTERS = re.compile(r"[^a-z]+")


class Block(NamedTuple):
    """A block of visible text, where it stands, and whether it is content."""

    place: int
    text: str
    in_main: bool


def blocks_of(text: str) -> tuple[Block, ...]:
    """The blocks that a reader sees, in their order.

    >>> [(block.text, block.in_main) for block in blocks_of("<nav><a href=/>Home</a></nav><p>It says something.")]
    [('Home', False), ('It says something.', True)]
    """
    scan, places = Scan(), list[int]()
    found, rest = tokens(text.replace(BREAK, " "))
    finished(scan, _placed(scan, found, places), rest)
    places += [0] * (len(scan.blocks) - len(places))
    texts = block_texts(scan)
    rows = zip(places, texts, content_marks(texts, scan.blocks), scan.blocks, strict=True)
    return tuple(Block(place, block, kept) for place, block, kept, marks in rows if block and not marks & HIDDEN)


def _placed(scan: Scan, found: Iterator[Token], places: list[int]) -> Iterator[Token]:
    """Hand the tags on, and note for each block that they end where it stood."""
    opened: list[tuple[str, str]] = []
    for token in found:
        before = len(scan.blocks)
        yield token
        if len(scan.blocks) > before:
            places += [_place(opened)] * (len(scan.blocks) - before)
        if token[1]:
            _follow(opened, *parts_of(token[1]))


def _place(opened: list[tuple[str, str]]) -> int:
    return xxhash.xxh32_intdigest("/".join(called for _, called in opened[-INNERMOST:]).encode())


def _follow(opened: list[tuple[str, str]], name: str, attributes: str) -> None:
    if name in _PLACES:
        if opened and name == opened[-1][0] and name in {"p", "li"}:
            opened.pop()
        if len(opened) < DEEPEST:
            opened.append((name, _called(name, attributes)))
    elif name[1:] in _PLACES:
        _leave(opened, name[1:])


def _leave(opened: list[tuple[str, str]], name: str) -> None:
    """The end tag of something not far out ends all that is inside it; any other end tag is a mistake."""
    for back in range(1, min(FURTHEST_END, len(opened)) + 1):
        if opened[-back][0] == name:
            del opened[-back:]
            return


def _called(name: str, attributes: str) -> str:
    if not attributes:
        return name
    found = attributes_of(attributes)
    called = f"{found.get('id', '')[:LONGEST_CALLED]} {found.get('class', '')[:LONGEST_CALLED]}".lower()
    return f"{name} {_LETTERS.sub(' ', called).strip()}"
