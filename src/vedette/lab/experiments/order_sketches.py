"""Order experiment with few sketches: how few queries need them, at the same impact? Impact08, sections 6.3 and 6.4.

Queries are split in two at random. On one half (*train*) the published hybrid fetches with all sketches, and
improvability is learned from the gain of each query. On the other (*test*) the neediest queries, a share of all, keep
their sketches; all queries of this half are used for evaluation. As published, only improvability is learned on train:
the queries of test and their frequencies are known. Gains of crawled pages are counted over all queries of the half,
which takes no sketches.

A row for each dataset and share of sketches (``sketches``, figures 8 and 9) has the impact of the fetched pages as a
share of that with all sketches. Rows with ``bucket`` are figure 7: queries of about the same mean score, how many new
first results they got, and what train predicted. A budget is the share of the uncrawled pages that is fetched; queries
are as in ``order``, real ones if the file exists.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from vedette.attention import step_visibility
from vedette.frontier.impact.query_need import Improvability, needy
from vedette.frontier.impact.sketches import Sketches
from vedette.lab.core.experiment import Cell, Experiment, Measurements, Metric
from vedette.lab.core.registry import DEFAULT, load_policies
from vedette.lab.experiments.order import DATASETS
from vedette.lab.quality.workload import compute_slot_scores, rank_results
from vedette.lab.runs.order.crawl_split import CrawlSplit, Site, compute_impacts, split_site
from vedette.lab.runs.order.run import (
    DEFAULT_POLICY,
    FROM_FILE,
    FROM_PAGES,
    TOP_RESULTS,
    Case,
    compute_worths,
    draw_tie_order,
    impact_share,
    list_query_sources,
    load_site,
    parse_fetch_count,
)
from vedette.policy import Floats, Ints, rng_for

SHARES = (1.0, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0003)
COMPARED_POLICIES = ("hybrid", DEFAULT_POLICY)
TRAIN_BUDGET = 0.1  # of the uncrawled pages: what train fetches to learn improvability for the others


class QueryHalf(NamedTuple):
    """One half of the queries: its crawl split, the impact of uncrawled pages, and the published hybrid's order."""

    queries: Ints
    split: CrawlSplit
    impact: Floats
    order: Ints


class SketchResult(NamedTuple):
    """Result with few query sketches: how many there were, and the fetch order of each policy."""

    sketches: int
    orders: Mapping[str, Ints]


class Bucket(NamedTuple):
    """A bucket of test queries with about the same mean score: their improvement, and the one that train predicts."""

    score: float
    improved: float
    expected: float
    queries: float


def choose_query_source() -> int:
    """Choose the query source of the sketches experiment: real queries if the file exists."""
    return FROM_FILE if FROM_FILE in list_query_sources() else FROM_PAGES


def _load_case_site(case: Case) -> Site:
    return load_site(case.world, case.span, case.query_source, case.seed)


@lru_cache(maxsize=8)
def split_queries(case: Case) -> tuple[QueryHalf, QueryHalf]:
    """Split the queries of an order case at random into the train and test halves."""
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
    """Restrict a crawl split to the sketches of some queries (ascending), renumbered."""
    brought = cut.crawled_facts
    at = np.minimum(np.searchsorted(queries, brought.found_query), len(queries) - 1)
    inside = queries[at] == brought.found_query
    found_row, found_score = brought.found_row[inside], brought.found_score[inside]
    facts = replace(brought, found_row=found_row, found_query=at[inside], found_score=found_score)
    return cut._replace(crawled_facts=facts, query_terms=cut.query_terms.select(queries))


def _compute_orders(cut: CrawlSplit, seed: int, names: tuple[str, ...]) -> dict[str, Ints]:
    worths = compute_worths([load_policies("order")[name] for name in names], cut, seed)
    ties = draw_tie_order(seed, len(cut.uncrawled))
    return {name: np.lexsort((ties, -worth)) for name, worth in worths.items()}


def _measure_improvement(site: Site, half: QueryHalf, budget: float) -> tuple[Floats, Floats]:
    """Measure each query's mean score before its hybrid fetches, and how many new first results it then gets."""
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
    """Build the buckets of figure 7: the improvement of test queries, against the line learned on train."""
    rates = _learn_improvability(case, budget)
    means, improved = _measure_improvement(_load_case_site(case), split_queries(case)[1], budget)
    shown = Improvability(top=rates.top).add_cycle(means, improved)
    scores, gains, times = shown.compute_points()
    predicted = rates.predict(scores)
    rows = zip(scores.tolist(), gains.tolist(), predicted.tolist(), times.tolist(), strict=True)
    return tuple(Bucket(*row) for row in rows)


@lru_cache(maxsize=400)
def run_with_sketches(case: Case, share: float) -> SketchResult:
    """Run the order policies with sketches of only the neediest test queries (figures 8 and 9)."""
    half = split_queries(case)[1]
    means, _ = _measure_improvement(_load_case_site(case), half, TRAIN_BUDGET)
    chosen = needy(half.split.query_terms.frequency, _learn_improvability(case, TRAIN_BUDGET).predict(means), share)
    return SketchResult(
        len(chosen), _compute_orders(restrict_queries(half.split, chosen), case.seed, COMPARED_POLICIES)
    )


OWN_METRICS: Mapping[str, Metric] = {
    "impact_share": Metric("impact of what was fetched, as a share of that of all uncrawled pages", "share", True),
    "of_all": Metric("the same as a share of that with all sketches", "share", True),
    "count": Metric("queries that have sketches"),
    "score": Metric("mean score of the first ten results of the queries of this bucket, before"),
    "improved": Metric("new results among the first ten per query of this bucket"),
    "expected": Metric("the prediction from the other half of the queries"),
    "bucket_queries": Metric("queries of this bucket"),
}


class OrderSketches(Experiment):
    """The experiment of crawl orders with few query sketches."""

    name = "order-sketches"
    about = "How few queries need sketches? (budget: the share of the uncrawled pages that is fetched)"
    worlds = ("git", "live")
    metrics = tuple(OWN_METRICS)
    own = OWN_METRICS
    policies = (DEFAULT, "hybrid")
    budgets = (0.05, 0.1, 0.3)
    figures = (("impact_share", "sketches"),)

    def run(self, cell: Cell) -> list[Measurements]:
        """Run the order-sketches experiment on a cell and return all rows."""
        kind = choose_query_source()
        cases = [(dataset, Case(cell.world, cell.span, kind, dataset, cell.seed)) for dataset in DATASETS]
        return [
            {"queries_from": float(kind), "dataset": float(dataset), **row}
            for dataset, case in cases
            for row in _iter_rows(cell, case)
        ]


def _iter_rows(cell: Cell, case: Case) -> Iterator[dict[str, float]]:
    policy = DEFAULT_POLICY if cell.policy == DEFAULT else cell.policy
    half = split_queries(case)[1]
    fetched = parse_fetch_count(cell, len(half.impact))
    whole = impact_share(run_with_sketches(case, SHARES[0]).orders[policy], half.impact, fetched)
    for share in SHARES:
        result = run_with_sketches(case, share)
        mine = impact_share(result.orders[policy], half.impact, fetched)
        of_all = mine / whole if whole else 1.0
        yield {"sketches": share, "count": float(result.sketches), "impact_share": mine, "of_all": of_all}
    if policy != DEFAULT_POLICY:
        for number, each in enumerate(build_buckets(case, cell.budget)):
            yield {
                "bucket": float(number),
                "score": each.score,
                "improved": each.improved,
                "expected": each.expected,
                "bucket_queries": each.queries,
            }


EXPERIMENT = OrderSketches()
