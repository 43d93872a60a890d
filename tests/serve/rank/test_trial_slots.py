"""Trial slots: they promote, candidates never lose by taking part, and reported propensities are true."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from vedette.serve.rank.explore.slot_allocation import TrialSlots
from vedette.serve.rank.trial_slots import plan_trial_list

WORTHS = st.lists(
    st.tuples(st.integers(1, 40), st.sampled_from([0, 0, 5, 20, 60])), min_size=1, max_size=40
)  # by themselves, and more where they are tried


@given(WORTHS, st.integers(1, 4), st.integers(0, 4), st.floats(0, 50), st.integers(0, 99))
def test_a_seat_raises_and_costs_others_a_place_at_most(
    worths: list[tuple[int, int]], first: int, most: int, views: float, seed: int
) -> None:
    """Each row occurs once; tried ones are after the first open position, and higher than otherwise."""
    own = np.array([float(each) for each, _ in worths])
    tried = np.where([more > 0 for _, more in worths], own + np.array([more for _, more in worths]), 0.0)
    plan = plan_trial_list(own, tried, np.full(len(own), 4.0), TrialSlots(first, most, views))
    found = plan.draw(np.random.default_rng(seed))
    before = np.argsort(-own, kind="stable")
    assert sorted(found.rows.tolist()) == list(range(len(own)))
    places = np.flatnonzero(found.is_tried)
    assert len(places) <= most
    assert ((places >= first - 1) & (places < 10)).all()
    place_before = np.empty(len(own), np.int64)
    place_before[before] = np.arange(len(own))
    moved = np.arange(len(own)) - place_before[found.rows]
    assert (moved[found.is_tried] < 0).all()
    assert (moved[~found.is_tried] <= len(places)).all()
    assert ((found.propensities > 0) & (found.propensities <= 1)).all()


def test_chances_are_those_that_come_about() -> None:
    """With two groups of equals, some already on the page: all positions, over many lists."""
    own = np.array([9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.5, 3.0, 2.5, 2.0, 1.5, 1.0])
    tried = np.array([0.0, 0.0, 0.0, 8.5, 0.0, 8.5, 8.5, 0.0, 6.5, 6.5, 0.0, 6.5])
    draws = 20_000
    stood = Counter[tuple[int, int]]()
    report: dict[tuple[int, int], float] = {}
    rng = np.random.default_rng(1)
    plan = plan_trial_list(own, tried, np.full(12, 99.0), TrialSlots(2, 4, 1.0))
    for _ in range(draws):
        found = plan.draw(rng)
        assert found.is_tried.sum() == 4
        for place, (row, chance) in enumerate(zip(found.rows.tolist(), found.propensities.tolist(), strict=True)):
            stood[row, place] += 1
            assert abs(report.setdefault((row, place), chance) - chance) < 1e-9
    for at, times in stood.items():
        assert abs(times / draws - report[at]) < 5 * np.sqrt(report[at] * (1 - report[at]) / draws) + 1e-9
    for place in range(12):  # single places of many lists come about with the same chances
        seen = Counter(plan.draw_at_ranks(np.full(4_000, place + 1), rng).tolist())
        for row, times in seen.items():
            chance = report[row, place]
            assert abs(times / 4_000 - chance) < 5 * np.sqrt(chance * (1 - chance) / 4_000) + 1e-9


def test_who_has_no_seat_stays_where_it_stood() -> None:
    """With many candidates and one slot, the others keep their order, even those worth more if tried."""
    own = np.arange(20.0, 0.0, -1.0)
    plan = plan_trial_list(own, np.where(own < 19, 100.0, 0.0), np.full(20, 99.0), TrialSlots(2, 1, 1.0))
    found = plan.draw(np.random.default_rng(4))
    rest = found.rows[~found.is_tried].tolist()
    assert rest == sorted(rest)
    assert found.rows[0] == 0
