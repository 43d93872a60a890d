"""Which results first, when nobody knows how good pages are?

Pandey08, chapter 5, in its communities and in its joke study with real votes. The budget is how many expected lives of
a page are measured; the joke study has its own length. Policies see likes, views and awareness, never quality.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from vedette.lab.core.experiment import Cell, Measurements, Metric
from vedette.lab.runs.ranking.rows import OWN_METRICS, build_rows, list_policy_names


@dataclass(frozen=True, slots=True)
class Ranking:
    """The experiment."""

    name: str = "ranking"
    about: str = "Which results first, while their quality is unknown? (budget: expected lives of a page, measured)"
    worlds: tuple[str, ...] = ("community", "jester")
    metrics: tuple[str, ...] = ("qpc", "tbp", *OWN_METRICS)
    own: Mapping[str, Metric] = field(default_factory=lambda: dict(OWN_METRICS))
    budgets: tuple[float, ...] = (1.5,)
    of_texts: tuple[str, ...] = ()
    figures: tuple[tuple[str, str], ...] = ()

    @property
    def policies(self) -> tuple[str, ...]:
        """Those of ``serve.rank.promote``, and promotion at the settings of the figures."""
        return list_policy_names()

    def run(self, cell: Cell) -> list[Measurements]:
        """One community or study under one policy."""
        return build_rows(cell)


EXPERIMENT = Ranking()
