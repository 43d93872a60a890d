"""The scale experiment: needs grow with pages, and one large machine replaces several small ones."""

import pytest

from vedette.errors import UsageError
from vedette.lab.core.experiment import Cell
from vedette.lab.experiments.scale import EXPERIMENT, LOST_SHARE, find_limits, find_lost_share
from vedette.lab.worlds.catalog import locate_world
from vedette.lab.worlds.machines import MACHINES


def test_needs_grow_with_pages_and_shrink_with_machines() -> None:
    """Ten times as many pages need about ten times as many small machines, but fewer large ones."""
    small, more, large = (
        EXPERIMENT.run(Cell("scale", f"machines:{name}", "default", pages, 1))[0]
        for name, pages in (("small", 2e9), ("small", 20e9), ("large", 20e9))
    )
    assert 8 * small["nodes"] < more["nodes"] < 12 * small["nodes"]
    assert 1 <= large["nodes"] < more["nodes"]
    assert set(more) == set(EXPERIMENT.metrics)


def test_the_delays_of_large_hosts_are_a_limit() -> None:
    """Below the limit, nearly every page can be fetched in a month; above it, fewer."""
    limit = find_limits(MACHINES["small"])["limit_delays"]
    assert find_lost_share(0.9 * limit) < LOST_SHARE < find_lost_share(1.1 * limit)


def test_an_unknown_machine_is_refused() -> None:
    """The error lists the known ones."""
    with pytest.raises(UsageError, match="machines:small or machines:large"):
        locate_world("machines:tiny")
