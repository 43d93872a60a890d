"""URL hash table: which URLs are known, and under which id, at 64 bits per slot.

A coordinator gets millions of links and knows four of five already, so lookups must come from memory, in batches, with
few bytes. Ids are assigned in order of arrival, from 1; they are the row numbers of the state.

A fingerprint is hashed with a secret number, and the upper 53 bits of the result are the URL's *hash*. Its upper part,
scaled to the number of buckets, is the *home* bucket (16 adjacent slots); a URL is stored in the first bucket from
there on that had room, and buckets fill from the left. Nothing is ever removed. So

- a search ends at the first bucket with room, and compares 16 slots at once;
- homes grow with hashes, so the table is sorted by hash except within its clusters. It grows by one pass of sorting and
  streaming, so cheaply that it can always be three quarters full; a table that doubles would be half empty.

A slot has the id in its lower bits and a *tag* above: the lower bits of the hash, as many as fit. Its position gives
the rest: a tag recurs only every 62 buckets or more, and no URL is stored further than that (``reach``) from its home.
So two URLs collide only if all 53 bits agree: with ten million known URLs, once in a billion new ones.

The secret prevents a web site from choosing URLs that crowd one bucket, or that collide with a URL of another site.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil
from typing import Any

import numpy as np
import numpy.typing as npt
import xxhash

from vedette.errors import StoreError

UInt64s = npt.NDArray[np.uint64]
Ids = npt.NDArray[np.uint32]
Counts8 = npt.NDArray[np.uint8]
Bools = npt.NDArray[np.bool_]
Positions = npt.NDArray[np.int64]

BUCKET_SLOTS = 16
HASH_BITS = 53
HOME_BITS = 32
MAX_REACH = 63
LOAD_AFTER_GROWTH = 0.75
LOAD_BEFORE_GROWTH = 0.80
HOPELESS_LOAD = 0.1
MIN_BUCKETS = 8
BATCH_KEYS = 4096  # keys; bounds the memory of a search to about a megabyte
STREAM_BUCKETS = 16_384
MAX_MENTIONS = 255
GOLDEN = np.uint64(0x9E37_79B9_7F4A_7C15)


@dataclass(frozen=True, slots=True)
class AddResult:
    """The id of every URL added to the hash table, and which were unknown; the first of equals counts as new."""

    ids: Ids
    new: Bools


@dataclass(frozen=True, slots=True)
class _Shape:
    """How URL hashes are spread over a number of buckets, and how they are recovered from tag and position."""

    buckets: int

    @property
    def id_bits(self) -> int:
        return (self.buckets * BUCKET_SLOTS).bit_length()

    @property
    def tag_bits(self) -> int:
        return 64 - self.id_bits

    @property
    def reach(self) -> int:
        """How many buckets after its home a URL may be stored so that its tag still identifies it."""
        tags = 1 << self.tag_bits >> (HASH_BITS - HOME_BITS)
        return min(MAX_REACH, ((tags - 1) * self.buckets >> HOME_BITS) - 1)

    @property
    def rows(self) -> int:
        """Number of URL hash table buckets in memory, including room for overflow of the last home."""
        return self.buckets + self.reach + 1

    def homes(self, hashes: UInt64s) -> Positions:
        return ((hashes >> (HASH_BITS - HOME_BITS)) * self.buckets >> HOME_BITS).astype(np.int64)

    def tags(self, hashes: UInt64s) -> UInt64s:
        return hashes & np.uint64((1 << self.tag_bits) - 1)

    def pack(self, hashes: UInt64s, ids: Ids) -> UInt64s:
        return self.tags(hashes) << np.uint64(self.id_bits) | ids

    def ids(self, slots: UInt64s) -> Ids:
        return (slots & ((1 << self.id_bits) - 1)).astype(np.uint32)

    def hashes(self, slots: UInt64s, rows: UInt64s) -> UInt64s:
        """Return the URL hashes of used slots: the largest with that tag whose home is not after its position."""
        beyond = (((rows + 1) << HOME_BITS) + (self.buckets - 1)) // self.buckets
        largest = (beyond << (HASH_BITS - HOME_BITS)) - 1
        return largest - ((largest - (slots >> self.id_bits)) & ((1 << self.tag_bits) - 1))


class UrlTable:
    """Hash table of all known URLs by fingerprint, and how often each was mentioned.

    >>> table = UrlTable(secret=1)
    >>> added = table.add(np.array([7, 8, 7], np.uint64))
    >>> added.ids.tolist(), added.new.tolist()
    ([1, 2, 1], [True, True, False])
    >>> table.find(np.array([8, 9], np.uint64)).tolist(), table.mention_counts(added.ids[:2]).tolist()
    ([2, 0], [2, 1])
    """

    def __init__(self, secret: int, room: int = 0) -> None:
        self.secret = secret
        self._key = np.uint64(secret & (1 << 64) - 1)
        self._factor = self._key | np.uint64(1)
        self._size = 0
        self._named = np.zeros(1, np.uint8)
        self._shape = _Shape(_buckets_for(room))
        self._slots = np.zeros((self._shape.rows, BUCKET_SLOTS), np.uint64)

    def __len__(self) -> int:
        return self._size

    @property
    def nbytes(self) -> int:
        """Memory of the URL hash table in bytes."""
        return self._slots.nbytes + self._named.nbytes

    def fingerprints(self, urls: Sequence[str]) -> UInt64s:
        """Return the 64-bit fingerprints of URLs in this hash table; they depend on its secret."""
        seed, digest = int(self._key), xxhash.xxh64_intdigest
        return np.fromiter([digest(url.encode(), seed) for url in urls], np.uint64, len(urls))

    def find(self, fingerprints: UInt64s) -> Ids:
        """Return the id of each URL fingerprint, 0 if unknown."""
        return _find_in_batches(self._find, self._hash(fingerprints))

    def add(self, fingerprints: UInt64s) -> AddResult:
        """Add URL fingerprints to the hash table and count their mentions."""
        hashes = self._hash(fingerprints)
        ids = _find_in_batches(self._find, hashes)
        new = np.zeros(len(ids), np.bool_)
        unknown = np.flatnonzero(ids == 0)
        if unknown.size:
            distinct, first, which = np.unique(hashes[unknown], return_index=True, return_inverse=True)
            fresh = np.empty(len(distinct), np.uint32)
            fresh[np.argsort(first)] = np.arange(self._size + 1, self._size + 1 + len(distinct))
            self._insert(distinct, fresh)
            ids[unknown] = fresh[which]
            new[unknown[first]] = True
        self._add_mentions(ids)
        return AddResult(ids, new)

    def count_mentions(self, fingerprints: UInt64s) -> Ids:
        """Count mentions of known URL fingerprints; return the id of each, 0 if unknown."""
        ids = self.find(fingerprints)
        self._add_mentions(ids[ids != 0])
        return ids

    def mention_counts(self, ids: Ids) -> Counts8:
        """Return how often each URL was given to ``add``, up to 255 times."""
        return self._named[ids]

    def restore_counts(self, named: Counts8) -> None:
        """Restore the mention counts that an earlier URL hash table had for the first ids."""
        count = min(len(named), self._size + 1)
        self._named[:count] = named[:count]

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the URL hash table as arrays to save, except its secret; they change as the table is used."""
        buckets = np.array(self._shape.buckets, np.int64)
        return {"buckets": buckets, "slots": self._slots, "named": self._named[: self._size + 1]}

    @classmethod
    def from_arrays(cls, secret: int, arrays: dict[str, npt.NDArray[Any]]) -> "UrlTable":
        """Build a URL hash table from what ``to_arrays`` returned; it takes the arrays over."""
        table = cls(secret)
        table._shape = _Shape(int(arrays["buckets"]))
        table._slots, table._named, table._size = arrays["slots"], arrays["named"].copy(), len(arrays["named"]) - 1
        return table

    def _hash(self, fingerprints: UInt64s) -> UInt64s:
        """Hash URL fingerprints with the secret.

        Multiplying carries lower bits up, folding brings upper ones down: no pattern survives both.
        """
        stirred = fingerprints ^ self._key
        stirred = (stirred ^ (stirred >> np.uint64(32))) * GOLDEN
        stirred = (stirred ^ (stirred >> np.uint64(29))) * self._factor
        return (stirred ^ (stirred >> np.uint64(32))) >> np.uint64(64 - HASH_BITS)

    def _find(self, hashes: UInt64s) -> Ids:
        """Find URL hashes bucket by bucket from home on, all at once; those found or meeting room drop out."""
        shape = self._shape
        ids = np.zeros(len(hashes), np.uint32)
        rest, at, tags = np.arange(len(hashes)), shape.homes(hashes), shape.tags(hashes)
        for _ in range(shape.reach + 1):
            rows = self._slots.take(at, axis=0)
            column = ((rows >> shape.id_bits) == tags[:, None]).argmax(axis=1)
            slots = rows[np.arange(len(rows)), column]
            found = (slots >> shape.id_bits) == tags
            # An empty slot reads as tag 0 with id 0, which is the right answer: used slots are left of it.
            ids[rest[found]] = shape.ids(slots[found])
            on = np.flatnonzero(~found & (rows[:, -1] != 0))
            if not on.size:
                break
            rest, at, tags = rest[on], at[on] + 1, tags[on]
        return ids

    def _insert(self, hashes: UInt64s, ids: Ids) -> None:
        """Insert distinct URL hashes that the table does not have, growing it if needed."""
        size = self._size + len(ids)
        grow_array(self, "_named", size + 1)
        if size > LOAD_BEFORE_GROWTH * BUCKET_SLOTS * self._shape.buckets:
            self._grow(_buckets_for(size), size)
        while (left := self._place(hashes, ids)).size:
            hashes, ids = hashes[left], ids[left]
            self._grow(_more_buckets(self._shape.buckets, size), size)
        self._size = size

    def _place(self, hashes: UInt64s, ids: Ids) -> Positions:
        """Put each URL hash into the first bucket with room; return those that find none within reach."""
        shape, flat = self._shape, self._slots.reshape(-1)
        words, at = shape.pack(hashes, ids), shape.homes(hashes)
        ends = at + shape.reach
        rest = np.arange(len(ids))
        far = []
        while rest.size:
            filled = np.count_nonzero(self._slots.take(at, axis=0), axis=1)
            room = np.flatnonzero(filled < BUCKET_SLOTS)
            slots = at[room] * BUCKET_SLOTS + filled[room]
            flat[slots] = words[rest[room]]
            # Of several that want one slot the last write wins; the others search again.
            done = np.zeros(len(rest), np.bool_)
            done[room] = flat[slots] == words[rest[room]]
            at[filled == BUCKET_SLOTS] += 1
            lost = at > ends[rest]
            far.append(rest[lost])
            on = ~(done | lost)
            rest, at = rest[on], at[on]
        return np.concatenate(far) if far else rest

    def _grow(self, buckets: int, size: int) -> None:
        """Grow the URL hash table to this many buckets for this many URLs, or more if they do not spread well."""
        while (slots := self._rehash(_Shape(buckets))) is None:
            buckets = _more_buckets(buckets, size)
        self._shape, self._slots = _Shape(buckets), slots

    def _rehash(self, shape: _Shape) -> UInt64s | None:
        """Return the URL hash table's slots in another shape, or None if a URL would be beyond reach.

        Between two buckets with room there are whole clusters, so pieces cut there follow each other in hash order:
        each is sorted by itself and appended to the previous one.
        """
        slots = np.zeros((shape.rows, BUCKET_SLOTS), np.uint64)
        end = 0
        for start, stop in pairwise(self._find_cuts()):
            hashes, ids = self._read_entries(start, stop)
            if not ids.size:
                continue
            homes, count = shape.homes(hashes), np.arange(len(ids))
            # Each is at its home or right after the previous one: a running maximum of (home - count) + count.
            ahead = homes * BUCKET_SLOTS - count
            ahead[0] = max(ahead[0], end)
            places = np.maximum.accumulate(ahead) + count
            if (places // BUCKET_SLOTS - homes).max() > shape.reach:
                return None
            slots.reshape(-1)[places] = shape.pack(hashes, ids)
            end = int(places[-1]) + 1
        return slots

    def _find_cuts(self) -> list[int]:
        """Find where the URL hash table may be cut: after buckets with room, about every 16 384 buckets."""
        room = np.flatnonzero(self._slots[:, -1] == 0)
        wanted = np.arange(STREAM_BUCKETS, len(self._slots), STREAM_BUCKETS)
        behind = room[np.minimum(np.searchsorted(room, wanted), len(room) - 1)] + 1
        return sorted({0, len(self._slots), *behind.tolist()})

    def _read_entries(self, start: int, stop: int) -> tuple[UInt64s, Ids]:
        """Return URL hashes and ids of the buckets from ``start`` to ``stop``, sorted by hash."""
        flat = self._slots[start:stop].reshape(-1)
        places = np.flatnonzero(flat)
        slots = flat[places]
        hashes = self._shape.hashes(slots, (start + places // BUCKET_SLOTS).astype(np.uint64))
        order = np.argsort(hashes)
        return hashes[order], self._shape.ids(slots[order])

    def _add_mentions(self, ids: Ids) -> None:
        which, times = np.unique(ids, return_counts=True)
        self._named[which] = np.minimum(self._named[which] + times, MAX_MENTIONS)


def grow_array(owner: object, name: str, size: int) -> None:
    """Grow an array of the URL hash table or host queues to at least ``size`` rows, with a thirty-second to spare.

    Large arrays move by remapping their pages, so a small step costs no copy.
    """
    array: npt.NDArray[Any] = getattr(owner, name)
    if size > len(array):
        # The owner has no view of it; the check would count this function's own reference.
        array.resize((size + size // 32 + 64, *array.shape[1:]), refcheck=False)


def _buckets_for(size: int) -> int:
    return max(MIN_BUCKETS, ceil(size / LOAD_AFTER_GROWTH / BUCKET_SLOTS))


def _more_buckets(buckets: int, size: int) -> int:
    """Return the next size of a URL hash table in which a URL found no slot.

    A table that is nearly empty should have had one.
    """
    if size < HOPELESS_LOAD * BUCKET_SLOTS * buckets:
        raise StoreError("too many collisions in the known-URL hash table: import the URLs into a new data folder")
    return ceil(buckets * LOAD_BEFORE_GROWTH / LOAD_AFTER_GROWTH)


def _find_in_batches(find: Callable[[UInt64s], Ids], hashes: UInt64s) -> Ids:
    pieces = [find(hashes[start : start + BATCH_KEYS]) for start in range(0, len(hashes), BATCH_KEYS)]
    return np.concatenate(pieces) if pieces else np.zeros(0, np.uint32)
