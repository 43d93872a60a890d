"""Retrieval query tree: plain values that describe what to find, which the index adapter compiles and runs.

Text fields (``TEXT_FIELDS``) contain words; exact fields contain values that match as a whole; number fields contain
integers. Only ``Term`` and ``Phrase`` score (BM25 of their field, times ``boost``); filters select pages and score
nothing.
"""

from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from vedette.policy import Floats, Ints

TEXT_FIELDS = ("title", "headings", "anchors", "url", "body")
EXACT_FIELDS = ("site", "kind", "language", "access")
NUMBER_FIELDS = ("id", "date")  # date: seconds since 1970, of the stated date, else of the first fetch


class Term(NamedTuple):
    """Query node: pages with this word in this field."""

    field: str
    word: str
    boost: float = 1.0


class Phrase(NamedTuple):
    """Query node: pages with these words next to each other, up to ``slop`` words apart."""

    field: str
    words: tuple[str, ...]
    boost: float = 1.0
    slop: int = 0


class TermSet(NamedTuple):
    """Query filter: pages with one of these values in an exact field."""

    field: str
    values: tuple[str, ...]


class Range(NamedTuple):
    """Query filter: pages whose number field is in this range, both ends included."""

    field: str
    low: int
    high: int


class Or(NamedTuple):
    """Query node: pages that match at least a minimum number of these parts; scores add up."""

    parts: "tuple[Node, ...]"
    at_least: int = 1


class And(NamedTuple):
    """Query node: pages that match all parts, preferably the optional ones too; scores add up.

    Without parts it matches every page.
    """

    parts: "tuple[Node, ...]"
    wishes: "tuple[Node, ...]" = ()


class DisMax(NamedTuple):
    """Query node: pages that match one of these parts; the best score counts, plus a share of the others."""

    parts: "tuple[Node, ...]"
    tie: float = 0.0


class AndNot(NamedTuple):
    """Query node: pages that match one part and none of the others."""

    wanted: "Node"
    unwanted: "tuple[Node, ...]"


Node = Term | Phrase | TermSet | Range | Or | And | DisMax | AndNot


class Hits(NamedTuple):
    """Retrieved pages by id, best first, their scores, and the total count (-1 if it was not counted)."""

    ids: Ints
    scores: Floats
    total: int = -1


class ForwardTokens(NamedTuple):
    """The words of some pages as hashes: field by field (``TEXT_FIELDS``), page by page, with their counts.

    ``lengths`` has a row per page and a column per field. A long body is truncated (``index.fields.MAX_WORDS``).
    """

    words: npt.NDArray[np.uint32]
    lengths: Ints


class Searcher(Protocol):
    """Port for searching a snapshot of the index with a retrieval query; the index adapter implements it."""

    def find(self, node: Node, most: int, *, count: bool = False) -> Hits:
        """Find the best pages for a retrieval query, by the index's own scores."""

    def newest(self, node: Node, most: int) -> Hits:
        """Find the pages with the latest dates for a retrieval query, newest first, without scores."""

    def df(self, field: str, word: str) -> int:
        """Return the document frequency of a word in a text field."""

    @property
    def is_public(self) -> bool:
        """Whether anyone may see every page, so that no search has to filter by access."""

    def __len__(self) -> int:
        """Return the number of pages in the index."""
