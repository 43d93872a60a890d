"""Which sponsored results to show, so that most is earned and no budget is exceeded?

On made markets (``vedette.lab.worlds.ads_market``): each query shows as many ads as the budget says (slots), clicks are
charged at the bid as in Pandey08, chapter 6, and all policies meet the same queries and the same luck. ``bound-lp`` is
the fluid optimum of each day, ``bound-known`` the default with true rates. There are rows by ``day``, too.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from vedette.lab.core.experiment import Cell, Measurements, Metric
from vedette.lab.runs.ads.rows import METRIC_NAMES, OWN_METRICS, build_market_rows, list_policy_names
from vedette.lab.worlds.ads_market import AD_MARKETS


@dataclass(frozen=True, slots=True)
class Ads:
    """The experiment."""

    name: str = "sponsor"
    about: str = "Which sponsored results to show, with unknown click rates and daily budgets? (budget: slots)"
    worlds: tuple[str, ...] = ("market",)
    # Where nobody names a world.
    usual_worlds: tuple[str, ...] = tuple(f"market:{name}" for name in AD_MARKETS)
    metrics: tuple[str, ...] = (*METRIC_NAMES, *OWN_METRICS)
    own: Mapping[str, Metric] = field(default_factory=lambda: OWN_METRICS)
    budgets: tuple[float, ...] = (1.0,)
    of_texts: tuple[str, ...] = ()
    figures: tuple[tuple[str, str], ...] = (("revenue", "day"),)

    @property
    def policies(self) -> tuple[str, ...]:
        """Those of sponsored choice, and the bounds."""
        return list_policy_names()

    def run(self, cell: Cell) -> list[Measurements]:
        """One market, and each of its days."""
        return build_market_rows(cell)


EXPERIMENT = Ads()
