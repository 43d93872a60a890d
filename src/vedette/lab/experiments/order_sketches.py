"""How few queries may have sketches, and unseen pages are ordered as well all the same? Impact08, sections 6.3 and 6.4.

Queries are split in two by lot: one half teaches improvability, on the other the neediest have sketches, and all of its
queries judge (``lab.order_sketches``). A row for each dataset and share of sketches (``sketches``, figures 8 and 9),
with the impact of what was fetched as a share of that with all sketches. Rows with ``bucket`` are figure 7: queries of
about the same mean score, how many new first results they got, and what the other half let expect.

A budget is the share of the uncrawled pages that is fetched; queries are as in ``order``, real ones if they are there.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from vedette.lab.core.experiment import Cell, Measurements, Metric
from vedette.lab.core.registry import DEFAULT
from vedette.lab.runs.order.run import DATASETS, DEFAULT_POLICY, Case, impact_share, parse_fetch_count
from vedette.lab.runs.order.sketches import SHARES, build_buckets, choose_query_source, run_with_sketches, split_queries

OWN_METRICS: Mapping[str, Metric] = {
    "impact_share": Metric("impact of what was fetched, as a share of that of all uncrawled pages", "share", True),
    "of_all": Metric("the same as a share of what all sketches bring", "share", True),
    "count": Metric("queries that have sketches"),
    "score": Metric("mean score of the first ten results of the queries of this bucket, before"),
    "improved": Metric("new results among the first ten that a query of this bucket got"),
    "expected": Metric("what the other half of the queries let expect"),
    "bucket_queries": Metric("queries of this bucket"),
}


@dataclass(frozen=True, slots=True)
class OrderSketches:
    """The experiment."""

    name: str = "order-sketches"
    about: str = "How few queries need sketches? (budget: the share of the uncrawled pages that is fetched)"
    worlds: tuple[str, ...] = ("git", "live")
    metrics: tuple[str, ...] = tuple(OWN_METRICS)
    own: Mapping[str, Metric] = field(default_factory=lambda: dict(OWN_METRICS))
    policies: tuple[str, ...] = (DEFAULT, "hybrid")
    budgets: tuple[float, ...] = (0.05, 0.1, 0.3)
    of_texts: tuple[str, ...] = ()
    figures: tuple[tuple[str, str], ...] = (("impact_share", "sketches"),)

    def run(self, cell: Cell) -> list[Measurements]:
        """All rows of a cell."""
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
        kept = run_with_sketches(case, share)
        mine = impact_share(kept.orders[policy], half.impact, fetched)
        of_all = mine / whole if whole else 1.0
        yield {"sketches": share, "count": float(kept.sketches), "impact_share": mine, "of_all": of_all}
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
