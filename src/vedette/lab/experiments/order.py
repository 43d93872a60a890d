"""Order experiment: which unseen pages to fetch first, so that search gains most? Impact08, section 6.2.

The pages of a web at the end of the span are cut in two (``lab.runs.order.setting``): in Dataset 1 a random half is
uncrawled, in Dataset 2 the most important fifth of these is crawled, too. A policy learns from the crawled pages and
orders the others, once. A budget is the share of the uncrawled pages that is fetched. Impact is how often a page is
among the first ten results of all queries, among all pages, crawled or not.

Queries are of two kinds (``queries_from``): 0, the TREC Million Query file where VEDETTE_DATA has it, with frequencies
by Zipf's law over an order drawn by the seed; 2, two neighbouring words of pages drawn by the seed. A policy gets all
queries with their frequencies. ``default`` is ``impact``; ``bound-impact`` knows the impact of every page.
"""

from vedette.lab.core.experiment import Cell, Experiment, Measurements
from vedette.lab.core.registry import DEFAULT, load_policies
from vedette.lab.runs.order.run import BOUND, OWN_METRICS, build_rows


class Order(Experiment):
    """The experiment."""

    name = "order"
    about = "Which unseen pages first? (budget: the share of the uncrawled pages that is fetched)"
    worlds = ("git", "live")  # made histories have no texts
    metrics = (*OWN_METRICS, "fetches")
    own = OWN_METRICS
    budgets = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9)
    figures = (("impact_share", "budget"),)

    @property
    def policies(self) -> tuple[str, ...]:
        """Ours, those of the order stage, and the bound."""
        return (DEFAULT, *load_policies("order"), BOUND)

    def run(self, cell: Cell) -> list[Measurements]:
        """All rows of a cell."""
        return build_rows(cell)


EXPERIMENT = Order()
