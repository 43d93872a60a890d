"""Which sponsored results to show, so that most is earned and no budget is exceeded?

On made markets (``vedette.lab.worlds.ads_market``): each query shows as many ads as the budget says (slots), clicks are
charged at the bid as in Pandey08, chapter 6, and all policies meet the same queries and the same luck. ``bound-lp`` is
the fluid optimum of each day, ``bound-known`` the default with true rates. There are rows by ``day``, too.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from vedette.lab.core.experiment import Cell, Measured, Metric
from vedette.lab.runs.ads.rows import MEASURED, OWN, market_rows, names_of_policies
from vedette.lab.worlds.ads_market import MARKETS

__all__ = ["EXPERIMENT", "Sponsor"]


@dataclass(frozen=True, slots=True)
class Sponsor:
    """The experiment."""

    name: str = "sponsor"
    about: str = "Which sponsored results to show, with unknown click rates and daily budgets? (budget: slots)"
    worlds: tuple[str, ...] = ("market",)
    # Where nobody names a world.
    usual_worlds: tuple[str, ...] = tuple(f"market:{name}" for name in MARKETS)
    metrics: tuple[str, ...] = (*MEASURED, *OWN)
    own: Mapping[str, Metric] = field(default_factory=lambda: OWN)
    budgets: tuple[float, ...] = (1.0,)
    of_texts: tuple[str, ...] = ()
    figures: tuple[tuple[str, str], ...] = (("revenue", "day"),)

    @property
    def policies(self) -> tuple[str, ...]:
        """Those of sponsored choice, and the bounds."""
        return names_of_policies()

    def run(self, cell: Cell) -> list[Measured]:
        """One market, and each of its days."""
        return market_rows(cell)


EXPERIMENT = Sponsor()
