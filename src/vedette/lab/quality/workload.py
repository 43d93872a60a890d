"""Query workload of a world: queries, their frequencies, which pages match them, and ranked result lists.

Queries are those of the TREC Million Query file if VEDETTE_DATA names a folder that has it (``queries_from`` 0). It
does not say how often each is searched, so Zipf's law is used, over an order that the seed draws (``query_files``).
Without it they are two neighboring words of a page that the seed draws, each searched as often as it is drawn (1).

Of these, the most frequent 1 000 that some page of the span answers at some time are used. Pages score by their text,
by TF-IDF. The rarity of words, and the words to draw from, are taken from the first known version of each page: at the
start, or at its birth. So scores and queries are fixed for a run, and do not depend on the policy.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import numpy as np

from vedette.lab.quality.corpus import Corpus, HistoryCache, concat_ranges, load_corpus
from vedette.lab.quality.query_files import (
    QUERY_FILES,
    Queries,
    build_queries,
    find_query_file,
    read_query_file,
    select_answerable,
)
from vedette.lab.quality.scoring import QueryMatches, Scoring, build_tfidf
from vedette.lab.worlds.history import History
from vedette.policy import Floats, Ints, rng_for
from vedette.text import WordHashes, split_words

# A *slot* is a query and a page that has, at some time, a version with all words of the query. The slots of a query are
# adjacent, in the order of pages. The results of a repository or of the web itself at a moment are then one score per
# slot, 0 if the page's current version does not match, and result lists follow by sorting slots.


class TieBreak(Enum):
    """How to order two pages with the same score in a result list. Pages are numbered by birth."""

    OLDER_FIRST = "older"
    YOUNGER_FIRST = "younger"


@dataclass(frozen=True, slots=True)
class Workload:
    """Query workload as arrays: query ``q`` has the slots ``slot_start[q]`` to ``slot_start[q + 1]``, one per page.

    Version ``v`` fills the slots ``match_slot[match_start[v]:match_start[v + 1]]`` with the scores ``match_score``.
    """

    frequency: Floats
    slot_start: Ints
    slot_page: Ints
    slot_query: Ints
    match_start: Ints
    match_slot: Ints
    match_score: Floats

    @property
    def queries(self) -> int:
        """Return the number of queries in the workload."""
        return len(self.frequency)

    def find_matches(self, versions: Ints) -> Ints:
        """Return the rows of ``match_slot`` and ``match_score`` of these versions; below 0 means no version."""
        held = versions[versions >= 0]
        return concat_ranges(self.match_start[held], self.match_start[held + 1])


class ResultLists(NamedTuple):
    """Ranked result lists of queries, one after the other: ``row`` is the query's row, ``rank`` begins at 1."""

    slot: Ints
    row: Ints
    rank: Ints


def build_workload(corpus: Corpus, queries: Queries, scoring: Scoring) -> Workload:
    """Build a query workload: match and score all versions of the corpus for the queries."""
    versions, scores, sizes = [np.zeros(0, np.int64)], [np.zeros(0)], []
    for found in _iter_matches(corpus, queries):
        versions.append(found.versions)
        scores.append(scoring.scores(found))
        sizes.append(len(found.versions))
    version = np.concatenate(versions)
    query, page = np.repeat(np.arange(len(queries)), sizes), corpus.page_of[version]
    # Matches come by query and version, so by query and page: each new pair of these is a slot.
    opens = np.append(True, (query[1:] != query[:-1]) | (page[1:] != page[:-1]))[: len(query)]
    order = np.argsort(version, kind="stable")
    return Workload(
        frequency=queries.frequency,
        slot_start=np.searchsorted(query[opens], np.arange(len(queries) + 1)),
        slot_page=page[opens],
        slot_query=query[opens],
        match_start=np.searchsorted(version[order], np.arange(len(corpus.row_of) + 1)),
        match_slot=(np.cumsum(opens) - 1)[order],
        match_score=np.concatenate(scores)[order],
    )


def compute_slot_scores(workload: Workload, versions: Ints) -> Floats:
    """Compute the score in each slot of the workload for these page versions; below 0 means no version."""
    matches = workload.find_matches(versions)
    scores = np.zeros(len(workload.slot_page))
    scores[workload.match_slot[matches]] = workload.match_score[matches]
    return scores


def rank_results(
    workload: Workload, scores: Floats, queries: Ints, ties: TieBreak = TieBreak.OLDER_FIRST
) -> ResultLists:
    """Rank the result list of each query, best first, by slot scores; results with score 0 are not listed."""
    starts, ends = workload.slot_start[queries], workload.slot_start[queries + 1]
    slots = concat_ranges(starts, ends)
    rows = np.repeat(np.arange(len(queries)), ends - starts)
    listed = np.flatnonzero(scores[slots] > 0)
    if ties is TieBreak.YOUNGER_FIRST:
        listed = listed[::-1]
    slots, rows = slots[listed], rows[listed]
    # The sort is stable, and slots come in the order of pages: that is the rule for ties.
    order = np.lexsort((-scores[slots], rows))
    rows = rows[order]
    return ResultLists(slots[order], rows, np.arange(1, len(rows) + 1) - np.searchsorted(rows, rows))


class _Postings(NamedTuple):
    """Posting list of a word: the corpus rows that have it, ascending, and how often."""

    rows: Ints
    times: Ints


def _iter_matches(corpus: Corpus, queries: Queries) -> Iterator[QueryMatches]:
    """Yield the matches of each query in the corpus, versions ascending."""
    postings = _build_postings(corpus, np.unique(queries.term))
    order = np.argsort(corpus.row_of, kind="stable")
    first = np.searchsorted(corpus.row_of[order], np.arange(corpus.rows + 1))
    for query in range(len(queries)):
        terms = queries.get_terms(query)
        rows, times = _intersect_postings([postings[term] for term in terms.tolist()])
        versions = order[concat_ranges(first[rows], first[rows + 1])]
        at = np.repeat(np.arange(len(rows)), first[rows + 1] - first[rows])
        ascending = np.argsort(versions)
        versions, at = versions[ascending], at[ascending]
        yield QueryMatches(terms, versions, corpus.page_of[versions], times[:, at], corpus.length[rows[at]])


def _build_postings(corpus: Corpus, terms: WordHashes) -> dict[int, _Postings]:
    """Build the posting list of each word that a query of the workload has."""
    if not len(terms):
        return {}
    at = np.minimum(np.searchsorted(terms, corpus.term), len(terms) - 1)
    wanted = np.flatnonzero(terms[at] == corpus.term)
    order = wanted[np.argsort(at[wanted], kind="stable")]
    rows = np.searchsorted(corpus.start, order, side="right") - 1
    edges = np.searchsorted(at[order], np.arange(len(terms) + 1)).tolist()
    times = corpus.count[order].astype(np.int64)
    return {
        term: _Postings(rows[begin:end], times[begin:end])
        for term, begin, end in zip(terms.tolist(), edges[:-1], edges[1:], strict=True)
    }


def _intersect_postings(lists: list[_Postings]) -> tuple[Ints, Ints]:
    """Intersect posting lists: the corpus rows that have all words, and their counts; no words match no rows."""
    if not lists:
        return np.zeros(0, np.int64), np.zeros((0, 0), np.int64)
    shared = min(lists, key=lambda one: len(one.rows)).rows
    for one in lists:
        at = np.minimum(np.searchsorted(one.rows, shared), max(len(one.rows) - 1, 0))
        shared = shared[one.rows[at] == shared] if len(one.rows) else one.rows
    return shared, np.stack([one.times[np.searchsorted(one.rows, shared)] for one in lists])


FROM_FILE, FROM_PAGES = 0, 1
MAX_QUERIES = 1000
MAX_CANDIDATES = 10_000
DRAWS = 3000


class QuerySet(NamedTuple):
    """The queries of a world with the workload that answers them, and their origin."""

    workload: Workload
    source: int


# Of a world, and of the same world without its waves.
_query_sets: HistoryCache[QuerySet | None] = HistoryCache(size=2)


def load_query_set(history: History, begin_s: float, end_s: float, seed: int) -> QuerySet | None:
    """Load the queries for a span of a history; None if its pages have no texts or answer no query.

    The latest ones are cached, since the cells of an experiment need the same again and again.
    """
    key = (begin_s, end_s, seed, os.environ.get("VEDETTE_DATA", ""))
    return _query_sets.get(history, key, lambda: _build_query_set(history, begin_s, end_s, seed))


def _build_query_set(history: History, begin_s: float, end_s: float, seed: int) -> QuerySet | None:
    versions = first_versions(history, begin_s, end_s)
    if not any(map(history.texts.text, versions.tolist())):
        return None
    path = find_query_file(QUERY_FILES[0])
    queries = read_query_file(path, seed) if path else draw_queries(history, versions, seed)
    corpus = load_corpus(history, queries.term)
    scoring = build_tfidf(corpus, versions)
    tried = _take_most_frequent(select_answerable(queries, corpus), MAX_CANDIDATES)
    there = np.flatnonzero((history.version_at_s <= end_s) & (history.version_end_s > begin_s))
    answered = tried.select(_find_answered(build_workload(corpus, tried, scoring), there))
    if not len(answered):
        return None
    workload = build_workload(corpus, _take_most_frequent(answered, MAX_QUERIES), scoring)
    return QuerySet(workload, FROM_FILE if path else FROM_PAGES)


def _take_most_frequent(queries: Queries, most: int) -> Queries:
    return queries.select(np.argsort(-queries.frequency, kind="stable")[:most])


def _find_answered(workload: Workload, versions: Ints) -> Ints:
    """Return the queries of the workload that one of these versions answers."""
    return np.unique(workload.slot_query[workload.match_slot[workload.find_matches(versions)]])


def first_versions(history: History, begin_s: float, end_s: float) -> Ints:
    """Return the first known version of each page of a span: at the start, or at its birth."""
    versions = history.version_at(np.arange(history.pages), begin_s)
    later = (history.born_s > begin_s) & (history.born_s < end_s)
    versions[later] = history.first_version[later]
    return versions[versions >= 0]


def draw_queries(history: History, versions: Ints, seed: int) -> Queries:
    """Draw queries from page texts: two neighboring words, from a version and a position drawn uniformly."""
    rng = rng_for(seed, "lab/asking")
    counts: dict[str, float] = {}
    for version, place in zip(rng.choice(versions, DRAWS).tolist(), rng.random(DRAWS).tolist(), strict=True):
        words = split_words(history.texts.text(version))
        if len(words) > 1:
            at = int(place * (len(words) - 1))
            query = f"{words[at]} {words[at + 1]}"
            counts[query] = counts.get(query, 0.0) + 1.0
    return build_queries(counts.items(), "drawn")
