"""Which unseen pages to fetch first, so that those who search gain most? Impact08, section 6.2.

The pages of a web at the end of the span are cut in two (``lab.order_setting``): Dataset 1 has a random half uncrawled,
Dataset 2 gives the most important fifth of these to the crawler. A policy hears of the crawled pages and orders the
others, once. A budget is the share of the uncrawled pages that is fetched. Impact is how often a page is among the
first ten results of what people ask, among all pages, crawled or not.

Queries are of two kinds (``queries_from``): 0, the TREC Million Query file where VEDETTE_DATA has it, with frequencies
by Zipf's law over an order drawn by the seed; 2, two neighbouring words of pages drawn by the seed. A policy is told
all queries with their frequencies. ``default`` is ``impact``; ``bound-impact`` knows the impact of every page.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from vedette.lab.core.experiment import Cell, Measurements, Metric
from vedette.lab.core.registry import DEFAULT, load_policies
from vedette.lab.runs.order.run import BOUND, OWN_METRICS, build_rows


@dataclass(frozen=True, slots=True)
class Order:
    """The experiment."""

    name: str = "order"
    about: str = "Which unseen pages first? (budget: the share of the uncrawled pages that is fetched)"
    worlds: tuple[str, ...] = ("git", "live")  # made histories have no texts
    metrics: tuple[str, ...] = (*OWN_METRICS, "fetches")
    own: Mapping[str, Metric] = field(default_factory=lambda: dict(OWN_METRICS))
    budgets: tuple[float, ...] = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9)
    of_texts: tuple[str, ...] = ()
    figures: tuple[tuple[str, str], ...] = (("impact_share", "budget"),)

    @property
    def policies(self) -> tuple[str, ...]:
        """Ours, those of the order stage, and the bound."""
        return (DEFAULT, *load_policies("order"), BOUND)

    def run(self, cell: Cell) -> list[Measurements]:
        """All rows of a cell."""
        return build_rows(cell)


EXPERIMENT = Order()
