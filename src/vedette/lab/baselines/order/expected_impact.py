"""Expected impact of unseen pages, by the distributions of their scores (Impact08, section 4.2).

The distribution of a matching page's score for a query is known: some equally likely values, quantiles of the
predictions of the scorer's trees. The expectation of a set of pages is the sum of those of its pages, so the best c
pages are those with the largest expectation.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from vedette.attention import Visibility, step_visibility
from vedette.frontier.impact.estimator import FULL_MATCH, ImpactModel
from vedette.frontier.impact.scorer import build_pair_columns
from vedette.frontier.impact.url_features import DescribedUrls, complete_batch
from vedette.frontier.unseen import UnseenUrls
from vedette.lab.baselines.bases import ImpactOrder
from vedette.policy import Floats, Ints, rng_for

POINTS = 8  # equally likely scores stored for a page and a query
MAX_EXACT_PAGES = 40  # unseen pages per query up to which the exact method is used
DRAWS = 400
CHUNK = 2_000


@dataclass(frozen=True, slots=True)
class ExpectedImpact(ImpactOrder):
    """Fetch in the order of sum_q f(q) sum_r V(r) P(rank of the page for q = r), over crawled and matching pages.

    Scores are independent. Given the score of a page, each other unseen page is before it with some probability, and
    their number is a sum of independent draws, whose distribution comes from one pass over the others (a *Poisson
    binomial*). The paper does this for equal distributions only, and samples otherwise; here it is exact for any, and
    sampling is for long lists. V is a step: the first K results are seen.

    Useful if a few pages compete for a query with uncertain scores. Not useful for many queries: it computes what
    ``query-driven`` guesses from means.

    Reference: Impact08, section 4.2.

    >>> from vedette.policy import rng_for
    >>> batch = UnseenUrls(depth=np.zeros(2, int), found=np.arange(2), inlinks=np.array([1, 9]))
    >>> policy = ExpectedImpact()
    >>> policy.worth(policy.start(None), batch, now=0.0, rng=rng_for(1, "order")).tolist()
    [0.0, 0.0]
    """

    name: str = "expected-impact"

    def worth(self, state: ImpactModel, batch: UnseenUrls, now: float, rng: np.random.Generator) -> Floats:
        """Return the expected impact of unseen URLs, summed over queries."""
        worth = np.zeros(len(batch))
        for query in list_queries(state, complete_batch(batch)):
            worth[query.rows] += query.frequency * estimate_impact(query.crawled, query.points, query.seen, rng)
        return worth

    def reason(self, state: ImpactModel, batch: UnseenUrls, row: int, now: float) -> str:
        """Describe the expected impact of an unseen URL."""
        return f"expected impact {self.worth(state, batch, now, rng_for(0, self.name))[row]:.3g} over all queries"


class MatchedQuery(NamedTuple):
    """A query: scores of its crawled results, and the rows of matching unseen pages with their likely scores."""

    crawled: Floats
    rows: Ints
    points: Floats
    frequency: float
    seen: Visibility


def list_queries(model: ImpactModel, batch: DescribedUrls) -> Iterator[MatchedQuery]:
    """List the queries that any unseen page matches in full; none before anything was learned."""
    if model.scorer is None or model.settings is None or model.matcher is None or model.sketches is None:
        return
    pairs = model.matcher.build_pairs(model.matcher.find_hits(batch.texts))
    pairs = pairs.select(pairs.share >= FULL_MATCH)
    bar = model.sketches.get_thresholds()[pairs.query]
    columns = build_pair_columns(pairs, batch, model.settings.queries, model.sketches, bar)
    points = np.concatenate(
        [np.zeros((0, POINTS)), *(_predict_points(model, columns[at : at + CHUNK]) for at in range(0, len(bar), CHUNK))]
    )
    order = np.lexsort((pairs.row, pairs.query))
    cuts = np.flatnonzero(np.diff(pairs.query[order])) + 1
    seen = step_visibility(model.sketches.top_k)
    for some in np.split(order, cuts):
        if len(some):
            query = int(pairs.query[some[0]])
            scores = model.sketches.score[query]
            frequency = float(model.settings.queries.frequency[query])
            yield MatchedQuery(scores[scores > 0], pairs.row[some], points[some], frequency, seen)


def _predict_points(model: ImpactModel, columns: Floats) -> Floats:
    """Predict equally likely scores: the midpoints of equal parts of the predictions of both forests."""
    assert model.scorer is not None, "learned before asked"
    every = np.sort(np.hstack([forest.predict_points(columns) for forest in model.scorer]), axis=1)
    return every[:, ((np.arange(POINTS) + 0.5) / POINTS * every.shape[1]).astype(np.int64)]


def estimate_impact(crawled: Floats, points: Floats, seen: Visibility, rng: np.random.Generator) -> Floats:
    """Estimate the expected views of each unseen page (a row of equally likely scores) for a query searched once.

    A score of 0 is in no list. With equal scores the earlier row comes first, and crawled pages before unseen ones. Two
    pages with the same two possible scores, nothing crawled, and only the first result seen: the earlier one wins three
    of four times.

    >>> two = np.array([[1.0, 2.0], [1.0, 2.0]])
    >>> estimate_impact(np.zeros(0), two, step_visibility(1), rng_for(1, "doc")).tolist()
    [0.75, 0.25]
    """
    if len(points) > MAX_EXACT_PAGES:
        return sample_impact(crawled, points, seen, rng)
    shown = seen(np.arange(1, len(crawled) + len(points) + 1))
    impacts = np.zeros(len(points))
    for row, mine in enumerate(points):
        ahead = _compute_ahead_chances(points, row)
        counts = np.zeros((len(mine), len(points)))
        counts[:, 0] = 1.0
        for other in np.delete(np.arange(len(points)), row).tolist():
            chance = ahead[other][:, None]
            counts[:, 1:] = counts[:, 1:] * (1 - chance) + counts[:, :-1] * chance
            counts[:, :1] *= 1 - chance
        before = (crawled[None, :] >= mine[:, None]).sum(axis=1)
        chances = counts * shown[before[:, None] + np.arange(len(points))[None, :]]
        impacts[row] = float((chances.sum(axis=1) * (mine > 0)).mean())
    return impacts


def _compute_ahead_chances(points: Floats, row: int) -> Floats:
    """Compute for each other page and each score of this one the probability that the other comes first."""
    mine = points[row][None, None, :]
    before, ties = points[:, :, None] > mine, points[:, :, None] == mine
    ties[row:] = False
    return np.asarray((before | ties).mean(axis=1))


def sample_impact(
    crawled: Floats, points: Floats, seen: Visibility, rng: np.random.Generator, draws: int = DRAWS
) -> Floats:
    """Estimate the same as an average over drawn scores, for long lists."""
    pages, each = points.shape
    drawn = points[np.arange(pages)[None, :], rng.integers(0, each, (draws, pages))]
    order = np.argsort(-drawn, axis=1, kind="stable")
    ranks: Ints = np.empty_like(order)
    np.put_along_axis(ranks, order, np.broadcast_to(np.arange(1, pages + 1), order.shape), axis=1)
    ranks += len(crawled) - np.searchsorted(np.sort(crawled), drawn)
    return np.asarray((seen(ranks) * (drawn > 0)).mean(axis=0))
