"""Query curves job: the score curves for measuring gains, computed in a background process.

python -m vedette.runtime.indexing.query_curves FOLDER CLOCK

It reads the queries of the event store and the words of all pages, and writes the curves to the generation
(``curves``), where the indexer finds them. It also runs some of the queries through search and records how many of the
first ten results are also the first ten by measurement (*overlap@10*): what is measured is what is served.

Curves need not be current. They should be computed again when the index has grown by half, when as many pages have
changed as there are, and after a day, since searches change; but each run has to be *paid*: it waits until indexing has
taken a hundred times the CPU time of the last run. So measuring gains stays a small part of indexing, however large the
index is. They are computed unpaid if there are none, if the index has grown fourfold, and after a week.
"""

import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from itertools import chain
from math import nan
from pathlib import Path
from typing import NamedTuple

import numpy as np

from vedette.adapters.clock import Clock, parse_clock
from vedette.adapters.event_store.reader import EventReader
from vedette.adapters.files.atomic import replace_file
from vedette.adapters.files.npz import UNREADABLE
from vedette.adapters.index_store.generations import Generations
from vedette.adapters.index_store.page_table import PageTable
from vedette.engine.search.answer_scores import AnswerScorer, read_query, read_words
from vedette.engine.search.needy_queries import QueryNeeds, select_needy_queries
from vedette.engine.search.search import Searcher
from vedette.index.quality.curves import ScoreCurve
from vedette.index.quality.query_curves import QueryCurveBuilder, QueryCurves
from vedette.index.quality.watched_queries import (
    FIRST_SEARCHES,
    MAX_ASKED,
    MAX_WORDS,
    Bools,
    QueryScores,
    WatchedQueries,
    build_watched,
    choose_whole,
    count_naming_words,
    weigh_words,
)
from vedette.index.query.vocabulary import Vocabulary
from vedette.learn.workload import Workload, build_workload
from vedette.policy import Floats, Ints
from vedette.runtime.processes.background import BackgroundJob, run_in_background
from vedette.runtime.search.index_snapshot import LiveIndexSnapshot
from vedette.serve.slate import SearchRequest
from vedette.text import WordHashes, hash_words

NEEDS_FILE = "needs"


def save_needs(generation: Path, needs: QueryNeeds) -> None:
    """Save the query needs beside the query curves, in one step."""
    with replace_file(generation / NEEDS_FILE) as file:
        np.savez(file, prints=needs.prints, gained=needs.gained, changes=needs.changes)


def load_needs(generation: Path) -> QueryNeeds:
    """Load the saved query needs; empty if they are missing or invalid."""
    with suppress(*UNREADABLE), np.load(generation / NEEDS_FILE, allow_pickle=False) as kept:
        needs = QueryNeeds(*(kept[name] for name in QueryNeeds._fields))
        sizes = {len(column) for column in needs}
        if len(sizes) == 1 and needs.prints.dtype == np.uint64 and all(np.isfinite(each).all() for each in needs[1:]):
            return needs
    return QueryNeeds.empty()


CURVES_FILE = "curves"
WINDOW_S = 90 * 86_400.0  # older searches count for almost nothing
PAGES_AT_ONCE = 1000
NAME_SAMPLE = 20_000  # number of pages, evenly spread, whose titles and anchor texts are read
# Reasons to compute them again: growth of the index, share of changed pages, or age.
GROWTH_FACTOR, CHANGED_SHARE, MAX_AGE_S = 1.5, 1.0, 86_400.0
# Share of the CPU time of indexing since the last run that a run may take; and when that does not apply.
CPU_SHARE = 0.01
FORCED_GROWTH, FORCED_AGE_S = 4.0, 7 * 86_400.0
CHECK_EVERY_S = 2.0
# This many times as many frequent queries are read as are watched as a whole: those whose gains weigh most.
CANDIDATES_PER_QUERY = 3
# How many of the most frequent words are looked up in the vocabulary for their other forms.
MAX_SPELLED = 2_000
MIN_WEIGHT = 1e-6  # of searches for a word besides those of whole queries
COMPARED_QUERIES, COMPARED_RESULTS = 50, 10


class CurveInfo(NamedTuple):
    """How query curves were built: number of pages, CPU time of the whole process, and their age.

    ``overlap`` is the share of served first results that are measured as such, NaN if none were compared.
    """

    pages: int
    took_s: float
    age_s: float
    overlap: float = nan


class ScoringCurves(NamedTuple):
    """Query curves, with the scorer of pages for their queries."""

    curves: QueryCurves
    scorer: AnswerScorer


class CurvesJob(BackgroundJob):
    """Background job that computes query curves when due; ``spent`` returns the CPU time of indexing so far."""

    def __init__(self, folder: Path, clock: Clock, spent: Callable[[], float] = time.process_time) -> None:
        super().__init__("vedette.runtime.indexing.query_curves")
        self._folder, self._clock, self._cpu_s = folder, clock, spent
        self._changes, self._last_cpu_s = 0, spent()
        self._next_check_s = 0.0

    def step(self, table: PageTable, changes: int, now_s: float) -> bool:
        """Start computing query curves if due, and return whether it did; ``changes`` counts text changes."""
        if changes == self._changes or now_s < self._next_check_s or not self.is_ready(now_s):
            return False
        self._next_check_s = now_s + CHECK_EVERY_S
        spent_s = self._cpu_s()
        # Another generation starts counting from 0.
        since = abs(changes - self._changes)
        is_time = is_due(read_curve_info(table.folder), len(table.indexed), since, spent_s - self._last_cpu_s)
        if is_time:
            self._changes, self._last_cpu_s = changes, spent_s
            self.start(now_s, str(self._folder), str(self._clock))
        return is_time


def is_due(made: CurveInfo | None, pages: int, changes: int, spent_s: float) -> bool:
    """Check whether query curves are due again, by pages, text changes and CPU time of indexing.

    >>> hour_old = CurveInfo(pages=1000, took_s=2.0, age_s=3600.0)
    >>> [is_due(hour_old, 1000, changes, 200.0) for changes in (900, 1100)], is_due(hour_old, 1000, 1100, 199.0)
    ([False, True], False)
    """
    if made is None or pages > FORCED_GROWTH * made.pages or made.age_s > FORCED_AGE_S:
        return True
    is_wanted = pages > GROWTH_FACTOR * made.pages or changes > CHANGED_SHARE * pages or made.age_s > MAX_AGE_S
    return is_wanted and CPU_SHARE * spent_s >= made.took_s


class CurveFile:
    """The query curves file of a generation, reloaded when replaced; ``needy`` says which queries are needy.

    All of them are until enough changes were measured. Those left out then stay out until there are new curves.
    """

    def __init__(self, generation: Path) -> None:
        self._generation, self._path = generation, generation / CURVES_FILE
        self._written_ns = 0
        self._curves: ScoringCurves | None = None
        self._needy_curves: ScoringCurves | None = None
        self.needy: Bools | None = None

    def load(self) -> ScoringCurves | None:
        """Load the latest query curves; None before there are any."""
        with suppress(*UNREADABLE):
            written_ns = self._path.stat().st_mtime_ns
            if written_ns != self._written_ns:
                self._written_ns = written_ns
                curves = _load(self._path)
                self.needy = np.ones(len(curves.watched), np.bool_)
                self._curves = self._needy_curves = ScoringCurves(curves, AnswerScorer(curves.watched))
                self.select_needy(load_needs(self._generation))
        return self._curves

    def select_needy(self, needs: QueryNeeds) -> None:
        """Select the needy queries by what was measured so far, unless some are left out already."""
        if self._curves is None or self.needy is None or not self.needy.all():
            return
        chosen = select_needy_queries(self._curves.curves, needs)
        if len(chosen) < len(self.needy):
            self.needy = np.isin(np.arange(len(self.needy)), chosen)
            some = self._curves.curves.select(chosen)
            self._needy_curves = ScoringCurves(some, AnswerScorer(some.watched))

    def load_needy(self) -> ScoringCurves | None:
        """Load the query curves of needy queries, which measure new versions of known pages."""
        self.load()
        return self._needy_curves


def read_curve_info(generation: Path) -> CurveInfo | None:
    """Read how a generation's query curves were built; None if there are none that can be read."""
    path = generation / CURVES_FILE
    with suppress(*UNREADABLE), np.load(path, allow_pickle=False) as kept:
        pages, took_s, overlap = kept["made"].tolist()
        return CurveInfo(int(pages), float(took_s), time.time() - path.stat().st_mtime, float(overlap))
    return None


def update_curves(folder: Path, generation: Path, now_s: float, began_s: float | None = None) -> None:
    """Compute the query curves from the current queries and pages, and save them in the generation.

    ``began_s`` is the CPU time at which it started, by default now.
    """
    began_s = time.process_time() if began_s is None else began_s
    shelf = LiveIndexSnapshot(generation)
    pages = len(shelf.table.indexed)
    asked = load_workload(folder, now_s)
    built = build_curves(shelf, asked, now_s)
    overlap = measure_overlap(shelf, built, now_s)
    save_curves(generation, built.curves, CurveInfo(pages, time.process_time() - began_s, 0.0, overlap))


def save_curves(generation: Path, curves: QueryCurves, about: CurveInfo) -> None:
    """Save query curves where the indexer of a generation finds them, with how they were built."""
    with replace_file(generation / CURVES_FILE) as file:
        np.savez(
            file,
            **asdict(curves.watched),
            telling=curves.idf,
            text=np.stack(curves.text),
            links=np.stack(curves.links),
            made=np.array([about.pages, about.took_s, about.overlap]),
        )


def load_workload(folder: Path, now_s: float) -> Workload:
    """Load the query workload for query curves: what users searched for here, and imported queries."""
    record = EventReader(folder)
    imported = ((at_s, words, float(times)) for words, at_s, times in record.list_imported())
    return build_workload(chain(record.iter_counts(now_s - WINDOW_S), imported))


class BuiltCurves(NamedTuple):
    """Query curves as built over all pages, with the first results of some queries by measurement."""

    curves: QueryCurves
    sample: tuple[str, ...]
    first: tuple[Ints, ...]


def watch_queries(shelf: LiveIndexSnapshot, asked: Workload, now_s: float) -> tuple[WatchedQueries, list[str]]:
    """Choose the queries to watch over an index, and return them with the texts of those watched as a whole."""
    ids, searches = shelf.table.indexed, asked.count_searches(now_s)
    named = count_naming_words(shelf.forward(ids[:: len(ids) // NAME_SAMPLE + 1]))
    terms = {term.words: term.weight for term in asked.top_terms(now_s, MAX_WORDS)}
    frequent = asked.top_queries(now_s, CANDIDATES_PER_QUERY * MAX_ASKED)
    read = [(watched, query) for query in frequent if (watched := read_query(query.words, shelf, now_s)) is not None]
    whole = [read[at] for at in choose_whole([(watched, query.weight) for watched, query in read], MAX_ASKED)]
    for _, query in whole:
        for word in set(query.words.split()):
            terms[word] = terms.get(word, 0.0) - query.weight
    shared = [(watched, query.weight / (max(searches, 0.0) + FIRST_SEARCHES)) for watched, query in whole]
    spelled = [word for word, weight in terms.items() if weight > MIN_WEIGHT]
    asked_words = dict(zip(hash_words(" ".join(spelled).encode()).tolist(), spelled, strict=True))
    numbers, shares = weigh_words({number: terms[word] for number, word in asked_words.items()}, named, searches)
    words = _spell_words(shelf.lexicon.vocabulary, numbers[np.argsort(-shares, kind="stable")[:MAX_SPELLED]])
    single = read_words(numbers, {**words, **asked_words}, shelf.get_word_forms)
    return build_watched([*shared, *zip(single, shares.tolist(), strict=True)]), [query.words for _, query in whole]


def _spell_words(vocabulary: Vocabulary, numbers: WordHashes) -> dict[int, str]:
    """Find the spelling of words by number in the vocabulary of an index."""
    every = [vocabulary.get_word(row) for row in range(len(vocabulary))]
    known = hash_words(" ".join(every).encode("utf-8", "replace"))
    if len(known) != len(every):
        return {}
    return {int(known[row]): every[row] for row in np.flatnonzero(np.isin(known, numbers)).tolist()}


def build_curves(shelf: LiveIndexSnapshot, asked: Workload, now_s: float) -> BuiltCurves:
    """Build the query curves of a workload over all pages of a generation."""
    watched, texts = watch_queries(shelf, asked, now_s)
    ids, sampled = _list_shown(shelf), np.arange(len(texts))[:: len(texts) // COMPARED_QUERIES + 1]
    gathered, scorer = QueryCurveBuilder(watched), AnswerScorer(watched)
    kept: list[tuple[Ints, Ints, Floats]] = []
    for begin in range(0, len(ids), PAGES_AT_ONCE):
        some = ids[begin : begin + PAGES_AT_ONCE]
        signals = shelf.get_signals(some)
        scores: QueryScores = scorer.score(shelf.forward(some), signals)
        gathered.add(scores, signals.importance)
        of_sample = np.flatnonzero(np.isin(scores.query, sampled))
        kept.append((scores.query[of_sample], some[scores.page[of_sample]], scores.score[of_sample]))
    first = _list_first(sampled, *(np.concatenate(each) for each in zip(*kept, strict=True))) if kept else ()
    return BuiltCurves(
        gathered.build(len(shelf.table.indexed)), tuple(texts[query] for query in sampled.tolist()), first
    )


def _list_shown(shelf: LiveIndexSnapshot) -> Ints:
    """List the pages that search can show: of copies, the canonical one."""
    ids = shelf.table.indexed
    signals = shelf.get_signals(ids)
    if signals.is_canonical is None:
        return ids
    stands = signals.group[signals.is_canonical]
    return np.asarray(ids[signals.is_canonical | ~np.isin(signals.group, stands)])


def _list_first(queries: Ints, query: Ints, page: Ints, score: Floats) -> tuple[Ints, ...]:
    """List the first ten results of queries by score."""
    order = np.lexsort((page, -score, query))
    begins = np.searchsorted(query[order], queries)
    ends = np.minimum(np.searchsorted(query[order], queries, side="right"), begins + COMPARED_RESULTS)
    return tuple(page[order[begin:end]] for begin, end in zip(begins.tolist(), ends.tolist(), strict=True))


def measure_overlap(shelf: LiveIndexSnapshot, built: BuiltCurves, now_s: float) -> float:
    """Measure overlap@10: the share of the first ten served results that are measured as such; NaN without queries.

    Results are ordered by relevance alone: click learning and randomness are left out.
    """
    searcher, shared, served = Searcher(shelf), 0, 0
    for text, first in zip(built.sample, built.first, strict=True):
        shown = {result.id for result in searcher.search(SearchRequest(text), now_s).results[:COMPARED_RESULTS]}
        shared, served = shared + len(shown.intersection(first.tolist())), served + len(shown)
    return shared / served if served else nan


def _load(path: Path) -> QueryCurves:
    with np.load(path, allow_pickle=False) as kept:
        watched = WatchedQueries(**{name: kept[name] for name in WatchedQueries.__slots__})
        return QueryCurves(watched, kept["telling"], ScoreCurve(*kept["text"]), ScoreCurve(*kept["links"]))


if __name__ == "__main__":
    with run_in_background():
        data_folder = Path(sys.argv[1])
        current = Generations(data_folder).current()
        if current is not None:
            update_curves(data_folder, current, parse_clock(sys.argv[2]).now(), began_s=0.0)
