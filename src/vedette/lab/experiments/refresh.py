"""How current are copies under a budget of fetches? Refresh policies on whole histories; rules: ``lab.refresh_run``.

``default`` is what runs live: sources (feeds, sitemaps, home pages) at a fixed pace, everything else by ``nutch``.
``bound-known`` knows each page's rate of change in hindsight. ``bound-delta-q`` knows what every page says now, and
fetches what does most for search.

Where pages have texts, there is the quality of the repository, too: eq. 4.5 at the end of each day, averaged
(``lab.quality_over_time``), for queries and frequencies as ``lab.asking`` has them. ``queries_from`` says which: 0, the
TREC Million Query file with frequencies by Zipf's law; 1, drawn from the world's own pages, as often as drawn.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from vedette.errors import UsageError
from vedette.lab.asking import Asking, asking_of
from vedette.lab.bounds.delta_q import BoundDeltaQ
from vedette.lab.bounds.known_rates import bound_known
from vedette.lab.experiment import Cell, Measured, Metric
from vedette.lab.open_world import open_history
from vedette.lab.quality_over_time import QualityOverTime
from vedette.lab.refresh_baselines import AtRandom, Uniform
from vedette.lab.refresh_run import DAY_S, Game, Outcome, Plan, refresh
from vedette.lab.registry import policy_named
from vedette.lab.spans import span_s
from vedette.lab.worlds.history import History
from vedette.refresh.policies.fixed import Fixed
from vedette.refresh.policies.nutch import Nutch

__all__ = ["EXPERIMENT", "plan_of", "row_of"]

OWN: Mapping[str, Metric] = {
    "queries": Metric("queries that are asked, for the quality"),
    "queries_from": Metric("0: the TREC Million Query file, by Zipf's law; 1: drawn from the world's own pages"),
}


def plan_of(policy: str, history: History, game: Game, asking: Asking | None = None) -> Plan:
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
        case "bound-delta-q":
            return Plan(Uniform(), seer=_bound_delta_q(history, asking))
        case _:
            return Plan(policy_named("refresh", policy))


def _bound_delta_q(history: History, asking: Asking | None) -> BoundDeltaQ:
    if asking is None:
        raise UsageError(
            f"bound-delta-q asks what pages say, and those of {history.name} have no texts that a query finds; "
            "put it to a world git:PATH or live:FOLDER, or write --policies without it"
        )
    return BoundDeltaQ(history, asking.workload)


def row_of(history: History, policy: str, game: Game, asking: Asking | None) -> Measured:
    """Play a game and tell its numbers; without anything asked there is no quality."""
    plan = plan_of(policy, history, game, asking)
    if asking is None:
        return _numbers(refresh(history, plan, game))
    watch = QualityOverTime(history, asking.workload, game.begin_s, game.end_s)
    numbers = _numbers(refresh(history, plan, game, watch.decided))
    return numbers | {
        "quality": watch.mean(),
        "queries": float(asking.workload.queries),
        "queries_from": float(asking.queries_from),
    }


def _numbers(outcome: Outcome) -> dict[str, float]:
    return {
        "freshness": outcome.freshness,
        "age": outcome.age_d,
        "changed_per_fetch": outcome.changed / outcome.fetches if outcome.fetches else float("nan"),
        "fetches": float(outcome.fetches),
    }


@dataclass(frozen=True, slots=True)
class Refresh:
    """The question; budgets are fetches a day."""

    name: str = "refresh"
    about: str = "How current are copies under a budget of fetches a day?"
    worlds: tuple[str, ...] = ("git", "made", "live")
    metrics: tuple[str, ...] = ("freshness", "age", "quality", "changed_per_fetch", "fetches", *OWN)
    policies: tuple[str, ...] = ("default", "nutch", "fixed", "uniform", "random", "bound-known", "bound-delta-q")
    budgets: tuple[float, ...] = (50.0, 200.0, 1000.0)
    of_texts: tuple[str, ...] = ("bound-delta-q",)
    figures: tuple[tuple[str, str], ...] = ()

    @property
    def own(self) -> Mapping[str, Metric]:
        """What the quality was measured with."""
        return OWN

    def run(self, cell: Cell) -> list[Measured]:
        """One row."""
        history = open_history(cell.world)
        begin_s, end_s = span_s(cell.span, history.begin_s, history.end_s)
        game = Game(begin_s, end_s, cell.budget, seed=cell.seed)
        return [row_of(history, cell.policy, game, asking_of(history, begin_s, end_s, cell.seed))]


EXPERIMENT = Refresh()
