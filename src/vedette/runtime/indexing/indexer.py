"""Following the state's news, so that what was fetched can be found within seconds; and building a generation anew.

The state is read beside the keeper, which is never delayed. What was made durable is said in a file (``generations``),
and the keeper drops that news.
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

from vedette.adapters.clock import Clock
from vedette.adapters.crawl_store.change_feed import NewsView
from vedette.adapters.index_store.gain_store import GainBook
from vedette.adapters.index_store.generations import Generations
from vedette.adapters.index_store.page_table import PageTable
from vedette.runtime.indexing.index_builder import Builder
from vedette.runtime.indexing.pagerank import rank
from vedette.runtime.indexing.term_curves import write_curves
from vedette.runtime.search.lexicon import FILE as LEXICON
from vedette.runtime.search.lexicon import write_lexicon

__all__ = ["Indexer", "catch_up", "open_indexer", "rebuild"]

COMMIT_EVERY_S = 1.0
MOST_NEWS = 256
MOST_PENDING = 4000
# Pages that are called something new are indexed anew a few at a time, behind what is new itself.
MOST_RENAMED = 64
SITES_EVERY_S = 2.0
# Steps with news that came while a generation was built; whoever serves it goes on from there.
MOST_FURTHER = 100
# When so much of an index is new, importance and vocabulary are worked out anew.
MUCH = 0.1


class Indexer:
    """Keeps a generation up to date; what fetches bring is measured for the one that serves (``gains``)."""

    def __init__(
        self,
        folder: Path,
        clock: Clock,
        generation: Path,
        earlier: PageTable | None = None,
        gains: GainBook | None = None,
    ) -> None:
        self._clock = clock
        self._view = NewsView(folder)
        self._committed_s = self._ruled_s = 0.0
        self.builder = Builder(folder, generation, earlier, gains)
        self._seq = self.builder.book.progress("seq")
        self._rule()

    @property
    def built(self) -> int:
        """The page up to which all pages were seen; -1 where all were."""
        return self.builder.book.progress("built")

    def step(self) -> bool:
        """Take what is next, commit where it is time; whether there was anything."""
        self._rule_again()
        worked = self._build() or self._follow() or self._rename()
        self._commit_in_time(idle=not worked)
        return worked

    def close(self) -> None:
        """What was taken is made durable."""
        if self.builder.pending:
            self.builder.commit(self._seq)
        self.builder.close()

    def _build(self) -> bool:
        """A generation that has not seen all pages yet sees the next ones."""
        builder, done = self.builder, self.built
        if done < 0:
            return False
        if not done and not builder.book.progress("seq"):
            self._seq = self._view.newest_seq()
        ids = self._view.pages(done, MOST_NEWS)
        builder.take(self._view.known(ids), self._view.texts(ids), ids, self._clock.now())
        builder.book.set_progress("built", ids[-1] if ids else -1)
        if not ids:
            builder.generations.complete(builder.generation)
        return bool(ids)

    def _follow(self) -> bool:
        news, known = self._view.read(self._seq, MOST_NEWS)
        if news:
            self._rule()  # what is judged anew may be so because a site was set anew
            texts = {one.page: one.text for one in news if one.text is not None}
            self.builder.take(known, texts, [one.page for one in news], self._clock.now())
            self._seq = news[-1].seq
        return bool(news)

    def _rename(self) -> bool:
        return self.builder.rename(MOST_RENAMED) > 0

    def _commit_in_time(self, *, idle: bool) -> None:
        waited_s = time.monotonic() - self._committed_s
        if self.builder.pending >= MOST_PENDING or (
            waited_s >= COMMIT_EVERY_S and (self.builder.pending or self._is_news(idle=idle))
        ):
            self.builder.commit(self._seq)
            self._committed_s = time.monotonic()

    def _is_news(self, *, idle: bool) -> bool:
        """Whether news was passed over that the keeper may drop."""
        return idle and self._seq > self.builder.book.progress("seq")

    def _rule_again(self) -> None:
        if time.monotonic() - self._ruled_s >= SITES_EVERY_S:
            self._rule()

    def _rule(self) -> None:
        self._ruled_s = time.monotonic()
        self.builder.ruled(*self._view.rules())


def open_indexer(folder: Path, clock: Clock) -> Indexer:
    """For the generation that serves; the first one serves from the start, while it is being built."""
    generations = Generations(folder)
    generations.clear()
    generation = generations.current()
    if generation is None:
        generation = generations.begin()
        generations.turn_to(generation)
    return Indexer(folder, clock, generation, gains=GainBook(generations.folder))


def catch_up(folder: Path, clock: Clock) -> int:
    """Take all news there is, and end; how many pages can be found."""
    indexer = open_indexer(folder, clock)
    try:
        while indexer.step():
            pass
        pages, taken = len(indexer.builder.table.indexed), indexer.builder.taken
    finally:
        indexer.close()
    generation = indexer.builder.generation
    if taken > MUCH * pages or not (generation / LEXICON).exists():
        rank(generation)
        write_lexicon(generation)
        write_curves(folder, generation, clock.now())
    return pages


def rebuild(folder: Path, clock: Clock, progress: Callable[[int, int], None]) -> int:
    """Build a new generation from state and archive while the old one serves, and turn to it; how many pages it has."""
    generations = Generations(folder)
    current = generations.current()
    indexer = Indexer(folder, clock, generations.begin(), PageTable(current) if current else None)
    pages = NewsView(folder).count()
    try:
        for left in _until_caught_up(indexer):
            progress(min(indexer.builder.taken, pages) if left else pages, pages)
        found = len(indexer.builder.table.indexed)
    finally:
        indexer.close()
    rank(indexer.builder.generation)
    write_lexicon(indexer.builder.generation)
    write_curves(folder, indexer.builder.generation, clock.now())
    generations.turn_to(indexer.builder.generation)
    return found


def _until_caught_up(indexer: Indexer) -> Iterator[bool]:
    """Steps until all pages are in and the news is few; a crawl that goes on brings more for ever."""
    further = MOST_FURTHER
    while indexer.step() and further:
        further -= indexer.built < 0
        yield indexer.built >= 0
