"""MinHash band table: which page first had this band of its sketch, at eight bytes per key.

Two pages that share a band are probably near-duplicates (see ``parse.similarity.minhash``); so for each of the 16 bands
of a page the table returns the page that had it first, and adds the missing ones. The result is a hint: compare the
sketches.

A band is hashed with a secret, and 32 bits of the result are its *tag*. Each band number has its own region of 2**n
buckets; the tag's upper bits choose the *home* bucket there. A bucket is 16 tags followed by their 16 ids, 128 adjacent
bytes; it fills from the left, and overflow goes to the next one with room. So a search ends at the first bucket with
room; no key is ever removed. Two bands collide if number and tag agree: with a million pages that happens to one key in
4 000, which costs one comparison of sketches.

The home follows from the tag alone, so the table doubles by moving its keys, without needing the bands again. No region
is ever more than 70% full. The secret prevents a web site from choosing texts whose bands crowd one bucket.

As a file the table is memory-mapped. It is derived data: a file that is missing, truncated or of another secret is
rebuilt from scratch. A killed process may leave more or less in it than the state has. So the file says whether it was
closed; if not (``behind``), the caller fills it again. Treat an id that the state does not know as none.
"""

import os
from dataclasses import dataclass
from mmap import mmap
from pathlib import Path
from struct import Struct

import numpy as np
import numpy.typing as npt
import xxhash

UInt64s = npt.NDArray[np.uint64]
Ids = npt.NDArray[np.uint32]
Positions = npt.NDArray[np.int64]

BANDS = 16
SLOTS = 16
BUCKET = 2 * SLOTS  # 32-bit numbers: tags, then ids
TAG_BITS = 32
MIN_BITS = 5
MAX_LOAD = 0.70
GROW_LOAD = 0.60  # counting scans the whole table, so there must be room for many keys after it
BATCH_ROWS = 256  # bounds the memory of a search to a few megabytes
BATCH_BUCKETS = 1024
GOLDEN = np.uint64(0x9E37_79B9_7F4A_7C15)

MAGIC = b"vedette bands 1\n"
HEAD_BYTES = 4096  # a page of memory, so that no bucket spans two
_HEAD = Struct("<16sQQQ?")  # magic, owner, bits, a number that is no longer used, closed
_SUM_BYTES = 8
_BAND_NUMBERS = np.arange(BANDS)


@dataclass(frozen=True, slots=True)
class _Head:
    """Header of a MinHash band table file."""

    owner: int
    bits: int
    closed: bool

    def pack(self) -> bytes:
        """Pack the header of a band table file, with a checksum."""
        fields = _HEAD.pack(MAGIC, self.owner, self.bits, 0, self.closed)
        return fields + xxhash.xxh3_64_digest(fields)

    @classmethod
    def parse(cls, file: mmap) -> "_Head | None":
        """Parse the header of a band table file; None if it is not one that ``pack`` wrote."""
        fields, check = file[: _HEAD.size], file[_HEAD.size : _HEAD.size + _SUM_BYTES]
        if xxhash.xxh3_64_digest(fields) != check or not fields.startswith(MAGIC):
            return None
        _, owner, bits, _, closed = _HEAD.unpack(fields)
        return cls(owner, bits, closed)


@dataclass(frozen=True, slots=True)
class _Buckets:
    """The buckets of a MinHash band table, ``2**bits`` for each band, and the file they are mapped from, if any."""

    bits: int
    buckets: Ids
    file: mmap | None = None

    def find_homes(self, tags: Ids) -> Positions:
        """Return the home bucket of each band tag, counted within the region of its band."""
        return (tags >> np.uint32(TAG_BITS - self.bits)).astype(np.int64)

    def split(self, start: int, wider: "_Buckets") -> tuple[Ids, Positions, Ids]:
        """Move some band table buckets to a store twice as large; return tags, homes and ids of those left over.

        A bucket's own keys go to one of two neighboring buckets, so there is room. Keys that had overflowed are left
        over.
        """
        block = self.buckets[start : start + BATCH_BUCKETS]
        tags, ids = block[:, :SLOTS], block[:, SLOTS:]
        rows = np.arange(start, start + len(block))[:, None]
        # The home is at or before the position, and less than a region away, even if another region begins between.
        bands = (rows - self.find_homes(tags) >> self.bits) % BANDS
        homes = wider.find_homes(tags) + (bands << wider.bits)
        for half in (2 * rows, 2 * rows + 1):
            own = (homes == half) & (tags != 0)
            row, column = np.nonzero(own)
            slots = half[row, 0] * BUCKET + (np.cumsum(own, axis=1)[row, column] - 1)
            flat = wider.buckets.reshape(-1)
            flat[slots], flat[slots + SLOTS] = tags[row, column], ids[row, column]
        strayed = (homes >> 1 != rows) & (tags != 0)
        return tags[strayed], homes[strayed], ids[strayed]

    def count_keys(self) -> list[int]:
        """Count the keys in the region of each band."""
        tags = self.buckets.reshape(BANDS, -1, BUCKET)[:, :, :SLOTS]
        return [sum(_count_taken(region)) for region in tags]

    def count_free(self, most: int) -> int:
        """Count how many more keys each band region can take up to ``most``; 0 if it is time to double."""
        size = SLOTS << self.bits
        return int(MAX_LOAD * size) - most if most <= GROW_LOAD * size else 0


class BandTable:
    """MinHash bands of all pages, each with the first page that had it.

    >>> table = BandTable(None, secret=1)
    >>> bands = np.arange(32, dtype=np.uint64).reshape(2, 16)
    >>> bands[1, 3] = bands[0, 3]
    >>> table.match_or_add(np.array([7, 8], np.uint32), bands)[:, :5].tolist()
    [[0, 0, 0, 0, 0], [0, 0, 0, 7, 0]]
    >>> len(table)
    31
    """

    def __init__(self, path: Path | None, secret: int) -> None:
        digest = xxhash.xxh3_128_digest((secret % (1 << 128)).to_bytes(16, "little"))
        self._salt, factor = np.frombuffer(digest, "<u8").astype(np.uint64)
        self._factor = factor | np.uint64(1)
        self._owner = xxhash.xxh3_64_intdigest(digest)
        self._path = path
        self._left = 0
        self.behind = False
        store = self._open_file()
        if store is None:
            self.reset()
        else:
            self._store = store
            self._write_head(closed=False)

    def __len__(self) -> int:
        return sum(self._store.count_keys())

    @property
    def nbytes(self) -> int:
        """Size of the MinHash band table's keys in bytes, in memory or on disk."""
        return self._store.buckets.nbytes

    def match_or_add(self, ids: Ids, bands: UInt64s) -> Ids:
        """Return, for each MinHash band of each page, the page that had it first, 0 for none; add the unknown bands.

        An earlier row of a batch counts as an earlier page. A page's own bands are no match. Ids start at 1.
        """
        pieces = [slice(at, at + BATCH_ROWS) for at in range(0, len(ids), BATCH_ROWS)]
        found = [self._match_or_add(ids[piece], bands[piece]) for piece in pieces]
        return found[0] if len(found) == 1 else np.concatenate([np.zeros((0, BANDS), np.uint32), *found])

    def reset(self) -> None:
        """Empty the MinHash band table."""
        self._left = 0
        self._adopt(self._create_buckets(MIN_BITS))

    def close(self) -> None:
        """Write the MinHash band table to disk and mark its file as closed; it cannot be used afterwards."""
        self._sync()
        self._write_head(closed=True)

    def _match_or_add(self, ids: Ids, bands: UInt64s) -> Ids:
        self._make_room(len(ids))
        store = self._store
        # From the last row to the first: the last write to a slot wins.
        tags = self._compute_tags(bands[::-1])
        at = store.find_homes(tags) + (_BAND_NUMBERS << store.bits)
        own = np.repeat(ids[::-1], BANDS)
        found = _find_or_insert(store.buckets, at.ravel(), tags.ravel(), own)
        found[found == own] = 0
        return found.reshape(-1, BANDS)[::-1]

    def _compute_tags(self, bands: UInt64s) -> Ids:
        """Compute the tags of MinHash bands, never 0, which marks an empty slot.

        Multiplying carries lower bits up, folding brings upper ones down.
        """
        stirred = (bands ^ self._salt) * self._factor
        stirred = (stirred ^ (stirred >> np.uint64(32))) * GOLDEN
        tags: Ids = np.maximum((stirred >> np.uint64(64 - TAG_BITS)).astype(np.uint32), np.uint32(1))
        return tags

    def _make_room(self, pages: int) -> None:
        """Grow the MinHash band table if needed.

        A page adds at most one key to each region, so counting is seldom needed.
        """
        if pages > self._left:
            most = max(self._store.count_keys())
            while self._store.count_free(most) < pages:
                self._double()
            self._left = self._store.count_free(most)
        self._left -= pages

    def _double(self) -> None:
        old, new = self._store, self._create_buckets(self._store.bits + 1)
        strayed = [old.split(start, new) for start in range(0, len(old.buckets), BATCH_BUCKETS)]
        for tags, homes, ids in strayed:
            _find_or_insert(new.buckets, homes, tags, ids)
        self._adopt(new)

    def _create_buckets(self, bits: int) -> _Buckets:
        """Create an empty bucket store for the band table; if it is a file, a draft beside the one in use."""
        if self._path is None:
            return _Buckets(bits, np.zeros((BANDS << bits, BUCKET), np.uint32))
        with _draft_path(self._path).open("w+b") as file:
            # Without reserved space, a full disk would kill the process at some later write to memory.
            os.posix_fallocate(file.fileno(), 0, _size_bytes(bits))
            return _map_buckets(mmap(file.fileno(), 0), bits)

    def _open_file(self) -> _Buckets | None:
        """Open the file of the MinHash band table, if it is intact and ours."""
        if self._path is None or not self._path.exists() or self._path.stat().st_size < HEAD_BYTES:
            return None
        with self._path.open("r+b") as opened:
            file = mmap(opened.fileno(), 0)
        head = _Head.parse(file)
        if head is None or head.owner != self._owner or len(file) != _size_bytes(head.bits):
            return None
        self.behind = not head.closed
        return _map_buckets(file, head.bits)

    def _adopt(self, store: _Buckets) -> None:
        """Use this bucket store from now on; its file replaces the previous one atomically."""
        self._store = store
        if self._path is not None:
            self._sync()
            self._write_head(closed=False)
            _draft_path(self._path).replace(self._path)

    def _sync(self) -> None:
        if self._store.file is not None:
            self._store.file.flush()

    def _write_head(self, *, closed: bool) -> None:
        if self._store.file is not None:
            head = _Head(self._owner, self._store.bits, closed).pack()
            self._store.file[: len(head)] = head
            self._store.file.flush(0, HEAD_BYTES)


def _find_or_insert(buckets: Ids, at: Positions, tags: Ids, own: Ids) -> Ids:
    """Find each band tag from its home bucket on, or insert it where the search ends; return the ids.

    All at once: a tag that meets a full bucket moves on to the next, and one that lost a slot to another tag searches
    again.
    """
    flat, halves = buckets.reshape(-1), buckets.reshape(-1, SLOTS)
    ids = np.empty(len(tags), np.uint32)
    rest = np.arange(len(tags))
    while len(rest):
        seen = halves.take(at * 2, axis=0)
        slots = at * BUCKET + ((seen == tags[:, None]) | (seen == 0)).argmax(axis=1)
        empty = flat.take(slots) == 0
        room = slots[empty]
        # The id first: a process killed between the two leaves the slot empty.
        flat[room + SLOTS] = own[empty]
        flat[room] = tags[empty]
        # For keys that must move on it is no id yet; they write again.
        ids[rest] = flat.take(slots + SLOTS)
        on = np.flatnonzero(flat.take(slots) != tags)
        rest, tags, own = rest[on], tags[on], own[on]
        at = (at[on] + ~empty[on]) & (len(buckets) - 1)
    return ids


def _count_taken(buckets: Ids) -> list[int]:
    """Count the keys in each piece of a band region."""
    pieces = range(0, len(buckets), BATCH_BUCKETS)
    return [int(np.count_nonzero(buckets[at : at + BATCH_BUCKETS])) for at in pieces]


def _map_buckets(file: mmap, bits: int) -> _Buckets:
    return _Buckets(bits, np.frombuffer(file, np.uint32, offset=HEAD_BYTES).reshape(-1, BUCKET), file)


def _size_bytes(bits: int) -> int:
    return HEAD_BYTES + (BANDS * BUCKET * 4 << bits)


def _draft_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.new")
