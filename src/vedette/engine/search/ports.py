"""Ports of search: a snapshot of the index and its pages at one moment, implemented in ``runtime.search``."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from vedette.index.fields import StoredPage
from vedette.index.query.retrieval import ForwardTokens, Searcher
from vedette.index.semantic.similarity import Similarity
from vedette.policy import Floats, Ints


class PageSignals(NamedTuple):
    """Query-independent ranking signals of pages, one array each.

    ``host`` and ``group`` are numbers: pages of one host, and copies of one page, share them. ``date_s`` is the date
    that a page states, NaN if none; ``born_s`` is when it was first fetched. ``depth`` counts the folders of its URL,
    ``words`` those of its text. The rest is between 0 and 1; for ``popularity``, .5 is neutral. ``is_canonical`` says
    which page represents its copies; None if unknown. Pages with the same ``family`` above 0 are one page in several
    releases, and ``release`` grows with the release (``index.versions``).
    """

    host: Ints
    group: Ints
    date_s: Floats
    born_s: Floats
    fetched_s: Floats
    depth: Ints
    words: Ints
    spam: Floats
    importance: Floats
    host_importance: Floats
    popularity: Floats
    is_canonical: npt.NDArray[np.bool_] | None = None
    family: Ints | None = None
    release: Floats | None = None

    @classmethod
    def neutral(cls, pages: int) -> "PageSignals":
        """Build the signals of pages without any data."""
        zero, none = np.zeros(pages), np.zeros(pages, np.int64)
        return cls(none, none, zero + np.nan, zero, zero, none + 1, none, zero, zero, zero, zero + 0.5)

    def take(self, rows: Ints) -> "PageSignals":
        """Take the signals of some pages by row."""
        return PageSignals._make(None if column is None else column[rows] for column in self)


class IndexSnapshot(Protocol):
    """Port to a snapshot of the index, for search. A page may disappear between one call and the next."""

    @property
    def finder(self) -> Searcher:
        """Index snapshot port of search: the full-text index."""

    def forward(self, ids: Ints) -> ForwardTokens:
        """Index snapshot port of search: return the forward tokens (words) of pages."""

    def get_signals(self, ids: Ints) -> PageSignals:
        """Index snapshot port of search: return the ranking signals of pages."""

    def get_access(self, ids: Ints) -> Sequence[str]:
        """Index snapshot port of search: return the access label of each page (``index.fields.access_label``)."""

    def get_stored(self, ids: Ints) -> Sequence[StoredPage | None]:
        """Index snapshot port of search: return the stored text of pages; None for one that is gone."""

    def get_urls(self, ids: Ints) -> Sequence[str]:
        """Index snapshot port of search: return the URLs of pages; empty for one that is gone."""

    def df(self, word: str) -> int:
        """Index snapshot port of search: return the document frequency of a word, roughly."""

    def get_word_forms(self, word: str) -> Sequence[tuple[str, float]]:
        """Index snapshot port of search: return other forms of a word in the index, with weights."""

    def is_known(self, word: str) -> bool:
        """Index snapshot port of search: check whether public pages are known to have a word; some may be missing."""

    def complete_word(self, word: str, most: int) -> Sequence[str]:
        """Index snapshot port of search: return frequent words that begin like this one, typos allowed."""

    def compare_meaning(self, words: Sequence[str], best: Ints, scores: Floats) -> Similarity | None:
        """Index snapshot port of search: compare all pages with the meaning of a query; None if that is off.

        ``best`` are the best pages by words, with their scores.
        """

    def suggest_spelling(self, words: Sequence[str]) -> tuple[str, ...] | None:
        """Index snapshot port of search: suggest a spelling of the words; None if they seem right."""
