"""Indexer: follow the index queue, so that fetched pages are searchable within seconds; rebuild a generation.

The state is read while the coordinator runs, which is never delayed. Durable progress is recorded in a file
(``generations``), and the coordinator drops that part of the queue.

python -m vedette.runtime.indexing.indexer FOLDER CLOCK    rebuilds the index in the background (``RebuildJob``)
"""

import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from vedette.adapters.clock import Clock, parse_clock
from vedette.adapters.crawl_store.data_folder import SHARD_FILE
from vedette.adapters.crawl_store.index_queue import IndexQueueReader
from vedette.adapters.index_store.gain_store import GainStore
from vedette.adapters.index_store.generations import Generations, find_index_damage
from vedette.adapters.index_store.indexer_store import find_store_damage
from vedette.adapters.index_store.page_table import PageTable
from vedette.errors import StoreCorrupt
from vedette.runtime.indexing.index_builder import IndexBuilder
from vedette.runtime.indexing.pagerank import compute_importance
from vedette.runtime.indexing.query_curves import update_curves
from vedette.runtime.processes.background import BackgroundJob, run_in_background
from vedette.runtime.processes.loop import print_error
from vedette.runtime.search.lexicon import read_lexicon, write_lexicon

COMMIT_EVERY_S = 1.0
MAX_NEWS = 256
MAX_PENDING = 4000
# Pages with new anchor texts are reindexed a few at a time, after new pages.
MAX_RENAMED = 64
RULES_EVERY_S = 2.0
# Steps for changes that came while a generation was built; the indexer continues from there.
MAX_FINAL_STEPS = 100
# When this much of an index is new, importance and vocabulary are computed again.
RERANK_SHARE = 0.1
# When to build a new generation automatically: this share of the text is unused, of at least this many bytes.
UNUSED_SHARE = 0.5
MIN_BYTES = 256 << 20
CHECK_EVERY_S = 60.0
# Pages whose stored text is read when a generation is opened.
CHECKED_TEXTS = 5000


class Indexer:
    """Keep an index generation up to date; search gains are measured for the current one (``gains``)."""

    def __init__(
        self,
        folder: Path,
        clock: Clock,
        generation: Path,
        earlier: PageTable | None = None,
        gains: GainStore | None = None,
    ) -> None:
        self._clock = clock
        self._reader = IndexQueueReader(folder)
        self._folder, self._is_shard = folder, (folder / SHARD_FILE).exists()
        self._committed_s = self._rules_loaded_s = 0.0
        self.builder = IndexBuilder(folder, generation, earlier, gains)
        self._seq = self.builder.store.get_progress("seq")
        self._reload_rules()

    @property
    def built_until(self) -> int:
        """The page id up to which the indexer has built a new generation; -1 if it is complete."""
        return self.builder.store.get_progress("built")

    def step(self) -> bool:
        """Index the next queued pages and commit if it is time; return whether there were any."""
        self._reload_rules_if_old()
        worked = self._build_step() or self._follow_news() or self._follow_anchors() or self._reindex_renamed()
        self._commit_if_due(idle=not worked)
        return worked

    def close(self) -> None:
        """Commit and close the indexer."""
        if self.builder.pending:
            self.builder.commit(self._seq)
        self.builder.close()

    def _build_step(self) -> bool:
        """Index the next pages of a generation that has not seen all pages yet."""
        builder, done = self.builder, self.built_until
        if done < 0:
            return False
        if not done and not builder.store.get_progress("seq"):
            self._seq = self._reader.newest_seq()
        ids = self._reader.list_page_ids(done, MAX_NEWS)
        builder.update_pages(self._reader.load_pages(ids), self._reader.load_texts(ids), ids, self._clock.now())
        builder.store.set_progress("built", ids[-1] if ids else -1)
        if not ids:
            builder.generations.mark_complete(builder.generation)
        return bool(ids)

    def _follow_news(self) -> bool:
        news, known = self._reader.read_batch(self._seq, MAX_NEWS)
        if news:
            self._reload_rules()  # a page may have been queued because a site was changed
            texts = {one.page: one.text for one in news if one.text is not None}
            self.builder.update_pages(known, texts, [one.page for one in news], self._clock.now())
            self._seq = news[-1].seq
        return bool(news)

    def _follow_anchors(self) -> bool:
        """Count the anchor texts that other shards of a cluster have sent."""
        if not self._is_shard:
            return False
        from vedette.adapters.exchange.anchor_store import read_anchors_after  # only a shard has any

        store = self.builder.store
        news = read_anchors_after(self._folder, store.get_progress("anchors"), MAX_NEWS)
        if news:
            store.set_foreign_anchors((one.target, one.text, one.times) for one in news)
            store.set_progress("anchors", news[-1].number)
            self.builder.pending += 1
        return bool(news)

    def _reindex_renamed(self) -> bool:
        return self.builder.reindex_renamed(MAX_RENAMED) > 0

    def _commit_if_due(self, *, idle: bool) -> None:
        waited_s = time.monotonic() - self._committed_s
        if self.builder.pending >= MAX_PENDING or (
            waited_s >= COMMIT_EVERY_S and (self.builder.pending or self._has_new_progress(idle=idle))
        ):
            self.builder.commit(self._seq)
            self._committed_s = time.monotonic()

    def _has_new_progress(self, *, idle: bool) -> bool:
        """Check whether the coordinator may drop more of the index queue."""
        return idle and self._seq > self.builder.store.get_progress("seq")

    def _reload_rules_if_old(self) -> None:
        if time.monotonic() - self._rules_loaded_s >= RULES_EVERY_S:
            self._reload_rules()

    def _reload_rules(self) -> None:
        self._rules_loaded_s = time.monotonic()
        self.builder.set_rules(*self._reader.load_rules())


def find_damage(generation: Path, most_texts: int = CHECKED_TEXTS) -> str:
    """Return what is wrong with the files of an index generation, by their checksums and sizes; empty if nothing is."""
    if damage := find_index_damage(generation / "tantivy"):
        return f"tantivy/{damage}"
    table = PageTable(generation)
    return table.find_damage(most_texts) or find_store_damage(generation, len(table.rows) if len(table.indexed) else 0)


def is_corruption(error: BaseException) -> bool:
    """Check whether an error of the indexer says that a file is corrupt, as opposed to a full or busy disk."""
    if isinstance(error, sqlite3.DatabaseError):
        return not isinstance(error, sqlite3.OperationalError)
    return isinstance(error, StoreCorrupt)


def open_indexer(folder: Path, clock: Clock) -> Indexer:
    """Open the indexer of the current generation; the first one serves while it is being built.

    A damaged one is put aside, and built again from state and archive.
    """
    generations = Generations(folder)
    generations.remove_old()
    generation = generations.current()
    if generation is not None and (damage := generations.read_report(generation) or find_damage(generation)):
        generation = put_aside(generations, generation, damage)
    if generation is None:
        generation = generations.begin()
        generations.activate(generation)
    try:
        return Indexer(folder, clock, generation, gains=GainStore(generations.folder))
    except (StoreCorrupt, sqlite3.DatabaseError) as error:  # of another version, say
        if not is_corruption(error):
            raise
        generation = put_aside(generations, generation, str(error))
        return Indexer(folder, clock, generation, gains=GainStore(generations.folder))


def put_aside(generations: Generations, generation: Path, damage: str) -> Path:
    """Put a damaged index generation aside, say so, and return the one that is built in its place."""
    replacement = generations.put_aside(generation, damage)
    print_error(f"the index was damaged ({damage}): it is being rebuilt from state and archive, and nothing is lost")
    return replacement


def catch_up(folder: Path, clock: Clock) -> int:
    """Index everything that is queued, and stop; return how many pages are searchable."""
    indexer = open_indexer(folder, clock)
    try:
        while indexer.step():
            pass
        pages, taken = len(indexer.builder.table.indexed), indexer.builder.processed
    finally:
        indexer.close()
    generation = indexer.builder.generation
    if taken > RERANK_SHARE * pages or read_lexicon(generation) is None:
        compute_importance(generation)
        write_lexicon(generation)
        update_curves(folder, generation, clock.now())
    return pages


def rebuild(folder: Path, clock: Clock, progress: Callable[[int, int], None]) -> int:
    """Rebuild the index as a new generation from state and archive, and switch to it; return its page count."""
    generations = Generations(folder)
    current = generations.current()
    sound = current if current and not find_damage(current) else None
    indexer = Indexer(folder, clock, generations.begin(), PageTable(sound) if sound else None)
    pages = IndexQueueReader(folder).count_pages()
    try:
        for left in _run_until_caught_up(indexer):
            progress(min(indexer.builder.processed, pages) if left else pages, pages)
        found = len(indexer.builder.table.indexed)
    finally:
        indexer.close()
    compute_importance(indexer.builder.generation)
    write_lexicon(indexer.builder.generation)
    update_curves(folder, indexer.builder.generation, clock.now())
    generations.activate(indexer.builder.generation)
    return found


def _run_until_caught_up(indexer: Indexer) -> Iterator[bool]:
    """Run the indexer until all pages are in and the queue is short; a running crawl always adds more."""
    further = MAX_FINAL_STEPS
    while indexer.step() and further:
        further -= indexer.built_until < 0
        yield indexer.built_until >= 0


class RebuildJob(BackgroundJob):
    """Background job that rebuilds the index when half of it is unused; the indexer switches as after ``reindex``."""

    def __init__(self, folder: Path, clock: Clock, least_bytes: int = MIN_BYTES) -> None:
        super().__init__("vedette.runtime.indexing.indexer")
        self._folder = folder
        self._clock = clock
        self._least_bytes = least_bytes
        self._next_check_s = 0.0

    def step(self, table: PageTable, now_s: float) -> None:
        """Start the index rebuild in the background if it is due."""
        if now_s < self._next_check_s or not self.is_ready(now_s):
            return
        self._next_check_s = now_s + CHECK_EVERY_S
        text = table.folder / "text"
        if text.exists() and text.stat().st_size >= self._least_bytes and table.unused_share() > UNUSED_SHARE:
            self.start(now_s, str(self._folder), str(self._clock))


if __name__ == "__main__":
    with run_in_background():
        rebuild(Path(sys.argv[1]), parse_clock(sys.argv[2]), lambda _done, _pages: None)
