"""Gain meter: measure the search gain of fetches while the indexer indexes them, in batches.

A change costs only what it moves: queries whose words are unchanged are not scored again. Gains are still exact; how
often a page is shown needs all of its queries, and is measured occasionally.

A fetch may also change other pages, through anchor texts. These pages are reindexed later, and the gain is credited to
the page whose fetch gave the anchor text.
"""

from collections.abc import Sequence
from contextlib import suppress
from math import isnan, nan
from typing import NamedTuple

import numpy as np

from vedette.adapters.index_store.gain_store import Gain, GainKind, GainStore
from vedette.adapters.index_store.page_table import INDEXED, PageTable
from vedette.index.quality.gains import (
    ChangedPages,
    MeasuredGains,
    concatenate_words,
    is_unchanged,
    measure_gains,
    measure_view_gain,
)
from vedette.index.quality.watched_queries import NO_WORDS, Bools, PageWords
from vedette.index.query.retrieval import TEXT_FIELDS
from vedette.policy import Floats, rng_for
from vedette.runtime.indexing.query_curves import CurveFile, ScoringCurves, load_needs, save_needs
from vedette.text import WideHashes

MAX_PENDING_NAMES = 200_000
# Query gains are saved after this many changes: single ones say little.
SAVE_NEEDS_EVERY = 1_000
# How often a page is shown is measured with a first fetch, with a new anchor text, when its text length changes, and
# with this share of all other changes: these move few of its queries, and the last number stays valid meanwhile.
VIEWS_SHARE = 0.125
_BODY = TEXT_FIELDS.index("body")
SEED = 1
MAX_WORDS = 1 << 18  # measured at once; whatever its size, a batch costs hundreds of array operations


class FetchRef(NamedTuple):
    """Reference to a fetch whose search gain is measured: the page, and when it was fetched."""

    page: int
    fetched_s: float


class _TextChange(NamedTuple):
    """A text change whose search gain is credited to a fetch; ``page`` is the page that changed."""

    fetch: FetchRef
    page: FetchRef
    kind: GainKind
    before: PageWords
    after: PageWords


class GainMeter:
    """Collect text changes in the indexer, measure their search gains, and append them to the gain store.

    Without a store nothing is collected. ``changes`` counts the changes: each makes the curves a little more out of
    date.
    """

    def __init__(self, table: PageTable, store: GainStore | None) -> None:
        self._table, self._store = table, store
        self._file = CurveFile(table.folder)
        self._pending: list[_TextChange] = []
        self._before: dict[int, PageWords] = {}
        self._namers: dict[int, FetchRef] = {}
        self._words = 0
        self._gain_by_query: Floats = np.zeros(0)
        self._gain_prints: WideHashes = np.zeros(0, np.uint64)
        self._changes_since_save = 0
        self._curves: ScoringCurves | None = None
        self._scaled: ScoringCurves | None = None
        self._rng = rng_for(SEED, "indexing/views")
        self.changes = 0

    @property
    def is_idle(self) -> bool:
        """Whether search gains are not measured, since there is no store."""
        return self._store is None

    def prefetch_words(self, ids: Sequence[int]) -> None:
        """Prefetch the words of pages about to change for the gain meter; one by one takes ten times as long."""
        self._before = {} if self.is_idle else self._read_words(ids)

    def get_words(self, id_: int) -> PageWords:
        """Return the current words of an indexed page for the gain meter; each page is read once."""
        remembered = self._before.pop(id_, None)
        if remembered is not None or self.is_idle:
            return remembered or NO_WORDS
        return self._read_words([id_]).get(id_, NO_WORDS) if self._table.is_indexed(id_) else NO_WORDS

    def on_fetch(self, page: FetchRef, before: PageWords, after: PageWords, what: GainKind) -> None:
        """Record in the gain meter that a fetch changed the words of its page."""
        self._add_change(page, page, what, before, after)

    def on_new_names(self, fetch: FetchRef, targets: Sequence[int]) -> None:
        """Record that a fetch gave pages new anchor texts, by URL fingerprint; they are reindexed later.

        A page that is linked through an alias is not found again; the gain of that anchor text is not credited.
        """
        if self.is_idle or not targets:
            return
        if len(self._namers) > MAX_PENDING_NAMES:  # most of them are for pages that are not in the index
            self._namers.clear()
        self._namers.update(dict.fromkeys(targets, fetch))

    def on_renamed(self, print_: int, page: FetchRef, after: PageWords) -> None:
        """Record a reindexed page's new anchor text; its gain is credited to the page that gave it."""
        by = self._namers.pop(print_, None)
        if by is not None:
            self._add_change(by, page, "names", self.get_words(page.page), after)

    def measure(self) -> None:
        """Measure the collected changes: new versions of known pages by needy queries, first ones by all."""
        seen, self._pending, self._words = self._pending, [], 0
        curves, again = (self._file.load(), self._file.load_needy()) if seen and not self.is_idle else (None, None)
        if curves is None or again is None or self._store is None:
            return
        if curves is not self._curves:
            self._save_needs(fades=self._curves is not None)
            self._curves = curves
        if again is not self._scaled:
            self._scaled = again
            self._store.save_scale(measure_view_gain(again.curves))
        known = [each for each in seen if len(each.before[0])]
        if again is curves:
            measured = self._measure_batch(curves, seen)
            self._add_to_needs(again.curves.watched.prints, measured.by_query, len(known))
            self._append_gains(seen, measured)
            return
        if known:
            measured = self._measure_batch(again, known)
            self._add_to_needs(again.curves.watched.prints, measured.by_query, len(known))
            self._append_gains(known, measured)
        new = [each for each in seen if not len(each.before[0])]
        if new:
            self._append_gains(new, self._measure_batch(curves, new, self._file.needy))

    def _measure_batch(
        self, by: ScoringCurves, seen: Sequence[_TextChange], counts: Bools | None = None
    ) -> MeasuredGains:
        self._table.refresh()
        signals = self._table.read_signals(np.array([each.page.page for each in seen], np.int64))
        before, after = (
            concatenate_words([each.before for each in seen]),
            concatenate_words([each.after for each in seen]),
        )
        is_whole = self._rng.random(len(seen)) < VIEWS_SHARE
        is_whole |= [each.kind != "again" for each in seen]
        is_whole |= before.lengths[:, _BODY] != after.lengths[:, _BODY]
        scores = by.scorer.score_changes(before, after, signals, is_whole)
        known = np.array([len(each.before[0]) > 0 for each in seen], np.bool_)
        measured = measure_gains(by.curves, scores, ChangedPages(known, signals.importance), counts)
        return measured._replace(views=np.where(is_whole, measured.views, nan))

    def _append_gains(self, seen: Sequence[_TextChange], measured: MeasuredGains) -> None:
        assert self._store is not None, "somebody wants to know"
        columns = (column.tolist() for column in measured[:3])
        self._store.append(
            row for each, *found in zip(seen, *columns, strict=True) for row in _build_rows(each, *found)
        )

    def _add_to_needs(self, prints: WideHashes, gained: Floats, changes: int) -> None:
        """Add the gains of page changes by query to the query needs, which decide which queries are needy."""
        if prints is not self._gain_prints:
            self._save_needs()
            self._gain_prints, self._gain_by_query = prints, np.zeros(len(prints))
        self._gain_by_query += gained
        self._changes_since_save += changes
        if self._changes_since_save >= SAVE_NEEDS_EVERY:
            self._save_needs()

    def _save_needs(self, *, fades: bool = False) -> None:
        if not (self._changes_since_save or fades):
            return
        folder = self._table.folder
        needs = load_needs(folder).add_gains(self._gain_prints, self._gain_by_query, self._changes_since_save)
        with suppress(OSError):  # the generation was released, or the disk is full: it is only evidence
            save_needs(folder, needs.decay() if fades else needs)
        self._file.select_needy(needs)
        self._gain_by_query, self._changes_since_save = np.zeros(len(self._gain_prints)), 0

    def commit(self) -> None:
        """Measure the collected changes and commit their gains, for the coordinator to read."""
        self.measure()
        if self._store is not None:
            self._store.commit()

    def close(self) -> None:
        """Save the query needs, and close the gain store."""
        self._save_needs()
        if self._store is not None:
            self._store.close()

    def _read_words(self, ids: Sequence[int]) -> dict[int, PageWords]:
        """Read the words of those pages that are in the index, for the gain meter."""
        asked = np.array(ids, np.int64)
        indexed = asked[self._table.get_rows(asked)["flags"] & INDEXED > 0]
        words, lengths = self._table.read_forward(indexed)
        sizes = lengths.sum(axis=1)
        ends = np.cumsum(sizes)
        each = zip(indexed.tolist(), (ends - sizes).tolist(), ends.tolist(), map(tuple, lengths.tolist()), strict=True)
        return {id_: (words[begin:end], fields) for id_, begin, end, fields in each}

    def _add_change(self, fetch: FetchRef, page: FetchRef, what: GainKind, before: PageWords, after: PageWords) -> None:
        if self.is_idle or is_unchanged(before, after):
            return
        self._pending.append(_TextChange(fetch, page, what, before, after))
        self.changes += 1
        self._words += len(before[0]) + len(after[0])
        if self._words > MAX_WORDS:
            self.measure()


def _build_rows(seen: _TextChange, gain: float, by_links: float, views: float) -> list[Gain]:
    """Build the gain store's rows for a page itself, or for the linking page and the linked page."""
    if seen.kind != "names":
        return [Gain(0, *seen.fetch, seen.kind, gain, by_links, None if isnan(views) else views)]
    named = [] if isnan(views) else [Gain(0, *seen.page, "names", 0.0, 0.0, views)]
    return [Gain(0, *seen.fetch, "names", gain, by_links, None), *named]
