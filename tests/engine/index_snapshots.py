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
from vedette.index.versions import version_key_of
from vedette.model import origin_of
from vedette.policy import Ints

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
    date_s: float = nan
    spam: float = 0.0
    importance: float = 0.5
    marks: str = ""
    kind: str = "html"
    language: str = "en"


@dataclass
class TestShelf:
    """Pages by their place in the list, counted from 1."""

    __test__ = False  # no test itself

    leaves: Sequence[Leaf]
    folder: Path
    forms: Mapping[str, Sequence[tuple[str, float]]] = field(default_factory=dict)
    spellings: Mapping[str, str] = field(default_factory=dict)
    gone: frozenset[int] = frozenset()
    lying: bool = False

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
        """The index."""
        return self._reader

    def forward(self, ids: Ints) -> ForwardTokens:
        """The words of pages."""
        rows = [self._words[id_] for id_ in ids.tolist()]
        words = np.concatenate([np.zeros(0, np.uint32), *(row[0] for row in rows)])
        return ForwardTokens(words, np.array([row[1] for row in rows], np.int64).reshape(len(rows), len(TEXT_FIELDS)))

    def get_signals(self, ids: Ints) -> PageSignals:
        """What else is known of them."""
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
        )

    def get_access(self, ids: Ints) -> Sequence[str]:
        """What a reader must be allowed to see each with."""
        return [access_label(self.leaves[id_ - 1].private) for id_ in ids.tolist()]

    def get_stored(self, ids: Ints) -> Sequence[StoredPage | None]:
        """What they say."""
        return [self._stored(id_) for id_ in ids.tolist()]

    def df(self, word: str) -> int:
        """How many pages have a word."""
        return self._reader.df("body", word)

    def get_word_forms(self, word: str) -> Sequence[tuple[str, float]]:
        """Other forms of a word."""
        return self.forms.get(word, ())

    def suggest_spelling(self, words: Sequence[str]) -> tuple[str, ...] | None:
        """What was perhaps meant."""
        better = tuple(self.spellings.get(word, word) for word in words)
        return None if better == tuple(words) else better

    def _stored(self, id_: int) -> StoredPage | None:
        leaf = self.leaves[id_ - 1]
        if id_ in self.gone:
            return None
        about = (leaf.kind, leaf.language, None if np.isnan(leaf.date_s) else leaf.date_s, leaf.marks)
        return StoredPage(leaf.url, leaf.title, "", leaf.headings, leaf.body, *about)
