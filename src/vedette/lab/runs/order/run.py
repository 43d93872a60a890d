"""Orders uncrawled pages by a policy: what it is told, the order that follows, and what that order is worth.

A *case* is a web cut in two (``order_setting``), and what people ask. The policy hears what the crawled pages brought
and how they score, then says what each uncrawled page is worth, once: a crawl cycle as in Impact08. What is worth the
same comes in an order that the seed draws, for every policy the same.

The orders of all policies are worked out together, once for a case, as cells come in any order.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from vedette.adapters.regression_trees import grown
from vedette.attention import among_first
from vedette.errors import UsageError
from vedette.frontier.impact.estimator import Asking, Expectation
from vedette.lab.core.experiment import Cell, Measured, Metric, Span
from vedette.lab.core.registry import DEFAULT, policies, policy_named
from vedette.lab.core.spans import span_s
from vedette.lab.experiments.importance import FILES, Seen, seen_at
from vedette.lab.quality.query_files import Queries, read_query_file
from vedette.lab.quality.workload import drawn_queries
from vedette.lab.runs.order.setting import Anchor, Cut, Site, anchors_of, cut_of, impacts, site_of
from vedette.lab.worlds.catalog import open_history
from vedette.policy import Floats, Ints, rng_for

__all__ = [
    "BOUND",
    "DATASETS",
    "DRAWN",
    "FILE",
    "FIRST",
    "OURS",
    "OWN",
    "Case",
    "Outcome",
    "accrued",
    "fetched_of",
    "kinds",
    "order_of",
    "outcome_of",
    "rows_of",
    "site_at",
    "ties_of",
    "worths_of",
]

FIRST = 10  # results that count: the paper's K
FILE, DRAWN = 0, 2  # as the experiment "importance" numbers them
BOUND = "bound-impact"
OURS = "impact"  # what ``default`` stands for here
SITES, OUTCOMES = 2, 400


class Case(NamedTuple):
    """Which web, asked what, cut how."""

    world: str
    span: Span
    kind: int
    dataset: int
    seed: int


def kinds() -> tuple[int, ...]:
    """Where queries come from: the file of real ones where it is there, and the pages themselves."""
    return (FILE, DRAWN) if _file() else (DRAWN,)


def _file() -> Path | None:
    folder = os.environ.get("VEDETTE_DATA")
    path = Path(folder or "") / "queries" / FILES[0]
    return path if folder and path.is_file() else None


@lru_cache(maxsize=SITES)
def _web(world: str, span: Span) -> tuple[Seen, tuple[Anchor, ...]]:
    history = open_history(world)
    seen = seen_at(history, span_s(span, history.begin_s, history.end_s)[1])
    if seen.web.pages < 2 * FIRST:
        raise UsageError(f"{world}: hardly any page lives at the end of the span; write an earlier --to")
    return seen, tuple(anchors_of(world, seen.web))


@lru_cache(maxsize=SITES)
def site_at(world: str, span: Span, kind: int, seed: int) -> Site:
    """A web with what is asked of it. Of a file the seed draws frequencies only, so most of it is worked out once."""
    seen, anchors = _web(world, span)
    if kind == DRAWN:
        return site_of(seen, anchors, drawn_queries(seen.web, np.arange(seen.web.pages), seed))
    whole = _of_file(world, span)
    path = _file()
    assert path is not None, "there are such queries"
    drawn = read_query_file(path, seed)
    frequency = dict(zip(drawn.texts, drawn.frequency.tolist(), strict=True))
    return _asked(whole, np.array([frequency[text] for text in whole.queries.texts]))


@lru_cache(maxsize=1)
def _of_file(world: str, span: Span) -> Site:
    seen, anchors = _web(world, span)
    path = _file()
    assert path is not None, "there are such queries"
    return site_of(seen, anchors, read_query_file(path))


def _asked(site: Site, frequency: Floats) -> Site:
    queries: Queries = replace(site.queries, frequency=frequency)
    return site._replace(queries=queries, workload=replace(site.workload, frequency=frequency))


class Outcome(NamedTuple):
    """What came of a case: the order of each policy, and what there was to order."""

    orders: Mapping[str, Ints]
    impact: Floats
    importance: Floats
    crawled: int
    asked: int


@lru_cache(maxsize=OUTCOMES)
def outcome_of(case: Case) -> Outcome:
    """The orders of all policies of the package at once: what they learn is mostly the same, and takes the time."""
    site = site_at(case.world, case.span, case.kind, case.seed)
    cut = cut_of(site, case.dataset, case.seed, among_first(FIRST), site.workload.frequency)
    impact = impacts(site, np.arange(site.pages), among_first(FIRST))[cut.uncrawled]
    ties = ties_of(case.seed, len(impact))
    worths = worths_of(list(policies("order").values()), cut, case.seed)
    orders = {name: np.lexsort((ties, -worth)) for name, worth in worths.items()}
    orders |= {DEFAULT: orders[OURS], BOUND: np.lexsort((ties, -impact))}
    answered = int(np.count_nonzero(np.diff(site.workload.slot_start)))
    return Outcome(orders, impact, cut.unseen.importance, len(cut.crawled), answered)


def worths_of(chosen: Sequence[Any], cut: Cut, seed: int) -> dict[str, Floats]:
    """What each policy says that uncrawled pages are worth. Those that learn the same from the same are told once."""
    asking = Asking(cut.wanted, grown, seed)
    shared: Expectation | None = None
    worths = {}
    for policy in chosen:
        state = policy.start(asking)
        is_ours = isinstance(state, Expectation) and state.asking is asking
        if not is_ours or shared is None:
            state = policy.observe(state, cut.brought, 0.0)
        else:
            state = shared
        shared = state if is_ours else shared
        worths[policy.name] = policy.worth(state, cut.unseen, 0.0, rng_for(seed, f"order/{policy.name}"))
    return worths


def order_of(policy: str, case: Case) -> Ints:
    """The rows of the uncrawled pages in the order in which a policy fetches them; it may be one from elsewhere."""
    known = outcome_of(case).orders
    return known[policy] if policy in known else _order_elsewhere(policy, case)


@lru_cache(maxsize=OUTCOMES)
def _order_elsewhere(policy: str, case: Case) -> Ints:
    site = site_at(case.world, case.span, case.kind, case.seed)
    cut = cut_of(site, case.dataset, case.seed, among_first(FIRST), site.workload.frequency)
    chosen = policy_named("order", policy)
    worth = worths_of([chosen], cut, case.seed)[chosen.name]
    return np.lexsort((ties_of(case.seed, len(worth)), -worth))


def ties_of(seed: int, pages: int) -> Ints:
    """The order in which pages come that are worth the same."""
    return rng_for(seed, "lab/order/ties").permutation(pages)


DATASETS = (1, 2)
OWN: Mapping[str, Metric] = {
    "impact_share": Metric("impact of what was fetched, as a share of that of all uncrawled pages", "share", True),
    "of_best": Metric("the same as a share of what the best order has by then", "share", True),
    "uncrawled": Metric("pages that are to be ordered"),
    "crawled": Metric("pages that were there before"),
    "asked": Metric("queries that some page answers"),
    "pearson": Metric("plain correlation of importance and impact, over the uncrawled pages"),
}


def rows_of(cell: Cell) -> list[Measured]:
    """A row for each kind of queries (``queries_from``) and each of both datasets (``dataset``)."""
    return [
        {"queries_from": float(kind), "dataset": float(dataset), **_row(cell, kind, dataset)}
        for kind in kinds()
        for dataset in DATASETS
    ]


def _row(cell: Cell, kind: int, dataset: int) -> dict[str, float]:
    case = Case(cell.world, cell.span, kind, dataset, cell.seed)
    outcome = outcome_of(case)
    impact = outcome.impact
    fetched = fetched_of(cell, len(impact))
    mine, best = (accrued(order_of(policy, case), impact, fetched) for policy in (cell.policy, BOUND))
    return {
        "impact_share": mine,
        "of_best": mine / best if best else 1.0,
        "fetches": float(fetched),
        "uncrawled": float(len(impact)),
        "crawled": float(outcome.crawled),
        "asked": float(outcome.asked),
        "pearson": _pearson(outcome.importance, impact),
    }


def fetched_of(cell: Cell, pages: int) -> int:
    """The budget of a cell: a share of the uncrawled pages, at least one of them."""
    if not 0 < cell.budget <= 1:
        raise UsageError(f"a budget of {cell.experiment} is a share of the uncrawled pages: above 0, at most 1")
    return max(int(cell.budget * pages), 1)


def accrued(order: Ints, impact: Floats, fetched: int) -> float:
    """The share of all impact that the first pages of an order have.

    >>> accrued(np.array([2, 0, 1]), np.array([3.0, 1.0, 4.0]), 2)
    0.875
    """
    whole = float(impact.sum())
    return float(impact[order[:fetched]].sum()) / whole if whole else 1.0


def _pearson(one: Floats, other: Floats) -> float:
    one, other = one - one.mean(), other - other.mean()
    spread = float(np.sqrt((one @ one) * (other @ other)))
    return float(one @ other) / spread if spread else np.nan
