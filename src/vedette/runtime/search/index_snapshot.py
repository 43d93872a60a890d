"""Index snapshot: the current index generation and its side files, refreshed several times a second."""

from collections.abc import Sequence
from functools import lru_cache
from itertools import count
from pathlib import Path

from zstandard import ZstdDecompressor

from vedette.adapters.index_store.generations import Generations
from vedette.adapters.index_store.page_table import PageTable
from vedette.adapters.index_store.tantivy_index import IndexReader, open_reader
from vedette.engine.search.ports import PageSignals
from vedette.errors import StoreError
from vedette.index.fields import PUBLIC, StoredPage, unpack_page, unpack_url
from vedette.index.query.retrieval import And, ForwardTokens, Phrase, TermSet
from vedette.index.query.spelling import correct_words
from vedette.index.semantic.similarity import Similarity
from vedette.policy import Floats, Ints
from vedette.runtime.search.lexicon import FILE, Lexicon, build_empty_lexicon, read_lexicon
from vedette.runtime.search.meaning import MeaningComparer
from vedette.runtime.search.reputation_store import ReputationFile

# How many words' other forms are cached: a few words make up most queries.
MAX_CACHED_FORMS = 10_000
MAX_CACHED_SPELLINGS = 1_000
MAX_CACHED_URLS = 20_000
# Packed texts of pages that are also kept unpacked, three to five times as large.
MAX_CACHED_BYTES = 8 << 20
# Pairs of words that are looked up for one correction.
MAX_PHRASE_LOOKUPS = 4


class LiveIndexSnapshot:
    """An ``engine.search.ports.IndexSnapshot`` over one index generation; without ``meaning`` words alone count."""

    def __init__(self, generation: Path, meaning: MeaningComparer | None = None) -> None:
        self.generation = generation
        self._meaning = meaning
        self._reader = open_reader(generation / "tantivy")
        self.table = PageTable(generation)
        self._urls: dict[int, str] = {}
        self._stored: dict[int, tuple[bytes, StoredPage]] = {}  # the latest last
        self._stored_bytes = 0
        self._decompressor = ZstdDecompressor()
        self._set_lexicon(build_empty_lexicon())
        self._lexicon_ns = 0
        self.version = 0  # grows with each change that results depend on
        self.reputation_file = ReputationFile(generation)
        self.refresh()

    def refresh(self) -> bool:
        """Refresh the index snapshot with what was committed since; return whether anything was."""
        is_new = self._reader.refresh()
        is_ranked = self.table.refresh()
        has_lexicon = self._read_lexicon()
        has_vectors = self._meaning is not None and self._meaning.refresh()
        self.version += is_new or is_ranked or has_lexicon or has_vectors
        return is_new

    @property
    def finder(self) -> IndexReader:
        """The full-text index of this index snapshot."""
        return self._reader

    def forward(self, ids: Ints) -> ForwardTokens:
        """Return the words of pages from the index snapshot."""
        return self.table.read_forward(ids)

    def get_signals(self, ids: Ints) -> PageSignals:
        """Return the ranking signals of pages from the index snapshot."""
        return self.table.read_signals(ids)

    def get_stored(self, ids: Ints) -> Sequence[StoredPage | None]:
        """Return the stored text of pages from the index snapshot."""
        return [self._read_stored(id_) for id_ in ids.tolist()]

    def _read_stored(self, id_: int) -> StoredPage | None:
        """Read the stored text of a page; the latest are kept unpacked, as long as their packed text is the same."""
        blob = self.table.read_blob(id_)
        known = self._stored.pop(id_, None)
        if known is None or known[0] != blob:
            if known is not None:
                self._stored_bytes -= len(known[0])
            stored = unpack_page(blob, self._decompressor) if blob else None
            if stored is None or len(blob) > MAX_CACHED_BYTES:
                return stored
            known = blob, stored
            self._stored_bytes += len(blob)
        self._stored[id_] = known
        while self._stored_bytes > MAX_CACHED_BYTES:
            first = next(iter(self._stored))
            self._stored_bytes -= len(self._stored.pop(first)[0])
        return known[1]

    def get_urls(self, ids: Ints) -> Sequence[str]:
        """Return the URLs of pages from the index snapshot; remembered, since a page keeps its URL."""
        if len(self._urls) > MAX_CACHED_URLS:
            self._urls.clear()
        for id_ in ids.tolist():
            if id_ not in self._urls and (url := unpack_url(self.table.read_blob(id_), self._decompressor)):
                self._urls[id_] = url
        return [self._urls.get(id_, "") for id_ in ids.tolist()]

    def get_access(self, ids: Ints) -> Sequence[str]:
        """Return the access that a user needs to see each page, from the index snapshot."""
        return self.table.read_access(ids)

    def df(self, word: str) -> int:
        """Return how many pages of the index snapshot have a word."""
        return self._reader.df("body", word)

    def get_word_forms(self, word: str) -> tuple[tuple[str, float], ...]:
        """Return other forms of a word that pages of the index snapshot have."""
        return self._forms(word)

    def is_known(self, word: str) -> bool:
        """Check whether the lexicon of the index snapshot has a word."""
        return self.lexicon.vocabulary.doc_freq(word) > 0

    def complete_word(self, word: str, most: int) -> Sequence[str]:
        """Return the most frequent words of the index snapshot that begin like this one, typos allowed."""
        return self.lexicon.suggestions.complete_word(word, most)

    def compare_meaning(self, words: Sequence[str], best: Ints, scores: Floats) -> Similarity | None:
        """Compare all pages of the index snapshot with the meaning of a query; None if that is off."""
        return self._meaning.compare(words, best, scores) if self._meaning is not None else None

    def suggest_spelling(self, words: Sequence[str]) -> tuple[str, ...] | None:
        """Suggest another spelling of query words from the index snapshot; remembered, since a search asks twice."""
        return self._spellings(tuple(words))

    def _correct_words(self, words: tuple[str, ...]) -> tuple[str, ...] | None:
        """Correct query words, with a bounded number of lookups."""
        times = count(1)

        def count_pairs(one: str, other: str) -> int:
            return self._count_phrase(one, other) if next(times) <= MAX_PHRASE_LOOKUPS else 0

        return correct_words(words, self.lexicon.spelling, count_pairs)

    def _count_phrase(self, one: str, other: str) -> int:
        """Count the public pages of the index snapshot that have two words next to each other."""
        if not self.df(one) or not self.df(other):  # as for most neighbors of a typo; the index takes far longer
            return 0
        node = And((Phrase("body", (one, other)), TermSet("access", (PUBLIC,))))
        return self._reader.find(node, 1, count=True).total

    def has(self, id_: int) -> bool:
        """Check whether a page can be found in the index snapshot."""
        return self.table.is_indexed(id_)

    def _read_lexicon(self) -> bool:
        path = self.generation / FILE
        written_ns = path.stat().st_mtime_ns if path.exists() else 0
        is_new = written_ns != self._lexicon_ns
        if is_new:
            self._lexicon_ns = written_ns
            self._set_lexicon(read_lexicon(self.generation) or self.lexicon)
        return is_new

    def _set_lexicon(self, lexicon: Lexicon) -> None:
        self.lexicon = lexicon
        self._forms = lru_cache(MAX_CACHED_FORMS)(lexicon.vocabulary.find_forms)
        self._spellings = lru_cache(MAX_CACHED_SPELLINGS)(self._correct_words)


def refresh_snapshot(
    generations: Generations, before: LiveIndexSnapshot | None, meaning: MeaningComparer | None = None
) -> LiveIndexSnapshot | None:
    """Return an up-to-date snapshot of the current index generation; None if there is none, or it is being created."""
    generation = generations.current()
    if generation is None:
        return None
    if before is None or before.generation != generation:
        try:
            before = LiveIndexSnapshot(generation, meaning)
        except StoreError:
            return None
    before.refresh()
    return before
