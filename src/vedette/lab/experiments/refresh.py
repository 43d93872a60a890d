"""How current are copies under a budget of fetches? Refresh policies on whole histories; rules: ``lab.refresh_run``.

``default`` is what runs live: sources (feeds, sitemaps, home pages) at a fixed pace, everything else by ``nutch``.
``bound-known`` knows each page's rate of change in hindsight.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from vedette.lab.bounds.known_rates import bound_known
from vedette.lab.experiment import Cell, Measured, Metric
from vedette.lab.open_world import open_history
from vedette.lab.refresh_baselines import AtRandom, Uniform
from vedette.lab.refresh_run import DAY_S, Game, Plan, refresh
from vedette.lab.registry import policy_named
from vedette.lab.spans import span_s
from vedette.lab.worlds.history import History
from vedette.refresh.policies.fixed import Fixed
from vedette.refresh.policies.nutch import Nutch

__all__ = ["EXPERIMENT", "plan_of"]


def plan_of(policy: str, history: History, game: Game) -> Plan:
    """Who decides, by the name of a policy; one from elsewhere is a place (``package.module:Name``)."""
    match policy:
        case "default":
            return Plan(Nutch(), sources=Fixed())
        case "uniform":
            return Plan(Uniform())
        case "random":
            known = len(history.alive_at(game.begin_s))
            return Plan(AtRandom(mean_s=max(known, 1) / game.budget * DAY_S))
        case "bound-known":
            return Plan(bound_known(history, game.begin_s, game.end_s, game.budget))
        case _:
            return Plan(policy_named("refresh", policy))


@dataclass(frozen=True, slots=True)
class Refresh:
    """The question; budgets are fetches a day."""

    name: str = "refresh"
    about: str = "How current are copies under a budget of fetches a day?"
    worlds: tuple[str, ...] = ("git", "made", "live")
    metrics: tuple[str, ...] = ("freshness", "age", "changed_per_fetch", "fetches")
    policies: tuple[str, ...] = ("default", "nutch", "fixed", "uniform", "random", "bound-known")
    budgets: tuple[float, ...] = (50.0, 200.0, 1000.0)

    @property
    def own(self) -> Mapping[str, Metric]:
        """It has no numbers of its own."""
        return {}

    def run(self, cell: Cell) -> list[Measured]:
        """One row."""
        history = open_history(cell.world)
        begin_s, end_s = span_s(cell.span, history.begin_s, history.end_s)
        game = Game(begin_s, end_s, cell.budget, seed=cell.seed)
        outcome = refresh(history, plan_of(cell.policy, history, game), game)
        found = outcome.changed / outcome.fetches if outcome.fetches else float("nan")
        numbers = (outcome.freshness, outcome.age_d, found, float(outcome.fetches))
        return [dict(zip(self.metrics, numbers, strict=True))]


EXPERIMENT = Refresh()
