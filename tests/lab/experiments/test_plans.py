"""The experiment "plans": days of a history, liveness at any cost, and the gain from planning ahead."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.lab.histories import P, V, web

from vedette.errors import UsageError
from vedette.lab.baselines.models.age_chain import memoryless_chain
from vedette.lab.core.experiment import Cell
from vedette.lab.experiments.plans import (
    EXPERIMENT,
    PLAYED_DAYS,
    Chains,
    PagesInDays,
    Turn,
    choose_by_plan,
    choose_by_rate,
    fit_chains,
    play,
    read_days,
)
from vedette.policy import Floats, Ints, rng_for

DAY_S = 86_400.0


def a_turn(waited: Ints, budget: float, bound: float = np.inf) -> Turn:
    """Return a turn in which only the waiting times of the pages are known."""
    return Turn(waited, waited, budget, Chains(np.zeros(len(waited), np.int64), (memoryless_chain(0.5, 0),)), bound)


def time_to_find(order: Ints, chance: Floats, time: Floats) -> float:
    """T1 + (1 - P1) [T2 + (1 - P2) [ … ]]: eq. 35 multiplies T1 by P1, as if a wasted fetch took no time."""
    left = np.append(1.0, np.cumprod(1 - chance[order])[:-1])
    return float(left @ time[order])


@given(st.lists(st.tuples(st.floats(0.01, 1), st.floats(0.1, 10)), min_size=1, max_size=4))
def test_chance_over_time_finds_a_change_soonest(rows: list[tuple[float, float]]) -> None:
    """Eq. 36: no other order has a shorter expected time to the first page that changed."""
    chance, time = (np.array(column) for column in zip(*rows, strict=True))
    turn = a_turn(np.ones(len(rows), np.int64), budget=1e9)
    ours = choose_by_rate(chance / time, time, turn, rng_for(1, "test")).rows
    orders = [np.array(order) for order in permutations(range(len(rows)))]
    assert time_to_find(ours, chance, time) <= min(time_to_find(order, chance, time) for order in orders) + 1e-9


hostile = st.lists(
    st.tuples(st.sampled_from([0.0, 1e-9, 0.5, 1.0]), st.sampled_from([0.01, 1.0, 500.0])), min_size=1, max_size=8
)


@settings(max_examples=30)  # each is sixty turns
@given(hostile, st.floats(0.0, 4.0), st.integers(1, 6))
def test_nobody_is_forgotten(rows: list[tuple[float, float]], budget: float, bound: int) -> None:
    """Pages that never change, or cost more than a day's budget, wait at most for the bound plus a turn for each."""
    chance, time = (np.array(column) for column in zip(*rows, strict=True))
    waited, longest = np.zeros(len(rows), np.int64), 0
    for _ in range(60):
        waited += 1
        longest = max(longest, int(waited.max()))
        waited[choose_by_rate(chance / time, time, a_turn(waited, budget, bound), rng_for(1, "test")).rows] = 0
    assert longest <= bound + len(rows)


def test_days_of_a_history() -> None:
    """One page changes every tenth day, another never changes and has twice the links; a page that dies is left out."""
    days = 40
    first = P([V(-DAY_S), *(V((day + 0.5) * DAY_S) for day in range(0, days, 10))])
    found = read_days(web([first, P([V(-DAY_S)]), P([V(-DAY_S, (1,))], died_s=DAY_S)]), 0.0, days * DAY_S, seed=1)
    assert found.changed.sum(axis=1).tolist() == [4, 0]
    assert np.flatnonzero(found.changed[0]).tolist() == [0, 10, 20, 30]
    assert found.worth.tolist() == [1.0, 2.0]
    assert found.watched == 20


def test_short_spans_are_refused() -> None:
    """The error says what to do."""
    with pytest.raises(UsageError, match="--from and --to"):
        read_days(web([P([V(-1.0)]), P([V(-1.0)])]), 0.0, 3 * DAY_S, seed=1)


@pytest.mark.parametrize("from_ages", [True, False])
def test_chains_are_those_of_the_pages(from_ages: bool) -> None:  # noqa: FBT001 - a case of the test
    """A page with period 4 is certain to change at age 3; one that never changed keeps a minimum probability."""
    changed = np.zeros((2, 80), np.bool_)
    changed[0, ::4] = True
    chains = fit_chains(PagesInDays(changed, np.ones(2), np.ones(2), watched=40), from_ages=from_ages)
    never, periodic = chains.chains
    assert chains.of_page.tolist() == [1, 0]
    assert 0 < never.resets.max() < 0.01
    assert periodic.resets[:3].max() < 0.01
    assert periodic.resets[3] > 0.95


def test_the_one_day_rule_starts_with_a_and_the_two_day_rule_with_b() -> None:
    """As in table 1 of the paper: A is more likely out of date today, but B stays current for longer after a fetch."""
    chains = Chains(np.array([0, 1]), (memoryless_chain(0.6, 0), memoryless_chain(0.1, 0)))
    turn = Turn(np.zeros(2, np.int64), np.array([2, 12]), 1.0, chains)
    assert choose_by_plan(1, turn, np.ones(2)).rows.tolist() == [0]
    assert choose_by_plan(2, turn, np.ones(2)).rows.tolist() == [1]


def two_paces() -> PagesInDays:
    """Return forty pages that change on two of three days, and forty that change once in twenty days."""
    rng = rng_for(5, "test/plans")
    chance = np.repeat([0.66, 0.05], 40)
    changed = rng.random((80, 120 + PLAYED_DAYS)) < chance[:, None]
    return PagesInDays(changed, np.repeat([1.0, 3.0], 40)[rng.permutation(80)], np.ones(80), watched=120)


def test_looking_ahead_pays_where_fast_pages_hide_slow_ones() -> None:
    """The one-day rule spends its budget on pages that are out of date again tomorrow; planning three days does not."""
    equal = two_paces()._replace(time=np.ones(80))
    stale = {policy: np.mean([day.stale for day in play(equal, policy, 0.05, 1)[0]]) for policy in ("c1", "plan-3")}
    assert stale["plan-3"] < stale["c1"]


@pytest.mark.parametrize("policy", ["oldest", "c1-from-ages", "bp-over-t", "c2-over-t", "plan-2"])
def test_a_cell_gives_what_is_promised(policy: str) -> None:
    """It has all metrics, for equal and unequal times; plans have a gap."""
    rows = EXPERIMENT.run(Cell("plans", "made:tiny", policy, 0.1, 1))
    assert [row["unequal"] for row in rows] == [0.0, 1.0]
    for row in rows:
        assert {*row} - {"unequal", "gap"} == {*EXPERIMENT.metrics} - {"gap"}
        assert ("gap" in row) == policy.startswith("plan-")
        assert 0 <= row["stale"] <= 1


def test_a_budget_is_a_share() -> None:
    """Fifty fetches a day are not a share of all pages."""
    with pytest.raises(UsageError, match="share of pages"):
        EXPERIMENT.run(Cell("plans", "made:tiny", "c1", 50.0, 1))
