"""Measuring what fetches brought while the indexer takes them in: changes are gathered, and measured in batches.

A fetch may bring something to other pages, too: what it calls them. These are indexed anew in their turn, and what
that brings counts for the page whose fetch gave the name.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from vedette.adapters.index_store.gain_store import Brought, Gain, GainBook
from vedette.adapters.index_store.page_table import INDEXED, PageTable
from vedette.index.quality.gains import Change, Flags, Measured, is_same, measure
from vedette.index.quality.term_curves import TermCurves
from vedette.index.quality.watched_terms import NO_WORDS, Words
from vedette.policy import Floats, Ints
from vedette.runtime.indexing.term_curves import CurveFile, keep_needs, read_needs
from vedette.text import Numbers

__all__ = ["Fetch", "Gauge"]

MOST_NAMINGS = 200_000
# What words gained is kept after so many changes: they say little one by one.
KEEP_EVERY = 200
MOST_WORDS = 1 << 17  # measured at once; with more, what is worked with falls out of the processor's caches


class Fetch(NamedTuple):
    """Whose fetch, and when it was."""

    page: int
    fetched_s: float


class _Seen(NamedTuple):
    """A change whose gain counts for a fetch; ``page`` is the one that changed."""

    fetch: Fetch
    page: Fetch
    what: Brought
    before: Words
    after: Words


class Gauge:
    """Gathers changes, measures them, and hands the gains to the book. Without a book nothing is gathered.

    ``changes`` counts them; so often, a curve has become a little more out of date.
    """

    def __init__(self, table: PageTable, book: GainBook | None) -> None:
        self._table, self._book = table, book
        self._file = CurveFile(table.folder)
        self._seen: list[_Seen] = []
        self._before: dict[int, Words] = {}
        self._named_by: dict[int, Fetch] = {}
        self._words = 0
        self._gained: Floats = np.zeros(0)
        self._gained_of: Numbers = np.zeros(0, np.uint32)
        self._again = 0
        self.changes = 0

    @property
    def is_idle(self) -> bool:
        """Whether nobody wants to know."""
        return self._book is None

    def remember(self, ids: Sequence[int]) -> None:
        """Read the words of pages that are about to change, all at once: one at a time takes ten times as long."""
        self._before = {} if self.is_idle else self._read(ids)

    def words_of(self, id_: int) -> Words:
        """The words of a page that is in the index, as they are now; each is asked for once."""
        remembered = self._before.pop(id_, None)
        if remembered is not None or self.is_idle:
            return remembered or NO_WORDS
        return self._read([id_]).get(id_, NO_WORDS) if self._table.is_indexed(id_) else NO_WORDS

    def fetched(self, page: Fetch, before: Words, after: Words, what: Brought) -> None:
        """A fetch changed the words of its page."""
        self._gather(page, page, what, before, after)

    def names(self, fetch: Fetch, targets: Sequence[int]) -> None:
        """A fetch gave pages new names, by the fingerprints of their URLs; they are indexed anew later.

        A page that is named through an alias is not found again; what its name brings counts for nobody.
        """
        if self.is_idle or not targets:
            return
        if len(self._named_by) > MOST_NAMINGS:  # most of them are of pages that are not in the index
            self._named_by.clear()
        self._named_by.update(dict.fromkeys(targets, fetch))

    def named(self, print_: int, page: Fetch, after: Words) -> None:
        """The page at a URL is about to be indexed anew; what its latest name changes counts once, for who gave it."""
        by = self._named_by.pop(print_, None)
        if by is not None:
            self._gather(by, page, "names", self.words_of(page.page), after)

    def measure(self) -> None:
        """Measure what was gathered: new versions of known pages by needy words, what comes first by all."""
        seen, self._seen, self._words = self._seen, [], 0
        curves, again = (self._file.curves(), self._file.again()) if seen else (None, None)
        if curves is None or again is None or self._book is None:
            return
        known = [each for each in seen if len(each.before[0])]
        if again is curves:
            measured = self._measured(curves, seen)
            self._note(again.watched.numbers, measured.by_word, len(known))
            self._tell(seen, measured)
            return
        if known:
            measured = self._measured(again, known)
            self._note(again.watched.numbers, measured.by_word, len(known))
            self._tell(known, measured)
        new = [each for each in seen if not len(each.before[0])]
        if new:
            self._tell(new, self._measured(curves, new, self._file.needy))

    def _measured(self, curves: TermCurves, seen: Sequence[_Seen], counts: Flags | None = None) -> Measured:
        importance = self._importance(np.array([each.page.page for each in seen], np.int64))
        changes = [Change(*each[-2:], worth) for each, worth in zip(seen, importance, strict=True)]
        return measure(curves, changes, counts)

    def _tell(self, seen: Sequence[_Seen], measured: Measured) -> None:
        assert self._book is not None, "somebody wants to know"
        columns = (column.tolist() for column in measured[:3])
        self._book.append(row for each, *found in zip(seen, *columns, strict=True) for row in _rows(each, *found))

    def _note(self, numbers: Numbers, gained: Floats, changes: int) -> None:
        """What changes of known pages brought to words, for the next making of curves; then what was before fades."""
        if numbers is not self._gained_of:
            self._keep_needs(fades=len(self._gained_of) > 0)
            self._gained_of, self._gained = numbers, np.zeros(len(numbers))
        self._gained += gained
        self._again += changes
        if self._again >= KEEP_EVERY:
            self._keep_needs()

    def _keep_needs(self, *, fades: bool = False) -> None:
        if not (self._again or fades):
            return
        folder = self._table.folder
        needs = read_needs(folder).after(self._gained_of, self._gained, self._again)
        with suppress(OSError):  # the generation was let go, or the disk is full: it is only evidence
            keep_needs(folder, needs.faded() if fades else needs)
        self._gained, self._again = np.zeros(len(self._gained_of)), 0

    def commit(self) -> None:
        """What was gathered is measured; it survives, and the keeper may read it."""
        self.measure()
        if self._book is not None:
            self._book.commit()

    def close(self) -> None:
        """Let go of the book."""
        self._keep_needs()
        if self._book is not None:
            self._book.close()

    def _read(self, ids: Sequence[int]) -> dict[int, Words]:
        """The words of those pages that are in the index."""
        asked = np.array(ids, np.int64)
        indexed = asked[self._table.at(asked)["flags"] & INDEXED > 0]
        words, lengths = self._table.forward(indexed)
        sizes = lengths.sum(axis=1)
        ends = np.cumsum(sizes)
        each = zip(indexed.tolist(), (ends - sizes).tolist(), ends.tolist(), map(tuple, lengths.tolist()), strict=True)
        return {id_: (words[begin:end], fields) for id_, begin, end, fields in each}

    def _gather(self, fetch: Fetch, page: Fetch, what: Brought, before: Words, after: Words) -> None:
        if self.is_idle or is_same(before, after):
            return
        self._seen.append(_Seen(fetch, page, what, before, after))
        self.changes += 1
        self._words += len(before[0]) + len(after[0])
        if self._words > MOST_WORDS:
            self.measure()

    def _importance(self, ids: Ints) -> list[float]:
        self._table.refresh()
        importance: list[float] = self._table.signals(ids).importance.tolist()
        return importance


def _rows(seen: _Seen, gain: float, by_links: float, views: float) -> list[Gain]:
    """For the list: of a page itself, or of the one that named it and of the one that was named."""
    if seen.what != "names":
        return [Gain(0, *seen.fetch, seen.what, gain, by_links, views)]
    return [Gain(0, *seen.fetch, "names", gain, by_links, None), Gain(0, *seen.page, "names", 0.0, 0.0, views)]
