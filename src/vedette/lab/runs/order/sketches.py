"""How many queries need a sketch? Impact08, sections 6.3 and 6.4: figures 7, 8 and 9.

Queries are split in two by lot. On one half (*train*) the printed hybrid fetches with all sketches, and what each query
gained teaches improvability. On the other (*test*) the neediest queries by it, a share of all, keep their sketches;
everything is judged by all queries of this half. As printed, what is learned on train is improvability alone: the
queries of test and their frequencies are known.

What crawled pages brought is counted over all queries of the half, which takes no sketches.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from vedette.attention import step_visibility
from vedette.frontier.impact.query_need import Improvability, needy
from vedette.frontier.impact.sketches import Sketches
from vedette.lab.core.registry import load_policies
from vedette.lab.quality.workload import compute_slot_scores, rank_results
from vedette.lab.runs.order.run import (
    DEFAULT_POLICY,
    FROM_FILE,
    FROM_PAGES,
    TOP_RESULTS,
    Case,
    compute_worths,
    draw_tie_order,
    list_query_sources,
    load_site,
)
from vedette.lab.runs.order.setting import CrawlSplit, Site, compute_impacts, split_site
from vedette.policy import Floats, Ints, rng_for

SHARES = (1.0, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0003)
COMPARED_POLICIES = ("hybrid", DEFAULT_POLICY)
TRAIN_BUDGET = 0.1  # of the uncrawled pages: what train fetches where improvability is learned for the others


class QueryHalf(NamedTuple):
    """One half of the queries: its cut, the impact of uncrawled pages on it, and the order of the printed hybrid."""

    queries: Ints
    split: CrawlSplit
    impact: Floats
    order: Ints


class SketchResult(NamedTuple):
    """What came with few sketches: how many there were, and the order of each policy."""

    sketches: int
    orders: Mapping[str, Ints]


class Bucket(NamedTuple):
    """Queries of test with about the same mean score: how much they improved, and what train let expect."""

    score: float
    improved: float
    expected: float
    queries: float


def choose_query_source() -> int:
    """Real queries where they are there."""
    return FROM_FILE if FROM_FILE in list_query_sources() else FROM_PAGES


def _load_case_site(case: Case) -> Site:
    return load_site(case.world, case.span, case.query_source, case.seed)


@lru_cache(maxsize=8)
def split_queries(case: Case) -> tuple[QueryHalf, QueryHalf]:
    """Train and test."""
    site = _load_case_site(case)
    lots = rng_for(case.seed, "lab/order/split").permutation(site.workload.queries)
    middle = site.workload.queries // 2
    train, test = (_build_half(site, case, np.sort(part)) for part in (lots[:middle], lots[middle:]))
    return train, test


def _build_half(site: Site, case: Case, queries: Ints) -> QueryHalf:
    frequency = np.zeros(site.workload.queries)
    frequency[queries] = site.workload.frequency[queries]
    whole = split_site(site, case.dataset, case.seed, step_visibility(TOP_RESULTS), frequency)
    cut = restrict_queries(whole, queries)
    impact = compute_impacts(site, np.arange(site.pages), step_visibility(TOP_RESULTS), frequency)[cut.uncrawled]
    return QueryHalf(queries, cut, impact, _compute_orders(cut, case.seed, COMPARED_POLICIES[:1])[COMPARED_POLICIES[0]])


def restrict_queries(cut: CrawlSplit, queries: Ints) -> CrawlSplit:
    """The same cut with sketches for some queries only (ascending), numbered anew."""
    brought = cut.crawled_facts
    at = np.minimum(np.searchsorted(queries, brought.found_query), len(queries) - 1)
    inside = queries[at] == brought.found_query
    told = type(brought)(
        **{
            **{name: getattr(brought, name) for name in brought.__dataclass_fields__},
            "found_row": brought.found_row[inside],
            "found_query": at[inside],
            "found_score": brought.found_score[inside],
        }
    )
    return cut._replace(crawled_facts=told, query_terms=cut.query_terms.select(queries))


def _compute_orders(cut: CrawlSplit, seed: int, names: tuple[str, ...]) -> dict[str, Ints]:
    worths = compute_worths([load_policies("order")[name] for name in names], cut, seed)
    ties = draw_tie_order(seed, len(cut.uncrawled))
    return {name: np.lexsort((ties, -worth)) for name, worth in worths.items()}


def _measure_improvement(site: Site, half: QueryHalf, budget: float) -> tuple[Floats, Floats]:
    """The mean score of each query of a half before its hybrid fetches, and how many new first results it gets."""
    fetched = half.split.uncrawled[half.order[: max(int(budget * len(half.order)), 1)]]
    lists = rank_results(site.workload, compute_slot_scores(site.workload, np.arange(site.pages)), half.queries)
    is_new = np.isin(site.workload.slot_page[lists.slot], fetched) & (lists.rank <= TOP_RESULTS)
    brought = half.split.crawled_facts
    sketches = Sketches.empty(len(half.queries)).put(
        brought.found_query, brought.page[brought.found_row], brought.found_score
    )
    return sketches.compute_means(), np.bincount(lists.row[is_new], minlength=len(half.queries)).astype(np.float64)


def _learn_improvability(case: Case, budget: float) -> Improvability:
    means, improved = _measure_improvement(_load_case_site(case), split_queries(case)[0], budget)
    return Improvability(top=float(means.max()) or 1.0).add_cycle(means, improved)


@lru_cache(maxsize=16)
def build_buckets(case: Case, budget: float) -> tuple[Bucket, ...]:
    """Figure 7: what test shows, bucket by bucket, against the line that train taught."""
    rates = _learn_improvability(case, budget)
    means, improved = _measure_improvement(_load_case_site(case), split_queries(case)[1], budget)
    shown = Improvability(top=rates.top).add_cycle(means, improved)
    scores, gains, times = shown.compute_points()
    told = rates.predict(scores)
    rows = zip(scores.tolist(), gains.tolist(), told.tolist(), times.tolist(), strict=True)
    return tuple(Bucket(*row) for row in rows)


@lru_cache(maxsize=400)
def run_with_sketches(case: Case, share: float) -> SketchResult:
    """Figures 8 and 9: the orders with sketches of the neediest queries of test only."""
    half = split_queries(case)[1]
    means, _ = _measure_improvement(_load_case_site(case), half, TRAIN_BUDGET)
    chosen = needy(half.split.query_terms.frequency, _learn_improvability(case, TRAIN_BUDGET).predict(means), share)
    return SketchResult(
        len(chosen), _compute_orders(restrict_queries(half.split, chosen), case.seed, COMPARED_POLICIES)
    )
