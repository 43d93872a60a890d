"""An index snapshot for tests: the real index in a folder, and everything else in memory."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import nan
from pathlib import Path

import numpy as np

from vedette.adapters.index_store.tantivy_index import IndexReader, open_reader, open_writer
from vedette.engine.search.ports import PageSignals
from vedette.index.fields import IndexEntry, StoredPage, access_label, build_document, number_tokens, tokenize_entry
from vedette.index.query.retrieval import TEXT_FIELDS, ForwardTokens
from vedette.index.semantic.similarity import Similarity
from vedette.index.versions import version_key_of
from vedette.model import origin_of
from vedette.policy import Floats, Ints

NOW_S = 1_780_000_000.0


@dataclass(frozen=True)
class Leaf:
    """A page of a test."""

    url: str
    title: str = ""
    body: str = ""
    headings: tuple[str, ...] = ()
    anchors: tuple[str, ...] = ()
    private: str = ""
    group: int = 0
    is_canonical: bool = False
    date_s: float = nan
    spam: float = 0.0
    importance: float = 0.5
    marks: str = ""
    kind: str = "html"
    language: str = "en"


@dataclass
class TestShelf:
    """The pages of a test, numbered from 1 in the order of the list."""

    __test__ = False  # no test itself

    leaves: Sequence[Leaf]
    folder: Path
    forms: Mapping[str, Sequence[tuple[str, float]]] = field(default_factory=dict)
    spellings: Mapping[str, str] = field(default_factory=dict)
    gone: frozenset[int] = frozenset()
    lying: bool = False
    near: Similarity | None = None

    def __post_init__(self) -> None:
        writer = open_writer(self.folder)
        self._words = [(np.zeros(0, np.uint32), (0,) * len(TEXT_FIELDS))]
        for id_, leaf in enumerate(self.leaves, 1):
            date_s = NOW_S if np.isnan(leaf.date_s) else leaf.date_s
            about = (leaf.kind, leaf.language, date_s, "" if self.lying else leaf.private)
            entry = IndexEntry(id_, leaf.url, leaf.title, leaf.headings, leaf.body, leaf.anchors, *about)
            forms = tokenize_entry(entry)
            writer.put(build_document(entry, forms))
            self._words.append(number_tokens(forms))
        writer.commit()
        writer.close()
        self._reader = open_reader(self.folder)

    @property
    def finder(self) -> IndexReader:
        """Return the index."""
        return self._reader

    def forward(self, ids: Ints) -> ForwardTokens:
        """Return the words of pages."""
        rows = [self._words[id_] for id_ in ids.tolist()]
        words = np.concatenate([np.zeros(0, np.uint32), *(row[0] for row in rows)])
        return ForwardTokens(words, np.array([row[1] for row in rows], np.int64).reshape(len(rows), len(TEXT_FIELDS)))

    def get_signals(self, ids: Ints) -> PageSignals:
        """Return the ranking signals of pages."""
        some = [self.leaves[id_ - 1] for id_ in ids.tolist()]
        hosts = sorted({origin_of(leaf.url).host for leaf in self.leaves})
        floats = np.array([(leaf.date_s, leaf.spam, leaf.importance) for leaf in some]).reshape(len(some), 3)
        here = np.full(len(some), NOW_S)
        versions = [version_key_of(leaf.url, leaf.title) for leaf in some]
        return PageSignals(
            host=np.array([hosts.index(origin_of(leaf.url).host) for leaf in some], np.int64),
            group=np.array([leaf.group for leaf in some], np.int64),
            date_s=floats[:, 0],
            born_s=here,
            fetched_s=here,
            depth=np.array([len(list(filter(None, leaf.url.split("/")[3:]))) for leaf in some], np.int64),
            words=np.array([len(leaf.body.split()) for leaf in some], np.int64),
            spam=floats[:, 1],
            importance=floats[:, 2],
            host_importance=np.full(len(some), 0.5),
            popularity=np.full(len(some), 0.5),
            family=np.array([version.family for version in versions], np.int64),
            release=np.array([version.release for version in versions]),
            is_canonical=np.array([leaf.is_canonical for leaf in some], np.bool_),
        )

    def get_access(self, ids: Ints) -> Sequence[str]:
        """Return the access right that each page requires."""
        return [access_label(self.leaves[id_ - 1].private) for id_ in ids.tolist()]

    def get_stored(self, ids: Ints) -> Sequence[StoredPage | None]:
        """Return the stored fields of pages."""
        return [self._stored(id_) for id_ in ids.tolist()]

    def get_urls(self, ids: Ints) -> Sequence[str]:
        """Return the URLs of pages."""
        return [self.leaves[id_ - 1].url for id_ in ids.tolist()]

    def df(self, word: str) -> int:
        """Return the number of pages with a word."""
        return self._reader.df("body", word)

    def compare_meaning(self, _words: Sequence[str], _best: Ints, _scores: Floats) -> Similarity | None:
        """Return similarities of meaning, if the test provides them."""
        return self.near

    def get_word_forms(self, word: str) -> Sequence[tuple[str, float]]:
        """Return other forms of a word."""
        return self.forms.get(word, ())

    def is_known(self, word: str) -> bool:
        """Check whether a public page has a word in its text."""
        return any(word in leaf.body.split() for leaf in self.leaves if not leaf.private)

    def complete_word(self, word: str, most: int) -> Sequence[str]:
        """List words in the texts that start like this one."""
        known = sorted({each for leaf in self.leaves for each in leaf.body.split() if each.startswith(word)})
        return known[:most]

    def suggest_spelling(self, words: Sequence[str]) -> tuple[str, ...] | None:
        """Suggest another spelling."""
        better = tuple(self.spellings.get(word, word) for word in words)
        return None if better == tuple(words) else better

    def _stored(self, id_: int) -> StoredPage | None:
        leaf = self.leaves[id_ - 1]
        if id_ in self.gone:
            return None
        about = (leaf.kind, leaf.language, None if np.isnan(leaf.date_s) else leaf.date_s, leaf.marks)
        return StoredPage(leaf.url, leaf.title, "", leaf.headings, leaf.body, *about)
