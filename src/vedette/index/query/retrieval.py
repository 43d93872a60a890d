"""What is asked of the index: a tree of plain values, which the edge turns into the index's own queries.

Text fields (``TEXT_FIELDS``) hold words; exact fields hold values that match whole; number fields hold integers. Only
``Term`` and ``Phrase`` score (BM25 of their field, times ``boost``); filters let pages through and score nothing.
"""

from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from vedette.policy import Floats, Ints

TEXT_FIELDS = ("title", "headings", "anchors", "url", "body")
EXACT_FIELDS = ("site", "kind", "language", "access")
NUMBER_FIELDS = ("id", "date")  # date: seconds since 1970, of what the page says, else of when it was first fetched


class Term(NamedTuple):
    """Pages with this word in this field."""

    field: str
    word: str
    boost: float = 1.0


class Phrase(NamedTuple):
    """Pages with these words next to each other; ``slop`` words may stand between."""

    field: str
    words: tuple[str, ...]
    boost: float = 1.0
    slop: int = 0


class TermSet(NamedTuple):
    """A filter: pages with one of these values in an exact field."""

    field: str
    values: tuple[str, ...]


class Range(NamedTuple):
    """A filter: pages whose number lies between these, both included."""

    field: str
    low: int
    high: int


class Or(NamedTuple):
    """Pages with so many of these at least; scores add up."""

    parts: "tuple[Node, ...]"
    at_least: int = 1


class And(NamedTuple):
    """Pages with all of these, preferably with the wishes too; scores add up. Without parts: every page."""

    parts: "tuple[Node, ...]"
    wishes: "tuple[Node, ...]" = ()


class DisMax(NamedTuple):
    """Pages with one of these; the best score counts, and of the others' this share."""

    parts: "tuple[Node, ...]"
    tie: float = 0.0


class AndNot(NamedTuple):
    """Pages with the one and none of the others."""

    wanted: "Node"
    unwanted: "tuple[Node, ...]"


Node = Term | Phrase | TermSet | Range | Or | And | DisMax | AndNot


class Hits(NamedTuple):
    """Pages by id, the best first, their scores, and how many there are in all (-1 where nobody counted)."""

    ids: Ints
    scores: Floats
    total: int = -1


class ForwardTokens(NamedTuple):
    """The words of some pages as numbers, field behind field (``TEXT_FIELDS``), page behind page; and how many each.

    ``lengths`` has a row per page and a column per field. A long body is cut (``index.fields.MOST_WORDS``).
    """

    words: npt.NDArray[np.uint32]
    lengths: Ints


class Searcher(Protocol):
    """An index at one moment."""

    def find(self, node: Node, most: int, *, count: bool = False) -> Hits:
        """The best pages by the index's own scores."""

    def newest(self, node: Node, most: int) -> Hits:
        """The pages with the latest dates, the latest first; no scores."""

    def __len__(self) -> int:
        """How many pages there are."""
