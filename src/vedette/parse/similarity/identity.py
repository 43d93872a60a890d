"""Distinguish near-duplicate pages by what readers search for: title, main headings and numbers.

The normal form of a text drops every digit (``shingles``), so that a counter or a date is no change. Rooms, products
and tables differ in little else. So a page has an *identity* in addition to its sketch: a fingerprint of its title and
main headings with their digits, one without, and, if at least ``NUMBER_SHARE`` of its words are numbers, a small
MinHash of them.

Two texts that are nearly the same are copies unless their identities differ:

- by title or heading, digits included. Pages of two versions of a manual (``/docs/1.2/x``, ``/docs/1.3/x``) are copies
  in spite of a version number in the title;
- by more than half of the numbers in texts with many numbers.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np
import xxhash

from vedette.parse.similarity.minhash import build_sketch
from vedette.parse.similarity.shingles import normal_form, scramble

NUMBER_SHARE = 0.1
MIN_NUMBERS = 3
MAX_NUMBERS = 4096
MIN_AGREEMENT = 0.5
# Every fourth byte of a sketch: 32 of them estimate a share to one in twelve, which is enough for "half".
NUMBER_STEP = 4
PRINT_BYTES = 8

_NUMBER = re.compile(r"[0-9]+(?:[.,:/-][0-9]+)*")
_SPACES = re.compile(r"\s+")
# A folder that names a version, an edition or a language; the name of a product may come before a version with a dot.
_EDITION = re.compile(
    r"(?:(?:v|r|version-|release-|branch-)?[0-9]{1,4}(?:[._][0-9x]{1,4}){0,3}"
    r"|[a-z]{2,24}(?:[-_][a-z]{2,24}){0,2}[-_]v?[0-9]{1,4}(?:\.[0-9x]{1,4}){1,3})(?:[-.]?[a-z]{1,12}[0-9]{0,3})?"
    r"|[a-z]{2}(?:[-_][a-z]{2,4})?|latest|stable|current|master|main|next|dev|devel|nightly|preview|unstable|lts",
    re.IGNORECASE,
)
_CHOSEN = re.compile(r"[A-Za-z]+(?:[-_.][A-Za-z]+){0,3}")


class PageIdentity(NamedTuple):
    """Identity of a page among near-duplicates: fingerprints of title and headings, and a sketch of its numbers."""

    heads: bytes
    names: bytes
    numbers: bytes = b""

    def pack(self) -> bytes:
        """Pack the identity of a page for storage."""
        return self.heads + self.names + self.numbers


def build_identity(title: str, headings: Sequence[tuple[int, str]], text: str, words: int) -> PageIdentity:
    """Build the identity of a page; ``words`` is how many words without digits its text has.

    >>> one, other = (build_identity(f"Room {number}", (), "", 0) for number in (1, 2))
    >>> one.heads == other.heads, one.names == other.names
    (False, True)
    """
    top = min((level for level, _ in headings), default=0)
    heads = "\n".join((title, *islice((heading for level, heading in headings if level == top), 3)))
    exact = xxhash.xxh3_64_digest(_SPACES.sub(" ", heads).strip().casefold().encode("utf-8", "replace"))
    sketch = b""
    if _is_rich(_count_digit_runs(text), words):  # few texts are, and finding numbers takes ten times as long
        numbers = [match[0] for match in islice(_NUMBER.finditer(text), MAX_NUMBERS)]
        sketch = _sketch(dict.fromkeys(numbers)) if _is_rich(len(numbers), words) else b""
    return PageIdentity(exact, xxhash.xxh3_64_digest(normal_form(heads)), sketch)


def _is_rich(numbers: int, words: int) -> bool:
    return numbers >= max(MIN_NUMBERS, NUMBER_SHARE * (words + numbers))


def _count_digit_runs(text: str) -> int:
    """Count the runs of digits in a text; each number begins with another one."""
    # Smaller characters wrap around, so one comparison is enough.
    digits = np.frombuffer(text.encode("utf-8", "replace"), np.uint8) - np.uint8(ord("0")) < 10
    return int(np.count_nonzero(digits[1:] > digits[:-1])) + bool(digits[:1].any())


def unpack_identity(packed: bytes) -> PageIdentity | None:
    """Unpack the identity of a page; None if it was never stored."""
    if len(packed) < 2 * PRINT_BYTES:
        return None
    return PageIdentity(packed[:PRINT_BYTES], packed[PRINT_BYTES : 2 * PRINT_BYTES], packed[2 * PRINT_BYTES :])


def are_distinct(one: PageIdentity, other: PageIdentity, *, are_editions: bool = False) -> bool:
    """Check whether readers could tell two pages of nearly the same text apart.

    ``are_editions`` means that their URLs differ only in the name of a version or language.
    """
    if one.names != other.names or (one.heads != other.heads and not are_editions):
        return True
    if not one.numbers and not other.numbers:
        return False
    return _compute_agreement(one.numbers, other.numbers) < MIN_AGREEMENT


def are_editions(url: str, other: str) -> bool:
    """Check whether two URLs differ only in a folder that names a version, an edition or a language, or in two.

    Of two, one is more than a mere number: a year and a month say when, not which edition.

    >>> are_editions("https://a.example/docs/1.2/x.html", "https://a.example/docs/1.3/x.html")
    True
    >>> are_editions("https://a.example/httpd-2.4/fr/x.html", "https://a.example/latest/x.html")
    True
    >>> are_editions("https://a.example/room/12", "https://a.example/room/13")
    False
    """
    ours, theirs = url.split("/"), other.split("/")
    if ours[2:3] != theirs[2:3] or ours[-1] != theirs[-1]:
        return False
    (rest, editions), (other_rest, other_editions) = (_split_editions(parts[3:-1]) for parts in (ours, theirs))
    ways = [editions - other_editions, other_editions - editions]
    return rest == other_rest and any(ways) and all(map(_is_edition_change, ways))


def differ_in_name(url: str, other: str) -> bool:
    """Check whether two URLs are editions, or differ in one folder only, whose name a person chose: letters alone.

    >>> differ_in_name("https://a.example/news/2020/x", "https://a.example/2020/x")
    True
    >>> differ_in_name("https://a.example/s8d7e6f5a4b/x", "https://a.example/s0a1b2c3d4/x")
    False
    """
    folders = find_differing_folders(url, other)
    is_chosen = bool(folders) and all(_EDITION.fullmatch(name) or _CHOSEN.fullmatch(name) for name in folders)
    return is_chosen or are_editions(url, other)


def are_in_other_editions(url: str, other: str) -> bool:
    """Check whether two URLs of one file name are in folders of two editions, wherever below them: pages move.

    >>> are_in_other_editions("https://a.example/doc/stable/cql/ddl.html", "https://a.example/doc/5.0/guide/ddl.html")
    True
    >>> are_in_other_editions("https://a.example/2023/05/x.html", "https://a.example/2024/06/x.html")
    False
    """
    ours, theirs = url.split("/"), other.split("/")
    if ours[2:3] != theirs[2:3] or ours[-1] != theirs[-1]:
        return False
    pairs = zip(ours[3:-1], theirs[3:-1], strict=False)
    names = next((pair for pair in pairs if pair[0] != pair[1]), ("", ""))
    return all(map(_EDITION.fullmatch, names)) and not all(map(str.isdigit, names))


def find_differing_folders(url: str, other: str) -> tuple[str, ...]:
    """Find the one folder in which two URLs of a host differ, in both spellings; empty if they differ in more.

    >>> find_differing_folders("https://a.example/zh/x", "https://a.example/x")
    ('zh',)
    """
    ones, others = url.split("/"), other.split("/")
    if ones[2:3] != others[2:3] or ones[-1] != others[-1]:
        return ()
    short, long = sorted((ones[3:-1], others[3:-1]), key=len)
    if len(long) - len(short) > 1:
        return ()
    at = next((place for place, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short))
    if len(short) < len(long):
        return (long[at],) if short[at:] == long[at + 1 :] else ()
    return (short[at], long[at]) if at < len(short) and short[at + 1 :] == long[at + 1 :] else ()


def _split_editions(folders: Sequence[str]) -> tuple[list[str], Counter[str]]:
    """Split folders into those that name no edition, in order, and those that do."""
    found = [bool(_EDITION.fullmatch(name)) for name in folders]
    rest = [name for name, is_edition in zip(folders, found, strict=True) if not is_edition]
    return rest, Counter(name for name, is_edition in zip(folders, found, strict=True) if is_edition)


def _is_edition_change(names: Counter[str]) -> bool:
    return names.total() <= 2 and sum(name.isdigit() for name in names.elements()) <= 1


def _sketch(numbers: Iterable[str]) -> bytes:
    hashes = np.fromiter((xxhash.xxh3_64_intdigest(number.encode()) for number in numbers), np.uint64)
    sketch = build_sketch(scramble(hashes))
    return sketch.mins[::NUMBER_STEP] if sketch else b""


def _compute_agreement(one: bytes, other: bytes) -> float:
    """Compute the share of positions at which two sketches of numbers agree; 0 if only one has many numbers."""
    if len(one) != len(other):
        return 0.0
    return float(np.mean(np.frombuffer(one, np.uint8) == np.frombuffer(other, np.uint8)))
