"""Impact pass: estimate what first fetches of unseen URLs would bring to search, for the coordinator.

python -m vedette.runtime.indexing.impact FOLDER CLOCK

A background process learns (``frontier.impact``) from queries, the index, anchor texts of unseen URLs, and what fetched
pages bring; it scores every unseen URL and writes a number for each (``index_store.impact_store``). Before people have
searched, and before enough pages are in the index, there is nothing to learn, and unseen URLs come breadth first.

Each pass has to be *paid*: it waits until indexing has taken twenty times the processor time that the last one took, or
the index has grown by half; and something must have changed. Where there was nothing to learn yet it checks again after
a minute.
"""

import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from vedette.adapters.clock import Clock, parse_clock
from vedette.adapters.crawl_store.url_list import UrlFacts, list_fetched, list_unfetched, load_url_facts
from vedette.adapters.index_store.gain_store import read_gains_since, read_newest_seq
from vedette.adapters.index_store.generations import Generations
from vedette.adapters.index_store.impact_store import (
    StoredSketches,
    average_places,
    delete_estimates,
    read_info,
    read_sketches,
    write_estimates,
    write_info,
    write_sketches,
)
from vedette.adapters.index_store.page_table import INDEXED, PageTable
from vedette.adapters.index_store.tantivy_index import open_reader
from vedette.engine.search.answer_scores import QueryScorer
from vedette.errors import StoreError
from vedette.frontier.impact.estimator import ImpactModel, ImpactSettings, TermGains, create_model
from vedette.frontier.impact.estimator import train_model as taught
from vedette.frontier.impact.extra_trees import fit_forest
from vedette.frontier.impact.matching import QuerySet
from vedette.frontier.impact.scorer import MIN_ROWS
from vedette.frontier.impact.sketches import Sketches
from vedette.frontier.impact.url_features import TrainingPages
from vedette.index.quality.gains import estimate_term_gains, measure_current_gains
from vedette.index.quality.term_curves import TermCurves
from vedette.index.quality.watched_terms import MAX_TRACKED
from vedette.learn.workload import Workload
from vedette.policy import Floats, Ints
from vedette.runtime.indexing.impact_inputs import (
    LinkStats,
    build_finder,
    compute_link_stats,
    describe_urls,
    encode_queries,
    fingerprint_urls,
    needy_queries,
    update_sketches,
)
from vedette.runtime.indexing.term_curves import CurveFile, build_curves, load_workload
from vedette.runtime.processes.background import BackgroundJob, lower_priority
from vedette.text import hash_words

MAX_TRAINING_PAGES = 20_000  # pages, the latest that were found
MAX_CHANGED = 50_000  # pages whose change is followed in one making
URLS_AT_ONCE, PAGES_AT_ONCE = 10_000, 1000
MAX_REPORTED_QUERIES = 1_000  # needy queries that are named to people
# A making is paid by so much of what indexing has taken since the last; unpaid where the index has grown by so much.
CPU_SHARE = 0.05
GROWTH_FACTOR, MAX_AGE_S, EMPTY_RETRY_S = 1.5, 3600.0, 60.0
CHECK_EVERY_S = 2.0
REST_FACTOR = 5.0  # it is paid for otherwise, so it need not rest for long
MAX_SHIFT = 0.2  # so far what people ask for may be from what curves were made of
SEED = 1
GOOD_SCORE = 0.85  # the score of a page for a word by which it is called


class ImpactJob(BackgroundJob):
    """Background job that runs impact passes when due; ``spent`` returns the CPU time of indexing so far."""

    def __init__(
        self, folder: Path, clock: Clock, *, is_on: bool, spent: Callable[[], float] = time.process_time
    ) -> None:
        super().__init__("vedette.runtime.indexing.impact", REST_FACTOR)
        self._folder, self._clock, self._is_on, self._cpu_s = folder, clock, is_on, spent
        self._changes, self._last_cpu_s, self._next_check_s = -1, spent(), 0.0

    def step(self, table: PageTable, changes: int, now_s: float) -> bool:
        """Start an impact pass if one is due, and return whether it did; ``changes`` counts text changes."""
        if not self._is_on or now_s < self._next_check_s or not self.is_ready(now_s):
            return False
        self._next_check_s = now_s + CHECK_EVERY_S
        told, spent_s = read_info(table.folder.parent), self._cpu_s()
        is_time = is_due(told, len(table.indexed), spent_s - self._last_cpu_s, has_changed=changes != self._changes)
        if is_time:
            self._changes, self._last_cpu_s = changes, spent_s
            self.start(now_s, str(self._folder), str(self._clock))
        return is_time


def is_due(told: Mapping[str, Any] | None, pages: int, spent_s: float, *, has_changed: bool) -> bool:
    """Check whether an impact pass is due, for an index of this size after this much CPU time of indexing.

    >>> told = {"made_s": time.time() - 70, "took_s": 2.0, "pages": 1000, "weighed": 50}
    >>> [is_due(told, 1100, spent_s, has_changed=True) for spent_s in (39.0, 40.0)]
    [False, True]
    >>> is_due(told, 1600, 0.0, has_changed=True), is_due({**told, "weighed": 0}, 1000, 0.0, has_changed=False)
    (True, True)
    """
    if pages < MIN_ROWS:
        return False
    try:
        made_s, took_s, before, weighed = (float((told or {})[key]) for key in ("made_s", "took_s", "pages", "weighed"))
    except (KeyError, TypeError, ValueError):
        return True
    age_s = time.time() - made_s
    if not weighed:
        return age_s > EMPTY_RETRY_S or age_s < 0
    is_paid = CPU_SHARE * spent_s >= took_s or pages > GROWTH_FACTOR * before or age_s > MAX_AGE_S
    return is_paid and has_changed


def measure_shift(curves: TermCurves, asked: Workload, now_s: float) -> float:
    """Measure how far queries have shifted since term curves were made: 0 the same, 1 nothing in common."""
    terms = asked.top_terms(now_s, MAX_TRACKED)
    numbers = hash_words(" ".join(term.words for term in terms).encode("utf-8", "replace"))
    now = np.array([term.weight for term in terms], np.float64)
    known = curves.tracked.numbers
    if len(numbers) != len(now) or not len(now) or not len(known):
        return 1.0
    at = np.minimum(np.searchsorted(known, numbers), len(known) - 1)
    then = np.where(known[at] == numbers, curves.tracked.frequency[at], 0.0)
    return float(np.abs(now / now.sum() - then / max(float(then.sum()), 1e-9)).sum()) / 2


class _Queries(NamedTuple):
    """Queries of an impact pass: all queries, the needy ones, and their sketches."""

    texts: list[str]
    wanted: QuerySet
    sketches: Sketches
    total: int


def run_impact_pass(folder: Path, now_s: float, began_s: float | None = None) -> int:
    """Run an impact pass: learn from fetched pages, and estimate all unseen URLs; return how many.

    ``began_s`` is the processor time at which it began, by default now.
    """
    began_s = time.process_time() if began_s is None else began_s
    generation = Generations(folder).current()
    if generation is None:
        return 0
    table, index = PageTable(generation), generation.parent
    made = _ImpactPass(folder, generation, table)
    why, told = made.run(now_s)
    if why:
        delete_estimates(index)
    about = {"made_s": time.time(), "took_s": time.process_time() - began_s, "pages": len(table.indexed), "why": why}
    write_info(index, {**about, **told})
    return int(told["weighed"])


class _ImpactPass:
    """One impact pass, over an index generation and the crawl state beside it."""

    def __init__(self, folder: Path, generation: Path, table: PageTable) -> None:
        self._folder, self._generation, self._table = folder, generation, table
        self._index = generation.parent

    def run(self, now_s: float) -> tuple[str, dict[str, Any]]:
        """Run the impact pass; return why nothing was estimated, if so, and the info to store."""
        asked = load_workload(self._folder, now_s)
        if not len(asked) or len(self._table.indexed) < MIN_ROWS:
            why = "nobody has searched yet" if not len(asked) else "too few pages are in the index yet"
            return why, {"weighed": 0}
        curves = self._load_curves(asked, now_s)
        queries = self._load_queries(asked, curves, now_s)
        gains = self._measure_gains(curves)
        if queries is None or not gains:
            return "too few pages were fetched and measured yet", {"weighed": 0}
        known, ids = self._load_links(gains)
        knows = self._fit_model(queries, known, gains, curves)
        weighed = self._estimate_unseen(knows, known, ids)
        needy = zip(
            queries.texts, queries.wanted.frequency.tolist(), queries.sketches.get_thresholds().tolist(), strict=True
        )
        told = {"weighed": weighed, "learned": len(gains), "queries": queries.total}
        return "", {**told, "needy": sorted(needy, key=lambda one: -one[1])[:MAX_REPORTED_QUERIES]}

    def _load_curves(self, asked: Workload, now_s: float) -> TermCurves:
        """Load the term curves for the impact pass; compute them if missing, or if queries have shifted."""
        curves = CurveFile(self._generation).load()
        is_old = curves is None or measure_shift(curves, asked, now_s) > MAX_SHIFT
        return build_curves(self._table, asked, now_s) if curves is None or is_old else curves

    def _load_queries(self, asked: Workload, curves: TermCurves, now_s: float) -> _Queries | None:
        """Load the queries of users for the impact pass, and update and save their sketches."""
        texts, wanted = encode_queries(*asked.to_arrays(now_s), curves, len(self._table.indexed))
        if not texts:
            return None
        kept = self._update_sketches(texts, wanted)
        write_sketches(self._generation, kept)
        some = needy_queries(kept, wanted)
        sketches = kept.sketches.select(some)
        return _Queries([texts[query] for query in some.tolist()], wanted.select(some), sketches, len(texts))

    def _update_sketches(self, texts: list[str], wanted: QuerySet) -> StoredSketches:
        kept = read_sketches(self._generation)
        rows = read_gains_since(self._index, kept.seq, MAX_CHANGED) if kept is not None else []
        if kept is not None and rows and rows[0].seq != kept.seq + 1:
            kept, rows = None, []  # some of what changed is told no more: all are asked again
        seq = rows[-1].seq if rows else kept.seq if kept is not None else read_newest_seq(self._index)
        changed = np.unique(np.array([row.page for row in rows], np.int64))
        ask = build_finder(open_reader(self._generation / "tantivy"))
        return update_sketches(kept, texts, wanted, self._table, changed, seq, ask)

    def _measure_gains(self, curves: TermCurves) -> dict[int, float]:
        """Measure what first fetches of the latest pages would bring now; unindexed fetches bring nothing.

        Gains measured when each page was fetched would not do: people search for other things by now, and other pages
        have come.
        """
        fetched = np.sort(
            np.array(
                list_fetched(self._folder, Generations(self._folder).min_indexed_seq() or 0, MAX_TRAINING_PAGES),
                np.int64,
            )
        )
        gains = np.zeros(len(fetched))
        there = np.flatnonzero(self._table.get_rows(fetched)["flags"] & INDEXED > 0)
        for begin in range(0, len(there), PAGES_AT_ONCE):
            some = there[begin : begin + PAGES_AT_ONCE]
            gains[some] = np.maximum(measure_current_gains(curves, self._table.read_forward(fetched[some])), 0.0)
        return dict(zip(fetched.tolist(), gains.tolist(), strict=True)) if len(there) >= MIN_ROWS else {}

    def _load_links(self, gains: dict[int, float]) -> tuple[LinkStats, list[int]]:
        """Load link statistics for the impact pass, and the ids at which batches of unseen URLs begin."""
        prints = [fingerprint_urls(load_url_facts(self._folder, list(gains)))]
        begins = [0]
        while urls := list_unfetched(self._folder, begins[-1], URLS_AT_ONCE):
            prints.append(fingerprint_urls(urls))
            begins.append(urls[-1].id)
        return compute_link_stats(self._table, np.concatenate(prints)), begins[:-1]

    def _fit_model(
        self, queries: _Queries, known: LinkStats, gains: dict[int, float], curves: TermCurves
    ) -> ImpactModel:
        urls = load_url_facts(self._folder, list(gains))
        batch = describe_urls(urls, fingerprint_urls(urls), known, self._generation)
        page = np.array([one.id for one in urls], np.int64)
        columns: dict[str, Any] = {column.name: getattr(batch, column.name) for column in fields(batch)}
        gain = np.array([gains[one.id] for one in urls], np.float64)
        row, query, score = self._match_pages(queries, page)
        brought = self._taught = TrainingPages(
            **columns, page=page, gain=gain, found_row=row, found_query=query, found_score=score
        )
        terms = TermGains(curves.tracked.numbers.astype(np.int64), estimate_term_gains(curves, GOOD_SCORE))
        return taught(create_model(ImpactSettings(queries.wanted, fit_forest, SEED, terms)), brought, queries.sketches)

    def _match_pages(self, queries: _Queries, pages: Ints) -> tuple[Ints, Ints, Floats]:
        """Match pages with needy queries in the impact pass: which answers which, and how well."""
        answering, found = QueryScorer(queries.wanted), []
        for begin in range(0, len(pages), PAGES_AT_ONCE):
            some = pages[begin : begin + PAGES_AT_ONCE]
            there = np.flatnonzero(self._table.get_rows(some)["flags"] & INDEXED > 0)
            answered = answering.score(self._table.read_forward(some[there]))
            found.append((begin + there[answered.row], answered.query, answered.score))
        row, query, score = (np.concatenate(each) for each in zip(*found, strict=True))
        return row, query, score

    def _estimate_unseen(self, knows: ImpactModel, known: LinkStats, begins: list[int]) -> int:
        ids: list[Ints] = []
        columns: list[tuple[Ints, Ints, Floats]] = []
        alone: list[Floats] = []
        for begin in begins:
            urls: list[UrlFacts] = list_unfetched(self._folder, begin, URLS_AT_ONCE)
            batch = describe_urls(urls, fingerprint_urls(urls), known, self._generation)
            ids.append(batch.found)
            columns.append((batch.folder, batch.branch, knows.estimate_gain(batch)))
            alone.append(knows.estimate_by_importance(batch))
        unseen = np.concatenate([worth for _, _, worth in columns]) if columns else np.zeros(0)
        columns.append((self._taught.folder, self._taught.branch, self._taught.gain))
        folder, branch, every = (np.concatenate(each) for each in zip(*columns, strict=True))
        count = int(max((each.max() for each in ids if len(each)), default=0)) + 1
        expected, by_links = np.full((2, count), np.nan, np.float32)
        if ids:
            expected[np.concatenate(ids)], by_links[np.concatenate(ids)] = unseen, np.concatenate(alone)
        write_estimates(self._index, expected, average_places(folder, branch, every, unseen), by_links)
        return len(unseen)


if __name__ == "__main__":
    lower_priority()
    with suppress(StoreError, FileNotFoundError):  # another generation took its place meanwhile
        run_impact_pass(Path(sys.argv[1]), parse_clock(sys.argv[2]).now(), began_s=0.0)
