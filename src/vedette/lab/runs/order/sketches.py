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

from vedette.attention import among_first
from vedette.frontier.impact.query_need import Improvability, needy
from vedette.frontier.impact.sketches import Sketches
from vedette.lab.core.registry import policies
from vedette.lab.quality.workload import result_lists, slot_scores
from vedette.lab.runs.order.run import DRAWN, FILE, FIRST, OURS, Case, kinds, site_at, ties_of, worths_of
from vedette.lab.runs.order.setting import Cut, Site, cut_of, impacts
from vedette.policy import Floats, Ints, rng_for

__all__ = ["SHARES", "Bucket", "Half", "Kept", "buckets_of", "halves_of", "kept_of", "narrowed", "queries_from"]

SHARES = (1.0, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0003)
COMPARED = ("hybrid", OURS)
USUAL = 0.1  # of the uncrawled pages: what train fetches where improvability is learned for the others


class Half(NamedTuple):
    """One half of the queries: its cut, the impact of uncrawled pages on it, and the order of the printed hybrid."""

    queries: Ints
    cut: Cut
    impact: Floats
    order: Ints


class Kept(NamedTuple):
    """What came with few sketches: how many there were, and the order of each policy."""

    sketches: int
    orders: Mapping[str, Ints]


class Bucket(NamedTuple):
    """Queries of test with about the same mean score: how much they improved, and what train let expect."""

    score: float
    improved: float
    expected: float
    queries: float


def queries_from() -> int:
    """Real queries where they are there."""
    return FILE if FILE in kinds() else DRAWN


def _site(case: Case) -> Site:
    return site_at(case.world, case.span, case.kind, case.seed)


@lru_cache(maxsize=8)
def halves_of(case: Case) -> tuple[Half, Half]:
    """Train and test."""
    site = _site(case)
    lots = rng_for(case.seed, "lab/order/split").permutation(site.workload.queries)
    middle = site.workload.queries // 2
    train, test = (_half(site, case, np.sort(part)) for part in (lots[:middle], lots[middle:]))
    return train, test


def _half(site: Site, case: Case, queries: Ints) -> Half:
    frequency = np.zeros(site.workload.queries)
    frequency[queries] = site.workload.frequency[queries]
    whole = cut_of(site, case.dataset, case.seed, among_first(FIRST), frequency)
    cut = narrowed(whole, queries)
    impact = impacts(site, np.arange(site.pages), among_first(FIRST), frequency)[cut.uncrawled]
    return Half(queries, cut, impact, _orders(cut, case.seed, COMPARED[:1])[COMPARED[0]])


def narrowed(cut: Cut, queries: Ints) -> Cut:
    """The same cut with sketches for some queries only (ascending), numbered anew."""
    brought = cut.brought
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
    return cut._replace(brought=told, wanted=cut.wanted.some(queries))


def _orders(cut: Cut, seed: int, names: tuple[str, ...]) -> dict[str, Ints]:
    worths = worths_of([policies("order")[name] for name in names], cut, seed)
    ties = ties_of(seed, len(cut.uncrawled))
    return {name: np.lexsort((ties, -worth)) for name, worth in worths.items()}


def _improved(site: Site, half: Half, budget: float) -> tuple[Floats, Floats]:
    """The mean score of each query of a half before its hybrid fetches, and how many new first results it gets."""
    fetched = half.cut.uncrawled[half.order[: max(int(budget * len(half.order)), 1)]]
    lists = result_lists(site.workload, slot_scores(site.workload, np.arange(site.pages)), half.queries)
    is_new = np.isin(site.workload.slot_page[lists.slot], fetched) & (lists.rank <= FIRST)
    brought = half.cut.brought
    sketches = Sketches.empty(len(half.queries)).put(
        brought.found_query, brought.page[brought.found_row], brought.found_score
    )
    return sketches.mean(), np.bincount(lists.row[is_new], minlength=len(half.queries)).astype(np.float64)


def _learned(case: Case, budget: float) -> Improvability:
    means, improved = _improved(_site(case), halves_of(case)[0], budget)
    return Improvability(top=float(means.max()) or 1.0).after(means, improved)


@lru_cache(maxsize=16)
def buckets_of(case: Case, budget: float) -> tuple[Bucket, ...]:
    """Figure 7: what test shows, bucket by bucket, against the line that train taught."""
    rates = _learned(case, budget)
    means, improved = _improved(_site(case), halves_of(case)[1], budget)
    shown = Improvability(top=rates.top).after(means, improved)
    scores, gains, times = shown.points()
    told = rates.of(scores)
    rows = zip(scores.tolist(), gains.tolist(), told.tolist(), times.tolist(), strict=True)
    return tuple(Bucket(*row) for row in rows)


@lru_cache(maxsize=400)
def kept_of(case: Case, share: float) -> Kept:
    """Figures 8 and 9: the orders with sketches of the neediest queries of test only."""
    half = halves_of(case)[1]
    means, _ = _improved(_site(case), half, USUAL)
    chosen = needy(half.cut.wanted.frequency, _learned(case, USUAL).of(means), share)
    return Kept(len(chosen), _orders(narrowed(half.cut, chosen), case.seed, COMPARED))
