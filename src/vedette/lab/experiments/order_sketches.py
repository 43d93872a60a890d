"""How few queries may have sketches, and unseen pages are ordered as well all the same? Impact08, sections 6.3 and 6.4.

Queries are split in two by lot: one half teaches improvability, on the other the neediest have sketches, and all of its
queries judge (``lab.order_sketches``). A row for each dataset and share of sketches (``sketches``, figures 8 and 9),
with the impact of what was fetched as a share of that with all sketches. Rows with ``bucket`` are figure 7: queries of
about the same mean score, how many new first results they got, and what the other half let expect.

A budget is the share of the uncrawled pages that is fetched; queries are as in ``order``, real ones if they are there.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from vedette.lab.core.experiment import Cell, Measured, Metric
from vedette.lab.core.registry import DEFAULT
from vedette.lab.runs.order.run import DATASETS, OURS, Case, accrued, fetched_of
from vedette.lab.runs.order.sketches import SHARES, buckets_of, halves_of, kept_of, queries_from

__all__ = ["EXPERIMENT"]

OWN: Mapping[str, Metric] = {
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
    metrics: tuple[str, ...] = tuple(OWN)
    own: Mapping[str, Metric] = field(default_factory=lambda: dict(OWN))
    policies: tuple[str, ...] = (DEFAULT, "hybrid")
    budgets: tuple[float, ...] = (0.05, 0.1, 0.3)
    of_texts: tuple[str, ...] = ()
    figures: tuple[tuple[str, str], ...] = (("impact_share", "sketches"),)

    def run(self, cell: Cell) -> list[Measured]:
        """All rows of a cell."""
        kind = queries_from()
        cases = [(dataset, Case(cell.world, cell.span, kind, dataset, cell.seed)) for dataset in DATASETS]
        return [
            {"queries_from": float(kind), "dataset": float(dataset), **row}
            for dataset, case in cases
            for row in _rows(cell, case)
        ]


def _rows(cell: Cell, case: Case) -> Iterator[dict[str, float]]:
    policy = OURS if cell.policy == DEFAULT else cell.policy
    half = halves_of(case)[1]
    fetched = fetched_of(cell, len(half.impact))
    whole = accrued(kept_of(case, SHARES[0]).orders[policy], half.impact, fetched)
    for share in SHARES:
        kept = kept_of(case, share)
        mine = accrued(kept.orders[policy], half.impact, fetched)
        of_all = mine / whole if whole else 1.0
        yield {"sketches": share, "count": float(kept.sketches), "impact_share": mine, "of_all": of_all}
    if policy != OURS:
        for number, each in enumerate(buckets_of(case, cell.budget)):
            yield {
                "bucket": float(number),
                "score": each.score,
                "improved": each.improved,
                "expected": each.expected,
                "bucket_queries": each.queries,
            }


EXPERIMENT = OrderSketches()
