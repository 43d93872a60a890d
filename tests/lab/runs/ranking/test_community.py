"""The community as formulas: the corrected theorem compared with the exact chain, and the fixed point."""

from itertools import pairwise

import numpy as np
import pytest
from bench.peers.community_model import awareness_distribution, solve_community
from hypothesis import given
from hypothesis import strategies as st

from vedette.lab.baselines.ranking.popularity import Popularity
from vedette.lab.baselines.ranking.selective import Selective
from vedette.lab.runs.ranking.community import Phases, simulate_community
from vedette.lab.worlds.community import COMMUNITIES, Community, draw_qualities, ideal_qpc, parse_community, view_shares
from vedette.policy import rng_for
from vedette.serve.rank.explore.candidates import Candidates


def stationary(rates: np.ndarray, dying: float) -> np.ndarray:
    """Solve the exact stationary distribution of the chain from its balance equations, without the theorem."""
    people = len(rates) - 1
    flow = np.zeros((people + 1, people + 1))
    for state in range(people + 1):
        if state < people:
            flow[state, state + 1] += rates[state] * (1 - state / people)
        flow[state, 0] += dying
    flow -= np.diag(flow.sum(axis=1))
    system = np.vstack([flow.T, np.ones(people + 1)])
    return np.asarray(np.linalg.lstsq(system, np.append(np.zeros(people + 1), 1.0), rcond=None)[0])


@pytest.mark.parametrize(
    ("people", "dying", "low", "high"),
    [
        (10, 0.002, 0.01, 40.0),
        (100, 0.00183, 0.001, 38.0),
        (50, 0.1, 0.5, 2.0),
        (5, 1.0, 0.1, 0.1),
        (30, 0.01, 5.0, 0.2),
    ],
)
def test_theorem_2_as_corrected_is_the_exact_chain(people: int, dying: float, low: float, high: float) -> None:
    """It sums to 1 and equals the stationary distribution for five sets of parameters."""
    rates = np.geomspace(low, high, people + 1)
    law = awareness_distribution(rates[None, :], dying)[0]
    assert law.sum() == pytest.approx(1.0, abs=1e-12)
    assert np.abs(law - stationary(rates, dying)).max() < 1e-9


@given(st.lists(st.floats(0.0, 1e3), min_size=2, max_size=40), st.floats(1e-4, 10.0))
def test_theorem_2_sums_to_one_whatever_the_rates(rates: list[float], dying: float) -> None:
    """This includes pages that are never visited, and pages that everyone knows."""
    law = awareness_distribution(np.array([rates]), dying)
    assert law.sum() == pytest.approx(1.0)
    assert np.all(law >= 0)


def test_promotion_finds_pages_sooner_and_brings_more_by_the_model_too() -> None:
    """In the default community, a little promotion makes pages popular sooner and raises quality per click."""
    community = COMMUNITIES["default"]
    none, some = solve_community(community), solve_community(community, degree=0.1)
    assert some.tbp_days() < none.tbp_days() / 3
    assert some.qpc > none.qpc
    assert some.tbp_within_life(rng_for(1, "test")) <= community.life_days


def test_surfers_and_searchers_are_all_visits() -> None:
    """With only surfers, the model distributes exactly the existing visits (the published v is missing)."""
    model = solve_community(Community(pages=500, users=200, visits_per_day=200, surf_share=1.0))
    assert model.visit_share == pytest.approx(1.0, abs=0.01)


def test_no_order_passes_that_by_quality() -> None:
    """The ideal is at least as good as any other order of the same pages."""
    quality = draw_qualities(Community(pages=200), 1)
    shares = view_shares(200)
    rng = rng_for(1, "test/orders")
    assert all(shares @ rng.permutation(quality) <= ideal_qpc(quality) for _ in range(50))


TINY = Community(pages=200, users=100, visits_per_day=500, life_days=60.0)


def test_a_run_is_the_same_for_the_same_seed_and_stays_in_bounds() -> None:
    """Two runs have the same numbers, and quality per click is between zero and the ideal."""
    phases = Phases(40, 60, 20)
    first, again = (simulate_community(TINY, Selective(), phases, 3) for _ in range(2))
    assert first.qpc == again.qpc
    assert first.tbp_days.tolist() == again.tbp_days.tolist()
    assert 0 < first.qpc <= first.ideal
    assert first.awareness.sum() == 60


def test_promotion_explores_and_popularity_does_not() -> None:
    """Under selective promotion, fewer pages stay unseen than with popularity alone."""
    phases = Phases(60, 60, 1)
    alone, promoted = (simulate_community(TINY, policy, phases, 1) for policy in (Popularity(), Selective(degree=0.3)))
    assert promoted.unseen_share < alone.unseen_share
    assert promoted.qpc > alone.qpc


def test_promotion_makes_a_newborn_popular_sooner_and_costs_it_visits_later() -> None:
    """Figure 5.1: a promoted page becomes popular sooner, and then has fewer visits left than without promotion."""
    alone, promoted = (
        simulate_community(TINY._replace(exact=True), policy, Phases(60, 60, 1), 1).evolution
        for policy in (Popularity(), Selective(degree=0.3))
    )
    for curve in (alone, promoted):
        assert all(one.popularity <= other.popularity for one, other in pairwise(curve))
    assert promoted[1].popularity > 0.3 > alone[1].popularity
    late = slice(len(alone) // 2, None)
    assert sum(point.visit_share for point in promoted[late]) < sum(point.visit_share for point in alone[late])


def test_a_policy_never_sees_quality() -> None:
    """Without visits, what a policy sees does not depend on which page is good."""
    report = []

    class Witness(Popularity):
        def observe(self, state: tuple[()], batch: Candidates, now: float) -> tuple[()]:
            report.append([np.array(getattr(batch, name)) for name in ("relevance", "likes", "aware", "views")])
            return Popularity.observe(self, state, batch, now)

    for exponent in (0.3, 0.9):
        simulate_community(TINY._replace(visits_per_day=0, exponent=exponent), Witness(), Phases(30, 0, 0), 1)
    half = len(report) // 2
    assert all(np.array_equal(one, two) for one, two in zip(report[:half], report[half:], strict=True))


def test_names_of_communities_can_be_refined() -> None:
    """Exact popularity and another distribution of quality can be part of the name."""
    found = parse_community("busy+exact+0.5")
    assert found.exact
    assert found.exponent == 0.5
    assert found.pages == COMMUNITIES["busy"].pages
