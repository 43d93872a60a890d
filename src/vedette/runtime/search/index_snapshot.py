"""Index snapshot: the current index generation and its side files, refreshed several times a second."""

from collections.abc import Sequence
from functools import lru_cache
from itertools import count
from pathlib import Path

from vedette.adapters.index_store.generations import Generations
from vedette.adapters.index_store.page_table import PageTable
from vedette.adapters.index_store.tantivy_index import IndexReader, open_reader
from vedette.engine.search.ports import PageSignals
from vedette.errors import StoreError
from vedette.index.fields import PUBLIC, StoredPage
from vedette.index.query.retrieval import And, ForwardTokens, Phrase, TermSet
from vedette.index.query.spelling import correct_words
from vedette.policy import Ints
from vedette.runtime.search.lexicon import FILE, Lexicon, build_empty_lexicon, read_lexicon
from vedette.runtime.search.reputation_store import ReputationFile

# How many words' other forms are cached: a few words make up most queries.
MAX_CACHED_FORMS = 10_000
# Pairs of words that are looked up for one correction.
MAX_PHRASE_LOOKUPS = 4


class LiveIndexSnapshot:
    """An ``engine.search.ports.IndexSnapshot`` over one index generation."""

    def __init__(self, generation: Path) -> None:
        self.generation = generation
        self._reader = open_reader(generation / "tantivy")
        self.table = PageTable(generation)
        self._set_lexicon(build_empty_lexicon())
        self._lexicon_ns = 0
        self.reputation_file = ReputationFile(generation)
        self.refresh()

    def refresh(self) -> bool:
        """Refresh the index snapshot with what was committed since; return whether anything was."""
        is_new = self._reader.refresh()
        self.table.refresh()
        self._read_lexicon()
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
        return [self.table.read_stored(id_) for id_ in ids.tolist()]

    def get_access(self, ids: Ints) -> Sequence[str]:
        """Return the access that a user needs to see each page, from the index snapshot."""
        return self.table.read_access(ids)

    def df(self, word: str) -> int:
        """Return how many pages of the index snapshot have a word."""
        return self._reader.df("body", word)

    def get_word_forms(self, word: str) -> tuple[tuple[str, float], ...]:
        """Return other forms of a word that pages of the index snapshot have."""
        return self._forms(word)

    def suggest_spelling(self, words: Sequence[str]) -> tuple[str, ...] | None:
        """Suggest another spelling of query words from the index snapshot, with a bounded number of lookups."""
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

    def _read_lexicon(self) -> None:
        path = self.generation / FILE
        written_ns = path.stat().st_mtime_ns if path.exists() else 0
        if written_ns != self._lexicon_ns:
            self._lexicon_ns = written_ns
            self._set_lexicon(read_lexicon(self.generation) or self.lexicon)

    def _set_lexicon(self, lexicon: Lexicon) -> None:
        self.lexicon = lexicon
        self._forms = lru_cache(MAX_CACHED_FORMS)(lexicon.vocabulary.find_forms)


def refresh_snapshot(generations: Generations, before: LiveIndexSnapshot | None) -> LiveIndexSnapshot | None:
    """Return an up-to-date snapshot of the current index generation; None if there is none, or it is being created."""
    generation = generations.current()
    if generation is None:
        return None
    if before is None or before.generation != generation:
        try:
            before = LiveIndexSnapshot(generation)
        except StoreError:
            return None
    before.refresh()
    return before
