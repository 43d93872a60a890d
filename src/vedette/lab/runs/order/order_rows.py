"""What an order of uncrawled pages is worth, in numbers: figures 2 and 5 of Impact08."""

from collections.abc import Mapping

import numpy as np

from vedette.errors import UsageError
from vedette.lab.core.experiment import Cell, Measured, Metric
from vedette.lab.runs.order.run import BOUND, Case, kinds, order_of, outcome_of
from vedette.policy import Floats, Ints

__all__ = ["DATASETS", "OWN", "accrued", "fetched_of", "rows_of"]

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
