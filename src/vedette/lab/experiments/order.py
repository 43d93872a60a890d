"""Order experiment: which unseen pages to fetch first, so that search gains most? Impact08, section 6.2.

The pages of a web at the end of the span are split in two (``lab.runs.order.crawl_split``): in Dataset 1 a random half
is uncrawled, in Dataset 2 the most important fifth of these is crawled, too. A policy learns from the crawled pages and
orders the others, once. A budget is the share of the uncrawled pages that is fetched. Impact is how often a page is
among the first ten results of all queries, among all pages, crawled or not.

Queries are of two kinds (``queries_from``): 0, the TREC Million Query file if VEDETTE_DATA has it, with frequencies by
Zipf's law over an order drawn by the seed; 2, two neighboring words of pages drawn by the seed. A policy gets all
queries with their frequencies. ``default`` is ``impact``; ``bound-impact`` knows the impact of every page.
"""

from collections.abc import Mapping

from vedette.lab.core.experiment import Cell, Experiment, Measurements, Metric
from vedette.lab.core.registry import DEFAULT, load_policies
from vedette.lab.core.statistics import pearson
from vedette.lab.runs.order.run import (
    BOUND,
    Case,
    get_order,
    impact_share,
    list_query_sources,
    parse_fetch_count,
    run_case,
)

DATASETS = (1, 2)
OWN_METRICS: Mapping[str, Metric] = {
    "impact_share": Metric("impact of what was fetched, as a share of that of all uncrawled pages", "share", True),
    "of_best": Metric("the same as a share of the best order's at that point", "share", True),
    "uncrawled": Metric("pages to order"),
    "crawled": Metric("pages crawled before"),
    "asked": Metric("queries that some page answers"),
    "pearson": Metric("Pearson correlation of importance and impact, over the uncrawled pages"),
}


def _build_row(cell: Cell, kind: int, dataset: int) -> dict[str, float]:
    case = Case(cell.world, cell.span, kind, dataset, cell.seed)
    outcome = run_case(case)
    impact = outcome.impact
    fetched = parse_fetch_count(cell, len(impact))
    mine, best = (impact_share(get_order(policy, case), impact, fetched) for policy in (cell.policy, BOUND))
    return {
        "impact_share": mine,
        "of_best": mine / best if best else 1.0,
        "fetches": float(fetched),
        "uncrawled": float(len(impact)),
        "crawled": float(outcome.crawled),
        "asked": float(outcome.answered_queries),
        "pearson": pearson(outcome.importance, impact),
    }


class Order(Experiment):
    """The order experiment."""

    name = "order"
    about = "Which new pages first? (budget: the share of the uncrawled pages that is fetched)"
    worlds = ("git", "live")  # made histories have no texts
    metrics = (*OWN_METRICS, "fetches")
    own = OWN_METRICS
    budgets = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9)
    figures = (("impact_share", "budget"),)

    @property
    def policies(self) -> tuple[str, ...]:
        """Return the policies of the order experiment: the default, those of the order stage, and the bound."""
        return (DEFAULT, *load_policies("order"), BOUND)

    def run(self, cell: Cell) -> list[Measurements]:
        """Run the order experiment: a row for each kind of queries (``queries_from``) and dataset (``dataset``)."""
        return [
            {"queries_from": float(kind), "dataset": float(dataset), **_build_row(cell, kind, dataset)}
            for kind in list_query_sources()
            for dataset in DATASETS
        ]


EXPERIMENT = Order()
