"""How much a page changed between two versions, and whether that counts.

What counts is the operator's choice for the site (``JudgedBy``):

- ``bytes``: any byte. Nothing is discounted.
- ``text``: the words of the visible text are others or in another order (see ``shingles``: digits, case and punctuation
  are no part of a word), and something beyond rotating boxes changed (see ``boxes``). A date in words that stands in a
  place of its own is such a box.
- ``main``: the same of the main text.
- ``links``: the set of links is another. The order of links is no difference; links of rotating boxes do count.

Under ``text`` and ``main`` the blocks are those of the text that is judged. They cost most and matter only to a page
whose bytes changed, so a caller may leave them out on the first fetch and where the digest is the old one; learning
then starts with the first change. Without blocks the words alone decide.

The share is of shingles: 1 - Jaccard, from the sketches of the main text. A box that is a part f of a text replaced
in equal length alone makes a share of 2f / (1 + f); under ``main`` what rotating boxes explain is taken off that way.

What is kept of a version is of bounded size: ``Kept.blob`` holds a sample of its links (the smallest fingerprints, all
of them up to ``MOST_LINKS``, beyond that numbers of links are estimates) and the records of its places.
"""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import xxhash

from vedette.model import JudgedBy
from vedette.parse.change.boxes import Block, Record, Turn, pack_records, turn, unpack_records, unturned
from vedette.parse.similarity.minhash import similarity
from vedette.policy import Ints

__all__ = ["Change", "JudgedBy", "Kept", "Seen", "compare", "first"]

MOST_LINKS = 256
_VERSION = 1
_HEAD = struct.Struct("<BIIH")
_LOWER_HALF = np.int64(32)
_NO_LINKS: Ints = np.empty(0, dtype=np.int64)


class Seen(NamedTuple):
    """The version that came now.

    The prints are ``shingles.fingerprint`` of the visible and the main text, the sketch is ``Sketch.mins`` of the main
    text (empty where it has no words), and the links are fingerprints of the URLs that it links to, in any order.
    """

    body_digest: bytes
    text_print: bytes
    main_print: bytes
    sketch: bytes
    links: Ints = _NO_LINKS
    blocks: Sequence[Block] = ()


class Kept(NamedTuple):
    """What is kept of a version to compare the next one with."""

    body_digest: bytes
    text_print: bytes
    main_print: bytes
    sketch: bytes
    links_print: int
    blob: bytes = b""


class Change(NamedTuple):
    """What became of a page; ``changed`` is under the chosen rule, ``share`` of the main text's shingles."""

    changed: bool
    share: float
    links_added: int
    links_removed: int
    why: str


@dataclass(frozen=True, slots=True)
class _Links:
    """How many links a version has, and the smallest of their fingerprints, cut to 32 bits."""

    count: int
    sample: frozenset[int]
    largest: int

    @property
    def whole(self) -> bool:
        return self.count <= MOST_LINKS


_UNKNOWN = _Links(-1, frozenset(), 0)


def first(new: Seen) -> Kept:
    """What to keep of a page that was never seen before."""
    return _kept(new, _unique(new.links), turn({}, new.blocks).records if new.blocks else {})


def compare(old: Kept, new: Seen, judged_by: JudgedBy = "main") -> tuple[Change, Kept]:
    """What changed since the kept version, and what to keep of the new one."""
    old_links, records = _unpack(old.blob)
    unique = _unique(new.links)
    if new.body_digest == old.body_digest:
        return Change(False, 0.0, 0, 0, "the same bytes"), _kept(new, unique, unturned(records))
    turned = turn(records, new.blocks)
    kept = _kept(new, unique, turned.records or records)
    added, removed = _links_moved(old_links, _sampled(unique))
    changed, why = _judged(old, kept, turned, judged_by)
    share = _share(old, new, turned, judged_by) if changed or judged_by in {"bytes", "links"} else 0.0
    return Change(changed, share, added, removed, _told(why, share, added, removed)), kept


def _judged(old: Kept, new: Kept, turned: Turn, judged_by: JudgedBy) -> tuple[bool, str]:
    if judged_by == "bytes":
        return True, "bytes changed"
    if judged_by == "links":
        changed = old.links_print != new.links_print
        return changed, "links changed" if changed else "the same links"
    # The rule may be younger than the version that is kept: of what was not looked at then, the main text speaks.
    by_text = judged_by == "text" and bool(old.text_print)
    name = "text" if by_text else "main text"
    same = old.text_print == new.text_print if by_text else old.main_print == new.main_print
    if same:
        return False, f"the {name} has the same words"
    if turned.boxes and not turned.steady:
        return False, f"only rotating boxes of the {name} changed ({turned.boxes})"
    return True, f"the {name} changed"


def _share(old: Kept, new: Seen, turned: Turn, judged_by: JudgedBy) -> float:
    if old.main_print == new.main_print or len(old.sketch) != len(new.sketch) or not old.sketch:
        return 0.0
    share = 1.0 - similarity(old.sketch, new.sketch)
    if judged_by != "main":
        return share
    replaced = max(0.0, share / (2.0 - share) - turned.boxes_share)
    return 2.0 * replaced / (1.0 + replaced)


def _told(why: str, share: float, added: int, removed: int) -> str:
    parts = [why]
    if share:
        parts.append(f"{share:.0%} of the main text is new")
    if added or removed:
        parts.append(f"{added} {'link' if added == 1 else 'links'} added, {removed} removed")
    return "; ".join(parts)


def _kept(new: Seen, unique: Ints, records: Mapping[int, Record]) -> Kept:
    links_print = xxhash.xxh3_64_intdigest(unique.tobytes()) >> 1  # so that SQLite can keep it
    return Kept(new.body_digest, new.text_print, new.main_print, new.sketch, links_print, _pack(unique, records))


def _unique(links: Ints) -> Ints:
    """In order, each once; most pages name each only once, which is cheaper to see than to bring about."""
    ordered = np.sort(links)
    return np.unique(ordered) if np.count_nonzero(ordered[1:] == ordered[:-1]) else ordered


def _sample(unique: Ints) -> "np.ndarray[tuple[int], np.dtype[np.int32]]":
    return (unique[:MOST_LINKS] >> _LOWER_HALF).astype("<i4")


def _sampled(unique: Ints) -> _Links:
    sample = _sample(unique).tolist()
    return _Links(len(unique), frozenset(sample), sample[-1] if sample else 0)


def _links_moved(old: _Links, new: _Links) -> tuple[int, int]:
    """Links added and removed; where a sample is cut, both are compared below the cut and scaled up."""
    if old.count < 0:
        return 0, 0
    if old.whole and new.whole:
        return len(new.sample - old.sample), len(old.sample - new.sample)
    cut = min(links.largest for links in (old, new) if not links.whole)
    before = frozenset(link for link in sorted(old.sample) if link <= cut)
    after = frozenset(link for link in sorted(new.sample) if link <= cut)
    return _scaled(len(after - before), len(after), new.count), _scaled(len(before - after), len(before), old.count)


def _scaled(moved: int, sampled: int, count: int) -> int:
    return round(moved * count / sampled) if sampled else 0


def _pack(unique: Ints, records: Mapping[int, Record]) -> bytes:
    sample = _sample(unique)
    tail = sample.tobytes() + pack_records(records)
    return _HEAD.pack(_VERSION, xxhash.xxh32_intdigest(tail), len(unique), len(sample)) + tail


def _unpack(blob: bytes) -> tuple[_Links, dict[int, Record]]:
    """What ``_pack`` packed; a blob that is torn, foreign or of another version is no blob."""
    if len(blob) < _HEAD.size:
        return _UNKNOWN, {}
    version, check, count, sampled = _HEAD.unpack_from(blob)
    tail = blob[_HEAD.size :]
    sound = version == _VERSION and sampled == min(count, MOST_LINKS) and 4 * sampled <= len(tail)
    if not sound or xxhash.xxh32_intdigest(tail) != check:
        return _UNKNOWN, {}
    sample = np.frombuffer(tail, dtype="<i4", count=sampled).tolist()
    return _Links(count, frozenset(sample), max(sample, default=0)), unpack_records(tail[4 * sampled :])
