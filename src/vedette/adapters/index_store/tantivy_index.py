"""Tantivy index: writer and reader of the full-text index, its schema and queries; one process writes, any read.

No text is stored or parsed here: text arrives as words (``vedette.text``), separated by spaces; a query arrives as a
tree of values (``index.query.retrieval``), whose words are passed on unchanged, and anything that would exhaust Tantivy
is refused beforehand. An index is derived data. One that cannot be read, or has other fields, is
rebuilt; the messages say how.

Pitfalls of tantivy, and how they are handled here:

- One bad document fails a commit together with its whole batch; the next commit reports success and loses its documents
  too. So the writer remembers the batch, checks what it can beforehand, rolls back and retries in halves.
- Deleting by the term of an unsigned field silently deletes nothing. So pages are deleted by query.
- A limit of zero or very many hits, and a phrase of one word, cause a panic that ``except Exception`` does not catch.
  So neither is ever requested.
- Analyzers belong to an open index, not to its files. So they are registered each time one is opened.
- A page that is replaced or removed counts in document frequencies until its segment is merged, which happens
  automatically. ``IndexReader.deleted_share`` says how much of that there is.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import tantivy

from vedette.adapters.index_store.generations import META_FILE, read_version
from vedette.adapters.index_store.tantivy_query import (
    ANALYZER,
    MAX_ID,
    SCHEMA,
    WORD_FIELDS,
    check_field,
    is_utf8,
    to_tantivy_query,
)
from vedette.errors import StoreBusy, StoreCorrupt, StoreError
from vedette.index.fields import PUBLIC
from vedette.index.query.retrieval import EXACT_FIELDS, NUMBER_FIELDS, TEXT_FIELDS, Hits, Node

HEAP_BYTES = 64_000_000
MAX_WORD_BYTES = 256  # of indexed words; words are cut well below it before they get here

_FIELDS = frozenset((*TEXT_FIELDS, *EXACT_FIELDS, *NUMBER_FIELDS))


# --- Writing ---


def open_writer(folder: Path, heap_bytes: int = HEAP_BYTES) -> "IndexWriter":
    """Open the Tantivy index in a folder for writing, created if needed; only one writer at a time gets it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return IndexWriter(folder, _open_index(folder).writer(heap_bytes, num_threads=1))
    except (ValueError, OSError) as error:
        raise _to_store_error(folder, error) from error


class IndexWriter:
    """Write pages to the Tantivy index and remove them; readers see all changes at once after ``commit``.

    Uncommitted changes are remembered, so that no page suffers from another one's failure.
    """

    def __init__(self, folder: Path, writer: tantivy.IndexWriter) -> None:
        self._folder = folder
        self._writer = writer
        self._batch: dict[int, tantivy.Document | None] = {}
        self._stumbled = False

    def put(self, document: Mapping[str, object]) -> None:
        """Add a page to the Tantivy index, or replace the one with its id; an unknown field raises ``ValueError``."""
        if not document.keys() <= _FIELDS:
            raise ValueError(f"no such field: {', '.join(sorted(document.keys() - _FIELDS))}")
        self._submit(_check_id(document.get("id")), self._build_document(document))

    def remove(self, page_id: int) -> None:
        """Remove a page from the Tantivy index; a missing one is no error."""
        self._submit(_check_id(page_id), None)

    def commit(self) -> tuple[int, ...]:
        """Commit all changes to the Tantivy index; return the ids of pages that it rejects.

        For these it keeps the previous versions. For disk errors it raises ``StoreError``; the batch is kept, and the
        next commit retries.
        """
        left_out = () if self._try_commit() else self._commit_in_halves(tuple(self._batch))
        self._batch.clear()
        return left_out

    def close(self) -> None:
        """Release the Tantivy index for another writer, after running merges; uncommitted changes are lost."""
        try:
            self._writer.wait_merging_threads()
        except (ValueError, OSError) as error:
            raise _to_store_error(self._folder, error) from error

    def _build_document(self, document: Mapping[str, object]) -> tantivy.Document:
        """Build a Tantivy document, checked against the schema: a bad one would fail the whole commit."""
        return tantivy.Document.from_dict(dict(document), SCHEMA)

    def _submit(self, page_id: int, document: tantivy.Document | None) -> None:
        self._batch[page_id] = document
        if self._stumbled:
            return
        try:
            self._writer.delete_documents_by_query(tantivy.Query.term_query(SCHEMA, "id", page_id))
            if document is not None:
                self._writer.add_document(document)
        except ValueError:  # an earlier page broke the indexing thread; the commit will repair it
            self._stumbled = True

    def _try_commit(self) -> bool:
        """Commit the Tantivy writer and return whether it worked; raise disk errors."""
        if self._stumbled:  # a commit now would report success and lose pages
            return False
        try:
            self._writer.commit()
        except ValueError as error:
            self._stumbled = True
            if _is_disk_error(error):
                raise _to_store_error(self._folder, error) from error
        return not self._stumbled

    def _commit_in_halves(self, ids: tuple[int, ...]) -> tuple[int, ...]:
        """Commit these pages of the batch, or each half if that fails; return the ids that Tantivy refused.

        With one bad page among a thousand that is twenty commits.
        """
        self._roll_back()
        for page_id in ids:
            self._submit(page_id, self._batch[page_id])
        if self._try_commit():
            return ()
        if len(ids) <= 1:
            self._roll_back()
            return ids
        half = len(ids) // 2
        return self._commit_in_halves(ids[:half]) + self._commit_in_halves(ids[half:])

    def _roll_back(self) -> None:
        """Roll back to the last Tantivy commit; only this repairs a writer after a failure."""
        try:
            self._writer.rollback()
        except ValueError as error:
            raise _to_store_error(self._folder, error) from error
        self._stumbled = False


def _check_id(given: object) -> int:
    if not isinstance(given, int) or not 0 <= given <= MAX_ID:
        raise ValueError(f"not a page id: {given!r}")
    return given


# --- Reading ---


def open_reader(folder: Path) -> "IndexReader":
    """Open the Tantivy index in a folder for reading, as of now."""
    try:
        if not (folder / META_FILE).exists():
            raise StoreError(f"There is no index in {folder}. Run vedette reindex to build one")
        return IndexReader(folder, _open_index(folder))
    except (ValueError, OSError) as error:
        raise _to_store_error(folder, error) from error


class IndexReader:
    """Reader of the Tantivy index as of the last ``refresh``; an ``index.query.retrieval.Searcher``."""

    def __init__(self, folder: Path, index: tantivy.Index) -> None:
        self._folder = folder
        self._index = index
        index.config_reader("manual")
        self._reload()

    def refresh(self) -> bool:
        """Load what any process has committed to the Tantivy index since; return whether there was anything."""
        try:
            is_new = read_version(self._folder) != self._version
            if is_new:
                self._reload()
        except (ValueError, OSError) as error:
            raise _to_store_error(self._folder, error) from error
        return is_new

    def find(self, node: Node, most: int, *, count: bool = False) -> Hits:
        """Find the best pages by Tantivy's own scores; ties are in no particular order."""
        query = to_tantivy_query(node)
        limit = min(most, len(self))
        if limit <= 0 and not (count and len(self)):
            return _build_hits([], [], 0 if count else -1)
        found = self._searcher.search(query, max(1, limit), count)
        total = found.count if count else -1  # type: ignore[attr-defined]  # left out of the library's stub
        return self._to_hits(found.hits[: max(0, limit)], total)

    def newest(self, node: Node, most: int) -> Hits:
        """Find the pages with the latest dates in the Tantivy index, newest first, undated last; scores are 0."""
        query = to_tantivy_query(node)
        limit = min(most, len(self))
        if limit <= 0:
            return _build_hits([], [])
        found = self._searcher.search(query, limit, count=False, order_by_field="date")
        return self._to_hits([(0.0, address) for _, address in found.hits], -1)

    def __len__(self) -> int:
        return self._searcher.num_docs

    @property
    def is_public(self) -> bool:
        """Whether anyone may see every page in the Tantivy index."""
        return self._is_public

    def list_terms(self, field: str, prefix: str, most: int, only: Node | None = None) -> list[tuple[str, int]]:
        """List terms of a Tantivy field with a prefix, most frequent first, with their document frequencies.

        With ``only``, among these pages alone: then every term is checked against them, which is slow.
        """
        check_field(field, WORD_FIELDS)
        if most <= 0 or not is_utf8(prefix):
            return []
        filter_ = None if only is None else to_tantivy_query(only)
        return self._searcher.terms_with_prefix(field, prefix, filter_query=filter_, limit=most)

    def df(self, field: str, word: str) -> int:
        """Return the document frequency of a term in a Tantivy field, including deleted but unmerged pages."""
        check_field(field, WORD_FIELDS)
        return self._searcher.doc_freq(field, word) if is_utf8(word) else 0

    def deleted_share(self) -> float:
        """Return the share of the Tantivy index that is deleted pages which still count in ``df`` and in scores."""
        try:
            segments = json.loads((self._folder / META_FILE).read_bytes())["segments"]
        except (ValueError, OSError) as error:
            raise _to_store_error(self._folder, error) from error
        deleted = sum((segment["deletes"] or {}).get("num_deleted_docs", 0) for segment in segments)
        return float(deleted / max(1, sum(segment["max_doc"] for segment in segments)))

    def _reload(self) -> None:
        # The version first: a commit between the two is then included now and checked once more.
        self._version = read_version(self._folder)
        self._index.reload()
        self._searcher = self._index.searcher()
        self._is_public = all(label == PUBLIC for label, _ in self.list_terms("access", "", 2))

    def _to_hits(self, found: "list[tuple[float, tantivy.DocAddress]]", total: int) -> Hits:
        ids = self._searcher.fast_field_values("id", [address for _, address in found])
        return _build_hits(ids, [score for score, _ in found], total)


def _build_hits(ids: Iterable[object], scores: Iterable[float], total: int = -1) -> Hits:
    return Hits(np.array(ids, np.int64), np.array(scores, np.float64), total)


# --- Files and faults ---


def _open_index(folder: Path) -> tantivy.Index:
    index = tantivy.Index(SCHEMA, str(folder))
    words = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace())
    index.register_tokenizer(ANALYZER, words.filter(tantivy.Filter.remove_long(MAX_WORD_BYTES)).build())
    return index


def _is_disk_error(error: Exception) -> bool:
    """Check whether a Tantivy error comes from the disk, as opposed to bad index files or documents."""
    return isinstance(error, OSError) or "os error" in str(error) or "Os {" in str(error)


def _to_store_error(folder: Path, error: Exception) -> StoreError:
    """Convert a Tantivy error to a store error that says what to do; they differ only in their text."""
    reason = " ".join(str(error).split())[:200]
    if "LockBusy" in reason:
        return StoreBusy(f"Another process is writing the index in {folder}. Wait until it ends, or stop it.")
    if "schema does not match" in reason:
        return StoreCorrupt(
            f"The index in {folder} has a different schema than this Vedette. To rebuild it: vedette reindex"
        )
    if _is_disk_error(error):
        return StoreError(f"The index in {folder} cannot be read or written. Check the disk and permissions: {reason}")
    if "Failed to spawn" in reason:
        return StoreError(
            f"The index in {folder} needs more memory or threads than this process is allowed to use ({reason})"
        )
    return StoreCorrupt(f"The index in {folder} is damaged. To rebuild it: vedette reindex ({reason})")
