"""Are measured gains right? What fetches of real pages would bring, exactly and as the indexer measures it.

Pages of a real history that changed within half a year. Exactly is eq. 4.6 of Pandey08, by real lists of all queries
with what pages say now; both are compared by Spearman's correlation. Measured gains are worked out twice: with curves
of the pages as they were known, and with *old* ones, of the pages as they were a year before that.
"""

from typing import NamedTuple

import numpy as np
from bench.peers.quality_change import delta_q_exact

from vedette.index.quality.gains import PageChange, concatenate_words, measure_gains
from vedette.index.quality.query_curves import QueryCurveBuilder, QueryCurves, compute_term_idf
from vedette.index.quality.watched_terms import (
    NO_WORDS,
    PageWords,
    TrackedTerms,
    count_naming_terms,
    score_pages,
    score_texts,
    select_tracked_terms,
)
from vedette.lab.core.statistics import spearman
from vedette.lab.quality.corpus import Corpus, load_corpus
from vedette.lab.quality.query_files import Queries, split_into_terms
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
    """Our own score by text for whole queries: the mean over words, each by how telling it is."""

    text: TfIdfScoring

    def scores(self, found: QueryMatches) -> Floats:
        """The score of each version found."""
        at = np.searchsorted(self.text.terms, found.terms)
        df = np.where(np.isin(found.terms, self.text.terms), self.text.df[np.minimum(at, len(self.text.df) - 1)], 0)
        idf = compute_term_idf(df, self.text.n)
        each = np.stack([score_texts(times, found.lengths) for times in found.times.astype(np.float64)])
        return np.asarray((idf[:, None] * each).sum(axis=0))


class Truth(NamedTuple):
    """A world at three moments: what was known of each page long ago, what is, what it says; and pages that differ."""

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
    """What a fetch of each page of the sample would bring, by real lists."""
    workload = build_workload(corpus, queries, scoring)
    best = ideal_quality(truth.live, workload)
    return np.array(
        [delta_q_exact(page, truth.local, truth.live, workload, best=best) for page in truth.sample.tolist()]
    )


def measured_gains(truth: Truth, queries: Queries, known: Ints) -> Floats:
    """The same as the indexer measures it: single words, and curves of three buckets, made of these versions."""
    apart = split_into_terms(queries)
    asked = list(zip(apart.texts, apart.frequency.tolist(), strict=True))
    watched = select_tracked_terms(asked, float(queries.frequency.sum()), count_naming_terms(concatenate_words([])))
    changes = [
        PageChange(body_of(truth.history, int(truth.local[page])), body_of(truth.history, int(truth.live[page])))
        for page in truth.sample.tolist()
    ]
    return measure_gains(curves_of(watched, truth.history, known[known >= 0]), changes).gain


def curves_of(watched: TrackedTerms, history: History, versions: Ints) -> QueryCurves:
    """The curves of what these versions say."""
    words = [body_of(history, version) for version in versions.tolist()]
    gathered = QueryCurveBuilder(watched)
    answers = score_pages(watched, concatenate_words([NO_WORDS] * len(words)), concatenate_words(words))
    gathered.add(answers, np.full(len(words), 0.5))
    return gathered.build(len(words))


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
