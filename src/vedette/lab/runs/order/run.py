"""Order of first fetches: run order policies on a half-crawled web, and measure the impact.

A *case* is a web split in two (``crawl_split``), and its queries. The policy learns the gains and scores of the crawled
pages, then estimates the worth of each uncrawled page, once: a crawl cycle as in Impact08. Ties are in an order drawn
by the seed, the same for every policy.

The orders of all policies are computed together, once for a case, since cells come in any order.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from vedette.attention import step_visibility
from vedette.errors import UsageError
from vedette.frontier.impact.estimator import ImpactModel, ImpactSettings
from vedette.frontier.impact.extra_trees import fit_forest
from vedette.lab.core.experiment import Cell, Span, resolve_span
from vedette.lab.core.registry import DEFAULT, find_policy, load_policies
from vedette.lab.quality.query_files import QUERY_FILES, Queries, find_query_file, read_query_file
from vedette.lab.quality.workload import draw_queries
from vedette.lab.runs.order.crawl_split import (
    Anchor,
    CrawlSplit,
    Site,
    build_site,
    compute_impacts,
    read_anchors,
    split_site,
)
from vedette.lab.runs.web_snapshot import WebSnapshot, take_snapshot
from vedette.lab.worlds.catalog import open_history
from vedette.policy import Floats, Ints, rng_for

TOP_RESULTS = 10  # results that count: the paper's K
FROM_FILE, FROM_PAGES = 0, 2  # as the experiment "importance" numbers them
BOUND = "bound-impact"
DEFAULT_POLICY = "impact"  # the meaning of ``default`` here
SITE_CACHE_SIZE, OUTCOME_CACHE_SIZE = 2, 400


class Case(NamedTuple):
    """A case of the order simulation: which web, which queries, which split."""

    world: str
    span: Span
    query_source: int
    dataset: int
    seed: int


def list_query_sources() -> tuple[int, ...]:
    """List the query sources of the order simulation: the file of real queries if present, and the pages themselves."""
    return (FROM_FILE, FROM_PAGES) if find_query_file(QUERY_FILES[0]) else (FROM_PAGES,)


@lru_cache(maxsize=SITE_CACHE_SIZE)
def _load_web(world: str, span: Span) -> tuple[WebSnapshot, tuple[Anchor, ...]]:
    history = open_history(world)
    seen = take_snapshot(history, resolve_span(span, history.begin_s, history.end_s)[1])
    if seen.web.pages < 2 * TOP_RESULTS:
        raise UsageError(f"{world}: too few pages exist at the end of the period; use an earlier --to")
    return seen, tuple(read_anchors(world, seen.web))


@lru_cache(maxsize=SITE_CACHE_SIZE)
def load_site(world: str, span: Span, kind: int, seed: int) -> Site:
    """Load a site with its queries for the order simulation; with a query file the seed draws only frequencies."""
    seen, anchors = _load_web(world, span)
    if kind == FROM_PAGES:
        return build_site(seen, anchors, draw_queries(seen.web, np.arange(seen.web.pages), seed))
    whole = _load_file_site(world, span)
    path = find_query_file(QUERY_FILES[0])
    assert path is not None, "there are such queries"
    drawn = read_query_file(path, seed)
    frequency = dict(zip(drawn.texts, drawn.frequency.tolist(), strict=True))
    return _with_frequencies(whole, np.array([frequency[text] for text in whole.queries.texts]))


@lru_cache(maxsize=1)
def _load_file_site(world: str, span: Span) -> Site:
    seen, anchors = _load_web(world, span)
    path = find_query_file(QUERY_FILES[0])
    assert path is not None, "there are such queries"
    return build_site(seen, anchors, read_query_file(path))


def _with_frequencies(site: Site, frequency: Floats) -> Site:
    queries: Queries = replace(site.queries, frequency=frequency)
    return site._replace(queries=queries, workload=replace(site.workload, frequency=frequency))


class OrderOutcome(NamedTuple):
    """Outcome of an order simulation case: each policy's fetch order, and the impact of the uncrawled pages."""

    orders: Mapping[str, Ints]
    impact: Floats
    importance: Floats
    crawled: int
    answered_queries: int


@lru_cache(maxsize=OUTCOME_CACHE_SIZE)
def run_case(case: Case) -> OrderOutcome:
    """Run all order policies of the package on a case at once, since most of their models are shared."""
    site = load_site(case.world, case.span, case.query_source, case.seed)
    cut = split_site(site, case.dataset, case.seed, step_visibility(TOP_RESULTS), site.workload.frequency)
    impact = compute_impacts(site, np.arange(site.pages), step_visibility(TOP_RESULTS))[cut.uncrawled]
    ties = draw_tie_order(case.seed, len(impact))
    worths = compute_worths(list(load_policies("order").values()), cut, case.seed)
    orders = {name: np.lexsort((ties, -worth)) for name, worth in worths.items()}
    orders |= {DEFAULT: orders[DEFAULT_POLICY], BOUND: np.lexsort((ties, -impact))}
    answered = int(np.count_nonzero(np.diff(site.workload.slot_start)))
    return OrderOutcome(orders, impact, cut.unseen.importance, len(cut.crawled), answered)


def compute_worths(chosen: Sequence[Any], cut: CrawlSplit, seed: int) -> dict[str, Floats]:
    """Compute the worth of uncrawled pages by each order policy; policies that share an impact model train it once."""
    asking = ImpactSettings(cut.query_terms, fit_forest, seed)
    shared: ImpactModel | None = None
    worths = {}
    for policy in chosen:
        state = policy.start(asking)
        is_ours = isinstance(state, ImpactModel) and state.settings is asking
        if not is_ours or shared is None:
            state = policy.observe(state, cut.crawled_facts, 0.0)
        else:
            state = shared
        shared = state if is_ours else shared
        worths[policy.name] = policy.worth(state, cut.unseen, 0.0, rng_for(seed, f"order/{policy.name}"))
    return worths


def get_order(policy: str, case: Case) -> Ints:
    """Return the order in which a policy, which may be a plug-in, fetches the uncrawled pages, as rows."""
    orders = run_case(case).orders
    return orders[policy] if policy in orders else _order_by_plugin(policy, case)


@lru_cache(maxsize=OUTCOME_CACHE_SIZE)
def _order_by_plugin(policy: str, case: Case) -> Ints:
    site = load_site(case.world, case.span, case.query_source, case.seed)
    cut = split_site(site, case.dataset, case.seed, step_visibility(TOP_RESULTS), site.workload.frequency)
    chosen = find_policy("order", policy)
    worth = compute_worths([chosen], cut, case.seed)[chosen.name]
    return np.lexsort((draw_tie_order(case.seed, len(worth)), -worth))


def draw_tie_order(seed: int, pages: int) -> Ints:
    """Draw the order in which uncrawled pages of equal worth are fetched."""
    return rng_for(seed, "lab/order/ties").permutation(pages)


def parse_fetch_count(cell: Cell, pages: int) -> int:
    """Parse a cell's budget as a number of first fetches: a share of the uncrawled pages, at least one."""
    if not 0 < cell.budget <= 1:
        raise UsageError(f"the budget for {cell.experiment} must be a share of the uncrawled pages: above 0, at most 1")
    return max(int(cell.budget * pages), 1)


def impact_share(order: Ints, impact: Floats, fetched: int) -> float:
    """Compute the share of all impact that the first fetched pages of an order have.

    >>> impact_share(np.array([2, 0, 1]), np.array([3.0, 1.0, 4.0]), 2)
    0.875
    """
    whole = float(impact.sum())
    return float(impact[order[:fetched]].sum()) / whole if whole else 1.0
