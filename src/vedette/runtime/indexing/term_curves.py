"""Term curves job: the score curves that gains are measured with, computed in a background process.

python -m vedette.runtime.indexing.term_curves FOLDER CLOCK

It reads the queries of the event store and the words of all pages, and writes the curves to the generation
(``curves``), where the indexer finds them.

Curves need not be of this moment. There is reason to compute them again when the index has grown by half, when as many
pages have changed as there are, and after a day, since people ask for other things; but each run has to be *paid*: it
waits until indexing has taken a hundred times the processor time that the last run took. So measuring gains stays a
small part of indexing, however large the index is. Unpaid they are computed where there are none, where the index has
grown fourfold, and after a week.
"""

import sys
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np

from vedette.adapters.clock import Clock, parse_clock
from vedette.adapters.event_store.reader import EventReader
from vedette.adapters.files.atomic import replace_file
from vedette.adapters.index_store.generations import Generations
from vedette.adapters.index_store.impact_store import UNREADABLE
from vedette.adapters.index_store.page_table import PageTable
from vedette.engine.search.needy_terms import WordNeeds, select_needy_words
from vedette.errors import StoreError
from vedette.index.quality.curves import ScoreCurve
from vedette.index.quality.gains import Bools, concatenate_words
from vedette.index.quality.term_curves import TermCurveBuilder, TermCurves
from vedette.index.quality.watched_terms import (
    MAX_TRACKED,
    NO_WORDS,
    TrackedTerms,
    count_naming_terms,
    score_pages,
    select_tracked_terms,
)
from vedette.learn.workload import Workload, build_workload
from vedette.policy import Ints
from vedette.runtime.processes.background import BackgroundJob, lower_priority

NEEDS_FILE = "needs"


def save_needs(generation: Path, needs: WordNeeds) -> None:
    """Save the word needs beside the term curves, in one step."""
    with replace_file(generation / NEEDS_FILE) as file:
        np.savez(file, numbers=needs.numbers, gained=needs.gained, changes=needs.changes)


def load_needs(generation: Path) -> WordNeeds:
    """Load the saved word needs; empty where they are missing or invalid."""
    with suppress(*UNREADABLE), np.load(generation / NEEDS_FILE) as kept:
        needs = WordNeeds(*(kept[name] for name in WordNeeds._fields))
        sizes = {len(column) for column in needs}
        if len(sizes) == 1 and needs.numbers.dtype == np.uint32 and all(np.isfinite(each).all() for each in needs[1:]):
            return needs
    return WordNeeds.empty()


CURVES_FILE = "curves"
WINDOW_S = 90 * 86_400.0  # what is older counts next to nothing
PAGES_AT_ONCE = 1000
NAME_SAMPLE = 20_000  # of so many pages, evenly spread, it is read what they are called
# A reason to make them anew: the index has grown by so much, so many of its pages have changed, or so long ago.
GROWTH_FACTOR, CHANGED_SHARE, MAX_AGE_S = 1.5, 1.0, 86_400.0
# What a making may take of what indexing has taken since the last; and when it is not asked for that.
CPU_SHARE = 0.01
FORCED_GROWTH, FORCED_AGE_S = 4.0, 7 * 86_400.0
CHECK_EVERY_S = 2.0


class CurveInfo(NamedTuple):
    """How term curves were made: number of pages, CPU time of the whole process, and their age."""

    pages: int
    took_s: float
    age_s: float


class CurvesJob(BackgroundJob):
    """Background job that computes term curves when due; ``spent`` returns the CPU time of indexing so far."""

    def __init__(self, folder: Path, clock: Clock, spent: Callable[[], float] = time.process_time) -> None:
        super().__init__("vedette.runtime.indexing.term_curves")
        self._folder, self._clock, self._cpu_s = folder, clock, spent
        self._changes, self._last_cpu_s = 0, spent()
        self._next_check_s = 0.0

    def step(self, table: PageTable, changes: int, now_s: float) -> bool:
        """Start computing term curves if due, and return whether it did; ``changes`` counts text changes."""
        if changes == self._changes or now_s < self._next_check_s or not self.is_ready(now_s):
            return False
        self._next_check_s = now_s + CHECK_EVERY_S
        spent_s = self._cpu_s()
        # Whoever turns to another generation counts from 0.
        since = abs(changes - self._changes)
        is_time = is_due(read_curve_info(table.folder), len(table.indexed), since, spent_s - self._last_cpu_s)
        if is_time:
            self._changes, self._last_cpu_s = changes, spent_s
            self.start(now_s, str(self._folder), str(self._clock))
        return is_time


def is_due(made: CurveInfo | None, pages: int, changes: int, spent_s: float) -> bool:
    """Check whether term curves are due again, by pages, text changes and CPU time of indexing.

    >>> hour_old = CurveInfo(pages=1000, took_s=2.0, age_s=3600.0)
    >>> [is_due(hour_old, 1000, changes, 200.0) for changes in (900, 1100)], is_due(hour_old, 1000, 1100, 199.0)
    ([False, True], False)
    """
    if made is None or pages > FORCED_GROWTH * made.pages or made.age_s > FORCED_AGE_S:
        return True
    is_wanted = pages > GROWTH_FACTOR * made.pages or changes > CHANGED_SHARE * pages or made.age_s > MAX_AGE_S
    return is_wanted and CPU_SHARE * spent_s >= made.took_s


class CurveFile:
    """The term curves file of a generation, reloaded when replaced; ``needy`` says which words are needy."""

    def __init__(self, generation: Path) -> None:
        self._path = generation / CURVES_FILE
        self._written_ns = 0
        self._curves: TermCurves | None = None
        self._needy_curves: TermCurves | None = None
        self.needy: Bools | None = None

    def load(self) -> TermCurves | None:
        """Load the latest term curves; None before there are any."""
        with suppress(*UNREADABLE):
            written_ns = self._path.stat().st_mtime_ns
            if written_ns != self._written_ns:
                self._written_ns = written_ns
                self._curves, needy = _load(self._path)
                self.needy = np.isin(np.arange(len(self._curves.tracked)), needy)
                self._needy_curves = (
                    self._curves if self.needy.all() else self._curves.select(np.flatnonzero(self.needy))
                )
        return self._curves

    def load_needy(self) -> TermCurves | None:
        """Load the term curves of needy words, which measure new versions of known pages."""
        self.load()
        return self._needy_curves


def read_curve_info(generation: Path) -> CurveInfo | None:
    """Read how a generation's term curves were made; None where there are none that can be read."""
    path = generation / CURVES_FILE
    with suppress(*UNREADABLE), np.load(path) as kept:
        pages, took_s = kept["made"].tolist()
        return CurveInfo(int(pages), float(took_s), time.time() - path.stat().st_mtime)
    return None


def update_curves(folder: Path, generation: Path, now_s: float, began_s: float | None = None) -> None:
    """Compute the term curves from the current queries and pages, and save them in the generation.

    ``began_s`` is the processor time at which it began, by default now.
    """
    began_s = time.process_time() if began_s is None else began_s
    table = PageTable(generation)
    curves = build_curves(table, load_workload(folder, now_s), now_s)
    needy = select_needy_words(curves, load_needs(generation))
    save_curves(generation, curves, len(table.indexed), time.process_time() - began_s, needy)


def save_curves(generation: Path, curves: TermCurves, pages: int, took_s: float, needy: Ints | None = None) -> None:
    """Save term curves where the indexer of a generation finds them, with page count and time taken.

    ``needy`` are the words by which new versions of known pages are measured; without it all are.
    """
    with replace_file(generation / CURVES_FILE) as file:
        np.savez(
            file,
            numbers=curves.tracked.numbers,
            frequency=curves.tracked.frequency,
            idf=curves.idf,
            text=np.stack(curves.text),
            links=np.stack(curves.links),
            made=np.array([pages, took_s]),
            needy=np.arange(len(curves.tracked)) if needy is None else needy,
        )


def load_workload(folder: Path, now_s: float) -> Workload:
    """Load the query workload for term curves: what users searched for here, and imported queries."""
    record = EventReader(folder)
    imported = ((at_s, words, float(times)) for words, at_s, times in record.list_imported())
    return build_workload(chain(record.iter_counts(now_s - WINDOW_S), imported))


def build_curves(table: PageTable, workload: Workload, now_s: float) -> TermCurves:
    """Build the term curves of a query workload over all pages of a generation."""
    ids = table.indexed
    named = count_naming_terms(table.read_forward(ids[:: len(ids) // NAME_SAMPLE + 1]))
    asked = [(term.words, term.weight) for term in workload.top_terms(now_s, MAX_TRACKED)]
    watched = select_tracked_terms(asked, workload.count_searches(now_s), named)
    gathered = TermCurveBuilder(watched)
    for begin in range(0, len(ids), PAGES_AT_ONCE):
        some = ids[begin : begin + PAGES_AT_ONCE]
        scores = score_pages(watched, concatenate_words([NO_WORDS] * len(some)), table.read_forward(some))
        gathered.add(scores, table.read_signals(some).importance)
    return gathered.build(len(ids))


def _load(path: Path) -> tuple[TermCurves, Ints]:
    """Load the term curves, and which words are needy; all of them in files that do not say."""
    with np.load(path) as kept:
        watched = TrackedTerms(kept["numbers"], kept["frequency"])
        needy = kept["needy"] if "needy" in kept else np.arange(len(watched))
        return TermCurves(watched, kept["idf"], ScoreCurve(*kept["text"]), ScoreCurve(*kept["links"])), needy


if __name__ == "__main__":
    lower_priority()
    data_folder = Path(sys.argv[1])
    current = Generations(data_folder).current()
    with suppress(StoreError, FileNotFoundError):  # another generation took its place meanwhile
        if current is not None:
            update_curves(data_folder, current, parse_clock(sys.argv[2]).now(), began_s=0.0)
