"""Joint experiment: how should refreshes, polls and first fetches share one budget? Rules: ``lab.runs.joint``.

``default`` is what runs live: all three compete at one price. ``thirds``, ``refresh-only`` and ``discover-only`` (half
for polls, half for first fetches) have fixed splits; ``bound-split`` is the best of a grid of fixed splits, found in
hindsight by running all of them. All rank each kind of fetch by the same rules, so that only the sharing differs.

Decisions are made twice a day, and all of the time counts, in twenty equal parts. The quality (eq. 4.5, at the end of
each day, for the queries of ``lab.quality.workload``) counts undiscovered pages as missing.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import product

import numpy as np

from vedette.errors import UsageError
from vedette.lab.core.experiment import Cell, Experiment, Measurements, Metric, Span, resolve_span
from vedette.lab.quality.search_quality import QualityTracker, measuring_times
from vedette.lab.quality.workload import QuerySet, load_query_set
from vedette.lab.runs.joint import KINDS, Batch, JointGame, Split, find_crawled, run_joint
from vedette.lab.worlds.catalog import open_history
from vedette.lab.worlds.history import History
from vedette.lab.worlds.history_views import cut_window
from vedette.timeutil import DAY_S

PERIODS = 20
# Shares of a split are multiples of 1 / GRID_STEPS.
GRID_STEPS = 6
THIRD = 1 / 3
# Fixed splits by the names of policies; all others compete at one price.
SPLITS: Mapping[str, Split] = {
    "thirds": Split(THIRD, THIRD, THIRD),
    "refresh-only": Split(1.0, 0.0, 0.0),
    "discover-only": Split(0.0, 0.5, 0.5),
}
OWN_METRICS: Mapping[str, Metric] = {
    "found": Metric("share of live pages that have a copy, averaged over time", "share", True),
    "current": Metric("share of live pages whose copy is current, averaged over time", "share", True),
    **{f"{kind}_share": Metric(f"share of fetches of the kind {kind}", "share") for kind in KINDS},
    "split_refresh": Metric("share of the budget that the split gives to refreshes", "share"),
    "split_look": Metric("share of the budget that the split gives to polls", "share"),
    "fetches_a_day": Metric("fetches made per day"),
    "price": Metric("price of a fetch, in ordinary changes seen a day earlier"),
}


class JointMonitor:
    """Monitor of a joint run that measures it at the end of each day, fetches of that moment included."""

    def __init__(self, history: History, asking: QuerySet, game: JointGame) -> None:
        self._history, self._game = history, game
        self._left_s = list(measuring_times(game.begin_s, game.end_s))[::-1]
        self._every = np.arange(history.pages)
        self._live = history.version_at(self._every, game.begin_s)
        self._copy = np.full(history.pages, -1)
        begun = find_crawled(history, game.begin_s, game.crawled_share)
        self._copy[begun] = self._live[begun]
        self._counted = self._copy.copy()
        self._quality = QualityTracker(asking.workload, self._copy, self._live)
        self._days: list[tuple[float, float, float]] = []
        self._batches: list[Batch] = []

    def on_batch(self, batch: Batch) -> None:
        """Account for a batch of the joint run; batches come in order of time."""
        while self._left_s and self._left_s[-1] < batch.now_s:
            self._measure(self._left_s.pop())
        self._copy[batch.pages] = batch.versions
        self._batches.append(batch)

    def compute_periods(self, count: int) -> list[dict[str, float]]:
        """Return the metrics of ``count`` parts of the joint run, once it has ended; no part is shorter than a day."""
        while self._left_s:
            self._measure(self._left_s.pop())
        count = min(count, len(self._days), len(self._batches))
        days = np.array_split(np.array(self._days), count)
        batches = [self._batches[part[0] : part[-1] + 1] for part in _split_indices(len(self._batches), count)]
        return [_compute_metrics(day, some, self._game.step_s) for day, some in zip(days, batches, strict=True)]

    def _measure(self, now_s: float) -> None:
        live = self._history.version_at(self._every, now_s)
        changed, fetched = np.flatnonzero(live != self._live), np.flatnonzero(self._copy != self._counted)
        self._quality.update_live(changed, live[changed])
        self._quality.update_copies(fetched, self._copy[fetched])
        self._live, self._counted = live, self._copy.copy()
        there = live >= 0
        same = self._history.digest[self._copy[there]] == self._history.digest[live[there]]
        held = self._copy[there] >= 0
        self._days.append((self._quality.relative_quality(), float(held.mean()), float((held & same).mean())))


def build_rows(history: History, asking: QuerySet, policy: str, game: JointGame) -> list[Measurements]:
    """Run a policy of the joint experiment and return its metrics, part by part."""
    split = find_best_split(history, asking, game) if policy == "bound-split" else SPLITS.get(policy)
    metrics = {} if split is None else {"split_refresh": split.refresh, "split_look": split.poll}
    return [part | metrics for part in _run_game(history, asking, game, split)]


def find_best_split(history: History, asking: QuerySet, game: JointGame) -> Split:
    """Find the fixed budget split with the best quality over the whole time, on a grid, in hindsight."""
    tried = {
        split: _mean_quality(_run_game(history, asking, game, split)) for split in (*_iter_splits(), SPLITS["thirds"])
    }
    return max(tried, key=lambda split: tried[split])


def _iter_splits() -> Iterator[Split]:
    """Yield the grid of budget splits; skip those that fetch nothing unseen, or nothing known."""
    for refresh, look in product(range(GRID_STEPS + 1), repeat=2):
        first = GRID_STEPS - refresh - look
        if 0 < first < GRID_STEPS:
            yield Split(refresh / GRID_STEPS, look / GRID_STEPS, first / GRID_STEPS)


def _run_game(history: History, asking: QuerySet, game: JointGame, split: Split | None) -> list[dict[str, float]]:
    watch = JointMonitor(history, asking, game)
    run_joint(history, asking, game, split, watch.on_batch)
    return watch.compute_periods(PERIODS)


def _mean_quality(parts: Sequence[Mapping[str, float]]) -> float:
    return float(np.mean([part["quality"] for part in parts]))


def _split_indices(many: int, count: int) -> list[np.ndarray[tuple[int], np.dtype[np.int64]]]:
    return [part for part in np.array_split(np.arange(many), count) if len(part)]


def _compute_metrics(
    days: np.ndarray[tuple[int, int], np.dtype[np.float64]], batches: Sequence[Batch], step_s: float
) -> dict[str, float]:
    quality, found, current = days.mean(axis=0).tolist()
    kinds = np.array([batch.kinds for batch in batches]).sum(axis=0)
    fetches = sum(len(batch.pages) for batch in batches)
    shares = {f"{kind}_share": float(many) / max(fetches, 1) for kind, many in zip(KINDS, kinds.tolist(), strict=True)}
    return {
        "quality": quality,
        "found": found,
        "current": current,
        "fetches_a_day": fetches / (len(batches) * step_s / DAY_S),
        "price": float(np.median([batch.price for batch in batches])),
        **shares,
    }


class Joint(Experiment):
    """The joint experiment; budgets are fetches per day, and a row is a part of the time."""

    name = "joint"
    about = "How should refreshes, polls and first fetches share one budget of fetches per day?"
    worlds = ("git", "live")
    own = OWN_METRICS
    metrics = ("quality", *OWN_METRICS)
    policies = ("default", *SPLITS, "bound-split")
    budgets = (10.0, 30.0, 100.0)

    def run(self, cell: Cell) -> list[Measurements]:
        """Run the joint experiment on a cell: a row for each part of the time."""
        history = _load_window(cell.world, cell.span)
        asking = load_query_set(history, history.begin_s, history.end_s, cell.seed)
        if asking is None:
            raise UsageError(f"no query matches any page of {cell.world} in this period; change --from and --to")
        game = JointGame(history.begin_s, history.end_s, cell.budget, seed=cell.seed)
        return [{"part": float(part), **row} for part, row in enumerate(build_rows(history, asking, cell.policy, game))]


@lru_cache(maxsize=1)  # cells of one world come one after the other
def _load_window(world: str, span: Span) -> History:
    history = open_history(world)
    return cut_window(history, *resolve_span(span, history.begin_s, history.end_s))


EXPERIMENT = Joint()
