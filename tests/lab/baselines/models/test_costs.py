"""Looks of unequal cost: the best order, and that nobody is forgotten."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vedette.lab.baselines.models.costs import TurnLimits, best_order, choose_pages, expected_search_time, with_floor
from vedette.policy import Floats, rng_for
from vedette.refresh.models.age_chain import AgeChain

pages = st.lists(st.tuples(st.floats(0.01, 1), st.floats(0.1, 10), st.floats(0.1, 10)), min_size=1, max_size=4)


@given(pages)
def test_chance_over_time_is_the_best_order(rows: list[tuple[float, float, float]]) -> None:
    """No other order finds a change sooner, with benefits and without."""
    chance, time, benefit = (np.array(column) for column in zip(*rows, strict=True))
    orders = [np.array(order) for order in permutations(range(len(rows)))]
    for worth in (None, benefit):
        best = expected_search_time(best_order(chance, time, worth), chance, time, worth)
        assert best <= min(expected_search_time(order, chance, time, worth) for order in orders) + 1e-9


def test_a_look_in_vain_takes_its_time() -> None:
    """By eq. 35 as printed the worse order would seem the better one."""
    chance, time = np.array([0.1, 0.9]), np.array([1.0, 5.0])
    assert best_order(chance, time).tolist() == [1, 0]
    assert expected_search_time(np.array([1, 0]), chance, time) == pytest.approx(5.1)
    assert expected_search_time(np.array([0, 1]), chance, time) == pytest.approx(5.5)
    best, worse = (chance[a] * time[a] + (1 - chance[a]) * chance[b] * time[b] for a, b in ((1, 0), (0, 1)))
    assert worse < best


def longest_wait(chains: list[AgeChain], cost: Floats, turn: TurnLimits, turns: int, *, by_time: bool) -> int:
    """How long a page had waited at most, over so many turns of C1 or C2."""
    rng = rng_for(1, "test/liveness")
    waited, longest = np.zeros(len(chains), np.int64), 0
    for _ in range(turns):
        waited += 1
        longest = max(longest, int(waited.max()))
        late = [
            chain.expected_staleness(0, wait) if by_time else chain.change_chance(0, wait)
            for chain, wait in zip(chains, waited.tolist(), strict=True)
        ]
        waited[choose_pages(np.array(late), cost, waited, turn, rng)] = 0
    return longest


hostile = st.lists(
    st.tuples(st.sampled_from([0.0, 1e-9, 0.5, 1.0]), st.sampled_from([0.01, 1.0, 500.0])), min_size=1, max_size=8
)


@settings(max_examples=30)  # each is sixty turns
@given(hostile, st.floats(0.0, 4.0), st.integers(1, 6), st.booleans())
def test_nobody_is_forgotten(rows: list[tuple[float, float]], budget: float, bound: int, by_time: bool) -> None:  # noqa: FBT001 - a case of the test
    """Pages that never change, or cost more than a turn's budget, wait for the bound and a turn for each at most."""
    chains = [AgeChain(np.array([reset])) for reset, _ in rows]
    cost = np.array([each for _, each in rows])
    turn = TurnLimits(budget, bound)
    assert longest_wait(chains, cost, turn, 60, by_time=by_time) <= bound + len(rows)


def test_without_the_bound_a_dear_page_would_wait_for_ever() -> None:
    """What the print fears in 2.4.3: surely changed, and never looked at."""
    chains, cost = [AgeChain(np.array([1.0])), AgeChain(np.array([1.0]))], np.array([1.0, 500.0])
    assert longest_wait(chains, cost, TurnLimits(1.0, bound=10_000), 200, by_time=False) == 200
    assert longest_wait(chains, cost, TurnLimits(1.0, bound=20), 200, by_time=False) <= 22


def test_lots_are_drawn_among_equals() -> None:
    """Of pages that are alike none is preferred by its number."""
    first = [
        int(
            choose_pages(np.ones(5), np.ones(5), np.ones(5, np.int64), TurnLimits(1, 99), rng_for(seed, "test/lots"))[0]
        )
        for seed in range(60)
    ]
    assert sorted(dict.fromkeys(first)) == [0, 1, 2, 3, 4]


@given(st.floats(1e-4, 0.5), st.integers(1, 400))
def test_a_floor_brings_every_chance_near_to_one(least: float, steps: int) -> None:
    """A page that seems never to change has changed with a chance that grows in known time."""
    chain = with_floor(AgeChain(np.array([0.0, 0.0, 0.7])), least)
    assert float(chain.change_chance(0, steps)) >= 1 - (1 - least) ** steps - 1e-12
