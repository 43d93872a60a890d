"""Page table: memory-mapped per-page data beside the index, by page id: numbers, text, forward index, links.

pages    one row per page id, memory-mapped
text     the text of pages, packed (``index.fields.pack_page``), one after the other
terms    the words of pages as numbers, for ranking
links    the fingerprints of the URLs that pages link to
names    the meaning of the rows' small numbers: languages, kinds, private sites
rank     the importance of each page and its host, computed in the background
versions which pages are one page of several releases (``index.versions``), one row per page id
sums     checksums of text, terms and links, and of pages and versions while they have no writer (``chunk_sums``)

One process writes, any number read meanwhile. New data is appended, and then the row points to it; a row is written
last, so it never points to missing data. Unreferenced data is left out when the next generation is built.
"""

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from vedette.adapters.files.atomic import replace_file, replace_text
from vedette.adapters.files.npz import UNREADABLE
from vedette.adapters.index_store.chunk_sums import drop_sums, has_changed, read_sums, update_sums
from vedette.engine.search.ports import PageSignals
from vedette.index.fields import StoredPage, unpack_page
from vedette.index.query.retrieval import TEXT_FIELDS, ForwardTokens
from vedette.index.versions import NO_VERSION, VersionKey
from vedette.policy import Floats, Ints

ROW = np.dtype(
    [
        ("flags", "<u4"),
        ("host", "<u4"),
        ("group", "<u4"),
        ("words", "<u4"),
        ("print", "<i8"),  # of the URL
        ("date_s", "<f8"),  # the stated date of the page; NaN if there is none
        ("born_s", "<f8"),
        ("fetched_s", "<f8"),
        ("text_at", "<u8"),
        ("terms_at", "<u8"),
        ("links_at", "<u8"),
        ("text_bytes", "<u4"),
        ("links", "<u4"),
        ("lengths", "<u2", (len(TEXT_FIELDS),)),
        ("access", "<u2"),
        ("language", "<u2"),
        ("kind", "<u2"),
        ("depth", "<u2"),
        ("spam", "<f4"),
    ]
)
VERSION_ROW = np.dtype([("family", "<u4"), ("release", "<f4")])
INDEXED = 1
CANONICAL = 2
NEUTRAL = 0.5
GROWTH_ROWS = 1 << 14
FILES = ("text", "terms", "links")
ROW_FILES = ("pages", "versions")  # they change in place
TEXTS_PER_CHUNK = 8
Rows = npt.NDArray[np.void]


class PageFacts(NamedTuple):
    """Facts about a page in its page table row, besides where its text and words are.

    ``is_canonical`` means that it represents its copies.
    """

    host: int
    group: int
    words: int
    print: int
    date_s: float
    born_s: float
    fetched_s: float
    depth: int
    spam: float
    access: str
    language: str
    kind: str
    is_canonical: bool = False
    version: VersionKey = NO_VERSION


class PageTable:
    """Reader of the page table files of one index generation."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._names: list[str] = []
        self._rank: npt.NDArray[np.float32] = np.zeros((2, 0), np.float32)
        self._rank_ns = 0
        self._maps: dict[str, npt.NDArray[np.uint8]] = {}
        self.rows: Rows = np.zeros(0, ROW)
        self._versions: Rows = np.zeros(0, VERSION_ROW)
        self.refresh()

    def refresh(self) -> bool:
        """Map what was added to the page table since; return whether pages have another importance."""
        self.rows = self._map_rows("pages", self.rows)
        self._versions = self._map_rows("versions", self._versions)
        return self._read_rank()

    @property
    def indexed(self) -> Ints:
        """Ids of all pages in the page table that are in the index."""
        return np.flatnonzero(self.rows["flags"] & INDEXED)

    def get_rows(self, ids: Ints) -> Rows:
        """Return the page table rows of pages; one beyond the end is empty."""
        return _take_rows(self.rows, ids)

    def get_version(self, id_: int) -> VersionKey:
        """Return the release of a page and the family it belongs to, as far as the page table knows."""
        return VersionKey(*self._versions[id_].item()) if id_ < len(self._versions) else NO_VERSION

    def is_indexed(self, id_: int) -> bool:
        """Check in the page table whether a page is in the index."""
        return id_ < len(self.rows) and bool(self.rows[id_]["flags"] & INDEXED)

    def get_name(self, number: int) -> str:
        """Return the name (language, kind, private site) that a small number in a page table row refers to."""
        if number >= len(self._names):
            self._read_names()
        return self._names[number] if number < len(self._names) else ""

    def read_forward(self, ids: Ints) -> ForwardTokens:
        """Read the words of pages from the page table's forward index."""
        rows = self.get_rows(ids)
        lengths = rows["lengths"].astype(np.int64)
        starts, sizes = rows["terms_at"].astype(np.int64), lengths.sum(axis=1) * 4
        whole = self._map_file("terms", int((starts + sizes).max(initial=0)))
        pieces = [whole[start : start + size] for start, size in zip(starts.tolist(), sizes.tolist(), strict=True)]
        found = np.concatenate(pieces) if pieces else np.zeros(0, np.uint8)
        if len(found) != sizes.sum():  # the file is shorter than rows say: after a crash of the machine
            return ForwardTokens(np.zeros(0, np.uint32), np.zeros_like(lengths))
        return ForwardTokens(found.view("<u4"), lengths)

    def read_signals(self, ids: Ints) -> PageSignals:
        """Read the ranking signals of pages from the page table."""
        rows, versions = self.get_rows(ids), _take_rows(self._versions, ids)
        return PageSignals(
            rows["host"].astype(np.int64),
            rows["group"].astype(np.int64),
            rows["date_s"].astype(np.float64),
            rows["born_s"].astype(np.float64),
            rows["fetched_s"].astype(np.float64),
            rows["depth"].astype(np.int64),
            rows["words"].astype(np.int64),
            rows["spam"].astype(np.float64),
            *self._look_up_ranks(ids),
            np.full(len(ids), NEUTRAL),
            (rows["flags"] & CANONICAL).astype(bool),
            versions["family"].astype(np.int64),
            versions["release"].astype(np.float64),
        )

    def read_access(self, ids: Ints) -> list[str]:
        """Read from the page table which access a user needs to see each page."""
        numbers = self.get_rows(ids)["access"].tolist()
        names = {number: self.get_name(number) for number in dict.fromkeys(numbers)}  # nearly all are public
        return [names[number] for number in numbers]

    def read_stored(self, id_: int) -> StoredPage | None:
        """Read the stored text of a page from the page table; None if there is none, or it is damaged."""
        blob = self.read_blob(id_)
        return unpack_page(blob) if blob else None

    def read_blob(self, id_: int) -> bytes:
        """Read the stored text of a page from the page table, compressed."""
        if id_ >= len(self.rows):
            return b""
        row = self.rows[id_]
        start, size = int(row["text_at"]), int(row["text_bytes"])
        return bytes(self._map_file("text", start + size)[start : start + size])

    def read_links(self, id_: int) -> Ints:
        """Read the fingerprints of the URLs that a page links to from the page table."""
        row = self.rows[id_]
        start, size = int(row["links_at"]), 8 * int(row["links"])
        piece = self._map_file("links", start + size)[start : start + size]
        return piece.view("<i8") if len(piece) == size else np.zeros(0, np.int64)

    def unused_share(self) -> float:
        """Return the share of the page table's text that no row refers to any more."""
        size = (self.folder / "text").stat().st_size if (self.folder / "text").exists() else 0
        return 1.0 - float(self.rows["text_bytes"].sum()) / size if size else 0.0

    def find_damage(self, most_texts: int) -> str:
        """Return what is wrong with the page table: data that rows refer to and that is missing, or cannot be read.

        Of ``most_texts`` pages, evenly spread, the text is read, and a chunk of each file is verified for every
        ``TEXTS_PER_CHUNK`` of them.
        """
        for name, dtype in (("pages", ROW), ("versions", VERSION_ROW)):
            path = self.folder / name
            if path.exists() and path.stat().st_size % dtype.itemsize:
                return f"{name} is cut off"
        ids = self.indexed
        rows = self.rows[ids]
        self._read_names()
        if any((rows[name] >= len(self._names)).any() for name in ("access", "language", "kind")):
            return "names are missing or cannot be read"
        ends = {
            "text": rows["text_at"] + rows["text_bytes"],
            "terms": rows["terms_at"] + 4 * rows["lengths"].astype(np.uint64).sum(axis=1),
            "links": rows["links_at"] + 8 * rows["links"].astype(np.uint64),
        }
        for name, end in ends.items():
            path = self.folder / name
            if int(end.max(initial=0)) > (path.stat().st_size if path.exists() else 0):
                return f"{name} is shorter than it was"
        if name := self._find_changed_file(most_texts // TEXTS_PER_CHUNK):
            return f"{name} has a wrong checksum"
        checked = ids[:: max(len(ids) // max(most_texts, 1), 1)]
        return "text cannot be read" if any(self.read_stored(id_) is None for id_ in checked.tolist()) else ""

    def _find_changed_file(self, most_chunks: int) -> str:
        """Return the name of a page table file that does not have its checksums; empty if there is none.

        Row files are small, so all of them is verified, unless their writer opens them meanwhile.
        """
        for name, sums in read_sums(self.folder).items():
            if name in FILES and has_changed(self.folder / name, sums, most_chunks):
                return name
            has_rows_changed = name in ROW_FILES and has_changed(self.folder / name, sums, len(sums.chunks))
            if has_rows_changed and read_sums(self.folder).get(name) == sums:
                return name
        return ""

    def _map_rows(self, name: str, mapped: Rows) -> Rows:
        """Return a file of rows by page id, memory-mapped again if its size has changed; empty if there is none."""
        path = self.folder / name
        count = path.stat().st_size // mapped.dtype.itemsize if path.exists() else 0
        if count == len(mapped):
            return mapped
        return _as_plain_array(np.memmap(path, mapped.dtype, "r", shape=(count,))) if count else mapped[:0]

    def _map_file(self, name: str, reach: int) -> npt.NDArray[np.uint8]:
        """Return a page table file, memory-mapped; map it again if it has grown beyond what was mapped."""
        mapped = self._maps.get(name)
        if mapped is None or len(mapped) < reach:
            path = self.folder / name
            size = path.stat().st_size if path.exists() else 0
            mapped = self._maps[name] = (
                _as_plain_array(np.memmap(path, np.uint8, "r")) if size else np.zeros(0, np.uint8)
            )
        return mapped

    def _look_up_ranks(self, ids: Ints) -> tuple[Floats, Floats]:
        ranks = np.full((2, len(ids)), NEUTRAL)
        in_table = ids < self._rank.shape[1]
        ranks[:, in_table] = self._rank[:, ids[in_table]]
        return ranks[0], ranks[1]

    def _read_names(self) -> None:
        with suppress(FileNotFoundError, ValueError):
            self._names = json.loads((self.folder / "names").read_text("utf-8"))

    def _read_rank(self) -> bool:
        """Read the importance of pages if it was written since; a damaged file counts as none."""
        path = self.folder / "rank"
        written_ns = path.stat().st_mtime_ns if path.exists() else 0
        is_new = written_ns != self._rank_ns
        if is_new:
            self._rank_ns = written_ns
            self._rank = _load_rank(path)
        return is_new


def _as_plain_array(mapped: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a memory-mapped page table file as a plain array, whose slices cost a third of a memmap's."""
    return mapped.view(np.ndarray)


def _take_rows(rows: Rows, ids: Ints) -> Rows:
    """Return the rows of pages; one beyond the end is empty."""
    in_table = ids < len(rows)
    if in_table.all():
        return rows[ids]
    found = np.zeros(len(ids), rows.dtype)
    found[in_table] = rows[ids[in_table]]
    return found


class PageTableWriter(PageTable):
    """The one writer of the page table files of an index generation."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._read_names()
        self._numbers = {name: number for number, name in enumerate(self._names)}
        self._files = {name: (folder / name).open("ab", buffering=0) for name in FILES}
        self._sizes = {name: os.fstat(file.fileno()).st_size for name, file in self._files.items()}
        self._sums = drop_sums(folder, ROW_FILES, read_sums(folder))
        if len(self.rows):
            self.rows = np.memmap(folder / "pages", ROW, "r+")
        if len(self._versions):
            self._versions = np.memmap(folder / "versions", VERSION_ROW, "r+")

    def put(
        self,
        id_: int,
        facts: PageFacts,
        blob: bytes,
        words: tuple[npt.NDArray[np.uint32], tuple[int, ...]],
        links: Ints | None,
    ) -> None:
        """Write a page to the page table, visible from the next commit; keep its links if none are given."""
        row = self._get_row(id_)
        text_at, terms_at = self._append("text", blob), self._append("terms", words[0].astype("<u4").tobytes())
        if links is not None:
            row["links_at"], row["links"] = self._append("links", links.astype("<i8").tobytes()), len(links)
        row["text_at"], row["text_bytes"], row["terms_at"], row["lengths"] = text_at, len(blob), terms_at, words[1]
        self.update(id_, facts)
        row["flags"] |= INDEXED

    def put_words(self, id_: int, words: tuple[npt.NDArray[np.uint32], tuple[int, ...]]) -> None:
        """Replace the words of a page in the page table when its anchor texts changed but not its text."""
        row = self._get_row(id_)
        row["terms_at"], row["lengths"] = self._append("terms", words[0].astype("<u4").tobytes()), words[1]

    def update(self, id_: int, facts: PageFacts) -> None:
        """Update the facts about a page in its page table row."""
        row: Any = self._get_row(id_)
        for name in ("host", "group", "words", "print", "date_s", "born_s", "fetched_s", "spam"):
            row[name] = getattr(facts, name)
        row["flags"] = (row["flags"] & INDEXED) | (CANONICAL if facts.is_canonical else 0)
        row["depth"] = min(facts.depth, 65535)
        for name in ("access", "language", "kind"):
            row[name] = self._intern_name(getattr(facts, name))
        if id_ >= len(self._versions):
            self._versions = self._grow("versions", self._versions, id_)
        self._versions[id_] = facts.version

    def remove(self, id_: int) -> None:
        """Mark a page as not indexed in the page table; its links stay as evidence about other pages."""
        if id_ < len(self.rows):
            row = self._get_row(id_)
            row["flags"] = row["text_bytes"] = 0

    def flush(self) -> None:
        """Flush the page table files."""
        for rows in (self.rows, self._versions):
            if isinstance(rows, np.memmap):
                rows.flush()
        self._sums = update_sums(self.folder, FILES, self._sums)

    def close(self) -> None:
        """Close the page table files."""
        self.flush()
        for file in self._files.values():
            file.close()
        present = [name for name in (*FILES, *ROW_FILES) if (self.folder / name).exists()]
        self._sums = update_sums(self.folder, present, self._sums)

    def _get_row(self, id_: int) -> Any:  # noqa: ANN401 - a row of a structured array has no type of its own
        if id_ >= len(self.rows):
            self.rows = self._grow("pages", self.rows, id_)
        return self.rows[id_]

    def _grow(self, name: str, rows: Rows, id_: int) -> Rows:
        """Grow a file of rows by page id so that it has one for this page."""
        count = (id_ // GROWTH_ROWS + 1) * GROWTH_ROWS
        self.flush()
        with (self.folder / name).open("ab") as file:
            file.truncate(count * rows.dtype.itemsize)
        return np.memmap(self.folder / name, rows.dtype, "r+", shape=(count,))

    def _append(self, name: str, data: bytes) -> int:
        at = self._sizes[name]
        self._files[name].write(data)
        self._sizes[name] = at + len(data)
        return at

    def _intern_name(self, name: str) -> int:
        if name not in self._numbers:
            self._numbers[name] = len(self._names)
            self._names.append(name)
            replace_text(self.folder / "names", json.dumps(self._names))
        return self._numbers[name]


def _load_rank(path: Path) -> npt.NDArray[np.float32]:
    """Load a ``rank`` file: two rows of shares, in a zip file with a checksum, or by itself as older versions wrote."""
    with suppress(*UNREADABLE), path.open("rb") as file:
        loaded = np.load(file, allow_pickle=False)
        rank = loaded if isinstance(loaded, np.ndarray) else loaded["rank"]
        if rank.dtype == np.float32 and rank.ndim == 2 and len(rank) == 2 and bool(((rank >= 0) & (rank <= 1)).all()):
            return rank
    return np.zeros((2, 0), np.float32)


def write_rank(folder: Path, pages: npt.NDArray[np.float32], hosts: npt.NDArray[np.float32]) -> None:
    """Write the importance of all pages and of their hosts to the page table's ``rank`` file."""
    with replace_file(folder / "rank") as file:
        np.savez(file, allow_pickle=False, rank=np.stack([pages, hosts]).astype(np.float32))
