"""What gains are measured with, made of what people ask for and of what all pages say: beside the indexer.

python -m vedette.live.term_curves FOLDER CLOCK

It reads the record of searches and the words of all pages, in a process that gives way, and keeps the outcome in the
generation (``curves``), where the indexer finds it. Curves need not be of this moment: they are made anew when the
index has grown by half, when three times as many pages have changed as there are, and after a day in any case, since
people ask for other things.
"""

import sys
import zipfile
from contextlib import suppress
from itertools import chain
from pathlib import Path

import numpy as np

from vedette.decide import Ints
from vedette.edges.clock import Clock, read_clock
from vedette.edges.generations import Generations
from vedette.edges.page_table import PageTable
from vedette.edges.record_view import RecordView
from vedette.errors import StoreError
from vedette.index.curves import Curve
from vedette.index.gains import forward_of
from vedette.index.retrieval import Forward
from vedette.index.term_curves import Gathered, TermCurves
from vedette.index.watched_terms import MOST_WATCHED, NO_WORDS, Watched, answers_of, named_terms, watched_terms
from vedette.learn.workload import Workload, learned_from
from vedette.live.aside import Aside, give_way

__all__ = ["CurveFile", "Curving", "keep_curves", "learned", "make_curves", "write_curves"]

FILE = "curves"
LEARNED_S = 90 * 86_400.0  # what is older counts next to nothing
PAGES_AT_ONCE = 1000
NAMED_PAGES = 20_000  # of so many pages, evenly spread, it is read what they are called
# Made anew when the index has grown by so much, so many times its pages have changed, or after so many seconds.
GROWN = 1.5
RENEWED_SHARE = 3.0
LATEST_S = 86_400.0
LOOK_EVERY_S = 2.0


class Curving:
    """When to make them, and the process that does."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._aside = Aside("vedette.live.term_curves")
        self._folder, self._clock = folder, clock
        self._changes = self._pages = 0
        self._look_s = 0.0

    def step(self, table: PageTable, changes: int, now_s: float) -> None:
        """Begin where it is time; ``changes`` is how often the words of a page have changed."""
        if changes == self._changes or now_s < self._look_s or not self._aside.is_free(now_s):
            return
        self._look_s = now_s + LOOK_EVERY_S
        pages = len(table.indexed)
        # Whoever turns to another generation counts from 0.
        much = abs(changes - self._changes) > RENEWED_SHARE * pages or pages > GROWN * self._pages
        if much or now_s - self._aside.began_s > LATEST_S:
            self._changes, self._pages = changes, pages
            self._aside.begin(now_s, str(self._folder), str(self._clock))

    def close(self) -> None:
        """What it was at is begun anew next time."""
        self._aside.close()


class CurveFile:
    """The curves of a generation, read again when there are others."""

    def __init__(self, generation: Path) -> None:
        self._path = generation / FILE
        self._written_ns = 0
        self._curves: TermCurves | None = None

    def curves(self) -> TermCurves | None:
        """The latest; None before there are any."""
        with suppress(FileNotFoundError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            written_ns = self._path.stat().st_mtime_ns
            if written_ns != self._written_ns:
                self._written_ns = written_ns
                self._curves = _read(self._path)
        return self._curves


def write_curves(folder: Path, generation: Path, now_s: float) -> None:
    """Make them of what there is now, and keep them in the generation."""
    keep_curves(generation, make_curves(PageTable(generation), learned(folder, now_s), now_s))


def keep_curves(generation: Path, curves: TermCurves) -> None:
    """Keep curves where the indexer of a generation finds them, in one step."""
    draft = generation / f"{FILE}.new"
    with draft.open("wb") as file:
        np.savez(
            file,
            numbers=curves.watched.numbers,
            frequency=curves.watched.frequency,
            idf=curves.idf,
            text=np.stack(curves.text),
            links=np.stack(curves.links),
        )
    draft.replace(generation / FILE)


def learned(folder: Path, now_s: float) -> Workload:
    """What people ask for, here and as was imported from elsewhere."""
    record = RecordView(folder)
    imported = ((at_s, words, float(times)) for words, at_s, times in record.imported())
    return learned_from(chain(record.counts(now_s - LEARNED_S), imported))


def make_curves(table: PageTable, workload: Workload, now_s: float) -> TermCurves:
    """The curves of what is asked for, over all pages of a generation."""
    ids = table.indexed
    named = named_terms(table.forward(ids[:: len(ids) // NAMED_PAGES + 1]))
    asked = [(term.words, term.weight) for term in workload.terms(now_s, MOST_WATCHED)]
    watched = watched_terms(asked, workload.searches(now_s), named)
    gathered = Gathered(watched)
    for begin in range(0, len(ids), PAGES_AT_ONCE):
        some = ids[begin : begin + PAGES_AT_ONCE]
        gathered.add(answers_of(watched, _nothing(some), table.forward(some)), table.signals(some).importance)
    return gathered.curves(len(ids))


def _nothing(ids: Ints) -> Forward:
    """As many pages without words."""
    return forward_of([NO_WORDS] * len(ids))


def _read(path: Path) -> TermCurves:
    with np.load(path) as kept:
        watched = Watched(kept["numbers"], kept["frequency"])
        return TermCurves(watched, kept["idf"], Curve(*kept["text"]), Curve(*kept["links"]))


if __name__ == "__main__":
    give_way()
    data_folder = Path(sys.argv[1])
    current = Generations(data_folder).current()
    with suppress(StoreError, FileNotFoundError):  # another generation took its place meanwhile
        if current is not None:
            write_curves(data_folder, current, read_clock(sys.argv[2]).now())
