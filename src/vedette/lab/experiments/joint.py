"""One budget for refreshes, looks and first fetches: who should get how much? Rules: ``lab.joint_run``.

``default`` is what runs live: all three ask at one price. ``thirds``, ``refresh-only`` and ``discover-only`` (half for
looks, half for first fetches) have fixed splits; ``bound-split`` is the best of a grid of fixed splits, found in
hindsight by playing all of them. All rank each kind of fetch by the same rules, so that only the sharing differs.

Decisions are made twice a day, and all of the time counts, in twenty equal parts. The quality (eq. 4.5, at the end of
each day, for queries as ``lab.asking`` has them) counts what nobody has discovered as missing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from vedette.errors import UsageError
from vedette.lab.core.experiment import Cell, Measurements, Metric, Span
from vedette.lab.core.spans import resolve_span
from vedette.lab.quality.workload import load_query_set
from vedette.lab.runs.joint.rows import OWN_METRICS, SPLITS, build_rows
from vedette.lab.runs.joint.run import JointGame
from vedette.lab.worlds.catalog import open_history
from vedette.lab.worlds.history import History
from vedette.lab.worlds.history_views import cut_window


@dataclass(frozen=True, slots=True)
class Joint:
    """The question; budgets are fetches a day. A row is a part of the time."""

    name: str = "joint"
    about: str = "How should refreshes, looks and first fetches share one budget of fetches a day?"
    worlds: tuple[str, ...] = ("git", "live")
    metrics: tuple[str, ...] = ("quality", *OWN_METRICS)
    policies: tuple[str, ...] = ("default", *SPLITS, "bound-split")
    budgets: tuple[float, ...] = (10.0, 30.0, 100.0)
    of_texts: tuple[str, ...] = ()
    figures: tuple[tuple[str, str], ...] = ()

    @property
    def own(self) -> Mapping[str, Metric]:
        """Where fetches went, and how much was found."""
        return OWN_METRICS

    def run(self, cell: Cell) -> list[Measurements]:
        """A row for each part of the time."""
        history = _load_window(cell.world, cell.span)
        asking = load_query_set(history, history.begin_s, history.end_s, cell.seed)
        if asking is None:
            raise UsageError(
                f"{cell.world} has no texts in this time that a query finds; write another --from and --to"
            )
        game = JointGame(history.begin_s, history.end_s, cell.budget, seed=cell.seed)
        return [{"part": float(part), **row} for part, row in enumerate(build_rows(history, asking, cell.policy, game))]


@lru_cache(maxsize=1)  # cells of one world come one after the other
def _load_window(world: str, span: Span) -> History:
    history = open_history(world)
    return cut_window(history, *resolve_span(span, history.begin_s, history.end_s))


EXPERIMENT = Joint()
