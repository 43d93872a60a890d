"""Impact pass: estimate the search gain of first fetches of unseen URLs, for the coordinator.

python -m vedette.runtime.indexing.impact FOLDER CLOCK

A background process learns (``frontier.impact``) from queries, the index, anchor texts of unseen URLs, and the current
gains of fetched pages, by the score of search; it estimates every unseen URL and writes a number for each
(``adapters.index_store.impact_store``). Before people have searched, and before enough pages are in the index, there is
nothing to learn, and unseen URLs are in breadth-first order. Fetched pages are described as if they had not been
fetched, as far as possible: by anchor texts and by the links of other pages.

Each pass has to be *paid*: it waits until indexing has taken twenty times the CPU time of the last pass, or the index
has grown by half; and something must have changed. If there was nothing to learn yet it checks again after a minute.
"""

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from vedette.adapters.clock import Clock, parse_clock
from vedette.adapters.crawl_store.url_list import UrlFacts, list_fetched, list_unfetched, load_url_facts
from vedette.adapters.index_store.generations import Generations
from vedette.adapters.index_store.impact_store import (
    average_places,
    delete_estimates,
    read_info,
    write_estimates,
    write_info,
)
from vedette.adapters.index_store.indexer_store import follow_aliases, read_anchors
from vedette.adapters.index_store.page_table import INDEXED, PageTable
from vedette.engine.search.answer_scores import AnswerScorer
from vedette.engine.search.needy_queries import build_impact_settings, build_training
from vedette.frontier.impact.estimator import ImpactModel
from vedette.frontier.impact.scorer import MIN_ROWS
from vedette.frontier.impact.url_features import DescribedUrls, hash_folders, tokenize_texts
from vedette.frontier.policies.impact import Impact
from vedette.index.pagerank import page_importance
from vedette.index.quality.gains import measure_current_gains
from vedette.index.quality.query_curves import QueryCurves
from vedette.index.quality.watched_queries import MAX_WORDS, QueryScores, WatchedQueries
from vedette.learn.workload import Workload
from vedette.model import fingerprint
from vedette.policy import Floats, Ints, rng_for
from vedette.runtime.indexing.query_curves import CurveFile, ScoringCurves, build_curves, load_workload
from vedette.runtime.processes.background import BackgroundJob, run_in_background
from vedette.runtime.search.index_snapshot import LiveIndexSnapshot
from vedette.text import WordHashes, hash_words

MAX_NAMES = 8  # of one URL
MIN_RANK = 1e-9


class LinkStats(NamedTuple):
    """Link statistics for the impact pass: in-links from indexed pages and importance, by URL fingerprint."""

    prints: Ints
    inlinks: Ints
    importance: Floats

    def get(self, prints: Ints) -> tuple[Ints, Floats]:
        """Look up in-links and importance of URLs by fingerprint; the minimum if nothing links to a URL."""
        if not len(self.prints):
            return np.zeros(len(prints), np.int64), np.zeros(len(prints))
        at = np.minimum(np.searchsorted(self.prints, prints), len(self.prints) - 1)
        known = self.prints[at] == prints
        least = float(self.importance.min())
        return np.where(known, self.inlinks[at], 0), np.where(known, self.importance[at], least)


def fingerprint_urls(urls: Sequence[UrlFacts]) -> Ints:
    """Compute the fingerprints of URLs for the impact pass."""
    return np.array([fingerprint(one.url) for one in urls], np.int64)


def compute_link_stats(table: PageTable, prints: Ints) -> LinkStats:
    """Compute link statistics and PageRank over indexed pages and unseen URLs, for the impact pass.

    Importance is its logarithm, relative to the mean: a page linked from everywhere has a thousand times the usual
    value.
    """
    ids = table.indexed
    own = table.rows["print"][ids]
    nodes = np.unique(np.concatenate((own, prints)))
    links = [np.unique(table.read_links(id_)) for id_ in ids.tolist()]
    source = np.repeat(np.searchsorted(nodes, own), [len(each) for each in links])
    target_prints = follow_aliases(table.folder, np.concatenate(links) if links else np.zeros(0, np.int64))
    if not len(nodes):
        return LinkStats(nodes, np.zeros(0, np.int64), np.zeros(0))
    target = np.minimum(np.searchsorted(nodes, target_prints), len(nodes) - 1)
    known = (nodes[target] == target_prints) & (source != target)
    source, target = source[known], target[known]
    ranks = page_importance(source, target, len(nodes))
    importance = np.log(np.maximum(ranks * len(nodes), MIN_RANK))
    return LinkStats(nodes, np.bincount(target, minlength=len(nodes)), importance)


def describe_urls(urls: Sequence[UrlFacts], prints: Ints, known: LinkStats, generation: Path) -> DescribedUrls:
    """Build the feature rows of URLs for the impact pass: everything known before they are fetched."""
    texts = [one.url for one in urls]
    folder, branch = hash_folders(texts)
    inlinks, importance = known.get(prints)
    return DescribedUrls(
        depth=np.array([one.depth for one in urls], np.int64),
        found=np.array([one.id for one in urls], np.int64),
        inlinks=inlinks,
        importance=importance,
        folder=folder,
        branch=branch,
        texts=tokenize_texts(texts, read_anchors(generation, prints.tolist(), MAX_NAMES)),
    )


MAX_TRAINING_PAGES = 20_000  # pages, the latest that were found
URLS_AT_ONCE, PAGES_AT_ONCE = 10_000, 1000
MAX_REPORTED_QUERIES = 1_000  # the most frequent, which are shown to people
# Share of the CPU time of indexing since the last pass that a pass may take; without that if the index has grown by
# this much.
CPU_SHARE = 0.05
GROWTH_FACTOR, MAX_AGE_S, EMPTY_RETRY_S = 1.5, 3600.0, 60.0
CHECK_EVERY_S = 2.0
REST_FACTOR = 5.0  # it is paid for otherwise, so a short pause is enough
MAX_SHIFT = 0.2  # how far searches may shift from those the curves were built from
SEED = 1
POLICY = Impact()  # the lab's, of this name


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


def measure_shift(curves: QueryCurves, asked: Workload, now_s: float) -> float:
    """Measure how far searches have shifted since curves were built, by their words: 0 the same, 1 all different."""
    terms = asked.top_terms(now_s, MAX_WORDS)
    numbers = hash_words(" ".join(term.words for term in terms).encode("utf-8", "replace"))
    now = np.array([term.weight for term in terms], np.float64)
    known, shares = _sum_by_word(curves.watched)
    if len(numbers) != len(now) or not len(now) or not len(known):
        return 1.0
    at = np.minimum(np.searchsorted(known, numbers), len(known) - 1)
    then = np.where(known[at] == numbers, shares[at], 0.0)
    return float(np.abs(now / now.sum() - then / max(float(then.sum()), 1e-9)).sum()) / 2


def _sum_by_word(watched: WatchedQueries) -> tuple[WordHashes, Floats]:
    """Sum the shares of searches by word, without other forms."""
    first = np.append(True, np.diff(watched.slot) > 0)[: len(watched.slot)]
    shares = np.repeat(watched.frequency, np.diff(watched.start))
    numbers, at = np.unique(watched.words[first], return_inverse=True)
    return numbers, np.bincount(at, shares, len(numbers)).astype(np.float64)


def run_impact_pass(folder: Path, now_s: float, began_s: float | None = None) -> int:
    """Run an impact pass: learn from fetched pages, and estimate all unseen URLs; return how many.

    ``began_s`` is the CPU time at which it started, by default now.
    """
    began_s = time.process_time() if began_s is None else began_s
    generation = Generations(folder).current()
    if generation is None:
        return 0
    shelf, index = LiveIndexSnapshot(generation), generation.parent
    pages = len(shelf.table.indexed)  # that it learns from; more may come while it runs
    why, told = _ImpactPass(folder, shelf).run(now_s)
    if why:
        delete_estimates(index)
    about = {"made_s": time.time(), "took_s": time.process_time() - began_s, "pages": pages, "why": why}
    write_info(index, {**about, **told})
    return int(told["weighed"])


class _Fetched(NamedTuple):
    """Fetched pages by ascending id, the current gain of each, and their scores for queries of several words."""

    ids: Ints
    gain: Floats
    scores: QueryScores


class _ImpactPass:
    """One impact pass, over an index generation and the crawl state."""

    def __init__(self, folder: Path, shelf: LiveIndexSnapshot) -> None:
        self._folder, self._shelf, self._table = folder, shelf, shelf.table
        self._generation, self._index = shelf.generation, shelf.generation.parent

    def run(self, now_s: float) -> tuple[str, dict[str, Any]]:
        """Run the impact pass; return why nothing was estimated, if so, and the info to store."""
        asked = load_workload(self._folder, now_s)
        if not len(asked) or len(self._table.indexed) < MIN_ROWS:
            why = "no one has searched yet" if not len(asked) else "too few pages are in the index yet"
            return why, {"weighed": 0}
        by = self._load_curves(asked, now_s)
        fetched = self._measure_gains(by)
        if fetched is None:
            return "too few pages were fetched and measured yet", {"weighed": 0}
        known, ids = self._load_links(fetched.ids)
        weighed = self._estimate_unseen(self._fit_model(known, fetched, by.curves, now_s), known, ids, now_s)
        frequent = [(query.words, query.share) for query in asked.top_queries(now_s, MAX_REPORTED_QUERIES)]
        return "", {"weighed": weighed, "learned": len(fetched.ids), "queries": len(asked), "frequent": frequent}

    def _load_curves(self, asked: Workload, now_s: float) -> ScoringCurves:
        """Load the query curves for the impact pass; compute them if missing, or if queries have shifted."""
        by = CurveFile(self._generation).load()
        if by is not None and measure_shift(by.curves, asked, now_s) <= MAX_SHIFT:
            return by
        curves = build_curves(self._shelf, asked, now_s).curves
        return ScoringCurves(curves, AnswerScorer(curves.watched))

    def _measure_gains(self, by: ScoringCurves) -> _Fetched | None:
        """Measure the current gain of first fetches of the latest pages; unindexed fetches have none.

        Gains measured when each page was fetched would not do: people now search for other things, and other pages have
        come. None if too few pages are in the index.
        """
        latest = list_fetched(self._folder, Generations(self._folder).min_indexed_seq() or 0, MAX_TRAINING_PAGES)
        fetched = np.sort(np.array(latest, np.int64))
        gains = np.zeros(len(fetched))
        there = np.flatnonzero(self._table.get_rows(fetched)["flags"] & INDEXED > 0)
        if len(there) < MIN_ROWS:
            return None
        is_whole, found = np.diff(by.curves.watched.start) > 1, list[QueryScores]()
        for begin in range(0, len(there), PAGES_AT_ONCE):
            some = there[begin : begin + PAGES_AT_ONCE]
            ids = fetched[some]
            scores = by.scorer.score(self._table.read_forward(ids), self._table.read_signals(ids))
            gains[some] = np.maximum(measure_current_gains(by.curves, scores, len(some)), 0.0)
            kept = np.flatnonzero(is_whole[scores.query])
            found.append(QueryScores(some[scores.page[kept]], scores.query[kept], scores.score[kept]))
        every = QueryScores(*(np.concatenate(each) for each in zip(*found, strict=True)))
        return _Fetched(fetched, gains, every)

    def _load_links(self, fetched: Ints) -> tuple[LinkStats, list[int]]:
        """Load link statistics for the impact pass, and the ids at which batches of unseen URLs begin."""
        prints = [fingerprint_urls(load_url_facts(self._folder, fetched.tolist()))]
        begins = [0]
        while urls := list_unfetched(self._folder, begins[-1], URLS_AT_ONCE):
            prints.append(fingerprint_urls(urls))
            begins.append(urls[-1].id)
        return compute_link_stats(self._table, np.concatenate(prints)), begins[:-1]

    def _fit_model(self, known: LinkStats, fetched: _Fetched, curves: QueryCurves, now_s: float) -> ImpactModel:
        urls = load_url_facts(self._folder, fetched.ids.tolist())
        batch = describe_urls(urls, fingerprint_urls(urls), known, self._generation)
        page = np.array([one.id for one in urls], np.int64)
        at = np.searchsorted(fetched.ids, page)
        row = np.full(len(fetched.ids), -1, np.int64)
        row[at] = np.arange(len(page))
        scores = fetched.scores._replace(page=row[fetched.scores.page])
        is_told = scores.page >= 0
        scores = QueryScores(scores.page[is_told], scores.query[is_told], scores.score[is_told])
        self._taught = build_training(batch, page, fetched.gain[at], scores, curves.watched)
        return POLICY.observe(POLICY.start(build_impact_settings(curves, SEED)), self._taught, now_s)

    def _estimate_unseen(self, knows: ImpactModel, known: LinkStats, begins: list[int], now_s: float) -> int:
        ids: list[Ints] = []
        columns: list[tuple[Ints, Ints, Floats]] = []
        alone: list[Floats] = []
        rng = rng_for(SEED, "order/impact")
        for begin in begins:
            urls: list[UrlFacts] = list_unfetched(self._folder, begin, URLS_AT_ONCE)
            batch = describe_urls(urls, fingerprint_urls(urls), known, self._generation)
            ids.append(batch.found)
            columns.append((batch.folder, batch.branch, POLICY.worth(knows, batch, now_s, rng)))
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
    with run_in_background():
        run_impact_pass(Path(sys.argv[1]), parse_clock(sys.argv[2]).now(), began_s=0.0)
