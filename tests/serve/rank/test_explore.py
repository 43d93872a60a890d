"""Ranking policies: their contract, exact probabilities of lists, and what each of them promotes."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.lab.baselines.ranking.selective import RelaxedSelective, Selective
from vedette.lab.baselines.ranking.uniform import Uniform
from vedette.lab.core.conformance import (
    Trial,
    check_deterministic,
    check_no_mutation,
    check_output_shape,
    check_reasons,
    check_serializable,
)
from vedette.lab.experiments.ranking import find_policy, list_policy_names
from vedette.policy import rng_for
from vedette.serve.rank.explore.candidates import Candidates, UserPopulation, unseen_candidates
from vedette.serve.rank.explore.prospect import GRID, Prospect, fit_prior, posterior, uniform_prior
from vedette.serve.rank.explore.randomized_lists import PoolMerge, RandomizedList, rank_with_ties
from vedette.serve.rank.explore.slot_allocation import TrialSlots, allocate_slots

CROWD = UserPopulation(100.0, 100.0, 500.0, 1.0)
PLAIN = [name for name in list_policy_names() if not name.startswith(("selective-", "uniform-"))]
CHECKS = (check_no_mutation, check_output_shape, check_deterministic, check_serializable, check_reasons)


def some(rng: np.random.Generator, rows: int) -> Candidates:
    """Return results of any relevance, seen by any number of people."""
    aware = np.where(rng.random(rows) < 0.5, 0, rng.integers(0, 101, rows)).astype(np.float64)
    likes = np.floor(aware * rng.random(rows))
    return Candidates(rng.uniform(0.1, 1.0, rows), likes, aware, aware * 2, rng.uniform(0, 900, rows), CROWD)


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("rows", [0, 1, 30])
def test_every_policy_keeps_the_rules(name: str, rows: int) -> None:
    """It does not change its input, is repeatable, can be saved, and gives propensities and reasons."""
    rng = rng_for(rows, "test/promote")
    trial = Trial(find_policy(name), "choose", some(rng, 20), some(rng, rows), k=10)
    assert [text for text in (check(trial) for check in CHECKS) if text] == []


@pytest.mark.parametrize("name", PLAIN)
def test_with_equal_evidence_relevance_decides(name: str) -> None:
    """If all results performed alike, the more relevant one comes first."""
    aware = np.full(4, 10.0)
    batch = Candidates(np.array([0.1, 1.0, 0.01, 0.5]), np.full(4, 5.0), aware, aware, aware, CROWD)
    policy = find_policy(name) if name not in {"uniform", "thompson", "damped-thompson"} else Selective()
    state = policy.observe(policy.start(None), batch, 0.0)
    assert policy.choose(state, batch, 4, 0.0, rng_for(1, "test")).rows.tolist() == [1, 3, 0, 2]


def frequencies(plan: RandomizedList, places: int, lists: int = 1200) -> dict[tuple[int, int], float]:
    """Return how often each row is at each position, over many lists."""
    rng = rng_for(3, "test/lists")
    counts: Counter[tuple[int, int]] = Counter()
    for _ in range(lists):
        counts.update(enumerate(plan.draw(places, rng).rows.tolist()))
    return {key: count / lists for key, count in counts.items()}


MERGES = [
    PoolMerge(np.array([5, 6, 7, 8]), np.array([1, 2]), 1, 0.3),
    PoolMerge(np.array([5, 6, 7, 8]), np.array([1, 2]), 3, 0.6),
    PoolMerge(np.array([5]), np.array([1, 2, 3]), 3, 0.5),
    PoolMerge(np.array([5, 6]), np.array([1, 2, 3]), 2, 1.0),
    PoolMerge(np.zeros(0, np.int64), np.array([1, 2]), 1, 0.1),
]


@pytest.mark.parametrize("plan", MERGES)
def test_propensities_of_a_merge_are_how_often_it_happens(plan: PoolMerge) -> None:
    """The propensity of each pick is the frequency of that row at its position."""
    seen = frequencies(plan, 5)
    rng = rng_for(4, "test/merge")
    for _ in range(30):
        picks = plan.draw(5, rng)
        for place, (row, chance) in enumerate(zip(picks.rows.tolist(), picks.propensities.tolist(), strict=True)):
            assert seen[place, row] == pytest.approx(chance, abs=0.06)


@pytest.mark.parametrize(
    "plan",
    [
        *MERGES,
        rank_with_ties(np.array([3.0, 1.0, 3.0, 2.0, 2.0])),
        allocate_slots(
            np.array([5.0, 5.0, 4.0, 3.0]), np.array([True, True, False, False]), np.ones(4), TrialSlots(1, 1)
        ),
    ],
)
def test_a_place_of_many_lists_is_as_in_dealt_lists(plan: RandomizedList) -> None:
    """Drawing single positions has the same probabilities as drawing whole lists."""
    seen = frequencies(plan, 2)
    for place in range(2):
        rows = plan.draw_at_ranks(np.full(20_000, place + 1), rng_for(5, "test/standing"))
        for row, count in Counter(rows.tolist()).items():
            assert seen.get((place, row), 0.0) == pytest.approx(count / 20_000, abs=0.06)


def test_uniform_promotion_is_the_merge_of_a_pool_of_its_own() -> None:
    """A single position has the same distribution as in lists drawn from new pools."""
    plan = Uniform(2, 0.3).plan((), some(rng_for(1, "test/shaken"), 40), 0.0)
    rng = rng_for(6, "test/shaken")
    dealt = np.array([plan._draw_list(2, rng) for _ in range(1500)])
    for place in range(2):
        rows = plan.draw_at_ranks(np.full(20_000, place + 1), rng)
        for row in range(40):
            assert np.mean(dealt[:, place] == row) == pytest.approx(np.mean(rows == row), abs=0.06)


@given(st.integers(0, 12), st.integers(0, 12), st.integers(1, 15), st.floats(0.0, 1.0), st.integers(0, 99))
def test_a_merge_has_everybody_once(ordered: int, pool: int, first: int, degree: float, seed: int) -> None:
    """The list has every row once, and the first places and the order of the rest are kept."""
    rows = np.arange(ordered + pool)
    picks = PoolMerge(rows[:ordered], rows[ordered:], first, degree).draw(ordered + pool, rng_for(seed, "test"))
    assert sorted(picks.rows.tolist()) == rows.tolist()
    assert [row for row in picks.rows.tolist() if row < ordered] == list(range(ordered))
    head = min(first - 1, ordered)
    assert picks.rows[:head].tolist() == list(range(head))
    assert np.all(picks.propensities > 0)


def test_selective_promotes_the_unseen_and_nobody_else() -> None:
    """With r = 1, unseen pages come first from place k on; the relaxed form includes rarely seen ones."""
    aware = np.array([50.0, 0.0, 40.0, 2.0])
    batch = Candidates(np.ones(4), np.array([20.0, 0.0, 10.0, 1.0]), aware, aware, aware, CROWD)
    rng = rng_for(1, "test")
    assert Selective(2, 1.0).choose((), batch, 4, 0.0, rng).rows.tolist() == [0, 1, 2, 3]
    assert set(RelaxedSelective(2, 1.0).choose((), batch, 3, 0.0, rng).rows[1:].tolist()) == {1, 3}


def test_the_law_of_quality_is_learned_from_what_was_seen() -> None:
    """Two kinds of pages are separated: one in ten pleases half of its viewers, the others please no one."""
    rng = rng_for(1, "test/law")
    aware = np.full(2_000, 30.0)
    likes = rng.binomial(30, np.where(np.arange(2_000) % 10 == 0, 0.5, 0.002)).astype(np.float64)
    law = uniform_prior()
    for _ in range(3):
        law = fit_prior(law, likes, aware, np.ones(2_000))
    assert law[GRID > 0.3].sum() == pytest.approx(0.1, abs=0.03)
    assert float(posterior(law, np.zeros(1), np.zeros(1))[0] @ GRID) == pytest.approx(0.052, abs=0.02)


def veterans_and_newcomers() -> Candidates:
    """Return forty well-known pages, most of them poor and one good, and ten that no one has seen."""
    aware = np.append(np.full(40, 30.0), np.zeros(10))
    likes = np.zeros(50)
    likes[:3] = 15.0, 6.0, 3.0
    return Candidates(np.ones(50), likes, aware, aware, aware, CROWD._replace(delay_days=0.0))


def test_ours_gives_newcomers_a_chance_where_pages_live_long() -> None:
    """Unseen pages come before known poor ones; if pages die immediately, learning is useless."""
    policy, batch = Prospect(), veterans_and_newcomers()
    state = policy.observe(policy.start(None), batch, 0.0)
    first = policy.choose(state, batch, 12, 0.0, rng_for(1, "test")).rows
    assert np.count_nonzero(first >= 40) >= 8
    brief = replace(batch, crowd=CROWD._replace(life_days=1e-6))
    hurried = policy.observe(policy.start(None), brief, 0.0)
    assert policy.choose(hurried, brief, 3, 0.0, rng_for(1, "test")).rows.tolist() == [0, 1, 2]


def test_ours_keeps_the_first_place_and_the_cap() -> None:
    """If configured, no unproven result comes first, and at most the cap are among the first ten."""
    policy, batch = Prospect(first=2, most=2), veterans_and_newcomers()
    state = policy.observe(policy.start(None), batch, 0.0)
    for seed in range(20):
        rows = policy.choose(state, batch, 50, 0.0, rng_for(seed, "test")).rows
        assert rows[0] < 40
        assert np.count_nonzero(rows[:10] >= 40) <= 2
        assert sorted(rows.tolist()) == list(range(50))


def test_with_no_evidence_ours_is_the_order_by_relevance() -> None:
    """Before any views, results are in order of relevance."""
    batch = replace(unseen_candidates(5, CROWD), relevance=np.array([0.3, 0.9, 0.5, 0.1, 0.7]))
    policy = Prospect()
    assert policy.choose(policy.start(None), batch, 5, 0.0, rng_for(1, "test")).rows.tolist() == [1, 4, 2, 0, 3]
