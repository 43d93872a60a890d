"""Rotating boxes: the parts of a page that differ on nearly every fetch and say nothing about the page.

A block is a text and its *place*: a hash of where it stands, best made of the names and classes of the elements around
it and not of their positions, so that a new paragraph does not move those below it. Blocks of one place are one text.
For each place a record of ten bytes is kept: a print of its words, and in how many comparisons it was seen and had
changed. Whatever comes and goes counts as one more place, ``ELSEWHERE``: a box may carry a new class every time.

A place is a rotating box when all of this holds:

1. it changes nearly always: the mean of its posterior, (changed + 1) / (seen + 2), is at least ``TURNING``, which takes
   three comparisons that all saw a change;
2. it is a small part of the page: at most ``LARGEST_SHARE`` of the text;
3. the page around it stays: less than half of the text stands in places that changed more often than not.

So a live ticker, whose text is new each time, has no rotating box, and each of its versions is a change. Counts are
halved when they grow large: a box that stands still for a while is soon taken for content again.
"""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import xxhash

from vedette.parse.similarity.shingles import normal_form

__all__ = ["ELSEWHERE", "MOST_PLACES", "Block", "Record", "Turn", "pack_records", "turn", "unpack_records", "unturned"]

Block = tuple[int, str]
Record = tuple[int, int, int]
"""Print of the words, comparisons, and changes among them."""

MOST_PLACES = 64
MOST_BLOCKS = 4096
ELSEWHERE = 0
TURNING = 0.8
LARGEST_SHARE = 0.2
_LARGEST_COUNT = 30
_ROW = struct.Struct("<IIBB")


@dataclass(frozen=True, slots=True)
class Turn:
    """What a comparison by places shows: how many steady places and boxes changed, and the boxes' share of the text."""

    steady: int
    boxes: int
    boxes_share: float
    records: Mapping[int, Record]


def turn(old: Mapping[int, Record], blocks: Sequence[Block]) -> Turn:
    """Compare the blocks of a new version with the records of the old one; without either, only records are made."""
    texts = _by_place(blocks)
    sizes = {place: len(text) for place, text in texts.items()}
    prints = {place: xxhash.xxh32_intdigest(normal_form(text)) for place, text in texts.items()}
    if not old or not texts:
        return Turn(0, 0, 0.0, _fresh(prints))
    came = [place for place in prints if place not in old]
    gone = any(place not in prints for place in old if place != ELSEWHERE)
    changed = [place for place in prints if place in old and prints[place] != old[place][0]]
    if came or gone:
        changed.append(ELSEWHERE)
    sizes[ELSEWHERE] = sum(sizes[place] for place in came)
    records = _counted(old, prints, frozenset(changed))
    boxes = _rotating(records, sizes, changed)
    share = sum(sizes[place] for place in boxes) / _total(sizes)
    return Turn(len(changed) - len(boxes), len(boxes), share, records)


def unturned(old: Mapping[int, Record]) -> dict[int, Record]:
    """The records after a comparison that found the same bytes."""
    return {place: _after(record, changed=False) for place, record in old.items()}


def pack_records(records: Mapping[int, Record]) -> bytes:
    """Ten bytes per place."""
    return b"".join(_ROW.pack(place, *record) for place, record in records.items())


def unpack_records(packed: bytes) -> dict[int, Record]:
    """What ``pack_records`` packed; nothing where the length cannot be right."""
    if len(packed) % _ROW.size or len(packed) > MOST_PLACES * _ROW.size:
        return {}
    rows = _ROW.iter_unpack(packed)
    return {place: (words, seen, min(changed, seen)) for place, words, seen, changed in rows}


def _by_place(blocks: Sequence[Block]) -> dict[int, str]:
    """One text per place; places that are too many are folded together, and blocks that are too many are one place."""
    groups: dict[int, list[str]] = {}
    for place, text in blocks[:MOST_BLOCKS]:
        groups.setdefault(place & 0xFFFFFFFF or 1, []).append(text)
    if len(blocks) > MOST_BLOCKS:
        groups.setdefault(1, []).extend(text for _, text in blocks[MOST_BLOCKS:])
    if len(groups) >= MOST_PLACES:
        groups = _folded(groups)
    return {place: "\n".join(texts) for place, texts in groups.items()}


def _folded(groups: Mapping[int, list[str]]) -> dict[int, list[str]]:
    folded: dict[int, list[str]] = {}
    for place, texts in groups.items():
        folded.setdefault(1 + place % (MOST_PLACES - 1), []).extend(texts)
    return folded


def _fresh(prints: Mapping[int, int]) -> dict[int, Record]:
    if not prints:
        return {}
    return {ELSEWHERE: (0, 0, 0)} | {place: (words, 0, 0) for place, words in prints.items()}


def _counted(old: Mapping[int, Record], prints: Mapping[int, int], changed: frozenset[int]) -> dict[int, Record]:
    records = {ELSEWHERE: _after(old.get(ELSEWHERE, (0, 0, 0)), changed=ELSEWHERE in changed)}
    for place, words in prints.items():
        _, seen, times = _after(old[place], changed=place in changed) if place in old else (0, 0, 0)
        records[place] = words, seen, times
    return records


def _after(record: Record, *, changed: bool) -> Record:
    words, seen, times = record
    if seen >= _LARGEST_COUNT:
        seen, times = seen // 2, times // 2
    return words, seen + 1, times + changed


def _mean(record: Record) -> float:
    """Of the posterior of changing, from an even prior."""
    return (record[2] + 1) / (record[1] + 2)


def _total(sizes: Mapping[int, int]) -> int:
    return max(1, sum(sizes.values()) - sizes[ELSEWHERE])


def _rotating(records: Mapping[int, Record], sizes: Mapping[int, int], changed: Sequence[int]) -> list[int]:
    """Those of the changed places that are rotating boxes."""
    total = _total(sizes)
    restless = sum(sizes[place] for place in records if place != ELSEWHERE and _mean(records[place]) > 0.5)
    if 2 * restless >= total:
        return []
    return [place for place in changed if _mean(records[place]) >= TURNING and sizes[place] <= LARGEST_SHARE * total]
