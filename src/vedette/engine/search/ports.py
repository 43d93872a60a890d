"""What a search needs of whatever keeps the index: one data folder at one moment."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from vedette.index.fields import StoredPage
from vedette.index.query.retrieval import ForwardTokens, Searcher
from vedette.policy import Floats, Ints


class PageSignals(NamedTuple):
    """What is known of some pages whatever is asked, an array each.

    ``host`` and ``group`` are numbers: pages of one host, and copies of one page, share them. ``date_s`` is what a page
    says of its date, and NaN where it says nothing; ``born_s`` is when it was first fetched. ``depth`` counts the
    folders of its URL, ``words`` those of its text. The rest lies between 0 and 1; of ``popularity``, .5 is neutral.
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


class IndexSnapshot(Protocol):
    """Pages by id, and the index over them. A page may be gone between one call and the next."""

    @property
    def finder(self) -> Searcher:
        """The index."""

    def forward(self, ids: Ints) -> ForwardTokens:
        """The words of pages."""

    def get_signals(self, ids: Ints) -> PageSignals:
        """What else is known of them."""

    def get_access(self, ids: Ints) -> Sequence[str]:
        """What a reader must be allowed to see each with (``index.fields.access_label``)."""

    def get_stored(self, ids: Ints) -> Sequence[StoredPage | None]:
        """What they say; None for one that is gone."""

    def df(self, word: str) -> int:
        """How many pages have a word, roughly."""

    def get_word_forms(self, word: str) -> Sequence[tuple[str, float]]:
        """Other words of the index that may stand for it, and what each counts."""

    def suggest_spelling(self, words: Sequence[str]) -> tuple[str, ...] | None:
        """The words as they were probably meant; None where nothing speaks against them."""
