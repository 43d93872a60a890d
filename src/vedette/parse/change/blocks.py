"""Split a page into blocks of text with their places, so that two versions can be compared block by block.

A place is a small number derived from the innermost containers and their ids and classes, without digits: it stays the
same when the text changes and when posts get other numbers. Many blocks may share one place, such as the paragraphs of
an article.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

import xxhash

from vedette.parse.html.main_text import HIDDEN, mark_content
from vedette.parse.html.page import extract_block_texts
from vedette.parse.html.tag_handlers import run_scan
from vedette.parse.html.tokenizer import Token, parse_attributes, split_tag, tokenize
from vedette.parse.html.walker import BREAK, Scan

PLACE_DEPTH = 4
MAX_DEPTH = 256
MAX_CALLED_LENGTH = 100
MAX_END_DISTANCE = 8
_NAMES = """
    article aside blockquote dd div dl dt fieldset figure footer form h1 h2 h3 h4 h5 h6 header li main nav ol p pre
    section table td th tr ul
    """
_PLACES = frozenset(_NAMES.split())
_LETTERS = re.compile(r"[^a-z]+")


class Block(NamedTuple):
    """A block of visible text of a page, its place, and whether it is main content."""

    place: int
    text: str
    in_main: bool


def extract_blocks(text: str) -> tuple[Block, ...]:
    """Extract the visible text blocks of a page with their places, in order.

    >>> [(block.text, block.in_main) for block in extract_blocks("<nav><a href=/>Home</a></nav><p>It says something.")]
    [('Home', False), ('It says something.', True)]
    """
    scan, places = Scan(), list[int]()
    found, rest = tokenize(text.replace(BREAK, " "))
    run_scan(scan, _track_places(scan, found, places), rest)
    places += [0] * (len(scan.blocks) - len(places))
    texts = extract_block_texts(scan)
    rows = zip(places, texts, mark_content(texts, scan.blocks), scan.blocks, strict=True)
    return tuple(Block(place, block, kept) for place, block, kept, marks in rows if block and not marks & HIDDEN)


def _track_places(scan: Scan, found: Iterator[Token], places: list[int]) -> Iterator[Token]:
    """Forward the tags of a page, and record the place of each text block they end."""
    opened: list[tuple[str, str]] = []
    known: dict[str, tuple[str, str] | None] = {}  # a page repeats the same tags
    for token in found:
        before = len(scan.blocks)
        yield token
        if len(scan.blocks) > before:
            places += [_hash_place(opened)] * (len(scan.blocks) - before)
        tag = token[1]
        if tag:
            if tag not in known:
                known[tag] = _read_element(tag)
            element = known[tag]
            if element is not None:
                _update_open(opened, element)


def _hash_place(opened: list[tuple[str, str]]) -> int:
    return xxhash.xxh32_intdigest("/".join([called for _, called in opened[-PLACE_DEPTH:]]).encode())


def _read_element(tag: str) -> tuple[str, str] | None:
    """Read the name of a tag, and what its element is called in places; None if it makes no place."""
    name, attributes = split_tag(tag)
    if name in _PLACES:
        return name, _name_element(name, attributes)
    return (name, "") if name[1:] in _PLACES else None


def _update_open(opened: list[tuple[str, str]], element: tuple[str, str]) -> None:
    name = element[0]
    if name not in _PLACES:
        _close_element(opened, name[1:])
        return
    if opened and name == opened[-1][0] and name in {"p", "li"}:
        opened.pop()
    if len(opened) < MAX_DEPTH:
        opened.append(element)


def _close_element(opened: list[tuple[str, str]], name: str) -> None:
    """Close an open element at its end tag, and everything inside it; ignore end tags of elements too far out."""
    for back in range(1, min(MAX_END_DISTANCE, len(opened)) + 1):
        if opened[-back][0] == name:
            del opened[-back:]
            return


def _name_element(name: str, attributes: str) -> str:
    if not attributes:
        return name
    found = parse_attributes(attributes)
    called = f"{found.get('id', '')[:MAX_CALLED_LENGTH]} {found.get('class', '')[:MAX_CALLED_LENGTH]}".lower()
    return f"{name} {_LETTERS.sub(' ', called).strip()}"
