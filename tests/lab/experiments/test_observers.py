"""The observers experiment: observers pay off where the equations say so, and their time is not free."""

from itertools import pairwise

import numpy as np
import pytest

from vedette.errors import UsageError
from vedette.lab.core.experiment import Cell
from vedette.lab.experiments.observers import EXPERIMENT, allocate, compute_freshness, measure_greedy_loss
from vedette.lab.worlds.catalog import locate_world
from vedette.lab.worlds.regions import REGIONS, create_pages


def test_observers_help_distant_pages_at_equal_cost() -> None:
    """With more observers, large distant pages are observed more often in the same time, and are fresher."""
    rows = [EXPERIMENT.run(Cell("observers", "regions:small", f"observers-{count}", 0.1, 1))[0] for count in (0, 1, 4)]
    assert rows[0]["moved"] == 0
    for before, after in pairwise(rows):
        assert after["freshness_far"] > before["freshness_far"]
        assert after["freshness_all"] > before["freshness_all"]


def test_no_other_allocation_of_the_same_time_is_better() -> None:
    """Random allocations of a budget give less freshness than a common price."""
    rng = np.random.default_rng(1)
    rate, cost_s = rng.lognormal(0.0, 1.0, 30), rng.lognormal(0.0, 1.0, 30)
    best = allocate(rate, cost_s, 20.0)
    assert float((best * cost_s).sum()) == pytest.approx(20.0)
    for _ in range(200):
        other = best * rng.lognormal(0.0, 0.3, 30)
        other *= 20.0 / float((other * cost_s).sum())
        assert compute_freshness(rate, other).mean() <= compute_freshness(rate, best).mean() + 1e-9


def test_the_comparison_of_figure_4_agrees_with_its_switch_over() -> None:
    """A link slower than the computed switch-over favors the observer, a faster one does not."""
    for row in EXPERIMENT.run(Cell("observers", "regions:small", "figure-4", 0.1, 1)):
        assert (row["ratio"] < 1) == (row["latency_ms"] > row["switch_ms"])


def test_greedy_assignment_loses_little() -> None:
    """Where observers have room for half of the work, the greedy rule is never better than the best."""
    losses = [measure_greedy_loss(create_pages("small", seed), list(REGIONS[1:3]), seed) for seed in range(1, 4)]
    assert all(loss >= -1e-9 for loss in losses)


def test_an_unknown_web_is_refused() -> None:
    """The error lists the known ones."""
    with pytest.raises(UsageError, match="regions:small or regions:large"):
        locate_world("regions:mars")
