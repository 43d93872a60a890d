"""The index of words, kept by tantivy: one process writes it, any number of processes read it.

No text is stored here and none is parsed: text comes in words already (``vedette.words``), with spaces between; what
is asked for comes as a tree of values (``index.retrieval``). An index is derived data. One that cannot be read, or was
made with other fields, is made anew; the messages say how.

What tantivy does that its user must know, and what is done about it here:

- One bad document fails a commit and takes its whole batch along; the commit after that reports success and loses its
  documents too. So the writer remembers the batch, checks what it can beforehand, rolls back and tries again in halves.
- Deleting by the term of an unsigned field deletes nothing, and says nothing. So pages are deleted by query.
- A limit of no or very many hits, and a phrase of one word, end in a panic that ``except Exception`` lets through. So
  neither is ever asked for.
- Analyzers belong to an open index, not to its files. So they are registered each time one is opened.
- A page that is replaced or removed counts in document frequencies until its segment is merged, which happens by
  itself. ``IndexReader.deleted_share`` says how much of that there is.
"""

import json
from collections.abc import Iterable, Mapping
from math import inf
from os import stat_result
from pathlib import Path
from typing import assert_never

import numpy as np
import tantivy
from tantivy import Occur, Query

from vedette.errors import StoreBusy, StoreCorrupt, StoreError
from vedette.index.retrieval import (
    EXACT_FIELDS,
    NUMBER_FIELDS,
    TEXT_FIELDS,
    All,
    Any,
    Best,
    Between,
    But,
    Hits,
    Node,
    OneOf,
    Phrase,
    Term,
)

__all__ = ["IndexReader", "IndexWriter", "open_reader", "open_writer"]

HEAP_BYTES = 64_000_000
DEEPEST = 12
MOST_NODES = 2000
MOST_SLOP = 1000
LONGEST_WORD_BYTES = 256  # of what is indexed; words are cut well below it before they come here
LARGEST_ID = 2**63 - 1  # ids travel in arrays of int64

_ANALYZER = "spaced"
_META = "meta.json"
_FIELDS = frozenset((*TEXT_FIELDS, *EXACT_FIELDS, *NUMBER_FIELDS))
_WORD_FIELDS = (*TEXT_FIELDS, *EXACT_FIELDS)
_NUMBERS = {
    "id": (tantivy.FieldType.Unsigned, 0, LARGEST_ID),
    "date": (tantivy.FieldType.Integer, -(2**63), 2**63 - 1),
}


def _schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    for name in TEXT_FIELDS:
        builder.add_text_field(name, tokenizer_name=_ANALYZER, index_option="position")
    for name in EXACT_FIELDS:
        builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
    builder.add_unsigned_field("id", indexed=True, fast=True)
    builder.add_integer_field("date", indexed=True, fast=True)
    return builder.build()


_SCHEMA = _schema()


# --- Writing ---


def open_writer(folder: Path, heap_bytes: int = HEAP_BYTES) -> "IndexWriter":
    """Write to the index in a folder; where there is none, one is begun. Only one writer at a time gets it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return IndexWriter(folder, _opened(folder).writer(heap_bytes, num_threads=1))
    except (ValueError, OSError) as error:
        raise _in_words(folder, error) from error


class IndexWriter:
    """Puts pages in and takes them out. Readers see nothing of it before ``commit``, and then all at once.

    What was not committed is remembered, so that no page pays for another one's failure.
    """

    def __init__(self, folder: Path, writer: tantivy.IndexWriter) -> None:
        self._folder = folder
        self._writer = writer
        self._batch: dict[int, tantivy.Document | None] = {}
        self._stumbled = False

    def put(self, document: Mapping[str, object]) -> None:
        """Add a page, in the place of the one that had its id. A field that does not exist is a bug: ``ValueError``."""
        if not document.keys() <= _FIELDS:
            raise ValueError(f"no such field: {', '.join(sorted(document.keys() - _FIELDS))}")
        self._hand_on(_id(document.get("id")), self._made(document))

    def remove(self, page_id: int) -> None:
        """Take a page out; one that is not there is no error."""
        self._hand_on(_id(page_id), None)

    def commit(self) -> tuple[int, ...]:
        """Let all since the last commit be durable and findable; the ids of pages that the index cannot take.

        Of these it keeps the versions that it had. Where the disk is at fault it raises ``StoreError``; the batch is
        kept, and the next commit tries again.
        """
        left_out = () if self._settled() else self._salvaged(tuple(self._batch))
        self._batch.clear()
        return left_out

    def close(self) -> None:
        """Give the index free for another writer, when running merges have ended. What is not committed is lost."""
        try:
            self._writer.wait_merging_threads()
        except (ValueError, OSError) as error:
            raise _in_words(self._folder, error) from error

    def _made(self, document: Mapping[str, object]) -> tantivy.Document:
        """Checked against the schema: what it refuses would only fail at the commit, and then everything."""
        return tantivy.Document.from_dict(dict(document), _SCHEMA)

    def _hand_on(self, page_id: int, made: tantivy.Document | None) -> None:
        self._batch[page_id] = made
        if self._stumbled:
            return
        try:
            self._writer.delete_documents_by_query(Query.term_query(_SCHEMA, "id", page_id))
            if made is not None:
                self._writer.add_document(made)
        except ValueError:  # an earlier page broke the indexing thread; the commit will mend it
            self._stumbled = True

    def _settled(self) -> bool:
        """Commit what was handed on, and say whether it worked. A fault of the disk is raised."""
        if self._stumbled:  # a commit now would report success and lose pages
            return False
        try:
            self._writer.commit()
        except ValueError as error:
            self._stumbled = True
            if _is_of_disk(error):
                raise _in_words(self._folder, error) from error
        return not self._stumbled

    def _salvaged(self, ids: tuple[int, ...]) -> tuple[int, ...]:
        """Commit these pages of the batch, and where that fails each half of them; the ids of those that failed alone.

        With one bad page among a thousand that is twenty commits.
        """
        self._rolled_back()
        for page_id in ids:
            self._hand_on(page_id, self._batch[page_id])
        if self._settled():
            return ()
        if len(ids) <= 1:
            self._rolled_back()
            return ids
        half = len(ids) // 2
        return self._salvaged(ids[:half]) + self._salvaged(ids[half:])

    def _rolled_back(self) -> None:
        """Back to the last commit. Only this heals a writer after a failure."""
        try:
            self._writer.rollback()
        except ValueError as error:
            raise _in_words(self._folder, error) from error
        self._stumbled = False


def _id(given: object) -> int:
    if not isinstance(given, int) or not 0 <= given <= LARGEST_ID:
        raise ValueError(f"no id of a page: {given!r}")
    return given


# --- Reading ---


def open_reader(folder: Path) -> "IndexReader":
    """Read the index in a folder, as of now."""
    try:
        if not (folder / _META).exists():
            raise StoreError(f"There is no index in {folder}. To make one: vedette reindex")
        return IndexReader(folder, _opened(folder))
    except (ValueError, OSError) as error:
        raise _in_words(folder, error) from error


class IndexReader:
    """The index as it was at the last ``refresh``, whatever is written meanwhile; an ``index.retrieval.Finder``."""

    def __init__(self, folder: Path, index: tantivy.Index) -> None:
        self._folder = folder
        self._index = index
        index.config_reader("manual")
        self._look()

    def refresh(self) -> bool:
        """Look at what was committed meanwhile, by whichever process; whether there was anything."""
        try:
            is_new = _version(self._folder) != self._version
            if is_new:
                self._look()
        except (ValueError, OSError) as error:
            raise _in_words(self._folder, error) from error
        return is_new

    def find(self, node: Node, most: int, *, count: bool = False) -> Hits:
        """The best pages by the index's own scores; equally good ones in no particular order."""
        query = _query(node)
        limit = min(most, len(self))
        if limit <= 0 and not (count and len(self)):
            return _hits([], [], 0 if count else -1)
        found = self._searcher.search(query, max(1, limit), count)
        total = found.count if count else -1  # type: ignore[attr-defined]  # left out of the library's stub
        return self._named(found.hits[: max(0, limit)], total)

    def newest(self, node: Node, most: int) -> Hits:
        """The pages with the latest dates, the latest first; those without a date last. Scores are 0."""
        query = _query(node)
        limit = min(most, len(self))
        if limit <= 0:
            return _hits([], [])
        found = self._searcher.search(query, limit, count=False, order_by_field="date")
        return self._named([(0.0, address) for _, address in found.hits], -1)

    def __len__(self) -> int:
        return self._searcher.num_docs

    def terms(self, field: str, prefix: str, most: int, only: Node | None = None) -> list[tuple[str, int]]:
        """Words or values of a field that begin so, those of most pages first, and of how many pages each is.

        With ``only``, of these pages alone: then every word is held against them, which takes its time.
        """
        _check(field, _WORD_FIELDS)
        if most <= 0 or not _is_utf8(prefix):
            return []
        filter_ = None if only is None else _query(only)
        return self._searcher.terms_with_prefix(field, prefix, filter_query=filter_, limit=most)

    def df(self, field: str, word: str) -> int:
        """How many pages have this word or value in this field, those included that were taken out but not merged."""
        _check(field, _WORD_FIELDS)
        return self._searcher.doc_freq(field, word) if _is_utf8(word) else 0

    def deleted_share(self) -> float:
        """How much of the index is pages that were taken out or replaced, and still count in ``df`` and in scores."""
        try:
            segments = json.loads((self._folder / _META).read_bytes())["segments"]
        except (ValueError, OSError) as error:
            raise _in_words(self._folder, error) from error
        deleted = sum((segment["deletes"] or {}).get("num_deleted_docs", 0) for segment in segments)
        return float(deleted / max(1, sum(segment["max_doc"] for segment in segments)))

    def _look(self) -> None:
        # The version first: what is committed between the two is then seen now and looked for once more.
        self._version = _version(self._folder)
        self._index.reload()
        self._searcher = self._index.searcher()

    def _named(self, found: "list[tuple[float, tantivy.DocAddress]]", total: int) -> Hits:
        ids = self._searcher.fast_field_values("id", [address for _, address in found])
        return _hits(ids, [score for score, _ in found], total)


def _hits(ids: Iterable[object], scores: Iterable[float], total: int = -1) -> Hits:
    return Hits(np.array(ids, np.int64), np.array(scores, np.float64), total)


# --- From values to queries ---


def _query(node: Node) -> Query:
    """What tantivy is asked. A tree too large or deep for it, or an unknown field, is a bug: ``ValueError``."""
    _measure(node)
    return _translated(node)


def _measure(node: Node) -> None:
    """Refuse what would exhaust the stack or the machine; words of phrases and values of filters count as nodes."""
    waiting, seen = [(node, 1)], 0
    while waiting:
        part, depth = waiting.pop()
        inner, words = _inside(part)
        seen += 1 + words
        if depth > DEEPEST or seen + len(waiting) + len(inner) > MOST_NODES:
            raise ValueError(f"a query deeper than {DEEPEST} or with more than {MOST_NODES} parts")
        waiting += [(each, depth + 1) for each in inner]


def _inside(node: Node) -> tuple[tuple[Node, ...], int]:
    """The parts of a node, and how many words or values it has itself."""
    match node:
        case Any(parts) | Best(parts):
            return parts, 0
        case All(parts, wishes):
            return parts + wishes, 0
        case But(wanted, unwanted):
            return (wanted, *unwanted), 0
        case Phrase(words=words) | OneOf(values=words):
            return (), len(words)
        case Term() | Between():
            return (), 0
    assert_never(node)


def _translated(node: Node) -> Query:
    match node:
        case Any(parts, at_least):
            return _any(parts, at_least)
        case All(parts, wishes):
            return _all(parts, wishes)
        case Best(parts, tie):
            return Query.disjunction_max_query([_translated(part) for part in parts], _weight(tie))
        case But(wanted, unwanted):
            return Query.boolean_query([(Occur.Must, _translated(wanted)), *_each(Occur.MustNot, unwanted)])
        case _:
            return _leaf(node)


def _leaf(node: Term | Phrase | OneOf | Between) -> Query:
    match node:
        case Term(field, word, boost):
            return _phrase(field, (word,), boost, 0)
        case Phrase(field, words, boost, slop):
            return _phrase(field, words, boost, slop)
        case OneOf(field, values):
            _check(field, EXACT_FIELDS)
            return _unscored(_one_of(field, [value for value in values if _is_utf8(value)]))
        case Between(field, low, high):
            return _between(field, low, high)
    assert_never(node)


def _one_of(field: str, values: list[str]) -> Query:
    """A set is looked up in the whole dictionary, which takes ten times as long as one value does."""
    if len(values) == 1:
        return Query.term_query(_SCHEMA, field, values[0])
    return Query.term_set_query(_SCHEMA, field, values)


def _phrase(field: str, words: tuple[str, ...], boost: float, slop: int) -> Query:
    _check(field, TEXT_FIELDS)
    _weight(boost)
    if not 0 <= slop <= MOST_SLOP:
        raise ValueError(f"a slop of {slop} words")
    if not words or not all(map(_is_utf8, words)):
        return Query.empty_query()
    if len(words) == 1:
        query = Query.term_query(_SCHEMA, field, words[0])
    else:
        query = Query.phrase_query(_SCHEMA, field, list(words), slop)
    return query if boost == 1 else Query.boost_query(query, boost)


def _between(field: str, low: int, high: int) -> Query:
    _check(field, NUMBER_FIELDS)
    kind, least, largest = _NUMBERS[field]
    low, high = max(low, least), min(high, largest)
    if low > high:
        return Query.empty_query()
    return _unscored(Query.range_query(_SCHEMA, field, kind, low, high))


def _any(parts: tuple[Node, ...], at_least: int) -> Query:
    if at_least <= 0:
        return _all((), parts)
    if at_least > len(parts):
        return Query.empty_query()
    return Query.boolean_query(_each(Occur.Should, parts), minimum_number_should_match=at_least)


def _all(parts: tuple[Node, ...], wishes: tuple[Node, ...]) -> Query:
    """Without a part that must be there, wishes alone would be a condition."""
    musts = _each(Occur.Must, parts) or [(Occur.Must, _unscored(Query.all_query()))]
    return Query.boolean_query(musts + _each(Occur.Should, wishes))


def _each(occur: Occur, parts: tuple[Node, ...]) -> list[tuple[Occur, Query]]:
    return [(occur, _translated(part)) for part in parts]


def _unscored(query: Query) -> Query:
    return Query.const_score_query(query, 0.0)


def _check(field: str, fields: tuple[str, ...]) -> None:
    if field not in fields:
        raise ValueError(f"no field for this: {field}; there are {', '.join(fields)}")


def _weight(weight: float) -> float:
    if not 0 <= weight < inf:
        raise ValueError(f"a weight must be a number from 0 on, not {weight}")
    return weight


def _is_utf8(word: str) -> bool:
    """Half a surrogate pair, which JSON can carry, is in no page; tantivy would raise."""
    try:
        word.encode()
    except UnicodeEncodeError:
        return False
    return True


# --- Files and faults ---


def _opened(folder: Path) -> tantivy.Index:
    index = tantivy.Index(_SCHEMA, str(folder))
    words = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace())
    index.register_tokenizer(_ANALYZER, words.filter(tantivy.Filter.remove_long(LONGEST_WORD_BYTES)).build())
    return index


def _version(folder: Path) -> tuple[int, int, int]:
    """What changes whenever something is committed or merged: each time the file is replaced by another."""
    about: stat_result = (folder / _META).stat()
    return about.st_ino, about.st_mtime_ns, about.st_size


def _is_of_disk(error: Exception) -> bool:
    """Whether the system refused something, as opposed to what is wrong with files or documents themselves."""
    return isinstance(error, OSError) or "os error" in str(error) or "Os {" in str(error)


def _in_words(folder: Path, error: Exception) -> StoreError:
    """What went wrong, and what to do, in one line. tantivy's errors differ only in what they say."""
    said = " ".join(str(error).split())[:200]
    if "LockBusy" in said:
        return StoreBusy(f"Another process writes the index in {folder}. Wait for it, or end it.")
    if "schema does not match" in said:
        return StoreCorrupt(
            f"The index in {folder} has other fields than this Vedette. To make it anew: vedette reindex"
        )
    if _is_of_disk(error):
        return StoreError(f"The index in {folder} cannot be read or written. Look at its disk and permissions: {said}")
    return StoreCorrupt(f"The index in {folder} is damaged. To make it anew: vedette reindex ({said})")
