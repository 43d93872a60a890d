"""Vector store: the vectors of pages beside the index generations, so that a rebuilt index keeps them.

index/vectors.json         the model, its checksum, and which files have its vectors
index/vectors-X            vectors of parts of pages, one row of 32-bit floats each
index/vectors-X.parts      which page each row belongs to, where the part starts, and a fingerprint of the page's text
index/vectors-X.space      the words of a learned space, each with its idf and its coordinates

One process appends, any number read meanwhile; a row counts once its entry in ``parts`` is written. A page that changed
is appended again, and the last rows count. Another model starts new files.
"""

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from itertools import starmap
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import xxhash

from vedette.adapters.files.atomic import replace_text
from vedette.index.semantic.latent_space import LatentSpace, Vectors
from vedette.index.semantic.similarity import PartVectors
from vedette.policy import Ints

PART = np.dtype([("page", "<u4"), ("start", "<u4"), ("print", "<u8")])
INFO_FILE = "vectors.json"
_NAME = re.compile(r"(vectors-[0-9a-f]{1,64})?")
_READ_BYTES = 1 << 22
# When fewer than this share of the rows count, they are written again without the others.
MIN_USED_SHARE = 0.5


class VectorInfo(NamedTuple):
    """What the vectors are made by: the model's name, its checksum, and the length of a vector.

    ``file`` names their file; ``pages`` have vectors, of ``wanted`` that should; making one took ``page_ms`` of CPU
    time. ``problem`` says why none can be made. ``digest`` is that of the first ``rows`` rows.
    """

    model: str
    checksum: str = ""
    dimensions: int = 0
    file: str = ""
    pages: int = 0
    wanted: int = 0
    page_ms: float = 0.0
    problem: str = ""
    rows: int = 0
    digest: str = ""


def read_vector_info(index: Path) -> VectorInfo | None:
    """Return what the vectors in an index folder are made by; None if there are none, or that cannot be read."""
    with suppress(OSError, ValueError, TypeError):
        info = VectorInfo(**json.loads((index / INFO_FILE).read_text("utf-8")))
        kinds = zip(info, VectorInfo.__annotations__.values(), strict=True)
        # The folder may be someone else's: no other file of ours has such a name.
        if all(starmap(isinstance, kinds)) and min(info.dimensions, info.rows) >= 0 and _NAME.fullmatch(info.file):
            return info
    return None


def write_vector_info(index: Path, info: VectorInfo) -> None:
    """Save what the vectors are made by, atomically."""
    replace_text(index / INFO_FILE, json.dumps(info._asdict()))


def remove_vectors(index: Path, keep: str = "") -> None:
    """Delete the vector files of an index folder, except those with this name; without one, all about them."""
    for path in index.glob("vectors-*"):
        if path.name not in {keep, f"{keep}.parts", f"{keep}.space"}:
            path.unlink(missing_ok=True)
    if not keep:
        (index / INFO_FILE).unlink(missing_ok=True)


def seal_vectors(index: Path, info: VectorInfo) -> VectorInfo:
    """Return the description of vectors with the digest of all rows written so far."""
    rows = (index / f"{info.file}.parts").stat().st_size // PART.itemsize
    return info._replace(rows=rows, digest=_compute_digest(index, info, rows))


def find_vector_damage(index: Path) -> str:
    """Return what is wrong with the vectors of an index folder; vectors without a digest are taken as they are."""
    info = read_vector_info(index)
    if info is None:
        return f"{INFO_FILE} cannot be read" if (index / INFO_FILE).exists() else ""
    try:
        is_sound = not info.digest or _compute_digest(index, info, info.rows) == info.digest
    except OSError as error:
        return f"{error.filename} cannot be read ({error.strerror})"
    return "" if is_sound else f"{info.file} has another digest"


def _compute_digest(index: Path, info: VectorInfo, rows: int) -> str:
    sizes = {"": rows * 4 * info.dimensions, ".parts": rows * PART.itemsize, ".space": 1 << 62}
    digest = xxhash.xxh3_128(json.dumps([info.model, info.checksum, info.dimensions, rows]).encode())
    for end, size in sizes.items():
        path, left = index / f"{info.file}{end}", size
        if end != ".space" or path.exists():
            with path.open("rb") as file:
                while data := file.read(min(left, _READ_BYTES)):
                    digest.update(data)
                    left -= len(data)
    return digest.hexdigest()


def write_space(index: Path, info: VectorInfo, space: LatentSpace) -> None:
    """Save the learned space that vectors are in, so that queries can be projected into it."""
    rows = np.empty(len(space.words), _describe_word(info.dimensions))
    rows["word"], rows["weight"], rows["axes"] = space.words, space.weights, space.axes
    rows.tofile(index / f"{info.file}.space")


def _describe_word(dimensions: int) -> np.dtype[np.void]:
    return np.dtype([("word", "<u4"), ("weight", "<f4"), ("axes", "<f4", (dimensions,))])


class VectorReader:
    """Reader of the vectors in an index folder, memory-mapped; ``refresh`` maps what was added since."""

    def __init__(self, index: Path) -> None:
        self._index = index
        self._stamp: tuple[int, int] = (0, 0)
        self.info: VectorInfo | None = None
        self.parts = _EMPTY
        self.space: LatentSpace | None = None
        self.prints: npt.NDArray[np.uint64] = np.zeros(0, np.uint64)

    def refresh(self) -> bool:
        """Map the current vectors; return whether they have changed."""
        stamp = self._read_stamp()
        if stamp == self._stamp:
            return False
        self._stamp, self.info = stamp, read_vector_info(self._index)
        self.parts, self.space, self.prints = _EMPTY, None, np.zeros(0, np.uint64)
        if self.info is not None and self.info.file:
            with suppress(OSError, ValueError):
                self._map(self.info)
                self._map_space(self.info)
        return True

    def _read_stamp(self) -> tuple[int, int]:
        try:
            about = (self._index / INFO_FILE).stat()
        except OSError:
            return (0, 0)
        parts = self._index / f"{self.info.file}.parts" if self.info and self.info.file else None
        return about.st_mtime_ns, parts.stat().st_size if parts is not None and parts.exists() else 0

    def _map(self, info: VectorInfo) -> None:
        path = self._index / info.file
        rows = np.fromfile(path.with_name(f"{path.name}.parts"), PART)
        count = min(len(rows), path.stat().st_size // (4 * max(info.dimensions, 1)))
        if not count:
            return
        rows = rows[:count]
        vectors = np.memmap(path, np.float32, "r", shape=(count, info.dimensions)).view(np.ndarray)
        live = find_live_rows(rows)
        ids, starts = np.unique(rows["page"][live], return_index=True)
        self.parts = PartVectors(ids.astype(np.int64), starts, live, vectors)
        self.prints = rows["print"][live[starts]]

    def _map_space(self, info: VectorInfo) -> None:
        path = self._index / f"{info.file}.space"
        if path.exists():
            rows = np.memmap(path, _describe_word(info.dimensions), "r").view(np.ndarray)
            self.space = LatentSpace(rows["word"].copy(), rows["weight"].astype(np.float64), rows["axes"])


_NONE: Ints = np.zeros(0, np.int64)
_EMPTY = PartVectors(_NONE, _NONE, _NONE, np.zeros((0, 1), np.float32))


def find_live_rows(rows: npt.NDArray[np.void]) -> Ints:
    """Return the rows that count, by page and start: of each page those of the text that was added last.

    >>> rows = np.array([(7, 0, 1), (5, 0, 2), (7, 0, 3), (7, 90, 3)], PART)
    >>> find_live_rows(rows).tolist()
    [1, 2, 3]
    """
    order = np.lexsort((np.arange(len(rows)), rows["page"]))
    pages = rows["page"][order]
    lasts = np.append(np.flatnonzero(np.diff(pages)), len(pages) - 1) if len(pages) else np.zeros(0, np.int64)
    last_of = order[lasts[np.searchsorted(pages[lasts], pages)]] if len(pages) else order
    live: Ints = order[rows["print"][order] == rows["print"][last_of]]
    # The same text may have been added twice: of equal starts the last counts.
    live = live[np.lexsort((live, rows["start"][live], rows["page"][live]))]
    keys = rows[["page", "start"]][live]
    is_last = np.append(keys[1:] != keys[:-1], np.ones(1, np.bool_))
    return live[is_last] if len(live) else live


class VectorWriter:
    """The one writer of a file of vectors."""

    def __init__(self, index: Path, info: VectorInfo) -> None:
        self._vectors = (index / info.file).open("ab", buffering=0)
        self._parts = (index / f"{info.file}.parts").open("ab", buffering=0)
        whole = min(self._vectors.tell() // (4 * info.dimensions), self._parts.tell() // PART.itemsize)
        self._vectors.truncate(whole * 4 * info.dimensions)
        self._parts.truncate(whole * PART.itemsize)

    def add(self, page: int, print_: int, starts: Sequence[int], vectors: Vectors) -> None:
        """Add the vectors of the parts of a page's text."""
        rows = np.array([(page, start, print_) for start in starts], PART)
        self._vectors.write(np.ascontiguousarray(vectors, "<f4").tobytes())
        self._parts.write(rows.tobytes())

    def close(self) -> None:
        """Close the file of vectors."""
        self._vectors.close()
        self._parts.close()
