"""Compare two versions of a page: how much it changed, and whether that counts as a change.

The operator chooses for each site what counts (``ChangeRule``):

- ``bytes``: any byte. Nothing is discounted.
- ``text``: the words of the visible text differ or are in another order (see ``shingles``: digits, case and punctuation
  are no part of a word), and something besides rotating boxes changed (see ``compare_boxes``). A date in words with its
  own place is such a box.
- ``main``: the same for the main text.
- ``links``: the set of links differs. Their order does not matter; links of rotating boxes count.

Under ``text`` and ``main`` the blocks are those of the judged text. They cost the most and matter only if the bytes
changed, so a caller may omit them on the first fetch and if the digest is unchanged; learning then starts with the
first change. Without blocks the words alone decide.

The share is of shingles: 1 - Jaccard, from the sketches of the main text. Replacing a box that is a fraction f of a
text by one of equal length gives a share of 2f / (1 + f); under ``main`` the part due to rotating boxes is subtracted
that way.

The stored data of a version has bounded size: ``StoredVersion.blob`` holds a sample of its links (the smallest
fingerprints, all of them up to ``MAX_LINKS``; beyond that, numbers of links are estimates) and the records of its
places.
"""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import xxhash

from vedette.model import ChangeRule
from vedette.parse.similarity.minhash import estimate_similarity
from vedette.parse.similarity.shingles import normal_form
from vedette.policy import Ints

__all__ = [
    "MAX_PLACES",
    "OTHER_PLACES",
    "BoxComparison",
    "Change",
    "ChangeRule",
    "NewVersion",
    "PlaceRecord",
    "PlacedText",
    "StoredVersion",
    "build_first_version",
    "compare_boxes",
    "compare_versions",
    "count_unchanged",
    "pack_records",
    "unpack_records",
]

# A block is a text and its *place*: a hash of its location, preferably of the names and classes of the elements around
# it and not of their positions, so that a new paragraph does not move those below it. Blocks of one place are one text.
# For each place a record of ten bytes is stored: a fingerprint of its words, and in how many comparisons it was seen
# and had changed. Everything that appears and disappears counts as one more place, ``OTHER_PLACES``: a box may have a
# new class every time. A place is a rotating box if: 1. it changes nearly always: the mean of its posterior, (changed +
# 1) / (seen + 2), is at least ``ROTATING_RATE``, which takes three comparisons that all saw a change; 2. it is a small
# part of the page: at most ``MAX_BOX_SHARE`` of the text; 3. the page around it stays: less than half of the text is in
# places that changed more often than not. So a live ticker, whose text is new each time, has no rotating box, and each
# of its versions is a change. Counts are halved when they grow large: a box that stops changing soon counts as content
# again.


PlacedText = tuple[int, str]
PlaceRecord = tuple[int, int, int]
"""Fingerprint of the words, comparisons, and changes among them."""

MAX_PLACES = 64
MAX_BLOCKS = 4096
OTHER_PLACES = 0
ROTATING_RATE = 0.8
MAX_BOX_SHARE = 0.2
_MAX_COUNT = 30
_ROW = struct.Struct("<IIBB")


@dataclass(frozen=True, slots=True)
class BoxComparison:
    """A comparison of page versions by place: how many steady places and rotating boxes changed, and their share."""

    steady_changes: int
    box_changes: int
    box_share: float
    records: Mapping[int, PlaceRecord]


def compare_boxes(old: Mapping[int, PlaceRecord], blocks: Sequence[PlacedText]) -> BoxComparison:
    """Compare the blocks of a new page version with the place records of the old one, to find rotating boxes.

    If either is missing, only records are made.
    """
    texts = _group_by_place(blocks)
    sizes = {place: len(text) for place, text in texts.items()}
    prints = {place: xxhash.xxh32_intdigest(normal_form(text)) for place, text in texts.items()}
    if not old or not texts:
        return BoxComparison(0, 0, 0.0, _create_records(prints))
    came = [place for place in prints if place not in old]
    gone = any(place not in prints for place in old if place != OTHER_PLACES)
    changed = [place for place in prints if place in old and prints[place] != old[place][0]]
    if came or gone:
        changed.append(OTHER_PLACES)
    sizes[OTHER_PLACES] = sum(sizes[place] for place in came)
    records = _update_records(old, prints, frozenset(changed))
    boxes = _find_rotating(records, sizes, changed)
    share = sum(sizes[place] for place in boxes) / _sum_sizes(sizes)
    return BoxComparison(len(changed) - len(boxes), len(boxes), share, records)


def count_unchanged(old: Mapping[int, PlaceRecord]) -> dict[int, PlaceRecord]:
    """Return the place records after a comparison that found the same bytes in both versions."""
    return {place: _count_comparison(record, changed=False) for place, record in old.items()}


def pack_records(records: Mapping[int, PlaceRecord]) -> bytes:
    """Pack the place records of a page version into ten bytes per place."""
    return b"".join(_ROW.pack(place, *record) for place, record in records.items())


def unpack_records(packed: bytes) -> dict[int, PlaceRecord]:
    """Unpack the place records that ``pack_records`` packed; empty if the length is wrong."""
    if len(packed) % _ROW.size or len(packed) > MAX_PLACES * _ROW.size:
        return {}
    rows = _ROW.iter_unpack(packed)
    return {place: (words, seen, min(changed, seen)) for place, words, seen, changed in rows}


def _group_by_place(blocks: Sequence[PlacedText]) -> dict[int, str]:
    """Group the blocks of a page version into one text per place.

    Places beyond a limit are folded together, and blocks beyond a limit are one place.
    """
    groups: dict[int, list[str]] = {}
    for place, text in blocks[:MAX_BLOCKS]:
        groups.setdefault(place & 0xFFFFFFFF or 1, []).append(text)
    if len(blocks) > MAX_BLOCKS:
        groups.setdefault(1, []).extend(text for _, text in blocks[MAX_BLOCKS:])
    if len(groups) >= MAX_PLACES:
        groups = _fold_places(groups)
    return {place: "\n".join(texts) for place, texts in groups.items()}


def _fold_places(groups: Mapping[int, list[str]]) -> dict[int, list[str]]:
    folded: dict[int, list[str]] = {}
    for place, texts in groups.items():
        folded.setdefault(1 + place % (MAX_PLACES - 1), []).extend(texts)
    return folded


def _create_records(prints: Mapping[int, int]) -> dict[int, PlaceRecord]:
    if not prints:
        return {}
    return {OTHER_PLACES: (0, 0, 0)} | {place: (words, 0, 0) for place, words in prints.items()}


def _update_records(
    old: Mapping[int, PlaceRecord], prints: Mapping[int, int], changed: frozenset[int]
) -> dict[int, PlaceRecord]:
    records = {OTHER_PLACES: _count_comparison(old.get(OTHER_PLACES, (0, 0, 0)), changed=OTHER_PLACES in changed)}
    for place, words in prints.items():
        _, seen, times = _count_comparison(old[place], changed=place in changed) if place in old else (0, 0, 0)
        records[place] = words, seen, times
    return records


def _count_comparison(record: PlaceRecord, *, changed: bool) -> PlaceRecord:
    words, seen, times = record
    if seen >= _MAX_COUNT:
        seen, times = seen // 2, times // 2
    return words, seen + 1, times + changed


def _compute_change_rate(record: PlaceRecord) -> float:
    """Compute the posterior mean of a place's probability to change between versions, from a uniform prior."""
    return (record[2] + 1) / (record[1] + 2)


def _sum_sizes(sizes: Mapping[int, int]) -> int:
    return max(1, sum(sizes.values()) - sizes[OTHER_PLACES])


def _find_rotating(records: Mapping[int, PlaceRecord], sizes: Mapping[int, int], changed: Sequence[int]) -> list[int]:
    """Find the changed places of a page that are rotating boxes."""
    total = _sum_sizes(sizes)
    restless = sum(
        sizes[place] for place in records if place != OTHER_PLACES and _compute_change_rate(records[place]) > 0.5
    )
    if 2 * restless >= total:
        return []
    return [
        place
        for place in changed
        if _compute_change_rate(records[place]) >= ROTATING_RATE and sizes[place] <= MAX_BOX_SHARE * total
    ]


MAX_LINKS = 256
_VERSION = 1
_HEAD = struct.Struct("<BIIH")
_LOWER_HALF = np.int64(32)
_NO_LINKS: Ints = np.empty(0, dtype=np.int64)


class NewVersion(NamedTuple):
    """The new version of a page, to compare with the stored one.

    The fingerprints are ``shingles.fingerprint_text`` of the visible and the main text; the sketch is ``Sketch.mins``
    of the main text (empty if it has no words); the links are fingerprints of the URLs it links to, in any order.
    """

    body_digest: bytes
    text_print: bytes
    main_print: bytes
    sketch: bytes
    links: Ints = _NO_LINKS
    blocks: Sequence[PlacedText] = ()


class StoredVersion(NamedTuple):
    """Stored data of a page version, to compare the next one with."""

    body_digest: bytes
    text_print: bytes
    main_print: bytes
    sketch: bytes
    links_print: int
    blob: bytes = b""


class Change(NamedTuple):
    """The change between two page versions; ``changed`` is by the chosen rule, ``share`` that of main text shingles."""

    changed: bool
    share: float
    links_added: int
    links_removed: int
    why: str


@dataclass(frozen=True, slots=True)
class _LinkSample:
    """A sample of a page version's links: how many there are, and the smallest fingerprints, cut to 32 bits."""

    count: int
    sample: frozenset[int]
    largest: int

    @property
    def is_complete(self) -> bool:
        return self.count <= MAX_LINKS


_UNKNOWN = _LinkSample(-1, frozenset(), 0)


def build_first_version(new: NewVersion) -> StoredVersion:
    """Build the stored version of a page that was never seen before."""
    return _build_stored(new, _sort_unique(new.links), compare_boxes({}, new.blocks).records if new.blocks else {})


def compare_versions(
    old: StoredVersion, new: NewVersion, judged_by: ChangeRule = "main"
) -> tuple[Change, StoredVersion]:
    """Compare a page with its stored version; return the change, and the version to store."""
    old_links, records = _unpack(old.blob)
    unique = _sort_unique(new.links)
    if new.body_digest == old.body_digest:
        return Change(False, 0.0, 0, 0, "the same bytes"), _build_stored(new, unique, count_unchanged(records))
    turned = compare_boxes(records, new.blocks)
    kept = _build_stored(new, unique, turned.records or records)
    added, removed = _count_moved_links(old_links, _build_link_sample(unique))
    changed, why = _judge_change(old, kept, turned, judged_by)
    share = _compute_share(old, new, turned, judged_by) if changed or judged_by in {"bytes", "links"} else 0.0
    return Change(changed, share, added, removed, _describe_change(why, share, added, removed)), kept


def _judge_change(
    old: StoredVersion, new: StoredVersion, turned: BoxComparison, judged_by: ChangeRule
) -> tuple[bool, str]:
    if judged_by == "bytes":
        return True, "bytes changed"
    if judged_by == "links":
        changed = old.links_print != new.links_print
        return changed, "links changed" if changed else "the same links"
    # The rule may be newer than the stored version: for parts that were not stored then, use the main text.
    by_text = judged_by == "text" and bool(old.text_print)
    name = "text" if by_text else "main text"
    same = old.text_print == new.text_print if by_text else old.main_print == new.main_print
    if same:
        return False, f"the {name} has the same words"
    if turned.box_changes and not turned.steady_changes:
        return False, f"only rotating boxes of the {name} changed ({turned.box_changes})"
    return True, f"the {name} changed"


def _compute_share(old: StoredVersion, new: NewVersion, turned: BoxComparison, judged_by: ChangeRule) -> float:
    if old.main_print == new.main_print or len(old.sketch) != len(new.sketch) or not old.sketch:
        return 0.0
    share = 1.0 - estimate_similarity(old.sketch, new.sketch)
    if judged_by != "main":
        return share
    replaced = max(0.0, share / (2.0 - share) - turned.box_share)
    return 2.0 * replaced / (1.0 + replaced)


def _describe_change(why: str, share: float, added: int, removed: int) -> str:
    parts = [why]
    if share:
        parts.append(f"{share:.0%} of the main text is new")
    if added or removed:
        parts.append(f"{added} {'link' if added == 1 else 'links'} added, {removed} removed")
    return "; ".join(parts)


def _build_stored(new: NewVersion, unique: Ints, records: Mapping[int, PlaceRecord]) -> StoredVersion:
    links_print = xxhash.xxh3_64_intdigest(unique.tobytes()) >> 1  # so that SQLite can store it
    return StoredVersion(
        new.body_digest, new.text_print, new.main_print, new.sketch, links_print, _pack(unique, records)
    )


def _sort_unique(links: Ints) -> Ints:
    """Sort link fingerprints and drop duplicates; most pages have none, which is cheaper to check first."""
    ordered = np.sort(links)
    return np.unique(ordered) if np.count_nonzero(ordered[1:] == ordered[:-1]) else ordered


def _take_sample(unique: Ints) -> "np.ndarray[tuple[int], np.dtype[np.int32]]":
    return (unique[:MAX_LINKS] >> _LOWER_HALF).astype("<i4")


def _build_link_sample(unique: Ints) -> _LinkSample:
    sample = _take_sample(unique).tolist()
    return _LinkSample(len(unique), frozenset(sample), sample[-1] if sample else 0)


def _count_moved_links(old: _LinkSample, new: _LinkSample) -> tuple[int, int]:
    """Count links added and removed between page versions.

    If a sample is cut, both are compared below the cut and scaled up.
    """
    if old.count < 0:
        return 0, 0
    if old.is_complete and new.is_complete:
        return len(new.sample - old.sample), len(old.sample - new.sample)
    cut = min(links.largest for links in (old, new) if not links.is_complete)
    before = frozenset(link for link in sorted(old.sample) if link <= cut)
    after = frozenset(link for link in sorted(new.sample) if link <= cut)
    return _scale_up(len(after - before), len(after), new.count), _scale_up(len(before - after), len(before), old.count)


def _scale_up(moved: int, sampled: int, count: int) -> int:
    return round(moved * count / sampled) if sampled else 0


def _pack(unique: Ints, records: Mapping[int, PlaceRecord]) -> bytes:
    sample = _take_sample(unique)
    tail = sample.tobytes() + pack_records(records)
    return _HEAD.pack(_VERSION, xxhash.xxh32_intdigest(tail), len(unique), len(sample)) + tail


def _unpack(blob: bytes) -> tuple[_LinkSample, dict[int, PlaceRecord]]:
    """Unpack the link sample and place records of a stored version; empty if the blob is damaged or unknown."""
    if len(blob) < _HEAD.size:
        return _UNKNOWN, {}
    version, check, count, sampled = _HEAD.unpack_from(blob)
    tail = blob[_HEAD.size :]
    sound = version == _VERSION and sampled == min(count, MAX_LINKS) and 4 * sampled <= len(tail)
    if not sound or xxhash.xxh32_intdigest(tail) != check:
        return _UNKNOWN, {}
    sample = np.frombuffer(tail, dtype="<i4", count=sampled).tolist()
    return _LinkSample(count, frozenset(sample), max(sample, default=0)), unpack_records(tail[4 * sampled :])
