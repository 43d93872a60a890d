"""Needy queries: which watched queries are worth measuring at refreshes, since their results still improve.

Pandey08 (4.8) does not define a *needy query* for refreshing. As for unseen pages (``frontier.impact.query_need``) it
is one that is searched often and can be improved, here by new versions of known pages:

    neediness(q)     = f(q) idf(q) improvability(q)
    improvability(q) = (gained(q) + c r(level)) / (changes + c)

``gained`` is what measured changes brought to the query per search; ``changes`` is how many pages were measured while
it was watched; r is what queries at the same *level* (the score of their tenth result) gain from a change, fitted to
all. So a query with little evidence is judged by similar ones. Old evidence decays, so a query that is no longer
watched is tried again: nothing is left out forever. First fetches are measured with all queries: they may bring results
where new versions of old pages never did.

For unseen pages the needy queries are those watched as a whole, since their gains weigh most: each has a sketch of
its best results (``frontier.impact``), and URLs are matched to it by its words and their other forms. Single words need
none: the curves say what a page would bring for each.
"""

from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np

from vedette.frontier.impact.estimator import ImpactSettings, TermGains
from vedette.frontier.impact.extra_trees import fit_forest
from vedette.frontier.impact.matching import QuerySet, WordForms
from vedette.frontier.impact.query_need import Improvability
from vedette.frontier.impact.url_features import DescribedUrls, TrainingPages
from vedette.index.quality.curves import ScoreCurve
from vedette.index.quality.gains import estimate_word_gains
from vedette.index.quality.query_curves import QueryCurves
from vedette.index.quality.watched_queries import QueryScores, WatchedQueries
from vedette.policy import Floats, Ints
from vedette.text import WideHashes

GOOD_SCORE = 0.5  # the score of a page for a word in its anchor texts
# The chosen queries' share of all neediness; their minimum number; and the changes needed before any is left out.
KEPT_SHARE, MIN_QUERIES, MIN_CHANGES = 0.99, 1_000, 500.0
# c: how many changes weigh as much as the evidence from similar queries; most changes bring nothing to most queries,
# and a few bring much, so it takes many. Then the share of old evidence kept from one computation to the next.
CONFIDENCE, DECAY = 20_000.0, 0.8
TOP_RANK = 10.0
MAX_KNOWN = 200_000


class QueryNeeds(NamedTuple):
    """Gains that page changes brought to watched queries: their prints, gains per search, changes measured.

    >>> needs = QueryNeeds.empty().add_gains(np.array([5, 9], np.uint64), np.array([0.5, 0.0]), 10)
    >>> needs = needs.add_gains(np.array([9, 12], np.uint64), np.array([0.25, 0.0]), 4)
    >>> needs.prints.tolist(), needs.gained.tolist(), needs.changes.tolist()
    ([5, 9, 12], [0.5, 0.25, 0.0], [10.0, 14.0, 4.0])
    """

    prints: WideHashes
    gained: Floats
    changes: Floats

    @classmethod
    def empty(cls) -> "QueryNeeds":
        """Build query needs without any measurement."""
        return cls(np.zeros(0, np.uint64), np.zeros(0), np.zeros(0))

    def add_gains(self, prints: WideHashes, gained: Floats, changes: int) -> "QueryNeeds":
        """Add measured changes, and their gains for the queries that were watched, to the query needs."""
        every, at = np.unique(np.concatenate((self.prints, prints)), return_inverse=True)
        sums = (
            np.bincount(at, np.concatenate(both), len(every)).astype(np.float64)
            for both in ((self.gained, gained), (self.changes, np.full(len(prints), float(changes))))
        )
        gains, times = sums
        if len(every) <= MAX_KNOWN:
            return QueryNeeds(every, gains, times)
        kept = np.sort(np.argsort(-times, kind="stable")[:MAX_KNOWN])
        return QueryNeeds(every[kept], gains[kept], times[kept])

    def decay(self) -> "QueryNeeds":
        """Decay old query needs for the next computation of query curves."""
        return QueryNeeds(self.prints, DECAY * self.gained, DECAY * self.changes)

    def look_up(self, prints: WideHashes) -> tuple[Floats, Floats]:
        """Look up gains and changes of queries; 0 if unknown."""
        if not len(self.prints):
            return np.zeros(len(prints)), np.zeros(len(prints))
        at = np.minimum(np.searchsorted(self.prints, prints), len(self.prints) - 1)
        known = self.prints[at] == prints
        return np.where(known, self.gained[at], 0.0), np.where(known, self.changes[at], 0.0)


def select_needy_queries(curves: QueryCurves, needs: QueryNeeds) -> Ints:
    """Select the positions of needy queries to watch, ascending: all of them before enough was measured."""
    need = compute_neediness(curves, needs)
    if need is None:
        return np.arange(len(curves.watched))
    order = np.argsort(-need, kind="stable")
    covered = np.cumsum(need[order]) / need.sum()
    count = max(int(np.searchsorted(covered, KEPT_SHARE)) + 1, MIN_QUERIES)
    return np.sort(order[:count])


def compute_neediness(curves: QueryCurves, needs: QueryNeeds) -> Floats | None:
    """Compute how needy each watched query is; None before enough was measured."""
    gained, changes = needs.look_up(curves.watched.prints)
    measured = changes >= MIN_CHANGES / 2
    if not len(changes) or changes.max() < MIN_CHANGES or not gained[measured].sum() > 0:
        return None
    level = _score_at_rank(curves.text, TOP_RANK)
    alike = Improvability().add_cycle(level[measured], gained[measured] / changes[measured]).predict(level)
    improvability = (gained + CONFIDENCE * alike) / (changes + CONFIDENCE)
    need = np.maximum(curves.weight * improvability, 0.0)
    return need if need.sum() > 0 else None


def _score_at_rank(curve: ScoreCurve, rank: float) -> Floats:
    """Return the score of the result at a rank for each query; 0 beyond the last result."""
    scores = np.where(curve.ranks[0] >= rank, curve.scores[0], 0.0)
    for before, after in zip(range(len(curve.ranks) - 1), range(1, len(curve.ranks)), strict=True):
        low, high = curve.ranks[before], curve.ranks[after]
        inside = (low <= rank) & (rank < high)
        part = (rank - low) / np.maximum(high - low, 1e-9)
        scores = np.where(inside, curve.scores[before] + part * (curve.scores[after] - curve.scores[before]), scores)
    return np.asarray(scores)


def build_impact_settings(curves: QueryCurves, seed: int) -> ImpactSettings:
    """Build the settings of the impact estimator: sketches of the queries watched whole, and the gains of words."""
    words, worth = estimate_word_gains(curves, GOOD_SCORE)
    sketched = curves.watched.select(_list_sketched(curves.watched))
    return ImpactSettings(_build_query_set(sketched), fit_forest, seed, TermGains(words.astype(np.int64), worth))


def build_training(
    batch: DescribedUrls, page: Ints, gain: Floats, scores: QueryScores, watched: WatchedQueries
) -> TrainingPages:
    """Build training data for the impact estimator: fetched pages as they appeared before, and the gain of each.

    ``scores`` are those of the rows of ``batch`` for watched queries.
    """
    columns: dict[str, Any] = {column.name: getattr(batch, column.name) for column in fields(batch)}
    sketched = _list_sketched(watched)
    number = np.full(len(watched), -1, np.int64)
    number[sketched] = np.arange(len(sketched))
    kept = np.flatnonzero(number[scores.query] >= 0)
    columns |= {"found_row": scores.page[kept], "found_query": number[scores.query[kept]]}
    return TrainingPages(**columns, page=page, gain=gain, found_score=scores.score[kept])


def _list_sketched(watched: WatchedQueries) -> Ints:
    """List the queries that have sketches: those of several words."""
    return np.flatnonzero(np.diff(watched.start) > 1)


def _build_query_set(watched: WatchedQueries) -> QuerySet:
    """Convert watched queries for matching with unseen URLs, with the other forms of their words."""
    is_other = np.append(False, np.diff(watched.slot) == 0)[: len(watched.slot)]
    forms = WordForms(watched.words[is_other], watched.slot[is_other], watched.weight[is_other])
    return QuerySet(watched.words[~is_other], watched.start, watched.frequency, watched.idf, forms)
