"""Are measured gains right? The gains of fetching real pages, exactly and as measured by the indexer.

Pages of a real history that changed within half a year. Exactly is eq. 4.6 of Pandey08, by real lists of all queries
with what pages say now; both are compared by Spearman's correlation. Measured gains are worked out twice: with curves
of the pages as they were known, and with *old* ones, of the pages as they were a year before that.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from bench.peers.quality_change import delta_q_exact

from vedette.engine.search.answer_scores import AnswerScorer
from vedette.engine.search.ports import PageSignals
from vedette.index.features import Slot
from vedette.index.quality.gains import ChangedPages, concatenate_words, measure_gains
from vedette.index.quality.query_curves import QueryCurveBuilder, QueryCurves, compute_term_idf
from vedette.index.quality.watched_queries import (
    PageWords,
    QueryScores,
    WatchedQueries,
    WatchedQuery,
    build_watched,
    merge_scores,
)
from vedette.lab.core.statistics import spearman
from vedette.lab.quality.corpus import Corpus, load_corpus
from vedette.lab.quality.query_files import Queries
from vedette.lab.quality.scoring import QueryMatches, Scoring, TfIdfScoring, build_tfidf
from vedette.lab.quality.search_quality import ideal_quality
from vedette.lab.quality.workload import build_workload, draw_queries
from vedette.lab.worlds.catalog import open_history
from vedette.lab.worlds.history import History
from vedette.policy import Floats, Ints, rng_for
from vedette.text import hash_words, normalize_words

__all__ = ["correlations"]

SEED = 1
HALF_YEAR_S = 182 * 86_400.0
YEAR_S = 365 * 86_400.0


class Weighed(NamedTuple):
    """BM25 of the text for whole queries, each word by how telling it is."""

    text: TfIdfScoring

    def scores(self, found: QueryMatches) -> Floats:
        """The score of each version found."""
        at = np.searchsorted(self.text.terms, found.terms)
        df = np.where(np.isin(found.terms, self.text.terms), self.text.df[np.minimum(at, len(self.text.df) - 1)], 0)
        idf = compute_term_idf(df, self.text.n)
        slowed = 1.2 * (0.4 + 0.6 * found.lengths / 600.0)
        each = found.times / (found.times + slowed)
        return np.asarray((idf[:, None] * each).sum(axis=0))


class Truth(NamedTuple):
    """A world at three moments: the old and current copy of each page, and its content; and the pages that differ."""

    history: History
    old: Ints
    local: Ints
    live: Ints
    sample: Ints


def truth_of(world: str, sample: int) -> Truth:
    """Half a year of a world, up to its end."""
    history = open_history(world)
    pages, end_s = np.arange(history.pages), history.end_s - 1.0
    local, live = history.version_at(pages, end_s - HALF_YEAR_S), history.version_at(pages, end_s)
    old = history.version_at(pages, end_s - HALF_YEAR_S - YEAR_S)
    both = np.flatnonzero((local >= 0) & (live >= 0))
    differs = both[history.digest[local[both]] != history.digest[live[both]]]
    drawn = rng_for(SEED, "bench/quality/sample").permutation(differs)[:sample]
    return Truth(history, old, local, live, np.sort(drawn))


def exact_gains(truth: Truth, corpus: Corpus, queries: Queries, scoring: Scoring) -> Floats:
    """The gain of fetching each page of the sample, by real lists."""
    workload = build_workload(corpus, queries, scoring)
    best = ideal_quality(truth.live, workload)
    return np.array(
        [delta_q_exact(page, truth.local, truth.live, workload, best=best) for page in truth.sample.tolist()]
    )


def measured_gains(truth: Truth, queries: Queries, known: Ints) -> Floats:
    """The same as the indexer measures it: by the score of search, and curves of three buckets, of these versions."""
    corpus = load_corpus(truth.history)
    text = build_tfidf(corpus, known)
    asked = []
    for query, share in enumerate((queries.frequency / queries.frequency.sum()).tolist()):
        idf = text.idf(queries.get_terms(query)).tolist()
        words = zip(queries.get_terms(query).tolist(), idf, strict=True)
        slots = tuple(Slot((number,), (1.0,), telling) for number, telling in words)
        asked.append((WatchedQuery(slots, (True,) * len(slots), len(slots)), share))
    watched = build_watched([one for one in asked if one[0].slots])
    curves = curves_of(watched, truth.history, known[known >= 0])
    old, new = (
        answers(watched, [body_of(truth.history, int(version)) for version in versions[truth.sample]])
        for versions in (truth.local, truth.live)
    )
    pages = len(truth.sample)
    changed = ChangedPages(np.ones(pages, np.bool_), np.full(pages, 0.5))
    return measure_gains(curves, merge_scores(old, new, len(watched)), changed).gain


def curves_of(watched: WatchedQueries, history: History, versions: Ints) -> QueryCurves:
    """The curves of what these versions say."""
    words = [body_of(history, version) for version in versions.tolist()]
    gathered = QueryCurveBuilder(watched)
    gathered.add(answers(watched, words), np.full(len(words), 0.5))
    return gathered.build(len(words))


def answers(watched: WatchedQueries, words: Sequence[PageWords]) -> QueryScores:
    """How well pages answer if only their words are known."""
    return AnswerScorer(watched).score(concatenate_words(words), PageSignals.neutral(len(words)))


def body_of(history: History, version: int) -> PageWords:
    """The words of a version, all in its body."""
    numbers = hash_words(normalize_words(history.texts.text(version)))
    return numbers, (0, 0, 0, 0, len(numbers))


def correlations(world: str, sample: int) -> dict[str, float]:
    """Spearman's correlation with exact gains by our own scores, also with old curves; and with those by TF-IDF."""
    truth = truth_of(world, sample)
    known_then = truth.local[truth.local >= 0]
    queries = draw_queries(truth.history, known_then, SEED)
    corpus = load_corpus(truth.history, queries.term)
    text = build_tfidf(corpus, known_then)
    exact = exact_gains(truth, corpus, queries, Weighed(text))
    ours = measured_gains(truth, queries, truth.local)
    found = {
        "spearman": spearman(ours, exact),
        "spearman_old_curves": spearman(measured_gains(truth, queries, truth.old), exact),
        "spearman_tfidf": spearman(ours, exact_gains(truth, corpus, queries, text)),
    }
    print(f"{world}: {len(truth.sample)} changed pages, {len(queries)} queries, {found}", flush=True)
    return {name: round(float(value), 3) for name, value in found.items()}
